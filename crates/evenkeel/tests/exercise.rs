//! Stand-ins tried beside healthy calls: what is tried, what it may cost, and what is told.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::sync::Arc;

use evenkeel::{
    Class, Classifier, Dependency, Ending, Engine, EventKind, Exercised, Hold, HoldMode, ManualClock, Read,
    ReadBuilder, Rung, default, stale,
};
use parking_lot::Mutex;
use support::{Fail, MS, NS, Origin, SECOND, engine, poll, settle};
use tokio::runtime::Handle;

type Builder = ReadBuilder<u32, Classifier<Fail>>;

struct Stage {
    clock: ManualClock,
    engine: Engine,
    spare: Dependency,
    origin: Origin,
    says: Arc<Mutex<Result<u32, Fail>>>,
    guard: Read<u32, Fail>,
}

/// A guard whose every live answer is beside an alternate and a default of 7; they agree if they are the same.
fn stage(ppm: u32) -> Stage {
    let (clock, engine) = engine();
    let spare = engine
        .dependency("spare")
        .timeout(SECOND)
        .concurrency(1)
        .build()
        .unwrap();
    let (origin, says) = (Origin::default(), Arc::new(Mutex::new(Ok(7))));
    let builder: Builder = engine.read::<u32>("g").classify(Fail::class);
    let guard = builder
        .exercise(ppm, |_rung, live, other| live == other)
        .ladder([stale(60 * SECOND)])
        .alternate(&spare, {
            let (origin, says) = (origin.clone(), says.clone());
            move |(), _key, _call| {
                let says = *says.lock();
                origin.clone().ask(says)
            }
        })
        .ladder([default(|| 7)])
        .build()
        .unwrap();
    Stage {
        clock,
        engine,
        spare,
        origin,
        says,
        guard,
    }
}

impl Stage {
    async fn live(&self, says: u32) {
        let answer = self
            .guard
            .call((), "k", |_| async move { Ok(says) })
            .await
            .unwrap();
        assert_eq!((answer.value, answer.rung), (says, Rung::Live));
        settle().await;
        self.origin.open();
        settle().await;
    }

    fn came_to(&self, rung: Rung) -> [u64; 4] {
        Exercised::ALL.map(|end| self.guard.counts().exercises(rung, end))
    }

    fn told(&self) -> Vec<(Rung, Exercised)> {
        let events = self.engine.drain_events().into_iter();
        let told = events.filter_map(|event| match event.kind {
            EventKind::Exercised { rung, came_to } => Some((rung, came_to)),
            EventKind::Breaker(_)
            | EventKind::Ramp(_)
            | EventKind::Held { .. }
            | EventKind::Released { .. }
            | EventKind::Reset { .. } => None,
        });
        told.collect()
    }
}

#[tokio::test]
async fn a_live_answer_tries_both_stand_ins_and_throws_their_answers_away() {
    let stage = stage(1_000_000);
    stage.live(7).await;
    assert_eq!(stage.came_to(Rung::Alternate), [1, 0, 0, 0]);
    assert_eq!(stage.came_to(Rung::Default), [1, 0, 0, 0]);
    assert_eq!(
        (stage.origin.asked(), stage.spare.attempts(Class::Answer)),
        (1, 1)
    );
    let counts = stage.guard.counts();
    assert_eq!(
        (counts.calls(), counts.total(Ending::Answered(Rung::Live))),
        (1, 1)
    );
    assert_eq!(stage.told(), []);
    let kept = stage
        .guard
        .call((), "k", |_| async { Err(Fail::Down) })
        .await
        .unwrap();
    assert_eq!(kept.rung, Rung::Stale);
    assert_eq!(stage.origin.asked(), 1, "only healthy calls try anything");
}

#[tokio::test]
async fn what_fails_or_differs_is_counted_each_time_and_told_when_it_begins() {
    let stage = stage(1_000_000);
    stage.live(7).await;
    *stage.says.lock() = Err(Fail::Down);
    for _ in 0..3 {
        stage.live(7).await;
    }
    assert_eq!(stage.told(), [(Rung::Alternate, Exercised::Failed)]);
    *stage.says.lock() = Ok(7);
    stage.live(7).await;
    stage.live(8).await;
    assert_eq!(
        stage.told(),
        [
            (Rung::Default, Exercised::Differed),
            (Rung::Alternate, Exercised::Differed)
        ]
    );
    assert_eq!(stage.came_to(Rung::Alternate), [2, 1, 3, 0]);
    assert_eq!(stage.came_to(Rung::Default), [5, 1, 0, 0]);
}

