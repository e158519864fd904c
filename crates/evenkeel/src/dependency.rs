//! Decides how a dependency is declared and looked at: its contract in code, its status, its counters.
//! It exists once per dependency, however many guards ask it, because they all wear out the same source.
//! It refuses to admit by itself: that is the engine's, see `evenkeel_core::Dependency`.

use std::{
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use evenkeel_core::{
    Asker, BreakerRules, Bulkhead, Carried, Cause, Class, Criticality, DependencyContract, DependencyDraft,
    Exclusive, Limit, Mono, Now, Problems, RampStep, Reason, Refusal, Retry, Row, Stage, State, Steering,
    Transition,
};
use parking_lot::Mutex;

use crate::{
    breaker::BreakerBuilder,
    counts::RetryCounts,
    engine::{Engine, Resource},
    event::EventKind,
    hold::HoldSlot,
    lent::Lent,
    line::{Line, Lines},
    synthetic::Synthetic,
    ticket::{Permit, Ticket},
};

mod history;
mod load;
mod succession;

use succession::{Before, Tally};

/// The contract with a dependency, being written. Nothing is on unless declared.
#[derive(Debug)]
pub struct DependencyBuilder {
    engine: Engine,
    draft: DependencyDraft,
    uses: Vec<Resource>,
    pub(crate) synthetic: Option<Synthetic>,
    before: Before,
}

impl DependencyBuilder {
    pub(crate) fn new(engine: Engine, name: &str) -> Self {
        Self {
            engine,
            draft: DependencyDraft {
                name: name.to_owned(),
                ..DependencyDraft::default()
            },
            uses: Vec::new(),
            synthetic: None,
            before: Before::Nothing,
        }
    }

    /// Ends an attempt after this long, and counts it as a failure: 1 ms to 1 h. Its work is dropped then and there.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.draft.timeout = Some(timeout);
        self
    }

    /// Lets this many attempts be in flight at once, 1 to 1 000 000; more are refused without waiting.
    #[must_use]
    pub const fn concurrency(mut self, permits: u32) -> Self {
        self.draft.concurrency = Some(permits);
        self
    }

    /// Stops asking a dependency that fails, by these rules. Called again, it changes the rules it made before.
    #[must_use]
    pub fn breaker(mut self, rules: impl FnOnce(BreakerBuilder) -> BreakerBuilder) -> Self {
        let BreakerBuilder(rules) = rules(BreakerBuilder(self.draft.breaker.unwrap_or(BreakerRules::NONE)));
        self.draft.breaker = Some(rules);
        self
    }

    /// Draws on a resource that others draw on too: each attempt takes a permit of the dependency and one of each
    /// resource, or none of any.
    #[must_use]
    pub fn uses(mut self, resource: &Resource) -> Self {
        self.uses.push(resource.clone());
        self
    }

    /// Replaces a row of the classification table: what a result of this class does to the breaker, and whether
    /// the call may go on to a lower rung. Rows for answers, faults, local refusals and cancelled calls are fixed.
    #[must_use]
    pub fn row(mut self, class: Class, row: Row) -> Self {
        self.draft.rows.push((class, row));
        self
    }

    /// Tells whether anything but the name was declared.
    pub(crate) fn is_bare(&self) -> bool {
        let DependencyDraft {
            timeout,
            concurrency,
            breaker,
            ramp,
            learn,
            retry,
            queue,
            abandoned,
            rows,
            name: _,
        } = &self.draft;
        timeout.is_none()
            && concurrency.is_none()
            && breaker.is_none()
            && ramp.is_none()
            && learn.is_none()
            && retry.is_none()
            && queue.is_none()
            && abandoned.is_none()
            && rows.is_empty()
            && self.uses.is_empty()
            && self.synthetic.is_none()
            && self.before.is_nothing()
    }

    /// Checks the contract.
    ///
    /// # Errors
    /// Every problem found.
    pub fn build(self) -> Result<Dependency, Problems> {
        let checked = self.draft.check();
        let mut problems = checked.as_ref().err().cloned().unwrap_or_default();
        for (index, resource) in self.uses.iter().enumerate() {
            if self.uses.iter().take(index).any(|earlier| earlier.is(resource)) {
                problems.add(
                    &format!("uses[{index}]"),
                    &format!("`{}` once more", resource.name()),
                    "each resource once: an attempt takes one permit of each",
                    "remove one",
                );
            }
        }
        if let Ok(contract) = &checked
            && contract.queue().is_some()
            && contract.concurrency().is_none()
            && contract.learn().is_none()
            && self.uses.is_empty()
        {
            problems.add(
                "queue",
                "a queue for permits, and nothing that limits them",
                "a queue beside a concurrency, a learned limit or a resource",
                "declare one of them, or remove it",
            );
        }
        let contract = match checked {
            Ok(contract) => problems.or(contract)?,
            Err(_) => return Err(problems),
        };
        let (tally, hold) = self.before.words();
        let line = contract.queue().map(|rules| {
            let known = self.before.state().and_then(|before| before.0.line.clone());
            known.unwrap_or_else(|| Arc::new(Line::new(*rules, self.engine.clone(), &tally.waits)))
        });
        let shared: Vec<Arc<Lines>> = self.uses.iter().map(|one| Arc::clone(&one.lines)).collect();
        for lines in &shared {
            line.iter().for_each(|line| lines.add(line));
        }
        let resources = self.uses.into_iter().map(|resource| resource.bulkhead).collect();
        Ok(Dependency(Arc::new_cyclic(|this| Inner {
            name: contract.name().into(),
            seat: match self.before.state() {
                Some(before) => before.0.seat.successor(contract, resources),
                None => evenkeel_core::Dependency::new(contract, resources, self.engine.draw_seed()),
            },
            engine: self.engine,
            tally,
            line,
            shared,
            hold,
            synthetic: self.synthetic,
            newer: OnceLock::new(),
            this: Weak::clone(this),
        })))
    }
}

