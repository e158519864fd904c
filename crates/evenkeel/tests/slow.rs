//! Soft timeouts: a copy answers for an attempt that is slow, and the attempt goes on.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::{sync::Arc, time::Duration};

use evenkeel::{
    Class, Ending, Keep, ManualClock, Read, ReadBuilder, Reason, Rung, Skipped, State, Terms, default, stale,
};
use parking_lot::Mutex;
use support::{End, Fail, MS, NS, Origin, SECOND, engine, poll, settle, wall};
use tokio::{runtime::Handle, task::JoinHandle};

type Guard = Read<u32, Fail>;
type Builder = ReadBuilder<u32, evenkeel::Classifier<Fail>>;

const SOFT: Duration = Duration::from_millis(200);

/// A guard with a soft timeout and, where `held` says so, a copy of 1 that is a second old.
fn guard(held: bool, change: impl FnOnce(Builder) -> Builder) -> (ManualClock, Guard) {
    let (clock, engine) = engine();
    let builder = engine
        .read::<u32>("g")
        .classify(Fail::class)
        .timeout(SECOND)
        .concurrency(4)
        .soft_timeout(SOFT)
        .ladder([stale(60 * SECOND)]);
    let guard = change(builder).build().unwrap();
    if held {
        guard.seed((), "k", 1, Some(wall(&clock) - SECOND)).unwrap();
    }
    (clock, guard)
}

fn start(guard: &Guard, origin: &Origin, says: Result<u32, Fail>) -> JoinHandle<End<u32>> {
    let (guard, origin) = (guard.clone(), origin.clone());
    tokio::spawn(async move { guard.call_owned((), "k", move |_| origin.ask(says)).await })
}

fn assert_slow(end: End<u32>) {
    let answer = end.unwrap();
    assert_eq!(
        (answer.value, answer.rung, answer.age, answer.reason),
        (1, Rung::Stale, Some(SECOND + SOFT), Some(Reason::Slow))
    );
    assert!(answer.skipped.is_empty() && answer.cause.is_none());
}

/// Both ways to attempt: by itself, and in a flight.
const BOTH: [fn(Builder) -> Builder; 2] = [|b| b, Builder::coalesce];

#[tokio::test]
async fn g17_at_the_soft_timeout_and_not_before_the_copy_answers_and_the_attempt_goes_on() {
    for change in BOTH {
        let (clock, guard) = guard(true, change);
        let origin = Origin::default();
        let call = start(&guard, &origin, Ok(2));
        settle().await;
        clock.advance(SOFT - NS);
        settle().await;
        assert!(!call.is_finished());
        clock.advance(NS);
        assert_slow(call.await.unwrap());
        // It still has its permit, because it is still being served.
        assert_eq!((origin.inside(), guard.dependency().status().in_use), (1, 1));
        clock.advance(100 * MS);
        origin.open();
        settle().await;
        assert_eq!((origin.asked(), guard.dependency().status().in_use), (1, 0));
        assert_eq!(guard.dependency().attempts(Class::Answer), 1);
        let next = guard
            .call_owned((), "k", |_| async { Err(Fail::Down) })
            .await
            .unwrap();
        assert_eq!(
            (next.value, next.age),
            (2, Some(SOFT + 100 * MS)),
            "its age counts from its beginning"
        );
        let counts = guard.counts();
        assert_eq!(counts.get(Ending::Answered(Rung::Stale), Some(Reason::Slow)), 1);
        assert_eq!(
            (counts.calls(), Handle::current().metrics().num_alive_tasks()),
            (2, 0)
        );
    }
}

#[tokio::test]
async fn an_attempt_that_is_in_time_is_live_whether_it_waits_or_not() {
    for change in BOTH {
        let (clock, guard) = guard(true, change);
        let at_once = guard.call_owned((), "k", |_| async { Ok(2) }).await.unwrap();
        assert_eq!((at_once.value, at_once.rung), (2, Rung::Live));
        let origin = Origin::default();
        let call = start(&guard, &origin, Ok(3));
        settle().await;
        clock.advance(SOFT - NS);
        origin.open();
        assert_eq!(call.await.unwrap().unwrap().value, 3);
        settle().await;
        assert_eq!(clock.sleepers(), 0);
    }
}

#[tokio::test]
async fn without_a_copy_to_serve_the_call_waits_on_and_nothing_is_noted() {
    for change in BOTH {
        for age in [None, Some(60 * SECOND)] {
            let (clock, guard) = guard(false, change);
            if let Some(age) = age {
                guard.seed((), "k", 1, Some(wall(&clock) - age)).unwrap();
            }
            let origin = Origin::default();
            let call = start(&guard, &origin, Ok(2));
            settle().await;
            clock.advance(SOFT);
            settle().await;
            assert!(!call.is_finished());
            origin.open();
            let answer = call.await.unwrap().unwrap();
            assert_eq!((answer.rung, answer.reason), (Rung::Live, None));
            assert!(answer.skipped.is_empty());
        }
    }
}

