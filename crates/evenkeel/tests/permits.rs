//! Permits: in use exactly while work is in flight, whatever ends it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::{sync::Arc, task::Poll};

use evenkeel::{Class, Ending, Permit, Reason, Rung};
use support::{End, Fail, MS, NS, Origin, SECOND, engine, poll, settle};

/// Numbers that look random and are the same in every run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[test]
fn case_022_permits_in_use_are_calls_in_flight_at_every_instant_of_a_thousand_cancelled_calls() {
    let (clock, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .concurrency(10)
        .classify(Fail::class)
        .build()
        .unwrap();
    let dependency = guard.dependency();
    let origin = Origin::default();
    let mut numbers = Numbers(22);
    // Each call starts in its own millisecond, ends after one second, and is cancelled after 0 to 1100 ms.
    let mut running = Vec::new();
    let mut done = [0_u64; 3];
    for step in 0..2200_u64 {
        if step < 1000 {
            let (origin, began) = (origin.clone(), clock.now().mono);
            let mut call = Box::pin({
                let (guard, clock) = (guard.clone(), clock.clone());
                async move {
                    guard
                        .call((), "k", |_| async move {
                            let _pass = origin.enter();
                            std::future::poll_fn(|_| {
                                if clock.now().mono.since(began) >= SECOND {
                                    Poll::Ready(())
                                } else {
                                    Poll::Pending
                                }
                            })
                            .await;
                            Ok(1)
                        })
                        .await
                }
            });
            let leaves = step + numbers.below(1101);
            match poll(call.as_mut()) {
                Poll::Pending => running.push((call, leaves)),
                Poll::Ready(end) => {
                    assert_eq!(end.unwrap_err().reason, Some(Reason::AtCapacity));
                    done[0] += 1;
                }
            }
        }
        running.retain_mut(|(call, leaves)| {
            let ended = poll(call.as_mut()).is_ready();
            let left = !ended && *leaves <= step;
            done[1] += u64::from(ended);
            done[2] += u64::from(left);
            !ended && !left
        });
        assert_eq!(dependency.status().in_use, origin.inside(), "at {step} ms");
        assert_eq!(usize::try_from(origin.inside()).unwrap(), running.len());
        clock.advance(MS);
    }
    assert!(
        origin.most() == 10 && done.iter().all(|ended| *ended > 0),
        "{done:?}"
    );
    assert_eq!(dependency.status().in_use, 0);

    let mut normal: Vec<_> = (0..10)
        .map(|_| Box::pin(guard.call((), "k", |_| origin.clone().ask(Ok(1)))))
        .collect();
    assert!(normal.iter_mut().all(|call| poll(call.as_mut()).is_pending()));
    assert_eq!((origin.inside(), dependency.status().in_use), (10, 10));
    origin.open();
    assert!(normal.iter_mut().all(|call| poll(call.as_mut()).is_ready()));
    assert_eq!((origin.inside(), dependency.status().in_use), (0, 0));

    let counts = guard.counts();
    assert_eq!(counts.calls(), 1010);
    assert_eq!(counts.get(Ending::Refused, Some(Reason::AtCapacity)), done[0]);
    assert_eq!(counts.total(Ending::Answered(Rung::Live)), done[1] + 10);
    assert_eq!(counts.total(Ending::Abandoned), done[2]);
    assert_eq!(dependency.attempts_total(), origin.asked());
    assert_eq!(dependency.attempts(Class::Cancelled), done[2]);
}

#[tokio::test]
async fn case_024_when_a_hanging_origin_has_all_permits_everybody_is_answered_at_once() {
    let (clock, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .concurrency(5)
        .deadline(2 * SECOND)
        .classify(Fail::class)
        .build()
        .unwrap();
    let origin = Origin::default();
    let hanging: Vec<_> = (0..5)
        .map(|_| {
            let (guard, origin) = (guard.clone(), origin.clone());
            tokio::spawn(async move { guard.call((), "k", |_| origin.hang::<u32>()).await })
        })
        .collect();
    settle().await;
    assert_eq!(origin.inside(), 5);
    for _ in 0..50 {
        let mut call = Box::pin(guard.call((), "k", |_| origin.clone().ask(Ok(1))));
        let Poll::Ready(end) = poll(call.as_mut()) else {
            panic!("a call waited for a permit")
        };
        let refused = end.unwrap_err();
        assert_eq!(
            (refused.ending, refused.reason),
            (Ending::Refused, Some(Reason::AtCapacity))
        );
    }
    assert_eq!((origin.asked(), guard.dependency().status().in_use), (5, 5));
    clock.advance(2 * SECOND);
    for call in hanging {
        let end = call.await.unwrap().unwrap_err();
        assert_eq!(
            (end.ending, end.reason),
            (Ending::Refused, Some(Reason::TimedOut))
        );
    }
    assert_eq!((origin.inside(), guard.dependency().status().in_use), (0, 0));
    let at_capacity = guard.counts().get(Ending::Refused, Some(Reason::AtCapacity));
    assert_eq!((at_capacity, guard.counts().calls()), (50, 55));
}

#[test]
fn a_resource_is_taken_together_with_the_permit_or_neither_is() {
    let (_, engine) = engine();
    let database = engine.resource("catalog-db", 2).unwrap();
    let guard = |name: &str| {
        engine
            .read::<u32>(name)
            .concurrency(2)
            .uses(&database)
            .classify(Fail::class)
            .build()
            .unwrap()
    };
    let (primary, spare) = (guard("primary"), guard("spare"));
    let origin = Origin::default();
    let in_use = || {
        [
            primary.dependency().status().in_use,
            spare.dependency().status().in_use,
            database.in_use(),
        ]
    };
    let mut first = Box::pin(primary.call((), "k", |_| origin.clone().ask(Ok(1))));
    let mut second = Box::pin(spare.call((), "k", |_| origin.clone().ask(Ok(2))));
    assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
    assert_eq!(in_use(), [1, 1, 2]);
    // Each dependency has a permit left, the database behind both has none.
    for guard in [&primary, &spare] {
        let mut third = Box::pin(guard.call((), "k", |_| origin.clone().ask(Ok(3))));
        let Poll::Ready(Err(refused)) = poll(third.as_mut()) else {
            panic!("not refused")
        };
        assert_eq!(refused.reason, Some(Reason::AtCapacity));
        assert_eq!(in_use(), [1, 1, 2]);
    }
    drop(first);
    assert_eq!(in_use(), [0, 1, 1]);
    origin.open();
    assert!(poll(second.as_mut()).is_ready());
    assert_eq!((in_use(), origin.asked()), ([0, 0, 0], 2));
}

#[test]
fn e26_work_that_timed_out_gives_its_permit_back_when_its_future_is_dropped_and_not_before() {
    let (clock, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .concurrency(1)
        .timeout(SECOND)
        .classify(Fail::class)
        .build()
        .unwrap();
    let origin = Origin::default();
    let mut call = Box::pin(guard.call((), "k", |_| origin.clone().hang::<u32>()));
    assert!(poll(call.as_mut()).is_pending());
    clock.advance(SECOND - NS);
    assert!(poll(call.as_mut()).is_pending());
    clock.advance(NS);
    assert_eq!((origin.inside(), guard.dependency().status().in_use), (1, 1));
    assert!(poll(call.as_mut()).is_ready());
    // The call is answered and still held by its caller; the work is gone and so is its permit.
    assert_eq!((origin.inside(), guard.dependency().status().in_use), (0, 0));
    assert_eq!(clock.sleepers(), 0);
    drop(call);
}

#[tokio::test]
async fn e34_a_panic_in_the_work_gives_the_permit_back_and_counts_a_fault_and_a_failure() {
    let (_, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .concurrency(1)
        .breaker(|b| b.consecutive(2).open_until_probed())
        .classify(Fail::class)
        .build()
        .unwrap();
    let origin = Origin::default();
    // Once while it waits, once in the closure itself: both are the work's.
    let broken = tokio::spawn({
        let (guard, origin) = (guard.clone(), origin.clone());
        async move { guard.call((), "k", |_| origin.break_down::<u32>()).await }
    });
    settle().await;
    assert_eq!(guard.dependency().status().in_use, 1);
    origin.open();
    assert!(broken.await.unwrap_err().is_panic());
    let broken = tokio::spawn({
        let guard = guard.clone();
        async move {
            guard
                .call_owned((), "k", |_| -> std::future::Ready<Result<u32, Fail>> {
                    panic!("the wrapped code breaks, as this test wants")
                })
                .await
        }
    });
    assert!(broken.await.unwrap_err().is_panic());
    assert_eq!(guard.dependency().status().in_use, 0);
    assert_eq!(guard.dependency().attempts(Class::Fault), 2);
    assert_eq!(guard.counts().get(Ending::Failed, Some(Reason::Fault)), 2);
    assert_eq!(
        guard.dependency().status().state,
        Some(evenkeel::State::Open),
        "two panics are two failures"
    );
}

#[test]
fn a_call_dropped_by_somebody_elses_panic_is_abandoned_and_blames_nobody() {
    let (_, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .concurrency(1)
        .breaker(|b| b.consecutive(1).open_until_probed())
        .classify(Fail::class)
        .build()
        .unwrap();
    let neighbour = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut call = Box::pin(guard.call((), "k", |_| Origin::default().hang::<u32>()));
        assert!(poll(call.as_mut()).is_pending());
        panic!("a neighbour breaks, as this test wants");
    }));
    assert!(neighbour.is_err());
    assert_eq!(guard.counts().total(Ending::Abandoned), 1);
    assert_eq!(guard.dependency().attempts(Class::Cancelled), 1);
    let status = guard.dependency().status();
    assert_eq!((status.in_use, status.state), (0, Some(evenkeel::State::Closed)));
}

#[tokio::test]
async fn streamed_work_keeps_its_permit_for_as_long_as_its_result_lives() {
    #[derive(Clone)]
    struct Stream(#[allow(dead_code, reason = "held, not read")] Option<Arc<Permit<'static>>>);
    let (_, engine) = engine();
    let guard = engine
        .read::<Stream>("g")
        .concurrency(1)
        .classify(Fail::class)
        .build()
        .unwrap();
    let call = || {
        guard.call_work((), "k", None, |_, permit| async move {
            Ok(Stream(permit.map(Arc::new)))
        })
    };
    let first: End<Stream> = call().await;
    let first = first.unwrap();
    assert_eq!(guard.dependency().status().in_use, 1);
    assert_eq!(call().await.err().unwrap().reason, Some(Reason::AtCapacity));
    let second_half = first.value.clone();
    drop(first);
    assert_eq!(guard.dependency().status().in_use, 1);
    drop(second_half);
    assert_eq!(guard.dependency().status().in_use, 0);
    assert!(call().await.is_ok());
}

#[test]
fn a_guard_adds_to_the_future_it_wraps_and_does_not_multiply_it() {
    let (_, engine) = engine();
    let guard = engine.read::<u8>("g").classify(Fail::class).build().unwrap();
    let large = async || {
        let large = std::hint::black_box([1_u8; 100_000]);
        tokio::task::yield_now().await;
        Ok(large[0])
    };
    let borrowed = guard.call((), "k", |_| large());
    let owned = guard.call_owned((), "k", move |_| large());
    for bytes in [std::mem::size_of_val(&borrowed), std::mem::size_of_val(&owned)] {
        assert!(
            bytes < 110_000,
            "a future of 100 kB is held in one of {bytes} bytes"
        );
    }
}

#[test]
fn the_futures_of_calls_can_be_sent_where_their_work_can() {
    fn sendable<F: Future + Send>(_: &F) {}
    let (_, engine) = engine();
    let guard = engine.read::<u32>("g").classify(Fail::class).build().unwrap();
    let local = std::rc::Rc::new(1);
    sendable(&guard.call((), "k", |_| async { Ok(1) }));
    sendable(&guard.probe((), "k", |_| async { Ok(1) }));
    sendable(&guard.call_owned((), "k", |_| async { Ok(1) }));
    sendable(&guard.call_work((), "k", Some(&|_: &u32| true), |_, _| async { Ok(1) }));
    // And what borrows and stays on its thread may be called too.
    let mut call = Box::pin(guard.call((), "k", |_| async { Ok(*local) }));
    assert!(poll(call.as_mut()).is_ready());
}
