//! Failures on a route that caches: what may stand in, for how long, and what each answer says of itself.

use std::time::Duration;

use evenkeel::Refreshed;

use crate::{
    cache_reuse::bench,
    kit::{Bench, Client, NO_LIMITS, Origin, Reply, Then, contract, get, in_turn, until},
};

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn good(value: &str) -> Reply {
    Reply::ok("good").header("cache-control", value)
}

fn refreshes(bench: &Bench, end: Refreshed) -> u64 {
    bench.gateway.app().counts("r").unwrap().refreshes(end)
}

#[tokio::test]
async fn case_001_a_background_refresh_that_fails_leaves_the_good_copy() {
    let origin = Origin::always(good("max-age=2, stale-while-revalidate=60, stale-if-error=600")).await;
    let bench = bench(&origin, "").await;
    bench.get("/r/1").await;
    bench.advance(secs(3));
    origin.now(Reply::status(500).body("bad"));
    for n in 0..5 {
        let asked = origin.hits();
        let answer = bench.get("/r/1").await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "good"));
        assert_eq!(answer.header("age"), Some((3 + n).to_string().as_str()));
        let label = format!("evenkeel; hit; ttl=-{}; detail=revalidating", n + 1);
        assert_eq!(answer.header("cache-status"), Some(label.as_str()));
        until("the refresh has been made", || origin.hits() > asked).await;
        until("the refresh has ended", || {
            refreshes(&bench, Refreshed::Failed) > n
        })
        .await;
        bench.advance(secs(1));
    }
}

#[tokio::test]
async fn case_002_the_error_window_is_not_used_up_by_the_first_failure() {
    let origin = Origin::always(good("max-age=5, stale-if-error=60")).await;
    let bench = bench(&origin, "").await;
    bench.get("/r/1").await;
    origin.now(Reply::status(502).body("bad"));
    let mut now = 0;
    for at in [6, 8, 12, 30, 60, 65] {
        bench.advance(secs(at - now));
        now = at;
        let answer = bench.get("/r/1").await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "good"), "{at}");
        assert_eq!(answer.header("age"), Some(at.to_string().as_str()));
        assert_eq!(answer.freshness(), "stale");
        let label = format!(
            "evenkeel; fwd=stale; fwd-status=502; ttl={}; detail=error-answer",
            5 - i64::try_from(at).unwrap()
        );
        assert_eq!(answer.header("cache-status"), Some(label.as_str()));
        assert_eq!(
            answer.header("proxy-status"),
            Some("evenkeel; received-status=502")
        );
    }
    bench.advance(Duration::from_millis(1));
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.status, answer.text().as_str()), (502, "bad"));
    assert_eq!(answer.header("cache-status"), Some("evenkeel; fwd=stale"));
    assert_eq!(answer.freshness(), "-");
}

#[tokio::test]
async fn case_004_every_transport_failure_counts_as_an_error() {
    for (failure, word) in [
        (None, "connection_refused"),
        (Some(Reply::raw("", Then::Close)), "connection_terminated"),
        (Some(Reply::raw("", Then::Reset)), "connection_terminated"),
        (
            Some(Reply::raw("HTTP/1.1 200 OK\r\nx: ", Then::Close)),
            "connection_terminated",
        ),
        (
            Some(Reply::raw("nonsense\r\n\r\n", Then::Close)),
            "http_protocol_error",
        ),
        (
            Some(Reply::raw(
                "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbad",
                Then::Close,
            )),
            "http_response_incomplete",
        ),
    ] {
        let origin = Origin::always(good("max-age=1, stale-if-error=60").header("etag", "\"a\"")).await;
        let bench = bench(&origin, "").await;
        bench.get("/r/1").await;
        bench.advance(secs(2));
        match failure {
            Some(reply) => origin.now(reply),
            None => origin.stop().await,
        }
        let answer = bench.get("/r/1").await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "good"), "{word}");
        let said = format!("evenkeel; error={word}");
        assert_eq!(answer.header("proxy-status"), Some(said.as_str()));
    }
}

#[tokio::test]
async fn case_005_and_010_real_answers_are_never_hidden_and_404_and_410_retire_the_copy() {
    for status in [301, 403, 404, 410, 429, 501, 505] {
        let origin = Origin::always(good("max-age=1, stale-if-error=86400")).await;
        let bench = bench(&origin, "").await;
        bench.get("/r/1").await;
        bench.advance(secs(2));
        origin.now(Reply::status(status).body("answer"));
        for _ in 0..2 {
            let answer = bench.get("/r/1").await;
            assert_eq!((answer.status, answer.text().as_str()), (status, "answer"));
            bench.advance(secs(3));
        }
        origin.stop().await;
        // A refusal says nothing about what others were given; that something is gone or elsewhere does.
        let is_gone = matches!(status, 301 | 404 | 410);
        let left = if is_gone { 502 } else { 200 };
        assert_eq!(bench.get("/r/1").await.status, left, "{status}");
    }
}