#[tokio::test]
async fn case_027_a_call_that_waits_on_still_ends_at_its_limit() {
    for change in BOTH {
        let (clock, guard) = guard(false, change);
        let origin = Origin::default();
        let call = start(&guard, &origin, Ok(2));
        settle().await;
        clock.advance(SOFT);
        settle().await;
        clock.advance(SECOND - SOFT - NS);
        settle().await;
        assert!(!call.is_finished());
        clock.advance(NS);
        let refused = call.await.unwrap().unwrap_err();
        assert_eq!(refused.reason, Some(Reason::TimedOut));
        assert_eq!(refused.skipped.why(Rung::Stale), Some(Skipped::NoSnapshot));
        assert_eq!(origin.inside(), 0);
    }
}

#[tokio::test]
async fn an_attempt_left_alone_ends_at_its_timeout_and_is_a_failure_of_the_dependency() {
    for change in BOTH {
        let (clock, guard) = guard(true, |b| change(b.breaker(|b| b.consecutive(1))));
        let origin = Origin::default();
        let call = start(&guard, &origin, Ok(2));
        settle().await;
        clock.advance(SOFT);
        assert_slow(call.await.unwrap());
        clock.advance(SECOND - SOFT - NS);
        settle().await;
        assert_eq!(origin.inside(), 1);
        clock.advance(NS);
        settle().await;
        assert_eq!((origin.inside(), guard.dependency().status().in_use), (0, 0));
        assert_eq!(guard.dependency().status().state, Some(State::Open));
        assert_eq!(guard.dependency().attempts(Class::OUTAGE), 1);
    }
}

#[tokio::test]
async fn an_attempt_left_alone_without_a_timeout_ends_with_the_deadline_and_blames_nobody() {
    for change in BOTH {
        let (clock, engine) = engine();
        let builder = engine
            .read::<u32>("g")
            .classify(Fail::class)
            .deadline(3 * SECOND)
            .breaker(|b| b.consecutive(1))
            .soft_timeout(SOFT)
            .ladder([stale(60 * SECOND)]);
        let guard = change(builder).build().unwrap();
        guard.seed((), "k", 1, Some(wall(&clock) - SECOND)).unwrap();
        let origin = Origin::default();
        let call = start(&guard, &origin, Ok(2));
        settle().await;
        clock.advance(SOFT);
        assert_slow(call.await.unwrap());
        clock.advance(3 * SECOND - SOFT);
        settle().await;
        assert_eq!((origin.inside(), guard.flights().0), (0, 0));
        assert_eq!(guard.dependency().status().state, Some(State::Closed));
    }
}

#[tokio::test]
async fn g09_a_failure_of_the_attempt_left_alone_leaves_the_copy() {
    for change in BOTH {
        let (clock, guard) = guard(true, change);
        let origin = Origin::default();
        let call = start(&guard, &origin, Err(Fail::Down));
        settle().await;
        clock.advance(SOFT);
        assert_slow(call.await.unwrap());
        origin.open();
        settle().await;
        let next = guard
            .call_owned((), "k", |_| async { Err(Fail::Down) })
            .await
            .unwrap();
        assert_eq!(next.value, 1);
    }
}

#[tokio::test]
async fn everybody_who_shares_a_slow_attempt_is_answered_and_it_goes_on_for_the_next() {
    let (clock, guard) = guard(true, Builder::coalesce);
    let origin = Origin::default();
    let calls = [start(&guard, &origin, Ok(2)), start(&guard, &origin, Ok(3))];
    settle().await;
    clock.advance(SOFT);
    for call in calls {
        assert_slow(call.await.unwrap());
    }
    settle().await;
    assert_eq!((origin.inside(), guard.flights().0), (1, 1));
    let third = start(&guard, &origin, Ok(4));
    settle().await;
    origin.open();
    let answer = third.await.unwrap().unwrap();
    assert_eq!((answer.value, answer.joined, origin.asked()), (2, true, 1));
}

#[tokio::test]
async fn who_leaves_before_the_soft_timeout_takes_the_attempt_along() {
    for change in BOTH {
        let (clock, guard) = guard(true, change);
        let origin = Origin::default();
        let call = start(&guard, &origin, Ok(2));
        settle().await;
        clock.advance(SOFT - NS);
        call.abort();
        assert!(call.await.is_err());
        settle().await;
        assert_eq!((origin.inside(), guard.dependency().status().in_use), (0, 0));
        assert_eq!((guard.flights().0, clock.sleepers()), (0, 0));
        assert_eq!(guard.counts().total(Ending::Abandoned), 1);
        assert_eq!(guard.dependency().attempts(Class::Cancelled), 1);
    }
}

