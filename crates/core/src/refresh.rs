//! Decides what a kept copy may do for a call before anybody is asked: answer it, or answer it while a refresh runs.
//! It exists so that the lifetime and the window of each copy are read in one place, for every driver.
//! It refuses windows without a limit, and to call a copy revalidated while nobody asks.

use core::time::Duration;

use crate::{
    age::Facts,
    ahead, codes,
    contract::ReadContract,
    ending::Rung,
    ladder::Ladder,
    problem::Problems,
    reason::{Reason, Skipped},
    time::Mono,
};

/// When copies are used although nothing has failed, beside `fresh_for`. Nothing is on unless set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefreshRules {
    /// Copies may bring a lifetime of their own ([`Facts::lifetime`]): one is looked for before asking, although no
    /// `fresh_for` is declared.
    pub own_lifetimes: bool,
    /// How long beyond its lifetime a copy is served while a refresh runs: 1 ms to 365 days. Needs a stale rung, whose
    /// limit holds here too.
    pub stale_while_revalidate: Option<Duration>,
    /// How long after its arrival a call is answered from a copy that may be served stale, while its attempt goes on: 1 ms
    /// to 1 h, and shorter than the deadline. Needs a stale rung.
    pub soft_timeout: Option<Duration>,
    /// Whether copies are refreshed before their lifetime ends, by chance: the sooner the more a refresh costs.
    pub refresh_ahead: bool,
    /// By up to how much the lifetime of each copy is shortened, evenly drawn, in parts per million: 0 to 500 000.
    pub jitter_ppm: u32,
    /// How long nobody asks for a key after a shared attempt for it has failed, or a refresh: 1 ms to 1 h.
    pub cool_down: Option<Duration>,
    /// How long work may go on whose attempt has run into its limit, to bring its answer into the store: 1 ms to 1 h. Its
    /// permit is in use until then.
    pub finish_within: Option<Duration>,
}

/// What came of [`Step::Refresh`](crate::Step::Refresh).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// One is under way for this key: it was begun just now, or by another call.
    UnderWay,
    /// None is, because evenkeel itself refused the attempt, for this reason.
    Refused(Reason),
    /// This call has no work that could go on without it: it has to ask by itself.
    Impossible,
}

/// What a copy may do for a call before anybody is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// It is the answer, at this age.
    Fresh(Duration),
    /// It is the answer from this rung at this age, while a refresh runs.
    WhileRefreshing(Rung, Duration),
    /// Nothing.
    Nothing,
}

impl RefreshRules {
    /// Adds every problem of the rules beside the rest of a contract.
    pub(crate) fn check(
        &self,
        fresh_for: Option<Duration>,
        deadline: Option<Duration>,
        ladder: &Ladder,
        exact: bool,
        problems: &mut Problems,
    ) {
        let window = self.stale_while_revalidate;
        for (on, setting) in [
            (self.own_lifetimes, "own_lifetimes"),
            (window.is_some(), "stale_while_revalidate"),
            (self.soft_timeout.is_some(), "soft_timeout"),
            (self.refresh_ahead, "refresh_ahead"),
            (self.jitter_ppm > 0, "jitter"),
            (self.finish_within.is_some(), "finish_within"),
        ] {
            if on && exact {
                problems.coded(
                    codes::EXACT_WITH_OLD_DATA,
                    setting,
                    "set together with `exact`",
                    "nothing but an answer asked for this call",
                    "remove it, or `exact`",
                );
            }
        }
        if let Some(soft) = self.soft_timeout {
            Self::check_soft(soft, deadline, ladder, problems);
        }
        self.check_lifetimes(fresh_for, problems);
        if let Some(span) = self.finish_within {
            let (shortest, longest) = (Duration::from_millis(1), Duration::from_secs(3600));
            problems.span(&["finish_within"], span, shortest, longest);
            if fresh_for.is_none() && !self.own_lifetimes && ladder.max_age().is_none() {
                problems.coded(
                    codes::NO_EFFECT,
                    "finish_within",
                    "set on a contract that keeps nothing",
                    "beside `fresh_for` or a stale rung: what comes late is for them",
                    "add one of them, or remove it",
                );
            }
        }
        let Some(window) = window else { return };
        problems.span(
            &["stale_while_revalidate"],
            window,
            Duration::from_millis(1),
            Ladder::MAX_AGE_LIMIT,
        );
        if ladder.max_age().is_none() {
            problems.coded(
                codes::NO_EFFECT,
                "stale_while_revalidate",
                "set without a stale rung",
                "beside a stale rung, which says how old an answer may be at all",
                "add `stale` to the ladder, or remove it",
            );
        }
        if fresh_for.is_none() && !self.own_lifetimes {
            problems.coded(
                codes::NO_EFFECT,
                "stale_while_revalidate",
                "set without `fresh_for`",
                "beside `fresh_for`: the window begins where the lifetime ends",
                "add `fresh_for`, or remove it",
            );
        }
    }
}

