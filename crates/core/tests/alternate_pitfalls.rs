//! The alternate rung by itself: the time that is kept free for it, and what a contract with one is refused for.
#![cfg(not(loom))]

use core::time::Duration;

use evenkeel_core::Class;
use evenkeel_core::{
    HoldMode, Limit, Mono, Outage, ReadCall, ReadContract, ReadDraft, Reason, Rung, RungRule, Skipped, Step,
    Table,
};

const S: Duration = Duration::from_secs(1);
const NS: Duration = Duration::from_nanos(1);
const NOW: Mono = Mono::from_nanos(1_000_000_000_000);

const fn alternate(timeout: Option<Duration>) -> RungRule {
    RungRule::Alternate { timeout }
}

fn draft(deadline: Option<Duration>, ladder: &[RungRule]) -> ReadDraft {
    ReadDraft {
        name: "stock".into(),
        deadline,
        ladder: ladder.to_vec(),
        ..ReadDraft::default()
    }
}

fn contract(deadline: Option<Duration>, ladder: &[RungRule]) -> ReadContract {
    draft(deadline, ladder).check().expect("a sound draft")
}

fn places(draft: ReadDraft) -> Vec<String> {
    let problems = draft.check().err().unwrap_or_default();
    problems.list().iter().map(|p| p.place.clone()).collect()
}

const TIMED_OUT: Class = Class::Outage(Outage::TimedOut);

#[test]
fn case_027_the_alternates_time_is_kept_free_while_the_dependency_is_asked() {
    let limit = |deadline, timeout, reserve: Option<Duration>| {
        let contract = contract(deadline, &[alternate(reserve)]);
        let table = Table::default();
        let (mut call, _) = ReadCall::begin(&contract, &table, timeout, None, NOW);
        call.admitted(NOW)
    };
    let attempt = |limit| Step::Attempt(limit);
    let deadline = attempt(Limit::Deadline(NOW.after(S * 2)));
    assert_eq!(limit(Some(S * 3), None, Some(S)), deadline);
    assert_eq!(limit(Some(S * 3), Some(S * 2 + NS), Some(S)), deadline);
    assert_eq!(
        limit(Some(S * 3), Some(S * 2), Some(S)),
        attempt(Limit::Timeout(NOW.after(S * 2)))
    );
    assert_eq!(limit(None, None, Some(S)), attempt(Limit::None));
}

#[test]
fn case_027_an_alternate_gets_what_is_left_and_at_the_deadline_it_is_passed_over_for_local_rungs() {
    let contract = contract(Some(S * 3), &[alternate(Some(S)), RungRule::Default]);
    let table = Table::default();
    for (after, expected) in [
        (S, Ok(Limit::Timeout(NOW.after(S * 2)))),
        (S * 2 + NS, Ok(Limit::Deadline(NOW.after(S * 3)))),
        (S * 3 - NS, Ok(Limit::Deadline(NOW.after(S * 3)))),
        (S * 3, Err(Step::Serve(Rung::Default, None))),
    ] {
        let (mut call, _) = ReadCall::begin(&contract, &table, None, None, NOW);
        assert_eq!(call.attempted(TIMED_OUT, false), Step::Alternate);
        assert_eq!(call.alternate(NOW.after(after)), expected, "{after:?}");
        let why = call.skips().why(Rung::Alternate);
        assert_eq!(why, expected.is_err().then_some(Skipped::NoTime), "{after:?}");
    }
}

#[test]
fn e57_the_first_cause_stays_the_reason_when_the_alternate_fails_too() {
    let contract = contract(None, &[alternate(None)]);
    let table = Table::default();
    let (mut call, _) = ReadCall::begin(&contract, &table, None, None, NOW);
    assert_eq!(call.attempted(Class::of_status(503), false), Step::Alternate);
    // The error answer is passed on: nobody could do better.
    assert_eq!(call.alternate_skipped(Skipped::Failed), Step::Fail);
    assert_eq!(call.reason(), Some(Reason::ErrorAnswer));
}

#[test]
fn e58_an_alternate_without_room_for_it_or_twice_or_behind_the_default_is_refused() {
    let one = alternate(Some(S));
    assert_eq!(places(draft(Some(S + NS), &[one])), [""; 0]);
    assert_eq!(places(draft(Some(S), &[one])), ["ladder[0].alternate"]);
    assert_eq!(
        places(draft(Some(S), &[alternate(None)])),
        ["ladder[0].alternate"]
    );
    assert_eq!(places(draft(None, &[alternate(None)])), [""; 0]);
    assert_eq!(places(draft(None, &[one, one])), ["ladder[1]"]);
    assert_eq!(places(draft(None, &[RungRule::Default, one])), ["ladder[0]"]);
}

#[test]
fn an_exact_read_may_have_an_alternate_because_it_is_asked_for_this_call() {
    let exact = ReadDraft {
        exact: true,
        ..draft(None, &[alternate(None)])
    };
    assert_eq!(places(exact), [""; 0]);
}

#[test]
fn a_hold_that_keeps_calls_from_the_dependency_leaves_the_alternate() {
    let contract = contract(None, &[alternate(None)]);
    let table = Table::default();
    let first = |hold| ReadCall::begin(&contract, &table, None, Some(hold), NOW).1;
    assert_eq!(first(HoldMode::ForcedOpen), Step::Alternate);
    for hold in [HoldMode::ForcedOff, HoldMode::StaleOnly, HoldMode::DefaultOnly] {
        assert_eq!(first(hold), Step::Refuse, "{hold:?}");
    }
}

#[test]
fn e60_every_refusal_of_the_alternate_has_its_word() {
    let words = [
        (Reason::BreakerOpen, Skipped::BreakerOpen),
        (Reason::Ramping, Skipped::BreakerOpen),
        (Reason::AtCapacity, Skipped::AtCapacity),
        (Reason::Held, Skipped::Held),
    ];
    for (reason, word) in words {
        assert_eq!(Skipped::of_refusal(reason), word);
    }
}
