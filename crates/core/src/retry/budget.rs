//! Decides how many retries a dependency bears: a share of its calls, and a few each second.
//! It exists because retries of a failing dependency multiply its load exactly when it can bear it least.
//! It refuses to end work: it is asked before a retry, and who was granted one is never asked again.

use alloc::sync::Arc;

use crate::{
    sync::{AtomicU64, Ordering},
    time::Mono,
};

/// One retry, in the unit that a call of one part per million earns.
const RETRY: u64 = 1_000_000;
/// The most that is saved up: a little more than 4000 retries.
const SAVED_MAX: u64 = u32::MAX as u64;
/// A tenth of what is saved is forgotten each second, so that a long calm does not pay for a storm.
const FORGETS: u64 = 10;
/// After so many seconds nothing of [`SAVED_MAX`] is left.
const ALL_FORGOTTEN: u64 = 256;

/// What retries may still cost.
///
/// For any span of whole seconds it grants at most `floor` retries for each of them, the share of the calls counted in
/// them, and what was saved before. Two words, each the number of a second above and a count below: the free retries
/// used in that second, and what calls have earned, in millionths of a retry, up to that second.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    share_ppm: u32,
    floor: u32,
    account: Arc<Account>,
}

#[derive(Debug, Default)]
struct Account {
    free_used: AtomicU64,
    saved: AtomicU64,
}

/// What a retry was paid with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    /// A free one of this second.
    Free(u64),
    /// What calls had earned.
    Earned,
}

impl RetryBudget {
    pub(crate) fn new(share_ppm: u32, floor: u32) -> Self {
        Self {
            share_ppm,
            floor,
            account: Arc::default(),
        }
    }

    /// Goes on with the same account by another share and another floor.
    pub(crate) fn succeeded_by(&self, share_ppm: u32, floor: u32) -> Self {
        Self {
            share_ppm,
            floor,
            account: Arc::clone(&self.account),
        }
    }

    /// Counts a call that reached the dependency.
    pub(crate) fn earn(&self, now: Mono) {
        if self.share_ppm > 0 {
            self.change(now, |saved| {
                Some((saved + u64::from(self.share_ppm)).min(SAVED_MAX))
            });
        }
    }

    /// Pays for one retry; `None` if there is nothing to pay with.
    pub(crate) fn spend(&self, now: Mono) -> Option<Cost> {
        if self.take_free(second(now)) {
            return Some(Cost::Free(second(now)));
        }
        self.change(now, |saved| saved.checked_sub(RETRY))
            .then_some(Cost::Earned)
    }

    /// Returns how many retries could be paid for at `now`, all at once.
    pub(crate) fn left(&self, now: Mono) -> u64 {
        let at = second(now);
        let word = self.account.free_used.load(Ordering::Relaxed);
        let used = if word >> 32 < at { 0 } else { word & COUNT };
        let word = self.account.saved.load(Ordering::Relaxed);
        let saved = after(word & COUNT, at.saturating_sub(word >> 32));
        u64::from(self.floor).saturating_sub(used) + saved / RETRY
    }

    /// Takes back what was paid for a retry that was not made.
    pub(crate) fn refund(&self, cost: Cost, now: Mono) {
        match cost {
            Cost::Earned => {
                self.change(now, |saved| Some((saved + RETRY).min(SAVED_MAX)));
            }
            // One that was free in an earlier second is of no use in this.
            Cost::Free(at) => {
                let mut seen = self.account.free_used.load(Ordering::Relaxed);
                while seen >> 32 == at && seen & COUNT > 0 {
                    match self.account.free_used.compare_exchange_weak(
                        seen,
                        seen - 1,
                        Ordering::Relaxed,
                        Ordering::Relaxed,
                    ) {
                        Ok(_) => return,
                        Err(other) => seen = other,
                    }
                }
            }
        }
    }

