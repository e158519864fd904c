//! On routes that keep answers for failures, a client's own conditions and ranges are answered here, by the one rule.

use std::time::Duration;

use crate::kit::{Answer, Bench, Client, NO_BREAKER, NO_LIMITS, Origin, Reply, STALE, contract};

const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

fn page() -> Reply {
    Reply::ok("0123456789")
        .header("etag", "\"v1\"")
        .header("last-modified", MODIFIED)
        .header("content-type", "text/plain")
}

/// Fields of a request, the status, and as much of the body as is given.
type Case = (&'static [(&'static str, &'static str)], u16, &'static str);

/// What each condition comes to: the status, and as much of the body as is given.
const CASES: [Case; 10] = [
    (&[("if-none-match", "\"v0\", W/\"v1\"")], 304, ""),
    (&[("if-none-match", "\"v0\"")], 200, "0123456789"),
    (&[("if-modified-since", MODIFIED)], 304, ""),
    (
        &[("if-modified-since", "Sun, 06 Nov 1994 08:49:36 GMT")],
        200,
        "0123456789",
    ),
    // Of two conditions the tag alone counts.
    (
        &[("if-none-match", "\"v0\""), ("if-modified-since", MODIFIED)],
        200,
        "0123456789",
    ),
    (&[("range", "bytes=2-4")], 206, "234"),
    (&[("range", "bytes=-3")], 206, "789"),
    (&[("range", "bytes=10-")], 416, ""),
    (&[("range", "bytes=2-4"), ("if-range", "\"v1\"")], 206, "234"),
    (
        &[("range", "bytes=2-4"), ("if-range", "\"v0\"")],
        200,
        "0123456789",
    ),
];

async fn all(bench: &Bench, freshness: &str) {
    for (fields, status, body) in CASES {
        let answer = bench.get_with("/r/1", fields).await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (status, body),
            "{fields:?}"
        );
        if status == 200 {
            assert_eq!(answer.freshness(), freshness, "{fields:?}");
        }
        if status == 206 {
            let range = answer.header("content-range").unwrap();
            assert!(range.ends_with("/10"), "{range}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h18_h19_conditions_and_ranges_are_answered_from_the_full_copy_live_and_stale() {
    let origin = Origin::always(page()).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, STALE)).await;
    all(&bench, "fresh").await;
    for seen in origin.seen() {
        for name in ["range", "if-range", "if-none-match", "if-modified-since"] {
            assert_eq!(
                seen.header(name),
                None,
                "the whole answer is fetched, so that a copy exists"
            );
        }
    }
    origin.stop().await;
    all(&bench, "stale").await;
    let mut client = Client::connect(bench.address()).await;
    let head = client.request("HEAD", "/r/1", &[("range", "bytes=0-1")]).await;
    assert_eq!((head.status, head.header("content-length")), (200, Some("10")));
}

/// A constant is no answer of the dependency: nobody has it, and it has no parts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_default_is_given_whole_whatever_is_asked() {
    let origin = Origin::always(Reply::status(503)).await;
    let ladder = "ladder = [ { stale = \"1s\" }, { default = { content_type = \"a/b\", body = \"0123\" } } ]";
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, ladder)).await;
    for fields in [
        ("if-none-match", "*"),
        ("if-modified-since", "Sun, 06 Nov 2094 08:49:37 GMT"),
        ("range", "bytes=0-1"),
    ] {
        let answer = bench.get_with("/r/1", &[fields]).await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, "0123"),
            "{fields:?}"
        );
    }
}

/// What keeps nothing sends the conditions on, and passes on what it gets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_that_keeps_nothing_leaves_conditions_to_the_dependency() {
    let origin = Origin::always(page()).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, "")).await;
    let fields = [("if-none-match", "\"v1\""), ("range", "bytes=0-1")];
    let answer = bench.get_with("/r/1", &fields).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "0123456789"));
    let seen = &origin.seen()[0];
    assert_eq!(
        (seen.header("if-none-match"), seen.header("range")),
        (Some("\"v1\""), Some("bytes=0-1"))
    );
}

/// A 429 whose body is too large to be held back says all the same how long to stay away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_429_that_flows_is_heeded_too() {
    for (size, route) in [(5000, "max_body = \"4KiB\"\n"), (10, ""), (10, "no ladder")] {
        let busy = Reply::status(429)
            .header("retry-after", "20")
            .body(vec![b'x'; size]);
        let origin = Origin::always(busy).await;
        let route = if route == "no ladder" {
            String::new()
        } else {
            format!("{route}{STALE}")
        };
        let bench = Bench::with_manual_clock(&contract(origin.address, NO_LIMITS, &route)).await;
        assert_eq!(bench.get("/r/1").await.status, 429);
        let dependency = bench.gateway.app().dependency("d").unwrap().clone();
        bench.advance(Duration::from_secs(19));
        assert!(dependency.hushed_until().is_some(), "{size} {route}");
        bench.advance(Duration::from_secs(2));
        assert_eq!(dependency.hushed_until(), None, "{size} {route}");
    }
}

/// Rule C30: an answer that has to be validated before it is used again is nobody else's either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c30_an_answer_that_says_no_cache_is_not_shared_with_who_waited() {
    for (says, hits) in [("no-cache", 2), ("max-age=60", 1), ("max-age=0", 2)] {
        let slow = Reply::ok("x")
            .header("cache-control", says)
            .wait(Duration::from_millis(200));
        let origin = Origin::always(slow).await;
        let bench = Bench::start(&contract(origin.address, NO_LIMITS, "coalesce = true")).await;
        let mut first = Client::connect(bench.address()).await;
        first
            .send("GET /r/1 HTTP/1.1\r\nhost: shop.example\r\n\r\n")
            .await;
        crate::kit::until("it is asked", || origin.hits() == 1).await;
        let second: Answer = bench.get("/r/1").await;
        assert_eq!((second.status, first.answer(false).await.status), (200, 200));
        assert_eq!(origin.hits(), hits, "{says}");
    }
}
