//! Work that goes on after its attempt has run into its limit: its permit, its end, and what it brings home.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::time::Duration;

use evenkeel::{
    Class, Classifier, Ending, ManualClock, Read, ReadBuilder, Reason, Refreshed, Rung, State, stale,
};
use support::{End, Fail, MS, NS, Origin, SECOND, engine, poll, settle, wall};
use tokio::{runtime::Handle, task::JoinHandle};

type Guard = Read<u32, Fail>;
type Builder = ReadBuilder<u32, Classifier<Fail>>;

const TIMEOUT: Duration = SECOND;
const MORE: Duration = Duration::from_secs(5);

fn guard(change: impl FnOnce(Builder) -> Builder) -> (ManualClock, Guard) {
    let (clock, engine) = engine();
    let builder = engine
        .read::<u32>("g")
        .classify(Fail::class)
        .timeout(TIMEOUT)
        .concurrency(1)
        .finish_within(MORE)
        .ladder([stale(60 * SECOND)]);
    (clock, change(builder).build().unwrap())
}

fn start(guard: &Guard, origin: &Origin, says: Result<u32, Fail>) -> JoinHandle<End<u32>> {
    let (guard, origin) = (guard.clone(), origin.clone());
    tokio::spawn(async move { guard.call_owned((), "k", move |_| origin.ask(says)).await })
}

/// Starts a call and lets it run into its timeout.
async fn timed_out(clock: &ManualClock, guard: &Guard, origin: &Origin, says: Result<u32, Fail>) -> End<u32> {
    let call = start(guard, origin, says);
    settle().await;
    clock.advance(TIMEOUT);
    call.await.unwrap()
}

/// By itself, in a flight, and under a soft timeout.
const WAYS: [fn(Builder) -> Builder; 3] = [|b| b, Builder::coalesce, |b| b.soft_timeout(500 * MS)];

fn refreshes(guard: &Guard) -> [u64; 4] {
    Refreshed::ALL.map(|end| guard.counts().refreshes(end))
}

#[tokio::test]
async fn e26_what_goes_on_keeps_its_permit_and_its_answer_becomes_the_snapshot() {
    for change in WAYS {
        let (clock, guard) = guard(change);
        let origin = Origin::default();
        let refused = timed_out(&clock, &guard, &origin, Ok(2)).await.unwrap_err();
        assert_eq!(
            (refused.ending, refused.reason),
            (Ending::Refused, Some(Reason::TimedOut))
        );
        settle().await;
        assert_eq!((origin.inside(), guard.dependency().status().in_use), (1, 1));
        // E29: what goes on counts, so there is no room for another.
        let full = guard
            .call_owned((), "other", |_| async { Ok(9) })
            .await
            .unwrap_err();
        assert_eq!(full.reason, Some(Reason::AtCapacity));
        clock.advance(2 * SECOND);
        origin.open();
        settle().await;
        assert_eq!((origin.inside(), guard.dependency().status().in_use), (0, 0));
        let kept = guard
            .call_owned((), "k", |_| async { Err(Fail::Down) })
            .await
            .unwrap();
        assert_eq!(
            (kept.value, kept.rung, kept.age),
            (2, Rung::Stale, Some(3 * SECOND))
        );
        assert_eq!((origin.asked(), refreshes(&guard)), (1, [1, 0, 0, 0]));
        assert_eq!(
            (clock.sleepers(), Handle::current().metrics().num_alive_tasks()),
            (0, 0)
        );
    }
}

#[tokio::test]
async fn e29_what_goes_on_ends_at_its_cap_to_the_nanosecond() {
    for change in WAYS {
        let (clock, guard) = guard(change);
        let origin = Origin::default();
        assert!(timed_out(&clock, &guard, &origin, Ok(2)).await.is_err());
        settle().await;
        clock.advance(MORE - NS);
        settle().await;
        assert_eq!(origin.inside(), 1);
        clock.advance(NS);
        settle().await;
        assert_eq!((origin.inside(), guard.dependency().status().in_use), (0, 0));
        assert_eq!(refreshes(&guard), [0, 0, 1, 0]);
    }
}

#[tokio::test]
async fn the_timeout_is_a_failure_once_and_a_late_answer_is_no_second_verdict() {
    let (clock, guard) = guard(|b| b.breaker(|b| b.consecutive(1)));
    let origin = Origin::default();
    assert!(timed_out(&clock, &guard, &origin, Ok(2)).await.is_err());
    settle().await;
    assert_eq!(guard.dependency().status().state, Some(State::Open));
    origin.open();
    settle().await;
    assert_eq!(guard.dependency().status().state, Some(State::Open));
    let attempts = [Class::OUTAGE, Class::Answer].map(|class| guard.dependency().attempts(class));
    assert_eq!(attempts, [1, 0]);
}

