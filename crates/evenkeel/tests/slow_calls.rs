//! Slow calls as callers meet them: a hung call is found out by its own timer, though nobody else comes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::{pin::Pin, time::Duration};

use evenkeel::{Cause, Class, Engine, EventKind, ManualClock, Over, Read, State, TripRule};
use support::{End, Fail, MS, NS, Origin, SECOND, engine, poll, settle};

struct Stage {
    clock: ManualClock,
    engine: Engine,
    guard: Read<u32, Fail>,
    origin: Origin,
}

impl Stage {
    /// Two calls of 100 ms or more open it, where there are no others.
    fn new(deadline: Option<Duration>) -> Self {
        let (clock, engine) = engine();
        let mut builder = engine
            .read::<u32>("g")
            .timeout(SECOND)
            .breaker(|b| b.slow_ratio(100 * MS, 1_000_000, Over::Calls(2), 2).jitter(0))
            .classify(Fail::class);
        if let Some(deadline) = deadline {
            builder = builder.deadline(deadline);
        }
        Self {
            guard: builder.build().unwrap(),
            clock,
            engine,
            origin: Origin::default(),
        }
    }

    fn state(&self) -> State {
        self.guard.dependency().status().state.unwrap()
    }

    /// Starts a call that the dependency answers when its gate opens.
    fn begin(&self) -> Pin<Box<dyn Future<Output = End<u32>>>> {
        let (guard, origin) = (self.guard.clone(), self.origin.clone());
        let mut call: Pin<Box<dyn Future<Output = End<u32>>>> =
            Box::pin(async move { guard.call((), "k", |_| origin.ask(Ok(1))).await });
        assert!(poll(call.as_mut()).is_pending());
        call
    }

    fn causes(&self) -> Vec<(Cause, Option<TripRule>)> {
        let events = self.engine.drain_events();
        let changes = events.into_iter().filter_map(|event| match event.kind {
            EventKind::Breaker(change) => Some((change.cause, change.rule)),
            EventKind::Ramp(_)
            | EventKind::Held { .. }
            | EventKind::Released { .. }
            | EventKind::Reset { .. }
            | EventKind::Exercised { .. } => None,
        });
        changes.collect()
    }
}

#[tokio::test]
async fn hung_calls_open_the_breaker_at_the_threshold_though_nobody_else_comes() {
    let stage = Stage::new(None);
    let mut calls = [stage.begin(), stage.begin()];
    stage.clock.advance(100 * MS - NS);
    for call in &mut calls {
        assert!(poll(call.as_mut()).is_pending());
    }
    assert_eq!(stage.state(), State::Closed);
    stage.clock.advance(NS);
    for call in &mut calls {
        assert!(poll(call.as_mut()).is_pending(), "it goes on");
    }
    assert_eq!(stage.state(), State::Open);
    assert_eq!(stage.causes(), [(Cause::Tripped, Some(TripRule::SlowRatio))]);
    stage.origin.open();
    for call in calls {
        assert_eq!(call.await.unwrap().value, 1, "and its answer is an answer");
    }
}

#[tokio::test]
async fn e20_callers_who_leave_after_the_threshold_leave_slow_calls() {
    let stage = Stage::new(None);
    for _ in 0..3 {
        drop(stage.begin());
    }
    let late = [stage.begin(), stage.begin()];
    stage.clock.advance(100 * MS);
    // Dropped without having been polled again: no timer has told.
    drop(late);
    assert_eq!(stage.state(), State::Open);
    assert_eq!(stage.guard.dependency().attempts(Class::Cancelled), 5);
}

#[tokio::test]
async fn e21_a_deadline_shorter_than_the_threshold_is_not_the_dependencys() {
    for (deadline, opens) in [(99 * MS, false), (100 * MS, true)] {
        let stage = Stage::new(Some(deadline));
        let mut calls = [stage.begin(), stage.begin()];
        stage.clock.advance(deadline);
        for call in &mut calls {
            assert!(poll(call.as_mut()).is_ready());
        }
        assert_eq!(stage.state() == State::Open, opens, "{deadline:?}");
    }
}

#[tokio::test]
async fn a_probe_that_is_slow_reopens_while_its_caller_waits_and_then_gets_the_answer() {
    let stage = Stage::new(None);
    let calls = [stage.begin(), stage.begin()];
    stage.clock.advance(100 * MS);
    drop(calls);
    stage.clock.advance(SECOND);
    let mut probe = stage.begin();
    assert_eq!(stage.state(), State::HalfOpen);
    stage.clock.advance(100 * MS);
    assert!(poll(probe.as_mut()).is_pending());
    assert_eq!(stage.state(), State::Open);
    stage.origin.open();
    assert_eq!(probe.await.unwrap().value, 1);
    settle().await;
    assert_eq!(stage.state(), State::Open, "it proves nothing");
    let causes: Vec<Cause> = stage.causes().into_iter().map(|(cause, _)| cause).collect();
    assert_eq!(causes, [Cause::Tripped, Cause::Probing, Cause::ProbeSlow]);
}

/// By the system's clock and without a runtime there is nobody who could look; the call is none the worse for it.
#[test]
fn a_call_that_nothing_limits_needs_no_timer_to_be_counted_when_it_ends() {
    let guard = Engine::system()
        .read::<u32>("g")
        .breaker(|b| b.slow_ratio(MS, 1_000_000, Over::Calls(1), 1))
        .classify(Fail::class)
        .build()
        .unwrap();
    let origin = Origin::default();
    let inside = origin.clone();
    let mut call = Box::pin(guard.call((), "k", |_| inside.ask(Ok(1))));
    assert!(poll(call.as_mut()).is_pending());
    origin.open();
    let ended = poll(call.as_mut());
    let std::task::Poll::Ready(end) = ended else {
        panic!("the gate is open")
    };
    assert_eq!(end.unwrap().value, 1);
}
