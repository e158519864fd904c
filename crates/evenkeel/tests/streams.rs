//! Work that outlives its result: when the attempt has its verdict, the call its ending, and the old snapshot goes.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;

use evenkeel::{
    BreakerBuilder, Class, Ending, Engine, Keep, Permit, Read, Reason, Row, Rung, State, Terms, Verdict,
    default, stale,
};
use parking_lot::Mutex;
use support::{End, Fail, MS, SECOND, engine, settle, until};

/// A result whose body flows: the permit is in it until somebody takes it out.
#[derive(Clone, Debug)]
struct Stream(Arc<Mutex<Option<Permit<'static>>>>);

impl Stream {
    fn permit(&self) -> Permit<'static> {
        self.0.lock().take().unwrap()
    }
}

type Guard = Read<Stream, Fail>;
type Ends = fn(Permit<'static>);

fn guard(engine: &Engine, breaker: impl FnOnce(BreakerBuilder) -> BreakerBuilder) -> Guard {
    engine
        .read::<Stream>("g")
        .concurrency(10)
        .breaker(breaker)
        .classify(Fail::class)
        .build()
        .unwrap()
}

fn flowing(permit: Option<Permit<'static>>) -> Stream {
    Stream(Arc::new(Mutex::new(permit)))
}

/// Makes a call whose head has come and whose body flows.
async fn head(guard: &Guard) -> Stream {
    let end: End<Stream> = guard
        .call_work((), "k", None, |_, permit| async { Ok(flowing(permit)) })
        .await;
    let answer = end.unwrap();
    assert_eq!(answer.rung, Rung::Live);
    answer.value
}

/// Makes a call that fails.
async fn fail(guard: &Guard) {
    let end: End<Stream> = guard
        .call_work((), "k", None, |_, _| async { Err(Fail::Down) })
        .await;
    assert!(end.is_err());
}

/// Returns what was counted: calls by their ending (answered live, cut, abandoned) and attempts by class (answer,
/// outage, cancelled).
fn told(guard: &Guard) -> [u64; 6] {
    let (counts, dependency) = (guard.counts(), guard.dependency());
    assert_eq!(dependency.status().in_use, 0, "every permit is back");
    [
        counts.total(Ending::Answered(Rung::Live)),
        counts.total(Ending::Cut),
        counts.total(Ending::Abandoned),
        dependency.attempts(Class::Answer),
        dependency.attempts(Class::OUTAGE),
        dependency.attempts(Class::Cancelled),
    ]
}

fn state(guard: &Guard) -> State {
    guard.dependency().status().state.unwrap()
}

#[tokio::test]
async fn nothing_is_counted_while_the_body_flows_and_an_answer_when_it_has_ended() {
    let (_, engine) = engine();
    let guard = guard(&engine, |b| b.consecutive(2));
    let body = head(&guard).await;
    assert_eq!(
        (guard.counts().calls(), guard.dependency().attempts_total()),
        (0, 0)
    );
    assert_eq!(guard.dependency().status().in_use, 1);
    drop(body.permit());
    assert_eq!(told(&guard), [1, 0, 0, 1, 0, 0]);
}

#[tokio::test]
async fn bodies_that_are_cut_open_the_breaker_however_good_their_heads() {
    let (_, engine) = engine();
    let guard = guard(&engine, |b| b.consecutive(3));
    for _ in 0..3 {
        assert_eq!(state(&guard), State::Closed);
        head(&guard).await.permit().cut();
    }
    assert_eq!(state(&guard), State::Open);
    assert_eq!(told(&guard), [0, 3, 0, 0, 3, 0]);
}

#[tokio::test]
async fn a_body_that_its_caller_leaves_says_nothing_about_the_dependency() {
    let (_, engine) = engine();
    let guard = guard(&engine, |b| b.consecutive(2));
    fail(&guard).await;
    head(&guard).await.permit().abandon();
    assert_eq!(state(&guard), State::Closed, "it is no failure");
    fail(&guard).await;
    assert_eq!(state(&guard), State::Open, "and no success");
    assert_eq!(told(&guard), [0, 0, 1, 0, 2, 1]);
}

#[tokio::test]
async fn work_that_ends_before_its_result_has_its_verdict_with_it() {
    let (_, engine) = engine();
    let guard = guard(&engine, |b| b.consecutive(1));
    let ends: [(Ends, [u64; 6]); 3] = [
        (drop, [1, 0, 0, 1, 0, 0]),
        (Permit::abandon, [1, 0, 1, 1, 0, 1]),
        (Permit::cut, [1, 1, 1, 1, 1, 1]),
    ];
    for (end, expected) in ends {
        let work = move |_, permit: Option<Permit<'static>>| async move {
            end(permit.unwrap());
            Ok(flowing(None))
        };
        let answer: End<Stream> = guard.call_work((), "k", None, work).await;
        assert!(answer.is_ok());
        assert_eq!(told(&guard), expected);
    }
    assert_eq!(state(&guard), State::Open);
}

