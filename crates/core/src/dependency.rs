//! Decides who may ask a dependency, and what each result does to it: breaker, bulkhead and resources together.
//! It exists here so that real time and virtual time admit by the very same code.
//! It refuses without asking: what is not admitted here never reaches the dependency.

use alloc::{sync::Arc, vec::Vec};

use crate::{
    abandoned::Abandoned,
    breaker::{Admission, Asker, Cause, Changes, Gate, State, Transition},
    bulkhead::{Bulkhead, acquire_all},
    class::{Class, Outage, Verdict},
    contract::DependencyContract,
    criticality::{Criticality, Priorities},
    lane::Lane,
    limit::meter::{Meter, Told},
    pass::{Pass, Refusal, Through},
    ramp::{RampEvent, Stage},
    reason::Reason,
    steering::Steering,
    time::Mono,
};

mod again;
mod carry;
mod priority;
mod reserved;
mod slow;
mod succession;

use again::Again;
pub use carry::{Carried, CarriedLoad, CarriedOpening, CarriedRamp};

/// Exclusive access to something that several calls change: a lock in real time, a cell in virtual time.
///
/// Core takes no lock; a driver brings its own.
pub trait Exclusive<T> {
    /// Puts a value under exclusive access.
    fn guard(value: T) -> Self;

    /// Runs `change` with the value, while nobody else has it. It is short and calls nobody.
    fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R;
}

/// What of a dependency is shared by all who ask it. `L` is the driver's way to exclusive access.
#[derive(Debug)]
pub struct Dependency<L> {
    contract: DependencyContract,
    gate: Option<Gate>,
    /// Only where a ramp or a learned limit is declared.
    meter: Option<Arc<Meter>>,
    steering: Arc<L>,
    bulkhead: Option<Arc<Bulkhead>>,
    resources: Vec<Arc<Bulkhead>>,
    again: Again,
    priorities: Arc<Priorities>,
    abandoned: Option<Abandoned>,
}

impl<L: Exclusive<Steering>> Dependency<L> {
    /// Makes a dependency that is closed and idle. `seed` draws the jitter of its open periods.
    #[must_use]
    pub fn new(contract: DependencyContract, resources: Vec<Arc<Bulkhead>>, seed: u64) -> Self {
        let meter = is_metered(&contract).then(|| Arc::new(Meter::new(contract.linger())));
        let gate = contract.breaker().map(Gate::new);
        let steering = Steering::new(&contract, gate.as_ref(), meter.as_ref(), seed);
        Self {
            gate,
            steering: Arc::new(L::guard(steering)),
            meter,
            bulkhead: contract.concurrency().map(Bulkhead::new).map(Arc::new),
            again: Again::new(contract.retry().copied(), seed),
            priorities: Arc::new(Priorities::new()),
            abandoned: contract
                .abandoned()
                .map(|most| Abandoned::new(most, contract.abandoned_for())),
            contract,
            resources,
        }
    }

    /// Returns the contract.
    #[must_use]
    pub const fn contract(&self) -> &DependencyContract {
        &self.contract
    }

    /// Admits one attempt, or refuses it and leaves nothing taken. While `observe` holds, breaker, ramp and learned
    /// limit let everything pass and only watch.
    ///
    /// Whoever is admitted calls [`Dependency::release`] when the work has ended and [`Dependency::settle`] when
    /// its result is known. The second value is what changed in the breaker's state, for the log.
    ///
    /// # Errors
    /// The refusal.
    pub fn admit(&self, now: Mono, asker: Asker, observe: bool) -> (Result<Pass, Refusal>, Changes) {
        self.admit_as(Criticality::default(), now, asker, observe)
    }

    /// Admits one attempt of a call that matters more or less than others, see [`Dependency::admit`].
    ///
    /// # Errors
    /// The refusal; [`Reason::Shed`] where the permits that are left are kept for calls that matter more.
    pub fn admit_as(
        &self,
        criticality: Criticality,
        now: Mono,
        asker: Asker,
        observe: bool,
    ) -> (Result<Pass, Refusal>, Changes) {
        let looked = self.look(now);
        let (pass, [first, second]) = self.pass(criticality, now, asker, observe);
        if pass.is_ok() {
            self.again.earn(now);
        }
        // A look only opens what was closed, where no lease can have ended.
        (pass, [looked.or(first), second])
    }

