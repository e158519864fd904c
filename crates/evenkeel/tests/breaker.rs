//! The circuit breaker as callers meet it: what trips it, who probes, who waits, and who is blamed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::{pin::Pin, task::Poll, time::Duration};

use evenkeel::{
    BreakerBuilder, Cause, Class, Engine, EventKind, Hold, HoldMode, ManualClock, Outage, Read, ReadBuilder,
    Reason, Rung, State, WhenBusy, default, stale,
};
use support::{End, Fail, MS, NS, Origin, SECOND, engine, poll, settle, until, wall};

type Guard = Read<u32, Fail>;
type Builder = ReadBuilder<u32, evenkeel::Classifier<Fail>>;

struct Stage {
    clock: ManualClock,
    engine: Engine,
    guard: Guard,
    origin: Origin,
}

impl Stage {
    fn new(
        breaker: impl FnOnce(BreakerBuilder) -> BreakerBuilder,
        change: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let (clock, engine) = engine();
        let builder = engine
            .read::<u32>("g")
            .breaker(|b| breaker(b.consecutive(1).open_for(SECOND, 4 * SECOND).jitter(0)))
            .classify(Fail::class);
        Self {
            guard: change(builder).build().unwrap(),
            clock,
            engine,
            origin: Origin::default(),
        }
    }

    /// One whose breaker has just opened.
    async fn open(
        breaker: impl FnOnce(BreakerBuilder) -> BreakerBuilder,
        change: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let stage = Self::new(breaker, change);
        drop(stage.guard.call((), "k", |_| async { Err(Fail::Down) }).await);
        assert_eq!(stage.state(), State::Open);
        stage
    }

    fn state(&self) -> State {
        self.guard.dependency().status().state.unwrap()
    }

    fn next_probe_in(&self) -> Option<Duration> {
        let now = self.clock.now().mono;
        self.guard
            .dependency()
            .status()
            .next_probe
            .map(|at| at.since(now))
    }

    /// Calls; the dependency, if asked, says this at once.
    async fn call(&self, says: Result<u32, Fail>) -> End<u32> {
        let origin = self.origin.clone();
        self.guard.call((), "k", |_| origin.ask_now(says)).await
    }

    async fn probe(&self, says: Result<u32, Fail>) -> End<u32> {
        let origin = self.origin.clone();
        self.guard.probe((), "k", |_| origin.ask_now(says)).await
    }

    /// Starts a call that the dependency answers when its gate opens.
    fn begin(&self, says: Result<u32, Fail>) -> Pin<Box<dyn Future<Output = End<u32>>>> {
        let (guard, origin) = (self.guard.clone(), self.origin.clone());
        let mut call: Pin<Box<dyn Future<Output = End<u32>>>> =
            Box::pin(async move { guard.call((), "k", |_| origin.ask(says)).await });
        assert!(poll(call.as_mut()).is_pending());
        call
    }

    fn transitions(&self) -> Vec<(State, State, Cause)> {
        let events = self.engine.drain_events();
        let breaker = events.into_iter().filter_map(|event| match event.kind {
            EventKind::Breaker(change) => Some((change.from, change.to, change.cause)),
            EventKind::Ramp(_)
            | EventKind::Held { .. }
            | EventKind::Released { .. }
            | EventKind::Reset { .. }
            | EventKind::Exercised { .. } => None,
        });
        breaker.collect()
    }
}

fn reason(end: &End<u32>) -> Option<Reason> {
    match end {
        Ok(answer) => answer.reason,
        Err(unanswered) => unanswered.reason,
    }
}

