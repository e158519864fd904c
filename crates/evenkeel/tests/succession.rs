//! A dependency that goes on by another contract: nobody in flight is lost, and who waits asks the newest (case 069).

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::time::Duration;

use evenkeel::{
    Class, Dependency, DependencyBuilder, Ending, Engine, Hold, HoldMode, Read, Reason, RetryRules, State,
    stale,
};
use support::{End, Fail, MS, Origin, SECOND, engine, settle, until};

fn guard(engine: &Engine, dependency: &Dependency) -> Read<u32, Fail> {
    engine
        .read::<u32>("g")
        .from(dependency)
        .deadline(20 * SECOND)
        .classify(Fail::class)
        .build()
        .unwrap()
}

type Running = tokio::task::JoinHandle<End<u32>>;

fn start(guard: &Read<u32, Fail>, origin: &Origin) -> Running {
    let (guard, origin) = (guard.clone(), origin.clone());
    tokio::spawn(async move { guard.call((), "k", |_| origin.ask(Ok(1))).await })
}

fn queued(engine: &Engine, permits: u32, wait: Duration) -> DependencyBuilder {
    engine.dependency("d").concurrency(permits).queue(10, wait)
}

#[tokio::test]
async fn old_calls_give_their_permits_back_to_where_new_ones_take_them() {
    let (_, engine) = engine();
    let old = engine.dependency("d").concurrency(3).build().unwrap();
    let origin = Origin::default();
    let calls: Vec<Running> = (0..3).map(|_| start(&guard(&engine, &old), &origin)).collect();
    until("all are in flight", || origin.inside() == 3).await;
    let new = engine
        .dependency("d")
        .concurrency(1)
        .succeeds(&old)
        .build()
        .unwrap();
    assert!(new.take_over(&old) && !new.take_over(&old));
    let next = guard(&engine, &new);
    let refused = next
        .call((), "k", |_| origin.clone().ask_now(Ok(1)))
        .await
        .unwrap_err();
    assert_eq!(refused.reason, Some(Reason::AtCapacity));
    assert_eq!(new.status().in_use, 3);
    origin.open();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!((new.status().in_use, new.attempts(Class::Answer)), (0, 3));
    next.call((), "k", |_| origin.clone().ask_now(Ok(1)))
        .await
        .unwrap();
    // Whoever still holds the old one is let in by the new rules, and counted in the same place.
    guard(&engine, &old)
        .call((), "k", |_| origin.clone().ask_now(Ok(1)))
        .await
        .unwrap();
    assert_eq!((old.attempts_total(), new.attempts_total()), (5, 5));
}

#[tokio::test]
async fn case_069_who_waits_for_a_permit_asks_the_source_that_takes_over() {
    let (_, engine) = engine();
    let old = queued(&engine, 1, 10 * SECOND).build().unwrap();
    let (hung, healthy) = (Origin::default(), Origin::default());
    let holder = start(&guard(&engine, &old), &hung);
    until("it hangs", || hung.inside() == 1).await;
    let waiting = start(&guard(&engine, &old), &healthy);
    until("it waits", || old.status().waiting == 1).await;
    let new = queued(&engine, 5, SECOND).replaces(&old).build().unwrap();
    assert!(new.take_over(&old));
    until("the new source is asked", || healthy.inside() == 1).await;
    assert_eq!(
        (old.status().in_use, new.status().in_use, old.status().waiting),
        (1, 1, 0)
    );
    healthy.open();
    waiting.await.unwrap().unwrap();
    assert_eq!(new.status().in_use, 0);
    hung.open();
    holder.await.unwrap().unwrap();
    assert_eq!(old.status().in_use, 0, "who is under way ends on the old one");
}

#[tokio::test]
async fn who_moves_to_a_full_source_waits_there_no_longer_than_it_would_have() {
    let (clock, engine) = engine();
    let old = queued(&engine, 1, SECOND).build().unwrap();
    let origin = Origin::default();
    let _first = start(&guard(&engine, &old), &origin);
    until("it is full", || origin.inside() == 1).await;
    let new = queued(&engine, 1, 60 * SECOND).replaces(&old).build().unwrap();
    let _second = start(&guard(&engine, &new), &origin);
    until("so is the new one", || origin.inside() == 2).await;
    let (waiting, leaving) = (
        start(&guard(&engine, &old), &origin),
        start(&guard(&engine, &old), &origin),
    );
    until("both wait", || old.status().waiting == 2).await;
    assert!(new.take_over(&old));
    until("both have moved", || {
        (old.status().waiting, new.status().waiting) == (0, 2)
    })
    .await;
    leaving.abort();
    until("one has left", || new.status().waiting == 1).await;
    clock.advance(SECOND);
    let late = waiting.await.unwrap().unwrap_err();
    assert_eq!(late.reason, Some(Reason::QueueExpired));
    assert_eq!((new.status().waiting, new.status().in_use), (0, 1));
}

