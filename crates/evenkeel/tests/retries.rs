//! Retries: only of repeatable work, only after outages, within attempts, budget and time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use evenkeel::{
    Advice, Class, Dependency, Ending, Engine, Hold, HoldMode, ManualClock, Mono, Permit, Read, Reason,
    RetryCounts, RetryRules, Rung, State, stale,
};
use parking_lot::Mutex;
use support::{End, Fail, MS, Origin, SECOND, engine, poll, settle, until};

/// Rules under which nothing but what a test is about stands in the way.
const FREELY: RetryRules = RetryRules {
    attempts: 3,
    budget_ppm: 1_000_000,
    floor: 1000,
    ..RetryRules::DEFAULT
};

fn guard(engine: &Engine, rules: RetryRules) -> Read<u32, Fail> {
    engine
        .read::<u32>("g")
        .timeout(SECOND * 2)
        .deadline(SECOND * 5)
        .concurrency(10)
        .retry(rules)
        .classify(Fail::class)
        .build()
        .unwrap()
}

/// What a dependency says, one attempt after the other, and when it was asked.
#[derive(Clone, Debug)]
struct Script(Arc<Mutex<Lines>>, ManualClock);

#[derive(Debug)]
struct Lines {
    /// What is still to be said, the last one first.
    says: Vec<Result<u32, Fail>>,
    asked: Vec<Mono>,
}

impl Script {
    fn new(clock: &ManualClock, says: &[Result<u32, Fail>]) -> Self {
        let says = says.iter().rev().copied().collect();
        let lines = Lines {
            says,
            asked: Vec::new(),
        };
        Self(Arc::new(Mutex::new(lines)), clock.clone())
    }

    fn ask(&self) -> Result<u32, Fail> {
        let mut lines = self.0.lock();
        lines.asked.push(self.1.now().mono);
        lines.says.pop().unwrap_or(Err(Fail::Down))
    }

    fn asked(&self) -> usize {
        self.0.lock().asked.len()
    }

    fn gaps(&self) -> Vec<Duration> {
        let lines = self.0.lock();
        lines.asked.windows(2).map(|two| two[1].since(two[0])).collect()
    }
}

/// Moves the clock on by a millisecond at a time until the future is ready, and returns what it came to.
async fn run<T: Send + 'static>(
    clock: &ManualClock,
    future: impl Future<Output = T> + Send + 'static,
) -> (T, Duration) {
    let began = clock.now().mono;
    let task = tokio::spawn(future);
    for _ in 0..120_000 {
        settle().await;
        if task.is_finished() {
            return (task.await.unwrap(), clock.now().mono.since(began));
        }
        clock.advance(MS);
    }
    panic!("it never ends");
}

async fn ask(clock: &ManualClock, guard: &Read<u32, Fail>, script: &Script) -> (End<u32>, Duration) {
    let (guard, script) = (guard.clone(), script.clone());
    run(clock, async move {
        guard
            .call_repeatable((), "k", move |_| std::future::ready(script.ask()))
            .await
    })
    .await
}

#[tokio::test]
async fn an_outage_is_followed_by_another_attempt_and_a_refusal_or_a_bug_is_not() {
    for (first, attempts, rung) in [
        (Fail::Down, 2, Some(Rung::Live)),
        (Fail::Late, 2, Some(Rung::Live)),
        (Fail::Busy, 2, Some(Rung::Live)),
        (Fail::No, 1, None),
        (Fail::Gone, 1, None),
        (Fail::Bug, 1, None),
    ] {
        let (clock, engine) = engine();
        let guard = guard(&engine, FREELY);
        let script = Script::new(&clock, &[Err(first), Ok(7)]);
        let (end, _) = ask(&clock, &guard, &script).await;
        assert_eq!(script.asked(), attempts, "{first:?}");
        assert_eq!(end.ok().map(|answer| answer.rung), rung, "{first:?}");
        assert_eq!(guard.counts().calls(), 1, "one call, one ending");
        assert_eq!(guard.dependency().attempts_total(), attempts as u64);
    }
}

#[tokio::test]
async fn case_030_work_that_runs_once_is_not_retried_and_its_error_comes_out_unchanged() {
    let (clock, engine) = engine();
    let guard = guard(&engine, FREELY);
    let script = Script::new(&clock, &[Err(Fail::Down), Ok(7)]);
    let once = guard
        .call((), "k", |_| std::future::ready(script.ask()))
        .await
        .unwrap_err();
    assert_eq!((once.ending, once.cause), (Ending::Refused, Some(Fail::Down)));
    let script = Script::new(&clock, &[Err(Fail::Down), Ok(7)]);
    let work = {
        let script = script.clone();
        move |_| std::future::ready(script.ask())
    };
    let once = guard.call_owned((), "k", work).await.unwrap_err();
    assert_eq!((once.cause, script.asked()), (Some(Fail::Down), 1));
}