#[tokio::test]
async fn borrowed_work_waits_because_it_cannot_go_on_alone() {
    let (clock, guard) = guard(true, |b| b);
    let origin = Origin::default();
    let mut call = Box::pin(guard.call((), "k", |_| origin.clone().ask(Ok(2))));
    assert!(poll(call.as_mut()).is_pending());
    clock.advance(SOFT);
    assert!(poll(call.as_mut()).is_pending());
    origin.open();
    assert_eq!(call.await.unwrap().rung, Rung::Live);
}

#[tokio::test]
async fn g16_a_copy_that_forbids_being_stale_does_not_answer_for_a_slow_attempt() {
    let (clock, guard) = guard(false, |b| {
        b.fresh_for(SECOND).terms(|_| Terms {
            keep: Keep::Yes,
            stale_forbidden: true,
            ..Terms::default()
        })
    });
    guard.call_owned((), "k", |_| async { Ok(1) }).await.unwrap();
    clock.advance(SECOND);
    let origin = Origin::default();
    let call = start(&guard, &origin, Ok(2));
    settle().await;
    clock.advance(SOFT);
    settle().await;
    assert!(!call.is_finished());
    origin.open();
    assert_eq!(call.await.unwrap().unwrap().value, 2);
}

#[tokio::test]
async fn work_that_outlives_its_result_keeps_its_permit_when_its_call_was_answered_by_a_copy() {
    let (clock, guard) = guard(true, |b| {
        b.terms(|value| Terms {
            keep: if *value == 2 { Keep::Leave } else { Keep::Yes },
            ..Terms::default()
        })
    });
    let origin = Origin::default();
    let (asked, kept) = (origin.clone(), Arc::new(Mutex::new(None)));
    let call = tokio::spawn({
        let (guard, kept) = (guard.clone(), kept.clone());
        async move {
            let work = move |_, permit| async move {
                let says = asked.ask(Ok(2)).await;
                *kept.lock() = permit;
                says
            };
            guard.call_work((), "k", None, work).await
        }
    });
    settle().await;
    clock.advance(SOFT);
    assert_slow(call.await.unwrap());
    origin.open();
    settle().await;
    assert_eq!(guard.dependency().status().in_use, 1);
    drop(kept.lock().take());
    assert_eq!(guard.dependency().status().in_use, 0);
    assert_eq!(guard.dependency().attempts(Class::Answer), 1);
    assert_eq!(guard.counts().calls(), 1);
}

#[test]
fn a_soft_timeout_that_could_not_end_a_wait_is_refused_with_its_place() {
    let problems = |change: fn(Builder) -> Builder| {
        let (_, engine) = engine();
        let builder = engine
            .read::<u32>("g")
            .classify(Fail::class)
            .ladder([stale(SECOND)]);
        change(builder).build().err().map(|problems| problems.to_string())
    };
    assert_eq!(problems(|b| b.timeout(SOFT + NS).soft_timeout(SOFT)), None);
    assert_eq!(problems(|b| b.deadline(SOFT + NS).soft_timeout(SOFT)), None);
    assert_eq!(
        problems(|b| b.timeout(SOFT).soft_timeout(SOFT)).unwrap(),
        "read.soft_timeout: 200ms, and the timeout ends the attempt after 200ms; allowed: shorter than the timeout; lower \
         it, or raise the timeout: as it stands it would never end a wait"
    );
    assert_eq!(
        problems(|b| b.deadline(SOFT).soft_timeout(SOFT)).unwrap(),
        "read.soft_timeout: 200ms, and the deadline ends the call after 200ms; allowed: shorter than the deadline; lower \
         it, or raise the deadline: as it stands it would never end a wait"
    );
    assert_eq!(
        problems(|b| b.soft_timeout(SOFT)).unwrap(),
        "read.soft_timeout: set without a timeout or deadline; allowed: beside a timeout, or a deadline; declare \
         `timeout`: an attempt that nobody waits for has to end some time"
    );
    let exact = engine()
        .1
        .read::<u32>("g")
        .classify(Fail::class)
        .timeout(SECOND)
        .exact();
    assert!(exact.soft_timeout(SOFT).build().is_err());
    let without = engine().1.read::<u32>("g").classify(Fail::class).timeout(SECOND);
    assert!(
        without
            .ladder([default(|| 0)])
            .soft_timeout(SOFT)
            .build()
            .is_err()
    );
}
