//! Holds: what each mode does to each contract, when it ends, and who is told.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::time::Duration;

use evenkeel::{
    Answer, Cause, Ending, Engine, EventKind, Hold, HoldMode, ManualClock, Read, Reason, Rung, Skipped,
    State, default, stale,
};
use support::{End, Fail, NS, Origin, SECOND, engine, wall};

type Guard = Read<u32, Fail>;

fn hold(mode: HoldMode, lasts: Option<Duration>) -> Hold {
    Hold {
        mode,
        by: "ana".into(),
        why: "migration".into(),
        lasts,
    }
}

/// The parts of a contract that a hold has to do with.
#[derive(Clone, Copy, Debug)]
struct Shape {
    stale: bool,
    default: bool,
    fresh: bool,
    /// The age of what is kept; nothing is kept without one.
    kept: Option<Duration>,
}

const FRESH: Duration = SECOND;
const STALE: Duration = Duration::from_secs(60);

impl Shape {
    fn every() -> impl Iterator<Item = Self> {
        let kept = [
            None,
            Some(Duration::ZERO),
            Some(STALE),
            Some(STALE.saturating_add(NS)),
        ];
        (0..8_u8).flat_map(move |bits| {
            kept.map(|kept| Self {
                stale: bits & 1 != 0,
                default: bits & 2 != 0,
                fresh: bits & 4 != 0,
                kept,
            })
        })
    }

    fn build(self) -> (ManualClock, Engine, Guard) {
        let (clock, engine) = engine();
        let mut builder = engine.read::<u32>("g").classify(Fail::class);
        if self.fresh {
            builder = builder.fresh_for(FRESH);
        }
        if self.stale {
            builder = builder.ladder([stale(STALE)]);
        }
        if self.default {
            builder = builder.ladder([default(|| 1)]);
        }
        let guard = builder.build().unwrap();
        if let Some(age) = self.kept {
            guard.seed((), "k", 2, Some(wall(&clock) - age)).unwrap();
        }
        (clock, engine, guard)
    }

    fn is_fresh(self) -> bool {
        self.fresh && self.kept.is_some_and(|age| age < FRESH)
    }

    fn is_stale(self) -> bool {
        self.stale && self.kept.is_some_and(|age| age <= STALE)
    }

    /// What a caller gets from the rungs that `mode` leaves, while the dependency is not asked.
    fn expected(self, mode: HoldMode) -> Option<Rung> {
        let stale = self.is_stale().then_some(Rung::Stale);
        let default = self.default.then_some(Rung::Default);
        match mode {
            HoldMode::ForcedOff => None,
            HoldMode::ForcedOpen if self.is_fresh() => Some(Rung::Fresh),
            HoldMode::ForcedOpen => stale.or(default),
            HoldMode::StaleOnly => stale,
            HoldMode::DefaultOnly => default,
            HoldMode::ForcedClosed => Some(Rung::Live),
        }
    }
}

async fn call(guard: &Guard, origin: &Origin, says: Result<u32, Fail>) -> End<u32> {
    guard.call((), "k", |_| origin.clone().ask_now(says)).await
}

#[tokio::test]
async fn a_probe_by_hand_gets_around_no_hold() {
    for shape in Shape::every() {
        for mode in HoldMode::ALL {
            let when = format!("{mode:?} on {shape:?}");
            let (_, _, guard) = shape.build();
            guard.hold(hold(mode, None)).unwrap();
            let origin = Origin::default();
            let probed = guard.probe((), "k", |_| origin.clone().ask_now(Ok(9))).await;
            if mode == HoldMode::ForcedClosed {
                assert_eq!(probed.unwrap().rung, Rung::Live, "{when}");
                assert_eq!(origin.asked(), 1, "{when}");
                continue;
            }
            assert_eq!(origin.asked(), 0, "a probe: {when}");
            let end = call(&guard, &origin, Ok(9)).await;
            assert_eq!(probed, end, "a probe gets what a call gets: {when}");
        }
    }
}

