//! What happens where two features meet: copies of the caller's own, the queue, the alternate, shared attempts, time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::time::Duration;

use evenkeel::{
    Ending, Engine, Held, Keep, Moment, Now, Read, Reason, Refreshed, Rung, Terms, Together, stale,
};
use support::{End, Fail, MS, Origin, SECOND, engine, settle, until};
use tokio::task::JoinHandle;

const LONG: Duration = Duration::from_secs(365 * 86_400);

fn key() -> Vec<u8> {
    b"k".to_vec()
}

fn nothing(_: Moment, _: Now) -> Option<Held<u32>> {
    None
}

/// Starts a call in a task of its own that shares its attempt.
fn start(guard: &Read<u32, Fail>, origin: &Origin) -> JoinHandle<End<u32>> {
    let (guard, origin) = (guard.clone(), origin.clone());
    tokio::spawn(async move {
        guard
            .call_owned((), "k", move |_| async move { origin.ask(Ok(7)).await })
            .await
    })
}

/// A guard with one permit, which is taken, a queue for it, and shared attempts.
async fn crowded(engine: &Engine) -> (Read<u32, Fail>, Origin, JoinHandle<End<u32>>) {
    let guard = engine
        .read::<u32>("g")
        .concurrency(1)
        .queue(10, 60 * SECOND)
        .classify(Fail::class)
        .coalesce()
        .build()
        .unwrap();
    let holder = engine
        .read::<u32>("holder")
        .from(guard.dependency())
        .classify(Fail::class)
        .build()
        .unwrap();
    let origin = Origin::default();
    let first = start(&holder, &origin);
    until("the permit is taken", || origin.inside() == 1).await;
    (guard, origin, first)
}

#[tokio::test]
async fn a_slow_limit_beside_copies_of_the_callers_own_keeps_nothing_in_the_guards_store() {
    let (_, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .timeout(SECOND)
        .soft_timeout(200 * MS)
        .classify(Fail::class)
        .own_lifetimes()
        .ladder([stale(LONG)])
        .build()
        .unwrap();
    for together in [Together::Alone(&key), Together::Shared(&key)] {
        let answer = guard
            .call_held((), "", &nothing, together, None, |_, permit| async move {
                drop(permit);
                Ok(3)
            })
            .await
            .unwrap();
        assert_eq!((answer.value, answer.kept), (3, false));
        assert_eq!(guard.memory().count(), 0);
    }
}

#[tokio::test]
async fn late_work_counts_as_kept_where_its_caller_keeps_copies_and_says_so() {
    for (keep, expected) in [(Keep::Yes, Refreshed::Kept), (Keep::Leave, Refreshed::NotKept)] {
        let (clock, engine) = engine();
        let guard = engine
            .read::<u32>("g")
            .timeout(SECOND)
            .concurrency(10)
            .finish_within(10 * SECOND)
            .classify(Fail::class)
            .own_lifetimes()
            .terms(move |_| Terms {
                keep,
                ..Terms::default()
            })
            .ladder([stale(LONG)])
            .build()
            .unwrap();
        let origin = Origin::default();
        let call = tokio::spawn({
            let (guard, origin) = (guard.clone(), origin.clone());
            async move {
                let work = move |_, permit| {
                    let origin = origin.clone();
                    async move {
                        let end = origin.ask(Ok(3)).await;
                        drop(permit);
                        end
                    }
                };
                guard
                    .call_held((), "", &nothing, Together::Alone(&key), None, work)
                    .await
            }
        });
        until("it is asked", || origin.inside() == 1).await;
        clock.advance(SECOND);
        assert_eq!(call.await.unwrap().unwrap_err().reason, Some(Reason::TimedOut));
        origin.open();
        settle().await;
        assert_eq!(guard.counts().refreshes(expected), 1, "{keep:?}");
    }
}

#[tokio::test]
async fn nobody_waits_for_a_permit_in_the_time_that_is_kept_free_for_the_alternate() {
    let (clock, engine) = engine();
    let spare = engine.dependency("spare").timeout(300 * MS).build().unwrap();
    let guard = engine
        .read::<u32>("g")
        .deadline(SECOND)
        .concurrency(1)
        .queue(10, 60 * SECOND)
        .classify(Fail::class)
        .alternate(&spare, |(), _, _| async { Ok(2) })
        .build()
        .unwrap();
    let holder = engine
        .read::<u32>("holder")
        .from(guard.dependency())
        .classify(Fail::class)
        .build()
        .unwrap();
    let origin = Origin::default();
    let first = start(&holder, &origin);
    until("the permit is taken", || origin.inside() == 1).await;
    let call = start(&guard, &origin);
    until("it waits", || guard.dependency().status().waiting == 1).await;
    clock.advance(700 * MS);
    settle().await;
    let answer = call.await.unwrap().unwrap();
    assert_eq!(
        (answer.value, answer.rung, answer.reason),
        (2, Rung::Alternate, Some(Reason::QueueExpired))
    );
    origin.open();
    first.await.unwrap().unwrap();
}

#[tokio::test]
async fn e55_those_who_share_an_attempt_outlast_any_number_who_leave_before_it_is_admitted() {
    // Who takes over is left to chance each time.
    for _ in 0..20 {
        let (_, engine) = engine();
        let (guard, origin, first) = crowded(&engine).await;
        let mut leavers = Vec::new();
        for _ in 0..4 {
            leavers.push(start(&guard, &origin));
            settle().await;
        }
        let patient = start(&guard, &origin);
        settle().await;
        assert_eq!(
            guard.dependency().status().waiting,
            1,
            "one leads, the others wait for it"
        );
        for leaver in leavers {
            leaver.abort();
            settle().await;
        }
        assert!(!patient.is_finished(), "it was told of a fault that nobody made");
        origin.open();
        first.await.unwrap().unwrap();
        until("it is asked", || origin.inside() == 1).await;
        origin.open();
        assert_eq!(patient.await.unwrap().unwrap().value, 7);
        let counts = guard.counts();
        assert_eq!((counts.total(Ending::Abandoned), counts.calls()), (4, 5));
        assert_eq!((guard.flights(), origin.asked()), ((0, 0), 2));
    }
}

#[tokio::test]
async fn g01_the_lease_of_a_shared_attempt_counts_from_its_admission() {
    let (clock, engine) = engine();
    let (guard, origin, first) = crowded(&engine).await;
    let leader = start(&guard, &origin);
    until("it waits", || guard.dependency().status().waiting == 1).await;
    clock.advance(31 * SECOND);
    let second = start(&guard, &origin);
    settle().await;
    assert_eq!(
        guard.dependency().status().waiting,
        1,
        "who waits for a permit is not hung"
    );
    origin.open();
    first.await.unwrap().unwrap();
    until("it is asked", || origin.inside() == 1).await;
    clock.advance(500 * MS);
    let third = start(&guard, &origin);
    settle().await;
    assert_eq!((guard.dependency().status().waiting, guard.flights().0), (0, 1));
    origin.open();
    for call in [leader, second, third] {
        assert_eq!(call.await.unwrap().unwrap().value, 7);
    }
    assert_eq!(origin.asked(), 2);
}