    fn take_free(&self, at: u64) -> bool {
        let mut seen = self.account.free_used.load(Ordering::Relaxed);
        loop {
            // A thread whose clock was read earlier takes what is free in the second that has begun.
            let (since, used) = (seen >> 32, seen & COUNT);
            let (since, used) = if since < at { (at, 0) } else { (since, used) };
            if used >= u64::from(self.floor) {
                return false;
            }
            match self.account.free_used.compare_exchange_weak(
                seen,
                (since << 32) | (used + 1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(other) => seen = other,
            }
        }
    }

    /// Changes what is saved, once what has been forgotten is off; `false` if `to` declines.
    fn change(&self, now: Mono, to: impl Fn(u64) -> Option<u64>) -> bool {
        let at = second(now);
        let mut seen = self.account.saved.load(Ordering::Relaxed);
        loop {
            let (since, saved) = (seen >> 32, seen & COUNT);
            let Some(next) = to(after(saved, at.saturating_sub(since))) else {
                return false;
            };
            match self.account.saved.compare_exchange_weak(
                seen,
                (at.max(since) << 32) | next,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(other) => seen = other,
            }
        }
    }
}

const COUNT: u64 = u32::MAX as u64;

/// Returns what is left of `saved` after so many seconds.
fn after(saved: u64, seconds: u64) -> u64 {
    if seconds >= ALL_FORGOTTEN {
        return 0;
    }
    (0..seconds).fold(saved, |left, _| left - left.div_ceil(FORGETS))
}

/// Numbers the whole seconds; they start at one, so that a word of zeros belongs to none.
fn second(now: Mono) -> u64 {
    now.since(Mono::ORIGIN).as_secs().saturating_add(1).min(COUNT)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::time::Duration;
    use proptest::prelude::*;

    fn at(millis: u32) -> Mono {
        Mono::ORIGIN.after(Duration::from_millis(u64::from(millis)))
    }

    fn granted(budget: &RetryBudget, now: Mono, times: u32) -> usize {
        (0..times).filter(|_| budget.spend(now).is_some()).count()
    }

    #[test]
    fn what_is_left_is_what_would_be_granted() {
        let budget = RetryBudget::new(100_000, 3);
        for (millis, calls) in [(0, 95), (0, 10), (1500, 0), (2500, 40), (400_000, 0)] {
            (0..calls).for_each(|_| budget.earn(at(millis)));
            let left = budget.left(at(millis));
            assert_eq!(granted(&budget, at(millis), 1000) as u64, left, "{millis}");
            assert_eq!(budget.left(at(millis)), 0);
        }
    }

    #[test]
    fn r02_a_thousand_calls_pay_for_a_hundred_retries_beside_the_free_ones() {
        let budget = RetryBudget::new(100_000, 3);
        for _ in 0..1000 {
            budget.earn(at(0));
        }
        assert_eq!(granted(&budget, at(0), 1000), 100 + 3);
        assert_eq!(granted(&budget, at(999), 1000), 0);
        assert_eq!(
            granted(&budget, at(1000), 1000),
            3,
            "the free ones of the next second"
        );
    }

    #[test]
    fn e68_a_millionth_less_than_a_retry_is_none() {
        let budget = RetryBudget::new(999_999, 0);
        budget.earn(at(0));
        assert_eq!(granted(&budget, at(0), 1), 0);
        budget.earn(at(0));
        assert_eq!(granted(&budget, at(0), 2), 1, "what is left of it stays");
    }

    #[test]
    fn what_a_calm_has_saved_is_forgotten() {
        let budget = RetryBudget::new(1_000_000, 0);
        for _ in 0..100 {
            budget.earn(at(0));
        }
        assert_eq!(granted(&budget, at(1000), 1), 1);
        // Ninety are left of a hundred after a second, less the one that was spent.
        for (later, left) in [(1_000, 89), (2_000, 80), (11_000, 31), (300_000, 0)] {
            let copy = RetryBudget::new(1_000_000, 0);
            copy.account
                .saved
                .store(budget.account.saved.load(Ordering::Relaxed), Ordering::Relaxed);
            assert_eq!(granted(&copy, at(later), 200), left, "{later}");
        }
        assert_eq!(
            after(SAVED_MAX, ALL_FORGOTTEN - 1),
            0,
            "nothing is lost by the bound"
        );
    }

    #[test]
    fn e68_a_retry_that_is_not_made_is_taken_back_once_and_only_in_its_second() {
        let budget = RetryBudget::new(1_000_000, 1);
        let free = budget.spend(at(0)).expect("one is free");
        assert_eq!(budget.spend(at(0)), None);
        budget.refund(free, at(10));
        let again = budget.spend(at(20)).expect("it was given back");
        assert_eq!(budget.spend(at(1_000)), Some(Cost::Free(2)));
        budget.refund(again, at(1_001));
        assert_eq!(
            budget.spend(at(1_002)),
            None,
            "the one of an earlier second is gone"
        );
        budget.earn(at(1_003));
        let earned = budget.spend(at(1_004)).expect("one was earned");
        budget.refund(earned, at(1_005));
        assert_eq!(granted(&budget, at(1_006), 5), 1);
    }

    #[test]
    fn nothing_saved_overflows_and_a_clock_before_its_origin_counts_as_the_origin() {
        let budget = RetryBudget::new(1_000_000, 0);
        let early = Mono::from_nanos(i64::MIN);
        for _ in 0..10_000 {
            budget.earn(early);
        }
        assert_eq!(granted(&budget, early, 10_000), 4294);
        assert_eq!(granted(&budget, Mono::END, 1), 0);
    }

    proptest! {
        /// The promise in the words of the contract, for every span of whole seconds, and the plain arithmetic.
        #[test]
        fn e68_retries_stay_within_their_share_and_floor_in_every_span(
            share_ppm in 0_u32..=1_000_000,
            floor in 0_u32..4,
            moves in proptest::collection::vec((any::<bool>(), 0_u32..400), 1..300),
        ) {
            let budget = RetryBudget::new(share_ppm, floor);
            let mut now = 0;
            let (mut calls, mut retries) = (Vec::new(), Vec::new());
            // The model: what is saved, by second, and the free ones of the second.
            let (mut second, mut saved, mut free) = (0, 0_u64, 0);
            for (retry, pause) in moves {
                now += pause;
                while second < now / 1000 {
                    second += 1;
                    saved -= saved.div_ceil(10);
                    free = 0;
                }
                if retry {
                    let expected = if free < floor {
                        free += 1;
                        true
                    } else if saved >= 1_000_000 {
                        saved -= 1_000_000;
                        true
                    } else {
                        false
                    };
                    prop_assert_eq!(budget.spend(at(now)).is_some(), expected);
                    if expected { retries.push(now / 1000); }
                } else {
                    budget.earn(at(now));
                    saved += u64::from(share_ppm);
                    calls.push(now / 1000);
                }
            }
            let within = |all: &[u32], from: u32, to: u32| -> u64 {
                all.iter().filter(|at| (from..=to).contains(*at)).count() as u64
            };
            let last = now / 1000;
            for to in 0..=last {
                let paid = u64::from(share_ppm) * within(&calls, 0, to) / 1_000_000;
                prop_assert!(within(&retries, 0, to) <= paid + u64::from(floor) * u64::from(to + 1));
            }
        }
    }
}
