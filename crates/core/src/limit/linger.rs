//! Decides how much abandoned work still counts as in flight.
//! It exists because a caller who stops waiting proves nothing about the work: most servers finish what they began.
//! It refuses timers: what has lingered long enough is simply no longer counted.

use core::time::Duration;

use crate::{
    sync::{AtomicU64, Ordering},
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
    part_nanos: i64,
    cells: [AtomicU64; CELLS],
}

impl Linger {
    /// Counts each attempt for `span`; zero counts none.
    pub(crate) fn new(span: Duration) -> Self {
        Self {
            part_nanos: i64::try_from(span.as_nanos().div_ceil(PARTS as u128)).unwrap_or(i64::MAX),
            cells: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Counts an attempt that was abandoned at `now`.
    pub(crate) fn add(&self, now: Mono) {
        if self.part_nanos == 0 {
            return;
        }
        let part = self.part(now);
        let cell = &self.cells[usize::try_from(part % CELLS as u64).unwrap_or(0)];
        let mut seen = cell.load(Ordering::Relaxed);
        loop {
            let next = if seen >> COUNT_BITS == part {
                if seen & COUNT_MASK == COUNT_MASK {
                    return;
                }
                seen + 1
            } else {
                (part << COUNT_BITS) | 1
            };
            match cell.compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Returns how many are counted at `now`: five loads.
    pub(crate) fn count(&self, now: Mono) -> u32 {
        if self.part_nanos == 0 {
            return 0;
        }
        let newest = self.part(now);
        let counted = |word: u64| match newest.checked_sub(word >> COUNT_BITS) {
            Some(behind) if behind > PARTS as u64 => 0,
            // A part that is ahead was begun by a thread whose clock was read later.
            Some(_) | None => word & COUNT_MASK,
        };
        let sum: u64 = self
            .cells
            .iter()
            .map(|cell| counted(cell.load(Ordering::Relaxed)))
            .sum();
        u32::try_from(sum).unwrap_or(u32::MAX)
    }

    fn part(&self, now: Mono) -> u64 {
        // Parts start at one, so that an empty cell belongs to none that is counted.
        let part = now.as_nanos().max(0).unsigned_abs() / self.part_nanos.unsigned_abs();
        (part + 1) & (u64::MAX >> COUNT_BITS)
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
