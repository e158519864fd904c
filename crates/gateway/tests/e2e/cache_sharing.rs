//! Who shares what on a route that caches: attempts, copies, and what a write takes away.

use std::{net::SocketAddr, time::Duration};

use evenkeel::Engine;
use evenkeel_gateway::proxy::Limits;
use tokio::time::Instant;

use crate::{
    cache_reuse::{ORIGIN, bench},
    kit::{Answer, Bench, Client, NO_LIMITS, Origin, PATIENCE, Reply, contract, get, get_with, until},
};

const HALF: Duration = Duration::from_millis(500);

fn stored(text: impl AsRef<[u8]>, value: &str) -> Reply {
    Reply::ok(text).header("cache-control", value)
}

/// A gateway by the system's clock: attempts of these origins take real time.
async fn started(origin: &Origin, more: &str) -> Bench {
    Bench::start(&contract(origin.address, NO_LIMITS, &format!("{ORIGIN}\n{more}"))).await
}

async fn together(address: SocketAddr, fields: Vec<Vec<(&'static str, &'static str)>>) -> Vec<Answer> {
    let calls: Vec<_> = fields
        .into_iter()
        .map(|fields| tokio::spawn(async move { get_with(address, "/r/1", &fields).await }))
        .collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap());
    }
    answers
}

#[tokio::test]
async fn case_034_a_fetch_goes_on_without_the_one_who_began_it() {
    let origin = Origin::always(stored("one", "max-age=60").wait(HALF)).await;
    let bench = started(&origin, "").await;
    let address = bench.address();
    let mut first = Client::connect(address).await;
    first
        .send("GET /r/1 HTTP/1.1\r\nhost: shop.example\r\n\r\n")
        .await;
    until("the origin is asked", || origin.hits() == 1).await;
    let others = tokio::spawn(together(address, vec![Vec::new(); 9]));
    until("nine more have come", || {
        bench.gateway.app().requests_in_flight() == 10
    })
    .await;
    drop(first);
    let answers = others.await.unwrap();
    for answer in &answers {
        assert_eq!((answer.status, answer.text().as_str()), (200, "one"));
        assert_eq!(
            answer.header("cache-status"),
            Some("evenkeel; fwd=uri-miss; stored; collapsed")
        );
    }
    assert_eq!(origin.hits(), 1);
}

#[tokio::test]
async fn an_expired_copy_is_validated_once_for_all_who_wait() {
    let origin = Origin::always(stored("one", "max-age=1").header("etag", "\"a\"")).await;
    let bench = started(&origin, "").await;
    get(bench.address(), "/r/1").await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    origin.now(
        Reply::status(304)
            .header("etag", "\"a\"")
            .header("cache-control", "max-age=60")
            .wait(HALF),
    );
    let answers = together(bench.address(), vec![Vec::new(); 20]).await;
    let labels = |label: &str| {
        answers
            .iter()
            .filter(|answer| answer.header("cache-status") == Some(label))
            .count()
    };
    assert_eq!(origin.hits(), 2);
    assert_eq!(labels("evenkeel; fwd=stale; fwd-status=304; stored"), 1);
    assert_eq!(
        labels("evenkeel; fwd=stale; fwd-status=304; stored; collapsed"),
        19
    );
}

#[tokio::test]
async fn case_036_an_answer_that_may_not_be_reused_is_asked_for_in_parallel_and_remembered() {
    let origin = Origin::always(stored("own", "no-store").wait(HALF)).await;
    let bench = started(&origin, "").await;
    for answer in together(bench.address(), vec![Vec::new(); 20]).await {
        assert_eq!(answer.text(), "own");
        assert!(!answer.header("cache-status").unwrap().contains("stored"));
    }
    // Two rounds: the one who began, then all others at once.
    assert_eq!(origin.hits(), 20);
    // The key is known by now: nobody waits for anybody, so all are under way together.
    let more = tokio::spawn(together(bench.address(), vec![Vec::new(); 5]));
    until("five more are under way", || origin.hits() == 25).await;
    assert_eq!(more.await.unwrap().len(), 5);
}

