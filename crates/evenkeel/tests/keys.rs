//! Whose data it is and how old: no rung ever hands one scope's data to another, or old data as young.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::{
    task::Poll,
    time::{Duration, UNIX_EPOCH},
};

use evenkeel::{
    Class, EmptyScopePart, Ending, Engine, Keep, ManualClock, Memory, Misuse, NotKept, Read, ReadBuilder,
    Reason, Rung, Seeded, Skipped, State, Terms, stale,
};
use proptest::prelude::*;
use support::{End, Fail, MS, NS, Origin, SECOND, engine, poll, settle, wall};

type Guard = Read<u32, Fail>;
type Builder = ReadBuilder<u32, evenkeel::Classifier<Fail>>;

const LIMIT: Duration = Duration::from_secs(60);

fn guard(change: impl FnOnce(Builder) -> Builder) -> (ManualClock, Guard) {
    let (clock, engine) = engine();
    let builder = engine
        .read::<u32>("g")
        .classify(Fail::class)
        .ladder([stale(LIMIT)]);
    (clock, change(builder).build().unwrap())
}

async fn says(guard: &Guard, says: Result<u32, Fail>) -> End<u32> {
    guard.call((), "k", |_| async move { says }).await
}

/// What a caller gets from below the live rung.
async fn failing(guard: &Guard) -> Result<(u32, Duration), Option<Skipped>> {
    match says(guard, Err(Fail::Down)).await {
        Ok(answer) => {
            assert_eq!(answer.rung, Rung::Stale);
            Ok((answer.value, answer.age.unwrap()))
        }
        Err(refused) => Err(refused.skipped.why(Rung::Stale)),
    }
}

#[tokio::test]
async fn e52_two_scopes_never_see_each_others_data_on_any_rung() {
    let (clock, engine) = engine();
    // One store for several guards, and every rung that can hand out what is held.
    let memory = Memory::new(1 << 20);
    let guard = |name: &str| {
        engine
            .read::<String>(name)
            .scope::<Vec<String>>()
            .classify(Fail::class)
            .coalesce()
            .fresh_for(SECOND)
            .ladder([stale(LIMIT)])
            .memory(&memory)
            .build()
            .unwrap()
    };
    let guards = [guard("g"), guard("gg")];
    let text = |text: &str| text.to_owned();
    let hostile = format!("{}b", '\u{0}');
    let scopes: [Vec<String>; 7] = [
        vec![],
        vec![text("a")],
        vec![text("ab")],
        vec![text("a"), text("b")],
        vec![text("b"), text("a")],
        vec![text("a"), hostile.clone()],
        vec![text("g")],
    ];
    let keys = [
        "",
        "a",
        "b",
        "ab",
        "\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{1}bk",
        "k",
    ];
    let everybody = || {
        guards.iter().flat_map(|guard| {
            scopes
                .iter()
                .flat_map(move |scope| keys.map(|key| (guard, scope.clone(), key)))
        })
    };
    let own = |guard: &Read<String, Fail, Vec<String>>, scope: &[String], key: &str| {
        format!("{} {scope:?} {key:?}", guard.name())
    };
    // All flights at once: nobody joins anybody else's.
    let origin = Origin::default();
    let mut flights = Vec::new();
    for (guard, scope, key) in everybody() {
        let (guard, origin, value) = (guard.clone(), origin.clone(), own(guard, &scope, key));
        flights.push(tokio::spawn(async move {
            let expected = value.clone();
            let answer = guard.call_owned(scope, key, move |_| origin.ask(Ok(value))).await;
            assert_eq!(answer.unwrap().value, expected);
        }));
    }
    settle().await;
    assert_eq!(usize::try_from(origin.inside()).unwrap(), flights.len());
    origin.open();
    for flight in flights {
        flight.await.unwrap();
    }
    for (advance, rung) in [(Duration::ZERO, Rung::Fresh), (2 * SECOND, Rung::Stale)] {
        clock.advance(advance);
        for (guard, scope, key) in everybody() {
            let value = own(guard, &scope, key);
            let answer = guard
                .call(scope, key, |_| async { Err(Fail::Down) })
                .await
                .unwrap();
            assert_eq!((answer.rung, answer.value), (rung, value));
        }
    }
}

