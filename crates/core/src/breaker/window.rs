//! Decides how many calls and failures a sliding time window holds.
//! It exists because many threads count at once on the healthy path, where there may be no lock: each counts in
//! a lane of its own, and only a failure adds the lanes up.
//! It refuses to be exact about the window's far edge: calls leave it in tenths.

use core::time::Duration;

use alloc::{boxed::Box, vec::Vec};

use crate::{
    lane::Lane,
    sync::{AtomicU64, Ordering},
    time::Mono,
};

/// Parts in which a window is held. Loom, which tries every interleaving, gets by with two.
const PARTS: usize = if cfg!(loom) { 2 } else { 10 };

/// A count and what it is a count of, in one word: the breaker's generation (8 bits), the number of the part
/// (28), the count (28). Changing in one step, a cell can never mix two parts, nor two closed periods.
#[derive(Debug)]
struct Cell(AtomicU64);

const COUNT_BITS: u32 = 28;
const PART_BITS: u32 = 28;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const PART_MASK: u64 = (1 << PART_BITS) - 1;
const GENERATION_SHIFT: u32 = PART_BITS + COUNT_BITS;

/// What a cell counts: a cell's word without its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tag(u64);

impl Tag {
    const fn new(generation: u64, part: u64) -> Self {
        Self((generation << GENERATION_SHIFT) | ((part & PART_MASK) << COUNT_BITS))
    }

    const fn of(word: u64) -> Self {
        Self(word & !COUNT_MASK)
    }

    /// How many generations, then how many parts, `self` is ahead of `other`. Both wrap around, the parts
    /// after a month at the soonest; the further half of the circle counts as behind.
    const fn ahead_of(self, other: Self) -> (u64, u64) {
        let generations = (self.0 >> GENERATION_SHIFT).wrapping_sub(other.0 >> GENERATION_SHIFT);
        let parts = (self.0 >> COUNT_BITS).wrapping_sub(other.0 >> COUNT_BITS);
        (generations & (u64::MAX >> GENERATION_SHIFT), parts & PART_MASK)
    }

    const fn is_later_than(self, other: Self) -> bool {
        match self.ahead_of(other) {
            (0, parts) => parts != 0 && parts <= PART_MASK / 2,
            (generations, _) => generations <= u64::MAX >> GENERATION_SHIFT >> 1,
        }
    }

    /// Tells whether a caller whose clock shows `newest` has `self` in its window. A part that another thread
    /// has begun since this caller looked at the clock counts too.
    const fn is_in_window_of(self, newest: Self) -> bool {
        let (generations, behind) = newest.ahead_of(self);
        let ahead = behind.wrapping_neg() & PART_MASK;
        generations == 0 && (behind < PARTS as u64 || ahead < PARTS as u64)
    }
}

impl Cell {
    fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    fn add(&self, tag: Tag) {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let count = seen & COUNT_MASK;
            let next = if Tag::of(seen) == tag {
                if count == COUNT_MASK {
                    return; // full; one more would spill into the part's number
                }
                seen + 1
            } else if count == 0 || tag.is_later_than(Tag::of(seen)) {
                tag.0 | 1
            } else {
                return; // a straggler from a part, or a closed period, that this cell has left
            };
            // Releases the call counted before a failure, see `Window::total`.
            match self
                .0
                .compare_exchange_weak(seen, next, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    fn count(&self, newest: Tag) -> u64 {
        let seen = self.0.load(Ordering::Acquire);
        if Tag::of(seen).is_in_window_of(newest) {
            seen & COUNT_MASK
        } else {
            0
        }
    }
}

/// Kept on cache lines of its own, so that two lanes never share one.
#[repr(align(128))]
#[derive(Debug)]
struct Counts {
    calls: [Cell; PARTS],
    failures: [Cell; PARTS],
}

/// Counts of calls and failures over a sliding time window, without locks.
#[derive(Debug)]
pub(crate) struct Window {
    part_nanos: i64,
    lanes: Box<[Counts]>,
}

/// What the window holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) calls: u64,
    pub(crate) failures: u64,
}

impl Window {
    pub(crate) fn new(span: Duration) -> Self {
        let cells = || core::array::from_fn(|_| Cell::new());
        let lanes: Vec<Counts> = (0..Lane::COUNT)
            .map(|_| Counts {
                calls: cells(),
                failures: cells(),
            })
            .collect();
        let part_nanos = i64::try_from(span.as_nanos() / PARTS as u128)
            .unwrap_or(i64::MAX)
            .max(1);
        Self {
            part_nanos,
            lanes: lanes.into_boxed_slice(),
        }
    }

    /// Counts one call of a breaker's generation. Costs one division, one load and one exchange when nobody
    /// else uses the lane.
    pub(crate) fn add(&self, lane: Lane, now: Mono, generation: u64, failed: bool) {
        let (place, tag) = self.part(now, generation);
        let counts = &self.lanes[lane.index()];
        counts.calls[place].add(tag);
        if failed {
            counts.failures[place].add(tag);
        }
    }

    /// Adds up what the window holds of a generation at `now`: a fixed number of loads, whatever the traffic.
    ///
    /// Failures are read before calls because they are written after them: whoever sees a failure then sees
    /// its call as well, so a count taken under traffic never shows a larger share than there was.
    pub(crate) fn total(&self, now: Mono, generation: u64) -> Total {
        let (_, newest) = self.part(now, generation);
        let sum = |of: fn(&Counts) -> &[Cell; PARTS]| {
            let cells = self.lanes.iter().flat_map(of);
            cells.map(|cell| cell.count(newest)).sum::<u64>()
        };
        let failures = sum(|lane| &lane.failures);
        let calls = sum(|lane| &lane.calls);
        Total { calls, failures }
    }

