//! Decides how many of the last so many calls were bad: a true ring, in which each verdict replaces the oldest.
//! It exists because a window of calls that starts over at every full round forgets what it has just seen (E25).
//! It refuses locks and sums: a verdict costs two exchanges, and a third only where it changes the total.

use alloc::{boxed::Box, vec::Vec};

use crate::{
    breaker::window::Total,
    sync::{AtomicU32, AtomicU64, Ordering},
};

/// Generations are compared by this many bits: a straggler would have to sleep through millions of them to pass.
const GENERATION_BITS: u32 = 24;
const GENERATION_MASK: u64 = (1 << GENERATION_BITS) - 1;
const PLACE_BITS: u32 = 20;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;
const HEAD_SHIFT: u32 = 2 * PLACE_BITS;
const BAD_BITS: u32 = 64 - GENERATION_BITS;
const BAD_MASK: u64 = (1 << BAD_BITS) - 1;
/// Two verdicts for one place may add their changes in either order, so the total may be short for a moment.
const BIAS: u64 = 1 << 32;

/// What a place holds, behind the generation it belongs to.
const EMPTY: u32 = 0;
const GOOD: u32 = 1;
const BAD: u32 = 2;
const VERDICT_MASK: u32 = 0xff;
const SLOT_SHIFT: u32 = 8;

/// The verdicts of the last so many calls of one closed period.
///
/// Each verdict takes the place of the oldest one. Under traffic that place may for a moment still count with what it
/// held before: the total is then one of verdicts that were all given, the oldest a few calls older than it should be.
#[derive(Debug)]
pub(crate) struct Ring {
    /// Generation, calls counted (up to the size), next place.
    head: AtomicU64,
    /// Generation, bad calls and [`BIAS`].
    bad: AtomicU64,
    places: Box<[AtomicU32]>,
}

/// Where the next verdict goes.
#[derive(Clone, Copy)]
struct Head(u64);

impl Head {
    const fn new(generation: u64, calls: u64, place: u64) -> Self {
        Self((generation & GENERATION_MASK) << HEAD_SHIFT | calls << PLACE_BITS | place)
    }

    const fn is_of(self, generation: u64) -> bool {
        self.0 >> HEAD_SHIFT == generation & GENERATION_MASK
    }

    const fn calls(self) -> u64 {
        self.0 >> PLACE_BITS & PLACE_MASK
    }

    const fn place(self) -> u64 {
        self.0 & PLACE_MASK
    }
}

const fn no_bad(generation: u64) -> u64 {
    (generation & GENERATION_MASK) << BAD_BITS | BIAS
}

impl Ring {
    /// The most calls that fit.
    pub(crate) const CALLS_MAX: u32 = 100_000;

    /// Makes an empty ring of `calls` places, one at least and [`Ring::CALLS_MAX`] at most, for generation zero.
    pub(crate) fn new(calls: u32) -> Self {
        let places: Vec<AtomicU32> = (0..calls.clamp(1, Self::CALLS_MAX))
            .map(|_| AtomicU32::new(EMPTY))
            .collect();
        Self {
            head: AtomicU64::new(Head::new(0, 0, 0).0),
            bad: AtomicU64::new(no_bad(0)),
            places: places.into_boxed_slice(),
        }
    }

    /// Counts one call of a generation; of another than the present one it changes nothing.
    pub(crate) fn add(&self, generation: u64, is_bad: bool) {
        let Some(place) = self.take_place(generation) else {
            return;
        };
        let Some(old) = self.put(place, generation, if is_bad { BAD } else { GOOD }) else {
            return;
        };
        match (is_bad, old == BAD) {
            (true, false) => self.change(generation, |bad| bad + 1),
            (false, true) => self.change(generation, |bad| bad - 1),
            (true, true) | (false, false) => {}
        }
    }

    /// Returns what the ring holds of a generation: two loads.
    ///
    /// Bad calls are read before calls because they are written after them: the share is never larger than it was.
    pub(crate) fn total(&self, generation: u64) -> Total {
        let bad = self.bad.load(Ordering::Acquire);
        let head = Head(self.head.load(Ordering::Acquire));
        if !head.is_of(generation) || bad >> BAD_BITS != generation & GENERATION_MASK {
            return Total {
                calls: 0,
                failures: 0,
            };
        }
        Total {
            calls: head.calls(),
            failures: (bad & BAD_MASK).saturating_sub(BIAS),
        }
    }

    /// Forgets everything and begins with the generation that follows. Nobody of it counts yet.
    pub(crate) fn begin(&self, generation: u64) {
        // Stragglers of earlier generations find their number nowhere from here on.
        self.bad.store(no_bad(generation), Ordering::Release);
        self.head.store(Head::new(generation, 0, 0).0, Ordering::Release);
    }

    /// Tells whether it counts for this generation.
    pub(crate) fn is_of(&self, generation: u64) -> bool {
        Head(self.head.load(Ordering::Acquire)).is_of(generation)
    }

