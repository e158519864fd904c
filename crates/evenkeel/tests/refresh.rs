//! Copies that are past their lifetime and inside their window: served at once, while one refresh runs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::time::Duration;

use evenkeel::{
    Class, Ending, Hold, HoldMode, Keep, ManualClock, Read, ReadBuilder, Reason, Refreshed, Rung, State,
    Terms, default, stale,
};
use support::{End, Fail, MS, NS, Origin, SECOND, engine, poll, settle, wall};

type Guard = Read<u32, Fail>;
type Builder = ReadBuilder<u32, evenkeel::Classifier<Fail>>;

const LIFETIME: Duration = Duration::from_secs(10);
const WINDOW: Duration = Duration::from_secs(20);

/// A guard with a copy of 1 that is just past its lifetime.
async fn past_its_lifetime(change: impl FnOnce(Builder) -> Builder) -> (ManualClock, Guard) {
    let (clock, engine) = engine();
    let builder = engine
        .read::<u32>("g")
        .classify(Fail::class)
        .timeout(SECOND)
        .fresh_for(LIFETIME)
        .stale_while_revalidate(WINDOW)
        .ladder([stale(60 * SECOND)]);
    let guard = change(builder).build().unwrap();
    let first = guard.call_owned((), "k", |_| async { Ok(1) }).await.unwrap();
    assert!(first.kept);
    clock.advance(LIFETIME);
    (clock, guard)
}

/// Calls with work that is asked at the origin, which answers when its gate opens.
async fn ask(guard: &Guard, origin: &Origin, says: Result<u32, Fail>) -> End<u32> {
    let origin = origin.clone();
    guard.call_owned((), "k", move |_| origin.ask(says)).await
}

fn assert_revalidating(end: End<u32>, value: u32, age: Duration) {
    let answer = end.unwrap();
    assert_eq!(
        (answer.value, answer.rung, answer.age, answer.reason),
        (value, Rung::Stale, Some(age), Some(Reason::Revalidating))
    );
    assert!(answer.skipped.is_empty() && answer.cause.is_none() && !answer.joined && !answer.kept);
}

fn refreshes(guard: &Guard) -> [u64; 4] {
    Refreshed::ALL.map(|end| guard.counts().refreshes(end))
}

#[tokio::test]
async fn every_caller_in_the_window_gets_the_copy_at_once_and_the_source_is_asked_once() {
    let (clock, guard) = past_its_lifetime(|b| b).await;
    let origin = Origin::default();
    for _ in 0..10 {
        assert_revalidating(ask(&guard, &origin, Ok(2)).await, 1, LIFETIME);
    }
    settle().await;
    assert_eq!((origin.asked(), guard.flights().0), (1, 1));
    clock.advance(200 * MS);
    origin.open();
    settle().await;
    assert_eq!(
        (origin.asked(), guard.flights().0, refreshes(&guard)),
        (1, 0, [1, 0, 0, 0])
    );
    let new = ask(&guard, &origin, Ok(3)).await.unwrap();
    // Its age counts from the beginning of the refresh.
    assert_eq!((new.value, new.rung, new.age), (2, Rung::Fresh, Some(200 * MS)));
    let stale = Ending::Answered(Rung::Stale);
    let counts = guard.counts();
    assert_eq!(counts.get(stale, Some(Reason::Revalidating)), 10);
    assert_eq!((counts.total(stale), counts.calls()), (10, 12));
}

#[tokio::test]
async fn case_037_a_refresh_bypasses_reading_only_and_its_success_is_stored() {
    let (clock, guard) = past_its_lifetime(|b| b).await;
    clock.advance(5 * SECOND);
    assert_revalidating(ask_now(&guard, Ok(2)).await, 1, 15 * SECOND);
    settle().await;
    clock.advance(SECOND);
    let third = ask_now(&guard, Ok(3)).await.unwrap();
    assert_eq!((third.value, third.age), (2, Some(SECOND)));
}

async fn ask_now(guard: &Guard, says: Result<u32, Fail>) -> End<u32> {
    guard.call_owned((), "k", move |_| async move { says }).await
}

