//! Decides how endings and attempts are counted: every call exactly once, by ending and reason.
//! It exists so that an answer made of old data stands in the metrics as what it is.
//! It refuses labels that come from requests: every series is known before the first call.

use std::{
    cell::Cell,
    fmt,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};

use evenkeel_core::{Class, Ending, Lane, Reason, Rung, Skipped};

/// Returns the lane of the calling thread.
pub(crate) fn lane() -> Lane {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! { static LANE: Cell<Option<Lane>> = const { Cell::new(None) }; }
    LANE.with(|lane| {
        lane.get().unwrap_or_else(|| {
            let own = Lane::new(NEXT.fetch_add(1, Ordering::Relaxed));
            lane.set(Some(own));
            own
        })
    })
}

/// `N` counters, in a lane per thread so that counting on the healthy path meets nobody.
#[derive(Debug)]
pub(crate) struct Counters<const N: usize>([Padded<N>; Lane::COUNT]);

/// On cache lines of its own.
#[repr(align(128))]
#[derive(Debug)]
struct Padded<const N: usize>([AtomicU64; N]);

impl<const N: usize> Counters<N> {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| {
            Padded(std::array::from_fn(|_| AtomicU64::new(0)))
        }))
    }

    pub(crate) fn add(&self, index: usize) {
        self.0[lane().index()].0[index].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn sum(&self, index: usize) -> u64 {
        self.0
            .iter()
            .map(|lane| lane.0[index].load(Ordering::Relaxed))
            .sum()
    }
}

/// Endings by reasons, and "no reason".
const REASONS: usize = Reason::ALL.len() + 1;
const ENDINGS: usize = Ending::ALL.len() * REASONS;
const SKIPS: usize = Rung::ALL.len() * Skipped::ALL.len();

/// Why a success was not kept as the last good answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotKept {
    /// `keep_if` found it not worth keeping; the old snapshot stays.
    NotWorthKeeping,
    /// It must not be kept; the old snapshot is gone too.
    MustNotBeKept,
    /// It is larger than the store takes; the old snapshot is gone too.
    TooBig,
    /// Something observed later is already kept.
    Superseded,
    /// A refusal by the dependency: not data.
    NotAnAnswer,
}

impl NotKept {
    /// Every word.
    pub const ALL: [Self; 5] = [
        Self::NotWorthKeeping,
        Self::MustNotBeKept,
        Self::TooBig,
        Self::Superseded,
        Self::NotAnAnswer,
    ];

    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotWorthKeeping => "not-worth-keeping",
            Self::MustNotBeKept => "must-not-be-kept",
            Self::TooBig => "too-big",
            Self::Superseded => "superseded",
            Self::NotAnAnswer => "not-an-answer",
        }
    }
}

/// What a refresh came to that nobody waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refreshed {
    /// Its answer is the snapshot now.
    Kept,
    /// Its answer is not; [`NotKept`] has why.
    NotKept,
    /// It brought no answer. The copy stays as it is, and so does its age.
    Failed,
    /// It was not begun: breaker, ramp or permits refused it.
    Refused,
}

impl Refreshed {
    /// Every word.
    pub const ALL: [Self; 4] = [Self::Kept, Self::NotKept, Self::Failed, Self::Refused];

    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::NotKept => "not-kept",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }
}

/// What trying a stand-in beside a live answer came to; see [`exercise`](crate::ReadBuilder::exercise).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exercised {
    /// What it brought agrees with the live answer.
    Agreed,
    /// It does not.
    Differed,
    /// It brought nothing.
    Failed,
    /// It was not tried: the alternate's own permits, breaker or hold kept it away.
    Refused,
}

impl Exercised {
    /// Every word.
    pub const ALL: [Self; 4] = [Self::Agreed, Self::Differed, Self::Failed, Self::Refused];

    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agreed => "agreed",
            Self::Differed => "differed",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }
}

const EXERCISES: usize = Rung::ALL.len() * Exercised::ALL.len();

fn exercise_cell(rung: Rung, end: Exercised) -> usize {
    Ending::Answered(rung).index() * Exercised::ALL.len() + end as usize
}