    fn take_place(&self, generation: u64) -> Option<&AtomicU32> {
        let size = self.places.len() as u64;
        let mut seen = Head(self.head.load(Ordering::Relaxed));
        loop {
            if !seen.is_of(generation) {
                return None;
            }
            let place = seen.place();
            let next = Head::new(
                generation,
                (seen.calls() + 1).min(size),
                if place + 1 == size { 0 } else { place + 1 },
            );
            match self
                .head
                .compare_exchange_weak(seen.0, next.0, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return self.places.get(usize::try_from(place).unwrap_or(0)),
                Err(now) => seen = Head(now),
            }
        }
    }

    /// Writes a verdict and returns the one of this generation that it replaces. `None` for a straggler whose place
    /// belongs to a later generation by now.
    #[expect(clippy::cast_possible_truncation, reason = "24 bits are left after the mask")]
    fn put(&self, place: &AtomicU32, generation: u64, verdict: u32) -> Option<u32> {
        let own = (generation & GENERATION_MASK) as u32;
        let next = own << SLOT_SHIFT | verdict;
        let mut seen = place.load(Ordering::Relaxed);
        loop {
            let ahead = (seen >> SLOT_SHIFT).wrapping_sub(own) & GENERATION_MASK as u32;
            if ahead != 0 && ahead <= GENERATION_MASK as u32 / 2 {
                return None;
            }
            match place.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Some(if ahead == 0 { seen & VERDICT_MASK } else { EMPTY }),
                Err(now) => seen = now,
            }
        }
    }

    fn change(&self, generation: u64, change: impl Fn(u64) -> u64) {
        let mut seen = self.bad.load(Ordering::Relaxed);
        while seen >> BAD_BITS == generation & GENERATION_MASK {
            match self
                .bad
                .compare_exchange_weak(seen, change(seen), Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    fn total(calls: u64, failures: u64) -> Total {
        Total { calls, failures }
    }

    #[test]
    fn e25_a_full_ring_forgets_one_verdict_for_each_new_one_and_never_starts_over() {
        let ring = Ring::new(4);
        for (bad, expected) in [
            (true, total(1, 1)),
            (true, total(2, 2)),
            (false, total(3, 2)),
            (false, total(4, 2)),
            (false, total(4, 1)),
            (false, total(4, 0)),
            (true, total(4, 1)),
        ] {
            ring.add(0, bad);
            assert_eq!(ring.total(0), expected);
        }
    }

    #[test]
    fn e10_verdicts_of_another_generation_count_for_nobody() {
        let ring = Ring::new(3);
        ring.add(0, true);
        ring.begin(3);
        assert_eq!((ring.total(0), ring.total(3)), (total(0, 0), total(0, 0)));
        ring.add(0, true);
        ring.add(3, false);
        ring.add(2, true);
        assert_eq!(ring.total(3), total(1, 0));
    }

    #[test]
    fn e10_a_straggler_that_has_taken_its_place_already_changes_no_later_total() {
        let ring = Ring::new(1);
        let place = ring.take_place(0).expect("it is the present generation");
        ring.begin(3);
        ring.add(3, true);
        assert_eq!(ring.put(place, 0, BAD), None);
        ring.change(0, |bad| bad + 1);
        assert_eq!(ring.total(3), total(1, 1));
        ring.add(3, false);
        assert_eq!(ring.total(3), total(1, 0));
    }

    #[test]
    fn changes_that_come_in_the_wrong_order_do_not_spill_into_the_generation() {
        let ring = Ring::new(1);
        ring.change(0, |bad| bad - 1);
        assert_eq!(ring.total(0), total(0, 0));
        ring.change(0, |bad| bad + 1);
        ring.add(0, true);
        assert_eq!(ring.total(0), total(1, 1));
    }

    #[test]
    fn generations_may_wrap_around() {
        let ring = Ring::new(2);
        ring.begin(GENERATION_MASK);
        ring.add(GENERATION_MASK, true);
        ring.begin(GENERATION_MASK + 3);
        ring.add(GENERATION_MASK + 3, false);
        assert_eq!(ring.total(GENERATION_MASK + 3), total(1, 0));
    }

    proptest! {
        #[test]
        fn totals_equal_a_list_of_the_last_calls(
            size in 1_u32..9,
            calls in proptest::collection::vec((any::<bool>(), 0_u32..20), 0..200),
        ) {
            let ring = Ring::new(size);
            let mut model = VecDeque::new();
            let mut generation = 0;
            for (bad, turn) in calls {
                if turn == 0 {
                    generation += 3;
                    ring.begin(generation);
                    model.clear();
                }
                ring.add(generation, bad);
                model.push_back(bad);
                if model.len() > size as usize {
                    model.pop_front();
                }
                let failures = model.iter().filter(|bad| **bad).count() as u64;
                prop_assert_eq!(ring.total(generation), total(model.len() as u64, failures));
            }
        }
    }
}