#[tokio::test]
async fn e47_a_late_answer_never_replaces_a_newer_one_and_e46_brings_nothing_back() {
    for forget in [false, true] {
        let (clock, guard) = guard(|b| b.concurrency(2));
        let origin = Origin::default();
        assert!(timed_out(&clock, &guard, &origin, Ok(2)).await.is_err());
        settle().await;
        guard.call_owned((), "k", |_| async { Ok(3) }).await.unwrap();
        if forget {
            guard.forget((), "k").unwrap();
        }
        origin.open();
        settle().await;
        assert_eq!(refreshes(&guard), [0, 1, 0, 0]);
        let kept = guard.call_owned((), "k", |_| async { Err(Fail::Down) }).await;
        assert_eq!(kept.ok().map(|kept| kept.value), (!forget).then_some(3));
    }
}

#[tokio::test]
async fn a_late_word_that_it_is_gone_retires_what_is_kept_and_a_late_failure_does_not() {
    for (says, is_kept) in [(Fail::Gone, false), (Fail::Down, true)] {
        let (clock, guard) = guard(|b| b);
        guard.seed((), "k", 1, Some(wall(&clock))).unwrap();
        let origin = Origin::default();
        assert_eq!(
            timed_out(&clock, &guard, &origin, Err(says)).await.unwrap().value,
            1
        );
        settle().await;
        origin.open();
        settle().await;
        assert_eq!(guard.memory().count() == 1, is_kept, "{says:?}");
        assert_eq!(refreshes(&guard), [0, 0, 1, 0]);
    }
}

#[tokio::test]
async fn who_leaves_before_the_timeout_takes_the_work_along() {
    for change in WAYS {
        let (clock, guard) = guard(change);
        let origin = Origin::default();
        let call = start(&guard, &origin, Ok(2));
        settle().await;
        clock.advance(400 * MS);
        call.abort();
        assert!(call.await.is_err());
        settle().await;
        assert_eq!((origin.inside(), guard.dependency().status().in_use), (0, 0));
        assert_eq!(guard.dependency().attempts(Class::Cancelled), 1);
        assert_eq!((clock.sleepers(), refreshes(&guard)), (0, [0; 4]));
    }
}

#[tokio::test]
async fn borrowed_work_and_work_in_time_are_as_without_it() {
    let (clock, guard) = guard(|b| b);
    let origin = Origin::default();
    let mut call = Box::pin(guard.call((), "k", |_| origin.clone().ask(Ok(2))));
    assert!(poll(call.as_mut()).is_pending());
    clock.advance(TIMEOUT);
    assert!(call.await.is_err());
    assert_eq!((origin.inside(), guard.dependency().status().in_use), (0, 0));
    let owned = start(&guard, &origin, Ok(3));
    settle().await;
    clock.advance(TIMEOUT - NS);
    origin.open();
    let answer = owned.await.unwrap().unwrap();
    assert_eq!((answer.value, answer.rung, answer.kept), (3, Rung::Live, true));
    assert_eq!(refreshes(&guard), [0; 4]);
}

#[tokio::test]
async fn work_that_breaks_late_frees_its_permit() {
    let (clock, guard) = guard(|b| b);
    let origin = Origin::default();
    let call = tokio::spawn({
        let (guard, origin) = (guard.clone(), origin.clone());
        async move { guard.call_owned((), "k", move |_| origin.break_down()).await }
    });
    settle().await;
    clock.advance(TIMEOUT);
    assert!(call.await.unwrap().is_err());
    settle().await;
    origin.open();
    settle().await;
    assert_eq!((origin.inside(), guard.dependency().status().in_use), (0, 0));
    assert_eq!(refreshes(&guard), [0, 0, 1, 0]);
}

#[test]
fn work_that_could_go_on_without_a_cap_is_refused_with_its_place() {
    let problems = |change: fn(Builder) -> Builder| {
        let (_, engine) = engine();
        let builder = engine
            .read::<u32>("g")
            .classify(Fail::class)
            .fresh_for(SECOND)
            .finish_within(MORE);
        change(builder).build().err().map(|problems| problems.to_string())
    };
    assert_eq!(problems(|b| b.timeout(SECOND).concurrency(1)), None);
    assert_eq!(problems(|b| b.deadline(SECOND).concurrency(1)), None);
    let told = "read.finish_within: set without a limit that ends attempts, or without one of how many there are; allowed: \
                beside a timeout or deadline, and `concurrency` or a learned limit; declare them: what goes on counts as \
                in flight, and has to have a cap";
    assert_eq!(problems(|b| b.timeout(SECOND)).as_deref(), Some(told));
    assert_eq!(problems(|b| b.concurrency(1)).as_deref(), Some(told));
}
