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

/// Parts in which a window is held.
const PARTS: usize = 10;

/// A part of the window in one lane: the number of the part in the upper half, its count in the lower.
/// Both live in one word, so a part is renewed in one step and can never mix two periods.
#[derive(Debug)]
struct Cell(AtomicU64);

const COUNT_BITS: u32 = 32;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
/// Counting stops here, far below overflow even if every thread of a machine passes the check at once.
const COUNT_MAX: u64 = COUNT_MASK - (1 << 20);

impl Cell {
    fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    fn add(&self, part: u32) {
        let tag = u64::from(part) << COUNT_BITS;
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            if seen & !COUNT_MASK == tag {
                if seen & COUNT_MASK < COUNT_MAX {
                    self.0.fetch_add(1, Ordering::Relaxed);
                }
                return;
            }
            if !is_later(part, part_of(seen)) && seen & COUNT_MASK != 0 {
                return; // a straggler from a part that this cell has already left
            }
            match self
                .0
                .compare_exchange_weak(seen, tag | 1, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    fn count(&self, newest: u32) -> u64 {
        let seen = self.0.load(Ordering::Relaxed);
        let behind = newest.wrapping_sub(part_of(seen));
        if (behind as usize) < PARTS {
            seen & COUNT_MASK
        } else {
            0
        }
    }
}

fn part_of(word: u64) -> u32 {
    u32::try_from(word >> COUNT_BITS).unwrap_or(0)
}

/// Part numbers wrap around after many years; half of them count as later.
fn is_later(a: u32, b: u32) -> bool {
    a != b && a.wrapping_sub(b) < u32::MAX / 2
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
    part_nanos: u64,
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
        let part_nanos = u64::try_from(span.as_nanos() / PARTS as u128)
            .unwrap_or(u64::MAX)
            .max(1);
        Self {
            part_nanos,
            lanes: lanes.into_boxed_slice(),
        }
    }

    /// Counts one call. Costs one division, one load and one addition when nobody else uses the lane.
    pub(crate) fn add(&self, lane: Lane, now: Mono, failed: bool) {
        let part = self.part(now);
        let counts = &self.lanes[lane.index()];
        let place = part as usize % PARTS;
        counts.calls[place].add(part);
        if failed {
            counts.failures[place].add(part);
        }
    }

    /// Adds up what the window holds at `now`: a fixed number of loads, whatever the traffic.
    pub(crate) fn total(&self, now: Mono) -> Total {
        let newest = self.part(now);
        let sum = |cells: &[Cell; PARTS]| cells.iter().map(|cell| cell.count(newest)).sum::<u64>();
        self.lanes.iter().fold(
            Total {
                calls: 0,
                failures: 0,
            },
            |total, lane| Total {
                calls: total.calls + sum(&lane.calls),
                failures: total.failures + sum(&lane.failures),
            },
        )
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        for lane in &self.lanes {
            for cell in lane.calls.iter().chain(&lane.failures) {
                cell.0.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Numbers the part that `now` lies in. The lower 32 bits suffice: parts are 10 ms or longer.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "part numbers are compared with wrap-around"
    )]
    fn part(&self, now: Mono) -> u32 {
        (u64::try_from(now.as_nanos()).unwrap_or(0) / self.part_nanos) as u32
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
        window.add(Lane::new(0), at(500), true);
        assert_eq!(
            window.total(at(9_999)),
            Total {
                calls: 1,
                failures: 1
            }
        );
        assert_eq!(
            window.total(at(10_000)),
            Total {
                calls: 0,
                failures: 0
            }
        );
    }

    #[test]
    fn a_straggler_from_a_part_already_reused_changes_nothing() {
        let window = Window::new(Duration::from_secs(10));
        window.add(Lane::new(0), at(20_500), false);
        window.add(Lane::new(0), at(10_500), true);
        assert_eq!(
            window.total(at(20_500)),
            Total {
                calls: 1,
                failures: 0
            }
        );
    }

    #[test]
    fn a_full_cell_stops_counting_instead_of_spilling_into_the_next_part() {
        let cell = Cell::new();
        cell.0.store((7_u64 << COUNT_BITS) | COUNT_MAX, Ordering::Relaxed);
        cell.add(7);
        assert_eq!(cell.count(7), COUNT_MAX);
    }

    #[test]
    fn part_numbers_may_wrap_around() {
        let cell = Cell::new();
        cell.0
            .store((u64::from(u32::MAX) << COUNT_BITS) | 3, Ordering::Relaxed);
        assert_eq!(cell.count(0), 3);
        cell.add(9);
        assert_eq!(cell.count(9), 1);
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
                window.add(Lane::new(lane), at(millis), failed);
                seen.push((millis / 1000, failed));
                let newest = millis / 1000;
                let inside = seen.iter().filter(|(part, _)| newest - part < 10);
                let model = Total {
                    calls: inside.clone().count() as u64,
                    failures: inside.filter(|(_, failed)| *failed).count() as u64,
                };
                prop_assert_eq!(window.total(at(millis)), model);
            }
        }
    }
}