#[tokio::test]
async fn every_mode_does_to_every_contract_what_the_table_says() {
    for shape in Shape::every() {
        for mode in HoldMode::ALL {
            let when = format!("{mode:?} on {shape:?}");
            let (_, _, guard) = shape.build();
            guard.hold(hold(mode, None)).unwrap();
            let origin = Origin::default();
            let end = call(&guard, &origin, Ok(9)).await;
            if mode == HoldMode::ForcedClosed {
                let rung = if shape.is_fresh() { Rung::Fresh } else { Rung::Live };
                assert_eq!(end.unwrap().rung, rung, "{when}");
                assert_eq!(origin.asked(), u64::from(!shape.is_fresh()), "{when}");
                continue;
            }
            assert_eq!(origin.asked(), 0, "{when}");
            match (shape.expected(mode), end) {
                (
                    Some(expected),
                    Ok(Answer {
                        rung, reason, value, ..
                    }),
                ) => {
                    assert_eq!(rung, expected, "{when}");
                    assert_eq!(value, if rung == Rung::Default { 1 } else { 2 }, "{when}");
                    // A fresh answer is a full one: nothing kept it from being live.
                    let held = (rung != Rung::Fresh).then_some(Reason::Held);
                    assert_eq!(reason, held, "{when}");
                }
                (None, Err(refused)) => {
                    assert_eq!(
                        (refused.ending, refused.reason, refused.cause),
                        (Ending::Refused, Some(Reason::Held), None),
                        "{when}"
                    );
                    let left_out = match mode {
                        HoldMode::StaleOnly if shape.default => Some(Rung::Default),
                        HoldMode::DefaultOnly if shape.stale => Some(Rung::Stale),
                        HoldMode::ForcedOff => {
                            assert!(refused.skipped.is_empty(), "{when}: no rung is tried");
                            None
                        }
                        HoldMode::StaleOnly
                        | HoldMode::DefaultOnly
                        | HoldMode::ForcedOpen
                        | HoldMode::ForcedClosed => None,
                    };
                    if let Some(rung) = left_out {
                        assert_eq!(refused.skipped.why(rung), Some(Skipped::Held), "{when}");
                    }
                }
                (expected, end) => panic!("{when}: expected {expected:?}, got {end:?}"),
            }
        }
    }
}