/// The counters of one guard.
#[derive(Debug)]
pub(crate) struct GuardCounters {
    endings: Counters<ENDINGS>,
    skipped: Counters<SKIPS>,
    not_kept: Counters<{ NotKept::ALL.len() }>,
    refreshed: Counters<{ Refreshed::ALL.len() }>,
    exercised: Counters<EXERCISES>,
    joined: AtomicU64,
}

impl GuardCounters {
    pub(crate) fn new() -> Self {
        Self {
            endings: Counters::new(),
            skipped: Counters::new(),
            not_kept: Counters::new(),
            refreshed: Counters::new(),
            exercised: Counters::new(),
            joined: AtomicU64::new(0),
        }
    }

    pub(crate) fn ended(&self, ending: Ending, reason: Option<Reason>) {
        self.endings.add(cell(ending, reason));
    }

    pub(crate) fn skipped(&self, rung: Rung, why: Skipped) {
        self.skipped.add(skip_cell(rung, why));
    }

    pub(crate) fn not_kept(&self, why: NotKept) {
        self.not_kept.add(why as usize);
    }

    pub(crate) fn exercised(&self, rung: Rung, end: Exercised) {
        self.exercised.add(exercise_cell(rung, end));
    }

    pub(crate) fn refreshed(&self, end: Refreshed) {
        self.refreshed.add(end as usize);
    }

    pub(crate) fn joined(&self) {
        self.joined.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Counts {
        Counts {
            endings: std::array::from_fn(|index| self.endings.sum(index)),
            skipped: std::array::from_fn(|index| self.skipped.sum(index)),
            not_kept: std::array::from_fn(|index| self.not_kept.sum(index)),
            refreshed: std::array::from_fn(|index| self.refreshed.sum(index)),
            exercised: std::array::from_fn(|index| self.exercised.sum(index)),
            joined: self.joined.load(Ordering::Relaxed),
        }
    }
}

fn cell(ending: Ending, reason: Option<Reason>) -> usize {
    ending.index() * REASONS + reason.map_or(Reason::ALL.len(), Reason::index)
}

fn skip_cell(rung: Rung, why: Skipped) -> usize {
    Ending::Answered(rung).index() * Skipped::ALL.len() + why.index()
}

/// What the calls of one guard came to, since it was built.
///
/// ```
/// # use evenkeel::{Engine, Class, Ending, Rung};
/// # let guard = Engine::system().read::<u32>("g").classify(|_: &()| Class::OUTAGE).build().unwrap();
/// let counts = guard.counts();
/// assert_eq!(counts.total(Ending::Answered(Rung::Stale)), 0); // alert when this grows
/// ```
///
/// Its `Debug` form names what was counted at least once.
#[derive(Clone)]
pub struct Counts {
    endings: [u64; ENDINGS],
    skipped: [u64; SKIPS],
    not_kept: [u64; NotKept::ALL.len()],
    refreshed: [u64; Refreshed::ALL.len()],
    exercised: [u64; EXERCISES],
    joined: u64,
}

impl Counts {
    /// Returns how many calls ended this way for this reason.
    #[must_use]
    pub const fn get(&self, ending: Ending, reason: Option<Reason>) -> u64 {
        let reason = match reason {
            Some(reason) => reason.index(),
            None => Reason::ALL.len(),
        };
        self.endings[ending.index() * REASONS + reason]
    }

    /// Returns how many calls ended this way, whatever the reason.
    #[must_use]
    pub fn total(&self, ending: Ending) -> u64 {
        let first = ending.index() * REASONS;
        self.endings.iter().skip(first).take(REASONS).sum()
    }

    /// Returns how many calls have ended.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.endings.iter().sum()
    }

    /// Returns how many calls passed over this rung for this reason.
    #[must_use]
    pub fn skipped(&self, rung: Rung, why: Skipped) -> u64 {
        self.skipped[skip_cell(rung, why)]
    }

    /// Returns how many successes were not kept, for this reason.
    #[must_use]
    pub const fn not_kept(&self, why: NotKept) -> u64 {
        self.not_kept[why as usize]
    }

