//! Two hundred requests: the dependency serves fifty and then fails for ever.
//!
//! Unguarded, a quarter of the requests are answered. Guarded by the last good answer, at most five seconds old,
//! all are, and each says what it is. The number of stale answers is the incident's signal: alert on it.
//!
//! The well-known sample of this experiment stops serving at exactly five seconds. Here the limit itself is
//! still served, and one nanosecond more is not.
//!
//! Run it: `cargo run -p evenkeel --example two_hundred_requests`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{cell::Cell, time::Duration};

use evenkeel::{Class, Ending, Engine, ManualClock, Outage, Reason, Rung, Skipped, default, stale};

/// The dependency: counts its calls, serves fifty, then fails.
#[derive(Default)]
struct Dependency {
    calls: Cell<u32>,
}

#[derive(Debug, PartialEq)]
struct Down;

impl Dependency {
    fn ask(&self) -> Result<String, Down> {
        self.calls.set(self.calls.get() + 1);
        if self.calls.get() <= 50 {
            Ok(format!("price list {}", self.calls.get()))
        } else {
            Err(Down)
        }
    }
}

/// Runs the experiment and asserts every figure that it prints.
pub(crate) async fn run() -> Result<(), Box<dyn std::error::Error>> {
    // Hard: whatever the dependency says.
    let dependency = Dependency::default();
    let answered = (0..200).filter(|_| dependency.ask().is_ok()).count();
    println!(
        "hard      {answered} of 200 answered (25 %), {} errors",
        200 - answered
    );
    assert_eq!((answered, dependency.calls.get()), (50, 200));

    // Graceful: the same dependency behind a guard without a breaker.
    let clock = ManualClock::new();
    let engine = Engine::new(clock.clone(), 1);
    let prices = engine
        .read::<String>("prices")
        .classify(|_: &Down| Class::Outage(Outage::Failed))
        .ladder([
            stale(Duration::from_secs(5)),
            default(|| "no prices today".to_owned()),
        ])
        .build()?;
    let dependency = Dependency::default();
    let (mut live, mut stale_answers) = (0, 0);
    for request in 1..=200 {
        let answer = prices
            .call((), "all", |_| async { dependency.ask() })
            .await
            .map_err(|e| e.to_string())?;
        match answer.rung {
            Rung::Live => {
                live += 1;
                assert_eq!((answer.age, answer.reason), (Some(Duration::ZERO), None));
                assert_eq!(answer.value, format!("price list {request}"));
            }
            Rung::Stale => {
                stale_answers += 1;
                assert_eq!(answer.value, "price list 50");
                assert_eq!(answer.age, Some(Duration::from_millis(20) * (request - 50)));
                assert_eq!(
                    (answer.reason, answer.cause),
                    (Some(Reason::DependencyFailed), Some(Down))
                );
            }
            rung @ (Rung::Fresh | Rung::Alternate | Rung::Default) => {
                return Err(format!("request {request} got {rung:?}").into());
            }
        }
        clock.advance(Duration::from_millis(20));
    }
    println!("graceful  200 of 200 answered: {live} live, {stale_answers} stale, each labelled, 0 errors");
    assert_eq!((live, stale_answers, dependency.calls.get()), (50, 150, 200));

    // The metrics tell the same story.
    let counts = prices.counts();
    assert_eq!(counts.get(Ending::Answered(Rung::Live), None), 50);
    assert_eq!(
        counts.get(Ending::Answered(Rung::Stale), Some(Reason::DependencyFailed)),
        150
    );
    assert_eq!(counts.calls(), 200);
    println!("metrics   answered{{rung=\"stale\",reason=\"dependency-failed\"}} 150");

    // Request 50 was made at 980 ms and it is 4000 ms now. Exactly five seconds after it, its answer is still
    // served; a nanosecond later it is not.
    clock.advance(Duration::from_millis(980 + 5_000 - 4_000));
    let last = prices
        .call((), "all", |_| async { dependency.ask() })
        .await
        .map_err(|e| e.to_string())?;
    assert_eq!((last.rung, last.age), (Rung::Stale, Some(Duration::from_secs(5))));
    clock.advance(Duration::from_nanos(1));
    let after = prices
        .call((), "all", |_| async { dependency.ask() })
        .await
        .map_err(|e| e.to_string())?;
    assert_eq!(
        (after.rung, after.age, after.value.as_str()),
        (Rung::Default, None, "no prices today")
    );
    assert_eq!(after.skipped.why(Rung::Stale), Some(Skipped::TooOld));
    assert_eq!(prices.counts().total(Ending::Answered(Rung::Default)), 1);
    println!("age 5 s   stale; 1 ns more: default, labelled default (skipped stale: too-old)");
    Ok(())
}

#[allow(dead_code, reason = "the tests include this file and call `run`")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    run().await
}
