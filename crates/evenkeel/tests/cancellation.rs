//! Callers who leave, at every await point there is: nothing stays behind, and nobody is blamed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::{pin::Pin, task::Poll};

use evenkeel::{Class, Ending, ManualClock, Read, Rung, State, stale};
use support::{End, Fail, MS, Origin, SECOND, engine, poll, settle};
use tokio::runtime::Handle;

type Guard = Read<u32, Fail>;
type Calling = Pin<Box<dyn Future<Output = End<u32>>>>;

/// A guard with everything on, and the dependency behind it.
struct Stage {
    clock: ManualClock,
    guard: Guard,
    origin: Origin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Breaker {
    Closed,
    /// Open, and a probe is due.
    Due,
}

/// The awaits of the work.
const AWAITS: u32 = 4;

impl Stage {
    async fn new(coalesce: bool, breaker: Breaker) -> Self {
        let (clock, engine) = engine();
        let builder = engine
            .read::<u32>("g")
            .concurrency(1)
            .timeout(SECOND)
            .deadline(2 * SECOND)
            .breaker(|b| b.consecutive(1).open_for(SECOND, SECOND).jitter(0))
            .classify(Fail::class)
            .ladder([stale(60 * SECOND)]);
        let builder = if coalesce { builder.coalesce() } else { builder };
        let stage = Self {
            clock,
            guard: builder.build().unwrap(),
            origin: Origin::default(),
        };
        if breaker == Breaker::Due {
            let failed = stage.guard.call((), "k", |_| async { Err(Fail::Down) }).await;
            assert!(failed.is_err());
            assert_eq!(stage.state(), State::Open);
            stage.clock.advance(SECOND);
        }
        stage
    }

    fn state(&self) -> State {
        self.guard.dependency().status().state.unwrap()
    }

    /// Checks that nothing is in use, waited for, or running.
    fn assert_idle(&self, when: &str) {
        assert_eq!(self.guard.dependency().status().in_use, 0, "permits {when}");
        assert_eq!(self.guard.flights().0, 0, "flights {when}");
        assert_eq!(self.origin.inside(), 0, "work {when}");
        assert_eq!(self.clock.sleepers(), 0, "sleepers {when}");
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 0, "tasks {when}");
    }

    /// Checks that the next call is admitted and closes the breaker, whatever came before.
    async fn assert_not_wedged(&self, when: &str) {
        let answer = self.guard.call((), "k", |_| async { Ok(9) }).await;
        assert_eq!(answer.unwrap().rung, Rung::Live, "{when}");
        assert_eq!(self.state(), State::Closed, "{when}");
    }
}

async fn work(origin: Origin) -> Result<u32, Fail> {
    let _inside = origin.enter();
    for _ in 0..AWAITS {
        tokio::task::yield_now().await;
    }
    Ok(7)
}

fn borrowed(stage: &Stage) -> Calling {
    let (guard, origin) = (stage.guard.clone(), stage.origin.clone());
    Box::pin(async move { guard.call((), "k", |_| work(origin)).await })
}

fn by_hand(stage: &Stage) -> Calling {
    let (guard, origin) = (stage.guard.clone(), stage.origin.clone());
    Box::pin(async move { guard.probe((), "k", |_| work(origin)).await })
}

fn owned(stage: &Stage) -> Calling {
    let (guard, origin) = (stage.guard.clone(), stage.origin.clone());
    Box::pin(async move { guard.call_owned((), "k", |_| work(origin)).await })
}

fn with_permit(stage: &Stage) -> Calling {
    let (guard, origin) = (stage.guard.clone(), stage.origin.clone());
    Box::pin(async move {
        guard
            .call_work((), "k", Some(&|_: &u32| true), |_, permit| async move {
                let result = work(origin).await;
                drop(permit);
                result
            })
            .await
    })
}

type Begin = fn(&Stage) -> Calling;

const EVERY_WAY: [(&str, Begin); 4] = [
    ("call", borrowed),
    ("probe", by_hand),
    ("call_owned", owned),
    ("call_work", with_permit),
];

