//! Reuse on a route that caches: lifetimes, validation, updates, variants, and what each answer says of itself.

use std::time::Duration;

use crate::kit::{Bench, NO_LIMITS, Origin, Reply, contract, in_turn};

/// What a route that caches has in its contract.
pub(crate) const ORIGIN: &str = "freshness = \"origin\"";

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) async fn bench(origin: &Origin, more: &str) -> Bench {
    let route = format!("{ORIGIN}\n{more}");
    Bench::with_manual_clock(&contract(origin.address, NO_LIMITS, &route)).await
}

fn lifetime(reply: Reply, value: &str) -> Reply {
    reply.header("cache-control", value)
}

#[tokio::test]
async fn case_003_hits_carry_their_age_and_the_origins_lifetime_is_not_lengthened() {
    let origin = Origin::start(in_turn(vec![
        lifetime(Reply::ok("one"), "max-age=10"),
        lifetime(Reply::ok("two"), "max-age=10"),
    ]))
    .await;
    let bench = bench(&origin, "").await;
    let first = bench.get("/r/1").await;
    assert_eq!((first.text().as_str(), first.header("age")), ("one", None));
    assert_eq!(
        first.header("cache-status"),
        Some("evenkeel; fwd=uri-miss; stored")
    );
    for (span, age) in [(4, "4"), (5, "9")] {
        bench.advance(secs(span));
        let hit = bench.get("/r/1").await;
        assert_eq!((hit.text().as_str(), hit.header("age")), ("one", Some(age)));
        assert_eq!(hit.header("cache-control"), Some("max-age=10"));
        assert_eq!(hit.freshness(), "fresh");
        assert_eq!(hit.header("degraded"), None);
    }
    bench.advance(secs(2));
    assert_eq!(bench.get("/r/1").await.text(), "two");
    assert_eq!(origin.hits(), 2);
}

#[tokio::test]
async fn c21_c22_a_stale_copy_is_validated_and_a_304_updates_its_fields() {
    let origin = Origin::start(in_turn(vec![
        lifetime(Reply::ok("one"), "max-age=2")
            .header("etag", "\"v1\"")
            .header("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT")
            .header("x-count", "1"),
        lifetime(Reply::status(304), "max-age=5")
            .header("etag", "\"v1\"")
            .header("x-count", "2"),
        lifetime(Reply::ok("two"), "max-age=2").header("etag", "\"v2\""),
    ]))
    .await;
    let bench = bench(&origin, "").await;
    bench.get("/r/1").await;
    bench.advance(secs(3));
    let validated = bench.get("/r/1").await;
    assert_eq!((validated.status, validated.text().as_str()), (200, "one"));
    assert_eq!(validated.header("x-count"), Some("2"));
    assert_eq!(
        validated.header("cache-status"),
        Some("evenkeel; fwd=stale; fwd-status=304; stored")
    );
    assert_eq!(validated.freshness(), "fresh");
    let asked = origin.seen().pop().unwrap();
    assert_eq!(asked.header("if-none-match"), Some("\"v1\""));
    assert_eq!(
        asked.header("if-modified-since"),
        Some("Sun, 06 Nov 1994 08:49:37 GMT")
    );
    bench.advance(secs(4));
    let hit = bench.get("/r/1").await;
    assert_eq!((hit.header("x-count"), hit.header("age")), (Some("2"), Some("4")));
    bench.advance(secs(2));
    assert_eq!(bench.get("/r/1").await.text(), "two");
    assert_eq!(origin.hits(), 3);
}

#[tokio::test]
async fn c23_a_304_that_names_no_copy_is_followed_by_a_request_without_conditions() {
    let origin = Origin::start(|seen| match seen.header("if-none-match") {
        Some(_) => Reply::status(304).header("etag", "\"other\""),
        None => lifetime(Reply::ok("whole"), "max-age=1").header("etag", "\"v1\""),
    })
    .await;
    let bench = bench(&origin, "").await;
    bench.get("/r/1").await;
    bench.advance(secs(2));
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "whole"));
    assert_eq!(origin.hits(), 3);
}