/// Something that can fail: its breaker, permits and counters. Clones share them.
#[derive(Clone, Debug)]
pub struct Dependency(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) name: Arc<str>,
    pub(crate) engine: Engine,
    /// Who is admitted.
    pub(crate) seat: evenkeel_core::Dependency<Locked<Steering>>,
    pub(crate) tally: Arc<Tally>,
    /// Those who wait for a permit; only where the contract has a queue.
    pub(crate) line: Option<Arc<Line>>,
    /// The queues on the resources that it draws on.
    shared: Vec<Arc<Lines>>,
    pub(crate) hold: Arc<HoldSlot>,
    /// What probes it although nobody asks.
    pub(crate) synthetic: Option<Synthetic>,
    /// Who is asked in its place from now on.
    newer: OnceLock<Dependency>,
    /// Itself, for the task that probes.
    pub(crate) this: Weak<Self>,
}

/// The engine's exclusive access, by a lock. A breaker that is not closed takes it, and one call in each round that
/// looks at the notes of ramp or learned limit.
#[derive(Debug)]
pub(crate) struct Locked<T>(Mutex<T>);

impl<T> Exclusive<T> for Locked<T> {
    fn guard(value: T) -> Self {
        Self(Mutex::new(value))
    }

    fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.0.lock())
    }
}

