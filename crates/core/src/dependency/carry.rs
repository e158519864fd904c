//! Decides what of a dependency outlives its contract: that it is open, where its ramp stands, what it bears.
//! It exists because a contract that is loaded anew in the middle of an outage would let everybody in at once.
//! It refuses what only means something to its own rules: counts of calls, leases, and permits in use.

use crate::{
    breaker::State,
    dependency::{Dependency, Exclusive},
    steering::Steering,
    time::Mono,
};

/// What a dependency has learned, as plain data. Hand it to the dependency of the same name and the same addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// The breaker, while it is not closed. A probe in flight is not carried: it has failed when its lease ends.
    pub open: Option<CarriedOpening>,
    /// Openings in a row without a proven recovery between them.
    pub openings: u32,
    /// The ramp, while there is one.
    pub ramp: Option<CarriedRamp>,
    /// What is usual and what is borne, where that is learned.
    pub load: Option<CarriedLoad>,
}

/// A breaker that is not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarriedOpening {
    /// When the next probe may start; `None` if only a person can say.
    pub next_probe: Option<Mono>,
    /// When the state was last changed.
    pub since: Mono,
}

/// A ramp on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarriedRamp {
    /// The share of the stage, in parts per million.
    pub share_ppm: u32,
    /// When the stage began.
    pub began: Mono,
}

/// What is usual and what is borne.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarriedLoad {
    /// The mean latency when little is in flight, in microseconds; `None` until it is known.
    pub baseline: Option<u64>,
    /// What nineteen of twenty answers stay below, in microseconds; zero until it is known.
    pub usual: u64,
    /// The most in flight that was borne lately, in 1024ths.
    pub borne: u64,
    /// The limit learned; `None` while there was no sign of overload.
    pub limit: Option<u32>,
}

impl<L: Exclusive<Steering>> Dependency<L> {
    /// Returns what a successor of the same name and addresses should know.
    pub fn export(&self) -> Carried {
        let open = self
            .gate
            .as_ref()
            .is_some_and(|gate| gate.state() != State::Closed);
        let next_probe = self.next_probe();
        self.steering.with(|steering| steering.export(open, next_probe))
    }

    /// Takes over what a predecessor knew, as far as this contract has a use for it. For a dependency that nobody has
    /// asked yet.
    ///
    /// What was open is open, until the next probe that was due; a ramp goes on with the largest stage of its own that
    /// is no larger than the one before.
    pub fn import(&self, carried: Carried, now: Mono) {
        self.steering.with(|steering| steering.import(carried, now));
    }
}