#[tokio::test]
async fn a_result_that_is_a_failure_is_told_at_once_and_only_once() {
    let (_, engine) = engine();
    // As an error, whose body is passed on beside it.
    let own = guard(&engine, |b| b.consecutive(2));
    let beside = flowing(None);
    let handed = beside.clone();
    let work = |_, permit| async move {
        *handed.0.lock() = permit;
        Err(Fail::Down)
    };
    let end: End<Stream> = own.call_work((), "k", None, work).await;
    assert_eq!(end.unwrap_err().reason, Some(Reason::DependencyFailed));
    assert_eq!(own.dependency().attempts(Class::OUTAGE), 1);
    beside.permit().cut();
    assert_eq!(told(&own), [0, 0, 0, 0, 1, 0]);
    assert_eq!((state(&own), own.counts().calls()), (State::Closed, 1));

    // As a value whose class is one.
    let failure = Row {
        breaker: Verdict::Failure,
        lower_rung: false,
    };
    let own = engine
        .read::<Stream>("g")
        .breaker(|b| b.consecutive(2))
        .row(Class::Refusal, failure)
        .class_of(|_| Class::Refusal)
        .classify(Fail::class)
        .build()
        .unwrap();
    let body = head(&own).await;
    assert_eq!(own.dependency().attempts(Class::Refusal), 1);
    body.permit().cut();
    assert_eq!(own.dependency().attempts_total(), 1);
    assert_eq!(state(&own), State::Closed, "one failure, not two");
    assert_eq!(
        own.counts().total(Ending::Cut),
        1,
        "the call was cut all the same"
    );
}

#[tokio::test]
async fn a_cut_that_comes_after_the_breaker_has_changed_is_counted_and_decides_nothing() {
    let (clock, engine) = engine();
    let guard = guard(&engine, |b| b.consecutive(1).open_for(SECOND, SECOND).jitter(0));
    let early = head(&guard).await;
    fail(&guard).await;
    clock.advance(SECOND);
    drop(head(&guard).await.permit());
    assert_eq!(state(&guard), State::Closed);
    early.permit().cut();
    assert_eq!(state(&guard), State::Closed);
    assert_eq!(told(&guard), [1, 1, 0, 1, 2, 0]);
}

#[tokio::test]
async fn a_probe_is_judged_by_its_body_until_its_lease_ends_and_then_by_its_head() {
    let (clock, engine) = engine();
    let rules = |b: BreakerBuilder| b.consecutive(1).open_for(SECOND, SECOND).jitter(0).lease(SECOND);
    let half_open = async |guard: &Guard| {
        fail(guard).await;
        clock.advance(SECOND);
        let body = head(guard).await;
        assert_eq!(state(guard), State::HalfOpen, "the head alone proves nothing");
        body
    };
    let cut = guard(&engine, rules);
    half_open(&cut).await.permit().cut();
    assert_eq!((state(&cut), told(&cut)), (State::Open, [0, 1, 0, 0, 2, 0]));

    let well = guard(&engine, rules);
    drop(half_open(&well).await.permit());
    assert_eq!((state(&well), told(&well)), (State::Closed, [1, 0, 0, 1, 1, 0]));

    let left = guard(&engine, rules);
    half_open(&left).await.permit().abandon();
    assert_eq!(state(&left), State::HalfOpen);
    drop(head(&left).await.permit());
    assert_eq!(state(&left), State::Closed, "its place was free for another");

    let long = guard(&engine, rules);
    let body = half_open(&long).await;
    clock.advance(SECOND);
    drop(head(&long).await.permit());
    assert_eq!(state(&long), State::Closed, "it holds nobody up for longer");
    body.permit().cut();
    assert_eq!((state(&long), told(&long)), (State::Closed, [1, 1, 0, 1, 2, 0]));
}

