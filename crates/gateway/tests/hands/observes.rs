//! Observe-only: nothing changes, in outage too, and it is counted what would have been done.

use std::time::Duration;

use crate::kit::{Bench, Client, Origin, Reply, STALE, Seen, Then, contract, until};

const WATCHES: &str = "observe_only = true";

/// What a client sees of an answer, but for `Via`, and for the `Date` that a gateway adds where its origin has no clock.
fn seen(answer: &crate::kit::Answer) -> (u16, Vec<(String, String)>, Vec<u8>, bool) {
    let headers = answer
        .headers
        .iter()
        .filter(|(name, _)| name != "via" && name != "date")
        .cloned()
        .collect();
    (answer.status, headers, answer.body.clone(), answer.complete)
}

/// An origin whose answers have everything that a gateway might be tempted to change.
fn odd(line: &Seen) -> Reply {
    let path = line.line.split(' ').nth(1).unwrap();
    match path {
        "/r/ok" => Reply::ok("fine")
            .header("cache-control", "max-age=60")
            .header("age", "7")
            .header("x-data-freshness", "odd"),
        "/r/cached" => Reply::ok("fine")
            .header("cache-status", "origin; hit")
            .header("etag", "\"a\""),
        "/r/error" => Reply::status(503).header("retry-after", "7").body("down"),
        "/r/broken" => Reply::status(500)
            .body("{\"oops\":1}")
            .header("content-type", "application/json"),
        "/r/busy" => Reply::status(429).body("slow down"),
        "/r/gone" => Reply::status(404).body("no"),
        "/r/cut" => Reply::raw("HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\nhalf", Then::Close),
        _ => Reply::ok(line.line.clone()),
    }
}

/// Everything that could refuse or stand in, at its strictest.
fn strict(origin: &Origin, more: &str) -> String {
    let dependency = "concurrency = 1\nbreaker = { consecutive = 1, open_for = \"1m\", open_for_max = \"1m\" }\ntimeout = \"100ms\"";
    let route = format!("deadline = \"150ms\"\n{more}");
    contract(origin.address, dependency, &route)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_what_the_origin_gave_byte_for_byte_in_outage_too() {
    let origin = Origin::start(odd).await;
    let ladder = "ladder = [ { stale = \"60s\" }, { default = { status = 200, content_type = \"text/plain\", body = \"d\" } } ]";
    for more in [
        format!("{WATCHES}\n{ladder}"),
        format!("{WATCHES}\nfreshness = \"origin\"\n{ladder}"),
        format!("{WATCHES}\ncoalesce = true"),
    ] {
        let bench = Bench::start(&strict(&origin, &more)).await;
        for path in [
            "/r/ok",
            "/r/cached",
            "/r/error",
            "/r/error",
            "/r/ok",
            "/r/broken",
            "/r/busy",
            "/r/gone",
            "/r/cut",
            "/r/ok",
        ] {
            for (method, fields) in [
                ("GET", &[][..]),
                ("GET", &[("range", "bytes=0-1"), ("if-none-match", "\"a\"")]),
                ("GET", &[("cookie", "a=b"), ("authorization", "x")]),
                ("HEAD", &[]),
                ("DELETE", &[]),
            ] {
                let direct = Client::connect(origin.address)
                    .await
                    .request(method, path, fields)
                    .await;
                let through = Client::connect(bench.address())
                    .await
                    .request(method, path, fields)
                    .await;
                assert_eq!(seen(&through), seen(&direct), "{more}: {method} {path}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_counted_what_would_have_stood_in_or_been_refused_while_everything_is_forwarded() {
    let origin = Origin::always(Reply::ok("x")).await;
    let bench = Bench::start(&strict(&origin, &format!("{WATCHES}\n{STALE}"))).await;
    let count = async |would: &str, reason: &str| {
        let series = format!("evenkeel_observed_total{{route=\"r\",would=\"{would}\",reason=\"{reason}\"}}");
        bench.metric(&series).await.unwrap_or(0)
    };
    // A shadow ends a little after its request: each is waited for, so that the next one finds the breaker as it left it.
    let counted = async |would: &str, reason: &str| {
        let end = tokio::time::Instant::now() + crate::kit::PATIENCE;
        while count(would, reason).await == 0 {
            assert!(
                tokio::time::Instant::now() < end,
                "{would} {reason}: {}",
                bench.metrics().await
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(count(would, reason).await, 1);
    };
    assert_eq!(bench.get("/r/1").await.status, 200);
    counted("live", "none").await;
    origin.now(Reply::status(503).body("down"));
    for (path, would, reason) in [
        ("/r/1", "stale", "error-answer"),
        ("/r/1", "stale", "breaker-open"),
        ("/r/2", "refused", "breaker-open"),
    ] {
        let answer = bench.get(path).await;
        assert_eq!((answer.status, answer.text().as_str()), (503, "down"));
        counted(would, reason).await;
    }
    assert_eq!(origin.hits(), 4, "an open breaker keeps nothing away");
    let metrics = bench.metrics().await;
    assert!(
        !metrics.contains("evenkeel_calls_total{route=\"r\""),
        "nothing of it has happened"
    );
    assert_eq!(
        bench
            .metric("evenkeel_passes_total{route=\"r\",ending=\"answered\",reason=\"none\"}")
            .await,
        Some(1)
    );
    let status = crate::kit::get_admin(bench.gateway.admin_address(), "localhost", "/status").await;
    let status: serde_json::Value = serde_json::from_slice(&status.body).unwrap();
    assert_eq!(
        (&status["observing"], &status["routes"][0]["state"]),
        (&true.into(), &"observing".into())
    );
}

/// A limit of one, and a timeout that is over long before the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_permits_nor_timeouts_cut_anything_off_and_both_are_counted() {
    let origin = Origin::always(Reply::ok("late").wait(Duration::from_millis(600))).await;
    let bench = Bench::start(&strict(&origin, WATCHES)).await;
    let address = bench.address();
    let both: Vec<_> = (0..2)
        .map(|_| tokio::spawn(async move { crate::kit::get(address, "/r/1").await }))
        .collect();
    for one in both {
        assert_eq!(one.await.unwrap().text(), "late");
    }
    let metrics = bench.metrics().await;
    for would in ["reason=\"timed-out\"} 1", "reason=\"at-capacity\"} 1"] {
        let counted = metrics
            .lines()
            .any(|line| line.starts_with("evenkeel_observed_total") && line.ends_with(would));
        assert!(counted, "{would}: {metrics}");
    }
    let app = bench.gateway.app();
    until("every permit is back", || {
        app.dependency("d").unwrap().status().in_use == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_who_leaves_takes_the_shadow_along() {
    let origin = Origin::always(Reply::hang()).await;
    let text = contract(
        origin.address,
        "concurrency = 5\ntimeout = \"1h\"",
        "observe_only = true\ndeadline = \"1h\"",
    );
    let bench = Bench::start(&text).await;
    let mut client = Client::connect(bench.address()).await;
    client.send("GET /r/1 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let app = bench.gateway.app();
    let in_use = || app.dependency("d").unwrap().status().in_use;
    until("it is watched", || in_use() == 1).await;
    drop(client);
    until("it is over", || in_use() == 0).await;
}
