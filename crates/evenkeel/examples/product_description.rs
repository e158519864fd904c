//! A public product description: at most sixty seconds old, two permits, and a refusal when both are taken.
//!
//! Run it: `cargo run -p evenkeel --example product_description`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{
    cell::Cell,
    fmt,
    time::{Duration, UNIX_EPOCH},
};

use evenkeel::{
    Answer, Class, Ending, Engine, ManualClock, Outage, Read, Reason, Rung, Skipped, Unanswered, WhenBusy,
    stale,
};

#[derive(Clone, Debug, PartialEq)]
enum ApiError {
    Unreachable,
    /// The answer was not what it should be: a bug to be seen, not an outage to be hidden.
    Schema(&'static str),
}

impl ApiError {
    fn class(&self) -> Class {
        match self {
            Self::Unreachable => Class::Outage(Outage::Failed),
            Self::Schema(_) => Class::Fault,
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for ApiError {}

type Description = &'static str;
type End = Result<Answer<Description, ApiError>, Unanswered<ApiError>>;

const SECOND: Duration = Duration::from_secs(1);

fn guard(when_busy: WhenBusy) -> Result<(ManualClock, Read<Description, ApiError>), evenkeel::Problems> {
    let clock = ManualClock::new();
    let guard = Engine::new(clock.clone(), 1)
        .read::<Description>("product")
        .concurrency(2)
        .classify(ApiError::class)
        .ladder([stale(60 * SECOND)])
        .when_busy(when_busy)
        .build()?;
    Ok((clock, guard))
}

/// Seeds a snapshot of this age (negative: from the future), lets the dependency fail, and returns the end.
async fn failing_with(age_nanos: i64) -> Result<End, Box<dyn std::error::Error>> {
    let (clock, guard) = guard(WhenBusy::Refuse)?;
    let observed = u64::try_from(clock.now().wall.as_nanos() - age_nanos)?;
    guard.seed(
        (),
        "42",
        "a good chair",
        Some(UNIX_EPOCH + Duration::from_nanos(observed)),
    )?;
    Ok(guard
        .call((), "42", |_| async { Err(ApiError::Unreachable) })
        .await)
}

const fn seconds(seconds: i64) -> i64 {
    seconds * 1_000_000_000
}

/// Plays every line and asserts it.
pub(crate) async fn run() -> Result<(), Box<dyn std::error::Error>> {
    // Live.
    let (_, product) = guard(WhenBusy::Refuse)?;
    let answer = product.call((), "42", |_| async { Ok("a fine chair") }).await?;
    assert_eq!(
        (answer.value, answer.rung, answer.age),
        ("a fine chair", Rung::Live, Some(Duration::ZERO))
    );
    println!("success                      live, age 0");

    // A failure with a snapshot at 30 s, and at exactly 60 s: it is served.
    for age in [30, 60] {
        let answer = failing_with(seconds(age)).await??;
        assert_eq!((answer.value, answer.rung), ("a good chair", Rung::Stale));
        assert_eq!(answer.age, Some(Duration::from_secs(age.unsigned_abs())));
        assert_eq!(answer.reason, Some(Reason::DependencyFailed));
        println!("failure, snapshot at {age} s    stale, age {age}");
    }

    // Sixty seconds and a nanosecond, a second in the future, none: refused, each with its word.
    for (age, why) in [
        (seconds(60) + 1, Skipped::TooOld),
        (seconds(-1), Skipped::FutureDated),
    ] {
        let refused = failing_with(age).await?.expect_err("nothing may be served");
        assert_eq!(
            (refused.ending, refused.reason),
            (Ending::Refused, Some(Reason::DependencyFailed))
        );
        assert_eq!(refused.skipped.why(Rung::Stale), Some(why));
        assert_eq!(refused.cause, Some(ApiError::Unreachable));
        println!("failure, {age:>14} ns   {refused}");
    }
    let refused = product
        .call((), "nothing kept", |_| async { Err(ApiError::Unreachable) })
        .await
        .expect_err("nothing may be served");
    assert_eq!(
        (refused.ending, refused.skipped.why(Rung::Stale)),
        (Ending::Refused, Some(Skipped::NoSnapshot))
    );
    println!("failure, nothing kept        {refused}");

    // A schema error propagates unchanged, although a snapshot exists.
    let failed = product
        .call((), "42", |_| async { Err(ApiError::Schema("price is missing")) })
        .await
        .expect_err("a fault is shown");
    assert_eq!(
        (failed.ending, failed.reason),
        (Ending::Failed, Some(Reason::Fault))
    );
    assert_eq!(failed.cause, Some(ApiError::Schema("price is missing")));
    println!("schema error                 {failed}");

    // Two nested calls hold both permits. The third is refused, and its function never runs.
    let third = three_nested(&product).await;
    let refused = third.expect_err("both permits are taken, and the contract says refuse");
    assert_eq!(
        (refused.ending, refused.reason),
        (Ending::Refused, Some(Reason::AtCapacity))
    );
    println!("third of two, refuse         {refused}");

    // The same with the ladder: it gets the snapshot.
    let (_, product) = guard(WhenBusy::Ladder)?;
    product.call((), "42", |_| async { Ok("a fine chair") }).await?;
    let answer = three_nested(&product).await?;
    assert_eq!((answer.value, answer.rung), ("a fine chair", Rung::Stale));
    assert_eq!(answer.reason, Some(Reason::AtCapacity));
    println!("third of two, ladder         stale, reason at-capacity");
    Ok(())
}

/// Calls within a call within a call, so that both permits are in use at the third; then sees that it recovers.
async fn three_nested(product: &Read<Description, ApiError>) -> End {
    let third_ran = Cell::new(false);
    let third = Cell::new(None);
    let outer = product
        .call((), "1", |_| async {
            let inner = product
                .call((), "2", |_| async {
                    assert_eq!(product.dependency().status().in_use, 2);
                    let end = product
                        .call((), "42", |_| async {
                            third_ran.set(true);
                            Ok("must not run")
                        })
                        .await;
                    third.set(Some(end));
                    Ok("second")
                })
                .await;
            assert_eq!(inner.map(|answer| answer.rung).ok(), Some(Rung::Live));
            Ok("first")
        })
        .await;
    assert_eq!(outer.map(|answer| answer.rung).ok(), Some(Rung::Live));
    assert!(
        !third_ran.get(),
        "what is not admitted never reaches the dependency"
    );

    assert_eq!(product.dependency().status().in_use, 0);
    let recovered = product.call((), "3", |_| async { Ok("again") }).await;
    assert_eq!(recovered.map(|answer| answer.rung).ok(), Some(Rung::Live));
    third.take().expect("the third call has ended")
}

#[allow(dead_code, reason = "the tests include this file and call `run`")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    run().await
}