#[tokio::test]
async fn case_039_stale_if_error_holds_from_a_lifetime_of_zero_on_every_path() {
    let origin = Origin::always(good("max-age=0, stale-if-error=60").header("etag", "\"a\"")).await;
    let bench = bench(&origin, "").await;
    bench.get("/r/1").await;
    origin.now(Reply::status(500).body("bad"));
    for _ in 0..3 {
        bench.advance(secs(10));
        assert_eq!(bench.get("/r/1").await.text(), "good");
    }
    bench.advance(secs(35));
    assert_eq!(bench.get("/r/1").await.status, 500);
}

#[tokio::test]
async fn case_057_a_body_cut_at_a_chunk_boundary_is_a_failure_and_the_copy_survives() {
    let origin = Origin::always(good("max-age=1, stale-if-error=60")).await;
    let bench = bench(&origin, "").await;
    bench.get("/r/1").await;
    bench.advance(secs(2));
    let cut = "HTTP/1.1 200 OK\r\ncache-control: max-age=9\r\ntransfer-encoding: chunked\r\n\r\n3\r\nbad\r\n";
    origin.now(Reply::raw(cut, Then::Close));
    for _ in 0..2 {
        let answer = bench.get("/r/1").await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "good"));
        assert!(answer.complete);
    }
}

#[tokio::test]
async fn case_060_what_has_to_be_validated_is_not_given_when_nobody_can() {
    for directive in ["must-revalidate", "proxy-revalidate", "s-maxage=2", "no-cache"] {
        let origin = Origin::always(good(&format!("max-age=2, {directive}"))).await;
        let bench = bench(&origin, "ladder = [ { stale = \"60s\" } ]").await;
        bench.get("/r/1").await;
        origin.stop().await;
        bench.advance(secs(3));
        let answer = bench.get("/r/1").await;
        assert_eq!(answer.status, 502, "{directive}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert!(!answer.text().contains("good"));
        assert!(
            answer.text().contains("\"why\":\"forbidden\""),
            "{}",
            answer.text()
        );
        assert_eq!(answer.header("cache-status"), None);
    }
}

#[tokio::test]
async fn the_stale_rung_permits_what_the_origin_does_not_mention_and_the_stricter_limit_counts() {
    for (value, rung, served, not_served) in [
        ("max-age=2", "60s", 60, 61),
        ("max-age=2, stale-if-error=10", "60s", 12, 13),
        ("max-age=2, stale-if-error=600", "60s", 60, 61),
        ("no-transform", "60s", 60, 61),
    ] {
        let origin = Origin::always(good(value)).await;
        let bench = bench(&origin, &format!("ladder = [ {{ stale = \"{rung}\" }} ]")).await;
        bench.get("/r/1").await;
        origin.stop().await;
        bench.advance(secs(served));
        assert_eq!(bench.get("/r/1").await.text(), "good", "{value}");
        bench.advance(secs(not_served - served));
        let refused = bench.get("/r/1").await;
        assert_eq!(refused.status, 502, "{value}");
        assert!(refused.text().contains("too-old"), "{}", refused.text());
    }
}

#[tokio::test]
async fn without_a_permission_of_anybody_nothing_stale_is_given() {
    let origin = Origin::always(good("max-age=2")).await;
    let bench = bench(&origin, "").await;
    bench.get("/r/1").await;
    origin.stop().await;
    bench.advance(secs(3));
    assert_eq!(bench.get("/r/1").await.status, 502);
    // A request can permit it for itself.
    let asked = bench
        .get_with("/r/1", &[("cache-control", "stale-if-error=60")])
        .await;
    assert_eq!(asked.text(), "good");
}

#[tokio::test]
async fn a_reload_in_an_outage_gets_the_copy_with_its_true_label() {
    let origin = Origin::always(good("max-age=60")).await;
    let bench = bench(&origin, "").await;
    bench.get("/r/1").await;
    origin.stop().await;
    bench.advance(secs(5));
    let answer = bench.get_with("/r/1", &[("cache-control", "no-cache")]).await;
    assert_eq!(answer.text(), "good");
    assert_eq!(
        answer.header("cache-status"),
        Some("evenkeel; fwd=request; ttl=55; detail=dependency-failed")
    );
    assert!(
        answer
            .header("degraded")
            .unwrap()
            .contains("reason=dependency-failed")
    );
    let strict = crate::cache_reuse::bench(&origin, "request_directives = \"always\"").await;
    origin.heal().await;
    strict.get("/r/1").await;
    origin.stop().await;
    let refused = strict.get_with("/r/1", &[("cache-control", "no-cache")]).await;
    assert_eq!(refused.status, 502);
}

#[tokio::test]
async fn x2_an_override_sets_a_prohibition_aside_when_asking_fails() {
    let origin = Origin::always(good("max-age=2, must-revalidate")).await;
    let more = "ladder = [ { stale = \"60s\" } ]\noverride = [\"must-revalidate\"]";
    let bench = bench(&origin, more).await;
    bench.get("/r/1").await;
    bench.advance(secs(3));
    origin.stop().await;
    let answer = bench.get("/r/1").await;
    assert_eq!(answer.text(), "good");
    assert_eq!(
        answer.header("cache-status"),
        Some("evenkeel; fwd=stale; ttl=-1; detail=\"dependency-failed, override\"")
    );
}

#[tokio::test]
async fn case_037_a_refresh_is_stored_and_does_not_depend_on_who_triggered_it() {
    let origin = Origin::start(in_turn(vec![
        Reply::ok("one").header("cache-control", "max-age=1, stale-while-revalidate=60"),
        Reply::ok("two").header("cache-control", "max-age=1, stale-while-revalidate=60"),
    ]))
    .await;
    let bench = bench(&origin, "").await;
    bench.get("/r/1").await;
    bench.advance(secs(2));
    let stale = bench
        .get_with(
            "/r/1",
            &[
                ("if-none-match", "\"x\""),
                ("range", "bytes=0-0"),
                ("cache-control", "max-stale=9"),
            ],
        )
        .await;
    assert_eq!(
        (stale.status, stale.text().as_str(), stale.freshness()),
        (206, "o", "stale")
    );
    until("the refresh is stored", || {
        refreshes(&bench, Refreshed::Kept) == 1
    })
    .await;
    let asked = origin.seen().pop().unwrap();
    for name in ["if-none-match", "range", "cache-control"] {
        assert_eq!(asked.header(name), None);
    }
    bench.advance(Duration::from_millis(900));
    let fresh = bench.get("/r/1").await;
    assert_eq!((fresh.text().as_str(), fresh.freshness()), ("two", "fresh"));
    assert_eq!(origin.hits(), 2);
}

#[tokio::test]
async fn case_038_a_refresh_goes_on_without_the_client_that_triggered_it() {
    let origin = Origin::always(good("max-age=1, stale-while-revalidate=60")).await;
    let bench = Bench::start(&contract(
        origin.address,
        "timeout = \"2s\"",
        "freshness = \"origin\"",
    ))
    .await;
    get(bench.address(), "/r/1").await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let slow = Reply::ok("new")
        .header("cache-control", "max-age=60")
        .wait(Duration::from_millis(300));
    origin.now(slow);
    let mut client = Client::connect(bench.address()).await;
    assert_eq!(client.get("/r/1", &[]).await.text(), "good");
    drop(client);
    until("the refresh is stored", || {
        refreshes(&bench, Refreshed::Kept) == 1
    })
    .await;
    assert_eq!(get(bench.address(), "/r/1").await.text(), "new");
}

#[tokio::test]
async fn s01_beyond_the_window_a_request_waits_for_the_origin() {
    let origin = Origin::always(good("max-age=2, stale-while-revalidate=10")).await;
    let bench = bench(&origin, "").await;
    bench.get("/r/1").await;
    origin.now(Reply::ok("new"));
    bench.advance(secs(13));
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.text().as_str(), answer.freshness()), ("new", "fresh"));
}