#[tokio::test]
async fn it_opens_is_probed_reopens_for_longer_and_closes() {
    let stage = Stage::new(|b| b.consecutive(3), |b| b);
    for failures in 1..=3 {
        assert_eq!(stage.state(), State::Closed, "after {} failures", failures - 1);
        assert_eq!(
            reason(&stage.call(Err(Fail::Down)).await),
            Some(Reason::DependencyFailed)
        );
    }
    assert_eq!((stage.state(), stage.origin.asked()), (State::Open, 3));

    // Refused without asking, up to the last nanosecond of the open period.
    stage.clock.advance(SECOND - NS);
    let refused = stage.call(Ok(1)).await.unwrap_err();
    assert_eq!(
        (refused.reason, refused.retry_after, stage.origin.asked()),
        (Some(Reason::BreakerOpen), Some(NS), 3)
    );
    stage.clock.advance(NS);
    let failed = stage.call(Err(Fail::Down)).await.unwrap_err();
    assert_eq!(
        (failed.reason, failed.cause, stage.origin.asked()),
        (Some(Reason::ProbeFailed), Some(Fail::Down), 4)
    );
    assert_eq!(failed.retry_after, stage.next_probe_in(), "the next one is known");
    for doubled in [2, 4, 4] {
        assert_eq!(stage.next_probe_in(), Some(doubled * SECOND));
        stage.clock.advance(doubled * SECOND);
        assert_eq!(
            reason(&stage.call(Err(Fail::Down)).await),
            Some(Reason::ProbeFailed)
        );
    }
    stage.clock.advance(4 * SECOND);
    assert_eq!(stage.call(Ok(1)).await.unwrap().rung, Rung::Live);
    assert_eq!((stage.state(), stage.next_probe_in()), (State::Closed, None));
    let mut transitions = stage.transitions();
    assert_eq!(transitions.len(), 1 + 2 * 5);
    transitions.drain(1..transitions.len() - 2);
    assert_eq!(
        transitions,
        [
            (State::Closed, State::Open, Cause::Tripped),
            (State::Open, State::HalfOpen, Cause::Probing),
            (State::HalfOpen, State::Closed, Cause::Proven),
        ]
    );
}

#[tokio::test]
async fn a_success_in_between_starts_the_count_anew_and_a_ratio_does_not_forget() {
    let consecutive = Stage::new(|b| b.consecutive(2), |b| b);
    for says in [Err(Fail::Down), Ok(1), Err(Fail::Down), Ok(1), Err(Fail::Down)] {
        drop(consecutive.call(says).await);
    }
    assert_eq!(consecutive.state(), State::Closed);
    let ratio = Stage::new(
        |b| b.consecutive(100).failure_ratio(500_000, 10 * SECOND, 4),
        |b| b,
    );
    for says in [Err(Fail::Down), Ok(1), Err(Fail::Down)] {
        drop(ratio.call(says).await);
    }
    assert_eq!(ratio.state(), State::Closed, "three calls are too few to judge");
    drop(ratio.call(Err(Fail::Down)).await);
    assert_eq!(ratio.state(), State::Open);
}

#[tokio::test]
async fn with_call_owned_the_probe_runs_in_the_background_while_a_rung_answers() {
    for rung in [Rung::Stale, Rung::Default] {
        let stage = Stage::open(|b| b, |b| b.ladder([stale(60 * SECOND), default(|| 1)])).await;
        if rung == Rung::Stale {
            stage.guard.seed((), "k", 2, Some(wall(&stage.clock))).unwrap();
        }
        stage.clock.advance(SECOND);
        let origin = stage.origin.clone();
        let mut call = Box::pin(stage.guard.call_owned((), "k", |_| origin.ask(Ok(9))));
        let Poll::Ready(Ok(answer)) = poll(call.as_mut()) else {
            panic!("the caller waited for a probe")
        };
        assert_eq!((answer.rung, answer.reason), (rung, Some(Reason::BreakerOpen)));
        settle().await;
        assert_eq!((stage.origin.inside(), stage.state()), (1, State::HalfOpen));
        // While it is under way nobody else asks.
        assert_eq!(reason(&stage.call(Ok(3)).await), Some(Reason::BreakerOpen));
        assert_eq!(stage.origin.asked(), 1);
        stage.origin.open();
        settle().await;
        assert_eq!(stage.state(), State::Closed);
        let failing = stage.call(Err(Fail::Down)).await.unwrap();
        assert_eq!(
            (failing.rung, failing.value),
            (Rung::Stale, 9),
            "its answer is kept"
        );
    }
}

#[tokio::test]
async fn where_no_rung_can_answer_or_none_may_the_caller_waits_for_the_probe() {
    for (when_busy, snapshot) in [(WhenBusy::Ladder, None), (WhenBusy::Refuse, Some(Duration::ZERO))] {
        let stage = Stage::open(|b| b, |b| b.ladder([stale(60 * SECOND)]).when_busy(when_busy)).await;
        if let Some(age) = snapshot {
            stage
                .guard
                .seed((), "k", 2, Some(wall(&stage.clock) - age))
                .unwrap();
        }
        stage.clock.advance(SECOND);
        let origin = stage.origin.clone();
        let mut call = Box::pin(stage.guard.call_owned((), "k", |_| origin.ask(Ok(9))));
        assert!(poll(call.as_mut()).is_pending());
        stage.origin.open();
        let Poll::Ready(Ok(answer)) = poll(call.as_mut()) else {
            panic!("the probe was not waited for")
        };
        assert_eq!((answer.rung, stage.state()), (Rung::Live, State::Closed));
    }
}

