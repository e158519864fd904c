//! What a Pass guard does, and what it has no way to do.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{
    io,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use evenkeel::{
    Class, Dependency, Ending, Engine, Hold, HoldMode, LimitRules, ManualClock, Pass, Reason, Rung, State,
    classify,
};

type Guard = Pass<u16, io::Error>;

fn guard(clock: &ManualClock) -> (Dependency, Guard) {
    let engine = Engine::new(clock.clone(), 7);
    let dependency = engine
        .dependency("shop")
        .timeout(Duration::from_secs(1))
        .concurrency(1)
        .breaker(|breaker| breaker.consecutive(1))
        .build()
        .unwrap();
    let guard = engine
        .pass("orders", &dependency)
        .classify(classify::io)
        .class_of(|status: &u16| Class::of_status(*status))
        .build()
        .unwrap();
    (dependency, guard)
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn neither_the_timeout_nor_anything_else_ends_the_work_which_keeps_the_time() {
    let clock = ManualClock::new();
    let (dependency, guard) = guard(&clock);
    let (done, is_done) = tokio::sync::oneshot::channel::<()>();
    let mut call = pin!(guard.call(|call, _permit| async move {
        is_done.await.unwrap();
        assert_eq!(call.remaining(), Duration::MAX);
        Ok(201)
    }));
    assert!(poll(call.as_mut()).is_pending());
    clock.advance(Duration::from_secs(3600));
    assert!(poll(call.as_mut()).is_pending());
    done.send(()).unwrap();
    assert_eq!(*call.await.unwrap(), 201);
    assert_eq!(guard.counts().total(Ending::Answered(Rung::Live)), 1);
    assert_eq!(dependency.status().in_use, 0);
}

#[tokio::test]
async fn work_that_says_it_ran_out_of_time_blames_the_dependency() {
    let (dependency, guard) = guard(&ManualClock::new());
    let late = guard
        .call(|_, _| async { Err(io::ErrorKind::TimedOut.into()) })
        .await
        .unwrap_err();
    assert_eq!(
        (late.ending, late.reason),
        (Ending::Refused, Some(Reason::TimedOut))
    );
    assert!(late.cause.is_some());
    assert_eq!(dependency.attempts(Class::OUTAGE), 1);
    let next = guard.call(|_, _| async { Ok(201) }).await.unwrap_err();
    assert_eq!(next.reason, Some(Reason::BreakerOpen));
    assert!(next.retry_after.is_some());
}

#[tokio::test]
async fn a_caller_who_leaves_ends_the_work_and_blames_nobody() {
    let (dependency, guard) = guard(&ManualClock::new());
    {
        let mut call = pin!(guard.call(|_, permit| async move {
            let _permit = permit;
            std::future::pending().await
        }));
        assert!(poll(call.as_mut()).is_pending());
        assert_eq!(dependency.status().in_use, 1);
        let second = guard.call(|_, _| async { Ok(201) }).await.unwrap_err();
        assert_eq!(second.reason, Some(Reason::AtCapacity));
    }
    assert_eq!(guard.counts().total(Ending::Abandoned), 1);
    assert_eq!(dependency.attempts(Class::Cancelled), 1);
    assert_eq!(dependency.status().in_use, 0);
    assert!(guard.call(|_, _| async { Ok(201) }).await.is_ok());
}

#[tokio::test]
async fn a_caller_who_leaves_late_has_waited_in_vain_unless_the_time_was_its_own() {
    for (is_slow, state) in [(false, State::Open), (true, State::Closed)] {
        let clock = ManualClock::new();
        let engine = Engine::new(clock.clone(), 7);
        let dependency = engine
            .dependency("shop")
            .timeout(Duration::from_secs(1))
            .learned_limit(LimitRules::DEFAULT)
            .breaker(|breaker| breaker.consecutive(1))
            .build()
            .unwrap();
        let guard: Guard = engine
            .pass("orders", &dependency)
            .classify(classify::io)
            .build()
            .unwrap();
        let work = |_, _| std::future::pending();
        {
            let mut call = pin!(async {
                if is_slow {
                    guard.call_slow(work).await
                } else {
                    guard.call(work).await
                }
            });
            assert!(poll(call.as_mut()).is_pending());
            clock.advance(Duration::from_millis(900));
        }
        assert_eq!(dependency.status().state, Some(state), "slow {is_slow}");
    }
}

#[tokio::test]
async fn a_refusal_of_the_dependency_is_an_answer_and_does_not_open_the_breaker() {
    let (dependency, guard) = guard(&ManualClock::new());
    for status in [422, 429, 404] {
        let answer = guard.call(move |_, _| async move { Ok(status) }).await.unwrap();
        assert_eq!((*answer, answer.rung, answer.kept), (status, Rung::Live, false));
    }
    assert_eq!(dependency.attempts(Class::Refusal), 1);
    assert_eq!(dependency.attempts(Class::Busy), 1);
    assert_eq!(dependency.attempts(Class::Gone), 1);
    assert!(guard.call(|_, _| async { Ok(201) }).await.is_ok());
}

#[tokio::test]
async fn holds_keep_calls_away_and_cannot_choose_among_rungs() {
    let (_dependency, guard) = guard(&ManualClock::new());
    let hold = |mode| Hold {
        mode,
        by: "ana".into(),
        why: "migration".into(),
        lasts: None,
    };
    for mode in [HoldMode::StaleOnly, HoldMode::DefaultOnly] {
        assert!(guard.hold(hold(mode)).is_err(), "{mode:?}");
    }
    for mode in [HoldMode::ForcedOpen, HoldMode::ForcedOff] {
        guard.hold(hold(mode)).unwrap();
        let refused = guard.call(|_, _| async { Ok(201) }).await.unwrap_err();
        assert_eq!(
            (refused.ending, refused.reason),
            (Ending::Refused, Some(Reason::Held))
        );
        assert_eq!(guard.held().map(|hold| hold.mode), Some(mode));
    }
    guard.release("ana").unwrap();
    assert!(guard.call(|_, _| async { Ok(201) }).await.is_ok());
}

#[test]
fn a_dependency_of_another_engine_and_a_name_that_is_none_are_problems() {
    let other = Engine::new(ManualClock::new(), 7)
        .dependency("shop")
        .build()
        .unwrap();
    let engine = Engine::new(ManualClock::new(), 7);
    let problems = |name: &str, dependency: &Dependency| {
        engine
            .pass::<u16>(name, dependency)
            .classify(|_: &io::Error| Class::OUTAGE)
            .build()
            .map_err(|found| found.list().len())
            .err()
    };
    assert_eq!(problems("orders", &other), Some(1));
    let own = engine.dependency("shop").build().unwrap();
    assert_eq!(problems("", &own), Some(1));
    assert_eq!(problems("orders", &own), None);
}
