//! Copies refreshed ahead of their end, lifetimes that do not line up, and keys that cool down after a failure.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::{collections::BTreeSet, time::Duration};

use evenkeel::{
    Advice, Class, Classifier, Ending, ManualClock, Read, ReadBuilder, Reason, Refreshed, Rung, Terms,
    default, stale,
};
use support::{End, Fail, MS, NS, Origin, SECOND, engine, settle};

type Guard = Read<u32, Fail>;
type Builder = ReadBuilder<u32, Classifier<Fail>>;

fn guard(change: impl FnOnce(Builder) -> Builder) -> (ManualClock, Guard) {
    let (clock, engine) = engine();
    let builder = engine.read::<u32>("g").classify(Fail::class).timeout(5 * SECOND);
    (clock, change(builder).build().unwrap())
}

async fn ask(guard: &Guard, key: &str, says: Result<u32, Fail>) -> End<u32> {
    guard.call_owned((), key, move |_| async move { says }).await
}

/// Fills `key` by an attempt that takes `cost`.
async fn fill(clock: &ManualClock, guard: &Guard, key: &'static str, cost: Duration) {
    let origin = Origin::default();
    let call = tokio::spawn({
        let (guard, origin) = (guard.clone(), origin.clone());
        async move { guard.call_owned((), key, move |_| origin.ask(Ok(1))).await }
    });
    settle().await;
    clock.advance(cost);
    origin.open();
    assert!(call.await.unwrap().unwrap().kept);
}

/// Hits a copy of `key` until one hit starts a refresh; returns how many it took, at most `most`.
async fn hits_until_refreshed(guard: &Guard, key: &'static str, most: u32) -> Option<u32> {
    let origin = Origin::default();
    for hit in 1..=most {
        let asked = origin.clone();
        let answer = guard.call_owned((), key, move |_| asked.hang()).await.unwrap();
        assert_eq!((answer.rung, answer.reason, answer.value), (Rung::Fresh, None, 1));
        settle().await;
        if origin.asked() > 0 {
            return Some(hit);
        }
    }
    None
}

#[tokio::test]
async fn r19_a_dear_copy_is_refreshed_before_its_end_by_one_of_its_hits_and_each_is_served_fresh() {
    let (clock, guard) = guard(|b| b.fresh_for(10 * SECOND).refresh_ahead());
    fill(&clock, &guard, "k", 400 * MS).await;
    // With half of its cost left every third hit or so would: exp(-0.5) is 0.6.
    clock.advance(10 * SECOND - 600 * MS);
    let hits = hits_until_refreshed(&guard, "k", 50).await.unwrap();
    assert!(hits < 20, "{hits}");
    assert_eq!(guard.flights().0, 1);
    // While it is under way no other is started.
    assert_eq!(hits_until_refreshed(&guard, "k", 50).await, None);
    assert_eq!(
        guard.counts().get(Ending::Answered(Rung::Fresh), None),
        u64::from(hits) + 50
    );
}

#[tokio::test]
async fn r19_far_from_its_end_or_when_it_cost_nothing_a_copy_is_left_alone() {
    let (clock, guard) = guard(|b| b.fresh_for(100 * SECOND).refresh_ahead());
    fill(&clock, &guard, "dear", 400 * MS).await;
    fill(&clock, &guard, "cheap", Duration::ZERO).await;
    clock.advance(80 * SECOND);
    assert_eq!(hits_until_refreshed(&guard, "dear", 200).await, None);
    clock.advance(19 * SECOND);
    assert_eq!(hits_until_refreshed(&guard, "cheap", 200).await, None);
}

#[tokio::test]
async fn a_refresh_ahead_that_fails_or_is_refused_leaves_hits_fresh() {
    let (clock, guard) = guard(|b| b.fresh_for(10 * SECOND).refresh_ahead().concurrency(1));
    fill(&clock, &guard, "k", SECOND).await;
    clock.advance(9 * SECOND - NS);
    for _ in 0..10 {
        let answer = ask(&guard, "k", Err(Fail::Down)).await.unwrap();
        assert_eq!((answer.rung, answer.reason), (Rung::Fresh, None));
        settle().await;
    }
    assert!(guard.counts().refreshes(Refreshed::Failed) > 5);
    let origin = Origin::default();
    let mut other = Box::pin(guard.call((), "other", |_| origin.clone().ask(Ok(9))));
    assert!(support::poll(other.as_mut()).is_pending());
    let answer = ask(&guard, "k", Ok(2)).await.unwrap();
    assert_eq!((answer.rung, answer.reason), (Rung::Fresh, None));
    assert_eq!(guard.counts().refreshes(Refreshed::Refused), 1);
}