#[tokio::test]
async fn case_014_of_five_hundred_callers_at_the_end_of_the_open_period_one_asks() {
    let stage = Stage::open(|b| b, |b| b.concurrency(1000)).await;
    stage.clock.advance(SECOND);
    let calls: Vec<_> = (0..500)
        .map(|number| {
            let (guard, origin) = (stage.guard.clone(), stage.origin.clone());
            tokio::spawn(async move {
                if number % 2 == 0 {
                    guard.call((), "k", |_| origin.ask(Ok(1))).await
                } else {
                    guard.call_owned((), "k", |_| origin.ask(Ok(1))).await
                }
            })
        })
        .collect();
    settle().await;
    assert_eq!((stage.origin.asked(), stage.origin.inside()), (1, 1));
    stage.origin.open();
    let mut live = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(answer) => live += u32::from(answer.rung == Rung::Live),
            Err(refused) => assert_eq!(refused.reason, Some(Reason::BreakerOpen)),
        }
    }
    assert_eq!((live, stage.origin.most(), stage.state()), (1, 1, State::Closed));
}

#[test]
fn case_014_holds_for_callers_on_many_threads() {
    for round in 0..20 {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(4)
            .build()
            .unwrap();
        runtime.block_on(async {
            let stage = Stage::open(|b| b, |b| b.concurrency(1000)).await;
            stage.clock.advance(SECOND);
            let barrier = std::sync::Arc::new(tokio::sync::Barrier::new(100));
            let calls: Vec<_> = (0..100)
                .map(|_| {
                    let (guard, origin) = (stage.guard.clone(), stage.origin.clone());
                    let barrier = std::sync::Arc::clone(&barrier);
                    tokio::spawn(async move {
                        barrier.wait().await;
                        guard.call((), "k", |_| origin.hang::<u32>()).await
                    })
                })
                .collect();
            let mut refused = 0;
            let (probing, calls): (Vec<_>, Vec<_>) = {
                // All but the one that probes end by themselves.
                until("99 have ended", || {
                    calls.iter().filter(|call| call.is_finished()).count() == 99
                })
                .await;
                calls.into_iter().partition(|call| !call.is_finished())
            };
            for call in calls {
                refused += u32::from(call.await.unwrap().unwrap_err().reason == Some(Reason::BreakerOpen));
            }
            assert_eq!((refused, probing.len()), (99, 1), "round {round}");
            probing.iter().for_each(tokio::task::JoinHandle::abort);
            for call in probing {
                assert!(call.await.is_err());
            }
            assert_eq!(stage.origin.asked(), 1, "round {round}");
            assert_eq!(stage.guard.dependency().status().in_use, 0, "round {round}");
        });
    }
}

#[tokio::test]
async fn e10_e11_late_results_of_an_earlier_generation_change_nothing() {
    let stage = Stage::new(|b| b, |b| b);
    let mut late_success = stage.begin(Ok(1));
    let mut late_failure = stage.begin(Err(Fail::Down));
    drop(stage.call(Err(Fail::Down)).await);
    assert_eq!(stage.state(), State::Open);
    stage.origin.open();
    let Poll::Ready(Ok(answer)) = poll(late_success.as_mut()) else {
        panic!("its own caller still gets the answer")
    };
    assert_eq!((answer.rung, stage.state()), (Rung::Live, State::Open));
    stage.clock.advance(SECOND);
    assert!(stage.call(Ok(1)).await.is_ok());
    assert_eq!(stage.state(), State::Closed);
    assert!(poll(late_failure.as_mut()).is_ready());
    assert_eq!(stage.state(), State::Closed);
}

