//! Bodies that flow, and how they end: in full, in a cut, or with a client who leaves.

use std::time::Duration;

use evenkeel::{Engine, ManualClock};
use evenkeel_gateway::proxy::Limits;

use crate::kit::{
    Answer, Bench, Client, NO_BREAKER, Origin, Reply, STALE, Then, contract, contract_with, until,
};

const DEPENDENCY: &str = "concurrency = 5\n\
     breaker = { consecutive = 3, open_for = \"1s\", open_for_max = \"1s\", jitter = \"0%\" }";

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this";

fn in_use(bench: &Bench) -> u32 {
    bench.gateway.app().dependency("d").unwrap().status().in_use
}

async fn calls(bench: &Bench, ending: &str, rung: &str) -> Option<u64> {
    let series =
        format!("evenkeel_calls_total{{route=\"r\",ending=\"{ending}\",rung=\"{rung}\",reason=\"none\"}}");
    bench.metric(&series).await
}

/// Returns the calls that were answered live, cut and abandoned.
async fn endings(bench: &Bench) -> [Option<u64>; 3] {
    [
        calls(bench, "answered", "live").await,
        calls(bench, "cut", "none").await,
        calls(bench, "abandoned", "none").await,
    ]
}

/// Returns the attempts that were answers, outages and cancelled.
async fn attempts(bench: &Bench) -> [Option<u64>; 3] {
    let mut counts = [None; 3];
    for (count, class) in counts.iter_mut().zip(["answer", "outage", "cancelled"]) {
        let series = format!("evenkeel_attempts_total{{dependency=\"d\",class=\"{class}\"}}");
        *count = bench.metric(&series).await;
    }
    counts
}

async fn is(bench: &Bench, state: &str) -> bool {
    let series = format!("evenkeel_breaker_state{{dependency=\"d\",state=\"{state}\"}}");
    bench.metric(&series).await == Some(1)
}

fn assert_cut(answer: &Answer) {
    assert_eq!((answer.status, answer.complete), (200, false));
    assert!(answer.text().starts_with("only"), "what had come is passed on");
}

#[tokio::test]
async fn an_upstream_that_cuts_every_body_opens_the_breaker_of_a_route_without_a_ladder() {
    let cuts = [
        ("short of its length", Reply::raw(HEAD, Then::Close)),
        (
            "no last chunk",
            Reply::raw(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nonly\r\n",
                Then::Close,
            ),
        ),
        ("reset", Reply::raw(HEAD, Then::Reset)),
        ("idle", Reply::raw(HEAD, Then::Hang)),
    ];
    for (name, cut) in cuts {
        let origin = Origin::always(cut).await;
        let limits = Limits {
            stream_idle: Duration::from_millis(50),
            ..Limits::default()
        };
        let contract = contract(origin.address, DEPENDENCY, "");
        let clock = ManualClock::new();
        let bench = Bench::start_with(&contract, Engine::new(clock.clone(), 7), Some(clock), limits).await;
        assert_eq!(endings(&bench).await, [Some(0); 3], "there from the start");
        for _ in 0..3 {
            assert!(is(&bench, "closed").await, "{name}");
            assert_cut(&bench.get("/r/1").await);
        }
        assert_eq!(endings(&bench).await, [Some(0), Some(3), Some(0)], "{name}");
        assert_eq!(attempts(&bench).await, [Some(0), Some(3), Some(0)], "{name}");
        assert_eq!(in_use(&bench), 0, "{name}");
        assert!(is(&bench, "open").await, "{name}");
        assert_eq!(bench.get("/r/1").await.status, 503, "{name}");
        assert_eq!(origin.hits(), 3, "{name}: nobody is asked");
    }
}

