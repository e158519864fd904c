//! A failed GET is sent once more, within attempts, budget and time, by one gateway of several in a row.

use std::time::Duration;

use crate::kit::{Bench, NO_BREAKER, Origin, Reply, STALE, contract, contract_with, in_turn};

fn failing(times: usize, failure: Reply) -> Vec<Reply> {
    let mut replies = vec![failure; times];
    replies.push(Reply::ok("x"));
    replies
}

async fn gateway(origin: &Origin, rules: &str, route: &str) -> Bench {
    let dependency = format!("{NO_BREAKER}\nlearned_limit = \"off\"\nretry = {{ {rules} }}");
    Bench::start(&contract(origin.address, &dependency, route)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_any_kind_is_followed_by_another_attempt_and_a_refusal_is_not() {
    for (failure, hits, status) in [
        (Reply::status(500), 2, 200),
        (Reply::status(503), 2, 200),
        (Reply::status(429), 2, 200),
        (Reply::raw("", crate::kit::Then::Close), 2, 200),
        (Reply::raw("nonsense\r\n\r\n", crate::kit::Then::Close), 2, 200),
        (Reply::status(404), 1, 404),
        (Reply::status(401), 1, 401),
        (Reply::status(501), 1, 501),
    ] {
        let origin = Origin::start(in_turn(failing(1, failure))).await;
        let bench = gateway(&origin, "", "").await;
        let answer = bench.get("/r/1").await;
        assert_eq!((answer.status, origin.hits()), (status, hits));
        assert_eq!(
            answer.header("evenkeel-retried"),
            None,
            "nothing failed in the end"
        );
        let made = bench.metric("evenkeel_retries_total{dependency=\"d\"}").await;
        assert_eq!(made, Some(hits as u64 - 1));
    }
}

/// Case 030: what is not retried, or not any more, is passed on as it was. Requests of other methods never are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_030_the_last_error_is_passed_on_with_its_fields_and_body() {
    let error = Reply::status(500)
        .header("content-type", "application/json")
        .header("x-trace", "abc")
        .body("{\"error\":1}");
    let origin = Origin::always(error).await;
    let bench = gateway(&origin, "", "other_methods = \"pass\"").await;
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.status, origin.hits()), (500, 2));
    assert_eq!(
        (answer.header("x-trace"), answer.text().as_str()),
        (Some("abc"), "{\"error\":1}")
    );
    let mut client = crate::kit::Client::connect(bench.address()).await;
    let answer = client.request("POST", "/r/1", &[("content-length", "0")]).await;
    assert_eq!((answer.status, origin.hits()), (500, 3), "a POST is sent once");
    assert_eq!(
        (answer.header("x-trace"), answer.text().as_str()),
        (Some("abc"), "{\"error\":1}")
    );
}

/// Case 032.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_032_a_past_negative_or_malformed_retry_after_breaks_nothing() {
    for value in ["Sun, 06 Nov 1994 08:49:37 GMT", "-1", "abc", "0", ""] {
        let failure = Reply::status(503).header("retry-after", value);
        let origin = Origin::start(in_turn(failing(1, failure))).await;
        let bench = gateway(&origin, "", "").await;
        assert_eq!(bench.get("/r/1").await.status, 200, "{value:?}");
        assert_eq!(origin.hits(), 2, "{value:?}");
    }
}

/// Case 033 in a tenth of its time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_033_a_malformed_retry_after_does_not_disable_the_pause() {
    let origin = Origin::always(Reply::status(429).header("retry-after", "-5")).await;
    let bench = gateway(&origin, "attempts = 3, pause = \"100ms\"", "").await;
    let began = tokio::time::Instant::now();
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.status, origin.hits()), (429, 3));
    // The lower bound alone: two pauses, each as long as the base at least.
    assert!(began.elapsed() >= Duration::from_millis(200));
    let hushed = bench.gateway.app().dependency("d").unwrap();
    assert_eq!(hushed.attempts(evenkeel::Class::Busy), 3);
}