#[tokio::test]
async fn case_038_g11_a_refresh_goes_on_when_the_client_who_caused_it_leaves() {
    let (clock, guard) = past_its_lifetime(|b| b).await;
    let origin = Origin::default();
    let mut call = Box::pin(ask(&guard, &origin, Ok(2)));
    assert!(poll(call.as_mut()).is_ready());
    drop(call);
    settle().await;
    clock.advance(500 * MS);
    origin.open();
    settle().await;
    assert_eq!((origin.asked(), refreshes(&guard)), (1, [1, 0, 0, 0]));
    assert_eq!(guard.dependency().attempts(Class::Answer), 2);
    assert_eq!(guard.dependency().attempts(Class::Cancelled), 0);
    assert_eq!(ask_now(&guard, Ok(3)).await.unwrap().value, 2);
}

#[tokio::test]
async fn e37_g09_a_refresh_that_fails_leaves_the_copy_its_age_and_its_window() {
    let (clock, guard) = past_its_lifetime(|b| b).await;
    for second in 0..=20 {
        assert_revalidating(
            ask_now(&guard, Err(Fail::Down)).await,
            1,
            LIFETIME + second * SECOND,
        );
        settle().await;
        clock.advance(SECOND);
    }
    // The window is over, and the failure shows as what it is.
    let late = ask_now(&guard, Err(Fail::Down)).await.unwrap();
    assert_eq!((late.value, late.reason), (1, Some(Reason::DependencyFailed)));
    assert_eq!(refreshes(&guard), [0, 0, 21, 0]);
}

#[tokio::test]
async fn the_window_ends_to_the_nanosecond() {
    let (clock, guard) = past_its_lifetime(|b| b).await;
    clock.advance(WINDOW);
    assert_revalidating(ask_now(&guard, Err(Fail::Down)).await, 1, LIFETIME + WINDOW);
    settle().await;
    clock.advance(NS);
    assert_eq!(ask_now(&guard, Ok(2)).await.unwrap().rung, Rung::Live);
}

#[tokio::test]
async fn a_refresh_that_is_refused_is_not_called_revalidating() {
    let (_, guard) = past_its_lifetime(|b| b.concurrency(1).breaker(|b| b.consecutive(1))).await;
    let origin = Origin::default();
    let mut other = Box::pin(guard.call((), "other", |_| origin.clone().ask(Err(Fail::Down))));
    assert!(poll(other.as_mut()).is_pending());
    let full = ask_now(&guard, Ok(2)).await.unwrap();
    assert_eq!((full.rung, full.reason), (Rung::Stale, Some(Reason::AtCapacity)));
    origin.open();
    assert!(other.await.is_err());
    let open = ask_now(&guard, Ok(2)).await.unwrap();
    assert_eq!((open.rung, open.reason), (Rung::Stale, Some(Reason::BreakerOpen)));
    settle().await;
    assert_eq!(refreshes(&guard), [0, 0, 0, 2]);
    assert_eq!(guard.dependency().status().in_use, 0);
}

#[tokio::test]
async fn a_refresh_is_the_probe_when_one_is_due_and_closes_the_breaker() {
    let (clock, guard) =
        past_its_lifetime(|b| b.breaker(|b| b.consecutive(1).open_for(SECOND, SECOND).jitter(0))).await;
    assert!(
        guard
            .call((), "other", |_| async { Err(Fail::Down) })
            .await
            .is_err()
    );
    clock.advance(SECOND);
    assert_revalidating(ask_now(&guard, Ok(2)).await, 1, LIFETIME + SECOND);
    settle().await;
    assert_eq!(guard.dependency().status().state, Some(State::Closed));
    assert_eq!(ask_now(&guard, Ok(3)).await.unwrap().value, 2);
}

#[tokio::test]
async fn g05_a_refresh_that_hangs_ends_with_its_own_limit_and_holds_up_nobody() {
    for (timeout, ends) in [(Some(SECOND), SECOND), (None, 3 * SECOND)] {
        let (clock, engine) = engine();
        let builder = engine.read::<u32>("g").classify(Fail::class).deadline(3 * SECOND);
        let builder = match timeout {
            Some(timeout) => builder.timeout(timeout),
            None => builder,
        };
        let guard = builder
            .fresh_for(LIFETIME)
            .stale_while_revalidate(WINDOW)
            .ladder([stale(60 * SECOND)])
            .build()
            .unwrap();
        guard.seed((), "k", 1, Some(wall(&clock) - LIFETIME)).unwrap();
        let origin = Origin::default();
        let hanging = origin.clone();
        let end = guard.call_owned((), "k", move |_| hanging.hang()).await;
        assert_revalidating(end, 1, LIFETIME);
        settle().await;
        clock.advance(ends - NS);
        settle().await;
        assert_eq!((origin.inside(), guard.flights().0), (1, 1));
        clock.advance(NS);
        settle().await;
        assert_eq!((origin.inside(), guard.flights().0), (0, 0));
        assert_eq!(refreshes(&guard), [0, 0, 1, 0]);
    }
}