#[tokio::test]
async fn case_028_a_hang_that_ends_by_the_timeout_leaves_room_for_another_attempt() {
    let (clock, engine) = engine();
    let guard = guard(&engine, FREELY);
    let asked = Arc::new(AtomicU64::new(0));
    let (end, took) = run(&clock, {
        let clock = clock.clone();
        async move {
            guard
                .call_repeatable((), "k", move |_| {
                    let first = asked.fetch_add(1, Ordering::Relaxed) == 0;
                    let clock = clock.clone();
                    async move {
                        clock.sleep(if first { SECOND * 60 } else { MS * 100 }).await;
                        Ok(7)
                    }
                })
                .await
        }
    })
    .await;
    assert_eq!(end.unwrap().rung, Rung::Live);
    assert!(
        (SECOND * 2 + MS * 100..=SECOND * 2 + MS * 160).contains(&took),
        "{took:?}"
    );
}

#[tokio::test]
async fn case_031_attempts_and_deadline_hold_both_whatever_the_pauses_are() {
    let (clock, engine) = engine();
    let slow = RetryRules {
        pause: SECOND * 3,
        pause_max: SECOND * 3,
        ..FREELY
    };
    for rules in [FREELY, slow] {
        let guard = guard(&engine, rules);
        for _ in 0..20 {
            let script = Script::new(&clock, &[]);
            let (end, took) = ask(&clock, &guard, &script).await;
            assert_eq!(end.unwrap_err().reason, Some(Reason::DependencyFailed));
            assert!(script.asked() <= 3 && took <= SECOND * 5 + MS, "{took:?}");
        }
    }
}