#[tokio::test]
async fn e06_a_probe_that_hangs_is_over_with_its_lease_and_its_late_success_closes_nothing() {
    let stage = Stage::open(|b| b.lease(3 * SECOND), |b| b).await;
    stage.clock.advance(SECOND);
    let mut hung = stage.begin(Ok(1));
    assert_eq!(
        (stage.state(), stage.next_probe_in()),
        (State::HalfOpen, Some(3 * SECOND))
    );
    stage.clock.advance(3 * SECOND - NS);
    assert_eq!(reason(&stage.call(Ok(1)).await), Some(Reason::BreakerOpen));
    assert_eq!(stage.state(), State::HalfOpen);
    stage.clock.advance(NS);
    assert_eq!(reason(&stage.call(Ok(1)).await), Some(Reason::BreakerOpen));
    assert_eq!(
        (stage.state(), stage.next_probe_in(), stage.origin.asked()),
        (State::Open, Some(2 * SECOND), 1)
    );
    stage.origin.open();
    assert!(poll(hung.as_mut()).is_ready());
    assert_eq!(stage.state(), State::Open);
    assert_eq!(stage.transitions().last().unwrap().2, Cause::LeaseExpired);
}

#[tokio::test]
async fn probes_in_the_background_of_a_dependency_that_hangs_do_not_pile_up() {
    // Neither timeout nor deadline: the lease of a second is all there is to end them.
    let stage = Stage::open(|b| b, |b| b.concurrency(10).ladder([default(|| 1)])).await;
    for _ in 0..50 {
        stage.clock.advance(4 * SECOND);
        let origin = stage.origin.clone();
        let answer = stage.guard.call_owned((), "k", |_| origin.hang()).await;
        assert_eq!(answer.unwrap().rung, Rung::Default);
        settle().await;
        assert!(stage.origin.inside() <= 1);
    }
    assert!(stage.origin.asked() > 20);
    stage.clock.advance(SECOND);
    settle().await;
    assert_eq!((stage.origin.inside(), stage.clock.sleepers()), (0, 0));
    assert_eq!(stage.guard.dependency().status().in_use, 0);
    assert_eq!(stage.state(), State::Open);
}

#[tokio::test]
async fn e21_a_callers_short_deadline_is_not_the_dependencys_failure_and_its_timeout_is() {
    for (deadline, timeout, blamed) in [
        (100 * MS, Some(5 * SECOND), false),
        (100 * MS, None, false),
        (SECOND, Some(SECOND - NS), true),
        (SECOND, Some(SECOND), true),
        (SECOND, Some(SECOND + NS), false),
    ] {
        let stage = Stage::new(
            |b| b,
            |b| {
                let b = b.deadline(deadline);
                match timeout {
                    Some(timeout) => b.timeout(timeout),
                    None => b,
                }
            },
        );
        let mut call = stage.begin(Ok(1));
        stage.clock.advance(deadline);
        let Poll::Ready(end) = poll(call.as_mut()) else {
            panic!("it waited past its deadline")
        };
        assert_eq!(reason(&end), Some(Reason::TimedOut));
        let expected = if blamed { State::Open } else { State::Closed };
        assert_eq!(stage.state(), expected, "{deadline:?} {timeout:?}");
        let timed_out = stage.guard.dependency().attempts(Class::Outage(Outage::TimedOut));
        assert_eq!(timed_out, 1);
    }
}

#[tokio::test]
async fn e21_a_client_that_was_handed_the_callers_deadline_is_not_blamed_for_keeping_it() {
    for (waits, blamed) in [(100 * MS - NS, true), (100 * MS, false)] {
        let stage = Stage::new(|b| b, |b| b.deadline(100 * MS));
        let mut call = Box::pin(stage.guard.call((), "k", |call| {
            // The client is told what remains; when it gives up before that, the dependency was too slow.
            assert_eq!(call.remaining(), 100 * MS);
            stage.origin.clone().ask(Err::<u32, _>(Fail::Late))
        }));
        assert!(poll(call.as_mut()).is_pending());
        stage.clock.advance(waits);
        stage.origin.open();
        let Poll::Ready(late) = poll(call.as_mut()) else {
            panic!("not ended")
        };
        assert_eq!(late.as_ref().unwrap_err().cause, Some(Fail::Late));
        assert_eq!(reason(&late), Some(Reason::TimedOut));
        assert_eq!(stage.state() == State::Open, blamed, "after {waits:?}");
    }
}