#[tokio::test]
async fn borrowed_work_never_refreshes_ahead() {
    let (clock, guard) = guard(|b| b.fresh_for(10 * SECOND).refresh_ahead());
    fill(&clock, &guard, "k", SECOND).await;
    clock.advance(9 * SECOND - NS);
    for _ in 0..50 {
        let answer = guard
            .call((), "k", |_| async { panic!("nobody asks") })
            .await
            .unwrap();
        assert_eq!(answer.rung, Rung::Fresh);
    }
}

/// When each of 200 copies that came at one moment stops being fresh, in tenths of a second.
async fn ends(change: fn(Builder) -> Builder) -> BTreeSet<u32> {
    let (clock, guard) = guard(change);
    let keys: Vec<String> = (0..200).map(|key| key.to_string()).collect();
    for key in &keys {
        ask(&guard, key, Ok(1)).await.unwrap();
    }
    let mut ends = BTreeSet::new();
    let mut left: Vec<_> = keys.iter().collect();
    for tenth in 0..=110 {
        let mut still = Vec::new();
        for key in left {
            match ask(&guard, key, Err(Fail::Down)).await {
                Ok(_) => still.push(key),
                Err(_) => drop(ends.insert(tenth)),
            }
        }
        left = still;
        clock.advance(100 * MS);
    }
    assert!(left.is_empty());
    ends
}

#[tokio::test]
async fn g08_copies_that_came_together_run_out_apart_and_none_later_than_promised() {
    assert_eq!(ends(|b| b.fresh_for(10 * SECOND)).await, BTreeSet::from([100]));
    let spread = ends(|b| b.fresh_for(10 * SECOND).jitter(200_000)).await;
    assert!(spread.len() > 15, "{spread:?}");
    assert!(
        spread.iter().all(|tenth| (80..=100).contains(tenth)),
        "{spread:?}"
    );
    // So do lifetimes that came with the data.
    let own = ends(|b| {
        b.own_lifetimes().jitter(200_000).terms(|_| Terms {
            lifetime: Some(10 * SECOND),
            ..Terms::default()
        })
    })
    .await;
    assert!(
        own.len() > 15 && own.iter().all(|tenth| (80..=100).contains(tenth)),
        "{own:?}"
    );
}

#[tokio::test]
async fn g02_after_a_failed_flight_nobody_asks_for_its_key_for_a_while() {
    let (clock, guard) = guard(|b| b.coalesce().cool_down(2 * SECOND).ladder([default(|| 0)]));
    let first = ask(&guard, "k", Err(Fail::Down)).await.unwrap();
    assert_eq!((first.value, first.reason), (0, Some(Reason::DependencyFailed)));
    clock.advance(2 * SECOND - NS);
    for borrowed in [false, true] {
        let cooled = if borrowed {
            guard.call((), "k", |_| async { Ok(1) }).await.unwrap()
        } else {
            ask(&guard, "k", Ok(1)).await.unwrap()
        };
        assert_eq!((cooled.value, cooled.reason), (0, Some(Reason::CoolDown)));
    }
    assert_eq!(
        ask(&guard, "other", Ok(7)).await.unwrap().value,
        7,
        "another key is another matter"
    );
    assert_eq!(guard.dependency().attempts_total(), 2);
    let by_hand = guard.probe((), "k", |_| async { Ok(5) }).await.unwrap();
    assert_eq!(by_hand.value, 5);
    clock.advance(NS);
    assert_eq!(ask(&guard, "k", Ok(1)).await.unwrap().value, 1);
}

