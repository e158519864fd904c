//! Calls that share one attempt: who joins, who goes alone, and who is told what.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use evenkeel::{
    Answer, Class, Ending, ManualClock, Outage, Read, ReadBuilder, Reason, Rung, Skipped, State, default,
    stale,
};
use support::{End, Fail, MS, Origin, SECOND, engine, poll, settle, until};
use tokio::task::JoinHandle;

type Guard = Read<u32, Fail>;
type Builder = ReadBuilder<u32, evenkeel::Classifier<Fail>>;

fn guard(change: impl FnOnce(Builder) -> Builder) -> (ManualClock, Guard) {
    let (clock, engine) = engine();
    let builder = engine.read::<u32>("g").classify(Fail::class).coalesce();
    (clock, change(builder).build().unwrap())
}

/// Starts a call in a task of its own; the dependency answers `says` when its gate opens.
fn start(guard: &Guard, origin: &Origin, says: Result<u32, Fail>) -> JoinHandle<End<u32>> {
    let (guard, origin) = (guard.clone(), origin.clone());
    tokio::spawn(async move { guard.call_owned((), "k", move |_| origin.ask(says)).await })
}

async fn all(calls: Vec<JoinHandle<End<u32>>>) -> Vec<End<u32>> {
    let mut ends = Vec::new();
    for call in calls {
        ends.push(call.await.unwrap());
    }
    ends
}

fn live(end: End<u32>) -> u32 {
    let Answer { value, rung, age, .. } = end.unwrap();
    assert_eq!((rung, age), (Rung::Live, Some(Duration::ZERO)));
    value
}

#[tokio::test]
async fn case_034_e55_the_leader_leaves_and_the_other_nine_are_answered_by_the_one_attempt() {
    let (clock, guard) = guard(|b| b);
    let origin = Origin::default();
    let mut calls: Vec<_> = (0..10).map(|_| start(&guard, &origin, Ok(7))).collect();
    settle().await;
    assert_eq!((origin.asked(), guard.counts().joined()), (1, 9));
    clock.advance(100 * MS);
    let leader = calls.remove(0);
    leader.abort();
    settle().await;
    assert_eq!(origin.inside(), 1);
    clock.advance(900 * MS);
    origin.open();
    for end in all(calls).await {
        assert!(end.as_ref().is_ok_and(|answer| answer.joined && !answer.kept));
        assert_eq!(live(end), 7);
    }
    assert_eq!((origin.asked(), guard.flights()), (1, (0, 0)));
    let counts = guard.counts();
    assert_eq!((counts.calls(), counts.total(Ending::Abandoned)), (10, 1));
}

#[tokio::test]
async fn case_036_a_result_that_may_not_be_shared_costs_two_rounds_and_the_key_is_remembered() {
    let (clock, guard) = guard(|b| b.share_if(|_| false));
    let origin = Origin::default();
    let calls: Vec<_> = (0..20).map(|_| start(&guard, &origin, Ok(7))).collect();
    settle().await;
    assert_eq!(origin.inside(), 1);
    origin.open();
    settle().await;
    assert_eq!(origin.inside(), 19, "the second round is all the others at once");
    origin.open();
    assert!(all(calls).await.into_iter().all(|end| live(end) == 7));
    assert_eq!(guard.flights(), (0, 1));

    // For ten seconds nobody waits for this key again; then it is tried once more.
    for (pause, at_once) in [(0, 2), (10, 1)] {
        clock.advance(pause * SECOND);
        let calls = vec![start(&guard, &origin, Ok(8)), start(&guard, &origin, Ok(8))];
        settle().await;
        assert_eq!(origin.inside(), at_once, "after {pause} s");
        until("both are served", || {
            origin.open();
            origin.inside() == 0
        })
        .await;
        assert!(all(calls).await.into_iter().all(|end| live(end) == 8));
    }
}

#[tokio::test]
async fn values_that_are_no_answers_are_not_shared() {
    let (_, guard) = guard(|b| b.class_of(|value| if *value == 0 { Class::Gone } else { Class::Answer }));
    let origin = Origin::default();
    let first = start(&guard, &origin, Ok(0));
    let second = start(&guard, &origin, Ok(7));
    settle().await;
    origin.open();
    settle().await;
    origin.open();
    assert_eq!(live(first.await.unwrap()), 0);
    assert_eq!(live(second.await.unwrap()), 7);
}

