//! Who waits for a permit is treated as if it had just come: by its own importance, its own patience, and what holds now.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use evenkeel::{
    Class, Classifier, Criticality, Dependency, Ending, Engine, Exercised, Hold, HoldMode, Read, ReadBuilder,
    Reason, RetryRules, Rung, Skipped, default, stale,
};
use support::{End, Fail, MS, Origin, SECOND, engine, poll, settle, until};

type Running = tokio::task::JoinHandle<End<u32>>;

fn read(engine: &Engine) -> ReadBuilder<u32, Classifier<Fail>> {
    engine
        .read::<u32>("g")
        .concurrency(1)
        .queue(2, SECOND)
        .classify(Fail::class)
}

fn start(guard: &Read<u32, Fail>, origin: &Origin) -> Running {
    let (guard, origin) = (guard.clone(), origin.clone());
    tokio::spawn(async move { guard.call_owned((), "k", move |_| origin.ask(Ok(1))).await })
}

/// Starts a call and waits until it waits for a permit.
async fn queue(guard: &Read<u32, Fail>, origin: &Origin) -> Running {
    let before = guard.dependency().status().waiting;
    let call = start(guard, origin);
    until("it waits", || guard.dependency().status().waiting > before).await;
    call
}

/// Holds the permit by a call of nobody in these tests.
async fn busy(engine: &Engine, dependency: &Dependency) -> (Origin, Running) {
    let holder = engine
        .read::<u32>("holder")
        .from(dependency)
        .classify(Fail::class)
        .build()
        .unwrap();
    let origin = Origin::default();
    let call = start(&holder, &origin);
    until("it is in flight", || origin.inside() == 1).await;
    (origin, call)
}

async fn free((origin, call): (Origin, Running)) {
    origin.open();
    call.await.unwrap().unwrap();
}

fn hold(mode: HoldMode) -> Hold {
    Hold {
        mode,
        by: "ana".to_owned(),
        why: "migration".to_owned(),
        lasts: None,
    }
}

/// Whoever leads an attempt that has not begun waits by its own importance: who matters more does not share that fate.
#[tokio::test]
async fn who_matters_more_does_not_join_a_leader_who_may_be_shed() {
    let (_, engine) = engine();
    let guard = read(&engine).queue(1, SECOND).coalesce().build().unwrap();
    let first = busy(&engine, guard.dependency()).await;
    let (low, high) = (Origin::default(), Origin::default());
    let leader = queue(&guard.with_criticality(Criticality::Sheddable), &low).await;
    let follower = start(&guard.with_criticality(Criticality::Critical), &high);
    assert_eq!(leader.await.unwrap().unwrap_err().reason, Some(Reason::Shed));
    free(first).await;
    until("it has the permit", || high.inside() == 1).await;
    // Now it is under way, and its result is as good for anybody.
    let joins = start(&guard.with_criticality(Criticality::CriticalPlus), &low);
    settle().await;
    high.open();
    assert_eq!(follower.await.unwrap().unwrap().rung, Rung::Live);
    assert!(joins.await.unwrap().unwrap().joined);
    assert_eq!(low.asked(), 0);
}

/// Those who matter as much, or less, wait with the leader: one place for all of them.
#[tokio::test]
async fn who_matters_no_more_waits_together_with_the_leader() {
    let (_, engine) = engine();
    let guard = read(&engine).coalesce().build().unwrap();
    let first = busy(&engine, guard.dependency()).await;
    let origin = Origin::default();
    let leader = queue(&guard, &origin).await;
    let others: Vec<_> = [Criticality::Critical, Criticality::Sheddable]
        .map(|criticality| start(&guard.with_criticality(criticality), &origin))
        .into();
    settle().await;
    assert_eq!(guard.dependency().status().waiting, 1);
    free(first).await;
    until("it is asked", || origin.inside() == 1).await;
    origin.open();
    assert_eq!(leader.await.unwrap().unwrap().value, 1);
    for other in others {
        assert!(other.await.unwrap().unwrap().joined);
    }
    assert_eq!(origin.asked(), 1);
}