#[tokio::test]
async fn a_refusal_by_cool_down_says_when_it_is_over_and_real_answers_cool_nothing() {
    let (clock, guard) = guard(|b| b.coalesce().cool_down(2 * SECOND));
    for how in [Fail::No, Fail::Gone, Fail::Busy, Fail::Bug] {
        assert!(ask(&guard, "k", Err(how)).await.is_err());
        assert_eq!(ask(&guard, "k", Ok(1)).await.unwrap().value, 1, "{how:?}");
    }
    assert!(ask(&guard, "k", Err(Fail::Down)).await.is_err());
    clock.advance(500 * MS);
    let refused = ask(&guard, "k", Ok(1)).await.unwrap_err();
    assert_eq!(
        (refused.ending, refused.reason),
        (Ending::Refused, Some(Reason::CoolDown))
    );
    assert_eq!(refused.retry_after, Some(1500 * MS));
}

#[tokio::test]
async fn after_a_failed_refresh_the_copy_is_served_by_the_word_cool_down_until_it_is_over() {
    let (clock, guard) = guard(|b| {
        b.fresh_for(SECOND)
            .stale_while_revalidate(20 * SECOND)
            .cool_down(2 * SECOND)
            .ladder([stale(60 * SECOND)])
    });
    ask(&guard, "k", Ok(1)).await.unwrap();
    clock.advance(SECOND);
    let reasons = async |says| {
        let answer = ask(&guard, "k", says).await.unwrap();
        settle().await;
        (answer.rung, answer.reason)
    };
    assert_eq!(
        reasons(Err(Fail::Down)).await,
        (Rung::Stale, Some(Reason::Revalidating))
    );
    clock.advance(2 * SECOND - NS);
    assert_eq!(reasons(Ok(2)).await, (Rung::Stale, Some(Reason::CoolDown)));
    clock.advance(NS);
    assert_eq!(reasons(Ok(2)).await, (Rung::Stale, Some(Reason::Revalidating)));
    assert_eq!(reasons(Ok(3)).await, (Rung::Fresh, None));
}

#[tokio::test]
async fn a_dependency_that_asked_to_be_left_alone_gets_no_refreshes_until_then() {
    let (clock, guard) = guard(|b| {
        b.fresh_for(SECOND)
            .stale_while_revalidate(20 * SECOND)
            .advice(|_| Advice::After(3 * SECOND))
            .ladder([stale(60 * SECOND)])
    });
    ask(&guard, "k", Ok(1)).await.unwrap();
    clock.advance(SECOND);
    assert!(ask(&guard, "other", Err(Fail::Busy)).await.is_err());
    let cooled = ask(&guard, "k", Ok(2)).await.unwrap();
    assert_eq!(
        (cooled.rung, cooled.reason),
        (Rung::Stale, Some(Reason::CoolDown))
    );
    clock.advance(3 * SECOND);
    let answer = ask(&guard, "k", Ok(2)).await.unwrap();
    assert_eq!(answer.reason, Some(Reason::Revalidating));
    settle().await;
    assert_eq!(guard.dependency().attempts(Class::Answer), 2);
}

#[test]
fn settings_that_could_have_no_effect_are_refused_with_their_place() {
    let problems = |change: fn(Builder) -> Builder| {
        let (_, engine) = engine();
        let builder = engine.read::<u32>("g").classify(Fail::class);
        change(builder).build().unwrap_err().to_string()
    };
    assert_eq!(
        problems(|b| b.cool_down(SECOND)),
        "read.cool_down: set on a contract without shared attempts and refreshes; allowed: beside `coalesce`, or what \
         refreshes copies; add it, or remove this: only their failures are remembered"
    );
    for (setting, change) in [
        ("refresh_ahead", (|b| b.refresh_ahead()) as fn(Builder) -> Builder),
        ("jitter", |b| b.jitter(1)),
    ] {
        assert_eq!(
            problems(change),
            format!(
                "read.{setting}: set without `fresh_for`; allowed: beside `fresh_for`, whose end it is about; add \
                 `fresh_for`, or remove it"
            )
        );
    }
    assert!(problems(|b| b.fresh_for(SECOND).jitter(500_001)).contains("500001; allowed: 0 to 500000"));
}