#[tokio::test]
async fn variants_do_not_wait_for_each_other_once_vary_is_known() {
    let origin = Origin::start(|seen| {
        let language = seen.header("accept-language").unwrap_or("none").to_owned();
        stored(language, "max-age=60")
            .header("vary", "accept-language")
            .wait(HALF)
    })
    .await;
    let bench = started(&origin, "").await;
    get_with(bench.address(), "/r/1", &[("accept-language", "de")]).await;
    let asked = ["en", "fr", "en", "fr"];
    let waits = tokio::spawn(together(
        bench.address(),
        asked.map(|language| vec![("accept-language", language)]).to_vec(),
    ));
    until("both variants are asked for at the same time", || {
        origin.hits() == 3
    })
    .await;
    for (answer, language) in waits.await.unwrap().iter().zip(asked) {
        assert_eq!(answer.text(), language);
    }
    assert_eq!(origin.hits(), 3);
}

#[tokio::test]
async fn a_failure_is_shared_with_those_who_wait_and_with_nobody_after_them() {
    let origin = Origin::always(Reply::status(503).body("bad").wait(HALF)).await;
    let bench = started(&origin, "").await;
    for answer in together(bench.address(), vec![Vec::new(); 10]).await {
        assert_eq!((answer.status, answer.text().as_str()), (503, "bad"));
    }
    assert_eq!(origin.hits(), 1);
    origin.now(stored("good", "max-age=60"));
    assert_eq!(get(bench.address(), "/r/1").await.text(), "good");
}

#[tokio::test]
async fn a_404_with_a_lifetime_is_asked_for_once_and_given_to_all() {
    let origin = Origin::always(
        Reply::status(404)
            .body("none")
            .header("cache-control", "max-age=60")
            .wait(HALF),
    )
    .await;
    let bench = started(&origin, "").await;
    for answer in together(bench.address(), vec![Vec::new(); 10]).await {
        assert_eq!((answer.status, answer.text().as_str()), (404, "none"));
    }
    assert_eq!(origin.hits(), 1);
}

#[tokio::test]
async fn case_009_an_answer_to_credentials_is_shared_only_where_it_says_so() {
    let origin = Origin::start(|seen| {
        stored(
            seen.header("authorization").unwrap_or("nobody"),
            "max-age=60, stale-if-error=60",
        )
    })
    .await;
    let bench = bench(&origin, "").await;
    let as_a = [("authorization", "a")];
    let as_c = [("authorization", "c")];
    assert_eq!(bench.get_with("/r/1", &as_a).await.text(), "a");
    assert_eq!(bench.get("/r/1").await.text(), "nobody");
    assert_eq!(bench.get_with("/r/1", &as_c).await.text(), "c");
    origin.stop().await;
    assert_eq!(bench.get_with("/r/2", &as_a).await.status, 502);
    assert_eq!(bench.get_with("/r/1", &as_c).await.status, 502);
    origin.heal().await;
    origin.script(|seen| {
        stored(
            seen.header("authorization").unwrap_or("nobody"),
            "public, max-age=60",
        )
    });
    assert_eq!(bench.get_with("/r/3", &as_a).await.text(), "a");
    for fields in [&as_c[..], &[]] {
        let shared = bench.get_with("/r/3", fields).await;
        assert_eq!(shared.text(), "a");
        assert!(shared.header("cache-status").unwrap().contains("hit"));
    }
}

#[tokio::test]
async fn g18_cookies_separate_unless_a_route_names_them_as_without_influence() {
    let origin = Origin::start(|seen| stored(seen.header("cookie").unwrap_or("none"), "max-age=60")).await;
    let ignoring = bench(&origin, "ignore_cookies = [\"theme\"]").await;
    assert_eq!(ignoring.get("/r/1").await.text(), "none");
    assert_eq!(
        ignoring.get_with("/r/1", &[("cookie", "theme=1")]).await.text(),
        "none"
    );
    assert_eq!(
        ignoring.get_with("/r/1", &[("cookie", "id=1")]).await.text(),
        "id=1"
    );
    assert_eq!(ignoring.get("/r/1").await.text(), "none");
    assert_eq!(origin.hits(), 2);
}

#[tokio::test]
async fn c33_an_answer_that_sets_a_cookie_is_nobody_elses_unless_a_route_keeps_it() {
    let origin = Origin::always(stored("x", "max-age=60").header("set-cookie", "id=1")).await;
    let plain = bench(&origin, "").await;
    let keeping = bench(&origin, "keep_set_cookie = true").await;
    for (bench, hits) in [(plain, 2), (keeping, 3)] {
        for _ in 0..2 {
            assert_eq!(bench.get("/r/1").await.header("set-cookie"), Some("id=1"));
        }
        assert_eq!(origin.hits(), hits);
    }
}