proptest! {
    #[test]
    fn e54_what_is_seeded_under_one_key_is_found_under_no_other(
        seeded in (proptest::collection::vec("[ab\u{0}\u{1}\u{7f}]{1,2}", 0..3), proptest::collection::vec(any::<u8>(), 0..10)),
        asked in (proptest::collection::vec("[ab\u{0}\u{1}\u{7f}]{1,2}", 0..3), proptest::collection::vec(any::<u8>(), 0..10)),
    ) {
        let (clock, engine) = engine();
        let guard = engine.read::<u8>("g").scope::<Vec<String>>().classify(Fail::class)
            .ladder([stale(LIMIT)]).build().unwrap();
        guard.seed(seeded.0.clone(), &seeded.1, 1, Some(wall(&clock))).unwrap();
        let mut call = Box::pin(guard.call(asked.0.clone(), &asked.1, |_| async { Err(Fail::Down) }));
        let Poll::Ready(end) = poll(call.as_mut()) else { panic!("it waited for nothing") };
        prop_assert_eq!(end.is_ok(), seeded == asked);
    }
}

#[tokio::test]
async fn e52_an_empty_scope_part_asks_nobody_whatever_the_contract_keeps() {
    let (_, engine) = engine();
    let start = || {
        engine
            .read::<u32>("g")
            .scope::<(&str, &str)>()
            .classify(Fail::class)
    };
    for guard in [
        start().build().unwrap(),
        start().ladder([stale(LIMIT)]).build().unwrap(),
        start().coalesce().build().unwrap(),
    ] {
        let origin = Origin::default();
        let empty = EmptyScopePart { part: 2 };
        let ends = [
            guard
                .call(("acme", ""), "k", |_| origin.clone().ask_now(Ok(1)))
                .await,
            guard
                .probe(("acme", ""), "k", |_| origin.clone().ask_now(Ok(1)))
                .await,
            {
                let origin = origin.clone();
                guard
                    .call_owned(("acme", ""), "k", |_| origin.ask_now(Ok(1)))
                    .await
            },
        ];
        for end in ends {
            let failed = end.unwrap_err();
            assert_eq!(
                (failed.ending, failed.reason, failed.misuse),
                (
                    Ending::Failed,
                    Some(Reason::Fault),
                    Some(Misuse::EmptyScopePart(empty))
                )
            );
        }
        assert_eq!((origin.asked(), guard.counts().calls()), (0, 3));
        assert_eq!(
            guard.seed(("", "de"), "k", 1, None),
            Err(EmptyScopePart { part: 1 })
        );
        assert_eq!(guard.forget(("acme", ""), "k"), Err(empty));
    }
}

#[tokio::test]
async fn a_value_its_caller_may_not_have_is_forbidden_on_fresh_and_stale() {
    let (clock, guard) = guard(|b| b.fresh_for(SECOND));
    guard.seed((), "k", 7, Some(wall(&clock))).unwrap();
    for (allowed, rung) in [(true, Some(Rung::Fresh)), (false, None)] {
        let end = guard
            .call_work((), "k", Some(&move |_: &u32| allowed), |_, _| async {
                Err(Fail::Down)
            })
            .await;
        match (end, rung) {
            (Ok(answer), Some(rung)) => assert_eq!(answer.rung, rung),
            (Err(refused), None) => {
                assert_eq!(refused.skipped.why(Rung::Stale), Some(Skipped::Forbidden));
            }
            (end, rung) => panic!("{end:?}, expected {rung:?}"),
        }
    }
    assert_eq!(
        says(&guard, Err(Fail::Down)).await.unwrap().rung,
        Rung::Fresh,
        "others still have it"
    );
}

#[tokio::test]
async fn case_005_gone_retires_the_snapshot_as_an_error_and_as_a_value() {
    for as_value in [false, true] {
        let (clock, guard) =
            guard(|b| b.class_of(|value| if *value == 404 { Class::Gone } else { Class::Answer }));
        assert!(says(&guard, Ok(7)).await.is_ok());
        clock.advance(SECOND);
        let gone = says(&guard, if as_value { Ok(404) } else { Err(Fail::Gone) }).await;
        match gone {
            Ok(answer) => assert_eq!((answer.value, answer.rung), (404, Rung::Live)),
            Err(failed) => assert_eq!(
                (failed.ending, failed.reason, failed.cause),
                (Ending::Failed, None, Some(Fail::Gone))
            ),
        }
        assert_eq!(failing(&guard).await, Err(Some(Skipped::NoSnapshot)));
    }
}

#[tokio::test]
async fn e42_a_refusal_is_never_hidden_by_old_data_and_leaves_it() {
    let (_, guard) = guard(|b| b);
    assert!(says(&guard, Ok(7)).await.is_ok());
    for refusal in [Fail::No, Fail::Busy, Fail::Bug] {
        let failed = says(&guard, Err(refusal)).await.unwrap_err();
        assert_eq!((failed.ending, failed.cause), (Ending::Failed, Some(refusal)));
    }
    assert_eq!(failing(&guard).await, Ok((7, Duration::ZERO)));
}