#[tokio::test]
async fn case_027_the_deadline_ends_a_call_whatever_attempts_are_left() {
    let (clock, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .timeout(SECOND * 5)
        .deadline(SECOND * 4)
        .retry(FREELY)
        .classify(Fail::class)
        .build()
        .unwrap();
    let origin = Origin::default();
    let (end, took) = run(&clock, {
        let origin = origin.clone();
        async move {
            guard
                .call_repeatable((), "k", move |_| origin.clone().hang::<u32>())
                .await
        }
    })
    .await;
    assert_eq!(end.unwrap_err().reason, Some(Reason::TimedOut));
    assert_eq!((origin.asked(), took), (1, SECOND * 4));
}

#[tokio::test]
async fn case_033_after_a_429_no_pause_is_shorter_than_the_base_whatever_it_says() {
    let rules = RetryRules {
        pause: SECOND,
        pause_max: SECOND,
        ..FREELY
    };
    for said in [Advice::Whenever, Advice::After(Duration::ZERO), Advice::After(MS)] {
        let (clock, engine) = engine();
        let guard = engine
            .read::<u32>("g")
            .deadline(SECOND * 30)
            .retry(rules)
            .classify(Fail::class)
            .advice(move |_| said)
            .build()
            .unwrap();
        let script = Script::new(&clock, &[Err(Fail::Busy); 9]);
        let (end, _) = ask(&clock, &guard, &script).await;
        assert_eq!(end.unwrap_err().cause, Some(Fail::Busy));
        assert_eq!(script.asked(), 3);
        assert!(
            script.gaps().iter().all(|gap| *gap >= SECOND),
            "{:?}",
            script.gaps()
        );
        assert!(guard.dependency().hushed_until().is_some(), "refreshes wait too");
    }
}

#[tokio::test]
async fn g34_a_wait_that_the_dependency_asks_for_is_kept_or_the_call_ends_now() {
    for (said, attempts, most) in [(SECOND, 2, SECOND + MS * 60), (SECOND * 5, 1, MS)] {
        let (clock, engine) = engine();
        let guard = engine
            .read::<u32>("g")
            .deadline(SECOND * 5)
            .retry(FREELY)
            .classify(Fail::class)
            .advice(move |_| Advice::After(said))
            .build()
            .unwrap();
        let script = Script::new(&clock, &[Err(Fail::Busy), Ok(7)]);
        let (end, took) = ask(&clock, &guard, &script).await;
        assert_eq!(script.asked(), attempts);
        assert_eq!(end.is_ok(), attempts == 2);
        assert!(took <= most, "{took:?}");
        assert!(script.gaps().iter().all(|gap| *gap >= said));
    }
}

/// The other half of case 033: what nobody waits for leaves a busy dependency alone as well.
#[tokio::test]
async fn case_033_after_a_429_no_copy_is_refreshed_before_its_time() {
    let (clock, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .fresh_for(SECOND)
        .stale_while_revalidate(SECOND * 60)
        .ladder([stale(SECOND * 120)])
        .classify(Fail::class)
        .advice(|_| Advice::After(SECOND * 10))
        .build()
        .unwrap();
    let asked = Arc::new(AtomicU64::new(0));
    let call = |key: &'static str, says| {
        let (guard, asked) = (guard.clone(), Arc::clone(&asked));
        async move {
            let work = move |_| {
                asked.fetch_add(1, Ordering::Relaxed);
                std::future::ready(says)
            };
            guard.call_owned((), key, work).await
        }
    };
    call("kept", Ok(1)).await.unwrap();
    clock.advance(SECOND * 2);
    call("other", Err(Fail::Busy)).await.unwrap_err();
    let left_alone = call("kept", Ok(2)).await.unwrap();
    assert_eq!((left_alone.value, left_alone.reason), (1, Some(Reason::CoolDown)));
    settle().await;
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    clock.advance(SECOND * 10);
    let refreshed = call("kept", Ok(2)).await.unwrap();
    assert_eq!(refreshed.reason, Some(Reason::Revalidating));
    until("it is refreshed", || asked.load(Ordering::Relaxed) == 3).await;
}

#[tokio::test]
async fn r05_what_a_nearer_layer_has_retried_is_left_alone() {
    let (clock, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .retry(FREELY)
        .classify(Fail::class)
        .advice(|_| Advice::Never)
        .build()
        .unwrap();
    let script = Script::new(&clock, &[Err(Fail::Down), Ok(7)]);
    let (end, _) = ask(&clock, &guard, &script).await;
    assert_eq!((end.unwrap_err().cause, script.asked()), (Some(Fail::Down), 1));
}

#[tokio::test]
async fn a_busy_value_is_retried_and_heeded_like_a_busy_error() {
    let (clock, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .retry(FREELY)
        .classify(Fail::class)
        .class_of(|value| Class::of_status(u16::try_from(*value).unwrap()))
        .advice_of(|_| Advice::After(SECOND * 2))
        .build()
        .unwrap();
    let script = Script::new(&clock, &[Ok(429), Ok(200)]);
    let (end, _) = ask(&clock, &guard, &script).await;
    assert_eq!(end.unwrap().value, 200);
    assert!(script.gaps()[0] >= SECOND * 2);
}

#[tokio::test]
async fn r02_under_total_failure_retries_stay_within_their_share_and_the_floor() {
    let (clock, engine) = engine();
    let guard = guard(&engine, RetryRules::DEFAULT);
    let script = Script::new(&clock, &[]);
    let began = clock.now().mono;
    for _ in 0..1000 {
        ask(&clock, &guard, &script).await.0.unwrap_err();
    }
    let seconds = usize::try_from(clock.now().mono.since(began).as_secs()).unwrap() + 2;
    let RetryCounts { made, denied } = guard.dependency().retries();
    assert_eq!(script.asked(), 1000 + usize::try_from(made).unwrap());
    assert!(
        made >= 90 && made <= 100 + 3 * seconds as u64,
        "{made} in {seconds} s"
    );
    assert_eq!(made + denied, 1000, "who was denied one asked once");
}

#[tokio::test]
async fn e23_a_breaker_counts_every_attempt_and_its_opening_ends_them() {
    let (clock, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .retry(RetryRules {
            attempts: 10,
            ..FREELY
        })
        .breaker(|breaker| breaker.consecutive(4))
        .classify(Fail::class)
        .build()
        .unwrap();
    let script = Script::new(&clock, &[]);
    let (end, _) = ask(&clock, &guard, &script).await;
    let end = end.unwrap_err();
    assert_eq!(
        (script.asked(), guard.dependency().status().state),
        (4, Some(State::Open))
    );
    assert_eq!(
        (end.reason, end.cause),
        (Some(Reason::DependencyFailed), Some(Fail::Down))
    );
}

#[tokio::test]
async fn a_retry_that_finds_no_permit_leaves_the_result_of_the_attempt_before() {
    let (clock, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .concurrency(1)
        .retry(FREELY)
        .classify(Fail::class)
        .ladder([stale(SECOND * 60)])
        .build()
        .unwrap();
    guard.call((), "k", |_| async { Ok(1) }).await.unwrap();
    let script = Script::new(&clock, &[Err(Fail::Down), Ok(7)]);
    let call = tokio::spawn({
        let (guard, script) = (guard.clone(), script.clone());
        async move {
            guard
                .call_repeatable((), "k", move |_| std::future::ready(script.ask()))
                .await
        }
    });
    until("the first attempt has failed", || script.asked() == 1).await;
    assert_eq!(guard.dependency().status().in_use, 0, "a pause holds nothing");
    let origin = Origin::default();
    let mut other = pin!(guard.call((), "other", |_| origin.clone().hang()));
    assert!(poll(other.as_mut()).is_pending());
    clock.advance(SECOND);
    let answer = call.await.unwrap().unwrap();
    assert_eq!(
        (answer.rung, answer.reason),
        (Rung::Stale, Some(Reason::DependencyFailed))
    );
    assert_eq!(answer.cause, Some(Fail::Down));
    assert_eq!((script.asked(), guard.dependency().retries().made), (1, 0));
}

#[tokio::test]
async fn who_leaves_in_a_pause_leaves_nothing_behind_and_has_not_used_up_the_budget() {
    let (clock, engine) = engine();
    let rules = RetryRules {
        budget_ppm: 0,
        floor: 1,
        pause: SECOND,
        ..FREELY
    };
    let guard = guard(&engine, rules);
    for _ in 0..5 {
        let script = Script::new(&clock, &[]);
        let work = {
            let script = script.clone();
            move |_| std::future::ready(script.ask())
        };
        let mut call = Box::pin(guard.call_repeatable((), "k", work));
        assert!(poll(call.as_mut()).is_pending());
        assert_eq!(script.asked(), 1);
        drop(call);
    }
    assert_eq!(guard.counts().get(Ending::Abandoned, None), 5);
    assert_eq!(guard.dependency().retries(), RetryCounts::default());
    assert_eq!((guard.dependency().status().in_use, clock.sleepers()), (0, 0));
}

#[tokio::test]
async fn a_hold_that_comes_in_a_pause_keeps_the_next_attempt_from_being_made() {
    let (clock, engine) = engine();
    let guard = guard(&engine, FREELY);
    let script = Script::new(&clock, &[Err(Fail::Down), Ok(7)]);
    let call = tokio::spawn({
        let (guard, script) = (guard.clone(), script.clone());
        async move {
            guard
                .call_repeatable((), "k", move |_| std::future::ready(script.ask()))
                .await
        }
    });
    until("the first attempt has failed", || script.asked() == 1).await;
    let hold = Hold {
        mode: HoldMode::ForcedOff,
        by: "on-call".to_owned(),
        why: "migration".to_owned(),
        lasts: None,
    };
    guard.hold(hold).unwrap();
    clock.advance(SECOND);
    assert_eq!(call.await.unwrap().unwrap_err().cause, Some(Fail::Down));
    assert_eq!(script.asked(), 1);
}

#[tokio::test]
async fn a_flight_retries_once_for_all_who_share_it() {
    let (clock, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .retry(FREELY)
        .deadline(SECOND * 5)
        .classify(Fail::class)
        .coalesce()
        .build()
        .unwrap();
    let script = Script::new(&clock, &[Err(Fail::Down), Ok(7)]);
    let calls: Vec<_> = (0..5)
        .map(|_| {
            let (guard, script) = (guard.clone(), script.clone());
            tokio::spawn(async move {
                guard
                    .call_repeatable((), "k", move |_| std::future::ready(script.ask()))
                    .await
            })
        })
        .collect();
    settle().await;
    clock.advance(SECOND);
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().value, 7);
    }
    assert_eq!(script.asked(), 2);
    assert_eq!(guard.flights(), (0, 0));
}

#[tokio::test]
async fn a_result_whose_work_goes_on_is_not_followed_by_another_attempt() {
    type Streamed = Arc<Mutex<Option<Permit<'static>>>>;
    let (clock, engine) = engine();
    let guard = engine
        .read::<Streamed>("g")
        .retry(FREELY)
        .classify(Fail::class)
        .class_of(|_| Class::Busy)
        .build()
        .unwrap();
    let asked = Arc::new(AtomicU64::new(0));
    let (end, _) = run(&clock, {
        let (guard, asked) = (guard.clone(), Arc::clone(&asked));
        async move {
            let work = move |_, permit| {
                asked.fetch_add(1, Ordering::Relaxed);
                std::future::ready(Ok(Arc::new(Mutex::new(permit))))
            };
            guard.call_repeatable_work((), "k", None, work).await
        }
    })
    .await;
    assert!(end.unwrap().lock().is_some(), "the stream is the caller's");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn rules_that_make_no_sense_are_refused_with_their_place() {
    let (_, engine) = engine();
    let built = engine
        .dependency("d")
        .retry(RetryRules {
            attempts: 1,
            ..FREELY
        })
        .build();
    let problems = built
        .map(|built: Dependency| built.name().to_owned())
        .unwrap_err();
    assert_eq!(
        problems.to_string(),
        "retry.attempts: 1; allowed: 2 to 10; raise it to 2"
    );
}