#[tokio::test]
async fn without_lifetime_and_validator_nothing_is_reused() {
    let origin = Origin::always(Reply::ok("x")).await;
    let bench = bench(&origin, "").await;
    for _ in 0..3 {
        let answer = bench.get("/r/1").await;
        assert_eq!(answer.header("cache-status"), Some("evenkeel; fwd=uri-miss"));
    }
    assert_eq!(origin.hits(), 3);
}

#[tokio::test]
async fn c13_each_variant_has_its_own_copy_and_absent_matches_only_absent() {
    let origin = Origin::start(|seen| {
        let language = seen.header("accept-language").unwrap_or("none").to_owned();
        lifetime(Reply::ok(language), "max-age=60").header("vary", "Accept-Language")
    })
    .await;
    let bench = bench(&origin, "").await;
    for _ in 0..2 {
        for language in ["de", "en"] {
            let answer = bench.get_with("/r/1", &[("accept-language", language)]).await;
            assert_eq!(answer.text(), language);
        }
        assert_eq!(bench.get("/r/1").await.text(), "none");
    }
    assert_eq!(origin.hits(), 3);
    let other = bench.get_with("/r/1", &[("accept-language", "fr")]).await;
    assert_eq!(
        other.header("cache-status"),
        Some("evenkeel; fwd=vary-miss; stored")
    );
}

#[tokio::test]
async fn case_059_a_coding_is_never_given_to_a_client_that_did_not_ask_for_it() {
    let origin = Origin::start(|seen| match seen.header("accept-encoding") {
        Some(_) => lifetime(Reply::ok("packed"), "max-age=60")
            .header("content-encoding", "gzip")
            .header("vary", "accept-encoding"),
        None => lifetime(Reply::ok("plain"), "max-age=60"),
    })
    .await;
    let bench = bench(&origin, "").await;
    let mut seen = Vec::new();
    for fields in [
        &[("accept-encoding", "gzip")][..],
        &[],
        &[("accept-encoding", "gzip")],
        &[],
    ] {
        let answer = bench.get_with("/r/1", fields).await;
        seen.push((answer.text(), origin.hits()));
    }
    let expected = [("packed", 1), ("plain", 2), ("packed", 2), ("plain", 2)];
    assert_eq!(seen, expected.map(|(text, hits)| (text.to_owned(), hits)));
}

#[tokio::test]
async fn h25_head_is_answered_from_a_stored_get_and_is_never_stored_itself() {
    let origin = Origin::always(lifetime(Reply::ok("body"), "max-age=60").header("etag", "\"a\"")).await;
    let bench = bench(&origin, "").await;
    let mut client = crate::kit::Client::connect(bench.address()).await;
    assert_eq!(
        client.request("HEAD", "/r/1", &[]).await.header("cache-status"),
        Some("evenkeel; fwd=uri-miss")
    );
    assert_eq!(client.get("/r/1", &[]).await.text(), "body");
    bench.advance(secs(5));
    let head = client.request("HEAD", "/r/1", &[]).await;
    assert_eq!(head.status, 200);
    assert_eq!(
        (head.header("content-length"), head.header("age")),
        (Some("4"), Some("5"))
    );
    assert_eq!(client.get("/r/1", &[]).await.text(), "body");
    assert_eq!(origin.hits(), 2);
}

#[tokio::test]
async fn c25_a_head_that_shows_a_change_makes_the_stored_get_stale() {
    let origin = Origin::start(|seen| {
        if seen.line.starts_with("HEAD") {
            lifetime(Reply::ok("other"), "max-age=60").header("etag", "\"b\"")
        } else {
            lifetime(Reply::ok("body"), "max-age=60").header("etag", "\"a\"")
        }
    })
    .await;
    let bench = bench(&origin, "").await;
    bench.get("/r/1").await;
    let mut client = crate::kit::Client::connect(bench.address()).await;
    // Only a HEAD that is not answered from the copy can say anything.
    client
        .request("HEAD", "/r/1", &[("cache-control", "no-cache")])
        .await;
    bench.get("/r/1").await;
    assert_eq!(origin.hits(), 3);
}