#[tokio::test]
async fn terms_say_what_is_kept_left_or_removed() {
    let (_, guard) = guard(|b| {
        b.terms(|value| Terms {
            keep: match value {
                1 => Keep::Leave,
                2 => Keep::Remove,
                _ => Keep::Yes,
            },
            ..Terms::default()
        })
    });
    assert!(says(&guard, Ok(7)).await.is_ok());
    assert_eq!(says(&guard, Ok(1)).await.unwrap().value, 1);
    assert_eq!(failing(&guard).await, Ok((7, Duration::ZERO)));
    assert_eq!(says(&guard, Ok(2)).await.unwrap().value, 2);
    assert_eq!(failing(&guard).await, Err(Some(Skipped::NoSnapshot)));
    let counts = guard.counts();
    assert_eq!(
        (
            counts.not_kept(NotKept::NotWorthKeeping),
            counts.not_kept(NotKept::MustNotBeKept)
        ),
        (1, 1)
    );
}

#[tokio::test]
async fn terms_may_lower_the_age_limit_and_never_raise_it() {
    for (own_limit, last) in [(10 * SECOND, 10 * SECOND), (10 * LIMIT, LIMIT)] {
        let (clock, guard) = guard(|b| {
            b.terms(move |_| Terms {
                own_limit: Some(own_limit),
                ..Terms::default()
            })
        });
        assert!(says(&guard, Ok(7)).await.is_ok());
        clock.advance(last);
        assert_eq!(failing(&guard).await, Ok((7, last)));
        clock.advance(NS);
        assert_eq!(failing(&guard).await, Err(Some(Skipped::TooOld)));
    }
}

#[tokio::test]
async fn terms_may_forbid_stale_and_leave_fresh() {
    let (clock, guard) = guard(|b| {
        b.fresh_for(SECOND).terms(|_| Terms {
            stale_forbidden: true,
            ..Terms::default()
        })
    });
    assert!(says(&guard, Ok(7)).await.is_ok());
    clock.advance(SECOND - NS);
    assert_eq!(says(&guard, Err(Fail::Down)).await.unwrap().rung, Rung::Fresh);
    clock.advance(NS);
    assert_eq!(failing(&guard).await, Err(Some(Skipped::Forbidden)));
}

#[tokio::test]
async fn e39_what_was_old_already_when_it_came_stays_that_old() {
    let (clock, guard) = guard(|b| {
        b.terms(|_| Terms {
            already: 20 * SECOND,
            ..Terms::default()
        })
    });
    let answer = says(&guard, Ok(7)).await.unwrap();
    assert_eq!(answer.age, Some(Duration::ZERO), "it was asked for now");
    clock.advance(40 * SECOND);
    assert_eq!(failing(&guard).await, Ok((7, LIMIT)));
    clock.advance(NS);
    assert_eq!(failing(&guard).await, Err(Some(Skipped::TooOld)));
}

#[tokio::test]
async fn a_wall_clock_that_steps_makes_nothing_younger_or_older() {
    let (clock, guard) = guard(|b| b);
    let start = wall(&clock);
    assert!(says(&guard, Ok(7)).await.is_ok());
    guard.seed((), "seeded", 8, Some(start - 5 * SECOND)).unwrap();
    let mut age = Duration::ZERO;
    for step in [UNIX_EPOCH, start - 3600 * SECOND, start + 3600 * SECOND, start] {
        clock.set_wall(step);
        clock.advance(10 * SECOND);
        age += 10 * SECOND;
        let answer = says(&guard, Err(Fail::Down)).await.unwrap();
        assert_eq!(answer.age, Some(age), "wall at {step:?}");
        // What is shown is the time at which it was observed, as it was shown then.
        assert_eq!(answer.observed.unwrap().as_nanos(), 1_000_000_000_000_000_000);
        let seeded = guard
            .call((), "seeded", |_| async { Err(Fail::Down) })
            .await
            .unwrap();
        assert_eq!(seeded.age, Some(age + 5 * SECOND), "wall at {step:?}");
    }
}

#[tokio::test]
async fn e38_reading_never_renews_an_age() {
    let (clock, guard) = guard(|b| b);
    assert!(says(&guard, Ok(7)).await.is_ok());
    for second in 1..=60 {
        clock.advance(SECOND);
        assert_eq!(failing(&guard).await, Ok((7, second * SECOND)));
    }
    clock.advance(NS);
    assert_eq!(failing(&guard).await, Err(Some(Skipped::TooOld)));
}

