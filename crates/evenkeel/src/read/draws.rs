//! Decides what is left to chance in a guard: how lifetimes are spread, and which hit refreshes a copy early.
//! It exists because both are drawn while nothing may be locked, by many threads at once.
//! It refuses seeds of its own: the engine hands one out.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use evenkeel_core::{Facts, Now, Rng};

use super::shared::Inner;

/// Random numbers for many threads: each draw moves the generator on by one step of its own.
#[derive(Debug)]
pub(crate) struct Draws(AtomicU64);

impl Draws {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    pub(crate) fn next(&self) -> u64 {
        Rng::new(self.0.fetch_add(Rng::STEP, Ordering::Relaxed)).next_u64()
    }
}

impl<T, E> Inner<T, E> {
    /// Returns the lifetime of one copy: its own or the contract's, shortened by the declared jitter.
    pub(super) fn lifetime(&self, own: Option<Duration>) -> Option<Duration> {
        let rules = self.contract.refresh();
        if rules.jitter_ppm == 0 {
            return own;
        }
        own.or_else(|| self.contract.fresh_for())
            .map(|lifetime| rules.spread(lifetime, self.draws.next()))
    }

    /// Returns how long an attempt took that began at `began` and has just ended, where refreshes go by that.
    pub(super) fn cost(&self, began: Now) -> Option<Duration> {
        let is_needed = self.contract.refresh().refresh_ahead;
        is_needed.then(|| self.now().mono.since(began.mono))
    }

    /// Draws whether to refresh a copy ahead of its end, where that is declared and could come out so.
    pub(super) fn chance(&self, facts: Option<Facts>) -> Option<u64> {
        let cost = facts.filter(|_| self.contract.refresh().refresh_ahead)?.cost?;
        (!cost.is_zero()).then(|| self.draws.next())
    }
}
