//! What copies may do at each edge of their lifetimes and windows, and what contracts are refused for.

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
    let used = |age| contract.use_of(&aged(age), None, NOW);
    assert_eq!(used(S * 10 - NS), Use::Fresh(S * 10 - NS));
    assert_eq!(used(S * 10), Use::WhileRefreshing(Rung::Stale, S * 10));
    assert_eq!(used(S * 30), Use::WhileRefreshing(Rung::Stale, S * 30));
    assert_eq!(used(S * 30 + NS), Use::Nothing);
}

#[test]
fn g14_the_stale_rung_the_copy_and_the_contract_each_end_the_window() {
    let contract = draft(Some(S * 25), window(S * 20))
        .check()
        .expect("a sound draft");
    assert_eq!(
        contract.use_of(&aged(S * 25), None, NOW),
        Use::WhileRefreshing(Rung::Stale, S * 25)
    );
    assert_eq!(contract.use_of(&aged(S * 25 + NS), None, NOW), Use::Nothing);
    let with = |facts: Facts| contract.use_of(&facts, None, NOW);
    let short = Facts {
        revalidate: Some(S * 2),
        ..aged(S * 12)
    };
    assert_eq!(with(short), Use::WhileRefreshing(Rung::Stale, S * 12));
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
            None,
            NOW,
        )
    };
    assert_eq!(used(S * 30, S * 29), Use::Fresh(S * 29));
    assert_eq!(used(S, S), Use::WhileRefreshing(Rung::Stale, S));
    assert_eq!(used(S, S * 7), Use::Nothing);
    assert_eq!(
        used(Duration::ZERO, Duration::ZERO),
        Use::WhileRefreshing(Rung::Stale, Duration::ZERO)
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
        assert_eq!(contract.use_of(&facts, None, NOW), Use::Nothing, "{facts:?}");
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
    assert_eq!(contract.use_of(&own, None, NOW), Use::Nothing);
    let permitted = Facts {
        revalidate: Some(S * 2),
        ..own
    };
    assert_eq!(
        contract.use_of(&permitted, None, NOW),
        Use::WhileRefreshing(Rung::Stale, S * 3)
    );
    let without_lifetime = Facts {
        lifetime: None,
        ..permitted
    };
    assert_eq!(contract.use_of(&without_lifetime, None, NOW), Use::Nothing);
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
                refresh_ahead: true,
                jitter_ppm: 1,
                cool_down: None,
                finish_within: Some(S),
            },
        )
    };
    let found = places(exact);
    for setting in [
        "own_lifetimes",
        "stale_while_revalidate",
        "soft_timeout",
        "refresh_ahead",
        "jitter",
        "finish_within",
    ] {
        assert!(found.contains(&setting.into()), "{setting}");
    }
}

#[test]
fn r19_a_fresh_copy_is_refreshed_ahead_by_chance_and_only_where_that_is_declared() {
    let ahead = |refresh_ahead| {
        let rules = RefreshRules {
            refresh_ahead,
            ..RefreshRules::default()
        };
        draft(None, rules).check().expect("a sound draft")
    };
    let facts = Facts {
        cost: Some(S),
        ..aged(S * 9)
    };
    let unlucky = ahead(true).use_of(&facts, Some(u64::MAX), NOW);
    let lucky = ahead(true).use_of(&facts, Some(0), NOW);
    assert_eq!(lucky, Use::WhileRefreshing(Rung::Fresh, S * 9));
    assert_eq!(unlucky, Use::Fresh(S * 9));
    assert_eq!(ahead(true).use_of(&facts, None, NOW), Use::Fresh(S * 9));
    assert_eq!(ahead(false).use_of(&facts, Some(0), NOW), Use::Fresh(S * 9));
    assert!(ahead(true).refreshes() && !ahead(false).refreshes());
}

#[test]
fn what_is_about_lifetimes_needs_one_and_stays_in_its_range() {
    let with = |fresh_for, rules| {
        places(ReadDraft {
            fresh_for,
            ..draft(None, rules)
        })
    };
    let rules = RefreshRules {
        refresh_ahead: true,
        jitter_ppm: 500_000,
        cool_down: Some(S * 3600),
        ..RefreshRules::default()
    };
    assert_eq!(with(Some(S), rules), [""; 0]);
    assert_eq!(with(None, rules), ["refresh_ahead", "jitter"]);
    let past = RefreshRules {
        jitter_ppm: 500_001,
        cool_down: Some(S * 3600 + NS),
        ..rules
    };
    assert_eq!(with(Some(S), past), ["jitter", "cool_down"]);
}

#[test]
fn work_may_only_go_on_for_a_while_and_where_its_answer_has_a_use() {
    let with = |span, max_age, fresh_for| {
        let rules = RefreshRules {
            finish_within: Some(span),
            ..RefreshRules::default()
        };
        places(ReadDraft {
            fresh_for,
            ..draft(max_age, rules)
        })
    };
    assert_eq!(with(S, Some(S), None), [""; 0]);
    assert_eq!(with(S * 3600, None, Some(S)), [""; 0]);
    assert_eq!(with(S, None, None), ["finish_within"]);
    assert_eq!(with(S * 3600 + NS, None, Some(S)), ["finish_within"]);
    assert_eq!(with(Duration::ZERO, None, Some(S)), ["finish_within"]);
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

#[test]
fn r19_a_copy_that_is_refreshed_ahead_is_served_fresh_whatever_comes_of_it() {
    let rules = RefreshRules {
        refresh_ahead: true,
        ..RefreshRules::default()
    };
    let contract = draft(None, rules).check().expect("a sound draft");
    let table = crate::Table::default();
    let facts = Facts {
        cost: Some(S),
        ..aged(S * 9)
    };
    for refresh in [
        Refresh::UnderWay,
        Refresh::Refused(Reason::BreakerOpen),
        Refresh::Impossible,
    ] {
        let (mut call, first) = crate::ReadCall::begin(&contract, &table, None, None, NOW);
        assert_eq!(first, crate::Step::Look);
        call.draw(0);
        assert_eq!(call.found(Some(facts), NOW), crate::Step::Refresh);
        let fresh = crate::Step::Serve(Rung::Fresh, Some(S * 9));
        assert_eq!((call.refreshed(refresh), call.reason()), (fresh, None));
    }
}
