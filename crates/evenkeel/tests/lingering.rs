//! What a timeout leaves behind: work that may go on, unless the dependency never got anything to work on.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use evenkeel::{Class, LimitRules, Permit, Reason};
use support::{Fail, MS, SECOND, engine, settle};

/// A guard whose calls time out; returns how many linger, and what the next call is told.
async fn left_behind(says: impl Fn(&Permit<'static>) + Send + 'static) -> (u32, Option<Reason>) {
    let (clock, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .timeout(SECOND)
        .learned_limit(LimitRules::DEFAULT)
        .abandoned(1)
        .classify(Fail::class)
        .build()
        .unwrap();
    let again = guard.clone();
    let call = tokio::spawn(async move {
        let work = move |_call, permit: Option<Permit<'static>>| async move {
            says(permit.as_ref().unwrap());
            let _permit = permit;
            std::future::pending::<Result<u32, Fail>>().await
        };
        again.call_work((), "k", None, work).await
    });
    settle().await;
    clock.advance(SECOND);
    let end = call.await.unwrap().unwrap_err();
    assert_eq!(end.reason, Some(Reason::TimedOut));
    assert_eq!(
        guard
            .dependency()
            .attempts(Class::Outage(evenkeel::Outage::TimedOut)),
        1
    );
    let lingering = guard.dependency().status().lingering;
    clock.advance(10 * MS);
    let next = guard.call((), "k", |_| async { Ok::<_, Fail>(1) }).await;
    (lingering, next.err().and_then(|refused| refused.reason))
}

#[tokio::test]
async fn e29_a_timeout_leaves_work_behind_only_where_the_request_was_sent() {
    let refused = Some(Reason::AtCapacity);
    assert_eq!(
        left_behind(|_| {}).await,
        (1, refused),
        "who says nothing has sent"
    );
    assert_eq!(left_behind(Permit::not_sent).await, (0, None));
    let both = |permit: &Permit<'static>| {
        permit.not_sent();
        permit.sent();
    };
    assert_eq!(left_behind(both).await, (1, refused));
}
