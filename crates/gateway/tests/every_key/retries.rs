//! The keys of retries are flipped, and something else happens.

use std::time::Duration;

use evenkeel_gateway::config;

use crate::kit::{Bench, NO_BREAKER, Origin, Reply, contract, in_turn, until};

/// An origin that fails so often before it answers.
async fn fails(times: usize, failure: Reply) -> Origin {
    let mut replies = vec![failure; times];
    replies.push(Reply::ok("x"));
    Origin::start(in_turn(replies)).await
}

/// Returns the status of one request to an origin that fails so often.
async fn after(times: usize, rules: &str) -> u16 {
    let origin = fails(times, Reply::status(500)).await;
    let text = contract(origin.address, &format!("{NO_BREAKER}\n{rules}"), "");
    Bench::start(&text).await.get("/r/1").await.status
}

pub(crate) async fn retry() {
    assert_eq!(after(1, "").await, 500);
    assert_eq!(after(1, "retry = {}").await, 200);
}

pub(crate) async fn attempts() {
    assert_eq!(after(2, "retry = { attempts = 2 }").await, 500);
    assert_eq!(after(2, "retry = { attempts = 3 }").await, 200);
}

pub(crate) async fn budget() {
    assert_eq!(after(1, "retry = { floor = 0, budget = \"50%\" }").await, 500);
    assert_eq!(after(1, "retry = { floor = 0, budget = \"100%\" }").await, 200);
}

pub(crate) async fn floor() {
    assert_eq!(after(1, "retry = { budget = \"0%\", floor = 1 }").await, 200);
    let none = contract(
        "127.0.0.1:1".parse().unwrap(),
        "retry = { budget = \"0%\", floor = 0 }",
        "",
    );
    assert!(config::parse("c", &none).is_err());
}

/// Asks an origin that fails once, moves the clock on by these spans in turn, and returns how often it was asked
/// before the last of them.
async fn asked_before_the_last(failure: Reply, rules: &str, spans: [u64; 2]) -> usize {
    let origin = fails(1, failure).await;
    let text = contract(
        origin.address,
        &format!("{NO_BREAKER}\nretry = {{ {rules} }}"),
        "",
    );
    let bench = std::sync::Arc::new(Bench::with_manual_clock(&text).await);
    let call = tokio::spawn({
        let bench = std::sync::Arc::clone(&bench);
        async move { bench.get("/r/1").await.status }
    });
    until("the first attempt is counted", || {
        bench.gateway.app().dependency("d").unwrap().attempts_total() == 1
    })
    .await;
    bench.advance(Duration::from_millis(spans[0]));
    // Whoever is to go on by now has nothing to wait for any more.
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        if call.is_finished() {
            break;
        }
    }
    let asked = origin.hits();
    bench.advance(Duration::from_millis(spans[1]));
    assert_eq!(call.await.unwrap(), 200);
    asked
}

pub(crate) async fn pause() {
    let failure = Reply::status(500);
    let long = "pause = \"1s\", pause_max = \"1s\"";
    let short = "pause = \"100ms\", pause_max = \"100ms\"";
    assert_eq!(asked_before_the_last(failure.clone(), long, [900, 101]).await, 1);
    assert_eq!(asked_before_the_last(failure, short, [101, 1]).await, 2);
}

pub(crate) async fn pause_max() {
    let rules = |max: &str| {
        let text = contract(
            "127.0.0.1:1".parse().unwrap(),
            &format!("retry = {{ pause_max = \"{max}\" }}"),
            "",
        );
        let loaded = config::parse("c", &text).unwrap();
        loaded.contract.dependencies[0].retry.unwrap().pause_max
    };
    assert_eq!(rules("7s"), Duration::from_secs(7));
    assert_eq!(rules("50ms"), Duration::from_millis(50));
}

pub(crate) async fn retry_after_max() {
    let failure = Reply::status(503).header("retry-after", "100");
    let origin = fails(1, failure.clone()).await;
    let text = contract(origin.address, &format!("{NO_BREAKER}\nretry = {{}}"), "");
    let refused = Bench::start(&text).await.get("/r/1").await;
    assert_eq!(
        (refused.status, origin.hits()),
        (503, 1),
        "it would not end in time"
    );
    let capped = "retry_after_max = \"1s\"";
    assert_eq!(asked_before_the_last(failure, capped, [900, 200]).await, 1);
}