    fn pass(
        &self,
        criticality: Criticality,
        now: Mono,
        asker: Asker,
        observe: bool,
    ) -> (Result<Pass, Refusal>, Changes) {
        const NOTHING: Changes = [None; 2];
        let enter = |through, reserved| self.enter_as(criticality, through, reserved, now);
        let Some(gate) = &self.gate else {
            return (enter(Through::Free, observe), NOTHING);
        };
        if observe {
            let through = gate.observe().map_or(Through::Free, Through::Counted);
            return (enter(through, true), NOTHING);
        }
        match (gate.admit(now), asker) {
            (Admission::Admitted(generation), _) => (enter(Through::Counted(generation), false), NOTHING),
            (Admission::Refused { next_probe }, Asker::Traffic) => (Err(open(next_probe)), NOTHING),
            (Admission::Refused { .. } | Admission::MayProbe, _) => self.probe(gate, criticality, now, asker),
        }
    }

    fn probe(
        &self,
        gate: &Gate,
        criticality: Criticality,
        now: Mono,
        asker: Asker,
    ) -> (Result<Pass, Refusal>, Changes) {
        // The permit comes first: a probe that could not start would hold up the recovery.
        let entry = match self.enter_as_probe(now) {
            Ok(entry) => entry,
            Err(refusal) => return (Err(refusal), [None; 2]),
        };
        let (granted, changes) = self.steering.with(|steering| steering.probe(now, asker));
        let pass = match granted {
            Ok(probe) => Ok(Pass::new(Through::Probe(probe), entry, now)),
            Err(next_probe) => {
                self.release();
                // Somebody else's probe may have closed the breaker since we looked.
                gate.observe()
                    .ok_or_else(|| open(next_probe))
                    .and_then(|generation| {
                        self.enter_as(criticality, Through::Counted(generation), false, now)
                    })
            }
        };
        (pass, changes)
    }

    /// Gives back what an admission took, when the work has ended.
    pub fn release(&self) {
        for bulkhead in self.bulkheads() {
            bulkhead.release();
        }
        if let Some(meter) = &self.meter {
            meter.leave();
        }
    }

    /// Counts a result. `blame` is false where a failure is not the dependency's doing.
    ///
    /// An attempt that is slow by its rules counts as that too, whatever else it is: see [`Dependency::slow_at`].
    /// A success of a counted pass looks at `now` only if [`Dependency::counts_by_time`]. A timeout makes the attempt
    /// linger where a limit is learned, unless its request [was not sent](Pass::was_not_sent). There, a caller who leaves after half the timeout, or after eight times the
    /// usual latency, is a failure: callers with little patience would hide every hang. Any other is neutral.
    pub fn settle(
        &self,
        mut pass: Pass,
        class: Class,
        blame: bool,
        lane: Lane,
        now: Mono,
    ) -> Option<Transition> {
        if let (Class::Outage(Outage::TimedOut), false, Some(abandoned)) =
            (class, pass.unsent, &self.abandoned)
        {
            abandoned.add(now);
        }
        let slow = self.timed(&mut pass, class, lane, now);
        let verdict = match self.verdict_of(&pass, class) {
            Verdict::Failure if !blame => Verdict::Neutral,
            verdict @ (Verdict::Failure | Verdict::Success | Verdict::Neutral) => verdict,
        };
        let (told, verdict) = self.meaning(&pass, class, verdict, now);
        let other = self.tell(pass, class, told, verdict, lane, now);
        // After a slow call has opened the breaker the rest of its result is a late one.
        slow.or(other)
    }

    /// Notes that an answer of this class has begun whose rest is still on its way, and tells whether its verdict
    /// waits for the end. A failure does not: nothing that follows could make it better.
    ///
    /// Whoever waits calls [`Dependency::settle`] when the rest has come, or has not. What an answer says about the
    /// load, and whether it was slow, it says now: how long its rest takes is as much its reader's doing.
    pub fn answered(
        &self,
        pass: &mut Pass,
        class: Class,
        lane: Lane,
        now: Mono,
    ) -> (bool, Option<Transition>) {
        let verdict = self.verdict_of(pass, class);
        if verdict == Verdict::Failure {
            return (false, None);
        }
        let slow = self.timed(pass, class, lane, now);
        let (told, _) = self.meaning(pass, class, verdict, now);
        if let (Some(meter), Some(entry)) = (&self.meter, pass.entry) {
            meter.note(entry, told, now);
        }
        pass.answered = true;
        if let Through::Probe(probe) = &pass.through {
            self.steering.with(|steering| steering.answered(probe, verdict));
        }
        (true, slow)
    }