/// Polls up to `polls` times; tells whether the call has ended.
async fn poll_times(call: &mut Calling, polls: u32) -> bool {
    for _ in 0..polls {
        if poll(call.as_mut()).is_ready() {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

#[tokio::test]
async fn e05_e18_to_e20_a_call_dropped_at_any_await_leaves_nothing_behind_and_blames_nobody() {
    for (name, begin) in EVERY_WAY {
        for coalesce in [false, true] {
            for breaker in [Breaker::Closed, Breaker::Due] {
                let mut dropped_at = 0;
                for polls in 0.. {
                    let when = format!("{name}, coalesce {coalesce}, {breaker:?}, after {polls} polls");
                    let stage = Stage::new(coalesce, breaker).await;
                    let before = stage.guard.counts();
                    let mut call = begin(&stage);
                    let ended = poll_times(&mut call, polls).await;
                    drop(call);
                    settle().await;
                    stage.assert_idle(&when);
                    let counts = stage.guard.counts();
                    let ending = if ended {
                        Ending::Answered(Rung::Live)
                    } else {
                        Ending::Abandoned
                    };
                    // A call that was never polled never began.
                    let calls = u64::from(polls > 0);
                    assert_eq!(counts.calls() - before.calls(), calls, "{when}");
                    assert_eq!(counts.total(ending) - before.total(ending), calls, "{when}");
                    let earlier = u64::from(breaker == Breaker::Due);
                    let dependency = stage.guard.dependency();
                    assert_eq!(
                        dependency.attempts_total(),
                        stage.origin.asked() + earlier,
                        "{when}"
                    );
                    assert_eq!(dependency.transitions(State::Open), earlier, "{when}");
                    if breaker == Breaker::Closed {
                        assert_eq!(stage.state(), State::Closed, "{when}");
                    }
                    stage.assert_not_wedged(&when).await;
                    if ended {
                        break;
                    }
                    dropped_at += 1;
                }
                assert!(dropped_at > 2, "{name} was dropped at {dropped_at} points only");
            }
        }
    }
}

#[tokio::test]
async fn e55_a_follower_dropped_at_any_await_leaves_the_leader_its_answer() {
    for polls in 1..8 {
        let when = format!("after {polls} polls");
        let stage = Stage::new(true, Breaker::Closed).await;
        let mut leader = Box::pin(stage.guard.call_owned((), "k", {
            let origin = stage.origin.clone();
            move |_| origin.ask(Ok(7))
        }));
        assert!(poll(leader.as_mut()).is_pending());
        settle().await;
        let mut follower = owned(&stage);
        assert!(!poll_times(&mut follower, polls).await);
        assert_eq!(stage.guard.counts().joined(), 1);
        drop(follower);
        settle().await;
        assert_eq!(stage.origin.inside(), 1, "{when}");
        stage.origin.open();
        settle().await;
        let Poll::Ready(Ok(answer)) = poll(leader.as_mut()) else {
            panic!("the leader got no answer {when}")
        };
        assert_eq!((answer.value, answer.rung), (7, Rung::Live));
        stage.assert_idle(&when);
        let counts = stage.guard.counts();
        assert_eq!(
            (counts.calls(), counts.total(Ending::Abandoned)),
            (2, 1),
            "{when}"
        );
        assert_eq!(stage.origin.asked(), 1);
    }
}

#[tokio::test]
async fn a_probe_in_the_background_outlives_the_caller_who_started_it() {
    let stage = Stage::new(false, Breaker::Due).await;
    let now = support::wall(&stage.clock);
    stage.guard.seed((), "k", 1, Some(now)).unwrap();
    let mut call = owned(&stage);
    let Poll::Ready(Ok(answer)) = poll(call.as_mut()) else {
        panic!("the caller waited for the probe")
    };
    assert_eq!(answer.rung, Rung::Stale);
    drop(call);
    settle().await;
    assert_eq!((stage.state(), stage.origin.asked()), (State::Closed, 1));
    stage.assert_idle("after the probe");
}

#[tokio::test]
async fn case_017_clients_who_leave_before_the_timeout_do_not_open_the_breaker() {
    let (clock, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .timeout(5 * SECOND)
        .breaker(|b| b.failure_ratio(500_000, 10 * SECOND, 10))
        .classify(Fail::class)
        .build()
        .unwrap();
    let origin = Origin::default();
    for _ in 0..200 {
        let mut call = Box::pin(guard.call((), "k", |_| origin.clone().ask(Ok(1))));
        assert!(poll(call.as_mut()).is_pending());
        clock.advance(100 * MS);
    }
    let dependency = guard.dependency();
    assert_eq!(dependency.status().state, Some(State::Closed));
    assert_eq!(dependency.attempts(Class::Cancelled), 200);
    assert_eq!(dependency.attempts(Class::OUTAGE), 0);
    assert_eq!(guard.counts().total(Ending::Abandoned), 200);
}