#[tokio::test]
async fn case_006_and_007_every_host_has_copies_of_its_own_also_when_the_origin_is_gone() {
    let origin =
        Origin::start(|seen| stored(seen.header("host").unwrap(), "max-age=1, stale-if-error=60")).await;
    let bench = bench(&origin, "").await;
    let mut client = Client::connect(bench.address()).await;
    for round in 0..2 {
        for host in ["a.example", "b.example"] {
            client
                .send(&format!("GET /r/1 HTTP/1.1\r\nhost: {host}\r\n\r\n"))
                .await;
            assert_eq!(client.answer(false).await.text(), host, "{round}");
        }
        origin.stop().await;
        bench.advance(Duration::from_secs(5));
    }
}

#[tokio::test]
async fn case_008_spellings_of_a_target_are_targets_of_their_own() {
    let origin = Origin::start(|seen| {
        let status = if seen.line.contains("%2bb") { 403 } else { 200 };
        Reply::status(status).header("cache-control", "max-age=30")
    })
    .await;
    let bench = bench(&origin, "").await;
    for (path, status) in [("/r/a%2bb", 403), ("/r/a%2Bb", 200), ("/r/a%2bb", 403)] {
        assert_eq!(bench.get(path).await.status, status);
    }
    assert_eq!(origin.hits(), 2);
}

#[tokio::test]
async fn c27_a_write_that_worked_retires_every_copy_of_its_target() {
    let origin = Origin::start(|seen| {
        if seen.line.starts_with("GET") {
            stored("x", "max-age=60").header("vary", "accept-language")
        } else {
            Reply::status(204)
        }
    })
    .await;
    let bench = bench(&origin, "other_methods = \"pass\"").await;
    let mut client = Client::connect(bench.address()).await;
    for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH"] {
        let before = origin.hits();
        for language in ["de", "en"] {
            client.get("/r/1", &[("accept-language", language)]).await;
        }
        assert_eq!(
            client
                .request(method, "/r/1", &[("content-length", "0")])
                .await
                .status,
            204
        );
        bench.advance(Duration::from_millis(1));
        assert_eq!(origin.hits(), before + 3, "{method}");
    }
    for method in ["OPTIONS", "GET"] {
        client.get("/r/1", &[]).await;
        let before = origin.hits();
        client.request(method, "/r/1", &[]).await;
        let asked = origin.hits() - before;
        client.get("/r/1", &[]).await;
        assert_eq!(origin.hits(), before + asked, "{method}");
    }
}

#[tokio::test]
async fn case_058_a_write_that_failed_retires_nothing() {
    let origin = Origin::always(stored("x", "max-age=300")).await;
    let bench = bench(&origin, "other_methods = \"pass\"").await;
    let mut client = Client::connect(bench.address()).await;
    client.get("/r/1", &[]).await;
    for status in [405, 401, 503] {
        origin.now(Reply::status(status));
        client.request("POST", "/r/1", &[("content-length", "0")]).await;
        let hit = client.get("/r/1", &[]).await;
        assert!(hit.header("cache-status").unwrap().contains("; hit;"), "{status}");
    }
    origin.stop().await;
    client.request("POST", "/r/1", &[("content-length", "0")]).await;
    assert_eq!(client.get("/r/1", &[]).await.text(), "x");
}

#[tokio::test]
async fn c28_location_and_content_location_retire_on_the_same_origin_only() {
    let origin = Origin::always(stored("x", "max-age=300")).await;
    let bench = bench(&origin, "other_methods = \"pass\"").await;
    let mut client = Client::connect(bench.address()).await;
    for (field, value, retires) in [
        ("location", "/r/2", true),
        ("location", "http://shop.example/r/2", true),
        ("location", "http://SHOP.example:80/r/2", true),
        ("content-location", "2", true),
        ("location", "http://other.example/r/2", false),
        ("content-location", "/r/2?x", false),
    ] {
        origin.now(stored("x", "max-age=300"));
        client.get("/r/2", &[]).await;
        origin.now(Reply::status(201).header(field, value));
        client.request("POST", "/r/1", &[("content-length", "0")]).await;
        bench.advance(Duration::from_millis(1));
        let before = origin.hits();
        origin.now(stored("x", "max-age=300"));
        client.get("/r/2", &[]).await;
        assert_eq!(origin.hits() - before, usize::from(retires), "{field}: {value}");
    }
}

#[tokio::test]
async fn e46_what_was_asked_for_before_a_write_is_not_stored_after_it() {
    let origin = Origin::always(stored("old", "max-age=300").wait(HALF)).await;
    let bench = started(&origin, "other_methods = \"pass\"").await;
    let address = bench.address();
    let slow = tokio::spawn(get(address, "/r/1"));
    until("the origin is asked", || origin.hits() == 1).await;
    origin.now(Reply::status(204));
    Client::connect(address)
        .await
        .request("POST", "/r/1", &[("content-length", "0")])
        .await;
    assert_eq!(slow.await.unwrap().text(), "old");
    origin.now(stored("new", "max-age=300"));
    assert_eq!(get(address, "/r/1").await.text(), "new");
}