#[tokio::test]
async fn e44_what_is_seeded_from_the_future_is_never_served_and_stands_in_nobodys_way() {
    for ahead in [NS, SECOND, Duration::from_secs(1 << 33)] {
        let (clock, guard) = guard(|b| b);
        let future = Some(wall(&clock) + ahead);
        assert_eq!(guard.seed((), "k", 1, future), Ok(Seeded::Kept));
        assert_eq!(failing(&guard).await, Err(Some(Skipped::FutureDated)));
        // Waiting makes a wrong date no truer: nobody knows how old this is.
        clock.advance(2 * SECOND);
        assert_eq!(failing(&guard).await, Err(Some(Skipped::FutureDated)));
        assert!(says(&guard, Ok(7)).await.is_ok());
        assert_eq!(failing(&guard).await, Ok((7, Duration::ZERO)));
        let again = Some(wall(&clock) + ahead);
        assert_eq!(guard.seed((), "k", 2, again), Ok(Seeded::Superseded));
        assert_eq!(failing(&guard).await, Ok((7, Duration::ZERO)));
        assert_eq!(guard.counts().not_kept(NotKept::Superseded), 0);
    }
}

#[tokio::test]
async fn seeds_are_ordered_by_the_time_they_state() {
    let (clock, guard) = guard(|b| b);
    let ago = |seconds| Some(wall(&clock) - seconds * SECOND);
    for (value, observed, becomes, kept) in [
        (1, None, Seeded::Kept, Err(Some(Skipped::UnknownAge))),
        (2, None, Seeded::Kept, Err(Some(Skipped::UnknownAge))),
        (3, ago(61), Seeded::Kept, Err(Some(Skipped::TooOld))),
        (4, ago(60), Seeded::Kept, Ok((4, 60 * SECOND))),
        (5, ago(61), Seeded::Superseded, Ok((4, 60 * SECOND))),
        (6, None, Seeded::Superseded, Ok((4, 60 * SECOND))),
        (7, ago(60), Seeded::Kept, Ok((7, 60 * SECOND))),
        (8, ago(0), Seeded::Kept, Ok((8, Duration::ZERO))),
        (
            9,
            Some(UNIX_EPOCH - SECOND),
            Seeded::Superseded,
            Ok((8, Duration::ZERO)),
        ),
    ] {
        assert_eq!(guard.seed((), "k", value, observed), Ok(becomes), "seed {value}");
        assert_eq!(failing(&guard).await, kept, "after seed {value}");
    }
}

#[tokio::test]
async fn e47_the_newest_start_wins_over_an_older_late_load() {
    let (clock, guard) = guard(|b| b);
    let (old_origin, new_origin) = (Origin::default(), Origin::default());
    let mut old = Box::pin(guard.call((), "k", |_| old_origin.clone().ask(Ok(1))));
    assert!(poll(old.as_mut()).is_pending());
    clock.advance(SECOND);
    let mut new = Box::pin(guard.call((), "k", |_| new_origin.clone().ask(Ok(2))));
    assert!(poll(new.as_mut()).is_pending());
    clock.advance(SECOND);
    new_origin.open();
    assert!(poll(new.as_mut()).is_ready());
    old_origin.open();
    let Poll::Ready(Ok(late)) = poll(old.as_mut()) else {
        panic!("not answered")
    };
    assert_eq!((late.value, late.rung), (1, Rung::Live), "its own caller gets it");
    assert_eq!(failing(&guard).await, Ok((2, SECOND)));
    assert_eq!(guard.counts().not_kept(NotKept::Superseded), 1);
}

#[tokio::test]
async fn e46_a_load_under_way_does_not_bring_back_what_was_retired_meanwhile() {
    for retire in ["forget", "gone", "no-store"] {
        let (clock, guard) = guard(|b| {
            b.terms(|value| Terms {
                keep: if *value == 2 { Keep::Remove } else { Keep::Yes },
                ..Terms::default()
            })
        });
        assert!(says(&guard, Ok(1)).await.is_ok());
        let origin = Origin::default();
        let mut under_way = Box::pin(guard.call((), "k", |_| origin.clone().ask(Ok(1))));
        assert!(poll(under_way.as_mut()).is_pending());
        clock.advance(MS);
        match retire {
            "forget" => guard.forget((), "k").unwrap(),
            "gone" => assert!(says(&guard, Err(Fail::Gone)).await.is_err()),
            _ => assert!(says(&guard, Ok(2)).await.is_ok()),
        }
        origin.open();
        assert!(poll(under_way.as_mut()).is_ready());
        assert_eq!(failing(&guard).await, Err(Some(Skipped::NoSnapshot)), "{retire}");
        // A person may still put something in, and a later load is kept.
        let old = Some(wall(&clock) - SECOND);
        assert_eq!(guard.seed((), "k", 9, old), Ok(Seeded::Kept));
        assert_eq!(failing(&guard).await, Ok((9, SECOND)), "{retire}");
        assert!(says(&guard, Ok(3)).await.is_ok());
        assert_eq!(failing(&guard).await, Ok((3, Duration::ZERO)), "{retire}");
    }
}

