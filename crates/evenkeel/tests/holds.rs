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

#[tokio::test]
async fn a_held_dependency_gets_nothing_whoever_asks_it_and_callers_get_their_own_ladder() {
    let (clock, engine) = engine();
    let dependency = engine.dependency("d").build().unwrap();
    let plain = engine
        .read::<u32>("plain")
        .from(&dependency)
        .classify(Fail::class)
        .build()
        .unwrap();
    let laddered = engine
        .read::<u32>("laddered")
        .from(&dependency)
        .classify(Fail::class)
        .ladder([stale(STALE), default(|| 1)])
        .build()
        .unwrap();
    let elsewhere = engine.read::<u32>("other").classify(Fail::class).build().unwrap();
    laddered.seed((), "k", 2, Some(wall(&clock))).unwrap();
    let origin = Origin::default();
    for (mode, rung) in [
        (HoldMode::ForcedOpen, Some(Rung::Stale)),
        (HoldMode::ForcedOff, None),
    ] {
        dependency.hold(hold(mode, None)).unwrap();
        let refused = call(&plain, &origin, Ok(9)).await.unwrap_err();
        assert_eq!(refused.reason, Some(Reason::Held), "{mode:?}");
        let end = call(&laddered, &origin, Ok(9)).await;
        assert_eq!(end.ok().map(|answer| answer.rung), rung, "{mode:?}");
    }
    assert_eq!(origin.asked(), 0);
    assert!(
        call(&elsewhere, &origin, Ok(9)).await.is_ok(),
        "another dependency"
    );
    assert_eq!(
        dependency.release("bo").map(|hold| hold.mode),
        Some(HoldMode::ForcedOff)
    );
    assert_eq!(call(&plain, &origin, Ok(9)).await.unwrap().rung, Rung::Live);
}

#[tokio::test]
async fn a_dependency_that_is_forced_closed_is_asked_although_its_breaker_is_open() {
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
    guard
        .dependency()
        .hold(hold(HoldMode::ForcedClosed, None))
        .unwrap();
    assert_eq!(call(&guard, &origin, Ok(9)).await.unwrap().rung, Rung::Live);
}

#[tokio::test]
async fn of_two_holds_the_stricter_is_in_force_whichever_came_first() {
    let origin = Origin::default();
    for of_guard in HoldMode::ALL {
        for of_dependency in [HoldMode::ForcedOpen, HoldMode::ForcedOff, HoldMode::ForcedClosed] {
            let alone = |mode| async move {
                let (guard, origin) = (both_rungs(), Origin::default());
                guard.hold(hold(mode, None)).unwrap();
                let end = call(&guard, &origin, Ok(9)).await;
                (end, origin.asked())
            };
            let stricter = of_guard.or_stricter(of_dependency);
            let expected = alone(stricter).await;
            for guard_first in [true, false] {
                let guard = both_rungs();
                let dependency = guard.dependency().clone();
                if guard_first {
                    guard.hold(hold(of_guard, None)).unwrap();
                }
                dependency.hold(hold(of_dependency, None)).unwrap();
                if !guard_first {
                    guard.hold(hold(of_guard, None)).unwrap();
                }
                let asked = origin.asked();
                let end = call(&guard, &origin, Ok(9)).await;
                assert_eq!(
                    (end, origin.asked() - asked),
                    expected,
                    "{of_guard:?} on the guard, {of_dependency:?} on the dependency"
                );
            }
        }
    }
}

/// A guard with every rung that a hold can choose, and an old snapshot.
fn both_rungs() -> Guard {
    let shape = Shape {
        stale: true,
        default: true,
        fresh: true,
        kept: Some(STALE),
    };
    shape.build().2
}

#[test]
fn nothing_done_to_a_guard_loosens_the_hold_on_its_dependency() {
    let from_the_strictest = [
        &[HoldMode::ForcedOff][..],
        &[HoldMode::StaleOnly, HoldMode::DefaultOnly],
        &[HoldMode::ForcedOpen],
        &[HoldMode::ForcedClosed],
    ];
    for (place, stricter) in from_the_strictest.iter().enumerate() {
        for looser in from_the_strictest.iter().skip(place + 1) {
            for (strict, loose) in stricter.iter().flat_map(|s| looser.iter().map(move |l| (*s, *l))) {
                assert_eq!(strict.or_stricter(loose), strict);
                assert_eq!(loose.or_stricter(strict), strict);
            }
        }
    }
}

#[tokio::test]
async fn a_dependency_takes_no_hold_that_chooses_a_rung_and_none_without_a_person() {
    let (_, engine) = engine();
    let dependency = engine.dependency("d").build().unwrap();
    for mode in [HoldMode::StaleOnly, HoldMode::DefaultOnly] {
        let problems = dependency
            .hold(Hold {
                by: String::new(),
                ..hold(mode, None)
            })
            .unwrap_err();
        let places: Vec<_> = problems.list().iter().map(|problem| &*problem.place).collect();
        assert_eq!(places, ["by", "mode"]);
    }
    assert_eq!(dependency.held(), None);
    assert!(engine.drain_events().is_empty());
}

#[tokio::test]
async fn callers_are_told_to_come_back_when_the_last_hold_that_keeps_them_away_ends() {
    use HoldMode::{ForcedClosed, ForcedOff, ForcedOpen};
    let (long, short) = (Some(3 * SECOND), Some(SECOND));
    for (of_guard, of_dependency, back_in) in [
        ((ForcedOff, long), (ForcedOpen, short), long),
        ((ForcedOff, short), (ForcedOpen, long), long),
        ((ForcedOff, short), (ForcedClosed, long), short),
        ((ForcedClosed, long), (ForcedOff, short), short),
        ((ForcedOff, short), (ForcedOpen, None), None),
    ] {
        let (_, engine) = engine();
        let guard = engine.read::<u32>("g").classify(Fail::class).build().unwrap();
        guard.hold(hold(of_guard.0, of_guard.1)).unwrap();
        guard
            .dependency()
            .hold(hold(of_dependency.0, of_dependency.1))
            .unwrap();
        let refused = call(&guard, &Origin::default(), Ok(9)).await.unwrap_err();
        assert_eq!(refused.retry_after, back_in, "{of_guard:?} {of_dependency:?}");
    }
}

#[tokio::test]
async fn a_hold_on_a_dependency_ends_at_its_expiry_and_is_told_once_under_its_name() {
    for (after, is_held) in [(SECOND - NS, true), (SECOND, false)] {
        let (clock, engine) = engine();
        let dependency = engine.dependency("d").build().unwrap();
        let guards = ["a", "b"].map(|name| {
            let builder = engine.read::<u32>(name).from(&dependency);
            builder.classify(Fail::class).build().unwrap()
        });
        dependency.hold(hold(HoldMode::ForcedOpen, Some(SECOND))).unwrap();
        clock.advance(after);
        for guard in &guards {
            let end = call(guard, &Origin::default(), Ok(9)).await;
            assert_eq!(end.is_err(), is_held, "after {after:?}");
            assert_eq!(guard.held(), None, "it is not the guard's");
        }
        assert_eq!(dependency.held().is_some(), is_held);
        let told: Vec<_> = engine
            .drain_events()
            .into_iter()
            .map(|event| {
                (
                    event.name.to_string(),
                    matches!(event.kind, EventKind::Held { .. }),
                )
            })
            .collect();
        let name = || "d".to_owned();
        let expected = if is_held {
            vec![(name(), true)]
        } else {
            vec![(name(), true), (name(), false)]
        };
        assert_eq!(told, expected);
    }
}