#[tokio::test]
async fn a_call_alone_neither_waits_for_an_attempt_nor_ends_the_sharing_of_others() {
    let (_, guard) = guard(|b| b.share_if(|value| *value != 0));
    let origin = Origin::default();
    let alone = |says| {
        let (guard, origin) = (guard.clone(), origin.clone());
        tokio::spawn(async move {
            let work = move |_, permit| async move {
                let says = origin.ask(Ok(says)).await;
                drop(permit);
                says
            };
            guard.call_alone((), "k", None, work).await
        })
    };
    let calls = vec![
        alone(0),
        start(&guard, &origin, Ok(7)),
        alone(0),
        start(&guard, &origin, Ok(8)),
    ];
    settle().await;
    assert_eq!((origin.asked(), guard.counts().joined()), (3, 1));
    origin.open();
    let got: Vec<u32> = all(calls).await.into_iter().map(live).collect();
    assert_eq!((got, guard.flights()), (vec![0, 7, 0, 7], (0, 0)));
}

#[tokio::test]
async fn a_follower_never_gets_a_shared_value_that_its_own_predicate_forbids() {
    let (_, guard) = guard(|b| b);
    let origin = Origin::default();
    let first = start(&guard, &origin, Ok(7));
    settle().await;
    let picky = tokio::spawn({
        let (guard, origin) = (guard.clone(), origin.clone());
        async move {
            guard
                .call_work(
                    (),
                    "k",
                    Some(&|value: &u32| *value != 7),
                    |_, permit| async move {
                        let says = origin.ask(Ok(8)).await;
                        drop(permit);
                        says
                    },
                )
                .await
        }
    });
    settle().await;
    assert_eq!(guard.counts().joined(), 1);
    origin.open();
    settle().await;
    origin.open();
    assert_eq!(live(first.await.unwrap()), 7);
    assert_eq!(live(picky.await.unwrap()), 8);
}

#[tokio::test]
async fn each_caller_keeps_its_own_deadline_and_the_flight_goes_on_for_the_later_ones() {
    let (clock, guard) = guard(|b| b.deadline(SECOND));
    let origin = Origin::default();
    let first = start(&guard, &origin, Ok(7));
    settle().await;
    clock.advance(600 * MS);
    let second = start(&guard, &origin, Ok(7));
    settle().await;
    clock.advance(400 * MS);
    let late = first.await.unwrap().unwrap_err();
    assert_eq!(late.reason, Some(Reason::TimedOut));
    clock.advance(599 * MS);
    origin.open();
    assert_eq!(live(second.await.unwrap()), 7);
    assert_eq!(origin.asked(), 1);
    // The dependency was slower than a caller would wait. That is not its failure (E21).
    assert_eq!(guard.dependency().attempts(Class::Answer), 1);
    assert_eq!(clock.sleepers(), 0);
}

#[tokio::test]
async fn a_flight_stops_when_nobody_waits_for_it_any_more() {
    let (_, guard) = guard(|b| b.concurrency(1));
    let origin = Origin::default();
    let calls: Vec<_> = (0..3).map(|_| start(&guard, &origin, Ok(7))).collect();
    settle().await;
    for call in &calls {
        assert_eq!(origin.inside(), 1);
        call.abort();
        settle().await;
    }
    assert_eq!((origin.inside(), guard.flights()), (0, (0, 0)));
    assert_eq!(guard.dependency().status().in_use, 0);
    assert_eq!(guard.dependency().attempts(Class::Cancelled), 1);
    assert_eq!(guard.counts().total(Ending::Abandoned), 3);
}