impl RefreshRules {
    /// Adds a problem for what is about lifetimes where there are none.
    fn check_lifetimes(&self, fresh_for: Option<Duration>, problems: &mut Problems) {
        problems.range(&["jitter"], u64::from(self.jitter_ppm), 0, 500_000);
        if let Some(cool_down) = self.cool_down {
            let (shortest, longest) = (Duration::from_millis(1), Duration::from_secs(3600));
            problems.span(&["cool_down"], cool_down, shortest, longest);
        }
        for (on, setting) in [
            (self.refresh_ahead, "refresh_ahead"),
            (self.jitter_ppm > 0, "jitter"),
        ] {
            if on && fresh_for.is_none() && !self.own_lifetimes {
                problems.coded(
                    codes::NO_EFFECT,
                    setting,
                    "set without `fresh_for`",
                    "beside `fresh_for`, whose end it is about",
                    "add `fresh_for`, or remove it",
                );
            }
        }
    }

    /// Returns the lifetime of one copy, by a random `chance`: `lifetime`, shortened by up to the declared jitter.
    #[must_use]
    pub fn spread(&self, lifetime: Duration, chance: u64) -> Duration {
        ahead::shortened(lifetime, self.jitter_ppm, chance)
    }

    fn check_soft(soft: Duration, deadline: Option<Duration>, ladder: &Ladder, problems: &mut Problems) {
        problems.span(
            &["soft_timeout"],
            soft,
            Duration::from_millis(1),
            Duration::from_secs(3600),
        );
        if ladder.max_age().is_none() {
            problems.coded(
                codes::NO_EFFECT,
                "soft_timeout",
                "set without a stale rung",
                "beside a stale rung, which says what may be served then",
                "add `stale` to the ladder, or remove it",
            );
        }
        if let Some(deadline) = deadline.filter(|deadline| *deadline <= soft) {
            problems.coded(
                codes::TIMES_CONFLICT,
                "soft_timeout",
                &alloc::format!("{soft:?}, and the deadline ends the call after {deadline:?}"),
                "shorter than the deadline",
                "lower it, or raise the deadline: as it stands it would never end a wait",
            );
        }
    }
}

impl ReadContract {
    /// Returns how long after its arrival a call is answered from a stale copy while its attempt goes on.
    #[must_use]
    pub const fn soft_timeout(&self) -> Option<Duration> {
        self.refresh().soft_timeout
    }

    /// Returns how long work may go on whose attempt has run into its limit.
    #[must_use]
    pub const fn finish_within(&self) -> Option<Duration> {
        self.refresh().finish_within
    }

    /// Returns how long beyond its lifetime a copy is served while a refresh runs.
    #[must_use]
    pub const fn stale_while_revalidate(&self) -> Option<Duration> {
        self.refresh().stale_while_revalidate
    }

    /// Tells whether a copy is looked for before anybody is asked.
    #[must_use]
    pub const fn looks_first(&self) -> bool {
        self.fresh_for().is_some() || self.refresh().own_lifetimes
    }

    /// Tells whether refreshes may be started that nobody waits for.
    #[must_use]
    pub const fn refreshes(&self) -> bool {
        let RefreshRules {
            own_lifetimes,
            refresh_ahead,
            ..
        } = *self.refresh();
        own_lifetimes || refresh_ahead || self.stale_while_revalidate().is_some()
    }

    /// Says what the copy with these facts may do for a call at `now`, before anybody is asked.
    pub(crate) fn use_of(&self, facts: &Facts, chance: Option<u64>, now: Mono) -> Use {
        let Some(lifetime) = facts.lifetime.or_else(|| self.fresh_for()) else {
            return Use::Nothing;
        };
        if let Ok(age) = facts.fresh(lifetime, now) {
            let drawn = chance.zip(facts.cost).filter(|_| self.refresh().refresh_ahead);
            let remaining = lifetime.saturating_sub(age);
            return match drawn {
                Some((chance, cost)) if ahead::is_early(remaining, cost, chance) => {
                    Use::WhileRefreshing(Rung::Fresh, age)
                }
                Some(_) | None => Use::Fresh(age),
            };
        }
        self.in_window(facts, lifetime, now)
            .map_or(Use::Nothing, |age| Use::WhileRefreshing(Rung::Stale, age))
    }

    /// Returns the age of a copy inside its window: from the end of its lifetime to the end of the window, itself
    /// included (RFC 5861 §3), under the limit of the stale rung where there is one.
    fn in_window(&self, facts: &Facts, lifetime: Duration, now: Mono) -> Result<Duration, Skipped> {
        let window = match (facts.revalidate, self.stale_while_revalidate()) {
            // Rule G14: the lower of both.
            (Some(own), Some(ours)) => own.min(ours),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return Err(Skipped::TooOld),
        };
        let end = lifetime.saturating_add(window);
        let limit = self.ladder().max_age().map_or(end, |max_age| max_age.min(end));
        facts.stale(limit, now)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
