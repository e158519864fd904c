//! Breaker, probes and what callers are told meanwhile.

use std::time::Duration;

use crate::kit::{Bench, Origin, Reply, STALE, contract, until};

const TRIPS_AT_TWO: &str =
    "breaker = { consecutive = 2, open_for = \"1s\", open_for_max = \"1s\", jitter = \"0%\" }";

async fn state(bench: &Bench, state: &str) -> bool {
    let series = format!("evenkeel_breaker_state{{dependency=\"d\",state=\"{state}\"}}");
    bench.metric(&series).await == Some(1)
}

#[tokio::test]
async fn an_open_breaker_asks_nobody_and_says_when_to_come_back() {
    let origin = Origin::always(Reply::status(503).body("down")).await;
    let bench = Bench::with_manual_clock(&contract(origin.address, TRIPS_AT_TWO, "")).await;
    for _ in 0..2 {
        let answer = bench.get("/r/1").await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (503, "down"),
            "passed on as it was"
        );
        assert_eq!(answer.header("proxy-status"), None);
    }
    let hits = origin.hits();
    bench.advance(Duration::from_millis(100));
    let answer = bench.get("/r/1").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(
        answer.header("proxy-status"),
        Some("evenkeel; error=destination_unavailable")
    );
    assert!(answer.text().contains("/problems/breaker-open"));
    assert!(answer.text().ends_with("}\n"), "a line of its own");
    assert_eq!(origin.hits(), hits, "h03: the origin was not asked");
    assert!(state(&bench, "open").await);
    let text = bench.metrics().await;
    let next: u64 = text
        .lines()
        .find_map(|line| {
            line.strip_prefix("evenkeel_breaker_next_probe_timestamp_seconds{dependency=\"d\"} ")
        })
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(next, 1_000_000_001, "the manual clock began at 1 000 000 000");
}

#[tokio::test]
async fn a_stale_answer_without_an_attempt_is_a_hit_with_a_reason() {
    let origin = Origin::always(Reply::ok("kept").header("cache-control", "max-age=0")).await;
    let bench = Bench::with_manual_clock(&contract(origin.address, TRIPS_AT_TWO, STALE)).await;
    bench.get("/r/1").await;
    origin.stop().await;
    bench.get("/r/1").await;
    bench.get("/r/1").await;
    bench.advance(Duration::from_millis(900));
    let answer = bench.get("/r/1").await;
    assert_eq!(answer.freshness(), "stale");
    assert_eq!(
        answer.header("cache-status"),
        Some("evenkeel; hit; ttl=0; detail=breaker-open")
    );
    assert_eq!(
        answer.header("degraded"),
        Some("r;rung=stale;age=0;observed=@1000000000;reason=breaker-open")
    );
}

/// Design §5: where a rung can answer, nobody waits for the probe.
#[tokio::test]
async fn the_probe_runs_behind_a_stale_answer_and_its_success_closes_the_breaker() {
    let origin = Origin::always(Reply::ok("old")).await;
    let bench = Bench::with_manual_clock(&contract(origin.address, TRIPS_AT_TWO, STALE)).await;
    bench.get("/r/1").await;
    origin.now(Reply::status(500));
    bench.get("/r/1").await;
    bench.get("/r/1").await;
    assert!(state(&bench, "open").await);
    origin.now(Reply::ok("new"));
    bench.advance(Duration::from_secs(1));
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.text().as_str(), answer.freshness()), ("old", "stale"));
    let closed =
        || bench.gateway.app().dependency("d").unwrap().status().state == Some(evenkeel::State::Closed);
    until("the probe has closed the breaker", closed).await;
    assert_eq!(bench.get("/r/1").await.text(), "new");
    assert_eq!(
        bench
            .metric("evenkeel_breaker_transitions_total{dependency=\"d\",from=\"half-open\",to=\"closed\",cause=\"proven\"}")
            .await,
        Some(1)
    );
}