#[tokio::test]
async fn a_refresh_whose_work_breaks_is_counted_and_frees_its_place() {
    let (_, guard) = past_its_lifetime(|b| b).await;
    let origin = Origin::default();
    let breaking = origin.clone();
    let end = guard.call_owned((), "k", move |_| breaking.break_down()).await;
    assert_revalidating(end, 1, LIFETIME);
    settle().await;
    origin.open();
    settle().await;
    assert_eq!((refreshes(&guard), guard.flights().0), ([0, 0, 1, 0], 0));
    assert_eq!(guard.dependency().attempts(Class::Fault), 1);
}

#[tokio::test]
async fn e46_a_refresh_under_way_does_not_bring_back_what_was_forgotten() {
    let (clock, guard) = past_its_lifetime(|b| b).await;
    let origin = Origin::default();
    assert_revalidating(ask(&guard, &origin, Ok(2)).await, 1, LIFETIME);
    settle().await;
    clock.advance(MS);
    guard.forget((), "k").unwrap();
    origin.open();
    settle().await;
    assert_eq!(refreshes(&guard), [0, 1, 0, 0]);
    let fresh = ask_now(&guard, Ok(3)).await.unwrap();
    assert_eq!((fresh.value, fresh.rung), (3, Rung::Live));
}

#[tokio::test]
async fn with_coalesce_those_whose_copy_is_past_its_window_join_the_refresh() {
    let (clock, guard) = past_its_lifetime(Builder::coalesce).await;
    let origin = Origin::default();
    clock.advance(WINDOW);
    assert_revalidating(ask(&guard, &origin, Ok(2)).await, 1, LIFETIME + WINDOW);
    clock.advance(500 * MS);
    let mut joined = Box::pin(ask(&guard, &origin, Ok(3)));
    assert!(poll(joined.as_mut()).is_pending());
    settle().await;
    origin.open();
    let answer = joined.await.unwrap();
    assert_eq!((answer.value, answer.rung, answer.joined), (2, Rung::Live, true));
    assert_eq!((origin.asked(), guard.counts().joined()), (1, 1));
}

#[tokio::test]
async fn with_coalesce_a_refresh_goes_on_when_everybody_who_joined_it_has_left() {
    let (clock, guard) = past_its_lifetime(Builder::coalesce).await;
    let origin = Origin::default();
    clock.advance(WINDOW);
    assert_revalidating(ask(&guard, &origin, Ok(2)).await, 1, LIFETIME + WINDOW);
    clock.advance(NS);
    let mut joined = Box::pin(ask(&guard, &origin, Ok(3)));
    assert!(poll(joined.as_mut()).is_pending());
    drop(joined);
    settle().await;
    origin.open();
    settle().await;
    assert_eq!((origin.asked(), refreshes(&guard)), (1, [1, 0, 0, 0]));
}

#[tokio::test]
async fn borrowed_work_and_what_is_one_callers_own_ask_by_themselves_unless_a_refresh_runs() {
    let (_, guard) = past_its_lifetime(|b| b).await;
    let borrowed = guard.call((), "k", |_| async { Err(Fail::Down) }).await.unwrap();
    assert_eq!(
        (borrowed.value, borrowed.reason),
        (1, Some(Reason::DependencyFailed))
    );
    let alone = |says: u32| {
        guard.call_alone((), "k", None, move |_, permit| async move {
            drop(permit);
            Ok(says)
        })
    };
    let origin = Origin::default();
    assert_revalidating(ask(&guard, &origin, Ok(2)).await, 1, LIFETIME);
    settle().await;
    assert_revalidating(guard.call((), "k", |_| async { Ok(3) }).await, 1, LIFETIME);
    assert_revalidating(alone(4).await, 1, LIFETIME);
    origin.open();
    settle().await;
    guard.forget((), "k").unwrap();
    assert_eq!(alone(5).await.unwrap().rung, Rung::Live);
}

