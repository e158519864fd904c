//! What a contract is refused for, at each limit and one past it.

use super::*;
use crate::{breaker::OpenFor, class::Outage, hold::HoldMode};

fn places(draft: DependencyDraft) -> Vec<String> {
    draft.check().map_or_else(
        |problems| problems.list().iter().map(|p| p.place.clone()).collect(),
        |_| Vec::new(),
    )
}

fn named() -> DependencyDraft {
    DependencyDraft {
        name: "stock".into(),
        timeout: Some(Duration::from_secs(1)),
        ..DependencyDraft::default()
    }
}

fn with_breaker(rules: BreakerRules) -> DependencyDraft {
    DependencyDraft {
        breaker: Some(BreakerRules {
            consecutive: Some(5),
            ..rules
        }),
        ..named()
    }
}

#[test]
fn e14_a_lease_shorter_than_the_timeout_is_refused_because_slow_answers_could_never_close() {
    let lease = |lease| BreakerRules {
        lease: Some(lease),
        ..BreakerRules::NONE
    };
    let second = Duration::from_secs(1);
    let short = with_breaker(lease(second - Duration::from_nanos(1)));
    assert_eq!(places(short), ["breaker.lease"]);
    assert_eq!(places(with_breaker(lease(second))), [""; 0]);
    assert_eq!(places(with_breaker(lease(second * 2))), [""; 0]);
}

#[test]
fn a_missing_lease_is_the_timeout() {
    let contract = with_breaker(BreakerRules::NONE).check().expect("a sound draft");
    assert_eq!(
        contract.breaker().and_then(|rules| rules.lease),
        Some(Duration::from_secs(1))
    );
}

#[test]
fn e14_an_open_period_that_would_never_end_is_refused() {
    let open_for = |longest| BreakerRules {
        open_for: OpenFor::Timed {
            first: Duration::from_secs(1),
            longest,
            jitter_ppm: 0,
        },
        ..BreakerRules::NONE
    };
    let day = Duration::from_secs(86_400);
    assert_eq!(places(with_breaker(open_for(day))), [""; 0]);
    let longer = open_for(day + Duration::from_nanos(1));
    assert_eq!(places(with_breaker(longer)), ["breaker.open_for_max"]);
    let shorter = open_for(Duration::from_secs(1) - Duration::from_nanos(1));
    assert_eq!(places(with_breaker(shorter)), ["breaker.open_for_max"]);
}

#[test]
fn e24_rows_that_contradict_each_other_or_reality_are_refused() {
    let row = |breaker| Row {
        breaker,
        lower_rung: true,
    };
    let rows = |rows: &[(Class, Row)]| DependencyDraft {
        rows: rows.to_vec(),
        ..named()
    };
    let timed_out = Class::Outage(Outage::TimedOut);
    assert_eq!(places(rows(&[(timed_out, row(Verdict::Neutral))])), [""; 0]);
    let twice = [
        (Class::OUTAGE, row(Verdict::Failure)),
        (timed_out, row(Verdict::Neutral)),
    ];
    assert_eq!(places(rows(&twice)), ["classification"]);
    assert_eq!(
        places(rows(&[(Class::OUTAGE, row(Verdict::Success))])),
        ["classification"]
    );
    for class in Class::ALL {
        let refused = !places(rows(&[(class, row(Verdict::Failure))])).is_empty();
        assert_eq!(refused, Table::is_fixed(class), "{class:?}");
    }
}

#[test]
fn e41_an_age_limit_of_zero_or_beyond_a_year_is_refused() {
    let with = |max_age| ReadDraft {
        name: "stock".into(),
        ladder: alloc::vec![RungRule::Stale { max_age }],
        ..ReadDraft::default()
    };
    let ns = Duration::from_nanos(1);
    let sound = |max_age| with(max_age).check().is_ok();
    assert_eq!([Duration::ZERO, ns].map(sound), [false, true]);
    let limit = Ladder::MAX_AGE_LIMIT;
    assert_eq!([limit - ns, limit, limit + ns].map(sound), [true, true, false]);
    assert!(!sound(Duration::MAX), "forever is not an age limit");
}

fn read_places(draft: ReadDraft) -> Vec<String> {
    let named = ReadDraft {
        name: "stock".into(),
        ..draft
    };
    named.check().map_or_else(
        |problems| problems.list().iter().map(|p| p.place.clone()).collect(),
        |_| Vec::new(),
    )
}

const STALE: RungRule = RungRule::Stale {
    max_age: Duration::from_secs(60),
};

#[test]
fn an_exact_read_is_given_nothing_but_what_was_asked_for_this_call() {
    let exact = ReadDraft {
        exact: true,
        ..ReadDraft::default()
    };
    let contract = ReadDraft {
        name: "price".into(),
        ..exact.clone()
    };
    let contract = contract.check().expect("a sound draft");
    let suiting = HoldMode::ALL.map(|mode| mode.suits(&contract));
    assert_eq!(suiting, [true, true, false, false, true]);
    let all_at_once = ReadDraft {
        fresh_for: Some(Duration::from_secs(1)),
        coalesce: true,
        ladder: alloc::vec![STALE, RungRule::Default],
        ..exact
    };
    assert_eq!(
        read_places(all_at_once),
        ["ladder[0]", "ladder[1]", "fresh_for", "coalesce"]
    );
}

#[test]
fn e58_a_ladder_that_contradicts_itself_is_refused() {
    let ladder = |rungs: &[RungRule]| {
        read_places(ReadDraft {
            ladder: rungs.to_vec(),
            ..ReadDraft::default()
        })
    };
    assert_eq!(ladder(&[STALE, RungRule::Default]), [""; 0]);
    assert_eq!(ladder(&[RungRule::Default, STALE]), ["ladder[0]"]);
    assert_eq!(ladder(&[STALE, STALE]), ["ladder[1]"]);
}

#[test]
fn a_lifetime_past_the_age_limit_is_refused_because_stale_would_never_answer() {
    let fresh_for = |span| {
        read_places(ReadDraft {
            fresh_for: Some(span),
            ladder: alloc::vec![STALE],
            ..ReadDraft::default()
        })
    };
    let limit = Duration::from_secs(60);
    assert_eq!(fresh_for(limit), [""; 0]);
    assert_eq!(fresh_for(limit + Duration::from_nanos(1)), ["fresh_for"]);
}

#[test]
fn a_name_needs_no_quoting_anywhere() {
    let sound = |name: &str| {
        let draft = ReadDraft {
            name: name.into(),
            ..ReadDraft::default()
        };
        draft.check().is_ok()
    };
    assert!(sound("a") && sound("Shop/stock-v1.2_eu") && sound(&"n".repeat(64)));
    for name in ["", "two words", "caf\u{e9}", "a\"b", "a\nb", &"n".repeat(65)] {
        assert!(!sound(name), "{name:?}");
    }
}