#[tokio::test]
async fn a_deadline_that_ends_a_probe_decides_nothing_and_frees_its_place() {
    let stage = Stage::open(|b| b, |b| b.timeout(5 * SECOND).deadline(100 * MS)).await;
    stage.clock.advance(SECOND);
    let mut probe = stage.begin(Ok(1));
    stage.clock.advance(100 * MS);
    let Poll::Ready(end) = poll(probe.as_mut()) else {
        panic!("it waited past its deadline")
    };
    assert_eq!(
        reason(&end),
        Some(Reason::TimedOut),
        "nothing proves that it failed"
    );
    assert_eq!(
        (stage.state(), stage.next_probe_in()),
        (State::HalfOpen, Some(Duration::ZERO))
    );
    assert!(stage.call(Ok(1)).await.is_ok());
    assert_eq!(stage.state(), State::Closed);
}

#[tokio::test]
async fn a_value_that_is_an_outage_opens_for_the_whole_period_from_its_end() {
    let stage = Stage::new(|b| b, |b| b.class_of(|_| Class::OUTAGE));
    let mut slow = stage.begin(Ok(503));
    stage.clock.advance(10 * SECOND);
    stage.origin.open();
    let Poll::Ready(Ok(answer)) = poll(slow.as_mut()) else {
        panic!("not answered")
    };
    assert_eq!((answer.value, answer.rung), (503, Rung::Live));
    assert_eq!(
        (stage.state(), stage.next_probe_in()),
        (State::Open, Some(SECOND))
    );
}

#[tokio::test]
async fn a_manual_breaker_waits_for_a_person() {
    let stage = Stage::open(BreakerBuilder::open_until_probed, |b| b).await;
    stage.clock.advance(Duration::from_secs(86_400));
    let refused = stage.call(Ok(1)).await.unwrap_err();
    assert_eq!(
        (refused.reason, refused.retry_after),
        (Some(Reason::BreakerOpen), None)
    );
    assert_eq!(
        reason(&stage.probe(Err(Fail::Down)).await),
        Some(Reason::ProbeFailed)
    );
    assert_eq!(stage.state(), State::Open);
    assert!(stage.probe(Ok(1)).await.is_ok());
    assert_eq!((stage.state(), stage.origin.asked()), (State::Closed, 2));
}

#[tokio::test]
async fn a_probe_by_hand_asks_in_every_state_but_never_beyond_the_places() {
    // Closed: an ordinary call.
    let stage = Stage::new(|b| b, |b| b);
    assert_eq!(stage.probe(Ok(1)).await.unwrap().rung, Rung::Live);
    // Open, long before anybody else may.
    drop(stage.call(Err(Fail::Down)).await);
    assert!(stage.probe(Ok(1)).await.is_ok());
    assert_eq!(stage.state(), State::Closed);
    // Half-open with the one place taken: refused, and the probe under way is not disturbed.
    drop(stage.call(Err(Fail::Down)).await);
    stage.clock.advance(SECOND);
    let mut probe = stage.begin(Ok(1));
    let asked = stage.origin.asked();
    assert_eq!(reason(&stage.probe(Ok(1)).await), Some(Reason::BreakerOpen));
    assert_eq!((stage.origin.asked(), stage.state()), (asked, State::HalfOpen));
    stage.origin.open();
    assert!(poll(probe.as_mut()).is_ready());
    assert_eq!(stage.state(), State::Closed);
}

#[tokio::test]
async fn a_probe_by_hand_after_a_lease_has_ended_tells_the_end_and_the_probe() {
    let stage = Stage::open(|b| b.lease(SECOND), |b| b).await;
    stage.clock.advance(SECOND);
    let _hung = stage.begin(Ok(1));
    assert_eq!(stage.state(), State::HalfOpen);
    stage.clock.advance(SECOND);
    drop(stage.transitions());
    let counted = |to| stage.guard.dependency().transitions(to);
    let before = [State::Open, State::HalfOpen, State::Closed].map(counted);
    assert!(stage.probe(Ok(1)).await.is_ok());
    assert_eq!(
        stage.transitions(),
        [
            (State::HalfOpen, State::Open, Cause::LeaseExpired),
            (State::Open, State::HalfOpen, Cause::Probing),
            (State::HalfOpen, State::Closed, Cause::Proven),
        ]
    );
    let after = [State::Open, State::HalfOpen, State::Closed].map(counted);
    assert_eq!(after, before.map(|count| count + 1), "events and counters agree");
    let dependency = stage.guard.dependency();
    assert_eq!(
        dependency.transitions_by(State::HalfOpen, State::Open, Cause::LeaseExpired),
        1
    );
    assert_eq!(
        dependency.transitions_by(State::HalfOpen, State::Open, Cause::ProbeFailed),
        0
    );
}