    /// Says what a result of this class is to the breaker. Where the table has a refusal for neutral, a probe that is refused
    /// is a success: what would never open a breaker must not keep it open.
    fn verdict_of(&self, pass: &Pass, class: Class) -> Verdict {
        match (self.contract.table().row(class).breaker, class) {
            (Verdict::Neutral, Class::Refusal | Class::Gone) if pass.is_probe() => Verdict::Success,
            (verdict, _) => verdict,
        }
    }

    /// Counts code that broke: a fault, and a failure too.
    pub fn broke(&self, pass: Pass, lane: Lane, now: Mono) -> Option<Transition> {
        self.tell(pass, Class::Fault, Told::Failure, Verdict::Failure, lane, now)
    }

    /// What a result says about the load, and what it is to the breaker once that is known.
    fn meaning(&self, pass: &Pass, class: Class, verdict: Verdict, now: Mono) -> (Told, Verdict) {
        let (Some(meter), Some(entry)) = (&self.meter, pass.entry) else {
            return (Told::Nothing, verdict);
        };
        if pass.answered {
            let failed = verdict == Verdict::Failure;
            return (if failed { Told::Failure } else { Told::Nothing }, verdict);
        }
        match class {
            Class::Outage(Outage::TimedOut) if !pass.unsent => {
                let blame = verdict == Verdict::Failure;
                (Told::TimedOut { blame }, verdict)
            }
            Class::Cancelled if !pass.untimed && meter.was_in_vain(entry, now) => {
                (Told::Failure, Verdict::Failure)
            }
            Class::Busy => {
                // Of many such answers to one limit, one lowers it.
                if meter.is_current(entry) {
                    self.steering.with(|steering| steering.busy(now));
                }
                (Told::Nothing, verdict)
            }
            Class::Answer | Class::Refusal | Class::Gone if !pass.untimed => (Told::Answer, verdict),
            Class::Answer | Class::Refusal | Class::Gone => (Told::Nothing, verdict),
            Class::Outage(_) | Class::Fault | Class::Local | Class::Cancelled => {
                let failed = verdict == Verdict::Failure;
                (if failed { Told::Failure } else { Told::Nothing }, verdict)
            }
        }
    }

    fn tell(
        &self,
        pass: Pass,
        class: Class,
        told: Told,
        verdict: Verdict,
        lane: Lane,
        now: Mono,
    ) -> Option<Transition> {
        let Pass { through, entry, .. } = pass;
        if let (Some(meter), Some(entry)) = (&self.meter, entry) {
            meter.note(entry, told, now);
        }
        let told = self.tell_breaker(through, verdict, lane, now);
        told.map(|transition| caused(transition, class))
            .or_else(|| self.look(now))
    }

    fn tell_breaker(&self, through: Through, verdict: Verdict, lane: Lane, now: Mono) -> Option<Transition> {
        let gate = self.gate.as_ref()?;
        match (through, verdict) {
            (Through::Free, _) | (Through::Counted(_), Verdict::Neutral) => None,
            (Through::Counted(generation), Verdict::Success) => {
                gate.succeeded(lane, now, generation);
                None
            }
            (Through::Counted(generation), Verdict::Failure) => {
                let trip = gate.failed(lane, now, generation)?;
                self.steering.with(|steering| steering.tripped(trip, now))
            }
            (Through::Probe(probe), verdict) => self
                .steering
                .with(|steering| steering.settle(probe, verdict, now)),
        }
    }

    /// Judges what the meter noted, when it is due. One load when it is not.
    fn look(&self, now: Mono) -> Option<Transition> {
        self.meter.as_ref().filter(|meter| meter.claim(now))?;
        self.steering.with(|steering| steering.look(now))
    }

    /// Closes the breaker by a person's word, and starts a ramp from its first stage if one is declared.
    pub fn reset(&self, now: Mono) -> Option<Transition> {
        self.gate.as_ref()?;
        self.steering.with(|steering| steering.reset(now))
    }

    /// Returns where the ramp stands; `None` when all traffic is let in, and while the breaker is not closed.
    #[must_use]
    pub fn ramp(&self) -> Option<Stage> {
        self.meter.as_ref()?;
        self.steering.with(|steering| steering.ramp())
    }

