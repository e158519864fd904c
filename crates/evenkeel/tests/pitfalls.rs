//! How guards elsewhere left something behind, forgot a limit on one of their ways, or stood in their own way. The names
//! are those of the pitfalls.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::{
    panic::resume_unwind,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};

use evenkeel::{
    Class, Classifier, Engine, Hold, HoldMode, ManualClock, Memory, Mono, Read, ReadBuilder, Reason,
    RetryRules, Rung, Skipped, State, default, stale,
};
use support::{End, Fail, MS, NS, Origin, SECOND, engine, poll, settle};
use tokio::{runtime, task::JoinHandle};

type Guard = Read<u32, Fail>;
type Builder = ReadBuilder<u32, Classifier<Fail>>;
type Running = JoinHandle<End<u32>>;

fn builder(engine: &Engine, name: &str) -> Builder {
    engine.read::<u32>(name).classify(Fail::class)
}

async fn says(guard: &Guard, says: Result<u32, Fail>) -> End<u32> {
    guard.call_owned((), "k", move |_| async move { says }).await
}

#[tokio::test]
async fn e17_a_breaker_belongs_to_one_dependency_or_one_route_and_a_person_can_reset_it() {
    let (_, engine) = engine();
    let dependency = |name| {
        let builder = engine.dependency(name);
        builder.breaker(|b| b.consecutive(1)).build().unwrap()
    };
    let (stock, prices) = (dependency("stock"), dependency("prices"));
    let list = builder(&engine, "list").from(&stock).build().unwrap();
    let item = builder(&engine, "item").from(&stock).build().unwrap();
    let price = builder(&engine, "price").from(&prices).build().unwrap();
    let by_itself = builder(&engine, "search").breaker(|b| b.consecutive(1));
    let by_itself = by_itself.build().unwrap();

    assert!(says(&list, Err(Fail::Down)).await.is_err());
    let refused = says(&item, Ok(1)).await.unwrap_err();
    assert_eq!(
        refused.reason,
        Some(Reason::BreakerOpen),
        "both draw on what is down"
    );
    for other in [&price, &by_itself] {
        assert_eq!(says(other, Ok(1)).await.unwrap().rung, Rung::Live);
        assert!(says(other, Err(Fail::Down)).await.is_err());
    }
    stock.reset("ana", "the disk was full");
    for guard in [&list, &item] {
        assert_eq!(says(guard, Ok(1)).await.unwrap().rung, Rung::Live);
    }
    for other in [&price, &by_itself] {
        assert_eq!(
            other.dependency().status().state,
            Some(State::Open),
            "nobody reset this one"
        );
    }
}

/// A guard with a copy that is past its lifetime, so that the next call starts a refresh.
fn due_for_a_refresh() -> (ManualClock, Guard) {
    let (clock, engine) = engine();
    let guard = builder(&engine, "g")
        .concurrency(1)
        .timeout(SECOND)
        .fresh_for(SECOND)
        .stale_while_revalidate(60 * SECOND)
        .ladder([stale(60 * SECOND)])
        .build()
        .unwrap();
    let first = poll(Box::pin(guard.call((), "k", |_| async { Ok(1) })).as_mut());
    assert!(matches!(first, Poll::Ready(Ok(answer)) if answer.kept));
    clock.advance(SECOND);
    (clock, guard)
}

#[tokio::test]
async fn e31_a_refresh_that_breaks_or_is_refused_locks_its_key_for_nobody() {
    for when in ["at once", "later", "refused"] {
        let (_, guard) = due_for_a_refresh();
        let origin = Origin::default();
        let holder = Origin::default();
        let mut held = Box::pin(guard.call((), "other", |_| holder.clone().ask(Ok(1))));
        if when == "refused" {
            assert!(poll(held.as_mut()).is_pending());
        }
        let breaking = origin.clone();
        let end = guard.call_owned((), "k", move |_| async move {
            if when == "at once" {
                panic!("the wrapped code breaks, as this test wants");
            }
            breaking.break_down().await
        });
        assert_eq!(end.await.unwrap().rung, Rung::Stale, "{when}");
        settle().await;
        origin.open();
        settle().await;
        drop(held);
        assert_eq!(
            (guard.flights(), guard.dependency().status().in_use),
            ((0, 0), 0),
            "{when}"
        );
        // The next caller starts a refresh, and it is stored.
        assert_eq!(says(&guard, Ok(2)).await.unwrap().rung, Rung::Stale, "{when}");
        settle().await;
        let fresh = says(&guard, Ok(3)).await.unwrap();
        assert_eq!((fresh.value, fresh.rung), (2, Rung::Fresh), "{when}");
    }
}