/// Case 027: three places to ask, of which this gateway knows one; whatever hangs, the deadline ends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_027_the_deadline_ends_the_request_whatever_attempts_are_left() {
    let origin = Origin::always(Reply::hang()).await;
    let dependency = format!("{NO_BREAKER}\ntimeout = \"5s\"\nretry = {{ attempts = 2 }}");
    let text = contract(origin.address, &dependency, "deadline = \"400ms\"");
    let bench = Bench::start(&text).await;
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.status, origin.hits()), (504, 1));
    assert!(answer.text().contains("timed-out"), "{}", answer.text());
}

/// Case 028 at a tenth of its size.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_028_an_attempt_that_hangs_leaves_room_for_another() {
    let origin = Origin::start(in_turn(failing(1, Reply::hang()))).await;
    let dependency = format!("{NO_BREAKER}\ntimeout = \"200ms\"\nretry = {{}}");
    let bench = Bench::start(&contract(origin.address, &dependency, "deadline = \"3s\"")).await;
    assert_eq!((bench.get("/r/1").await.status, origin.hits()), (200, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_whose_body_is_larger_than_may_be_held_back_is_the_answer() {
    let large = Reply::status(500).body(vec![b'x'; 5000]);
    for (max_body, status, hits) in [("4KiB", 500, 1), ("8KiB", 200, 2)] {
        let origin = Origin::start(in_turn(failing(1, large.clone()))).await;
        let route = format!("{STALE}\nmax_body = \"{max_body}\"");
        let bench = gateway(&origin, "", &route).await;
        let answer = bench.get("/r/1").await;
        assert_eq!((answer.status, origin.hits()), (status, hits), "{max_body}");
        if status == 500 {
            assert_eq!(answer.body.len(), 5000);
        }
    }
}

/// R02: a hundred requests, everything fails; the floor is what a slow machine may add, second by second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r02_under_total_failure_the_origin_sees_no_more_than_the_budget() {
    let origin = Origin::always(Reply::status(500)).await;
    let bench = gateway(&origin, "attempts = 3, floor = 0, pause = \"1ms\"", "").await;
    for _ in 0..100 {
        assert_eq!(bench.get("/r/1").await.status, 500);
    }
    let retries = origin.hits() - 100;
    assert!((1..=10).contains(&retries), "{retries}");
    let denied = bench
        .metric("evenkeel_retries_denied_total{dependency=\"d\"}")
        .await;
    assert!(denied.unwrap() >= 90);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r05_what_a_failure_says_about_asking_again_is_heeded_by_whatever_method_and_where_it_is_kept() {
    let never = Reply::status(503).header("evenkeel-retried", "?1");
    let later = Reply::status(503).header("retry-after", "60");
    let kept = Reply::status(429)
        .header("retry-after", "60")
        .header("cache-control", "max-age=1");
    for (failure, status) in [(never, 503), (later, 503), (kept, 429)] {
        for route in ["", "freshness = \"origin\""] {
            for method in ["GET", "HEAD"] {
                let origin = Origin::always(failure.clone()).await;
                let bench = gateway(&origin, "", route).await;
                let mut client = crate::kit::Client::connect(bench.address()).await;
                let answer = client.request(method, "/r/1", &[]).await;
                assert_eq!((answer.status, origin.hits()), (status, 1), "{method} {route}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r05_of_two_gateways_in_a_row_one_retries() {
    let origin = Origin::always(Reply::status(500)).await;
    let inner = gateway(&origin, "", "").await;
    let dependency = format!("{NO_BREAKER}\nretry = {{}}");
    let outer = Bench::start(&contract_with(inner.address(), "", &dependency, "")).await;
    let answer = outer.get("/r/1").await;
    assert_eq!((answer.status, origin.hits()), (500, 2));
    assert_eq!(answer.header("evenkeel-retried"), Some("?1"));
    // A failure that the inner one never saw is the outer one's to retry.
    drop(inner);
    outer.get("/r/1").await;
    let made = outer.metric("evenkeel_retries_total{dependency=\"d\"}").await;
    assert_eq!(made, Some(1));
}