/// The soft timeout counts from the arrival, wherever the time goes.
#[tokio::test]
async fn a_call_with_a_copy_leaves_the_queue_at_its_soft_timeout() {
    for coalesces in [false, true] {
        let (clock, engine) = engine();
        let builder = read(&engine)
            .timeout(SECOND)
            .soft_timeout(100 * MS)
            .ladder([stale(60 * SECOND)]);
        let builder = if coalesces { builder.coalesce() } else { builder };
        let guard = builder.build().unwrap();
        guard.call((), "k", |_| async { Ok(7) }).await.unwrap();
        let holder = engine
            .read::<u32>("h")
            .from(guard.dependency())
            .classify(Fail::class)
            .build()
            .unwrap();
        let origin = Origin::default();
        let holds = {
            let (holder, origin) = (holder.clone(), origin.clone());
            tokio::spawn(async move { holder.call((), "h", |_| origin.ask(Ok(1))).await })
        };
        until("it is in flight", || origin.inside() == 1).await;
        let waits = queue(&guard, &origin).await;
        clock.advance(99 * MS);
        settle().await;
        assert!(!waits.is_finished());
        clock.advance(MS);
        let old = waits.await.unwrap().unwrap();
        // Nothing was asked for it, so it is not `slow`: no permit came.
        assert_eq!(
            (old.value, old.rung, old.reason),
            (7, Rung::Stale, Some(Reason::QueueExpired))
        );
        assert_eq!(
            (guard.dependency().status().waiting, guard.flights()),
            (0, (0, 0))
        );
        // Without a copy it waits on.
        let waits = {
            let (guard, origin) = (guard.clone(), origin.clone());
            tokio::spawn(async move { guard.call_owned((), "other", move |_| origin.ask(Ok(2))).await })
        };
        until("it waits", || guard.dependency().status().waiting == 1).await;
        clock.advance(200 * MS);
        settle().await;
        assert!(!waits.is_finished());
        origin.open();
        holds.await.unwrap().unwrap();
        until("it is asked", || origin.inside() == 1).await;
        origin.open();
        assert_eq!(waits.await.unwrap().unwrap().value, 2);
    }
}

/// A hold that is set meanwhile says what is served, as if the call had come after it.
#[tokio::test]
async fn a_hold_that_is_set_while_a_call_waits_is_obeyed_in_full() {
    for (mode, rung, skipped) in [
        (HoldMode::StaleOnly, Some(Rung::Stale), None),
        (
            HoldMode::DefaultOnly,
            Some(Rung::Default),
            Some((Rung::Stale, Skipped::Held)),
        ),
        (HoldMode::ForcedOff, None, None),
        (HoldMode::ForcedOpen, Some(Rung::Stale), None),
    ] {
        let (_, engine) = engine();
        let guard = read(&engine)
            .ladder([stale(60 * SECOND), default(|| 9)])
            .when_busy(evenkeel::WhenBusy::Refuse)
            .build()
            .unwrap();
        guard.call((), "k", |_| async { Ok(7) }).await.unwrap();
        let _busy = busy(&engine, guard.dependency()).await;
        let origin = Origin::default();
        let waits = queue(&guard, &origin).await;
        guard.hold(hold(mode)).unwrap();
        let end = waits.await.unwrap();
        let (given, reason, first) = match &end {
            Ok(answer) => (Some(answer.rung), answer.reason, answer.skipped.iter().next()),
            Err(end) => {
                assert_eq!(end.ending, Ending::Refused);
                (None, end.reason, end.skipped.iter().next())
            }
        };
        assert_eq!(
            (given, reason, first),
            (rung, Some(Reason::Held), skipped),
            "{mode:?}"
        );
        assert_eq!(origin.asked(), 0);
    }
}