impl Inner {
    /// Admits one attempt, or refuses it and leaves nothing taken.
    // Inlined: the ticket is then made where it stays.
    #[inline(always)]
    pub(crate) fn admit(
        this: Lent<'_, Self>,
        criticality: Criticality,
        now: Now,
        asker: Asker,
        observe: bool,
    ) -> Result<Ticket<'_>, Refusal> {
        let this = Self::newest(this);
        let (pass, changes) = this.seat.admit_as(criticality, now.mono, asker, observe);
        for change in changes {
            this.changed(change);
        }
        pass.map(|pass| Ticket::new(Permit::new(this), pass, now))
    }

    /// Refuses what may not wait, while somebody does who matters as much: a retry, a refresh, another guard's stand-in. Each
    /// would otherwise take the permit that was freed for the one who waits.
    pub(crate) fn overtakes(&self, criticality: Criticality, observe: bool) -> Result<(), Refusal> {
        match &self.line {
            // While the breaker lets nobody in there is no turn to be taken: the one it lets in is a probe.
            Some(line) if line.is_ahead_of(criticality) && (observe || self.seat.lets_traffic_in()) => {
                Err(Refusal {
                    reason: Reason::AtCapacity,
                    retry_at: None,
                })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Admits a further attempt, or refuses it and takes nothing.
    pub(crate) fn admit_again(
        this: Lent<'_, Self>,
        criticality: Criticality,
        retry: Retry,
        now: Now,
        observe: bool,
    ) -> Result<Ticket<'_>, Refusal> {
        let (pass, changes) = this.seat.admit_again(criticality, retry, now.mono, observe);
        for change in changes {
            this.changed(change);
        }
        pass.map(|pass| Ticket::new(Permit::new(this), pass, now))
    }

    pub(crate) fn attempted(&self, class: Class) {
        self.tally.attempts.add(class.index());
    }

    /// Counts and tells a change of the breaker's state, and the steps of the ramp since the last time.
    pub(crate) fn changed(&self, transition: Option<Transition>) {
        if let Some(transition) = transition {
            self.tally.breaker.note(&transition);
            self.engine.tell(&self.name, EventKind::Breaker(transition));
            self.call_all();
            if transition.to == State::Open {
                self.watch();
            }
        }
        for event in self.seat.ramp_events() {
            self.tally.ramp_steps.add(event.step as usize);
            self.engine.tell(&self.name, EventKind::Ramp(event));
            // Another stage has room for others.
            self.call_all();
        }
    }

    /// A permit was given back: somebody may wait for it, here or at a dependency that draws on the same resource.
    pub(crate) fn freed(&self) {
        if let Some(line) = &self.line {
            line.freed();
        }
        for lines in &self.shared {
            lines.freed();
        }
    }

    /// Something has changed that those who wait should learn.
    pub(crate) fn call_all(&self) {
        if let Some(line) = &self.line {
            line.call_all();
        }
    }

    /// Returns when an attempt that starts at `now` ends by the dependency's own timeout.
    pub(crate) fn own_limit(&self, now: Mono) -> Limit {
        self.seat
            .contract()
            .timeout()
            .map_or(Limit::None, |timeout| Limit::Timeout(now.after(timeout)))
    }

    /// Returns when a probe that starts at `now` and has no caller ends: by the timeout, or where there is none
    /// with its lease, so that probes of a dependency that hangs do not pile up.
    pub(crate) fn probe_limit(&self, now: Mono) -> Limit {
        match (self.own_limit(now), self.seat.contract().breaker()) {
            (Limit::None, Some(rules)) => {
                Limit::Timeout(now.after(rules.lease.unwrap_or(BreakerRules::LEASE)))
            }
            (limit, _) => limit,
        }
    }
}

/// What a dependency looks like at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DependencyStatus {
    /// The state of its breaker; `None` without one.
    pub state: Option<State>,
    /// Since when the breaker is not closed; `None` while it is. Taken over from a predecessor, it is since then.
    pub open_since: Option<Mono>,
    /// When the next probe may start, while that is known and the breaker is not closed.
    pub next_probe: Option<Mono>,
    /// Permits in use; zero where neither a limit nor a ramp is declared.
    pub in_use: u32,
    /// The most permits; `None` where no limit is declared.
    pub limit: Option<u32>,
    /// Where the ramp stands; `None` when all traffic is let in, and while the breaker is not closed.
    pub ramp: Option<Stage>,
    /// The learned limit; `None` while there was no sign of overload.
    pub learned_limit: Option<u32>,
    /// The most attempts that ramp and learned limit let in together at the moment; `None` while they set no limit.
    pub admitted: Option<u32>,
    /// Attempts that ran into their limit and still count, because their work may go on.
    pub lingering: u32,
    /// Calls that wait for a permit.
    pub waiting: u32,
}

impl Dependency {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the checked contract.
    #[must_use]
    pub fn contract(&self) -> &DependencyContract {
        self.0.seat.contract()
    }

