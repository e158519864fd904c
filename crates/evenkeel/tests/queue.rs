//! The queue for permits: bounded, by deadline, and nobody in it holds anything.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use evenkeel::{
    Class, Criticality, Dependency, Ending, Engine, Hold, HoldMode, Read, Reason, Rung, State, stale,
};
use parking_lot::Mutex;
use support::{End, Fail, MS, NS, Origin, SECOND, engine, poll, settle, until};

fn guard(engine: &Engine, permits: u32, length: u32, wait: Duration) -> Read<u32, Fail> {
    engine
        .read::<u32>("g")
        .concurrency(permits)
        .queue(length, wait)
        .deadline(SECOND)
        .classify(Fail::class)
        .build()
        .unwrap()
}

type Running = tokio::task::JoinHandle<End<u32>>;

/// Starts a call in a task of its own.
fn start(guard: &Read<u32, Fail>, origin: &Origin) -> Running {
    let (guard, origin) = (guard.clone(), origin.clone());
    tokio::spawn(async move { guard.call((), "k", |_| origin.ask(Ok(1))).await })
}

/// Starts a call and waits until it waits for a permit.
async fn queue(guard: &Read<u32, Fail>, origin: &Origin) -> Running {
    let before = guard.dependency().status().waiting;
    let call = start(guard, origin);
    until("it waits", || guard.dependency().status().waiting > before).await;
    call
}