#[tokio::test]
async fn h18_a_clients_own_conditions_are_judged_on_the_copy() {
    let origin = Origin::always(
        lifetime(Reply::ok("body"), "max-age=60")
            .header("etag", "\"a\"")
            .header("content-type", "text/plain")
            .header("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
    )
    .await;
    let bench = bench(&origin, "").await;
    for (fields, status) in [
        (("if-none-match", "W/\"a\""), 304),
        (("if-none-match", "*"), 304),
        (("if-none-match", "\"x\", \"a\""), 304),
        (("if-none-match", "\"b\""), 200),
        (("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT"), 304),
        (("if-modified-since", "Sun, 06 Nov 1994 08:49:36 GMT"), 200),
    ] {
        let answer = bench.get_with("/r/1", &[fields]).await;
        assert_eq!(answer.status, status, "{fields:?}");
        assert_eq!(answer.header("etag"), Some("\"a\""));
        assert_eq!(answer.header("content-type").is_some(), status == 200);
    }
    assert_eq!(origin.hits(), 1);
    assert_eq!(origin.seen()[0].header("if-none-match"), None);
}

#[tokio::test]
async fn ranges_are_cut_from_a_whole_copy() {
    let origin =
        Origin::always(lifetime(Reply::ok("0123456789"), "max-age=60").header("etag", "\"a\"")).await;
    let bench = bench(&origin, "").await;
    let get = async |fields: &[(&str, &str)]| {
        let answer = bench.get_with("/r/1", fields).await;
        let range = answer.header("content-range").unwrap_or("-").to_owned();
        (answer.status, answer.text(), range)
    };
    let expected = |status: u16, text: &str, range: &str| (status, text.to_owned(), range.to_owned());
    assert_eq!(
        get(&[("range", "bytes=2-4")]).await,
        expected(206, "234", "bytes 2-4/10")
    );
    assert_eq!(
        get(&[("range", "bytes=-2")]).await,
        expected(206, "89", "bytes 8-9/10")
    );
    assert_eq!(
        get(&[("range", "bytes=20-")]).await,
        expected(416, "", "bytes */10")
    );
    assert_eq!(
        get(&[("range", "bytes=0-0,2-3")]).await,
        expected(200, "0123456789", "-")
    );
    let stale = [("range", "bytes=2-4"), ("if-range", "\"b\"")];
    assert_eq!(get(&stale).await, expected(200, "0123456789", "-"));
    let current = [("range", "bytes=2-4"), ("if-range", "\"a\"")];
    assert_eq!(get(&current).await.0, 206);
    assert_eq!(origin.hits(), 1);
}

#[tokio::test]
async fn case_056_a_partial_answer_is_never_given_for_the_whole() {
    let origin = Origin::start(|seen| {
        // An origin that is not asked for a range and answers one all the same.
        if seen.header("x-part").is_some() {
            lifetime(Reply::status(206).body("01"), "max-age=60").header("content-range", "bytes 0-1/10")
        } else {
            lifetime(Reply::ok("0123456789"), "max-age=60")
        }
    })
    .await;
    let bench = bench(&origin, "").await;
    let part = bench
        .get_with("/r/1", &[("range", "bytes=0-1"), ("x-part", "1")])
        .await;
    assert_eq!((part.status, part.text().as_str()), (206, "01"));
    assert_eq!(bench.get("/r/1").await.text(), "0123456789");
    origin.stop().await;
    assert_eq!(bench.get("/r/1").await.text(), "0123456789");
}

#[tokio::test]
async fn case_061_a_label_says_hit_or_forwarded_and_what_really_happened() {
    let origin = Origin::start(in_turn(vec![
        lifetime(Reply::ok("one"), "max-age=10").header("etag", "\"v1\""),
        Reply::status(304).header("etag", "\"v1\""),
    ]))
    .await;
    let bench = bench(&origin, "").await;
    let label = async || bench.get("/r/1").await.header("cache-status").unwrap().to_owned();
    assert_eq!(label().await, "evenkeel; fwd=uri-miss; stored");
    bench.advance(secs(4));
    assert_eq!(label().await, "evenkeel; hit; ttl=6");
    bench.advance(secs(8));
    assert_eq!(label().await, "evenkeel; fwd=stale; fwd-status=304; stored");
    assert_eq!(label().await, "evenkeel; hit; ttl=10");
}

#[tokio::test]
async fn c19_requests_steer_and_only_if_cached_asks_nobody() {
    let origin = Origin::always(lifetime(Reply::ok("x"), "max-age=10").header("etag", "\"a\"")).await;
    let bench = bench(&origin, "").await;
    let mut asked = 0;
    let get = async |value: &str| bench.get_with("/r/1", &[("cache-control", value)]).await;
    assert_eq!(get("only-if-cached").await.status, 504);
    for (value, asks) in [
        ("max-stale=5", true),
        ("max-age=3", false),
        ("no-cache", true),
        ("max-age=0", true),
        ("min-fresh=5", false),
        ("min-fresh=20", true),
        ("no-store", false),
        ("only-if-cached", false),
    ] {
        asked += usize::from(asks);
        assert_eq!(get(value).await.status, 200, "{value}");
        assert_eq!(origin.hits(), asked, "{value}");
        bench.advance(Duration::from_millis(10));
    }
    assert_eq!(
        bench.get_with("/r/1", &[("pragma", "no-cache")]).await.status,
        200
    );
    assert_eq!(origin.hits(), asked + 1);
    bench.advance(secs(12));
    let stale = get("max-stale=5").await;
    assert_eq!(stale.header("cache-status"), Some("evenkeel; hit; ttl=-2"));
    assert_eq!(stale.freshness(), "stale");
    assert_eq!(get("only-if-cached").await.status, 504);
}

#[tokio::test]
async fn c02_nothing_is_stored_for_a_request_that_says_no_store() {
    let origin = Origin::always(lifetime(Reply::ok("x"), "max-age=60")).await;
    let bench = bench(&origin, "").await;
    bench.get_with("/r/1", &[("cache-control", "no-store")]).await;
    bench.get("/r/1").await;
    assert_eq!(origin.hits(), 2);
}

#[tokio::test]
async fn c01_errors_with_a_lifetime_and_unknown_statuses_are_reused_within_it() {
    for status in [299, 404, 410, 499, 503, 599] {
        let origin = Origin::always(lifetime(Reply::status(status).body("x"), "max-age=10")).await;
        let bench = bench(&origin, "").await;
        for _ in 0..2 {
            assert_eq!(bench.get("/r/1").await.status, status);
        }
        assert_eq!(origin.hits(), 1, "{status}");
        bench.advance(secs(11));
        assert_eq!(bench.get("/r/1").await.status, status);
        assert_eq!(origin.hits(), 2, "{status}");
    }
}

#[tokio::test]
async fn tc1_a_targeted_field_takes_the_place_of_cache_control() {
    let origin =
        Origin::always(lifetime(Reply::ok("x"), "no-store").header("cdn-cache-control", "max-age=10")).await;
    let bench = bench(&origin, "").await;
    bench.get("/r/1").await;
    let hit = bench.get("/r/1").await;
    assert_eq!(hit.header("cache-status"), Some("evenkeel; hit; ttl=10"));
    assert_eq!(hit.header("cdn-cache-control"), Some("max-age=10"));
}

#[tokio::test]
async fn a_copy_is_replaced_wherever_the_store_keeps_it() {
    let origin = Origin::start(in_turn(vec![lifetime(Reply::ok("one"), "max-age=2")])).await;
    let bench = bench(&origin, "").await;
    // The store has eight parts and a key lies in one by chance: 64 keys miss none of them.
    for round in 1..=2 {
        for key in 0..64 {
            assert_eq!(bench.get(&format!("/r/{key}")).await.text(), "one");
        }
        assert_eq!(origin.hits(), round * 64);
        bench.advance(secs(3));
    }
}