#[tokio::test]
async fn it_is_known_since_when_a_breaker_is_open_until_it_is_proven_well() {
    let stage = Stage::open(|b| b, |b| b).await;
    let status = || stage.guard.dependency().status();
    let since = status().open_since.unwrap();
    stage.clock.advance(SECOND);
    assert_eq!(
        status().open_since,
        Some(since),
        "an outage goes on, it does not begin anew"
    );
    assert!(stage.probe(Ok(1)).await.is_ok());
    assert_eq!(status().open_since, None);
}

#[tokio::test]
async fn a_probe_by_hand_asks_although_a_fresh_copy_is_at_hand() {
    let stage = Stage::open(|b| b, |b| b.fresh_for(60 * SECOND)).await;
    stage.guard.seed((), "k", 1, Some(wall(&stage.clock))).unwrap();
    assert_eq!(stage.call(Ok(2)).await.unwrap().rung, Rung::Fresh);
    let answer = stage.probe(Ok(2)).await.unwrap();
    assert_eq!((answer.rung, answer.value), (Rung::Live, 2));
    assert_eq!(stage.state(), State::Closed);
}

#[tokio::test]
async fn e07_a_probe_that_finds_no_permit_leaves_the_breaker_open_and_its_place_free() {
    let (clock, engine) = engine();
    let database = engine.resource("db", 1).unwrap();
    let guard = engine
        .read::<u32>("g")
        .breaker(|b| b.consecutive(1).open_for(SECOND, SECOND).jitter(0))
        .uses(&database)
        .classify(Fail::class)
        .build()
        .unwrap();
    let other = engine
        .read::<u32>("other")
        .uses(&database)
        .classify(Fail::class)
        .build()
        .unwrap();
    drop(guard.call((), "k", |_| async { Err(Fail::Down) }).await);
    clock.advance(SECOND);
    let mut holds_it = Box::pin(other.call((), "k", |_| Origin::default().hang::<u32>()));
    assert!(poll(holds_it.as_mut()).is_pending());
    let refused = guard.call((), "k", |_| async { Ok(1) }).await;
    assert_eq!(reason(&refused), Some(Reason::AtCapacity));
    assert_eq!(guard.dependency().status().state, Some(State::Open));
    drop(holds_it);
    assert!(guard.call((), "k", |_| async { Ok(1) }).await.is_ok());
    assert_eq!(guard.dependency().status().state, Some(State::Closed));
}

#[tokio::test]
async fn e08_several_probes_and_several_proofs_are_counted_as_declared() {
    let stage = Stage::open(|b| b.probes(2).close_after(3), |b| b).await;
    stage.clock.advance(SECOND);
    let mut first = stage.begin(Ok(1));
    let mut second = stage.begin(Ok(1));
    assert_eq!(reason(&stage.call(Ok(1)).await), Some(Reason::BreakerOpen));
    stage.origin.open();
    assert!(poll(first.as_mut()).is_ready() && poll(second.as_mut()).is_ready());
    assert_eq!(stage.state(), State::HalfOpen);
    assert!(stage.call(Ok(1)).await.is_ok());
    assert_eq!(stage.state(), State::Closed);
}

#[tokio::test]
async fn two_guards_that_ask_one_dependency_share_its_breaker_and_its_permits() {
    let (_, engine) = engine();
    let dependency = engine
        .dependency("catalog")
        .concurrency(1)
        .breaker(|b| b.consecutive(2))
        .build()
        .unwrap();
    let guard = |name| {
        engine
            .read::<u32>(name)
            .from(&dependency)
            .classify(Fail::class)
            .build()
            .unwrap()
    };
    let (products, prices) = (guard("products"), guard("prices"));
    let mut under_way = Box::pin(products.call((), "k", |_| Origin::default().hang::<u32>()));
    assert!(poll(under_way.as_mut()).is_pending());
    assert_eq!(
        reason(&prices.call((), "k", |_| async { Ok(1) }).await),
        Some(Reason::AtCapacity)
    );
    drop(under_way);
    for guard in [&products, &prices] {
        drop(guard.call((), "k", |_| async { Err(Fail::Down) }).await);
    }
    assert_eq!(dependency.status().state, Some(State::Open));
    for guard in [&products, &prices] {
        assert_eq!(
            reason(&guard.call((), "k", |_| async { Ok(1) }).await),
            Some(Reason::BreakerOpen)
        );
    }
    assert_eq!(dependency.attempts_total(), 3);
    dependency.reset("ana", "it is back");
    assert!(prices.call((), "k", |_| async { Ok(1) }).await.is_ok());
    assert_eq!(dependency.status().state, Some(State::Closed));
}

