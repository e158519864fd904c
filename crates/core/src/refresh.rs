//! Decides what a kept copy may do for a call before anybody is asked: answer it, or answer it while a refresh runs.
//! It exists so that the lifetime and the window of each copy are read in one place, for every driver.
//! It refuses windows without a limit, and to call a copy revalidated while nobody asks.

use core::time::Duration;

use crate::{
    age::Facts,
    contract::ReadContract,
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
    /// It is the answer at this age, while a refresh runs.
    WhileRefreshing(Duration),
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
        ] {
            if on && exact {
                problems.add(
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
        let Some(window) = window else { return };
        problems.span(
            &["stale_while_revalidate"],
            window,
            Duration::from_millis(1),
            Ladder::MAX_AGE_LIMIT,
        );
        if ladder.max_age().is_none() {
            problems.add(
                "stale_while_revalidate",
                "set without a stale rung",
                "beside a stale rung, which says how old an answer may be at all",
                "add `stale` to the ladder, or remove it",
            );
        }
        if fresh_for.is_none() && !self.own_lifetimes {
            problems.add(
                "stale_while_revalidate",
                "set without `fresh_for`",
                "beside `fresh_for`: the window begins where the lifetime ends",
                "add `fresh_for`, or remove it",
            );
        }
    }
}

impl RefreshRules {
    fn check_soft(soft: Duration, deadline: Option<Duration>, ladder: &Ladder, problems: &mut Problems) {
        problems.span(
            &["soft_timeout"],
            soft,
            Duration::from_millis(1),
            Duration::from_secs(3600),
        );
        if ladder.max_age().is_none() {
            problems.add(
                "soft_timeout",
                "set without a stale rung",
                "beside a stale rung, which says what may be served then",
                "add `stale` to the ladder, or remove it",
            );
        }
        if let Some(deadline) = deadline.filter(|deadline| *deadline <= soft) {
            problems.add(
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
        self.refresh().own_lifetimes || self.stale_while_revalidate().is_some()
    }

    /// Says what the copy with these facts may do for a call at `now`, before anybody is asked.
    pub(crate) fn use_of(&self, facts: &Facts, now: Mono) -> Use {
        let Some(lifetime) = facts.lifetime.or_else(|| self.fresh_for()) else {
            return Use::Nothing;
        };
        if let Ok(age) = facts.fresh(lifetime, now) {
            return Use::Fresh(age);
        }
        self.in_window(facts, lifetime, now)
            .map_or(Use::Nothing, Use::WhileRefreshing)
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
mod tests {
    use super::*;
    use crate::{contract::ReadDraft, ladder::RungRule};
    use alloc::{string::String, vec, vec::Vec};

    const S: Duration = Duration::from_secs(1);
    const NS: Duration = Duration::from_nanos(1);
    const NOW: Mono = Mono::from_nanos(1_000_000_000_000);

    fn draft(max_age: Option<Duration>, refresh: RefreshRules) -> ReadDraft {
        ReadDraft {
            name: "stock".into(),
            fresh_for: Some(S * 10),
            ladder: max_age
                .map(|max_age| vec![RungRule::Stale { max_age }])
                .unwrap_or_default(),
            refresh,
            ..ReadDraft::default()
        }
    }

    fn window(span: Duration) -> RefreshRules {
        RefreshRules {
            stale_while_revalidate: Some(span),
            ..RefreshRules::default()
        }
    }

    fn places(draft: ReadDraft) -> Vec<String> {
        let problems = draft.check().err().unwrap_or_default();
        problems.list().iter().map(|p| p.place.clone()).collect()
    }

    fn aged(age: Duration) -> Facts {
        Facts {
            observed: Some(NOW.before(age)),
            ..Facts::default()
        }
    }

    #[test]
    fn g15_the_window_begins_where_the_lifetime_ends_and_its_last_moment_counts() {
        let contract = draft(Some(S * 60), window(S * 20))
            .check()
            .expect("a sound draft");
        let used = |age| contract.use_of(&aged(age), NOW);
        assert_eq!(used(S * 10 - NS), Use::Fresh(S * 10 - NS));
        assert_eq!(used(S * 10), Use::WhileRefreshing(S * 10));
        assert_eq!(used(S * 30), Use::WhileRefreshing(S * 30));
        assert_eq!(used(S * 30 + NS), Use::Nothing);
    }

    #[test]
    fn g14_the_stale_rung_the_copy_and_the_contract_each_end_the_window() {
        let contract = draft(Some(S * 25), window(S * 20))
            .check()
            .expect("a sound draft");
        assert_eq!(contract.use_of(&aged(S * 25), NOW), Use::WhileRefreshing(S * 25));
        assert_eq!(contract.use_of(&aged(S * 25 + NS), NOW), Use::Nothing);
        let with = |facts: Facts| contract.use_of(&facts, NOW);
        let short = Facts {
            revalidate: Some(S * 2),
            ..aged(S * 12)
        };
        assert_eq!(with(short), Use::WhileRefreshing(S * 12));
        let past = Facts {
            revalidate: Some(S * 2 - NS),
            ..aged(S * 12)
        };
        assert_eq!(with(past), Use::Nothing);
        let own_limit = Facts {
            own_limit: Some(S * 11),
            ..aged(S * 12)
        };
        assert_eq!(with(own_limit), Use::Nothing);
    }

    #[test]
    fn a_copys_own_lifetime_replaces_the_contracts_be_it_longer_or_shorter() {
        let contract = draft(Some(S * 60), window(S * 5)).check().expect("a sound draft");
        let used = |lifetime, age| {
            contract.use_of(
                &Facts {
                    lifetime: Some(lifetime),
                    ..aged(age)
                },
                NOW,
            )
        };
        assert_eq!(used(S * 30, S * 29), Use::Fresh(S * 29));
        assert_eq!(used(S, S), Use::WhileRefreshing(S));
        assert_eq!(used(S, S * 7), Use::Nothing);
        assert_eq!(
            used(Duration::ZERO, Duration::ZERO),
            Use::WhileRefreshing(Duration::ZERO)
        );
    }

    #[test]
    fn g16_what_may_not_be_served_stale_has_no_window() {
        let contract = draft(Some(S * 60), window(S * 5)).check().expect("a sound draft");
        for facts in [
            Facts {
                stale_forbidden: true,
                ..aged(S * 12)
            },
            Facts {
                forbidden: true,
                ..aged(S * 12)
            },
            Facts::default(),
            Facts {
                observed: Some(NOW.after(NS)),
                ..Facts::default()
            },
        ] {
            assert_eq!(contract.use_of(&facts, NOW), Use::Nothing, "{facts:?}");
        }
    }

    #[test]
    fn a_copy_has_no_window_without_a_permission_of_its_own_or_of_the_contract() {
        let rules = RefreshRules {
            own_lifetimes: true,
            ..RefreshRules::default()
        };
        let contract = ReadDraft {
            fresh_for: None,
            ..draft(None, rules)
        };
        let contract = contract.check().expect("a sound draft");
        let own = Facts {
            lifetime: Some(S),
            ..aged(S * 3)
        };
        assert_eq!(contract.use_of(&own, NOW), Use::Nothing);
        let permitted = Facts {
            revalidate: Some(S * 2),
            ..own
        };
        assert_eq!(contract.use_of(&permitted, NOW), Use::WhileRefreshing(S * 3));
        let without_lifetime = Facts {
            lifetime: None,
            ..permitted
        };
        assert_eq!(contract.use_of(&without_lifetime, NOW), Use::Nothing);
    }

    #[test]
    fn a_window_needs_a_stale_rung_a_lifetime_and_a_sound_length() {
        assert_eq!(places(draft(Some(S * 60), window(S))), [""; 0]);
        assert_eq!(places(draft(None, window(S))), ["stale_while_revalidate"]);
        let ms = Duration::from_millis(1);
        for (span, sound) in [
            (ms - NS, false),
            (ms, true),
            (Ladder::MAX_AGE_LIMIT, true),
            (Ladder::MAX_AGE_LIMIT + NS, false),
        ] {
            let found = places(draft(Some(S * 60), window(span)));
            assert_eq!(found.is_empty(), sound, "{span:?}");
        }
        let without_lifetime = ReadDraft {
            fresh_for: None,
            ..draft(Some(S * 60), window(S))
        };
        assert_eq!(places(without_lifetime), ["stale_while_revalidate"]);
    }

    #[test]
    fn an_exact_read_has_neither_windows_nor_lifetimes() {
        let exact = ReadDraft {
            exact: true,
            fresh_for: None,
            ..draft(
                None,
                RefreshRules {
                    own_lifetimes: true,
                    stale_while_revalidate: Some(S),
                    soft_timeout: Some(S),
                },
            )
        };
        let found = places(exact);
        for setting in ["own_lifetimes", "stale_while_revalidate", "soft_timeout"] {
            assert!(found.contains(&setting.into()), "{setting}");
        }
    }

    #[test]
    fn a_soft_timeout_needs_a_stale_rung_and_a_later_deadline() {
        let soft = |soft, deadline, max_age| {
            let rules = RefreshRules {
                soft_timeout: Some(soft),
                ..RefreshRules::default()
            };
            places(ReadDraft {
                deadline,
                ..draft(max_age, rules)
            })
        };
        let minute = Some(S * 60);
        assert_eq!(soft(S, None, minute), [""; 0]);
        assert_eq!(soft(S, Some(S + NS), minute), [""; 0]);
        assert_eq!(soft(S, Some(S), minute), ["soft_timeout"]);
        assert_eq!(soft(S, None, None), ["soft_timeout"]);
        let ms = Duration::from_millis(1);
        let hour = S * 3600;
        for (span, sound) in [(ms - NS, false), (ms, true), (hour, true), (hour + NS, false)] {
            assert_eq!(soft(span, None, minute).is_empty(), sound, "{span:?}");
        }
    }
}