#[test]
fn e31_a_refresh_that_is_cancelled_locks_its_key_for_nobody() {
    let (_, guard) = due_for_a_refresh();
    let origin = Origin::default();
    let short = runtime::Builder::new_current_thread().build().unwrap();
    let hanging = origin.clone();
    let served = short.block_on(async {
        let served = guard.call_owned((), "k", move |_| hanging.hang()).await;
        settle().await;
        served
    });
    assert_eq!(served.unwrap().rung, Rung::Stale);
    assert_eq!((origin.inside(), guard.flights().0), (1, 1));
    // The runtime that carried it ends, and everything in it is dropped.
    drop(short);
    assert_eq!((origin.inside(), guard.flights().0), (0, 0));
    assert_eq!(guard.dependency().status().in_use, 0);
    let next = runtime::Builder::new_current_thread().build().unwrap();
    next.block_on(async {
        assert_eq!(says(&guard, Ok(2)).await.unwrap().rung, Rung::Stale);
        settle().await;
        assert_eq!(says(&guard, Ok(3)).await.unwrap().value, 2);
    });
}

/// Checks that a call whose dependency hangs ends one second after `began`, and no sooner.
async fn assert_ends_with_its_deadline(way: &str, clock: &ManualClock, began: Mono, calls: Vec<Running>) {
    settle().await;
    clock.advance(began.after(SECOND - NS).since(clock.now().mono));
    settle().await;
    assert!(
        calls.iter().all(|call| !call.is_finished()),
        "{way}: ends too early"
    );
    clock.advance(NS);
    settle().await;
    for call in calls {
        assert!(call.is_finished(), "{way}: outlives its deadline");
        assert!(call.await.unwrap().is_err(), "{way}");
    }
    settle().await;
    assert_eq!(clock.sleepers(), 0, "{way}");
}

/// A way through a guard by which a call hangs.
type Way = fn(Guard, Origin) -> Running;

const WAYS: [(&str, Way); 4] = [
    ("call", |guard, origin| {
        tokio::spawn(async move { guard.call((), "k", |_| origin.ask(Ok(1))).await })
    }),
    ("probe", |guard, origin| {
        tokio::spawn(async move { guard.probe((), "k", |_| origin.ask(Ok(1))).await })
    }),
    ("call_owned", |guard, origin| {
        tokio::spawn(async move { guard.call_owned((), "k", |_| origin.ask(Ok(1))).await })
    }),
    ("call_work", |guard, origin| {
        tokio::spawn(async move {
            let work = |_, permit| async move {
                let says = origin.ask(Ok(1)).await;
                drop(permit);
                says
            };
            guard.call_work((), "k", None, work).await
        })
    }),
];

type Change = fn(Builder) -> Builder;

#[tokio::test]
async fn e32_the_deadline_ends_a_call_on_every_way_through_a_guard() {
    let kinds: [(&str, Change); 3] = [
        ("plain", |b| b),
        ("shared", |b| b.coalesce()),
        ("with a soft timeout and no copy", |b| {
            b.soft_timeout(300 * MS).ladder([stale(SECOND)])
        }),
    ];
    for (kind, change) in kinds {
        for (way, start) in WAYS {
            let (clock, engine) = engine();
            let guard = change(builder(&engine, "g").deadline(SECOND)).build().unwrap();
            let origin = Origin::default();
            let calls = vec![start(guard.clone(), origin.clone()), start(guard, origin)];
            let way = format!("{way}, {kind}");
            assert_ends_with_its_deadline(&way, &clock, clock.now().mono, calls).await;
        }
    }
}

