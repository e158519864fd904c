//! Calls that bring their own copies: what they get, what is counted, and what is left when a caller leaves.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{
    future::poll_fn,
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use evenkeel::{
    Class, Ending, Engine, Facts, Held, ManualClock, Moment, Now, Read, Reason, Refreshed, Rung, Skipped,
    Together, classify, stale,
};
use parking_lot::Mutex;

const LONG: Duration = Duration::from_secs(365 * 86_400);

fn guard(engine: &Engine) -> Read<u32, io::Error> {
    engine
        .read::<u32>("g")
        .timeout(Duration::from_secs(1))
        .concurrency(10)
        .classify(classify::io)
        .own_lifetimes()
        .ladder([stale(LONG)])
        .build()
        .unwrap()
}

/// A copy that was observed so long ago, with such a lifetime and window.
fn copy(ago: u64, lifetime: Duration, window: Duration) -> impl Fn(Moment, Now) -> Option<Held<u32>> {
    move |_, now| {
        Some(Held {
            value: 7,
            facts: Facts {
                observed: Some(now.mono.before(Duration::from_secs(ago))),
                lifetime: Some(lifetime),
                revalidate: Some(window),
                ..Facts::default()
            },
            observed_wall: None,
        })
    }
}

fn key() -> Vec<u8> {
    b"k".to_vec()
}

fn refused() -> io::Error {
    io::ErrorKind::ConnectionRefused.into()
}

