//! Decides what follows a change of the breaker and a look at the meter: ramp, learned limit, reopening.
//! It exists so that all that changes rarely, and several things at once, lies behind the driver's one lock.
//! It refuses to be touched by a healthy call, but for the one in each round that looks.

use alloc::{collections::VecDeque, sync::Arc, vec::Vec};

use crate::{
    breaker::{Asker, Changes, Gate, Probe, Recovery, State, Transition, Trip},
    class::Verdict,
    contract::DependencyContract,
    dependency::{Carried, CarriedOpening},
    limit::{
        learner::Learner,
        meter::{Lines, Meter, NO_LIMIT, WHOLE},
    },
    ramp::{Outcome, Ramp, RampEvent, RampRules, RampStep, Stage},
    time::Mono,
};

/// The slow parts of a dependency, which a driver keeps under exclusive access.
#[derive(Debug)]
pub struct Steering {
    /// The gate by the newest rules. Whoever comes with one by older rules changes this one, with which it shares its state.
    gate: Option<Gate>,
    meter: Option<Arc<Meter>>,
    recovery: Option<Recovery>,
    rules: Option<RampRules>,
    ramp: Option<Ramp>,
    learner: Option<Learner>,
    /// What is declared, and the ramp's ceiling where nothing is learned.
    concurrency: Option<u32>,
    /// The breaker is not closed, or was opened and the ramp has not ended.
    frozen: bool,
    /// Steps of ramps that nobody has fetched; at most [`NEWS_MAX`], the newest.
    news: VecDeque<RampEvent>,
}

/// What is learned under a contract. A ramp alone is judged by what was usual before, too.
fn learner(contract: &DependencyContract, meter: &Meter, seed: u64) -> Learner {
    match contract.learn() {
        Some(rules) => Learner::new(*rules, contract.timeout(), seed, meter),
        None => Learner::watching(contract.timeout(), seed, meter),
    }
}

/// More than a ramp has steps, as long as it does not go up and down.
const NEWS_MAX: usize = 32;

impl Steering {
    /// Makes the parts that the contract asks for, and sets the meter's first limit.
    pub(crate) fn new(
        contract: &DependencyContract,
        gate: Option<&Gate>,
        meter: Option<&Arc<Meter>>,
        seed: u64,
    ) -> Self {
        let recovery = contract.breaker().map(|rules| {
            let recovery = Recovery::new(*rules, seed);
            if contract.ramp().is_some() {
                recovery.ramped()
            } else {
                recovery
            }
        });
        let learner = meter.map(|meter| learner(contract, meter, seed));
        Self {
            gate: gate.cloned(),
            meter: meter.cloned(),
            recovery,
            rules: contract.ramp().cloned(),
            ramp: None,
            learner,
            concurrency: contract.concurrency(),
            frozen: false,
            news: VecDeque::new(),
        }
    }

    /// Goes on by another contract, see [`crate::Dependency::take_over`].
    pub(crate) fn succeed(
        &mut self,
        contract: &DependencyContract,
        gate: Option<&Gate>,
        meter: Option<&Arc<Meter>>,
        seed: u64,
        now: Mono,
    ) {
        let had_meter = self.meter.is_some();
        (self.gate, self.meter) = (gate.cloned(), meter.cloned());
        if let Some(gate) = gate {
            gate.follow();
        }
        let ramped = contract.ramp().is_some();
        match (&mut self.recovery, contract.breaker(), gate) {
            (Some(recovery), Some(rules), Some(gate)) => recovery.succeed(gate, *rules, ramped, now),
            (_, Some(rules), _) => {
                let recovery = Recovery::new(*rules, seed);
                self.recovery = Some(if ramped { recovery.ramped() } else { recovery });
            }
            (_, None, _) => self.recovery = None,
        }
        let same_ramp = self.rules.as_ref() == contract.ramp() && self.concurrency == contract.concurrency();
        self.rules = contract.ramp().cloned();
        self.concurrency = contract.concurrency();
        let Some(meter) = meter else {
            (self.learner, self.ramp, self.frozen) = (None, None, false);
            return;
        };
        meter.set_linger(contract.linger(), now);
        let is_open = gate.is_some_and(|gate| gate.state() != State::Closed);
        match &mut self.learner {
            Some(learner) if had_meter => {
                let frozen = self.frozen;
                learner.succeed(contract.learn().copied(), contract.timeout(), frozen, meter, now);
            }
            _ => {
                self.learner = Some(learner(contract, meter, seed));
                self.frozen = is_open;
            }
        }
        self.reshape_ramp(same_ramp, is_open, meter, now);
    }