fn held(mode: HoldMode) -> Hold {
    Hold {
        mode,
        by: "ana".into(),
        why: "a test".into(),
        lasts: None,
    }
}

#[tokio::test]
async fn under_forced_open_nothing_is_sent_not_even_probes() {
    let stage = Stage::open(|b| b, |b| b.ladder([default(|| 1)])).await;
    stage.guard.hold(held(HoldMode::ForcedOpen)).unwrap();
    stage.clock.advance(Duration::from_secs(3600));
    let origin = stage.origin.clone();
    let owned = stage.guard.call_owned((), "k", |_| origin.ask_now(Ok(1))).await;
    for end in [stage.call(Ok(1)).await, stage.probe(Ok(1)).await, owned] {
        let answer = end.unwrap();
        assert_eq!((answer.rung, answer.reason), (Rung::Default, Some(Reason::Held)));
    }
    settle().await;
    assert_eq!((stage.origin.asked(), stage.state()), (0, State::Open));
}

#[tokio::test]
async fn under_forced_closed_everything_is_sent_and_the_breaker_only_observes() {
    let stage = Stage::new(|b| b.consecutive(2), |b| b.concurrency(1));
    stage.guard.hold(held(HoldMode::ForcedClosed)).unwrap();
    for _ in 0..5 {
        assert_eq!(
            reason(&stage.call(Err(Fail::Down)).await),
            Some(Reason::DependencyFailed)
        );
    }
    assert_eq!((stage.origin.asked(), stage.state()), (5, State::Open));
    let mut under_way = stage.begin(Ok(1));
    assert_eq!(
        reason(&stage.call(Ok(1)).await),
        Some(Reason::AtCapacity),
        "permits still hold"
    );
    stage.origin.open();
    assert!(poll(under_way.as_mut()).is_ready());
    assert_eq!(
        stage.state(),
        State::Open,
        "a success under a hold proves nothing"
    );
    stage.guard.release("ana");
    assert_eq!(reason(&stage.call(Ok(1)).await), Some(Reason::BreakerOpen));
    stage.clock.advance(SECOND);
    assert!(stage.call(Ok(1)).await.is_ok());
    assert_eq!(stage.state(), State::Closed);
}

#[tokio::test]
async fn e22_refusals_of_its_own_and_of_the_dependency_never_open_it() {
    let stage = Stage::new(|b| b, |b| b.concurrency(1));
    let _under_way = stage.begin(Ok(1));
    for _ in 0..10 {
        assert_eq!(
            reason(&stage.call(Err(Fail::Down)).await),
            Some(Reason::AtCapacity)
        );
    }
    drop(_under_way);
    for neutral in [Fail::No, Fail::Gone, Fail::Busy, Fail::Bug] {
        for _ in 0..10 {
            drop(stage.call(Err(neutral)).await);
        }
        assert_eq!(stage.state(), State::Closed, "{neutral:?}");
    }
}

#[tokio::test]
async fn e17_one_dependency_that_opens_leaves_the_others_as_they_are_and_a_person_can_reset_it() {
    let (_, engine) = engine();
    let guard = |name| {
        let builder = engine.read::<u32>(name).breaker(|b| b.consecutive(1));
        builder.classify(Fail::class).build().unwrap()
    };
    let (one, other) = (guard("one"), guard("other"));
    drop(one.call((), "k", |_| async { Err(Fail::Down) }).await);
    let state = |guard: &Guard| guard.dependency().status().state;
    assert_eq!(
        [state(&one), state(&other)],
        [Some(State::Open), Some(State::Closed)]
    );
    one.dependency().reset("ana", "a test");
    assert_eq!(state(&one), Some(State::Closed));
}