#[tokio::test]
async fn those_who_wait_stay_in_line_where_the_source_is_the_same() {
    let (_, engine) = engine();
    let old = queued(&engine, 1, 10 * SECOND).build().unwrap();
    let origin = Origin::default();
    let first = start(&guard(&engine, &old), &origin);
    until("it is full", || origin.inside() == 1).await;
    let calls = [
        start(&guard(&engine, &old), &origin),
        start(&guard(&engine, &old), &origin),
    ];
    until("two wait", || old.status().waiting == 2).await;
    let new = queued(&engine, 3, 10 * SECOND).succeeds(&old).build().unwrap();
    assert_eq!(new.status().waiting, 2, "it is one line");
    assert!(new.take_over(&old));
    until("there is room for all", || origin.inside() == 3).await;
    origin.open();
    first.await.unwrap().unwrap();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!((new.status().in_use, new.status().waiting), (0, 0));
}

#[tokio::test]
async fn who_waits_where_nobody_waits_any_more_is_let_in_or_told_at_once() {
    let (_, engine) = engine();
    let old = queued(&engine, 1, 10 * SECOND).build().unwrap();
    let origin = Origin::default();
    let _first = start(&guard(&engine, &old), &origin);
    until("it is full", || origin.inside() == 1).await;
    let calls = [
        start(&guard(&engine, &old), &origin),
        start(&guard(&engine, &old), &origin),
    ];
    until("two wait", || old.status().waiting == 2).await;
    let new = engine
        .dependency("d")
        .concurrency(2)
        .succeeds(&old)
        .build()
        .unwrap();
    assert!(new.take_over(&old));
    until("one is in", || origin.inside() == 2).await;
    settle().await;
    let ends: Vec<bool> = calls.iter().map(tokio::task::JoinHandle::is_finished).collect();
    assert_eq!(
        ends.iter().filter(|end| **end).count(),
        1,
        "the other is told that there is no room"
    );
    assert_eq!(old.status().waiting, 0);
}

#[tokio::test]
async fn case_069_a_retry_asks_and_pays_the_source_that_takes_over() {
    let (clock, engine) = engine();
    let rules = RetryRules {
        pause: SECOND,
        pause_max: SECOND,
        budget_ppm: 0,
        floor: 1,
        ..RetryRules::DEFAULT
    };
    let source = || {
        engine
            .dependency("d")
            .retry(rules)
            .breaker(|breaker| breaker.consecutive(1).open_for(60 * SECOND, 60 * SECOND))
    };
    let old = engine.dependency("d").retry(rules).build().unwrap();
    let asked = Origin::default();
    let caller = guard(&engine, &old);
    let call = {
        let asked = asked.clone();
        tokio::spawn(async move {
            caller
                .call_repeatable((), "k", move |_| {
                    let first = asked.asked() == 0;
                    asked.clone().ask_now(if first { Err(Fail::Down) } else { Ok(2) })
                })
                .await
        })
    };
    until("the first attempt has failed", || old.attempts_total() == 1).await;
    settle().await;
    let new = source().replaces(&old).build().unwrap();
    assert!(new.take_over(&old));
    for _ in 0..30 {
        clock.advance(100 * MS);
        settle().await;
    }
    assert_eq!(*call.await.unwrap().unwrap(), 2);
    assert_eq!(new.retries().made, 1);
    assert_eq!(
        (new.attempts_total(), new.status().state),
        (2, Some(State::Closed)),
        "both count for the name"
    );
}

#[tokio::test]
async fn counters_and_holds_stay_with_the_name_and_snapshots_with_the_version() {
    let (_, engine) = engine();
    let old = engine.dependency("d").build().unwrap();
    let hold = Hold {
        mode: HoldMode::ForcedOpen,
        by: "ana".into(),
        why: "migration".into(),
        lasts: None,
    };
    let memory = evenkeel::Memory::new(1 << 20);
    let contract = |version: &str, before: Option<&Read<u32, Fail>>, from: &Dependency| {
        let builder = engine
            .read::<u32>("g")
            .from(from)
            .version(version)
            .memory(&memory);
        let builder = match before {
            Some(before) => builder.succeeds(before),
            None => builder,
        };
        builder
            .classify(Fail::class)
            .ladder([stale(60 * SECOND)])
            .build()
            .unwrap()
    };
    let first = contract("1", None, &old);
    first.call((), "k", |_| async { Ok(1) }).await.unwrap();
    old.hold(hold.clone()).unwrap();
    let new = engine.dependency("d").replaces(&old).build().unwrap();
    assert!(new.take_over(&old));
    let same = contract("1", Some(&first), &new);
    let answer = same.call((), "k", |_| async { Ok(2) }).await.unwrap();
    assert_eq!((answer.value, answer.reason), (1, Some(Reason::Held)));
    let other = contract("2", Some(&same), &new);
    assert!(
        other.call((), "k", |_| async { Ok(2) }).await.is_err(),
        "no snapshot of another version"
    );
    assert_eq!(
        (other.counts().calls(), other.counts().total(Ending::Refused)),
        (3, 1)
    );
    assert_eq!(new.held(), Some(hold));
    assert!(new.release("ana").is_some());
    assert_eq!(old.held(), None, "it is one hold");
}