#[tokio::test]
async fn a_failed_probe_without_a_rung_is_told_with_the_next_instant() {
    let origin = Origin::always(Reply::ok("x")).await;
    let bench = Bench::with_manual_clock(&contract(origin.address, TRIPS_AT_TWO, "")).await;
    origin.stop().await;
    bench.get("/r/1").await;
    bench.get("/r/1").await;
    bench.advance(Duration::from_secs(1));
    let answer = bench.get("/r/1").await;
    assert_eq!(answer.status, 503);
    assert!(
        answer.text().contains("\"reason\":\"probe-failed\""),
        "{}",
        answer.text()
    );
    assert!(answer.text().contains("/problems/probe-failed"), "it was sent");
    assert_eq!(
        answer.header("proxy-status"),
        Some("evenkeel; error=connection_refused")
    );
    assert_eq!(
        answer.header("retry-after"),
        Some("1"),
        "the open period, not the default"
    );
}

#[tokio::test]
async fn a_probe_that_ran_out_of_time_is_told_as_that() {
    let origin = Origin::always(Reply::status(500)).await;
    let dependency = format!("timeout = \"100ms\"\n{}", TRIPS_AT_TWO.replace("1s", "100ms"));
    let bench = Bench::start(&contract(origin.address, &dependency, "")).await;
    bench.get("/r/1").await;
    bench.get("/r/1").await;
    origin.now(Reply::hang());
    let due = || bench.gateway.app().dependency("d").unwrap().status().next_probe;
    until("the probe is due", || {
        due().is_some_and(|at| at <= bench.gateway.app().engine().now().mono)
    })
    .await;
    let answer = bench.get("/r/1").await;
    assert_eq!(answer.status, 503);
    assert!(
        answer.text().contains("/problems/probe-failed"),
        "{}",
        answer.text()
    );
    assert_eq!(
        answer.header("proxy-status"),
        Some("evenkeel; error=http_response_timeout")
    );
}

/// Rule X4: refusals by the dependency are answers and never hidden.
#[tokio::test]
async fn x4_only_four_statuses_are_outages() {
    let origin = Origin::always(Reply::ok("kept")).await;
    let bench = Bench::start(&contract(origin.address, "breaker = \"off\"", STALE)).await;
    bench.get("/r/1").await;
    for status in [400, 401, 403, 409, 422, 429, 501, 505, 507] {
        origin.now(
            Reply::status(status)
                .body("real")
                .header("x-data-freshness", "fresh"),
        );
        let answer = bench.get("/r/1").await;
        assert_eq!((answer.status, answer.text().as_str()), (status, "real"));
        assert_eq!(
            answer.header("x-data-freshness"),
            None,
            "{status}: no data of ours"
        );
    }
    for status in [500, 502, 503, 504] {
        origin.now(Reply::status(status).body("broken"));
        let answer = bench.get("/r/1").await;
        assert_eq!(
            (answer.text().as_str(), answer.freshness()),
            ("kept", "stale"),
            "{status}"
        );
        let hidden = format!("evenkeel; received-status={status}");
        assert_eq!(answer.header("proxy-status"), Some(hidden.as_str()), "ps3");
    }
}

/// G35: a stand-in is built from a clean response.
#[tokio::test]
async fn g35_a_default_carries_nothing_of_the_answer_it_stands_in_for() {
    let route = "ladder = [ { stale = \"60s\" }, { default = { status = 203, content_type = \"text/plain\", body = \"none\" } } ]";
    let origin = Origin::always(
        Reply::status(503)
            .header("x-debug", "stack")
            .header("set-cookie", "a=1"),
    )
    .await;
    let bench = Bench::start(&contract(origin.address, "breaker = \"off\"", route)).await;
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.status, answer.text().as_str()), (203, "none"));
    assert_eq!(answer.freshness(), "default");
    assert_eq!(answer.header("content-type"), Some("text/plain"));
    assert_eq!(
        answer.header("degraded"),
        Some("r;rung=default;reason=error-answer")
    );
    assert_eq!(answer.header("cache-status"), None, "cs6");
    assert_eq!(
        answer.header("cache-control"),
        Some("no-store"),
        "nobody downstream keeps a stand-in for longer than it stands in"
    );
    for field in ["x-debug", "set-cookie", "age", "via"] {
        assert_eq!(answer.header(field), None, "{field}");
    }
}