#[tokio::test]
async fn a_refresh_that_is_refused_ends_the_window_and_leaves_the_copy_for_failures() {
    let origin = Origin::always(good("max-age=1, stale-while-revalidate=60, stale-if-error=60")).await;
    let bench = bench(&origin, "").await;
    bench.get("/r/1").await;
    bench.advance(secs(2));
    origin.now(Reply::status(403));
    assert_eq!(bench.get("/r/1").await.text(), "good");
    until("the refresh has ended", || {
        refreshes(&bench, Refreshed::NotKept) == 1
    })
    .await;
    assert_eq!(bench.get("/r/1").await.status, 403);
    origin.stop().await;
    assert_eq!(bench.get("/r/1").await.text(), "good");
}

/// G17: the copy may stand in for an answer that is slow exactly where it may stand in for one that fails.
#[tokio::test]
async fn a_slow_answer_is_replaced_by_the_copy_where_that_may_stand_in_and_is_stored_when_it_comes() {
    for (value, gives) in [
        ("max-age=0, stale-if-error=60", "good"),
        ("max-age=0, must-revalidate", "new"),
    ] {
        let origin = Origin::always(good(value)).await;
        let route = "freshness = \"origin\"\nladder = [ { stale = \"60s\" } ]\nsoft_timeout = \"50ms\"";
        let bench = Bench::start(&contract(origin.address, NO_LIMITS, route)).await;
        get(bench.address(), "/r/1").await;
        let slow = Reply::ok("new").header("cache-control", "max-age=60");
        origin.now(slow.wait(Duration::from_millis(400)));
        let answer = get(bench.address(), "/r/1").await;
        assert_eq!(answer.text(), gives, "{value}");
        if gives == "good" {
            let label = answer.header("cache-status").unwrap();
            assert_eq!(label, "evenkeel; fwd=stale; ttl=0; detail=slow");
            assert_eq!(answer.freshness(), "stale");
        }
        // By then the origin has answered; nothing shows it from outside but the next answer.
        tokio::time::sleep(Duration::from_millis(900)).await;
        let hit = get(bench.address(), "/r/1").await;
        assert_eq!(hit.text(), "new", "{value}");
        assert!(hit.header("cache-status").unwrap().contains("; hit;"), "{value}");
    }
}
