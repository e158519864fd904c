//! Calls outside any runtime: what needs none works, and what needs a timer says so instead of hanging.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::{future::pending, pin::pin, task::Poll};

use evenkeel::{Class, Ending, Engine, Misuse, Reason, Rung, State, stale};
use support::{Fail, NS, Origin, SECOND, engine, poll};

#[test]
fn a_call_that_has_to_wait_under_a_limit_says_that_nothing_could_end_it() {
    for (timeout, deadline) in [(true, false), (false, true), (true, true)] {
        let mut builder = Engine::system()
            .read::<u32>("g")
            .concurrency(1)
            .breaker(|b| b.consecutive(1))
            .classify(Fail::class)
            .ladder([stale(SECOND)]);
        if timeout {
            builder = builder.timeout(SECOND);
        }
        if deadline {
            builder = builder.deadline(SECOND);
        }
        let guard = builder.build().unwrap();
        let origin = Origin::default();
        for owned in [false, true] {
            let origin = origin.clone();
            let end = if owned {
                poll(pin!(guard.call_owned((), "k", |_| origin.hang())))
            } else {
                poll(pin!(guard.call((), "k", |_| origin.hang())))
            };
            let Poll::Ready(Err(failed)) = end else {
                panic!("not told: {end:?}")
            };
            assert_eq!(
                (failed.ending, failed.reason, failed.misuse),
                (Ending::Failed, Some(Reason::Fault), Some(Misuse::NoTimer))
            );
            assert!(failed.to_string().ends_with(
                "no tokio runtime here whose timer could keep it; call within a runtime, or declare neither timeout \
                 nor deadline"
            ));
        }
        assert_eq!(origin.inside(), 0, "the work is dropped");
        let dependency = guard.dependency();
        let status = dependency.status();
        assert_eq!((status.state, status.in_use), (Some(State::Closed), 0));
        assert_eq!(dependency.attempts(Class::Fault), 2, "and nobody is blamed");
        assert_eq!(guard.counts().get(Ending::Failed, Some(Reason::Fault)), 2);
    }
}

#[test]
fn work_that_is_ready_and_work_without_a_limit_need_no_runtime() {
    let limited = Engine::system()
        .read::<u32>("g")
        .timeout(SECOND)
        .classify(Fail::class)
        .build()
        .unwrap();
    let end = poll(pin!(limited.call((), "k", |_| async { Ok(1) })));
    assert!(matches!(end, Poll::Ready(Ok(answer)) if answer.rung == Rung::Live));
    let unlimited = Engine::system()
        .read::<u32>("g")
        .classify(Fail::class)
        .build()
        .unwrap();
    assert!(poll(pin!(unlimited.call((), "k", |_| pending()))).is_pending());
}

#[test]
fn a_clock_moved_by_hand_keeps_limits_without_a_runtime() {
    let (clock, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .timeout(SECOND)
        .classify(Fail::class)
        .build()
        .unwrap();
    let mut call = pin!(guard.call((), "k", |_| pending()));
    assert!(poll(call.as_mut()).is_pending());
    clock.advance(SECOND - NS);
    assert!(poll(call.as_mut()).is_pending());
    clock.advance(NS);
    let Poll::Ready(Err(refused)) = poll(call.as_mut()) else {
        panic!("not ended")
    };
    assert_eq!((refused.reason, refused.misuse), (Some(Reason::TimedOut), None));
}