/// Holds a permit by a call that has no deadline of its own.
async fn hold_permit(engine: &Engine, guard: &Read<u32, Fail>) -> (Origin, Running) {
    let holder = engine
        .read::<u32>("holder")
        .from(guard.dependency())
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

#[tokio::test]
async fn a_call_that_finds_no_permit_gets_the_next_one_and_the_first_comes_first() {
    let (_, engine) = engine();
    let guard = guard(&engine, 1, 10, SECOND);
    let first = hold_permit(&engine, &guard).await;
    let origins = [Origin::default(), Origin::default(), Origin::default()];
    let mut calls = Vec::new();
    for origin in &origins {
        calls.push(queue(&guard, origin).await);
    }
    free(first).await;
    for (origin, call) in origins.iter().zip(calls) {
        until("its turn has come", || origin.inside() == 1).await;
        let all: u32 = origins.iter().map(Origin::inside).sum();
        assert_eq!((all, guard.dependency().status().in_use), (1, 1));
        free((origin.clone(), call)).await;
    }
    assert_eq!(guard.dependency().status().in_use, 0);
}

#[tokio::test]
async fn case_023_a_call_that_ends_in_the_queue_leaves_it_at_once_and_gets_no_permit() {
    let (clock, engine) = engine();
    let guard = guard(&engine, 1, 64, SECOND * 60);
    let first = hold_permit(&engine, &guard).await;
    let origin = Origin::default();
    let mut calls = Vec::new();
    for _ in 0..20 {
        calls.push(queue(&guard, &origin).await);
    }
    clock.advance(SECOND - NS);
    settle().await;
    assert!(calls.iter().all(|call| !call.is_finished()));
    clock.advance(NS);
    for call in calls {
        let end = call.await.unwrap().unwrap_err();
        assert_eq!(
            (end.ending, end.reason),
            (Ending::Refused, Some(Reason::QueueExpired))
        );
    }
    assert_eq!(guard.dependency().status().waiting, 0);
    assert_eq!(guard.dependency().waits(), Some((20, 20 * SECOND)));
    free(first).await;
    assert_eq!(origin.asked(), 0, "nobody who has expired is sent");
    assert!(
        guard.call((), "k", |_| async { Ok(1) }).await.is_ok(),
        "a new call is let in at once"
    );
}

#[tokio::test]
async fn case_024_when_every_permit_hangs_all_are_answered_by_their_deadline() {
    let (clock, engine) = engine();
    let guard = guard(&engine, 2, 30, SECOND * 60);
    let hung = [
        hold_permit(&engine, &guard).await,
        hold_permit(&engine, &guard).await,
    ];
    let origin = Origin::default();
    let calls: Vec<_> = (0..50).map(|_| start(&guard, &origin)).collect();
    until("the queue is full", || guard.dependency().status().waiting == 30).await;
    settle().await;
    clock.advance(SECOND);
    let mut reasons = Vec::new();
    for call in calls {
        reasons.push(call.await.unwrap().unwrap_err().reason.unwrap());
    }
    let count = |reason| reasons.iter().filter(|one| **one == reason).count();
    assert_eq!((count(Reason::QueueExpired), count(Reason::AtCapacity)), (30, 20));
    let counts = guard.counts();
    assert_eq!(counts.get(Ending::Refused, Some(Reason::QueueExpired)), 30);
    drop(hung);
}

#[tokio::test]
async fn case_026_time_in_the_queue_is_taken_from_the_deadline_and_nothing_is_sent_after_it() {
    let (clock, engine) = engine();
    let guard = guard(&engine, 1, 10, SECOND * 60);
    let busy = hold_permit(&engine, &guard).await;
    let origin = Origin::default();
    let late = queue(&guard, &origin).await;
    clock.advance(MS * 400);
    let in_time = queue(&guard, &origin).await;
    clock.advance(MS * 600);
    assert_eq!(
        late.await.unwrap().unwrap_err().reason,
        Some(Reason::QueueExpired)
    );
    assert_eq!(origin.asked(), 0);
    // What is left of its second after 600 ms in the queue is 400 ms.
    free(busy).await;
    until("it is asked", || origin.inside() == 1).await;
    clock.advance(MS * 400);
    assert_eq!(in_time.await.unwrap().unwrap_err().reason, Some(Reason::TimedOut));
}

#[tokio::test]
async fn case_029_a_later_call_does_not_extend_the_wait_of_an_earlier_one() {
    let (clock, engine) = engine();
    let guard = guard(&engine, 1, 10, SECOND * 60);
    let _busy = hold_permit(&engine, &guard).await;
    let origin = Origin::default();
    let first = queue(&guard, &origin).await;
    clock.advance(MS * 950);
    let second = queue(&guard, &origin).await;
    clock.advance(MS * 50);
    assert_eq!(
        first.await.unwrap().unwrap_err().reason,
        Some(Reason::QueueExpired)
    );
    settle().await;
    assert!(!second.is_finished());
}

#[tokio::test]
async fn the_longest_wait_ends_a_wait_long_before_the_deadline() {
    let (clock, engine) = engine();
    let guard = guard(&engine, 1, 10, MS * 50);
    let _busy = hold_permit(&engine, &guard).await;
    let call = queue(&guard, &Origin::default()).await;
    clock.advance(MS * 50);
    let end = call.await.unwrap().unwrap_err();
    assert_eq!(end.to_string(), "refused: queue-expired");
}

#[tokio::test]
async fn e27_a_permit_goes_past_one_who_left_to_the_next_who_lives() {
    let (_, engine) = engine();
    let guard = guard(&engine, 1, 10, SECOND);
    let first = hold_permit(&engine, &guard).await;
    let origin = Origin::default();
    let leaves = queue(&guard, &origin).await;
    let stays = queue(&guard, &origin).await;
    leaves.abort();
    assert!(leaves.await.unwrap_err().is_cancelled());
    assert_eq!(guard.dependency().status().waiting, 1);
    free(first).await;
    until("the one who stayed is asked for", || origin.inside() == 1).await;
    free((origin, stays)).await;
    assert_eq!(guard.counts().total(Ending::Abandoned), 1);
}

#[tokio::test]
async fn e27_one_who_leaves_after_it_was_called_passes_the_permit_on() {
    let (_, engine) = engine();
    let guard = guard(&engine, 1, 10, SECOND);
    let first = hold_permit(&engine, &guard).await;
    let origin = Origin::default();
    // Not a task: nobody polls it when it is called.
    let mut called = Box::pin(guard.call((), "k", |_| origin.clone().ask(Ok(1))));
    assert!(poll(called.as_mut()).is_pending());
    let next = queue(&guard, &origin).await;
    free(first).await;
    settle().await;
    assert_eq!(origin.inside(), 0, "it is the turn of the one who does not move");
    drop(called);
    until("the next one is asked for", || origin.inside() == 1).await;
    free((origin.clone(), next)).await;
    assert_eq!(guard.dependency().status().in_use, 0);
}

#[tokio::test]
async fn nobody_of_equals_overtakes_those_who_wait_although_a_permit_is_free() {
    let (_, engine) = engine();
    let guard = guard(&engine, 1, 10, SECOND);
    let first = hold_permit(&engine, &guard).await;
    let origin = Origin::default();
    let mut called = Box::pin(guard.call((), "k", |_| origin.clone().ask(Ok(1))));
    assert!(poll(called.as_mut()).is_pending());
    free(first).await;
    let later = Origin::default();
    let overtakes = queue(&guard, &later).await;
    settle().await;
    assert_eq!(later.asked(), 0);
    let matters_more = guard.with_criticality(Criticality::CriticalPlus);
    assert!(
        matters_more.call((), "k", |_| async { Ok(2) }).await.is_ok(),
        "but who matters more does"
    );
    drop(called);
    until("its turn has come", || later.inside() == 1).await;
    free((later, overtakes)).await;
}

#[tokio::test]
async fn when_the_breaker_opens_everybody_in_the_queue_is_refused_at_once() {
    let (_, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .concurrency(2)
        .queue(10, SECOND)
        .breaker(|breaker| breaker.consecutive(1))
        .classify(Fail::class)
        .build()
        .unwrap();
    let (hung, fails) = (Origin::default(), Origin::default());
    let _hung = start(&guard, &hung);
    let failing = tokio::spawn({
        let (guard, fails) = (guard.clone(), fails.clone());
        async move { guard.call((), "k", |_| fails.ask(Err(Fail::Down))).await }
    });
    until("both are in flight", || hung.inside() + fails.inside() == 2).await;
    let origin = Origin::default();
    let mut calls = Vec::new();
    for _ in 0..5 {
        calls.push(queue(&guard, &origin).await);
    }
    // The first of them may have the permit that the failure gives back, before its verdict is known.
    fails.open();
    assert!(failing.await.unwrap().is_err());
    assert_eq!(guard.dependency().status().state, Some(State::Open));
    until("nobody waits", || guard.dependency().status().waiting == 0).await;
    let mut refused = 0;
    for call in calls {
        if origin.inside() > 0 {
            origin.open();
        }
        match call.await.unwrap() {
            Err(end) => {
                assert_eq!(end.reason, Some(Reason::BreakerOpen));
                refused += 1;
            }
            Ok(answer) => assert_eq!(answer.rung, Rung::Live),
        }
    }
    assert!(refused >= 4, "{refused}");
}

#[tokio::test]
async fn a_hold_refuses_everybody_in_the_queue_at_once() {
    for on_dependency in [false, true] {
        let (_, engine) = engine();
        let guard = guard(&engine, 1, 10, SECOND);
        let _busy = hold_permit(&engine, &guard).await;
        let origin = Origin::default();
        let calls = [queue(&guard, &origin).await, queue(&guard, &origin).await];
        let hold = Hold {
            mode: HoldMode::ForcedOpen,
            by: "ana".to_owned(),
            why: "migration".to_owned(),
            lasts: None,
        };
        if on_dependency {
            guard.dependency().hold(hold).unwrap();
        } else {
            guard.hold(hold).unwrap();
        }
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap_err().reason, Some(Reason::Held));
        }
    }
}

