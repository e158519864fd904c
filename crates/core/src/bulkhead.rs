//! Decides how many attempts may be in flight at once, for one dependency or one shared resource.
//! It exists so that a slow dependency takes a bounded share of everything, and the limit is taken before work
//! starts, never checked first and taken later.
//! It refuses to queue: a call that gets no permit is told so at once.

use crate::sync::{AtomicU32, Ordering};

/// A concurrency limit: a count of permits in use that never passes its limit.
///
/// Who acquires must release exactly once, when the work has ended; drivers wrap this in a guard.
///
/// Kept on cache lines of its own: every call writes here, and what lies beside it is only read.
#[repr(align(128))]
#[derive(Debug)]
pub struct Bulkhead {
    limit: AtomicU32,
    in_use: AtomicU32,
}

impl Bulkhead {
    /// Makes a bulkhead with `limit` permits, all free. A limit of zero refuses everything.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self {
            limit: AtomicU32::new(limit),
            in_use: AtomicU32::new(0),
        }
    }

    /// Takes a permit if one is free.
    #[must_use]
    pub fn acquire(&self) -> bool {
        self.acquire_beyond(0)
    }

    /// Takes a permit if one is free, or if fewer than so many are taken beyond the limit: those are reserved for probes.
    #[must_use]
    pub fn acquire_beyond(&self, reserved: u32) -> bool {
        let mut in_use = self.in_use.load(Ordering::Relaxed);
        loop {
            if in_use >= self.limit().saturating_add(reserved) {
                return false;
            }
            match self
                .in_use
                .compare_exchange_weak(in_use, in_use + 1, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(seen) => in_use = seen,
            }
        }
    }

    /// Gives a permit back.
    pub fn release(&self) {
        let before = self.in_use.fetch_sub(1, Ordering::Release);
        debug_assert!(before > 0, "a permit was released that nobody held");
    }

    /// Returns how many permits are in use.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.in_use.load(Ordering::Relaxed)
    }

    /// Returns the limit.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets another limit. Where more permits are in use than that, none is given until fewer are.
    ///
    /// ```
    /// # use evenkeel_core::Bulkhead;
    /// let bulkhead = Bulkhead::new(2);
    /// assert!(bulkhead.acquire() && bulkhead.acquire());
    /// bulkhead.set_limit(1);
    /// bulkhead.release();
    /// assert!(!bulkhead.acquire(), "one is in use, and one is the limit");
    /// ```
    pub fn set_limit(&self, limit: u32) {
        self.limit.store(limit, Ordering::Relaxed);
    }
}

/// Takes one permit of every bulkhead, or none of any.
///
/// Two callers who want the same bulkheads in different orders cannot block each other: nobody waits, and what
/// was taken is given back before the refusal is reported.
///
/// # Errors
/// The index of the bulkhead that had no permit.
pub fn acquire_all<'a, I>(bulkheads: I) -> Result<(), usize>
where
    I: Iterator<Item = &'a Bulkhead> + Clone,
{
    for (index, bulkhead) in bulkheads.clone().enumerate() {
        if !bulkhead.acquire() {
            for taken in bulkheads.take(index) {
                taken.release();
            }
            return Err(index);
        }
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_limit_is_admitted_and_one_more_is_not() {
        let bulkhead = Bulkhead::new(2);
        assert_eq!(
            [bulkhead.acquire(), bulkhead.acquire(), bulkhead.acquire()],
            [true, true, false]
        );
        bulkhead.release();
        assert!(bulkhead.acquire());
        assert!(!Bulkhead::new(0).acquire());
    }

    #[test]
    fn reserved_permits_lie_beyond_the_limit_and_are_no_use_to_others() {
        let bulkhead = Bulkhead::new(1);
        assert!(bulkhead.acquire());
        assert_eq!(
            [bulkhead.acquire_beyond(1), bulkhead.acquire_beyond(1)],
            [true, false]
        );
        bulkhead.release();
        assert!(!bulkhead.acquire(), "one is in use");
        bulkhead.release();
        assert!(bulkhead.acquire());
    }

    #[test]
    fn all_or_nothing_leaves_nothing_behind_when_the_last_is_full() {
        let (a, b, full) = (Bulkhead::new(1), Bulkhead::new(1), Bulkhead::new(0));
        assert_eq!(acquire_all([&a, &b, &full].into_iter()), Err(2));
        assert_eq!((a.in_use(), b.in_use(), full.in_use()), (0, 0, 0));
        assert_eq!(acquire_all([&a, &b].into_iter()), Ok(()));
        assert_eq!((a.in_use(), b.in_use()), (1, 1));
    }

    proptest! {
        #[test]
        fn counts_equal_a_plain_counter(limit in 0_u32..5, moves in proptest::collection::vec(any::<bool>(), 0..60)) {
            let bulkhead = Bulkhead::new(limit);
            let mut model = 0;
            for acquire in moves {
                if acquire {
                    prop_assert_eq!(bulkhead.acquire(), model < limit);
                    model = limit.min(model + 1);
                } else if model > 0 {
                    bulkhead.release();
                    model -= 1;
                }
                prop_assert_eq!(bulkhead.in_use(), model);
            }
        }
    }
}