    /// Goes on with the ramp by the rules of now, with the largest stage that is no larger; or ends one that no rule asks for.
    fn reshape_ramp(&mut self, same: bool, is_open: bool, meter: &Meter, now: Mono) {
        let before = self.ramp.as_ref().map(Ramp::carried);
        match (before, self.new_ramp(now)) {
            (Some(before), Some(ramp)) if !same => {
                let ramp = ramp.resumed(before);
                Self::stage(&ramp, meter, now);
                meter.look_again(now.after(ramp.wait()));
                self.ramp = Some(ramp);
            }
            (None, Some(ramp)) if is_open && !same => Self::stage(&ramp, meter, now),
            (Some(_), None) => self.ramp = None,
            // Without a ramp everything is let in as soon as it closes.
            (None, None) if is_open => meter.set(NO_LIMIT, WHOLE, now),
            (Some(_) | None, Some(_)) | (None, None) => {}
        }
        if self.frozen && !is_open && self.ramp.is_none() {
            self.done(false, meter, now);
        }
    }

    /// See [`Recovery::probe`].
    pub(crate) fn probe(&mut self, now: Mono, asker: Asker) -> (Result<Probe, Option<Mono>>, Changes) {
        let (Some(recovery), Some(gate)) = (&mut self.recovery, &self.gate) else {
            return (Err(None), [None; 2]);
        };
        let (granted, changes) = recovery.probe(gate, now, asker);
        (granted, changes.map(|change| self.followed(change)))
    }

    pub(crate) fn tripped(&mut self, trip: Trip, now: Mono) -> Option<Transition> {
        let transition = self.recovery.as_mut()?.tripped(self.gate.as_ref()?, trip, now);
        self.followed(transition)
    }

    pub(crate) fn answered(&mut self, probe: &Probe, head: Verdict) {
        if let Some(recovery) = &mut self.recovery {
            recovery.answered(probe, head);
        }
    }

    pub(crate) fn settle(&mut self, probe: Probe, verdict: Verdict, now: Mono) -> Option<Transition> {
        let transition = self
            .recovery
            .as_mut()?
            .settle(self.gate.as_ref()?, probe, verdict, now);
        self.followed(transition)
    }

    /// See [`Recovery::slow`].
    pub(crate) fn slow(&mut self, probe: Probe, now: Mono) -> Option<Transition> {
        let transition = self.recovery.as_mut()?.slow(self.gate.as_ref()?, probe, now);
        self.followed(transition)
    }

    /// Closes by a person's word. A dependency that is closed already gets a ramp from its first stage too.
    pub(crate) fn reset(&mut self, now: Mono) -> Option<Transition> {
        let transition = self.recovery.as_mut()?.reset(self.gate.as_ref()?, now);
        if transition.is_none() && self.rules.is_some() {
            self.ramp = None;
            self.opened(now);
            self.closed(now);
        }
        self.followed(transition)
    }

    /// Looks at the notes, and sets when to look again.
    pub(crate) fn look(&mut self, now: Mono) -> Option<Transition> {
        let mut transition = None;
        let meter = &*Arc::clone(self.meter.as_ref()?);
        let again = if let Some(ramp) = &mut self.ramp {
            let notes = meter.notes();
            let ratio = self.learner.as_ref().and_then(|learner| learner.ratio(&notes));
            let wait = ramp.wait();
            let before = ramp.stage();
            let outcome = ramp.look(&notes, ratio, now);
            let stage = ramp.stage();
            match outcome {
                Outcome::Held => {}
                Outcome::Again => {
                    meter.wipe();
                    self.say(RampStep::Held, stage, meter, now);
                }
                Outcome::Promoted | Outcome::RolledBack => {
                    Self::stage(ramp, meter, now);
                    let step = if outcome == Outcome::Promoted {
                        RampStep::Promoted
                    } else {
                        RampStep::RolledBack
                    };
                    self.say(step, stage, meter, now);
                }
                Outcome::Done { slow } => {
                    self.say(RampStep::Ended, before, meter, now);
                    self.done(slow, meter, now);
                }
                Outcome::Failed => {
                    let opened = self
                        .gate
                        .as_ref()
                        .zip(self.recovery.as_mut())
                        .and_then(|(gate, recovery)| recovery.ramp_failed(gate, now));
                    transition = self.followed(opened);
                }
            }
            now.after(wait)
        } else {
            match &mut self.learner {
                Some(learner) if !self.frozen => learner.look(meter, now),
                // Nothing is judged before the breaker closes, which sets the next look.
                Some(_) | None => Mono::END,
            }
        };
        meter.look_again(again);
        transition
    }

    /// The dependency asked to be left alone for a while.
    pub(crate) fn busy(&mut self, now: Mono) {
        if let (Some(learner), Some(meter), false) = (&mut self.learner, &self.meter, self.frozen) {
            learner.busy(meter, now);
        }
    }

    pub(crate) fn ramp(&self) -> Option<Stage> {
        self.ramp.as_ref().map(Ramp::stage)
    }

    pub(crate) fn learned(&self) -> Option<u32> {
        self.learner.as_ref().and_then(Learner::limit)
    }