    /// Forgets everything, so that no count is left when generation numbers come round again.
    pub(crate) fn clear(&self) {
        for lane in &self.lanes {
            for cell in lane.calls.iter().chain(&lane.failures) {
                cell.0.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Returns the place of the part that `now` lies in, and its tag.
    fn part(&self, now: Mono, generation: u64) -> (usize, Tag) {
        let number = now.as_nanos().div_euclid(self.part_nanos);
        let place = usize::try_from(number.rem_euclid(PARTS as i64)).unwrap_or(0);
        (place, Tag::new(generation, number.cast_unsigned()))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: i64) -> Mono {
        Mono::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_call_counts_until_its_part_leaves_the_window() {
        let window = Window::new(Duration::from_secs(10));
        window.add(Lane::new(0), at(500), 0, true);
        assert_eq!(
            window.total(at(9_999), 0),
            Total {
                calls: 1,
                failures: 1
            }
        );
        assert_eq!(
            window.total(at(10_000), 0),
            Total {
                calls: 0,
                failures: 0
            }
        );
    }

    #[test]
    fn a_call_leaves_at_the_windows_edge_to_the_nanosecond() {
        let window = Window::new(Duration::from_secs(10));
        let edge = at(10_000).as_nanos();
        window.add(Lane::new(0), Mono::ORIGIN, 0, true);
        let held = [-1, 0, 1].map(|nanos| window.total(Mono::from_nanos(edge + nanos), 0).calls);
        assert_eq!(held, [1, 0, 0]);
    }

    #[test]
    fn a_straggler_from_a_part_already_reused_changes_nothing() {
        let window = Window::new(Duration::from_secs(10));
        window.add(Lane::new(0), at(20_500), 0, false);
        window.add(Lane::new(0), at(10_500), 0, true);
        assert_eq!(
            window.total(at(20_500), 0),
            Total {
                calls: 1,
                failures: 0
            }
        );
    }

    #[test]
    fn a_full_cell_stops_counting_instead_of_spilling_into_the_next_part() {
        let cell = Cell::new();
        let tag = Tag::new(1, 7);
        cell.0.store(tag.0 | (COUNT_MASK - 1), Ordering::Relaxed);
        for _ in 0..3 {
            cell.add(tag);
            assert_eq!(cell.count(tag), COUNT_MASK);
        }
    }

    #[test]
    fn part_numbers_may_wrap_around() {
        let cell = Cell::new();
        cell.0.store(Tag::new(0, PART_MASK).0 | 3, Ordering::Relaxed);
        assert_eq!(cell.count(Tag::new(0, PART_MASK + 1)), 3);
        cell.add(Tag::new(0, 9));
        assert_eq!(cell.count(Tag::new(0, 9)), 1);
    }

    #[test]
    fn a_window_across_the_wrap_loses_no_part() {
        let window = Window::new(Duration::from_millis(100));
        let wrap = Mono::from_nanos((1 << PART_BITS) * 10_000_000);
        let mut model = 0;
        for parts in -9..=0_i32 {
            let now = wrap.before(Duration::from_millis(10) * parts.unsigned_abs());
            window.add(Lane::new(0), now, 0, true);
            model += 1;
            assert_eq!(window.total(now, 0).failures, model);
        }
    }

    #[test]
    fn a_clock_below_its_origin_slides_the_window_too() {
        let window = Window::new(Duration::from_secs(10));
        window.add(Lane::new(0), at(-20_000), 0, true);
        assert_eq!(window.total(at(-10_001), 0).failures, 1);
        assert_eq!(window.total(at(-10_000), 0).failures, 0);
    }

    #[test]
    fn e10_a_count_of_another_generation_is_not_in_the_window() {
        let window = Window::new(Duration::from_secs(10));
        window.add(Lane::new(0), at(500), 3, true);
        assert_eq!(window.total(at(500), 6).calls, 0);
        window.add(Lane::new(0), at(500), 6, false);
        window.add(Lane::new(0), at(500), 3, true);
        assert_eq!(
            window.total(at(500), 6),
            Total {
                calls: 1,
                failures: 0
            }
        );
    }

    #[test]
    fn generations_may_wrap_around() {
        let (old, new) = (Tag::new(255, 5), Tag::new(256, 4));
        assert!(new.is_later_than(old) && !old.is_later_than(new));
        assert!(!old.is_in_window_of(new) && !new.is_in_window_of(old));
    }

    #[test]
    fn a_caller_with_a_slightly_older_clock_reading_counts_the_newer_part() {
        let window = Window::new(Duration::from_secs(10));
        window.add(Lane::new(0), at(1_000), 0, true);
        window.add(Lane::new(1), at(999), 0, true);
        assert_eq!(window.total(at(999), 0).failures, 2);
        assert_eq!(window.total(at(1_000), 0).failures, 2);
    }

    proptest! {
        #[test]
        fn totals_equal_a_list_of_calls_filtered_by_part(
            calls in proptest::collection::vec((0_i64..40_000, 0_usize..64, any::<bool>()), 0..200),
        ) {
            let window = Window::new(Duration::from_secs(10));
            let mut calls = calls;
            calls.sort_by_key(|(at, ..)| *at);
            let mut seen: Vec<(i64, bool)> = Vec::new();
            for (millis, lane, failed) in calls {
                window.add(Lane::new(lane), at(millis), 0, failed);
                seen.push((millis / 1000, failed));
                let newest = millis / 1000;
                let inside = seen.iter().filter(|(part, _)| newest - part < 10);
                let model = Total {
                    calls: inside.clone().count() as u64,
                    failures: inside.filter(|(_, failed)| *failed).count() as u64,
                };
                prop_assert_eq!(window.total(at(millis), 0), model);
            }
        }
    }
}