/// Forced-closed lets everything in within permits, and within the queue: set before, or while a call waits.
#[tokio::test]
async fn forced_closed_over_an_open_breaker_leaves_the_queue_as_it_is() {
    for before in [true, false] {
        let (_, engine) = engine();
        let guard = read(&engine)
            .breaker(|breaker| breaker.consecutive(1).open_for(60 * SECOND, 60 * SECOND))
            .build()
            .unwrap();
        if before {
            guard
                .call((), "k", |_| async { Err(Fail::Down) })
                .await
                .unwrap_err();
            guard.dependency().hold(hold(HoldMode::ForcedClosed)).unwrap();
        }
        let first = busy(&engine, guard.dependency()).await;
        let origin = Origin::default();
        let waits = queue(&guard, &origin).await;
        let second = queue(&guard, &origin).await;
        if !before {
            guard.dependency().hold(hold(HoldMode::ForcedClosed)).unwrap();
            settle().await;
            assert_eq!(guard.dependency().status().waiting, 2, "there is no permit yet");
        }
        free(first).await;
        until("its turn has come", || origin.inside() == 1).await;
        assert_eq!(guard.dependency().status().waiting, 1);
        origin.open();
        assert_eq!(waits.await.unwrap().unwrap().value, 1);
        until("its turn has come", || origin.inside() == 1).await;
        origin.open();
        assert_eq!(second.await.unwrap().unwrap().value, 1);
    }
}