#[tokio::test]
async fn a_probe_in_the_background_is_judged_by_its_head_because_nobody_follows_its_body() {
    let (clock, engine) = engine();
    let ends: [Ends; 2] = [Permit::abandon, std::mem::drop];
    for end in ends {
        for at_once in [true, false] {
            let guard = engine
                .read::<Stream>("g")
                .breaker(|b| b.consecutive(1).open_for(SECOND, SECOND).jitter(0))
                .ladder([default(|| flowing(None))])
                .classify(Fail::class)
                .build()
                .unwrap();
            let call = guard.call_work((), "k", None, |_, _| async { Err(Fail::Down) });
            assert_eq!(call.await.unwrap().rung, Rung::Default);
            clock.advance(SECOND);
            let beside = flowing(None);
            let handed = beside.clone();
            let work = move |_, permit: Option<Permit<'static>>| async move {
                if at_once {
                    end(permit.unwrap());
                } else {
                    *handed.0.lock() = permit;
                }
                Ok(flowing(None))
            };
            let answer: End<Stream> = guard.call_work((), "k", None, work).await;
            assert_eq!(answer.unwrap().rung, Rung::Default);
            until("the probe closes", || state(&guard) == State::Closed).await;
            if !at_once {
                end(beside.permit());
            }
            let dependency = guard.dependency();
            assert_eq!(
                (dependency.attempts(Class::Answer), dependency.attempts_total()),
                (1, 2)
            );
            assert_eq!(guard.counts().calls(), 2);
        }
    }
}

#[tokio::test]
async fn a_caller_who_leaves_before_the_head_is_abandoned_once_however_the_work_ends() {
    let (_, engine) = engine();
    let guard = guard(&engine, |b| b.consecutive(1));
    let beside = flowing(None);
    let handed = beside.clone();
    let mut call = Box::pin(guard.call_work((), "k", None, |_, permit| async move {
        *handed.0.lock() = permit;
        std::future::pending().await
    }));
    assert!(support::poll(call.as_mut()).is_pending());
    drop(call);
    assert_eq!(guard.dependency().status().in_use, 1, "the permit is the work's");
    beside.permit().cut();
    assert_eq!(told(&guard), [0, 0, 1, 0, 0, 1]);
    assert_eq!(state(&guard), State::Closed);
}

#[tokio::test]
async fn of_those_who_wait_for_one_flight_the_one_who_gets_the_stream_is_told_how_it_ends() {
    let (_, engine) = engine();
    let guard = engine
        .read::<Stream>("g")
        .classify(Fail::class)
        .coalesce()
        .share_if(|_| false)
        .build()
        .unwrap();
    let call = || {
        let guard = guard.clone();
        tokio::spawn(async move {
            let work = |_, permit| async {
                tokio::task::yield_now().await;
                Ok(flowing(permit))
            };
            let end: End<Stream> = guard.call_work((), "k", None, work).await;
            end.unwrap().value
        })
    };
    let (leader, follower) = (call(), call());
    let (leader, follower) = (leader.await.unwrap(), follower.await.unwrap());
    settle().await;
    assert_eq!((guard.counts().calls(), guard.counts().joined()), (0, 1));
    leader.permit().cut();
    drop(follower.permit());
    assert_eq!(told(&guard), [1, 1, 0, 1, 1, 0]);
}

#[tokio::test]
async fn a_result_that_supersedes_the_snapshot_takes_it_away_only_when_all_of_it_has_come() {
    let (clock, engine) = engine();
    let guard = engine
        .read::<Stream>("g")
        .ladder([stale(SECOND)])
        .terms(|stream| Terms {
            keep: if stream.0.lock().is_some() {
                Keep::Remove
            } else {
                Keep::Yes
            },
            ..Terms::default()
        })
        .classify(Fail::class)
        .build()
        .unwrap();
    let keep = async || {
        let kept: End<Stream> = guard.call_owned((), "k", |_| async { Ok(flowing(None)) }).await;
        assert!(kept.is_ok());
        clock.advance(MS);
    };
    for end in [Permit::cut as Ends, Permit::abandon] {
        keep().await;
        let body = head(&guard).await;
        assert_eq!(guard.memory().count(), 1, "the body flows");
        end(body.permit());
        assert_eq!(guard.memory().count(), 1, "it did not come to its end");
    }
    drop(head(&guard).await.permit());
    assert_eq!(guard.memory().count(), 0);
    // What was observed since the stream began stays.
    let body = head(&guard).await;
    clock.advance(MS);
    keep().await;
    drop(body.permit());
    assert_eq!(guard.memory().count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_result_and_end_of_the_work_meet_each_is_told_exactly_once() {
    const CALLS: u64 = 3000;
    let (_, engine) = engine();
    let guard = guard(&engine, |b| b.failure_ratio(1_000_000, SECOND, 1_000_000));
    for number in 0..CALLS {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let ending = tokio::spawn(async move {
            let permit: Permit<'static> = receiver.await.unwrap();
            match number % 3 {
                0 => drop(permit),
                1 => permit.cut(),
                _ => permit.abandon(),
            }
        });
        let work = move |_, permit: Option<Permit<'static>>| async move {
            sender.send(permit.unwrap()).unwrap();
            Ok(flowing(None))
        };
        let end: End<Stream> = guard.call_work((), "k", None, work).await;
        assert!(end.is_ok());
        ending.await.unwrap();
    }
    assert_eq!(told(&guard), [CALLS / 3; 6]);
}
