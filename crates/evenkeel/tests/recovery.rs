//! Ramp and learned limit through the library: the same rules as in virtual time, behind the real guards.

use std::time::Duration;

use evenkeel::{
    Class, Dependency, Ending, Engine, LimitRules, ManualClock, Outage, Read, Reason, State, Unanswered,
};

const MS: Duration = Duration::from_millis(1);

fn guard() -> (ManualClock, Dependency, Read<u32, ()>) {
    let clock = ManualClock::new();
    let engine = Engine::new(clock.clone(), 1);
    let dependency = engine
        .dependency("stock")
        .timeout(MS * 1000)
        .breaker(|breaker| breaker.consecutive(1).open_for(MS * 100, MS * 100).jitter(0))
        .ramp([50, 100])
        .learned_limit(LimitRules::DEFAULT)
        .build()
        .expect("a sound contract");
    let guard = engine
        .read::<u32>("stock")
        .from(&dependency)
        .classify(|()| Class::Outage(Outage::Failed))
        .build()
        .expect("a sound contract");
    (clock, dependency, guard)
}

async fn ask(guard: &Read<u32, ()>, answer: Result<u32, ()>) -> Result<u32, Option<Reason>> {
    let end = guard.call((), b"", async |_| answer).await;
    end.map(|answer| answer.value)
        .map_err(|Unanswered { ending, reason, .. }| {
            assert!(ending == Ending::Refused || ending == Ending::Failed);
            reason
        })
}

#[tokio::test]
async fn after_closing_half_of_the_calls_are_let_in_and_then_all() {
    let (clock, dependency, guard) = guard();
    assert_eq!(ask(&guard, Ok(1)).await, Ok(1));
    assert_eq!(ask(&guard, Err(())).await, Err(Some(Reason::DependencyFailed)));
    clock.advance(MS * 100);
    assert_eq!(ask(&guard, Ok(2)).await, Ok(2), "the probe closes");
    let status = dependency.status();
    assert_eq!(status.state, Some(State::Closed));
    assert_eq!(status.ramp.map(|stage| stage.share_ppm), Some(500_000));
    let mut refused = 0;
    for _ in 0..10 {
        refused += u32::from(ask(&guard, Ok(3)).await == Err(Some(Reason::Ramping)));
    }
    assert_eq!(refused, 5);
    clock.advance(MS * 100);
    for _ in 0..10 {
        assert_eq!(ask(&guard, Ok(4)).await, Ok(4));
    }
    let status = dependency.status();
    assert_eq!((status.ramp, status.in_use), (None, 0));
    assert!(
        status.learned_limit.is_some(),
        "what was borne is the limit after an outage"
    );
}

#[tokio::test]
async fn an_attempt_that_ran_into_its_timeout_lingers_for_one_timeout_more() {
    let (clock, dependency, guard) = guard();
    let waiting = tokio::spawn({
        let guard = guard.clone();
        async move {
            guard
                .call((), b"", async |_| std::future::pending().await)
                .await
                .is_err()
        }
    });
    while dependency.status().in_use == 0 || clock.sleepers() == 0 {
        tokio::task::yield_now().await;
    }
    clock.advance(MS * 1000);
    assert!(waiting.await.expect("it ends"));
    let status = dependency.status();
    assert_eq!(
        (status.in_use, status.lingering, status.state),
        (0, 1, Some(State::Open))
    );
    clock.advance(MS * 1250);
    assert_eq!(dependency.status().lingering, 0);
}