#[tokio::test]
async fn case_062_registered_words_have_their_registered_meaning() {
    let origin = Origin::always(stored("x", "max-age=1, stale-while-revalidate=60")).await;
    let bench = bench(&origin, "other_methods = \"pass\"").await;
    let mut client = Client::connect(bench.address()).await;
    let post = client.request("POST", "/r/1", &[("content-length", "0")]).await;
    assert_eq!(post.header("cache-status"), Some("evenkeel; fwd=method"));
    client.get("/r/1", &[]).await;
    bench.advance(Duration::from_secs(3));
    let stale = client.get("/r/1", &[]).await;
    assert_eq!(
        stale.header("cache-status"),
        Some("evenkeel; hit; ttl=-2; detail=revalidating")
    );
}

#[tokio::test]
async fn case_063_fields_of_a_connection_end_here_and_upstream_connections_are_reused() {
    let origin = Origin::always(stored("x", "no-store")).await;
    let bench = bench(&origin, "").await;
    for _ in 0..20 {
        let fields = [
            ("connection", "close, x-secret"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("proxy-connection", "keep-alive"),
            ("x-secret", "1"),
        ];
        bench.get_with("/r/1", &fields).await;
    }
    for seen in origin.seen() {
        for name in ["connection", "keep-alive", "te", "proxy-connection", "x-secret"] {
            assert_eq!(seen.header(name), None, "{name}");
        }
    }
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn case_076_a_body_beyond_the_limit_flows_to_its_client_and_is_not_stored() {
    let large = vec![b'x'; 300 << 10];
    let origin = Origin::always(stored(&large, "max-age=60")).await;
    let bench = started(&origin, "max_body = \"100KiB\"").await;
    for _ in 0..2 {
        let answer = get(bench.address(), "/r/1").await;
        assert!(answer.complete);
        assert_eq!(answer.body.len(), large.len());
        assert!(!answer.header("cache-status").unwrap().contains("stored"));
    }
    assert_eq!(origin.hits(), 2);
    assert_eq!(bench.gateway.app().shelf().uris(), 0);
    assert_eq!(bench.gateway.app().buffered(), 0);
}

#[tokio::test]
async fn case_077_nothing_is_left_of_keys_that_nobody_asks_for_any_more() {
    let origin = Origin::always(stored("x", "max-age=60")).await;
    let bench = started(&origin, "").await;
    let mut client = Client::connect(bench.address()).await;
    for n in 0..200 {
        client.get(&format!("/r/{n}"), &[]).await;
    }
    let guard = bench.gateway.app().flights("r").unwrap();
    assert_eq!(guard, (0, 0));
}

/// A tenth of its size: what nobody reads is neither hoarded nor stored, and its client is cut off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_078_clients_who_never_read_cost_the_gateway_no_memory_and_are_cut_off() {
    let origin = Origin::always(stored(vec![b'x'; 20 << 20], "max-age=60")).await;
    let limits = Limits {
        client_idle: HALF,
        ..Limits::default()
    };
    let permits = format!("concurrency = 20\n{NO_LIMITS}");
    let contract = contract(origin.address, &permits, ORIGIN);
    let bench = Bench::start_with(&contract, Engine::system(), None, limits).await;
    let app = bench.gateway.app();
    let mut clients = Vec::new();
    for n in 0..10 {
        let mut client = Client::connect(bench.address()).await;
        client
            .send(&format!("GET /r/{n} HTTP/1.1\r\nhost: a\r\n\r\n"))
            .await;
        clients.push(client);
    }
    let in_use = || app.dependency("d").unwrap().status().in_use;
    // On a slow machine the first may be cut off before the last is asked for.
    until("all were asked for and are cut off", || {
        assert_eq!(app.buffered(), 0, "beyond `max_body` nothing is held back");
        origin.hits() == 10 && in_use() == 0
    })
    .await;
    assert_eq!(app.shelf().uris(), 0, "half an answer is no copy");
    let end = Instant::now() + PATIENCE;
    while bench.metric("evenkeel_client_connections").await != Some(0) {
        assert!(
            Instant::now() < end,
            "connections of clients that were cut off stay"
        );
    }
    drop(clients);
}
