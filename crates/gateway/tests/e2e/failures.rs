//! What a client gets when the dependency cannot answer.

use std::time::Duration;

use crate::kit::{Bench, NO_BREAKER, Origin, Reply, STALE, Then, contract};

#[tokio::test]
async fn a_live_answer_passes_through_with_its_labels() {
    let origin = Origin::always(Reply::ok("hello").header("etag", "\"1\"")).await;
    let bench = Bench::start(&contract(origin.address, "", STALE)).await;
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "hello"));
    assert_eq!(answer.freshness(), "fresh");
    assert_eq!(
        answer.header("cache-status"),
        Some("evenkeel; fwd=bypass; stored")
    );
    assert_eq!(answer.header("via"), Some("1.1 evenkeel"));
    assert_eq!(answer.header("degraded"), None);
    assert_eq!(answer.header("proxy-status"), None);
}

/// Case 004: refusal, reset, a cut head and silence all count as errors.
#[tokio::test]
async fn case_004_every_kind_of_connection_failure_gives_the_stored_answer_and_its_reason() {
    let contract = |origin| contract(origin, "timeout = \"300ms\"\nbreaker = \"off\"", STALE);
    let good = || {
        Reply::ok("kept")
            .header("cache-control", "max-age=1, stale-if-error=60")
            .header("etag", "\"1\"")
    };
    let failures = [
        (
            "reset",
            Reply::raw("", Then::Reset),
            "dependency-failed",
            "connection_terminated",
        ),
        (
            "cut head",
            Reply::raw("HTTP/1.1 200 OK\r\ncontent-le", Then::Close),
            "dependency-failed",
            "connection_terminated",
        ),
        (
            "no http",
            Reply::raw("SSH-2.0-x\r\n\r\n", Then::Close),
            "dependency-failed",
            "http_protocol_error",
        ),
        (
            "another protocol",
            Reply::raw(
                "HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nx",
                Then::Hang,
            ),
            "dependency-failed",
            "http_protocol_error",
        ),
        ("hang", Reply::hang(), "timed-out", "http_response_timeout"),
    ];
    for (name, failure, reason, error) in failures {
        let origin = Origin::always(good()).await;
        let bench = Bench::start(&contract(origin.address)).await;
        assert_eq!(bench.get("/r/1").await.freshness(), "fresh");
        origin.now(failure);
        let answer = bench.get("/r/1").await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "kept"), "{name}");
        assert_eq!(answer.freshness(), "stale", "{name}");
        assert_eq!(
            answer.header("proxy-status"),
            Some(format!("evenkeel; error={error}").as_str()),
            "{name}"
        );
        let degraded = answer.header("degraded").unwrap();
        assert!(degraded.starts_with("r;rung=stale;age="), "{name}: {degraded}");
        assert!(
            degraded.ends_with(&format!(";reason={reason}")),
            "{name}: {degraded}"
        );
    }
    let origin = Origin::always(good()).await;
    let bench = Bench::start(&contract(origin.address)).await;
    assert_eq!(bench.get("/r/1").await.freshness(), "fresh");
    origin.stop().await;
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.status, answer.freshness()), (200, "stale"));
    assert_eq!(
        answer.header("proxy-status"),
        Some("evenkeel; error=connection_refused")
    );
    let status = answer.header("cache-status").unwrap();
    assert!(
        status.starts_with("evenkeel; fwd=") && status.ends_with("detail=dependency-failed"),
        "{status}"
    );
}

#[tokio::test]
async fn without_a_ladder_the_status_follows_from_the_first_cause() {
    let origin = Origin::always(Reply::hang()).await;
    let bench = Bench::start(&contract(
        origin.address,
        "timeout = \"100ms\"\nbreaker = \"off\"",
        "",
    ))
    .await;
    let answer = bench.get("/r/1").await;
    assert_eq!(answer.status, 504);
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    assert!(
        answer.text().contains("\"reason\":\"timed-out\""),
        "{}",
        answer.text()
    );
    assert_eq!(answer.header("x-data-freshness"), None);
    assert_eq!(answer.header("cache-status"), None);
    origin.stop().await;
    let answer = bench.get("/r/1").await;
    assert_eq!(answer.status, 502);
    assert!(!answer.text().contains("127.0.0.1"), "{}", answer.text());
}

/// Case 002: the error window is not used up by the first failure, and ends where the origin says.
#[tokio::test]
async fn case_002_every_error_in_the_window_gets_the_stale_copy_and_then_the_error_itself() {
    let origin =
        Origin::always(Reply::ok("kept").header("cache-control", "max-age=5, stale-if-error=60")).await;
    let contract = contract(origin.address, NO_BREAKER, "ladder = [ { stale = \"1h\" } ]");
    let bench = Bench::with_manual_clock(&contract).await;
    assert_eq!(bench.get("/r/1").await.freshness(), "fresh");
    origin.now(Reply::status(502).body("broken"));
    let mut passed = 0;
    for at in [6, 8, 12, 30, 60, 65] {
        bench.advance(Duration::from_secs(at - passed));
        passed = at;
        let answer = bench.get("/r/1").await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, "kept"),
            "at {at} s"
        );
        assert_eq!(answer.header("age"), Some(at.to_string().as_str()));
        assert_eq!(
            answer.header("proxy-status"),
            Some("evenkeel; received-status=502")
        );
        let ttl = 5 - i64::try_from(at).unwrap();
        let label = format!("evenkeel; fwd=stale; fwd-status=502; ttl={ttl}; detail=error-answer");
        assert_eq!(answer.header("cache-status"), Some(label.as_str()));
    }
    bench.advance(Duration::from_secs(1));
    let answer = bench.get("/r/1").await;
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (502, "broken"),
        "c18: the error itself"
    );
    assert_eq!(answer.header("x-data-freshness"), None);
}

/// Case 005: 404 and 410 are answers and retire the copy.
#[tokio::test]
async fn case_005_gone_is_passed_on_and_the_old_body_never_comes_back() {
    for gone in [404, 410] {
        let origin =
            Origin::always(Reply::ok("old").header("cache-control", "max-age=1, stale-if-error=3600")).await;
        let bench = Bench::start(&contract(origin.address, NO_BREAKER, STALE)).await;
        assert_eq!(bench.get("/r/1").await.text(), "old");
        origin.now(Reply::status(gone).body("gone"));
        for _ in 0..2 {
            let answer = bench.get("/r/1").await;
            assert_eq!((answer.status, answer.text().as_str()), (gone, "gone"));
        }
        origin.stop().await;
        let answer = bench.get("/r/1").await;
        assert_eq!(answer.status, 502);
        assert!(
            answer.text().contains("\"why\":\"no-snapshot\""),
            "{}",
            answer.text()
        );
    }
}

/// An upstream that never stops sending is no answer either: the timeout is kept, and the worker is not held. How
/// much arrives at once decides whether the timeout or the limit on heads is met first; both are kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_stream_of_interim_answers_ends_in_time() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let flood = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let interim = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(1000);
        while tokio::io::AsyncWriteExt::write_all(&mut stream, &interim)
            .await
            .is_ok()
        {}
    });
    let dependency = "breaker = \"off\"\nconcurrency = 1\ntimeout = \"200ms\"";
    let bench = Bench::start(&contract(address, dependency, "")).await;
    let status = bench.get("/r/1").await.status;
    assert!(matches!(status, 502 | 504), "{status}");
    flood.await.unwrap();
    assert_eq!(bench.gateway.app().dependency("d").unwrap().status().in_use, 0);
}