    /// See [`crate::Dependency::export`].
    pub(crate) fn export(&self, open: bool, next_probe: Option<Mono>) -> Carried {
        let recovery = self.recovery.as_ref();
        Carried {
            open: recovery.filter(|_| open).map(|recovery| CarriedOpening {
                next_probe,
                since: recovery.changed_at(),
            }),
            openings: recovery.map_or(0, Recovery::openings),
            ramp: self.ramp.as_ref().map(Ramp::carried),
            load: self.learner.as_ref().map(Learner::carried),
        }
    }

    /// See [`crate::Dependency::import`].
    pub(crate) fn import(&mut self, carried: Carried, now: Mono) {
        if let (Some(learner), Some(load), Some(meter)) = (&mut self.learner, carried.load, &self.meter) {
            learner.carry(load, meter, now);
        }
        if let (Some(recovery), Some(gate)) = (&mut self.recovery, &self.gate) {
            recovery.carry(gate, carried.openings, carried.open, now);
            if carried.open.is_some() {
                self.opened(now);
                return;
            }
        }
        let (Some(before), Some(meter)) = (carried.ramp, self.meter.clone()) else {
            return;
        };
        let meter = &*meter;
        if let Some(ramp) = self.new_ramp(now).map(|ramp| ramp.resumed(before)) {
            self.frozen = true;
            Self::stage(&ramp, meter, now);
            meter.draw(self.learner.as_ref().map_or(Lines::NONE, Learner::lines_of_ramp));
            meter.look_again(now.after(ramp.wait()));
            self.ramp = Some(ramp);
        }
    }

    /// Does what a change of the breaker's state asks for.
    fn followed(&mut self, transition: Option<Transition>) -> Option<Transition> {
        let change = transition?;
        match change.to {
            State::Open => self.opened(change.at),
            State::HalfOpen => {}
            State::Closed => self.closed(change.at),
        }
        transition
    }

    /// Nothing is learned from now on. The first stage is set while nobody but probes gets in, so that closing
    /// lets no crowd through.
    fn opened(&mut self, now: Mono) {
        let Some(meter) = self.meter.clone() else { return };
        let meter = &*meter;
        if let (Some(learner), false) = (&mut self.learner, self.frozen) {
            learner.freeze(meter, now);
        }
        self.frozen = true;
        if let Some(ramp) = self.ramp.take() {
            self.say(RampStep::Reopened, ramp.stage(), meter, now);
        }
        if let Some(ramp) = self.new_ramp(now) {
            Self::stage(&ramp, meter, now);
        }
    }

    fn closed(&mut self, now: Mono) {
        let Some(meter) = self.meter.clone() else { return };
        let meter = &*meter;
        match self.new_ramp(now) {
            None => self.done(false, meter, now),
            Some(ramp) => {
                Self::stage(&ramp, meter, now);
                self.say(RampStep::Begun, ramp.stage(), meter, now);
                meter.draw(self.learner.as_ref().map_or(Lines::NONE, Learner::lines_of_ramp));
                meter.look_again(now.after(ramp.wait()));
                self.ramp = Some(ramp);
            }
        }
    }

    /// A ramp to what was borne before, or to what is declared; `None` where no ramp is declared.
    fn new_ramp(&self, now: Mono) -> Option<Ramp> {
        let declared = self.concurrency;
        let learned = self.learner.as_ref().and_then(Learner::known_ceiling);
        let ceiling = match (declared, learned) {
            (Some(declared), Some(learned)) => Some(declared.min(learned)),
            (one, other) => one.or(other),
        };
        self.rules
            .as_ref()
            .map(|rules| Ramp::new(rules.clone(), ceiling, now))
    }

    fn stage(ramp: &Ramp, meter: &Meter, now: Mono) {
        let stage = ramp.stage();
        meter.set_back_at(Some(ramp.ends_at()));
        meter.set(stage.limit.unwrap_or(NO_LIMIT), stage.share_ppm, now);
    }

    fn say(&mut self, step: RampStep, stage: Stage, meter: &Meter, at: Mono) {
        if self.news.len() >= NEWS_MAX {
            self.news.pop_front();
        }
        self.news.push_back(RampEvent { at, step, stage });
        meter.set_news(true);
    }

    /// Returns the steps that nobody has fetched, in their order.
    pub(crate) fn take_news(&mut self) -> Vec<RampEvent> {
        if let Some(meter) = &self.meter {
            meter.set_news(false);
        }
        self.news.drain(..).collect()
    }

    fn done(&mut self, slow: bool, meter: &Meter, now: Mono) {
        let reached = self.ramp.take().and_then(|ramp| ramp.stage().limit);
        self.frozen = false;
        meter.set_back_at(None);
        meter.set(NO_LIMIT, WHOLE, now);
        if let Some(learner) = &mut self.learner {
            learner.resume(reached.filter(|_| slow), meter, now);
            meter.look_again(now);
        }
        if let Some(recovery) = &mut self.recovery {
            recovery.proven();
        }
    }
}