#[tokio::test]
async fn case_035_e55_a_leader_whose_work_panics_fails_and_exactly_one_of_those_who_wait_takes_over() {
    let (_, guard) = guard(|b| b);
    let origin = Origin::default();
    let broken = tokio::spawn({
        let (guard, origin) = (guard.clone(), origin.clone());
        async move { guard.call_owned((), "k", |_| origin.break_down()).await }
    });
    settle().await;
    let followers: Vec<_> = (0..5).map(|_| start(&guard, &origin, Ok(7))).collect();
    settle().await;
    origin.open();
    settle().await;
    assert_eq!(origin.inside(), 1, "one of the five leads, four wait for it");
    origin.open();
    assert!(all(followers).await.into_iter().all(|end| live(end) == 7));
    let failed = broken.await.unwrap().unwrap_err();
    assert_eq!(
        (failed.ending, failed.reason),
        (Ending::Failed, Some(Reason::Fault))
    );
    assert_eq!((origin.asked(), guard.flights()), (2, (0, 0)));
    assert_eq!(guard.dependency().attempts(Class::Fault), 1);
    assert_eq!(guard.counts().calls(), 6);
}

#[tokio::test]
async fn g01_after_two_flights_that_vanished_those_who_wait_fail_and_nobody_asks_a_third_time() {
    let mut failed = 0;
    for _ in 0..100 {
        let (_, guard) = guard(|b| b);
        let origin = Origin::default();
        let breaks = || {
            let (guard, origin) = (guard.clone(), origin.clone());
            tokio::spawn(async move { guard.call_owned((), "k", |_| origin.break_down()).await })
        };
        let first = breaks();
        settle().await;
        let second = breaks();
        let patient = start(&guard, &origin, Ok(7));
        settle().await;
        // The first breaks. One of the other two leads and the other waits again: who, is left to chance.
        origin.open();
        settle().await;
        assert_eq!((origin.asked(), guard.flights().0), (2, 1));
        origin.open();
        settle().await;
        assert_eq!((origin.asked(), guard.flights()), (2, (0, 0)));
        assert!(first.await.unwrap().is_err());
        let (second, patient) = (second.await.unwrap(), patient.await.unwrap());
        // If it is the second that leads and breaks too, the patient one is told so.
        if let Err(unanswered) = patient {
            assert_eq!(
                (unanswered.ending, unanswered.reason),
                (Ending::Failed, Some(Reason::Fault))
            );
            assert!(second.is_err());
            failed += 1;
        } else {
            assert_eq!(live(second), 7);
        }
    }
    assert!(failed > 0, "chance never let the second lead");
}

#[tokio::test]
async fn followers_of_a_leader_that_is_refused_take_the_ladder() {
    let (_, guard) = guard(|b| b.concurrency(1).ladder([default(|| 1)]));
    let origin = Origin::default();
    let other = tokio::spawn({
        let (guard, origin) = (guard.clone(), origin.clone());
        async move { guard.call((), "other", |_| origin.ask(Ok(3))).await }
    });
    settle().await;
    let calls: Vec<_> = (0..4).map(|_| start(&guard, &origin, Ok(7))).collect();
    for end in all(calls).await {
        let answer = end.unwrap();
        assert_eq!(
            (answer.rung, answer.value, answer.reason),
            (Rung::Default, 1, Some(Reason::AtCapacity))
        );
    }
    assert_eq!((origin.asked(), guard.flights()), (1, (0, 0)));
    origin.open();
    assert_eq!(live(other.await.unwrap()), 3);
}

#[tokio::test]
async fn a_borrowed_call_never_joins() {
    let (_, guard) = guard(|b| b);
    let origin = Origin::default();
    let shared = start(&guard, &origin, Ok(7));
    settle().await;
    let mut own = Box::pin(guard.call((), "k", |_| origin.clone().ask(Ok(8))));
    assert!(poll(own.as_mut()).is_pending());
    assert_eq!((origin.inside(), guard.counts().joined()), (2, 0));
    origin.open();
    let Poll::Ready(end) = poll(own.as_mut()) else {
        panic!("not answered")
    };
    assert_eq!(live(end), 8);
    assert_eq!(live(shared.await.unwrap()), 7);
}

#[test]
fn an_exact_guard_never_joins_because_it_cannot_be_built_to() {
    let (_, engine) = engine();
    let problems = engine
        .read::<u32>("g")
        .classify(Fail::class)
        .coalesce()
        .exact()
        .build()
        .unwrap_err();
    assert_eq!(problems.list()[0].place, "read.coalesce");
}