#[tokio::test]
async fn a_probe_does_not_queue() {
    let (clock, engine) = engine();
    let database = engine.resource("db", 1).unwrap();
    let other = engine.dependency("other").uses(&database).build().unwrap();
    let other = engine
        .read::<u32>("other")
        .from(&other)
        .classify(Fail::class)
        .build()
        .unwrap();
    let guard = engine
        .read::<u32>("g")
        .uses(&database)
        .queue(10, SECOND)
        .breaker(|breaker| breaker.consecutive(1))
        .classify(Fail::class)
        .build()
        .unwrap();
    guard
        .call((), "k", |_| async { Err(Fail::Down) })
        .await
        .unwrap_err();
    assert_eq!(guard.dependency().status().state, Some(State::Open));
    let _busy = hold_permit(&engine, &other).await;
    clock.advance(SECOND * 10);
    let mut due = pin!(guard.call((), "k", |_| async { Ok(1) }));
    let Poll::Ready(end) = poll(due.as_mut()) else {
        panic!("it waits")
    };
    assert_eq!(end.unwrap_err().reason, Some(Reason::AtCapacity));
    let mut by_hand = pin!(guard.probe((), "k", |_| async { Ok(1) }));
    assert!(poll(by_hand.as_mut()).is_ready(), "a person is told at once");
}