#[tokio::test]
async fn age_and_prohibitions_apply_under_a_hold_too() {
    let (clock, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .classify(Fail::class)
        .ladder([stale(STALE)])
        .build()
        .unwrap();
    guard.hold(hold(HoldMode::StaleOnly, None)).unwrap();
    guard.seed((), "k", 2, Some(wall(&clock))).unwrap();
    let picky = guard
        .call_work((), "k", Some(&|_: &u32| false), |_, _| async { Ok(9) })
        .await;
    assert_eq!(
        picky.unwrap_err().skipped.why(Rung::Stale),
        Some(Skipped::Forbidden)
    );
    clock.advance(STALE + NS);
    let refused = call(&guard, &Origin::default(), Ok(9)).await.unwrap_err();
    assert_eq!(refused.skipped.why(Rung::Stale), Some(Skipped::TooOld));
}

#[tokio::test]
async fn an_exact_guard_takes_only_holds_that_serve_nothing_old() {
    let (_, engine) = engine();
    let guard = engine
        .read::<u32>("balance")
        .classify(Fail::class)
        .exact()
        .build()
        .unwrap();
    let origin = Origin::default();
    for mode in HoldMode::ALL {
        match (mode, guard.hold(hold(mode, None))) {
            (HoldMode::StaleOnly | HoldMode::DefaultOnly, Err(problems)) => {
                assert_eq!(problems.list()[0].place, "mode");
                assert_eq!(guard.held().map(|held| held.mode), Some(HoldMode::ForcedOff));
            }
            (HoldMode::ForcedOpen | HoldMode::ForcedOff, Ok(())) => {
                let refused = call(&guard, &origin, Ok(9)).await.unwrap_err();
                assert_eq!(refused.reason, Some(Reason::Held));
            }
            (HoldMode::ForcedClosed, Ok(())) => {
                assert_eq!(call(&guard, &origin, Ok(9)).await.unwrap().rung, Rung::Live);
            }
            (mode, result) => panic!("{mode:?}: {result:?}"),
        }
    }
    assert_eq!(origin.asked(), 1);
}

#[tokio::test]
async fn a_hold_ends_at_its_expiry_to_the_nanosecond_and_is_told_once() {
    for (after, is_held) in [(SECOND - NS, true), (SECOND, false), (SECOND + NS, false)] {
        let (clock, engine) = engine();
        let guard = engine.read::<u32>("g").classify(Fail::class).build().unwrap();
        guard.hold(hold(HoldMode::ForcedOff, Some(SECOND))).unwrap();
        clock.advance(after);
        let origin = Origin::default();
        let end = call(&guard, &origin, Ok(9)).await;
        assert_eq!(end.is_err(), is_held, "after {after:?}");
        if let Err(refused) = end {
            assert_eq!(refused.retry_after, Some(SECOND - after));
        }
        assert_eq!(guard.held().is_some(), is_held);
        drop(call(&guard, &origin, Ok(9)).await);
        let mut told = vec![EventKind::Held {
            mode: HoldMode::ForcedOff,
            by: "ana".into(),
            why: "migration".into(),
            lasts: Some(SECOND),
        }];
        if !is_held {
            told.push(EventKind::Released {
                mode: HoldMode::ForcedOff,
                by: None,
            });
        }
        let events = engine.drain_events();
        assert!(events.iter().all(|event| &*event.name == "g"));
        assert_eq!(
            events.into_iter().map(|event| event.kind).collect::<Vec<_>>(),
            told
        );
    }
}

#[tokio::test]
async fn a_hold_without_expiry_lasts_until_released_and_promises_no_time() {
    let (clock, engine) = engine();
    let guard = engine.read::<u32>("g").classify(Fail::class).build().unwrap();
    guard.hold(hold(HoldMode::ForcedOff, None)).unwrap();
    clock.advance(Duration::from_secs(365 * 86_400));
    let refused = call(&guard, &Origin::default(), Ok(9)).await.unwrap_err();
    assert_eq!((refused.reason, refused.retry_after), (Some(Reason::Held), None));
    assert_eq!(guard.release("bo").unwrap().by, "ana");
    assert_eq!(guard.release("bo"), None);
    assert!(call(&guard, &Origin::default(), Ok(9)).await.is_ok());
    let last = engine.drain_events().pop().unwrap().kind;
    assert_eq!(
        last,
        EventKind::Released {
            mode: HoldMode::ForcedOff,
            by: Some("bo".into())
        }
    );
}

#[tokio::test]
async fn the_expiry_of_a_hold_that_lets_calls_through_is_no_promise_of_recovery() {
    let (_, engine) = engine();
    let guard = engine.read::<u32>("g").classify(Fail::class).build().unwrap();
    guard.hold(hold(HoldMode::ForcedClosed, Some(SECOND))).unwrap();
    let refused = call(&guard, &Origin::default(), Err(Fail::Down))
        .await
        .unwrap_err();
    assert_eq!(
        (refused.reason, refused.retry_after),
        (Some(Reason::DependencyFailed), None)
    );
}

#[test]
fn a_later_hold_replaces_the_earlier_and_a_wrong_one_changes_nothing() {
    let (_, engine) = engine();
    let guard = engine.read::<u32>("g").classify(Fail::class).build().unwrap();
    guard.hold(hold(HoldMode::ForcedOff, None)).unwrap();
    let problems = guard
        .hold(Hold {
            by: String::new(),
            why: " \t".into(),
            ..hold(HoldMode::ForcedOpen, None)
        })
        .unwrap_err();
    let places: Vec<_> = problems.list().iter().map(|problem| &*problem.place).collect();
    assert_eq!(places, ["by", "why"]);
    assert_eq!(guard.held().unwrap().mode, HoldMode::ForcedOff);
    guard
        .hold(hold(HoldMode::ForcedOpen, Some(Duration::MAX)))
        .unwrap();
    assert_eq!(guard.held().unwrap().mode, HoldMode::ForcedOpen);
    assert_eq!(engine.drain_events().len(), 2);
}

#[tokio::test]
async fn clones_of_a_guard_share_its_hold_and_other_guards_do_not() {
    let (_, engine) = engine();
    let guard = engine.read::<u32>("g").classify(Fail::class).build().unwrap();
    let other = engine
        .read::<u32>("other")
        .from(guard.dependency())
        .classify(Fail::class)
        .build()
        .unwrap();
    guard.clone().hold(hold(HoldMode::ForcedOff, None)).unwrap();
    let origin = Origin::default();
    assert!(call(&guard, &origin, Ok(9)).await.is_err());
    assert!(call(&other, &origin, Ok(9)).await.is_ok());
}

#[tokio::test]
async fn a_reset_closes_the_breaker_and_says_who_and_why() {
    let (_, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .breaker(|b| b.consecutive(1).open_until_probed())
        .classify(Fail::class)
        .build()
        .unwrap();
    let origin = Origin::default();
    drop(call(&guard, &origin, Err(Fail::Down)).await);
    assert_eq!(guard.dependency().status().state, Some(State::Open));
    drop(engine.drain_events());
    guard.dependency().reset("ana", "the database is back");
    assert_eq!(guard.dependency().status().state, Some(State::Closed));
    guard.dependency().reset("ana", "once more");
    let events = engine.drain_events();
    assert_eq!(
        events.len(),
        3,
        "the second reset has nothing to close, and is noted"
    );
    assert!(
        matches!(&events[0].kind, EventKind::Breaker(change) if (change.from, change.to, change.cause)
            == (State::Open, State::Closed, Cause::Reset))
    );
    assert_eq!(
        events[1].kind,
        EventKind::Reset {
            by: "ana".into(),
            why: "the database is back".into()
        }
    );
    assert!(call(&guard, &origin, Ok(9)).await.is_ok());
}
