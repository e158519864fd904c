//! Decides how much a call matters beside others, and how many permits are kept free for those that matter more.
//! It exists because somebody has to go without when there is too little, and it should be the one who minds least.
//! It refuses to keep anything for callers who do not come: what they leave unused is everybody's.

use core::fmt;

use crate::{
    sync::{AtomicU32, AtomicU64, Ordering},
    time::Mono,
};

/// How much a call matters. Lower ones are shed first, and get a lower rung before higher ones do.
///
/// ```
/// # use evenkeel_core as evenkeel;
/// use evenkeel::Criticality;
/// assert!(Criticality::CriticalPlus > Criticality::Critical);
/// assert_eq!(Criticality::default(), Criticality::Critical);
/// assert_eq!(Criticality::of_word("sheddable_plus"), Some(Criticality::SheddablePlus));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Criticality {
    /// Nobody notices for a while: prefetches, batches.
    Sheddable,
    /// It can come later: what is asked for again by itself.
    SheddablePlus,
    /// A person waits for it. What says nothing counts as this.
    #[default]
    Critical,
    /// Without it nothing else is of use: a login, a checkout.
    CriticalPlus,
}

impl Criticality {
    /// Every one, the lowest first.
    pub const ALL: [Self; 4] = [
        Self::Sheddable,
        Self::SheddablePlus,
        Self::Critical,
        Self::CriticalPlus,
    ];

    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sheddable => "sheddable",
            Self::SheddablePlus => "sheddable_plus",
            Self::Critical => "critical",
            Self::CriticalPlus => "critical_plus",
        }
    }

    /// Returns the one with this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == word)
    }

    /// Returns its place in [`Criticality::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Sheddable => 0,
            Self::SheddablePlus => 1,
            Self::Critical => 2,
            Self::CriticalPlus => 3,
        }
    }
}

impl fmt::Display for Criticality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What higher calls needed lately is known for this long, and for as long again.
const PERIOD_NANOS: i64 = 5_000_000_000;
const DEPTH_BITS: u32 = 15;
const DEPTH_MAX: u32 = (1 << DEPTH_BITS) - 1;

/// How many permits are kept free of lower calls, by how deep higher ones have reached into them lately.
///
/// As long as all calls matter equally it costs one load. Each border between two neighbours has a word: the number of
/// a period, and how deep calls from above the border reached into what those below may not use, in that period and
/// in the one before, and one; zero for a period in which none came.
#[derive(Debug)]
pub(crate) struct Priorities {
    /// A bit for each that has come.
    seen: AtomicU32,
    borders: [AtomicU64; BORDERS],
}

const BORDERS: usize = Criticality::ALL.len() - 1;

