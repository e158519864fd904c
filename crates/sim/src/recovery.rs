//! Decides the recovery row: a source that hangs for ten seconds and must be brought back without a number written down.
//! It exists as one place that tests, the table and the decision page share.
//! It refuses to configure anything: every contract is the one that ships.

use core::time::Duration;

use evenkeel_core::{DependencyDraft, Mono, Problems, Rng, State};

use crate::{
    setup::{Arrivals, Change, Node, Setup, Workload, cached_read, shipped_dependency, shipped_read},
    source::{Mode, Slowdown, SourceModel},
    tally::{Seen, Tally},
    world::run,
};

/// When the source begins to hang.
pub const HANGS: Duration = Duration::from_secs(10);
/// When it is back.
pub const RETURNS: Duration = Duration::from_secs(20);
/// When the run ends.
pub const ENDS: Duration = Duration::from_secs(32);
/// The span over which shares are taken.
pub const WINDOW: Duration = Duration::from_secs(1);

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 1000 keys (for a capacity of 20) that live for 4 s, asked for at twice the capacity.
    Cached,
    /// Nothing is kept; 60 % of the capacity (that which is left), from clients that leave after 1 s and ask up to three times more.
    Uncached,
}

/// What else goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// The source comes back with half its capacity, for good.
    HalfLost,
    /// It comes back with a quarter, and has all of it two seconds later.
    SlowWarmUp,
    /// What hung goes on when it is back.
    KeepsHung,
}

/// One case of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// What is asked for.
    pub kind: Kind,
    /// How many the source works on at once, 20 ms each.
    pub capacity: u32,
    /// How it reacts to more.
    pub slowdown: Slowdown,
    /// Whether clients of the uncached kind ask again.
    pub retrying: bool,
    /// What else goes wrong.
    pub trouble: Trouble,
    /// Whether requests come evenly spaced instead of at random.
    pub even: bool,
}

/// What came of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Current answers before the outage, in thousandths.
    pub before: u64,
    /// Answers of any age in the outage, in thousandths.
    pub served: u64,
    /// How long after the return at least 95 % are current, for good.
    pub back: Option<Duration>,
    /// How long after the return the breaker closed for the last time.
    pub closed: Option<Duration>,
    /// The most in flight at the source from its return on.
    pub peak: u32,
    /// Current answers from the sixth to the ninth second, in thousandths.
    pub late: u64,
}

impl Case {
    /// Lays out the run. Rates and keys follow the capacity: 2000 requests a second and 1000 keys, or 600 requests, for 20.
    #[must_use]
    pub fn setup(&self) -> Setup {
        let per_20 = |rate: u32| (rate * self.capacity).div_ceil(20);
        let (rate, keys) = match self.kind {
            Kind::Cached => (per_20(2000), per_20(1000)),
            // Half of what is left would be too little for all of them, whoever lets them in.
            Kind::Uncached if self.trouble == Trouble::HalfLost => (per_20(300), 1),
            Kind::Uncached => (per_20(600), 1),
        };
        let asks_again = self.kind == Kind::Uncached && self.retrying;
        let mut script = vec![
            (HANGS, Change::Mode(Mode::Hang)),
            (RETURNS, Change::Mode(Mode::Up)),
        ];
        match self.trouble {
            Trouble::None | Trouble::KeepsHung => {}
            Trouble::HalfLost => script.push((RETURNS, Change::Capacity(self.capacity.div_ceil(2)))),
            Trouble::SlowWarmUp => script.push((RETURNS, Change::WarmUp(Duration::from_secs(2), 250_000))),
        }
        Setup {
            source: SourceModel {
                capacity: self.capacity,
                latency: Duration::from_millis(20),
                slowdown: self.slowdown,
                finishes_abandoned: true,
                keeps_hung: self.trouble == Trouble::KeepsHung,
            },
            workload: Workload {
                arrivals: if self.even {
                    Arrivals::Even(rate)
                } else {
                    Arrivals::Random(rate)
                },
                keys,
                patience: (self.kind == Kind::Uncached).then_some(Duration::from_secs(1)),
                retries: if asks_again { 3 } else { 0 },
                pause: Duration::from_millis(50),
            },
            script,
            ends: ENDS,
            current: Duration::from_secs(6),
        }
    }

    /// Runs the case with what ships.
    ///
    /// # Errors
    /// None as long as what ships is valid.
    pub fn run(&self, seed: u64) -> Result<Tally, Problems> {
        self.run_as(shipped_dependency(), seed)
    }

    /// Runs the case with another contract.
    ///
    /// # Errors
    /// Every problem of the contract.
    pub fn run_as(&self, dependency: DependencyDraft, seed: u64) -> Result<Tally, Problems> {
        let read = match self.kind {
            Kind::Cached => cached_read(Duration::from_secs(4)),
            Kind::Uncached => shipped_read(),
        };
        let mut seeds = Rng::new(seed);
        let node = Node::new(read, dependency, seeds.next_u64())?;
        Ok(run(&self.setup(), &[node], seeds.next_u64()))
    }
}

impl Figures {
    /// Takes the figures of a run.
    #[must_use]
    pub fn of(tally: &Tally) -> Self {
        let second = Duration::from_secs(1);
        let closed = tally.changes.iter().rev().find_map(|(at, _, seen)| match seen {
            Seen::Breaker(change) if change.to == State::Closed => {
                at.since(Mono::ORIGIN).checked_sub(RETURNS)
            }
            Seen::Breaker(_) | Seen::Ramp(_) => None,
        });
        Self {
            before: tally.sum(second * 5, HANGS).current_permille(),
            served: tally.sum(HANGS, RETURNS).answered_permille(),
            back: tally.back_after(RETURNS, ENDS, WINDOW, 950),
            closed,
            peak: tally.sum(RETURNS, ENDS).peak,
            late: tally
                .sum(RETURNS + second * 5, RETURNS + second * 9)
                .current_permille(),
        }
    }
}
