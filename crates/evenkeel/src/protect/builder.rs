//! Decides how a Protect contract is written in code: who is asked, how long, how often, and what its errors mean.
//! It exists beside the contract of a Read so that what a door must not have cannot be declared: such a method is not
//! here, and its use does not compile.
//! It refuses to build without a classifier for the error type: that is a compile error.

use std::{fmt, sync::Arc, time::Duration};

use evenkeel_core::{Advice, Class, Criticality, LimitRules, Problems, RampRules, RetryRules, Row};

use super::{Decision, Protect, counts::Counters};
use crate::{
    breaker::BreakerBuilder,
    dependency::Dependency,
    engine::Resource,
    read::{Classified, Classifier, ReadBuilder, Unclassified},
};

/// A Protect contract, being written. Nothing is on unless declared.
///
/// It has the methods of [`ReadBuilder`] that say who is asked and how, and none that says what stands in: no `ladder`,
/// `default`, `alternate`, `fresh_for`, `coalesce`, `memory`, `soft_timeout`, `exercise`.
#[must_use = "a contract does nothing until it is built"]
pub struct ProtectBuilder<T, D, C = Unclassified>(ReadBuilder<Decision<T, D>, C>, Arc<Counters>);

impl<T, D, C: fmt::Debug> fmt::Debug for ProtectBuilder<T, D, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProtectBuilder")
            .field(&self.0)
            .finish_non_exhaustive()
    }
}

impl<T, D> ProtectBuilder<T, D> {
    /// Makes a builder of one that has a name and nothing else.
    pub(crate) fn new(bare: ReadBuilder<Decision<T, D>>) -> Self {
        // Exact, so that no hold can choose among rungs that are not there.
        Self(bare.exact(), Arc::default())
    }

    /// Classifies the authority's errors: outage, refusal, busy or fault. Required, and fixes the error type.
    ///
    /// The class is for the breaker, for retries and for the reason. None of them allows or denies: a "no" of the
    /// authority is a [`Decision::Deny`], not an error, however its client returns it.
    pub fn classify<E>(
        self,
        class: impl Fn(&E) -> Class + Send + Sync + 'static,
    ) -> ProtectBuilder<T, D, Classifier<E>> {
        ProtectBuilder(self.0.classify(class), self.1)
    }
}

impl<T, D, E> ProtectBuilder<T, D, Classifier<E>> {
    /// Reads from an error what it says about asking again, see [`ReadBuilder::advice`].
    pub fn advice(self, advice: impl Fn(&E) -> Advice + Send + Sync + 'static) -> Self {
        Self(self.0.advice(advice), self.1)
    }
}

impl<T, D, C> ProtectBuilder<T, D, C> {
    /// Ends an attempt after this long, see [`ReadBuilder::timeout`].
    pub fn timeout(self, timeout: Duration) -> Self {
        Self(self.0.timeout(timeout), self.1)
    }

    /// Ends a whole call after this long, see [`ReadBuilder::deadline`].
    pub fn deadline(self, deadline: Duration) -> Self {
        Self(self.0.deadline(deadline), self.1)
    }

    /// Lets this many attempts be in flight at once, see [`ReadBuilder::concurrency`].
    pub fn concurrency(self, permits: u32) -> Self {
        Self(self.0.concurrency(permits), self.1)
    }

    /// Stops asking an authority that fails, see [`ReadBuilder::breaker`]. While it is open every call is unavailable.
    pub fn breaker(self, rules: impl FnOnce(BreakerBuilder) -> BreakerBuilder) -> Self {
        Self(self.0.breaker(rules), self.1)
    }

    /// Draws on a resource that others draw on too, see [`ReadBuilder::uses`]. One that the protected work draws on lets
    /// a slow authority take its permits, and the other way round.
    pub fn uses(self, resource: &Resource) -> Self {
        Self(self.0.uses(resource), self.1)
    }

    /// Replaces a row of the classification table, see [`ReadBuilder::row`]. Its `lower_rung` has no effect: there is none.
    pub fn row(self, class: Class, row: Row) -> Self {
        Self(self.0.row(class, row), self.1)
    }

    /// Lets traffic back in stages after the breaker has closed, see [`ReadBuilder::ramp`].
    pub fn ramp(self, stages: impl Into<Vec<u8>>) -> Self {
        Self(self.0.ramp(stages), self.1)
    }

    /// Lets traffic back by these rules after the breaker has closed, see [`ReadBuilder::ramp_rules`].
    pub fn ramp_rules(self, rules: RampRules) -> Self {
        Self(self.0.ramp_rules(rules), self.1)
    }

    /// Says how much its calls matter where permits are scarce, see [`ReadBuilder::criticality`].
    pub fn criticality(self, criticality: Criticality) -> Self {
        Self(self.0.criticality(criticality), self.1)
    }

    /// Begins no more attempts while this many may still be worked on, see [`ReadBuilder::abandoned`].
    pub fn abandoned(self, most: u32) -> Self {
        Self(self.0.abandoned(most), self.1)
    }

    /// Lets calls wait for a permit, see [`ReadBuilder::queue`].
    pub fn queue(self, length: u32, longest_wait: Duration) -> Self {
        Self(self.0.queue(length, longest_wait), self.1)
    }

    /// Asks once more after an outage, where the work may be repeated, see [`Protect::decide_repeatable`].
    pub fn retry(self, rules: RetryRules) -> Self {
        Self(self.0.retry(rules), self.1)
    }

    /// Learns how many attempts the authority bears, see [`ReadBuilder::learned_limit`].
    pub fn learned_limit(self, rules: LimitRules) -> Self {
        Self(self.0.learned_limit(rules), self.1)
    }

    /// Asks a dependency of the same engine that other guards ask too, see [`ReadBuilder::from`].
    pub fn from(self, dependency: &Dependency) -> Self {
        Self(self.0.from(dependency), self.1)
    }

    /// Goes on with the counters and the hold of a guard of the same name, see [`ReadBuilder::succeeds`].
    pub fn succeeds<E>(self, before: &Protect<T, D, E>) -> Self {
        Self(self.0.succeeds(&before.guard), Arc::clone(&before.counters))
    }

    /// Checks the contract.
    ///
    /// # Errors
    /// Every problem found, each with its place, what stands there, what may, and how to mend it.
    pub fn build<E>(self) -> Result<Protect<T, D, E>, Problems>
    where
        T: Clone + Send + Sync + 'static,
        D: Clone + Send + Sync + 'static,
        C: Classified<E>,
        E: Send + Sync + 'static,
    {
        Ok(Protect {
            guard: self.0.build()?,
            counters: self.1,
        })
    }
}