#[tokio::test]
async fn e32_the_deadline_ends_a_wait_for_a_permit_a_further_attempt_and_an_alternate() {
    let (clock, engine) = engine();
    let guard = builder(&engine, "queued").deadline(SECOND).concurrency(1);
    let guard = guard.queue(4, 60 * SECOND).build().unwrap();
    let holder = builder(&engine, "holder")
        .from(guard.dependency())
        .build()
        .unwrap();
    let origin = Origin::default();
    let held = WAYS[0].1(holder, origin.clone());
    settle().await;
    for (way, start) in WAYS.into_iter().filter(|(way, _)| *way != "probe") {
        let calls = vec![start(guard.clone(), origin.clone())];
        assert_ends_with_its_deadline(way, &clock, clock.now().mono, calls).await;
    }
    assert_eq!(origin.asked(), 1, "nobody was let in");
    held.abort();
    assert!(held.await.is_err());

    let guard = builder(&engine, "repeated").deadline(SECOND);
    let guard = guard.retry(RetryRules::DEFAULT).build().unwrap();
    let (first, origin) = (Arc::new(AtomicBool::new(true)), Origin::default());
    let began = clock.now().mono;
    let call = tokio::spawn({
        let origin = origin.clone();
        async move {
            let work = move |_: evenkeel::Call<'static>| {
                let (is_first, origin) = (first.swap(false, Ordering::SeqCst), origin.clone());
                async move {
                    if is_first {
                        return Err(Fail::Down);
                    }
                    origin.hang().await
                }
            };
            guard.call_repeatable((), "k", work).await
        }
    });
    settle().await;
    clock.advance(500 * MS);
    settle().await;
    assert_eq!(origin.inside(), 1, "the second attempt is under way");
    assert_ends_with_its_deadline("retry", &clock, began, vec![call]).await;

    let spare = engine.dependency("spare").timeout(300 * MS).build().unwrap();
    let (origin, stuck) = (Origin::default(), Origin::default());
    let guard = builder(&engine, "other").deadline(SECOND);
    let hanging = stuck.clone();
    let guard = guard.alternate(&spare, move |(), _key, _call| hanging.clone().hang());
    let guard = guard.build().unwrap();
    let began = clock.now().mono;
    let call = WAYS[2].1(guard, origin);
    settle().await;
    clock.advance(700 * MS);
    settle().await;
    assert_eq!(stuck.inside(), 1, "what the alternate needs was kept free");
    assert_ends_with_its_deadline("alternate", &clock, began, vec![call]).await;
}

#[tokio::test]
async fn e33_who_leaves_or_runs_out_of_time_ends_nobody_elses_call() {
    let kinds: [(&str, Change); 2] = [("plain", |b| b), ("shared", |b| b.coalesce())];
    for (kind, change) in kinds {
        for (way, start) in WAYS {
            let (clock, engine) = engine();
            let guard = change(builder(&engine, "g").deadline(SECOND)).build().unwrap();
            let origin = Origin::default();
            let mut calls = Vec::new();
            for _ in 0..5 {
                calls.push(start(guard.clone(), origin.clone()));
                settle().await;
                clock.advance(100 * MS);
            }
            calls.remove(2).abort();
            clock.advance(500 * MS);
            settle().await;
            let ended: Vec<bool> = calls.iter().map(JoinHandle::is_finished).collect();
            assert_eq!(ended, [true, false, false, false], "{way}, {kind}");
            origin.open();
            for call in calls.drain(1..) {
                let answer = call.await.unwrap().unwrap();
                assert_eq!((answer.value, answer.rung), (1, Rung::Live), "{way}, {kind}");
            }
            assert_eq!(origin.inside(), 0, "{way}, {kind}");
        }
    }
}

/// Runs what may come to wait for itself, and says so if it does.
fn to_its_end(what: &str, run: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let thread = thread::spawn(move || {
        run();
        let _nobody_waits_any_more = done.send(());
    });
    match ended.recv_timeout(Duration::from_secs(30)) {
        Ok(()) => thread.join().unwrap(),
        Err(RecvTimeoutError::Disconnected) => resume_unwind(thread.join().unwrap_err()),
        Err(RecvTimeoutError::Timeout) => panic!("{what} waits for itself"),
    }
}

type Back = Arc<OnceLock<(Engine, Read<Nosy, Fail>)>>;

/// A value that looks around in its guard when it is dropped.
#[derive(Clone)]
struct Nosy(Back);

impl Drop for Nosy {
    fn drop(&mut self) {
        look_around(&self.0);
    }
}

/// Calls everything that can be called of a guard without waiting.
fn look_around(back: &Back) {
    let Some((engine, guard)) = back.get() else { return };
    let _status = guard.dependency().status();
    let _counts = (guard.counts(), guard.flights(), guard.held());
    let _kept = (guard.memory().bytes(), guard.memory().count());
    guard.dependency().reset("nosy", "looks around");
    guard.forget((), "another").unwrap();
    drop(engine.drain_events());
}