#[test]
fn outside_a_runtime_a_call_asks_by_itself() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (_, guard) = runtime.block_on(past_its_lifetime(|b| b));
    let mut call = Box::pin(ask_now(&guard, Ok(2)));
    let std::task::Poll::Ready(Ok(answer)) = poll(call.as_mut()) else {
        panic!("it waited")
    };
    assert_eq!((answer.value, answer.rung), (2, Rung::Live));
}

#[tokio::test]
async fn holds_that_keep_calls_away_start_no_refresh_and_name_themselves() {
    let (_, guard) = past_its_lifetime(|b| b).await;
    let origin = Origin::default();
    guard
        .hold(Hold {
            mode: HoldMode::ForcedOpen,
            by: "ops".into(),
            why: "test".into(),
            lasts: None,
        })
        .unwrap();
    let held = ask(&guard, &origin, Ok(2)).await.unwrap();
    assert_eq!((held.rung, held.reason), (Rung::Stale, Some(Reason::Held)));
    settle().await;
    assert_eq!(origin.asked(), 0);
}

/// A guard whose copies bring their lifetime and window, and whose contract lists no stale rung.
fn by_its_own_terms(terms: Terms) -> (ManualClock, Guard) {
    let (clock, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .classify(Fail::class)
        .own_lifetimes()
        .terms(move |_| terms)
        .ladder([default(|| 0)])
        .build()
        .unwrap();
    (clock, guard)
}

#[tokio::test]
async fn a_copys_own_permission_opens_a_window_without_a_stale_rung() {
    let (clock, guard) = by_its_own_terms(Terms {
        lifetime: Some(SECOND),
        revalidate: Some(4 * SECOND),
        ..Terms::default()
    });
    assert_eq!(ask_now(&guard, Ok(1)).await.unwrap().rung, Rung::Live);
    clock.advance(SECOND - NS);
    assert_eq!(ask_now(&guard, Ok(2)).await.unwrap().rung, Rung::Fresh);
    clock.advance(NS + 4 * SECOND);
    assert_revalidating(ask_now(&guard, Err(Fail::Down)).await, 1, 5 * SECOND);
    settle().await;
    clock.advance(NS);
    let past = ask_now(&guard, Err(Fail::Down)).await.unwrap();
    assert_eq!((past.value, past.rung), (0, Rung::Default));
}

#[tokio::test]
async fn a_copy_without_a_lifetime_or_with_none_left_is_never_fresh() {
    for lifetime in [None, Some(Duration::ZERO)] {
        let (_, guard) = by_its_own_terms(Terms {
            lifetime,
            ..Terms::default()
        });
        for says in [1, 2] {
            assert_eq!(ask_now(&guard, Ok(says)).await.unwrap().rung, Rung::Live);
        }
    }
}

#[tokio::test]
async fn g16_a_copy_that_forbids_being_stale_is_asked_for_instead_of_revalidated() {
    let (clock, guard) = past_its_lifetime(|b| {
        b.terms(|value| Terms {
            stale_forbidden: *value > 1,
            keep: Keep::Yes,
            ..Terms::default()
        })
    })
    .await;
    assert_revalidating(ask_now(&guard, Ok(2)).await, 1, LIFETIME);
    settle().await;
    clock.advance(LIFETIME);
    assert_eq!(ask_now(&guard, Ok(3)).await.unwrap().rung, Rung::Live);
}

#[test]
fn a_window_without_a_stale_rung_or_a_lifetime_is_refused_with_its_place() {
    let problems = |change: fn(Builder) -> Builder| {
        let (_, engine) = engine();
        let built = change(engine.read::<u32>("g").classify(Fail::class)).build();
        built.unwrap_err().to_string()
    };
    assert_eq!(
        problems(|b| b.fresh_for(SECOND).stale_while_revalidate(SECOND)),
        "read.stale_while_revalidate: set without a stale rung; allowed: beside a stale rung, which says how old an \
         answer may be at all; add `stale` to the ladder, or remove it"
    );
    assert_eq!(
        problems(|b| b.ladder([stale(SECOND)]).stale_while_revalidate(SECOND)),
        "read.stale_while_revalidate: set without `fresh_for`; allowed: beside `fresh_for`: the window begins where the \
         lifetime ends; add `fresh_for`, or remove it"
    );
    assert_eq!(
        problems(|b| b.exact().own_lifetimes()),
        "read.own_lifetimes: set together with `exact`; allowed: nothing but an answer asked for this call; remove it, \
         or `exact`"
    );
}