#[tokio::test]
async fn in_a_full_queue_who_matters_more_takes_the_youngest_place_of_who_matters_less() {
    let (_, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .concurrency(1)
        .queue(2, SECOND)
        .criticality(Criticality::Sheddable)
        .classify(Fail::class)
        .ladder([stale(SECOND * 60)])
        .build()
        .unwrap();
    guard.call((), "k", |_| async { Ok(7) }).await.unwrap();
    let first = hold_permit(&engine, &guard).await;
    let origin = Origin::default();
    let (old, young) = (queue(&guard, &origin).await, queue(&guard, &origin).await);
    let urgent = Origin::default();
    let matters = start(&guard.with_criticality(Criticality::Critical), &urgent);
    let shed = young.await.unwrap().unwrap();
    assert_eq!((shed.rung, shed.reason), (Rung::Stale, Some(Reason::Shed)));
    free(first).await;
    until("who matters more is first", || urgent.inside() == 1).await;
    assert_eq!(origin.inside(), 0);
    free((urgent, matters)).await;
    until("then the other", || origin.inside() == 1).await;
    free((origin, old)).await;
}

#[tokio::test]
async fn who_waits_for_a_resource_gets_what_another_dependency_gives_back() {
    let (_, engine) = engine();
    let database = engine.resource("db", 1).unwrap();
    let one = engine.dependency("one").uses(&database).build().unwrap();
    let other = engine
        .dependency("other")
        .uses(&database)
        .queue(10, SECOND)
        .build()
        .unwrap();
    let read = |from: &Dependency| {
        engine
            .read::<u32>("g")
            .from(from)
            .classify(Fail::class)
            .build()
            .unwrap()
    };
    let (first, second) = (read(&one), read(&other));
    let holds = hold_permit(&engine, &first).await;
    let origin = Origin::default();
    let waits = queue(&second, &origin).await;
    free(holds).await;
    until("it is asked", || origin.inside() == 1).await;
    free((origin, waits)).await;
    assert_eq!(database.in_use(), 0);
}

#[tokio::test]
async fn the_leader_of_a_flight_waits_for_all_who_joined_it() {
    let (_, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .concurrency(1)
        .queue(10, SECOND)
        .classify(Fail::class)
        .coalesce()
        .build()
        .unwrap();
    let origin = Origin::default();
    let call = |key: &'static str, origin: &Origin| {
        let (guard, origin) = (guard.clone(), origin.clone());
        tokio::spawn(async move { guard.call_owned((), key, move |_| origin.ask(Ok(1))).await })
    };
    let busy = call("busy", &origin);
    until("it is in flight", || origin.inside() == 1).await;
    let shared = Origin::default();
    let calls: Vec<_> = (0..5).map(|_| call("k", &shared)).collect();
    settle().await;
    assert_eq!(
        guard.dependency().status().waiting,
        1,
        "one place for all of them"
    );
    origin.open();
    busy.await.unwrap().unwrap();
    until("it is asked", || shared.inside() == 1).await;
    shared.open();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(shared.asked(), 1);
}

#[test]
fn a_queue_where_nothing_is_limited_is_a_problem() {
    let (_, engine) = engine();
    let built = engine.dependency("d").queue(10, SECOND).build();
    let problems = built.map(|built| built.name().to_owned()).unwrap_err();
    assert!(
        problems.to_string().contains("nothing that limits them"),
        "{problems}"
    );
    let built = engine
        .dependency("d")
        .concurrency(1)
        .queue(0, Duration::ZERO)
        .build();
    let problems = built.map(|built| built.name().to_owned()).unwrap_err();
    assert_eq!(
        problems.to_string(),
        "queue.length: 0; allowed: 1 to 100000; raise it to 1\n\
         queue.wait: 0ns; allowed: 1ms to 60s; raise it to 1ms"
    );
}

/// One call in the hands of the test below.
type Call = Pin<Box<dyn Future<Output = End<u32>>>>;

/// Whatever comes and goes, in whatever order: permits are never beyond the limit, nobody waits beside a free one once
/// everything has moved, and in the end nothing is left.
#[test]
fn no_order_of_coming_going_leaving_and_expiring_loses_a_permit_or_a_turn() {
    for seed in 1..40_u64 {
        let (clock, engine) = engine();
        let guard = guard(&engine, 3, 8, MS * 40);
        let origin = Origin::default();
        let mut numbers = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut below = |limit: u64| {
            numbers ^= numbers << 13;
            numbers ^= numbers >> 7;
            numbers ^= numbers << 17;
            numbers % limit
        };
        let mut calls: Vec<(Call, Arc<Mutex<bool>>)> = Vec::new();
        for _ in 0..400 {
            match below(10) {
                0..4 => {
                    let done = Arc::new(Mutex::new(false));
                    let (guard, origin, flag) = (guard.clone(), origin.clone(), Arc::clone(&done));
                    let criticality = Criticality::ALL[usize::try_from(below(4)).unwrap()];
                    let call: Call = Box::pin(async move {
                        let guard = guard.with_criticality(criticality);
                        guard
                            .call((), "k", |_| async move {
                                let _inside = origin.enter();
                                std::future::poll_fn(|_| {
                                    if *flag.lock() {
                                        Poll::Ready(())
                                    } else {
                                        Poll::Pending
                                    }
                                })
                                .await;
                                Ok(1)
                            })
                            .await
                    });
                    calls.push((call, done));
                }
                4..7 if !calls.is_empty() => {
                    let which = usize::try_from(below(calls.len() as u64)).unwrap();
                    *calls[which].1.lock() = true;
                }
                7 if !calls.is_empty() => {
                    let which = usize::try_from(below(calls.len() as u64)).unwrap();
                    drop(calls.swap_remove(which));
                }
                _ => clock.advance(MS * u32::try_from(below(20)).unwrap()),
            }
            // Until nothing moves any more, in an order of its own each time.
            for _ in 0..6 {
                let turn = usize::try_from(below(7)).unwrap();
                let count = calls.len().max(1);
                calls.rotate_left(turn % count);
                calls.retain_mut(|(call, _)| poll(call.as_mut()).is_pending());
            }
            let status = guard.dependency().status();
            assert_eq!(status.in_use, origin.inside(), "seed {seed}");
            assert!(
                status.in_use <= 3 && status.waiting <= 8,
                "seed {seed}: {status:?}"
            );
            let all: u32 = status.in_use + status.waiting;
            assert_eq!(usize::try_from(all).unwrap(), calls.len(), "seed {seed}");
        }
        calls.clear();
        let status = guard.dependency().status();
        assert_eq!(
            (status.in_use, status.waiting, clock.sleepers()),
            (0, 0, 0),
            "seed {seed}"
        );
    }
}

/// The same on two real threads and the system's clock: every call ends, and nothing is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_many_threads_every_call_ends_and_nothing_is_left() {
    let engine = Engine::system();
    let guard = engine
        .read::<u32>("g")
        .concurrency(2)
        .queue(1000, SECOND * 60)
        .classify(|_: &()| Class::OUTAGE)
        .build()
        .unwrap();
    let calls: Vec<_> = (0..1000)
        .map(|number| {
            let guard = guard.clone();
            tokio::spawn(async move {
                let work = |_| async move {
                    for _ in 0..number % 5 {
                        tokio::task::yield_now().await;
                    }
                    Ok(1)
                };
                guard.call((), "k", work).await.is_ok()
            })
        })
        .collect();
    for call in calls {
        assert!(call.await.unwrap());
    }
    let status = guard.dependency().status();
    assert_eq!((status.in_use, status.waiting), (0, 0));
    assert_eq!(guard.counts().total(Ending::Answered(Rung::Live)), 1000);
}

#[test]
fn a_call_outside_a_runtime_that_would_have_to_wait_is_refused_and_says_why() {
    let engine = Engine::system();
    let guard = engine
        .read::<u32>("g")
        .concurrency(1)
        .queue(10, SECOND)
        .classify(Fail::class)
        .build()
        .unwrap();
    let origin = Origin::default();
    let mut holds = pin!(guard.call((), "k", |_| origin.clone().hang()));
    assert!(poll(holds.as_mut()).is_pending());
    let mut waits = pin!(guard.call((), "k", |_| async { Ok(1) }));
    let Poll::Ready(end) = poll(waits.as_mut()) else {
        panic!("it waits, and nothing would wake it")
    };
    assert_eq!(end.unwrap_err().misuse, Some(evenkeel::Misuse::NoTimer));
}
