//! Decides whether a dependency is asked once more after a failure, and until when it is left alone.
//! It exists apart from the admission so that whoever never retries reads, and pays, nothing of it.
//! It refuses to judge a call by its retries: each attempt passes the same gates and has its own verdict (E23).

use alloc::sync::Arc;
use core::time::Duration;

use super::{Dependency, Exclusive, open};
use crate::{
    breaker::{Asker, Changes},
    class::Class,
    criticality::Criticality,
    pass::{Pass, Refusal},
    retry::{Advice, Failed, NoRetry, Retry, RetryRules, budget::RetryBudget, hush::Hush},
    rng::Rng,
    steering::Steering,
    sync::{AtomicU64, Ordering},
    time::Mono,
};

/// What a dependency keeps of its retries.
#[derive(Debug)]
pub(super) struct Again {
    rules: Option<RetryRules>,
    budget: RetryBudget,
    hush: Arc<Hush>,
    /// The state of a generator; each draw moves it on by one step of its own.
    draws: Arc<AtomicU64>,
}

impl Again {
    pub(super) fn new(rules: Option<RetryRules>, seed: u64) -> Self {
        let (share_ppm, floor) = rules.map_or((0, 0), |rules| (rules.budget_ppm, rules.floor));
        Self {
            rules,
            budget: RetryBudget::new(share_ppm, floor),
            hush: Arc::new(Hush::new()),
            // Not the seed of the open periods: the two would be drawn in step.
            draws: Arc::new(AtomicU64::new(Rng::new(!seed).next_u64())),
        }
    }

    /// Goes on by other rules: what was saved, and the wish to be left alone, stay.
    pub(super) fn succeeded_by(&self, rules: Option<RetryRules>) -> Self {
        let (share_ppm, floor) = rules.map_or((0, 0), |rules| (rules.budget_ppm, rules.floor));
        Self {
            rules,
            budget: self.budget.succeeded_by(share_ppm, floor),
            hush: Arc::clone(&self.hush),
            draws: Arc::clone(&self.draws),
        }
    }

    /// Counts a call that was admitted.
    pub(super) fn earn(&self, now: Mono) {
        self.budget.earn(now);
    }

    fn draw(&self) -> u64 {
        Rng::new(self.draws.fetch_add(Rng::STEP, Ordering::Relaxed)).next_u64()
    }
}

impl<L: Exclusive<Steering>> Dependency<L> {
    /// Returns how many retries the budget could pay for at `now`, all at once; `None` where none are declared.
    pub fn retries_left(&self, now: Mono) -> Option<u64> {
        self.again.rules.map(|_| self.again.budget.left(now))
    }

    /// Grants a further attempt after one that `failed`, of a call that has made `made` attempts and ends at `ends`.
    ///
    /// Only for work that may be repeated without harm, and that has ended. The cost is counted now, before the pause:
    /// of a thousand who wait, no more come back than the budget bears. While the breaker is not closed nobody does.
    ///
    /// # Errors
    /// Why there is no further attempt. The result of the last one then stands.
    pub fn retry(&self, failed: Failed, made: u32, ends: Option<Mono>, now: Mono) -> Result<Retry, NoRetry> {
        let again = &self.again;
        let rules = again.rules.as_ref().filter(|_| failed.is_retryable());
        let rules = rules.ok_or(NoRetry::NotRetryable)?;
        if made >= rules.attempts {
            return Err(NoRetry::NoAttempts);
        }
        if !self.lets_traffic_in() {
            return Err(NoRetry::BreakerOpen);
        }
        // What others were told in the meantime holds for this one too.
        let hushed = again
            .hush
            .until(now)
            .map_or(Duration::ZERO, |until| until.since(now));
        let advice = Advice::After(failed.advice.wait().max(hushed));
        let at = now.after(rules.pause_after(made, Failed { advice, ..failed }, again.draw()));
        if ends.is_some_and(|ends| at >= ends) {
            return Err(NoRetry::NoTime);
        }
        let cost = again.budget.spend(now).ok_or(NoRetry::NoBudget)?;
        Ok(Retry { at, cost })
    }

    /// Admits the further attempt like any other, but never as a probe; see [`Dependency::admit`].
    ///
    /// # Errors
    /// The refusal. The budget then has its cost back, and the result of the attempt before stands.
    pub fn admit_again(
        &self,
        criticality: Criticality,
        retry: Retry,
        now: Mono,
        observe: bool,
    ) -> (Result<Pass, Refusal>, Changes) {
        let looked = self.look(now);
        let (pass, [first, second]) = if observe || self.lets_traffic_in() {
            self.pass(criticality, now, Asker::Traffic, observe)
        } else {
            (Err(open(self.next_probe())), [None; 2])
        };
        if pass.is_err() {
            self.give_back(retry, now);
        }
        (pass, [looked.or(first), second])
    }

    /// Tells whether the breaker lets ordinary calls in: it is closed, or there is none.
    #[must_use]
    pub fn lets_traffic_in(&self) -> bool {
        self.gate.as_ref().is_none_or(|gate| gate.observe().is_some())
    }
}

impl<L> Dependency<L> {
    /// Takes back the cost of an attempt that is not made: its caller has left, or a hold came in between.
    #[expect(clippy::needless_pass_by_value, reason = "what is given back is gone")]
    pub fn give_back(&self, retry: Retry, now: Mono) {
        self.again.budget.refund(retry.cost, now);
    }

    /// Notes what an attempt of this class brought: after a 429 the dependency is left alone by retries and refreshes
    /// for as long as it said, within the limit for that, and never for less than a first pause.
    pub fn heed(&self, class: Class, advice: Advice, now: Mono) {
        if class == Class::Busy {
            let rules = self.again.rules.unwrap_or_default();
            let span = advice.wait().min(rules.retry_after_max);
            self.again.hush.keep(span.max(rules.pause), now);
        }
    }

    /// Returns until when retries and refreshes have to leave the dependency alone, if that is still to come.
    #[must_use]
    pub fn hushed_until(&self, now: Mono) -> Option<Mono> {
        self.again.hush.until(now)
    }
}