/// A retry is for a call that had its turn: while others wait it is not made, and costs no budget.
#[tokio::test]
async fn a_retry_does_not_overtake_who_waits() {
    let (clock, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .concurrency(1)
        .queue(2, 10 * SECOND)
        .retry(RetryRules {
            pause: 10 * MS,
            ..RetryRules::DEFAULT
        })
        .classify(Fail::class)
        .build()
        .unwrap();
    let fails = Origin::default();
    let failing = {
        let (guard, fails) = (guard.clone(), fails.clone());
        tokio::spawn(async move {
            guard
                .call_repeatable((), "a", move |_| fails.clone().ask(Err(Fail::Down)))
                .await
        })
    };
    until("it is in flight", || fails.inside() == 1).await;
    let (origin, later) = (Origin::default(), Origin::default());
    let (next, last) = (queue(&guard, &origin).await, queue(&guard, &later).await);
    fails.open();
    until("the next has its turn", || origin.inside() == 1).await;
    // The pause ends at the very moment at which a permit comes free, and somebody waits for that.
    origin.open();
    clock.advance(10 * SECOND / 20);
    assert_eq!(next.await.unwrap().unwrap().value, 1);
    assert_eq!(
        failing.await.unwrap().unwrap_err().reason,
        Some(Reason::DependencyFailed)
    );
    until("the last has its turn", || later.inside() == 1).await;
    assert_eq!((fails.asked(), guard.dependency().retries().made), (1, 0));
    later.open();
    last.await.unwrap().unwrap();
}

/// Nobody's own queue is overtaken by somebody else's stand-in, nor by its rehearsal.
#[tokio::test]
async fn an_alternate_and_an_exercise_do_not_overtake_who_waits_at_the_spare() {
    let (_, engine) = engine();
    let spare = engine
        .dependency("spare")
        .concurrency(2)
        .queue(4, SECOND)
        .build()
        .unwrap();
    let own = engine
        .read::<u32>("own")
        .from(&spare)
        .classify(Fail::class)
        .build()
        .unwrap();
    let asked = Origin::default();
    let asks = asked.clone();
    let guard = engine
        .read::<u32>("g")
        .classify(Fail::class)
        .exercise(1_000_000, |_, _, _| true)
        .alternate(&spare, move |(), _, _| asks.clone().ask_now(Ok(2)))
        .build()
        .unwrap();
    let (one, two) = (busy(&engine, &spare).await, busy(&engine, &spare).await);
    let origin = Origin::default();
    // It waits, is called, and does not come yet: nobody polls it.
    let mut waits = Box::pin(own.call((), "k", |_| origin.clone().ask_now(Ok(1))));
    assert!(poll(waits.as_mut()).is_pending());
    free(one).await;
    assert_eq!((spare.status().in_use, spare.status().waiting), (1, 1));
    let end = guard
        .call((), "k", |_| async { Err(Fail::Down) })
        .await
        .unwrap_err();
    assert_eq!(end.skipped.why(Rung::Alternate), Some(Skipped::AtCapacity));
    guard.call((), "k", |_| async { Ok(1) }).await.unwrap();
    settle().await;
    assert_eq!(guard.counts().exercises(Rung::Alternate, Exercised::Refused), 1);
    assert_eq!(asked.asked(), 0);
    assert_eq!(waits.await.unwrap().value, 1);
    free(two).await;
    assert_eq!(spare.attempts(Class::Answer), 3);
}

/// A refresh that nobody waits for comes after those who do.
#[tokio::test]
async fn a_refresh_does_not_overtake_who_waits() {
    let (clock, engine) = engine();
    let guard = read(&engine)
        .fresh_for(SECOND)
        .stale_while_revalidate(60 * SECOND)
        .ladder([stale(60 * SECOND)])
        .build()
        .unwrap();
    guard.call_owned((), "k", |_| async { Ok(7) }).await.unwrap();
    clock.advance(2 * SECOND);
    let first = busy(&engine, guard.dependency()).await;
    let own = engine
        .read::<u32>("own")
        .from(guard.dependency())
        .classify(Fail::class)
        .build()
        .unwrap();
    let origin = Origin::default();
    let mut waits = Box::pin(own.call((), "k", |_| origin.clone().ask_now(Ok(1))));
    assert!(poll(waits.as_mut()).is_pending());
    free(first).await;
    let refreshes = Origin::default();
    let refreshing = refreshes.clone();
    let old = guard
        .call_owned((), "k", move |_| refreshing.ask_now(Ok(8)))
        .await
        .unwrap();
    assert_eq!((old.rung, old.reason), (Rung::Stale, Some(Reason::AtCapacity)));
    settle().await;
    assert_eq!(refreshes.asked(), 0);
    assert_eq!(waits.await.unwrap().value, 1);
}

/// Where nothing else ends it, a further attempt of a shared one ends with the time that was declared for the first.
#[tokio::test]
async fn a_further_attempt_that_nobody_waits_for_has_an_end_without_a_timeout_too() {
    let (clock, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .deadline(SECOND)
        .concurrency(1)
        .soft_timeout(100 * MS)
        .retry(RetryRules {
            pause: MS,
            ..RetryRules::DEFAULT
        })
        .ladder([stale(60 * SECOND)])
        .classify(Fail::class)
        .coalesce()
        .build()
        .unwrap();
    guard.call((), "k", |_| async { Ok(7) }).await.unwrap();
    let (hangs, tries) = (Origin::default(), Origin::default());
    let call = {
        let (guard, hangs, tries) = (guard.clone(), hangs.clone(), tries.clone());
        tokio::spawn(async move {
            let work = move |_| {
                let (hangs, tries) = (hangs.clone(), tries.clone());
                async move {
                    let first = tries.asked() == 0;
                    tries.ask_now(Ok::<_, Fail>(0)).await?;
                    if first {
                        Err(Fail::Down)
                    } else {
                        hangs.hang().await
                    }
                }
            };
            guard.call_repeatable((), "k", work).await
        })
    };
    settle().await;
    clock.advance(50 * MS);
    until("it is tried again", || hangs.inside() == 1).await;
    clock.advance(50 * MS);
    assert_eq!(call.await.unwrap().unwrap().reason, Some(Reason::Slow));
    clock.advance(SECOND);
    settle().await;
    assert_eq!((hangs.inside(), guard.dependency().status().in_use), (0, 0));
}