#[test]
fn e36_the_users_own_code_may_use_the_guard_wherever_it_is_called() {
    to_its_end("the user's own code", || {
        let back = Back::default();
        let looks = |back: &Back| {
            let back = Arc::clone(back);
            move || look_around(&back)
        };
        let (clock, engine) = engine();
        let [class, share, keep, weigh, fall] = [(); 5].map(|()| looks(&back));
        let value = Nosy(Arc::clone(&back));
        let memory = Memory::new(4096);
        let guard = engine
            .read::<Nosy>("g")
            .breaker(|b| b.consecutive(2))
            .classify(|error: &Fail| error.class())
            .class_of(move |_| {
                class();
                Class::Answer
            })
            .coalesce()
            .share_if(move |_| {
                share();
                true
            })
            .keep_if(move |_| {
                keep();
                true
            })
            .weigh(move |_| {
                weigh();
                500
            })
            .memory(&memory)
            .ladder([
                stale(60 * SECOND),
                default(move || {
                    fall();
                    value.clone()
                }),
            ])
            .build()
            .unwrap();
        assert!(back.set((engine, guard.clone())).is_ok());
        let runtime = runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            // Kept, replaced, pushed out by others, taken away, and stood in for.
            for round in 0..3 {
                for key in ["k", "another", "a", "b", "c", "d", "e", "f", "g", "h", "k"] {
                    clock.advance(MS);
                    let value = Nosy(Arc::clone(&back));
                    assert!(guard.call_owned((), key, |_| async { Ok(value) }).await.is_ok());
                    let failed = guard.call_owned((), key, |_| async { Err(Fail::Down) }).await;
                    assert!(failed.is_ok(), "{key} in round {round}");
                    settle().await;
                }
                guard.forget((), "k").unwrap();
                let seeded = Nosy(Arc::clone(&back));
                assert!(guard.seed((), "k", seeded, None).is_ok());
            }
        });
    });
}

/// A waker that goes on inline with another call of the same guard, as executors may that run what they wake.
struct Inline(Guard, AtomicBool);

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        let mut call = Box::pin(self.0.call((), "k", |_| async { Ok(2) }));
        let _pending = poll(call.as_mut()).is_pending();
        let _status = self.0.dependency().status();
        self.1.store(true, Ordering::SeqCst);
    }
}

#[test]
fn e36_who_is_woken_for_a_permit_may_go_on_inside_the_call_that_wakes() {
    to_its_end("who is woken", || {
        let (_, engine) = engine();
        let guard = builder(&engine, "g").concurrency(1).queue(4, SECOND);
        let guard = guard.build().unwrap();
        let origin = Origin::default();
        let mut first = Box::pin(guard.call((), "k", |_| origin.clone().ask(Ok(1))));
        assert!(poll(first.as_mut()).is_pending());
        let inline = Arc::new(Inline(guard.clone(), AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&inline));
        let mut second = Box::pin(guard.call((), "k", |_| async { Ok(1) }));
        assert!(
            second
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        origin.open();
        assert!(poll(first.as_mut()).is_ready());
        assert!(inline.1.load(Ordering::SeqCst), "nobody was woken");
        assert!(poll(second.as_mut()).is_ready());
        assert_eq!(guard.dependency().status().in_use, 0);
    });
}

#[tokio::test]
async fn e45_what_was_taken_away_is_served_by_no_rung_and_no_trigger() {
    let (_, engine) = engine();
    let guard = builder(&engine, "g")
        .breaker(|b| b.consecutive(2))
        .ladder([stale(60 * SECOND)])
        .build()
        .unwrap();
    let hold = |mode| Hold {
        mode,
        by: "ana".into(),
        why: "a test".into(),
        lasts: None,
    };
    for trigger in ["failed", "open", "held"] {
        guard.dependency().reset("ana", "a new round");
        assert!(says(&guard, Ok(1)).await.unwrap().kept);
        guard.forget((), "k").unwrap();
        match trigger {
            "failed" => {}
            "open" => {
                for _ in 0..2 {
                    assert!(says(&guard, Err(Fail::Down)).await.is_err());
                }
            }
            _ => guard.hold(hold(HoldMode::StaleOnly)).unwrap(),
        }
        let end = says(&guard, Err(Fail::Down)).await.unwrap_err();
        let skipped: Vec<_> = end.skipped.iter().collect();
        assert_eq!(skipped, [(Rung::Stale, Skipped::NoSnapshot)], "{trigger}");
        guard.release("ana");
    }
}
