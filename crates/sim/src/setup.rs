//! Decides what a run is made of: nodes with their contracts, one source, those who ask, and what happens when.
//! It exists apart from the run so that one setup can be run with many seeds.
//! It refuses contracts that the engine would refuse.

use core::time::Duration;
use std::{cell::RefCell, rc::Rc};

use evenkeel_core::{
    BreakerRules, Dependency, DependencyDraft, Exclusive, LimitRules, OpenFor, Over, Problems, RampRules,
    Ratio, ReadContract, ReadDraft, RungRule, Steering,
};

use crate::source::{Mode, SourceModel};

/// Exclusive access where there is one thread.
#[derive(Debug)]
pub struct Owned<T>(RefCell<T>);

impl<T> Exclusive<T> for Owned<T> {
    fn guard(value: T) -> Self {
        Self(RefCell::new(value))
    }

    fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.0.borrow_mut())
    }
}

/// One node: the engine's own types, as a library or gateway would hold them.
#[derive(Debug)]
pub struct Node {
    pub(crate) read: ReadContract,
    pub(crate) seat: Rc<Dependency<Owned<Steering>>>,
}

impl Node {
    /// Makes a node of checked contracts. `seed` draws the jitter of its open periods.
    ///
    /// # Errors
    /// Every problem of both contracts.
    pub fn new(read: ReadDraft, dependency: DependencyDraft, seed: u64) -> Result<Self, Problems> {
        let dependency = dependency.check()?;
        Ok(Self {
            read: read.check()?,
            seat: Rc::new(Dependency::new(dependency, Vec::new(), seed)),
        })
    }

    /// Makes another route at the same dependency, with its permits and its breaker.
    ///
    /// # Errors
    /// Every problem of the contract.
    pub fn beside(&self, read: ReadDraft) -> Result<Self, Problems> {
        Ok(Self {
            read: read.check()?,
            seat: Rc::clone(&self.seat),
        })
    }

    /// Tells whether both ask one dependency.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.seat, &other.seat)
    }

    /// Returns the limit learned so far; `None` while there was no sign of overload.
    #[must_use]
    pub fn learned_limit(&self) -> Option<u32> {
        self.seat.learned_limit()
    }
}

/// The dependency as a gateway ships it, with no capacity written down: design §15.
#[must_use]
pub fn shipped_dependency() -> DependencyDraft {
    DependencyDraft {
        name: "source".into(),
        timeout: Some(Duration::from_secs(1)),
        breaker: Some(BreakerRules {
            consecutive: Some(5),
            ratio: Some(Ratio {
                failures_ppm: 500_000,
                window: Over::Time(Duration::from_secs(10)),
                min_calls: 20,
            }),
            open_for: OpenFor::Timed {
                first: BreakerRules::OPEN_FOR_FIRST,
                longest: BreakerRules::OPEN_FOR_LONGEST,
                jitter_ppm: BreakerRules::JITTER_PPM,
            },
            ..BreakerRules::NONE
        }),
        ramp: Some(RampRules::default()),
        learn: Some(LimitRules::DEFAULT),
        ..DependencyDraft::default()
    }
}

/// A route as a gateway ships it: nothing is kept, nothing is served but live answers.
#[must_use]
pub fn shipped_read() -> ReadDraft {
    ReadDraft {
        name: "route".into(),
        deadline: Some(Duration::from_secs(3)),
        ..ReadDraft::default()
    }
}

/// The same for answers that count as fresh for `lifetime` and may be served stale for an hour: one refresh at a time
/// for each key.
#[must_use]
pub fn cached_read(lifetime: Duration) -> ReadDraft {
    ReadDraft {
        fresh_for: Some(lifetime),
        ladder: vec![RungRule::Stale {
            max_age: Duration::from_secs(3600),
        }],
        coalesce: true,
        ..shipped_read()
    }
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// New requests: at a rate, or from a number of clients.
    pub arrivals: Arrivals,
    /// How many keys they ask for, evenly drawn; 1 where nothing is kept.
    pub keys: u32,
    /// How long a client waits before it leaves.
    pub patience: Option<Duration>,
    /// How often a client asks again after a refusal, a failure or leaving.
    pub retries: u32,
    /// How long it waits before that.
    pub pause: Duration,
}

/// How requests come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Independent of the answers: this many a second, evenly spaced.
    Even(u32),
    /// Independent of the answers and of each other: this many a second on average.
    Random(u32),
    /// So many clients, each of which waits for its answer and then this long.
    Closed(u32, Duration),
}

/// Something that happens to the source or the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The source does this from now on.
    Mode(Mode),
    /// The source has this capacity from now on.
    Capacity(u32),
    /// A request takes this long from now on.
    Latency(Duration),
    /// The source begins with this share of its capacity, in parts per million, and has all of it after a while.
    WarmUp(Duration, u32),
    /// Every node loses all its snapshots.
    LoseSnapshots,
    /// New requests come like this from now on.
    Arrivals(Arrivals),
}

/// Everything but the seed.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The source.
    pub source: SourceModel,
    /// Who asks; spread over the nodes in turn.
    pub workload: Workload,
    /// What happens, each after this long.
    pub script: Vec<(Duration, Change)>,
    /// When the run ends.
    pub ends: Duration,
    /// An answer that is older than this is not current.
    pub current: Duration,
}