    /// Tells whether attempts can be refused for want of a permit: its own, a resource's, or one under a learned limit.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.0.seat.is_limited()
    }

    /// Looks at the breaker and the permits.
    #[must_use]
    pub fn status(&self) -> DependencyStatus {
        let seat = &self.0.seat;
        let is_open = seat.state().is_some_and(|state| state != State::Closed);
        DependencyStatus {
            state: seat.state(),
            open_since: self.0.tally.breaker.open_since().filter(|_| is_open),
            next_probe: seat.next_probe(),
            in_use: seat.in_flight().unwrap_or(0),
            limit: seat.bulkhead().map(Bulkhead::limit),
            ramp: seat.ramp(),
            learned_limit: seat.learned_limit(),
            admitted: seat.limit(),
            lingering: seat.lingering(self.0.engine.now().mono),
            waiting: self.0.line.as_ref().map_or(0, |line| line.waiting()),
        }
    }

    /// Returns how many attempts came to this class. Refusals by evenkeel itself are not attempts.
    #[must_use]
    pub fn attempts(&self, class: Class) -> u64 {
        self.0.tally.attempts.sum(class.index())
    }

    /// Returns how many attempts were made and have ended.
    #[must_use]
    pub fn attempts_total(&self) -> u64 {
        Class::ALL.into_iter().map(|class| self.attempts(class)).sum()
    }

    /// Returns how many further attempts were made after a failure, and how many the budget denied.
    #[must_use]
    pub fn retries(&self) -> RetryCounts {
        self.0.tally.retries.read()
    }

    /// Returns until when retries and refreshes leave it alone, because it said that it is busy.
    #[must_use]
    pub fn hushed_until(&self) -> Option<Mono> {
        self.0.seat.hushed_until(self.0.engine.now().mono)
    }

    /// Returns how often the breaker went over to this state.
    #[must_use]
    pub fn transitions(&self, to: State) -> u64 {
        State::ALL
            .into_iter()
            .flat_map(|from| Cause::ALL.map(|cause| self.0.tally.breaker.count(from, to, cause)))
            .sum()
    }

    /// Returns how often the breaker went over from this state to that one for this cause.
    #[must_use]
    pub fn transitions_by(&self, from: State, to: State, cause: Cause) -> u64 {
        self.0.tally.breaker.count(from, to, cause)
    }

    /// Returns how many retries its budget could pay for now, all at once; `None` where none are declared.
    #[must_use]
    pub fn retries_left(&self) -> Option<u64> {
        self.0.seat.retries_left(self.0.engine.now().mono)
    }

    /// Returns how many calls have waited in its queue, and for how long together; `None` where there is no queue.
    /// A call that still waits is not in it.
    #[must_use]
    pub fn waits(&self) -> Option<(u64, Duration)> {
        self.0.line.as_ref().map(|_| self.0.tally.waits.read())
    }

    /// Returns how often a recovery ramp made this step.
    #[must_use]
    pub fn ramp_steps(&self, step: RampStep) -> u64 {
        self.0.tally.ramp_steps.sum(step as usize)
    }

    /// Returns what a successor of the same name and addresses should know: that it is open, where its ramp stands, what
    /// it bears. For a contract that is loaded anew.
    #[must_use]
    pub fn export(&self) -> Carried {
        self.0.seat.export()
    }

    /// Takes over what a predecessor by the same clock knew, as far as this contract has a use for it. For a dependency
    /// that nobody has asked yet.
    ///
    /// ```
    /// # use evenkeel::{Engine, State};
    /// # fn contract(engine: &Engine) -> Result<evenkeel::Dependency, evenkeel::Problems> {
    /// #     engine.dependency("stock").breaker(|breaker| breaker.consecutive(5)).build()
    /// # }
    /// let engine = Engine::system();
    /// let (old, new) = (contract(&engine)?, contract(&engine)?);
    /// new.import(old.export());
    /// assert_eq!(new.status(), old.status());
    /// # Ok::<(), evenkeel::Problems>(())
    /// ```
    pub fn import(&self, carried: Carried) {
        let now = self.0.engine.now().mono;
        self.0.seat.import(carried, now);
        if self.0.seat.state().is_some_and(|state| state != State::Closed) {
            self.0.tally.breaker.opened(now);
        }
    }

    /// Closes the breaker by a person's word. Without a breaker, or when it is closed, only the word is noted.
    pub fn reset(&self, by: &str, why: &str) {
        let now = self.0.engine.now().mono;
        self.0.changed(self.0.seat.reset(now));
        self.0.engine.tell(
            &self.0.name,
            EventKind::Reset {
                by: by.to_owned(),
                why: why.to_owned(),
            },
        );
    }
}