#[tokio::test]
async fn a_body_that_flows_is_counted_once_when_it_has_ended() {
    let origin = Origin::always(Reply::ok("whole")).await;
    let bench = Bench::start(&contract(origin.address, DEPENDENCY, "")).await;
    for reply in [
        Reply::ok("whole"),
        Reply::raw(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n",
            Then::KeepAlive,
        ),
        Reply::status(204),
        Reply::status(404).body("no"),
    ] {
        origin.now(reply);
        assert!(bench.get("/r/1").await.complete);
    }
    assert_eq!(endings(&bench).await, [Some(4), Some(0), Some(0)]);
    assert_eq!(attempts(&bench).await, [Some(3), Some(0), Some(0)]);

    origin.now(Reply::raw(HEAD, Then::Hang));
    let mut client = Client::connect(bench.address()).await;
    client.send("GET /r/1 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    until("the body flows", || in_use(&bench) == 1).await;
    assert_eq!(endings(&bench).await, [Some(4), Some(0), Some(0)], "not yet");
    drop(client);
    until("the client has left", || in_use(&bench) == 0).await;
    assert_eq!(endings(&bench).await, [Some(4), Some(0), Some(1)]);
    assert_eq!(attempts(&bench).await, [Some(3), Some(0), Some(1)]);
}

/// An error answer has its verdict with its head: that its body breaks off, too, is no second failure.
#[tokio::test]
async fn an_error_answer_that_is_cut_is_one_failure_and_ends_as_failed() {
    let error = "HTTP/1.1 503 X\r\ncontent-length: 100\r\n\r\nonly this";
    let origin = Origin::always(Reply::raw(error, Then::Close)).await;
    let bench = Bench::start(&contract(origin.address, DEPENDENCY, "")).await;
    for _ in 0..2 {
        let answer = bench.get("/r/1").await;
        assert_eq!((answer.status, answer.complete), (503, false));
    }
    assert!(is(&bench, "closed").await, "two failures, not four");
    assert_eq!(attempts(&bench).await, [Some(0), Some(2), Some(0)]);
    assert_eq!(endings(&bench).await, [Some(0); 3]);
    assert_eq!(in_use(&bench), 0);
}

#[tokio::test]
async fn a_probe_whose_body_is_cut_reopens_and_one_whose_body_comes_closes() {
    let origin = Origin::always(Reply::raw(HEAD, Then::Close)).await;
    let bench = Bench::with_manual_clock(&contract(origin.address, DEPENDENCY, "")).await;
    for _ in 0..3 {
        assert_cut(&bench.get("/r/1").await);
    }
    for _ in 0..2 {
        bench.advance(Duration::from_secs(1));
        assert_cut(&bench.get("/r/1").await);
        assert!(is(&bench, "open").await);
    }
    origin.now(Reply::ok("whole"));
    bench.advance(Duration::from_secs(1));
    assert_eq!(bench.get("/r/1").await.text(), "whole");
    assert!(is(&bench, "closed").await);
    assert_eq!(endings(&bench).await, [Some(1), Some(5), Some(0)]);
    assert_eq!(in_use(&bench), 0);
}

fn keeping() -> String {
    format!("{STALE}\nmax_body = \"64KiB\"")
}

/// A cut is no success, and only a success supersedes what is kept.
#[tokio::test]
async fn a_large_answer_that_is_cut_leaves_the_good_snapshot() {
    let part = "x".repeat(80_000);
    for (name, cut) in [
        ("announced", format!("content-length: 100000\r\n\r\n{part}")),
        (
            "outgrown",
            format!("transfer-encoding: chunked\r\n\r\n13880\r\n{part}\r\n"),
        ),
    ] {
        let origin = Origin::always(Reply::ok("good")).await;
        let bench = Bench::start(&contract(origin.address, NO_BREAKER, &keeping())).await;
        assert_eq!(bench.get("/r/1").await.text(), "good");
        origin.now(Reply::raw(format!("HTTP/1.1 200 OK\r\n{cut}"), Then::Close));
        let answer = bench.get("/r/1").await;
        assert_eq!((answer.status, answer.complete), (200, false), "{name}");
        assert_eq!(endings(&bench).await, [Some(1), Some(1), Some(0)], "{name}");
        origin.stop().await;
        let answer = bench.get("/r/1").await;
        assert_eq!(
            (answer.text().as_str(), answer.freshness()),
            ("good", "stale"),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_shortage_of_room_here_leaves_the_good_snapshot() {
    let chunk = "x".repeat(70_000);
    for (name, large) in [
        ("announced", Reply::ok(vec![b'x'; 70_000])),
        (
            "outgrown",
            Reply::raw(
                format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n11170\r\n{chunk}\r\n0\r\n\r\n"),
                Then::KeepAlive,
            ),
        ),
    ] {
        let origin = Origin::always(Reply::ok("good")).await;
        let contract = contract_with(origin.address, "buffers = \"64KiB\"", NO_BREAKER, STALE);
        let bench = Bench::start(&contract).await;
        assert_eq!(bench.get("/r/1").await.text(), "good");
        origin.now(large);
        let answer = bench.get("/r/1").await;
        assert_eq!((answer.body.len(), answer.complete), (70_000, true), "{name}");
        let series = "evenkeel_answers_not_kept_total{route=\"r\",why=\"buffers-full\"}";
        assert_eq!(bench.metric(series).await, Some(1), "{name}");
        origin.stop().await;
        let answer = bench.get("/r/1").await;
        assert_eq!(
            (answer.text().as_str(), answer.freshness()),
            ("good", "stale"),
            "{name}"
        );
    }
}

/// The client holds the answer already: a body that it does not need is not missing.
#[tokio::test]
async fn a_large_answer_that_the_client_holds_already_is_answered_and_not_abandoned() {
    let large = Reply::ok(vec![b'x'; 100_000]).header("etag", "\"a\"");
    let origin = Origin::always(large).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, &keeping())).await;
    let answer = bench.get_with("/r/1", &[("if-none-match", "\"a\"")]).await;
    assert_eq!(answer.status, 304);
    assert_eq!(endings(&bench).await, [Some(1), Some(0), Some(0)]);
}