    /// Returns how often this rung was tried beside a live answer and it came to this.
    #[must_use]
    pub fn exercises(&self, rung: Rung, end: Exercised) -> u64 {
        self.exercised[exercise_cell(rung, end)]
    }

    /// Returns how many refreshes came to this.
    #[must_use]
    pub const fn refreshes(&self, end: Refreshed) -> u64 {
        self.refreshed[end as usize]
    }

    /// Returns how many calls joined an attempt that was already under way.
    #[must_use]
    pub const fn joined(&self) -> u64 {
        self.joined
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        let mut say = |what: fmt::Arguments<'_>, count: u64| {
            if count > 0 {
                map.entry(&what, &count);
            }
        };
        for ending in Ending::ALL {
            let rung = ending.rung().map_or("none", Rung::as_str);
            for reason in Reason::ALL.into_iter().map(Some).chain([None]) {
                let why = reason.map_or("none", Reason::as_str);
                say(
                    format_args!("{} {rung} {why}", ending.as_str()),
                    self.get(ending, reason),
                );
            }
        }
        for rung in Rung::ALL {
            for why in Skipped::ALL {
                let what = format_args!("skipped {} {}", rung.as_str(), why.as_str());
                say(what, self.skipped(rung, why));
            }
            for end in Exercised::ALL {
                let what = format_args!("exercised {} {}", rung.as_str(), end.as_str());
                say(what, self.exercises(rung, end));
            }
        }
        for why in NotKept::ALL {
            say(format_args!("not kept {}", why.as_str()), self.not_kept(why));
        }
        for end in Refreshed::ALL {
            say(format_args!("refreshed {}", end.as_str()), self.refreshes(end));
        }
        say(format_args!("joined"), self.joined);
        map.finish()
    }
}

/// How often a dependency was asked once more.
#[derive(Debug, Default)]
pub(crate) struct RetryCounters {
    made: AtomicU64,
    denied: AtomicU64,
}

impl RetryCounters {
    pub(crate) fn made(&self) {
        self.made.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn denied(&self) {
        self.denied.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> RetryCounts {
        RetryCounts {
            made: self.made.load(Ordering::Relaxed),
            denied: self.denied.load(Ordering::Relaxed),
        }
    }
}

/// How often a dependency was asked once more after a failure, since it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryCounts {
    /// Further attempts that were made. They are counted with all attempts too.
    pub made: u64,
    /// Further attempts that were not made because the budget was used up.
    pub denied: u64,
}

/// The results of one dependency's attempts, by class.
pub(crate) type AttemptCounters = Counters<{ Class::ALL.len() }>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_has_a_cell_of_its_own() {
        let counters = GuardCounters::new();
        for (times, ending) in Ending::ALL.into_iter().enumerate() {
            for _ in 0..times {
                counters.ended(ending, Some(Reason::Held));
            }
            counters.ended(ending, None);
        }
        let counts = counters.read();
        for (times, ending) in Ending::ALL.into_iter().enumerate() {
            assert_eq!(counts.get(ending, Some(Reason::Held)), times as u64);
            assert_eq!(counts.get(ending, None), 1);
            assert_eq!(counts.get(ending, Some(Reason::Fault)), 0);
            assert_eq!(counts.total(ending), times as u64 + 1);
        }
        assert_eq!(counts.calls(), 36 + 9);
    }

    #[test]
    fn the_debug_form_names_what_was_counted_and_nothing_else() {
        let counters = GuardCounters::new();
        assert_eq!(format!("{:?}", counters.read()), "{}");
        counters.ended(Ending::Answered(Rung::Stale), Some(Reason::BreakerOpen));
        counters.ended(Ending::Refused, None);
        assert_eq!(
            format!("{:?}", counters.read()),
            "{answered stale breaker-open: 1, refused none none: 1}",
        );
    }

    #[test]
    fn counts_of_many_threads_add_up() {
        let counters = Counters::<1>::new();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| (0..100).for_each(|_| counters.add(0)));
            }
        });
        assert_eq!(counters.sum(0), 2000);
    }
}