#[tokio::test]
async fn a_late_gone_of_an_older_attempt_leaves_newer_data() {
    let (clock, guard) = guard(|b| b);
    let origin = Origin::default();
    let mut old = Box::pin(guard.call((), "k", |_| origin.clone().ask::<u32>(Err(Fail::Gone))));
    assert!(poll(old.as_mut()).is_pending());
    clock.advance(SECOND);
    assert!(says(&guard, Ok(7)).await.is_ok());
    origin.open();
    assert!(poll(old.as_mut()).is_ready());
    assert_eq!(failing(&guard).await, Ok((7, Duration::ZERO)));
}

#[tokio::test]
async fn e51_what_is_too_big_to_keep_takes_the_old_copy_away_and_what_is_not_worth_it_does_not() {
    let (_, guard) = guard(|b| {
        b.weigh(|value| if *value == 1 { usize::MAX } else { 4 })
            .keep_if(|value| *value != 2)
            .memory(&Memory::new(4096))
    });
    assert!(says(&guard, Ok(7)).await.is_ok());
    assert!(says(&guard, Ok(2)).await.is_ok());
    assert_eq!(failing(&guard).await, Ok((7, Duration::ZERO)));
    assert!(says(&guard, Ok(1)).await.is_ok());
    assert_eq!(failing(&guard).await, Err(Some(Skipped::NoSnapshot)));
    assert_eq!(guard.counts().not_kept(NotKept::TooBig), 1);
}

#[tokio::test]
async fn e48_defaults_and_stale_answers_are_never_stored_as_data() {
    let (clock, engine): (ManualClock, Engine) = engine();
    let guard: Guard = engine
        .read::<u32>("g")
        .classify(Fail::class)
        .ladder([stale(LIMIT), evenkeel::default(|| 1)])
        .build()
        .unwrap();
    assert_eq!(says(&guard, Err(Fail::Down)).await.unwrap().rung, Rung::Default);
    assert_eq!(guard.memory().count(), 0);
    assert!(says(&guard, Ok(7)).await.is_ok());
    clock.advance(LIMIT);
    assert_eq!(failing(&guard).await, Ok((7, LIMIT)));
    clock.advance(NS);
    let answer = says(&guard, Err(Fail::Down)).await.unwrap();
    assert_eq!(
        (answer.rung, answer.age, answer.observed, answer.value),
        (Rung::Default, None, None, 1)
    );
    assert_eq!(answer.skipped.why(Rung::Stale), Some(Skipped::TooOld));
}

#[tokio::test]
async fn two_guards_of_one_name_share_snapshots_in_one_store_and_nothing_else() {
    let (_, engine) = engine();
    let memory = Memory::new(1 << 20);
    let built = |memory: &Memory<u32>| {
        engine
            .read::<u32>("stock")
            .breaker(|b| b.consecutive(1))
            .classify(Fail::class)
            .ladder([stale(LIMIT)])
            .memory(memory)
            .build()
            .unwrap()
    };
    let (old, new, apart) = (built(&memory), built(&memory), built(&Memory::new(1 << 20)));
    assert!(old.call((), "k", |_| async { Ok(1) }).await.is_ok());
    assert!(old.call((), "k", |_| async { Err(Fail::Down) }).await.is_ok());
    assert_eq!(old.dependency().status().state, Some(State::Open));
    for guard in [&new, &apart] {
        assert_eq!(guard.dependency().status().state, Some(State::Closed));
        assert_eq!(guard.counts().calls(), 0);
    }
    let end = new.call((), "k", |_| async { Err(Fail::Down) }).await;
    assert_eq!(end.unwrap().value, 1, "built anew, it goes on with what was kept");
    let refused = apart
        .call((), "k", |_| async { Err(Fail::Down) })
        .await
        .unwrap_err();
    assert_eq!(refused.skipped.why(Rung::Stale), Some(Skipped::NoSnapshot));
}