impl Priorities {
    pub(crate) fn new() -> Self {
        Self {
            seen: AtomicU32::new(0),
            borders: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Notes that such a call has come, and tells whether calls of several kinds do.
    pub(crate) fn several(&self, criticality: Criticality) -> bool {
        let own = 1 << criticality.index();
        let mut seen = self.seen.load(Ordering::Relaxed);
        if seen & own == 0 {
            seen = self.seen.fetch_or(own, Ordering::Relaxed) | own;
        }
        seen != own
    }

    /// Returns how many of `limit` permits such calls may use.
    pub(crate) fn room(&self, criticality: Criticality, limit: u32, now: Mono) -> u32 {
        let kept = self.borders.iter().skip(criticality.index());
        let kept = kept.map(|border| kept_by(border, now)).max().unwrap_or(0);
        limit.saturating_sub(kept).max(least(limit))
    }

    /// Notes that such a call was let in as the one with this number in flight. Where calls `can_wait` that alone is no
    /// reason to keep more: whoever is higher is next in the queue anyway.
    pub(crate) fn let_in(
        &self,
        criticality: Criticality,
        in_flight: u32,
        limit: u32,
        can_wait: bool,
        now: Mono,
    ) {
        for (below, border) in Criticality::ALL.into_iter().zip(&self.borders) {
            if below < criticality {
                let needed = in_flight.saturating_sub(self.room(below, limit, now)) + 1;
                let needed = if can_wait {
                    needed.min(kept_by(border, now))
                } else {
                    needed
                };
                if needed > 0 {
                    reach(border, needed, now);
                }
            }
        }
    }

    /// Notes that there was no permit for such a call, at once or in time: one more is needed. More than one at a time would count those who
    /// come while what was asked for is still being given back.
    pub(crate) fn refused(&self, criticality: Criticality, now: Mono) {
        for (below, border) in Criticality::ALL.into_iter().zip(&self.borders) {
            if below < criticality {
                reach(border, kept_by(border, now) + 1, now);
            }
        }
    }
}

/// An eighth of the permits, and one at least, are left to the lowest: nobody is kept out for good.
const fn least(limit: u32) -> u32 {
    let eighth = limit / 8;
    if eighth == 0 && limit > 0 { 1 } else { eighth }
}

/// Returns how many permits a border keeps: what was needed lately, and one; none if nobody came.
fn kept_by(border: &AtomicU64, now: Mono) -> u32 {
    let word = border.load(Ordering::Relaxed);
    let (this, last) = depths(word, period(now));
    this.max(last)
}

/// Raises the depth of the period.
fn reach(border: &AtomicU64, depth: u32, now: Mono) {
    let (period, depth) = (period(now), depth.min(DEPTH_MAX));
    let mut seen = border.load(Ordering::Relaxed);
    loop {
        let (this, last) = depths(seen, period);
        if this >= depth && seen >> (2 * DEPTH_BITS) == period {
            return;
        }
        let word =
            (period << (2 * DEPTH_BITS)) | (u64::from(this.max(depth)) << DEPTH_BITS) | u64::from(last);
        match border.compare_exchange_weak(seen, word, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return,
            Err(other) => seen = other,
        }
    }
}

/// Returns the depths of `period` and of the one before. A word of a later period, by a clock read later, counts as now.
fn depths(word: u64, period: u64) -> (u32, u32) {
    let part = |word: u64| u32::try_from(word & u64::from(DEPTH_MAX)).unwrap_or(DEPTH_MAX);
    let (this, last) = (part(word >> DEPTH_BITS), part(word));
    match period.saturating_sub(word >> (2 * DEPTH_BITS)) {
        0 => (this, last),
        1 => (0, this),
        _ => (0, 0),
    }
}

fn period(now: Mono) -> u64 {
    // Periods start at two, so that a word of zeros is long gone.
    (now.as_nanos().max(0) / PERIOD_NANOS).unsigned_abs() + 2
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::time::Duration;

    const LIMIT: u32 = 40;

    fn at(seconds: u64) -> Mono {
        Mono::ORIGIN.after(Duration::from_secs(seconds))
    }

    fn room(priorities: &Priorities, now: Mono) -> [u32; 4] {
        Criticality::ALL.map(|one| priorities.room(one, LIMIT, now))
    }

    #[test]
    fn where_all_matter_equally_nothing_is_kept_free() {
        let priorities = Priorities::new();
        for _ in 0..3 {
            assert!(!priorities.several(Criticality::Critical));
        }
        assert!(priorities.several(Criticality::Sheddable));
        assert_eq!(room(&priorities, at(0)), [LIMIT; 4]);
    }

    #[test]
    fn r12_what_higher_calls_reached_for_is_kept_free_of_all_below_them() {
        let priorities = Priorities::new();
        priorities.let_in(Criticality::Critical, LIMIT, LIMIT, false, at(0));
        assert_eq!(
            room(&priorities, at(0)),
            [39, 39, 40, 40],
            "one who came keeps one"
        );
        priorities.refused(Criticality::Critical, at(0));
        priorities.refused(Criticality::Critical, at(0));
        priorities.refused(Criticality::Critical, at(0));
        assert_eq!(
            room(&priorities, at(0)),
            [36, 36, 40, 40],
            "and one more for each in vain"
        );
        priorities.refused(Criticality::CriticalPlus, at(0));
        assert_eq!(room(&priorities, at(0))[2..], [39, 40]);
    }

    #[test]
    fn what_is_kept_follows_what_is_needed_and_ends_when_nobody_comes() {
        let priorities = Priorities::new();
        for _ in 0..80 {
            priorities.refused(Criticality::Critical, at(0));
        }
        assert_eq!(
            room(&priorities, at(4))[0],
            least(LIMIT),
            "an eighth is left to the lowest"
        );
        // Five above what the lowest may use is what they need from now on.
        for second in [6, 11, 16] {
            let in_flight = priorities.room(Criticality::Sheddable, LIMIT, at(second)) + 5;
            priorities.let_in(Criticality::Critical, in_flight, LIMIT, false, at(second));
        }
        assert_eq!(room(&priorities, at(17)), [34, 34, 40, 40]);
        assert_eq!(room(&priorities, at(30)), [LIMIT; 4]);
    }

    #[test]
    fn where_calls_can_wait_only_waiting_in_vain_keeps_more() {
        let priorities = Priorities::new();
        for _ in 0..9 {
            priorities.let_in(Criticality::Critical, LIMIT, LIMIT, true, at(0));
        }
        assert_eq!(room(&priorities, at(0)), [LIMIT; 4]);
        priorities.refused(Criticality::Critical, at(0));
        priorities.refused(Criticality::Critical, at(0));
        for second in [1, 6, 11, 16] {
            priorities.let_in(Criticality::Critical, LIMIT, LIMIT, true, at(second));
            assert_eq!(room(&priorities, at(second))[0], LIMIT - 2, "what is used stays");
        }
    }

    #[test]
    fn no_limit_is_so_small_that_the_lowest_get_nothing_for_good() {
        let priorities = Priorities::new();
        for _ in 0..50 {
            priorities.refused(Criticality::CriticalPlus, at(0));
            priorities.refused(Criticality::CriticalPlus, at(0));
        }
        let rooms = [0, 1, 2, 8, 80].map(|limit| priorities.room(Criticality::Sheddable, limit, at(0)));
        assert_eq!(rooms, [0, 1, 1, 1, 10]);
    }

    #[test]
    fn every_word_is_its_own_and_can_be_read_back() {
        for (index, one) in Criticality::ALL.into_iter().enumerate() {
            assert_eq!(
                (one.index(), Criticality::of_word(one.as_str())),
                (index, Some(one))
            );
        }
        assert_eq!(Criticality::of_word("Critical"), None);
        assert!(Criticality::ALL.is_sorted());
    }
}
