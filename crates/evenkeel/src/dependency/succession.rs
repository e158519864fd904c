//! Decides how a dependency goes on by another contract, and who is asked by those who still hold the old one.
//! It exists so that a contract can be loaded anew while calls are under way: none is lost, and none is counted twice.
//! It refuses to change anything before the new one takes over.

use std::sync::Arc;

use evenkeel_core::State;

use super::{Dependency, DependencyBuilder, Inner, history::History};
use crate::{
    counts::{AttemptCounters, Counters, RetryCounters},
    hold::HoldSlot,
    lent::Lent,
    line::Waits,
};

/// What was counted of a dependency, whatever contract it was asked by.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(super) attempts: AttemptCounters,
    pub(super) breaker: History,
    pub(super) ramp_steps: Counters<6>,
    pub(crate) retries: RetryCounters,
    pub(super) waits: Arc<Waits>,
}

impl Tally {
    fn new() -> Self {
        Self {
            attempts: Counters::new(),
            breaker: History::default(),
            ramp_steps: Counters::new(),
            retries: RetryCounters::default(),
            waits: Arc::default(),
        }
    }
}

/// What a dependency has of one before it.
#[derive(Debug)]
pub(super) enum Before {
    Nothing,
    /// Counters and hold: what belongs to the name.
    Name(Dependency),
    /// Those, and all state: what belongs to the source as well.
    State(Dependency),
}

impl Before {
    pub(super) const fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// Returns whose state is shared.
    pub(super) const fn state(&self) -> Option<&Dependency> {
        match self {
            Self::State(before) => Some(before),
            Self::Nothing | Self::Name(_) => None,
        }
    }

    /// Returns what belongs to the name.
    pub(super) fn words(&self) -> (Arc<Tally>, Arc<HoldSlot>) {
        match self {
            Self::Nothing => (Arc::new(Tally::new()), Arc::default()),
            Self::Name(before) | Self::State(before) => {
                (Arc::clone(&before.0.tally), Arc::clone(&before.0.hold))
            }
        }
    }
}

impl DependencyBuilder {
    /// Makes it the successor of one that asked the same source by another contract: both share breaker, permits, queue,
    /// ramp, learned limit, retry budget, abandoned work, counters and hold. What the other contract did not have begins
    /// anew. Nothing changes until it [takes over](Dependency::take_over).
    ///
    /// ```
    /// # use evenkeel::Engine;
    /// let engine = Engine::system();
    /// let old = engine.dependency("stock").concurrency(20).build()?;
    /// let new = engine.dependency("stock").concurrency(10).succeeds(&old).build()?;
    /// assert_eq!(old.status().limit, Some(20));
    /// new.take_over(&old);
    /// assert_eq!(old.status().limit, Some(10), "they are the same permits");
    /// # Ok::<(), evenkeel::Problems>(())
    /// ```
    #[must_use]
    pub fn succeeds(mut self, before: &Dependency) -> Self {
        self.before = Before::State(before.clone());
        self
    }

    /// Goes on with the counters and the hold of one that had the same name and asked another source; its state is not this
    /// one's.
    #[must_use]
    pub fn replaces(mut self, before: &Dependency) -> Self {
        self.before = Before::Name(before.clone());
        self
    }
}

impl Dependency {
    /// Is asked in the place of `before` from now on, by whoever still holds that: a call that waits for a permit, or pauses
    /// before another attempt, asks this one next. Attempts under way end as they began, and give their permits back to
    /// where they have them from.
    ///
    /// Where it [succeeds](DependencyBuilder::succeeds) it, its rules hold from now on for what both share. A dependency is
    /// taken over once; a second time changes nothing, and is `false`.
    pub fn take_over(&self, before: &Self) -> bool {
        if Arc::ptr_eq(&self.0, &before.0) || before.0.newer.set(self.clone()).is_err() {
            return false;
        }
        let seat = &self.0.seat;
        if self.0.shares_state_with(&before.0) {
            seat.take_over(self.0.engine.draw_seed(), self.0.engine.now().mono);
            if let (Some(line), Some(rules)) = (&self.0.line, seat.contract().queue()) {
                line.set_rules(*rules);
            }
        }
        before.0.call_all();
        self.0.call_all();
        if seat.state().is_some_and(|state| state != State::Closed) {
            self.0.watch();
        }
        true
    }

    /// Tells whether both are one and the same.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Inner {
    /// Returns who is asked now in the place of this one: itself, as long as nobody has taken over.
    pub(crate) fn newest(this: Lent<'_, Self>) -> Lent<'_, Self> {
        match this {
            Lent::Borrowed(mut newest) => {
                while let Some(newer) = newest.newer.get() {
                    newest = &newer.0;
                }
                Lent::Borrowed(newest)
            }
            Lent::Shared(mut newest) => {
                while let Some(newer) = newest.newer.get().map(|newer| Arc::clone(&newer.0)) {
                    newest = newer;
                }
                Lent::Shared(newest)
            }
        }
    }

    /// Tells whether nobody has taken over.
    pub(crate) fn is_newest(&self) -> bool {
        self.newer.get().is_none()
    }

    fn shares_state_with(&self, other: &Self) -> bool {
        self.seat.shares_state_with(&other.seat)
    }
}
