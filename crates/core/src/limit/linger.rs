//! Decides how much abandoned work still counts as in flight.
//! It exists because a caller who stops waiting proves nothing about the work: most servers finish what they began.
//! It refuses timers: what has lingered long enough is simply no longer counted.

use core::time::Duration;

use crate::{
    sync::{AtomicI64, AtomicU64, Ordering},
    time::Mono,
};

/// A span is counted in this many parts, so a piece of work leaves between 100 % and 125 % of the span later.
const PARTS: usize = 4;
/// One more cell than parts: the one being filled.
const CELLS: usize = PARTS + 1;
const COUNT_BITS: u32 = 24;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// Abandoned attempts of the recent past. Each cell holds a part's number and its count in one word.
#[derive(Debug)]
pub(crate) struct Linger {
    part_nanos: AtomicI64,
    cells: [AtomicU64; CELLS],
}

impl Linger {
    /// Counts each attempt for `span`; zero counts none.
    pub(crate) fn new(span: Duration) -> Self {
        Self {
            part_nanos: AtomicI64::new(part_of(span)),
            cells: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Counts an attempt that was abandoned at `now`.
    pub(crate) fn add(&self, now: Mono) {
        let Some(part) = self.part(now) else { return };
        self.add_to(part, 1);
    }

    /// Counts each attempt for another span from now on: what is counted now begins its span anew.
    ///
    /// An attempt that is added at the same moment may be lost: parts of the one span mean nothing in the other.
    pub(crate) fn set_span(&self, span: Duration, now: Mono) {
        let part_nanos = part_of(span);
        if self.part_nanos.load(Ordering::Relaxed) == part_nanos {
            return;
        }
        let counted = self.count(now);
        for cell in &self.cells {
            cell.store(0, Ordering::Relaxed);
        }
        self.part_nanos.store(part_nanos, Ordering::Relaxed);
        if let (Some(part), 1..) = (self.part(now), counted) {
            self.add_to(part, u64::from(counted).min(COUNT_MASK));
        }
    }

    fn add_to(&self, part: u64, more: u64) {
        let cell = &self.cells[usize::try_from(part % CELLS as u64).unwrap_or(0)];
        let mut seen = cell.load(Ordering::Relaxed);
        loop {
            let next = if seen >> COUNT_BITS == part {
                if (seen & COUNT_MASK) + more > COUNT_MASK {
                    return;
                }
                seen + more
            } else {
                (part << COUNT_BITS) | more
            };
            match cell.compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Returns how many are counted at `now`: five loads.
    pub(crate) fn count(&self, now: Mono) -> u32 {
        let Some(newest) = self.part(now) else { return 0 };
        // A part that is a little ahead was begun by a thread whose clock was read later; one that is far ahead belongs to
        // another span.
        let counted = |word: u64| {
            if newest.abs_diff(word >> COUNT_BITS) > PARTS as u64 {
                0
            } else {
                word & COUNT_MASK
            }
        };
        let sum: u64 = self
            .cells
            .iter()
            .map(|cell| counted(cell.load(Ordering::Relaxed)))
            .sum();
        u32::try_from(sum).unwrap_or(u32::MAX)
    }

    /// Numbers the part that `now` lies in; `None` where nothing is counted.
    fn part(&self, now: Mono) -> Option<u64> {
        let part_nanos = self.part_nanos.load(Ordering::Relaxed).unsigned_abs();
        let part = now.as_nanos().max(0).unsigned_abs().checked_div(part_nanos)?;
        // Parts start far enough from zero that an empty cell belongs to none that is counted.
        Some((part + 1 + PARTS as u64) & (u64::MAX >> COUNT_BITS))
    }
}

/// Returns the length of one part of a span, in nanoseconds.
fn part_of(span: Duration) -> i64 {
    i64::try_from(span.as_nanos().div_ceil(PARTS as u128)).unwrap_or(i64::MAX)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: i64) -> Mono {
        Mono::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn abandoned_work_counts_for_its_span_and_not_much_longer() {
        let linger = Linger::new(Duration::from_secs(1));
        linger.add(at(10));
        let counted = [10, 1_010, 1_249, 1_250].map(|millis| linger.count(at(millis)));
        assert_eq!(counted, [1, 1, 1, 0]);
    }

    #[test]
    fn a_span_of_zero_counts_nothing() {
        let linger = Linger::new(Duration::ZERO);
        linger.add(at(5));
        assert_eq!(linger.count(at(5)), 0);
    }

    #[test]
    fn another_span_holds_at_once_for_what_lingers_and_for_what_comes() {
        let (linger, second) = (Linger::new(Duration::from_secs(1)), Duration::from_secs(1));
        linger.add(at(10));
        linger.add(at(500));
        linger.set_span(second * 10, at(1_000));
        linger.add(at(1_000));
        assert_eq!(
            [1_000, 11_000, 13_500].map(|millis| linger.count(at(millis))),
            [3, 3, 0]
        );
        linger.set_span(Duration::from_millis(100), at(2_000));
        assert_eq!(
            [2_000, 2_100, 2_125].map(|millis| linger.count(at(millis))),
            [3, 3, 0]
        );
        linger.set_span(Duration::ZERO, at(2_100));
        linger.add(at(2_100));
        assert_eq!(linger.count(at(2_100)), 0);
    }

    #[test]
    fn a_part_of_another_span_is_not_counted_for_ever() {
        let linger = Linger::new(Duration::from_millis(4));
        linger.add(at(5_000));
        linger
            .part_nanos
            .store(part_of(Duration::from_secs(4)), Ordering::Relaxed);
        assert_eq!(linger.count(at(5_000)), 0);
    }

    proptest! {
        #[test]
        fn every_piece_counts_at_least_its_span_and_at_most_a_quarter_more(
            moments in proptest::collection::vec(0_i64..5_000, 0..60),
        ) {
            let linger = Linger::new(Duration::from_secs(1));
            let mut moments = moments;
            moments.sort_unstable();
            for (index, now) in moments.iter().copied().enumerate() {
                linger.add(at(now));
                let within = |span: i64| moments[..=index].iter().filter(|then| now - *then <= span).count();
                let counted = linger.count(at(now)) as usize;
                prop_assert!((within(1_000)..=within(1_250)).contains(&counted), "{counted} at {now}");
            }
        }
    }
}
