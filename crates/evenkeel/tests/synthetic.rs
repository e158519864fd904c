//! Probes that nobody's call brings: an open dependency is tried when it is time, however quiet the night.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use evenkeel::{Class, Dependency, Hold, HoldMode, ManualClock, Read, State};
use support::{Fail, MS, Origin, SECOND, engine, settle, until};

/// What the probes of a stage bring, failures at first, and how many there were.
#[derive(Clone, Default)]
struct Health(Arc<(AtomicU32, AtomicU32)>);

const ANSWERS: u32 = 1;
const BREAKS: u32 = 2;
const HANGS: u32 = 3;

impl Health {
    fn set(&self, says: u32) {
        self.0.1.store(says, Ordering::SeqCst);
    }

    fn asked(&self) -> u32 {
        self.0.0.load(Ordering::SeqCst)
    }

    async fn ask(self) -> Class {
        self.0.0.fetch_add(1, Ordering::SeqCst);
        match self.0.1.load(Ordering::SeqCst) {
            ANSWERS => Class::Answer,
            BREAKS => panic!("the probe breaks, as this test wants"),
            HANGS => std::future::pending().await,
            _ => Class::OUTAGE,
        }
    }
}

struct Stage {
    clock: ManualClock,
    dependency: Dependency,
    guard: Read<u32, Fail>,
    health: Health,
}

impl Stage {
    /// One whose breaker has just opened, for a second.
    async fn open() -> Self {
        let (clock, engine) = engine();
        let health = Health::default();
        let work = health.clone();
        let dependency = engine
            .dependency("d")
            .timeout(SECOND)
            .concurrency(1)
            .breaker(|b| b.consecutive(1).open_for(SECOND, SECOND).jitter(0))
            .probe_with(move || work.clone().ask())
            .build()
            .unwrap();
        let guard = engine
            .read::<u32>("g")
            .from(&dependency)
            .classify(Fail::class)
            .build()
            .unwrap();
        drop(guard.call((), "k", |_| async { Err(Fail::Down) }).await);
        assert_eq!(dependency.status().state, Some(State::Open));
        settle().await;
        Self {
            clock,
            dependency,
            guard,
            health,
        }
    }

    fn state(&self) -> State {
        self.dependency.status().state.unwrap()
    }

    async fn pass(&self, millis: u32) {
        self.clock.advance(MS * millis);
        settle().await;
    }
}

#[tokio::test]
async fn a_dependency_that_nobody_asks_is_probed_when_it_is_time_and_closes() {
    let stage = Stage::open().await;
    stage.health.set(ANSWERS);
    stage.pass(999).await;
    assert_eq!((stage.health.asked(), stage.state()), (0, State::Open));
    stage.pass(1).await;
    assert_eq!((stage.health.asked(), stage.state()), (1, State::Closed));
    assert_eq!(stage.dependency.status().in_use, 0);
    stage.pass(60_000).await;
    assert_eq!(stage.health.asked(), 1, "a closed one is left alone");
    // It is watched again with the next opening.
    drop(stage.guard.call((), "k", |_| async { Err(Fail::Down) }).await);
    settle().await;
    stage.pass(1000).await;
    assert_eq!((stage.health.asked(), stage.state()), (2, State::Closed));
}

#[tokio::test]
async fn a_probe_that_fails_is_followed_by_another_each_open_period() {
    let stage = Stage::open().await;
    for probes in 1..=5 {
        stage.pass(1000).await;
        assert_eq!((stage.health.asked(), stage.state()), (probes, State::Open));
    }
}

#[tokio::test]
async fn a_probe_that_hangs_ends_by_the_timeout() {
    let stage = Stage::open().await;
    stage.health.set(HANGS);
    stage.pass(1000).await;
    assert_eq!((stage.health.asked(), stage.state()), (1, State::HalfOpen));
    stage.pass(1000).await;
    assert_eq!(stage.state(), State::Open);
    assert_eq!(stage.dependency.status().in_use, 0);
}

#[tokio::test]
async fn e34_a_probe_whose_work_breaks_has_failed_and_the_next_one_comes_all_the_same() {
    let stage = Stage::open().await;
    stage.health.set(BREAKS);
    stage.pass(1000).await;
    assert_eq!((stage.health.asked(), stage.state()), (1, State::Open));
    assert_eq!(stage.dependency.attempts(Class::Fault), 1);
    stage.health.set(ANSWERS);
    stage.pass(1000).await;
    assert_eq!(stage.state(), State::Closed);
}

#[tokio::test]
async fn a_hold_that_keeps_everybody_away_keeps_these_probes_away_too() {
    let stage = Stage::open().await;
    stage.health.set(ANSWERS);
    let hold = Hold {
        mode: HoldMode::ForcedOpen,
        by: "ana".into(),
        why: "a test".into(),
        lasts: Some(SECOND * 10),
    };
    stage.dependency.hold(hold).unwrap();
    stage.pass(5000).await;
    assert_eq!(stage.health.asked(), 0);
    stage.pass(5000).await;
    stage.pass(200).await;
    assert_eq!(stage.state(), State::Closed, "it has expired");
}

#[tokio::test]
async fn a_probe_that_finds_no_permit_is_tried_again_a_little_later() {
    let (clock, engine) = engine();
    let shared = engine.resource("db", 1).unwrap();
    let health = Health::default();
    health.set(ANSWERS);
    let work = health.clone();
    let dependency = engine
        .dependency("d")
        .uses(&shared)
        .breaker(|b| b.consecutive(1).open_for(SECOND, SECOND).jitter(0))
        .probe_with(move || work.clone().ask())
        .build()
        .unwrap();
    let other = engine.dependency("e").uses(&shared).build().unwrap();
    let guard = |name, from| {
        engine
            .read::<u32>(name)
            .from(from)
            .classify(Fail::class)
            .build()
            .unwrap()
    };
    let (failing, busy) = (guard("g", &dependency), guard("h", &other));
    drop(failing.call((), "k", |_| async { Err(Fail::Down) }).await);
    let origin = Origin::default();
    let inside = origin.clone();
    let hog = tokio::spawn(async move { busy.call((), "k", |_| inside.ask(Ok(1))).await });
    until("the resource is taken", || origin.inside() == 1).await;
    let pass = async |span| {
        clock.advance(span);
        settle().await;
    };
    pass(SECOND).await;
    assert_eq!(health.asked(), 0, "there is no permit");
    origin.open();
    assert!(hog.await.unwrap().is_ok());
    pass(MS * 199).await;
    assert_eq!(health.asked(), 0);
    pass(MS).await;
    assert_eq!(
        (health.asked(), dependency.status().state),
        (1, Some(State::Closed))
    );
}

#[tokio::test]
async fn a_dependency_that_is_dropped_is_not_kept_alive_by_its_probes() {
    let Stage {
        clock,
        dependency,
        guard,
        health,
    } = Stage::open().await;
    drop((dependency, guard));
    clock.advance(SECOND * 10);
    settle().await;
    assert_eq!(health.asked(), 0);
}