#[tokio::test]
async fn calls_for_other_keys_and_scopes_do_not_share() {
    let (_, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .scope::<(String,)>()
        .classify(Fail::class)
        .coalesce()
        .build()
        .unwrap();
    let origin = Origin::default();
    let mut calls = Vec::new();
    for (scope, key) in [("a", "k"), ("b", "k"), ("a", "l")] {
        let (guard, origin) = (guard.clone(), origin.clone());
        calls.push(tokio::spawn(async move {
            guard
                .call_owned((scope.to_owned(),), key, |_| origin.ask(Ok(7)))
                .await
        }));
    }
    settle().await;
    assert_eq!((origin.inside(), guard.counts().joined()), (3, 0));
    origin.open();
    assert!(all(calls).await.into_iter().all(|end| live(end) == 7));
}

#[tokio::test]
async fn a_failure_is_shared_with_those_who_wait_and_nobody_else_and_each_gets_its_own_copy() {
    let (_, guard) = guard(|b| b);
    let origin = Origin::default();
    let calls: Vec<_> = (0..3).map(|_| start(&guard, &origin, Err(Fail::Down))).collect();
    settle().await;
    origin.open();
    for end in all(calls).await {
        let refused = end.unwrap_err();
        assert_eq!(
            (refused.reason, refused.cause),
            (Some(Reason::DependencyFailed), Some(Fail::Down))
        );
    }
    let next = start(&guard, &origin, Ok(7));
    settle().await;
    assert_eq!(origin.inside(), 1);
    origin.open();
    assert_eq!(live(next.await.unwrap()), 7);
    assert_eq!(
        guard.dependency().attempts(Class::OUTAGE),
        1,
        "one attempt failed, whoever waited for it"
    );
}

#[tokio::test]
async fn a_refusal_by_the_dependency_is_shared_as_what_it_is() {
    let (clock, guard) = guard(|b| b.ladder([stale(60 * SECOND)]));
    let origin = Origin::default();
    guard.seed((), "k", 1, Some(support::wall(&clock))).unwrap();
    let calls: Vec<_> = (0..3).map(|_| start(&guard, &origin, Err(Fail::Gone))).collect();
    settle().await;
    origin.open();
    for end in all(calls).await {
        let failed = end.unwrap_err();
        assert_eq!(
            (failed.ending, failed.reason, failed.cause),
            (Ending::Failed, None, Some(Fail::Gone))
        );
    }
    assert_eq!(guard.memory().count(), 0, "gone retires the snapshot");
}

#[tokio::test]
async fn e30_a_hung_flight_holds_up_nobody_who_comes_after_its_lease() {
    let (clock, guard) = guard(|b| b);
    let origin = Origin::default();
    let hung = start(&guard, &origin, Ok(7));
    settle().await;
    clock.advance(Duration::from_secs(30));
    let next = start(&guard, &origin, Ok(8));
    settle().await;
    assert_eq!(
        origin.inside(),
        2,
        "the lease is 30 s where nothing limits a flight"
    );
    // The old flight's end does not touch the new one.
    hung.abort();
    settle().await;
    assert_eq!((origin.inside(), guard.flights().0), (1, 1));
    origin.open();
    assert_eq!(live(next.await.unwrap()), 8);
}

#[tokio::test]
async fn the_timeout_ends_a_flight_and_is_blamed_on_the_dependency() {
    let (clock, guard) = guard(|b| {
        b.timeout(SECOND)
            .breaker(|b| b.consecutive(1))
            .ladder([default(|| 1)])
    });
    let origin = Origin::default();
    let calls: Vec<_> = (0..3).map(|_| start(&guard, &origin, Ok(7))).collect();
    settle().await;
    clock.advance(SECOND);
    for end in all(calls).await {
        let answer = end.unwrap();
        assert_eq!(
            (answer.rung, answer.reason, answer.cause),
            (Rung::Default, Some(Reason::TimedOut), None)
        );
    }
    let dependency = guard.dependency();
    assert_eq!(dependency.attempts(Class::Outage(Outage::TimedOut)), 1);
    assert_eq!(dependency.status().state, Some(State::Open));
    assert_eq!((origin.inside(), clock.sleepers()), (0, 0));
}

/// A waker that counts how often it is used.
struct Wakes(AtomicU32);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn e56_followers_are_woken_once_by_the_landing_and_do_not_spin() {
    let (_, guard) = guard(|b| b.deadline(SECOND));
    let origin = Origin::default();
    let leader = start(&guard, &origin, Ok(7));
    settle().await;
    let wakes = Arc::new(Wakes(AtomicU32::new(0)));
    let waker = Waker::from(Arc::clone(&wakes));
    let mut follower = Box::pin(guard.call_owned((), "k", |_| std::future::pending()));
    assert!(
        Pin::new(&mut follower)
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(wakes.0.load(Ordering::SeqCst), 0);
    origin.open();
    assert_eq!(live(leader.await.unwrap()), 7);
    assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
    let Poll::Ready(end) = Pin::new(&mut follower).poll(&mut Context::from_waker(&waker)) else {
        panic!("woken for nothing")
    };
    assert_eq!(live(end), 7);
}

#[tokio::test]
async fn the_flight_stores_the_snapshot_though_all_who_asked_ran_out_of_time() {
    let (clock, guard) = guard(|b| b.deadline(SECOND).ladder([stale(60 * SECOND)]));
    let origin = Origin::default();
    let first = start(&guard, &origin, Ok(7));
    settle().await;
    clock.advance(SECOND - MS);
    let second = start(&guard, &origin, Ok(7));
    settle().await;
    clock.advance(MS);
    assert_eq!(
        first.await.unwrap().unwrap_err().skipped.why(Rung::Stale),
        Some(Skipped::NoSnapshot)
    );
    origin.open();
    assert_eq!(live(second.await.unwrap()), 7);
    let failing = guard.call((), "k", |_| async { Err(Fail::Down) }).await.unwrap();
    // It was observed when its attempt began, a second ago.
    assert_eq!(
        (failing.rung, failing.value, failing.age),
        (Rung::Stale, 7, Some(SECOND))
    );
}

#[tokio::test]
async fn what_is_forgotten_is_not_brought_back_by_a_flight_and_nobody_joins_it_any_more() {
    let (clock, guard) = guard(|b| b.ladder([stale(60 * SECOND)]));
    let origin = Origin::default();
    let before = start(&guard, &origin, Ok(1));
    settle().await;
    clock.advance(MS);
    guard.forget((), "k").unwrap();
    let after = start(&guard, &origin, Ok(2));
    settle().await;
    assert_eq!((origin.inside(), guard.counts().joined()), (2, 0));
    origin.open();
    assert_eq!(
        live(before.await.unwrap()),
        1,
        "who waited gets what was asked for"
    );
    assert_eq!(live(after.await.unwrap()), 2);
    let failing = guard.call((), "k", |_| async { Err(Fail::Down) }).await.unwrap();
    assert_eq!((failing.rung, failing.value), (Rung::Stale, 2));
}

#[tokio::test]
async fn a_guard_that_only_coalesces_keeps_nothing() {
    let (_, guard) = guard(|b| b);
    let origin = Origin::default();
    let call = start(&guard, &origin, Ok(7));
    settle().await;
    origin.open();
    assert_eq!(live(call.await.unwrap()), 7);
    assert_eq!((guard.memory().count(), guard.memory().bytes()), (0, 0));
}

#[tokio::test]
async fn beyond_ten_thousand_flights_calls_go_alone_and_the_tables_empty_again() {
    let (_, guard) = guard(|b| b);
    let origin = Origin::default();
    let mut calls: Vec<_> = (0..10_001_u32)
        .map(|key| {
            let (guard, origin) = (guard.clone(), origin.clone());
            Box::pin(async move {
                guard
                    .call_owned((), key.to_be_bytes(), move |_| origin.ask(Ok(key)))
                    .await
            })
        })
        .collect();
    assert!(calls.iter_mut().all(|call| poll(call.as_mut()).is_pending()));
    assert_eq!(guard.flights(), (10_000, 0));
    until("all ask", || origin.asked() == 10_001).await;
    drop(calls);
    until("no flight is left", || guard.flights() == (0, 0)).await;
    assert_eq!(origin.inside(), 0);
}

#[test]
fn outside_a_runtime_an_owned_call_is_an_ordinary_one() {
    let (_, guard) = guard(|b| b);
    let mut call = Box::pin(guard.call_owned((), "k", |_| async { Ok(7) }));
    let Poll::Ready(end) = poll(call.as_mut()) else {
        panic!("not answered")
    };
    assert_eq!((live(end), guard.flights()), (7, (0, 0)));
}