#[tokio::test]
async fn nobody_waits_for_an_exercise_and_the_alternates_budget_is_its_own() {
    let stage = stage(1_000_000);
    // Nobody opens its gate, so the first exercise holds the one permit.
    for _ in 0..3 {
        assert_eq!(
            stage
                .guard
                .call((), "k", |_| async { Ok(7) })
                .await
                .unwrap()
                .value,
            7
        );
        settle().await;
    }
    assert_eq!((stage.origin.inside(), stage.spare.status().in_use), (1, 1));
    assert_eq!(stage.came_to(Rung::Alternate), [0, 0, 0, 2]);
    stage.clock.advance(SECOND - NS);
    settle().await;
    assert_eq!(stage.origin.inside(), 1);
    stage.clock.advance(NS);
    settle().await;
    assert_eq!((stage.origin.inside(), stage.spare.status().in_use), (0, 0));
    assert_eq!(stage.came_to(Rung::Alternate), [0, 0, 1, 2]);
    assert_eq!(
        (
            stage.clock.sleepers(),
            Handle::current().metrics().num_alive_tasks()
        ),
        (0, 0)
    );
}

#[tokio::test]
async fn an_alternate_that_is_held_is_left_alone_and_that_says_nothing_about_it() {
    let stage = stage(1_000_000);
    stage
        .spare
        .hold(Hold {
            mode: HoldMode::ForcedOff,
            by: "ana".into(),
            why: "test".into(),
            lasts: None,
        })
        .unwrap();
    stage.live(7).await;
    assert_eq!(
        (stage.came_to(Rung::Alternate), stage.origin.asked()),
        ([0, 0, 0, 1], 0)
    );
    assert_eq!(stage.told(), []);
}

#[tokio::test]
async fn the_share_is_the_declared_one() {
    let stage = stage(100_000);
    for _ in 0..2_000 {
        stage.guard.call((), "k", |_| async { Ok(7) }).await.unwrap();
    }
    settle().await;
    let tried: u64 = stage.came_to(Rung::Default).iter().sum();
    assert!((150..250).contains(&tried), "{tried} of 2000");
}

#[tokio::test]
async fn code_that_breaks_in_an_exercise_breaks_no_call() {
    for early in [true, false] {
        let (_, engine) = engine();
        let spare = engine
            .dependency("spare")
            .timeout(SECOND)
            .concurrency(1)
            .build()
            .unwrap();
        let guard = engine
            .read::<u32>("g")
            .classify(Fail::class)
            .exercise(1_000_000, |_, _, _| true)
            .alternate(&spare, move |(), _key, _call| {
                assert!(!early, "the wrapped code breaks, as this test wants");
                async { panic!("the wrapped code breaks, as this test wants") }
            })
            .ladder([default(|| panic!("the wrapped code breaks, as this test wants"))])
            .build()
            .unwrap();
        assert_eq!(guard.call((), "k", |_| async { Ok(7) }).await.unwrap().value, 7);
        settle().await;
        for rung in [Rung::Alternate, Rung::Default] {
            assert_eq!(
                guard.counts().exercises(rung, Exercised::Failed),
                1,
                "{rung:?} {early}"
            );
        }
        assert_eq!(
            (spare.status().in_use, spare.attempts(Class::Fault)),
            (0, 1),
            "{early}"
        );
    }
}

#[test]
fn outside_a_runtime_nothing_is_tried() {
    let stage = stage(1_000_000);
    let mut call = Box::pin(stage.guard.call((), "k", |_| async { Ok(7) }));
    assert!(poll(call.as_mut()).is_ready());
    assert_eq!(
        (stage.came_to(Rung::Alternate), stage.came_to(Rung::Default)),
        ([0; 4], [0; 4])
    );
}

#[test]
fn an_exercise_with_nothing_to_try_or_no_share_is_refused_with_its_place() {
    let problems = |change: fn(Builder) -> Builder| {
        let (_, engine) = engine();
        change(engine.read::<u32>("g").classify(Fail::class))
            .build()
            .err()
            .map(|found| found.to_string())
    };
    let always = |_: Rung, _: &u32, _: &u32| true;
    assert_eq!(
        problems(|b| b.ladder([stale(500 * MS)]).exercise(1, |_, _, _| true)).unwrap(),
        "exercise: set on a ladder without an alternate or a default; allowed: beside one of them: a copy needs no \
         exercise; add one, or remove this"
    );
    let with = |ppm| {
        let (_, engine) = engine();
        let builder = engine
            .read::<u32>("g")
            .classify(Fail::class)
            .ladder([default(|| 0)]);
        builder.exercise(ppm, always).build().is_ok()
    };
    assert_eq!([0, 1, 1_000_000, 1_000_001].map(with), [false, true, true, false]);
}