    /// Returns the steps of ramps since the last time, in their order: one load while there are none. When nobody
    /// fetches them the oldest go.
    #[must_use]
    pub fn ramp_events(&self) -> Vec<RampEvent> {
        match self.meter.as_ref().filter(|meter| meter.has_news()) {
            Some(_) => self.steering.with(Steering::take_news),
            None => Vec::new(),
        }
    }

    /// Returns the learned limit; `None` while there was no sign of overload.
    #[must_use]
    pub fn learned_limit(&self) -> Option<u32> {
        self.meter.as_ref()?;
        self.steering.with(|steering| steering.learned())
    }
}

/// Names the result that led to a change of state, where one did.
fn caused(transition: Transition, class: Class) -> Transition {
    let class = match transition.cause {
        Cause::Tripped | Cause::ProbeFailed | Cause::ProbeSlow | Cause::Proven => Some(class),
        // Another probe's lease, what the ramp has seen, or a person brought it about.
        Cause::LeaseExpired | Cause::RampFailed | Cause::Probing | Cause::Reset => None,
    };
    Transition { class, ..transition }
}

impl<L> Dependency<L> {
    fn enter(&self, through: Through, reserved: bool, now: Mono) -> Result<Pass, Refusal> {
        let entry = match &self.meter {
            None => None,
            Some(meter) if reserved => Some(meter.enter_reserved(now)),
            Some(meter) => Some(meter.enter(now).map_err(|reason| Refusal {
                reason,
                retry_at: meter.back_at(reason),
            })?),
        };
        acquire_all(self.bulkheads()).map_err(|_| {
            if let Some(meter) = &self.meter {
                meter.leave();
            }
            Refusal {
                reason: Reason::AtCapacity,
                retry_at: None,
            }
        })?;
        Ok(Pass::new(through, entry, now))
    }

    fn bulkheads(&self) -> impl Iterator<Item = &Bulkhead> + Clone {
        self.bulkhead.iter().chain(&self.resources).map(|one| &**one)
    }

    /// Tells whether a success has to know the time.
    #[must_use]
    pub fn counts_by_time(&self) -> bool {
        self.meter.is_some() || self.gate.as_ref().is_some_and(Gate::counts_by_time)
    }

    /// Returns the state of the breaker; `None` without one.
    #[must_use]
    pub fn state(&self) -> Option<State> {
        self.gate.as_ref().map(Gate::state)
    }

    /// Returns when the next probe may start, while that is known and the breaker is not closed.
    #[must_use]
    pub fn next_probe(&self) -> Option<Mono> {
        self.gate.as_ref().and_then(Gate::next_probe)
    }

    /// Returns how many attempts are in flight, where a ramp, a learned limit or a concurrency is declared.
    #[must_use]
    pub fn in_flight(&self) -> Option<u32> {
        let metered = self.meter.as_deref().map(Meter::in_flight);
        metered.or_else(|| self.bulkhead().map(Bulkhead::in_use))
    }

    /// Returns how many attempts were abandoned and still count at `now`, because their work may go on.
    #[must_use]
    pub fn lingering(&self, now: Mono) -> u32 {
        let metered = self.meter.as_ref().map_or(0, |meter| meter.lingering(now));
        metered.max(
            self.abandoned
                .as_ref()
                .map_or(0, |abandoned| abandoned.count(now)),
        )
    }

    /// Returns the most attempts that ramp and learned limit let in at the moment; `None` if they set no limit.
    #[must_use]
    pub fn limit(&self) -> Option<u32> {
        self.meter.as_deref().and_then(Meter::limit)
    }

    /// Tells whether attempts can be refused for want of a permit: its own, a resource's, or one under a learned limit.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.bulkheads().next().is_some() || self.contract.learn().is_some()
    }

    /// Returns the dependency's own bulkhead; `None` where no limit is declared.
    #[must_use]
    pub fn bulkhead(&self) -> Option<&Bulkhead> {
        self.bulkhead.as_deref()
    }
}

/// Tells whether load is metered: a ramp and a learned limit need it.
const fn is_metered(contract: &DependencyContract) -> bool {
    contract.ramp().is_some() || contract.learn().is_some()
}

const fn open(next_probe: Option<Mono>) -> Refusal {
    Refusal {
        reason: Reason::BreakerOpen,
        retry_at: next_probe,
    }
}

#[cfg(all(test, not(loom)))]
mod slow_tests;
#[cfg(all(test, not(loom)))]
mod tests;
