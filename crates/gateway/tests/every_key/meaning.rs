//! The keys that say what answers mean are flipped, and something else happens.

use evenkeel::State;
use evenkeel_gateway::config;

use crate::kit::{Bench, NO_BREAKER, Origin, Reply, STALE, contract};

/// Returns the status of a request whose copy is there, when the dependency answers so.
async fn told(reply: Reply, dependency: &str) -> u16 {
    let origin = Origin::always(Reply::ok("kept")).await;
    let bench = Bench::start(&contract(
        origin.address,
        &format!("{NO_BREAKER}\n{dependency}"),
        STALE,
    ))
    .await;
    bench.get("/r/1").await;
    origin.now(reply);
    bench.get("/r/1").await.status
}

pub(crate) async fn classify() {
    assert_eq!(told(Reply::status(408), "").await, 408);
    assert_eq!(
        told(Reply::status(408), "classify = { 408 = \"outage\" }").await,
        200
    );
    assert_eq!(
        told(Reply::status(408), "classify = { 408 = \"fault\" }").await,
        500
    );
}

pub(crate) async fn ladder() {
    assert_eq!(
        told(Reply::status(429), "classes = { busy = { ladder = true } }").await,
        200
    );
    assert_eq!(
        told(Reply::status(429), "classes = { busy = { ladder = false } }").await,
        429
    );
}

pub(crate) async fn outage() {
    assert_eq!(told(Reply::status(503), "").await, 200);
    assert_eq!(
        told(Reply::status(503), "classes = { outage = { ladder = false } }").await,
        503
    );
}

/// Tells whether five such answers open the breaker.
async fn opens(status: u16, class: &str, verdict: &str) -> bool {
    let origin = Origin::always(Reply::status(status)).await;
    let rules = format!("classes = {{ {class} = {{ breaker = \"{verdict}\" }} }}");
    let bench = Bench::start(&contract(origin.address, &rules, "")).await;
    for _ in 0..6 {
        bench.get("/r/1").await;
    }
    bench
        .gateway
        .app()
        .dependency("d")
        .unwrap()
        .transitions(State::Open)
        > 0
}

pub(crate) async fn breaker() {
    assert!(opens(503, "outage", "failure").await);
    assert!(!opens(503, "outage", "neutral").await);
}

pub(crate) async fn refusal() {
    assert!(opens(400, "refusal", "failure").await);
    assert!(!opens(400, "refusal", "neutral").await);
}

pub(crate) async fn gone() {
    assert!(opens(404, "gone", "failure").await);
    assert!(!opens(404, "gone", "success").await);
}

pub(crate) async fn busy() {
    assert!(opens(429, "busy", "failure").await);
    assert!(!opens(429, "busy", "neutral").await);
}

/// A real answer is never hidden: the key is there to say so, and takes nothing else.
pub(crate) async fn no_ladder() {
    for class in ["refusal", "gone"] {
        let text = |ladder: bool| {
            let rules = format!("classes = {{ {class} = {{ ladder = {ladder} }} }}");
            contract("127.0.0.1:1".parse().unwrap(), &rules, "")
        };
        assert!(config::parse("c", &text(false)).is_ok(), "{class}");
        assert!(config::parse("c", &text(true)).is_err(), "{class}");
    }
}