#[tokio::test]
async fn a_copy_within_its_lifetime_answers_without_asking_and_without_a_key() {
    let guard = guard(&Engine::new(ManualClock::new(), 7));
    let bring = copy(5, LONG, Duration::ZERO);
    let written = AtomicUsize::new(0);
    let key = || {
        written.fetch_add(1, Ordering::Relaxed);
        key()
    };
    let answer = guard
        .call_held((), "", &bring, Together::Shared(&key), None, |_, _| async {
            panic!("asked")
        })
        .await
        .unwrap();
    assert_eq!((answer.value, answer.rung), (7, Rung::Fresh));
    assert_eq!(answer.age, Some(Duration::from_secs(5)));
    assert_eq!(written.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_copy_is_brought_once_more_when_asking_has_failed_and_judged_as_it_is_then() {
    let guard = guard(&Engine::new(ManualClock::new(), 7));
    let moments = Mutex::new(Vec::new());
    let bring = |moment, now: Now| {
        moments.lock().push(moment);
        let mut held = copy(5, Duration::ZERO, Duration::ZERO)(moment, now)?;
        held.facts.forbidden = moments.lock().len() > 2;
        Some(held)
    };
    let ask = async || {
        guard
            .call_held(
                (),
                "",
                &bring,
                Together::Alone(&key),
                None,
                |_, permit| async move {
                    drop(permit);
                    Err(refused())
                },
            )
            .await
    };
    let old = ask().await.unwrap();
    assert_eq!(
        (old.rung, old.reason),
        (Rung::Stale, Some(Reason::DependencyFailed))
    );
    assert_eq!(*moments.lock(), [Moment::BeforeAsking, Moment::AfterFailure]);
    let refused = ask().await.unwrap_err();
    assert_eq!(refused.skipped.why(Rung::Stale), Some(Skipped::Forbidden));
}

#[tokio::test]
async fn the_guards_own_store_is_neither_read_nor_written() {
    let guard = guard(&Engine::new(ManualClock::new(), 7));
    let nothing = |_, _| None;
    let answer = guard
        .call_held(
            (),
            "",
            &nothing,
            Together::Shared(&key),
            None,
            |_, permit| async move {
                drop(permit);
                Ok(3)
            },
        )
        .await
        .unwrap();
    assert_eq!((answer.value, answer.kept), (3, false));
    assert_eq!(guard.memory().count(), 0);
}

#[tokio::test]
async fn a_copy_in_its_window_is_refreshed_by_one_attempt_that_belongs_to_nobody() {
    let guard = guard(&Engine::new(ManualClock::new(), 7));
    let bring = copy(5, Duration::ZERO, LONG);
    let asked = Arc::new(AtomicUsize::new(0));
    let go = Arc::new(tokio::sync::Semaphore::new(0));
    for _ in 0..5 {
        let (asked, go) = (Arc::clone(&asked), Arc::clone(&go));
        let work = move |_, permit| {
            let (asked, go) = (Arc::clone(&asked), Arc::clone(&go));
            async move {
                asked.fetch_add(1, Ordering::SeqCst);
                go.acquire().await.unwrap().forget();
                drop(permit);
                Ok(3)
            }
        };
        let answer = guard
            .call_held((), "", &bring, Together::Shared(&key), None, work)
            .await
            .unwrap();
        assert_eq!(
            (answer.rung, answer.reason),
            (Rung::Stale, Some(Reason::Revalidating))
        );
        tokio::task::yield_now().await;
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    go.add_permits(1);
    while guard.flights() != (0, 0) {
        tokio::task::yield_now().await;
    }
    // It says nothing about being kept, so it is not.
    assert_eq!(guard.counts().refreshes(Refreshed::NotKept), 1);
    assert_eq!(guard.dependency().status().in_use, 0);
}

/// Drops a call after so many polls, and says whether it had ended by then.
async fn left_after(guard: &Read<u32, io::Error>, polls: usize, alone: bool) -> bool {
    let nothing = |_, _| None;
    let together = if alone {
        Together::Alone(&key)
    } else {
        Together::Shared(&key)
    };
    let mut call = pin!(
        guard.call_held((), "", &nothing, together, None, |_, permit| async move {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            drop(permit);
            Ok(3)
        })
    );
    for _ in 0..polls {
        let ended = poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready())).await;
        if ended {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

#[tokio::test]
async fn whoever_leaves_at_whichever_await_leaves_no_permit_and_no_flight_behind() {
    for alone in [true, false] {
        let mut left = 0;
        for polls in 1..20 {
            let guard = guard(&Engine::new(ManualClock::new(), 7));
            let ended = left_after(&guard, polls, alone).await;
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            assert_eq!(guard.dependency().status().in_use, 0, "{polls}");
            assert_eq!(guard.flights(), (0, 0), "{polls}");
            let counts = guard.counts();
            let ending = if ended {
                Ending::Answered(Rung::Live)
            } else {
                Ending::Abandoned
            };
            assert_eq!((counts.calls(), counts.total(ending)), (1, 1), "{polls}");
            left += usize::from(!ended);
        }
        assert!(left > 2, "some did leave in between");
    }
}

#[tokio::test]
async fn what_may_not_be_shared_is_looked_for_again_before_it_is_asked_for() {
    let engine = Engine::new(ManualClock::new(), 7);
    let guard: Read<u32, Arc<io::Error>> = engine
        .read::<u32>("g")
        .classify(|_: &Arc<io::Error>| Class::OUTAGE)
        .own_lifetimes()
        .coalesce()
        .share_if(|_| false)
        .ladder([stale(LONG)])
        .build()
        .unwrap();
    let kept = Arc::new(AtomicUsize::new(0));
    let asked = Arc::new(AtomicUsize::new(0));
    let one = || {
        let (guard, kept, asked) = (guard.clone(), Arc::clone(&kept), Arc::clone(&asked));
        async move {
            let seen = Arc::clone(&kept);
            let bring = move |moment, now| {
                (seen.load(Ordering::SeqCst) > 0)
                    .then(|| copy(0, LONG, Duration::ZERO)(moment, now))
                    .flatten()
            };
            let work = move |_, permit| {
                let (kept, asked) = (Arc::clone(&kept), Arc::clone(&asked));
                async move {
                    asked.fetch_add(1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    kept.fetch_add(1, Ordering::SeqCst);
                    drop(permit);
                    Ok(3)
                }
            };
            guard
                .call_held((), "", &bring, Together::Shared(&key), None, work)
                .await
                .unwrap()
                .rung
        }
    };
    let (first, second) = tokio::join!(one(), one());
    assert_eq!((first, second), (Rung::Live, Rung::Fresh));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn e60_an_alternate_is_asked_for_who_keeps_copies_and_its_time_is_kept_free_for_it() {
    let engine = Engine::new(ManualClock::new(), 7);
    let spare = engine
        .dependency("spare")
        .timeout(Duration::from_secs(1))
        .build()
        .unwrap();
    let guard = engine
        .read::<u32>("g")
        .classify(evenkeel::classify::io)
        .own_lifetimes()
        .ladder([stale(LONG)])
        .alternate(&spare, |(), key, _call| {
            assert_eq!(key, b"asked");
            async { Ok(9) }
        })
        .build()
        .unwrap();
    let nothing = |_, _: Now| None;
    for together in [Together::Shared(&key), Together::Alone(&key)] {
        let answer = guard
            .call_held((), "asked", &nothing, together, None, |_, permit| async move {
                drop(permit);
                Err(refused())
            })
            .await
            .unwrap();
        assert_eq!((answer.value, answer.rung), (9, Rung::Alternate));
    }
    // Under a hold nobody asks the first; what is brought first stands in before the alternate.
    guard
        .hold(evenkeel::Hold {
            mode: evenkeel::HoldMode::ForcedOpen,
            by: "ops".to_owned(),
            why: "test".to_owned(),
            lasts: None,
        })
        .unwrap();
    let held = async |bring: evenkeel::Bring<'_, u32>| {
        guard
            .call_held((), "asked", bring, Together::Alone(&key), None, |_, _| async {
                panic!("asked")
            })
            .await
            .unwrap()
            .rung
    };
    assert_eq!(held(&nothing).await, Rung::Alternate);
    assert_eq!(held(&copy(5, Duration::ZERO, Duration::ZERO)).await, Rung::Stale);
}
