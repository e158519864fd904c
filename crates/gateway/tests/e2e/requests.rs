//! What is a request, and what of it reaches the origin.

use std::sync::Arc;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Notify,
};

use crate::kit::{Bench, Client, NO_BREAKER, Origin, Reply, STALE, contract};

async fn bench(route: &str) -> (Origin, Bench) {
    let origin = Origin::always(Reply::ok("body").header("etag", "\"v1\"")).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, route)).await;
    (origin, bench)
}

#[tokio::test]
async fn other_methods_and_other_paths_are_refused_with_a_problem_and_never_sent() {
    let (origin, bench) = bench(STALE).await;
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"] {
        let answer = Client::connect(bench.address())
            .await
            .request(method, "/r/1", &[])
            .await;
        assert_eq!(
            (answer.status, answer.header("allow")),
            (405, Some("GET, HEAD")),
            "{method}"
        );
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        let proxy_status = answer.header("proxy-status");
        assert_eq!(proxy_status, Some("evenkeel; error=http_request_error"), "ps2");
    }
    for path in ["/", "/r", "/r/", "/r/1/2", "/R/1"] {
        let answer = bench.get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.text().contains("/problems/no-such-route"));
        assert_eq!(answer.header("cache-status"), None, "cs6");
    }
    assert_eq!(origin.hits(), 0);
    assert_eq!(
        bench
            .metric("evenkeel_requests_misdirected_total{problem=\"no-such-route\"}")
            .await,
        Some(5)
    );
}

/// Rules M01, M07, M08, H21: what could be read in two ways is refused before anything else.
#[tokio::test]
async fn m08_ambiguous_requests_are_refused_and_never_sent() {
    let (origin, bench) = bench(STALE).await;
    let wrong = [
        "GET /r/1 HTTP/1.1\r\n\r\n",
        "GET /r/1 HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n",
        "GET /r/1 HTTP/1.1\r\nhost: a b\r\n\r\n",
        "GET /r/1 HTTP/1.1\r\nhost: \r\n\r\n",
        "GET https://a/r/1 HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /r/.. HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /r/%2e%2E HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /r/1 HTTP/1.1\r\nhost : a\r\n\r\n",
        "GET /r/1 HTTP/1.1\r\nhost: a\r\nx: b\rc\r\n\r\n",
        "GET /r/1 HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx",
        "GET /r/1 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip\r\n\r\n",
    ];
    for text in wrong {
        let mut client = Client::connect(bench.address()).await;
        client.send(text).await;
        assert_eq!(client.answer(false).await.status, 400, "{text:?}");
    }
    assert_eq!(origin.hits(), 0);
}

#[tokio::test]
async fn m08_the_absolute_form_wins_over_host() {
    let (origin, bench) = bench(STALE).await;
    let mut client = Client::connect(bench.address()).await;
    client
        .send("GET http://real.example/r/1?q HTTP/1.1\r\nhost: other\r\n\r\n")
        .await;
    assert_eq!(client.answer(false).await.status, 200);
    let seen = &origin.seen()[0];
    assert_eq!(
        (seen.line.as_str(), seen.header("host")),
        ("GET /r/1?q HTTP/1.1", Some("real.example"))
    );
}

#[tokio::test]
async fn heads_over_the_limits_are_answered_431() {
    let (origin, bench) = bench(STALE).await;
    let long = "x".repeat(33 << 10);
    let answer = bench.get_with("/r/1", &[("x-long", &long)]).await;
    assert_eq!(answer.status, 431);
    let many: Vec<(String, String)> = (0..100).map(|n| (format!("x-{n}"), "1".into())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(bench.get_with("/r/1", &many).await.status, 431, "100 and Host");
    assert_eq!(
        bench.get_with("/r/1", &many[1..]).await.status,
        200,
        "99 and Host"
    );
    assert_eq!(origin.hits(), 1);
}

/// Case 063 and rules H10-H12: connection fields end here, own fields are added, one connection is reused.
#[tokio::test]
async fn case_063_hop_by_hop_fields_end_at_the_hop_and_the_upstream_connection_is_reused() {
    let (origin, bench) = bench(STALE).await;
    let fields = [
        ("connection", "close, x-secret"),
        ("keep-alive", "timeout=5"),
        ("te", "trailers"),
        ("proxy-connection", "keep-alive"),
        ("x-secret", "1"),
        ("x-forwarded-for", "6.6.6.6"),
        ("forwarded", "for=6.6.6.6"),
        ("x-kept", "1"),
    ];
    for _ in 0..20 {
        assert_eq!(bench.get_with("/r/1", &fields).await.status, 200);
    }
    assert_eq!(origin.connections(), 1);
    for seen in origin.seen() {
        let mut names: Vec<&str> = seen.headers.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        let expected = [
            "forwarded",
            "host",
            "via",
            "x-forwarded-for",
            "x-forwarded-proto",
            "x-kept",
        ];
        assert_eq!(names, expected);
        assert_eq!(seen.header("x-forwarded-for"), Some("127.0.0.1"));
        assert_eq!(seen.header("via"), Some("1.1 evenkeel"));
    }
}

/// M09: a body that nobody reads is never taken for the next request.
#[tokio::test]
async fn a_body_on_get_is_not_sent_on_and_not_taken_for_a_request() {
    let (origin, bench) = bench(STALE).await;
    let smuggled = "GET /r/evil HTTP/1.1\r\nhost: a\r\n\r\n";
    let mut client = Client::connect(bench.address()).await;
    let length = smuggled.len();
    client
        .send(&format!(
            "GET /r/1 HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{smuggled}"
        ))
        .await;
    assert_eq!(client.answer(false).await.status, 200);
    drop(client);
    let seen = origin.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(
        (seen[0].line.as_str(), seen[0].header("content-length")),
        ("GET /r/1 HTTP/1.1", None)
    );
}

/// Rules H25 and C25: HEAD goes on as HEAD, is not kept, and is answered from a kept GET when all else fails.
#[tokio::test]
async fn h25_head_is_forwarded_not_kept_and_answered_from_the_get() {
    let (origin, bench) = bench(STALE).await;
    let mut client = Client::connect(bench.address()).await;
    let live = client.request("HEAD", "/r/1", &[]).await;
    assert_eq!((live.status, live.header("content-length")), (200, Some("4")));
    assert!(origin.seen()[0].line.starts_with("HEAD "));
    assert_eq!(bench.gateway.app().snapshots().0, 0);
    assert_eq!(client.get("/r/1", &[]).await.text(), "body");
    client.request("HEAD", "/r/1", &[]).await;
    assert_eq!(
        bench.gateway.app().snapshots().0,
        1,
        "HEAD left the copy of GET alone"
    );
    origin.stop().await;
    let stale = client.request("HEAD", "/r/1", &[]).await;
    assert_eq!((stale.status, stale.freshness()), (200, "stale"));
    assert_eq!(stale.header("content-length"), Some("4"));
    assert_eq!(
        client.get("/r/1", &[]).await.text(),
        "body",
        "the connection is in step"
    );
}

/// Under `freshness none` validators and ranges are answered from a full fetch.
#[tokio::test]
async fn validators_and_ranges_do_not_reach_the_origin_where_answers_are_kept() {
    let (origin, bench) = bench(STALE).await;
    let known = bench.get_with("/r/1", &[("if-none-match", "W/\"v1\"")]).await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    assert_eq!(known.header("etag"), Some("\"v1\""));
    assert_eq!(known.header("content-length"), None);
    let changed = bench.get_with("/r/1", &[("if-none-match", "\"v0\"")]).await;
    assert_eq!((changed.status, changed.text().as_str()), (200, "body"));
    let ranged = bench
        .get_with("/r/1", &[("range", "bytes=0-1"), ("if-range", "\"v1\"")])
        .await;
    assert_eq!((ranged.status, ranged.text().as_str()), (206, "bo"));
    for seen in origin.seen() {
        for field in ["if-none-match", "range", "if-range"] {
            assert_eq!(seen.header(field), None);
        }
    }
    origin.stop().await;
    let stale = bench.get_with("/r/1", &[("if-none-match", "\"v1\"")]).await;
    assert_eq!((stale.status, stale.freshness()), (304, "stale"));
}

#[tokio::test]
async fn validators_and_ranges_are_the_origins_affair_where_nothing_is_kept() {
    let (origin, bench) = bench("").await;
    bench
        .get_with("/r/1", &[("range", "bytes=0-1"), ("if-none-match", "\"v0\"")])
        .await;
    assert_eq!(origin.seen()[0].header("range"), Some("bytes=0-1"));
    assert_eq!(origin.seen()[0].header("if-none-match"), Some("\"v0\""));
}

#[tokio::test]
async fn a_missing_scope_part_is_a_400_and_never_an_empty_text() {
    let (origin, bench) = bench(&format!("{STALE}\nscope = [\"path:id\", \"query:lang\"]")).await;
    for path in [
        "/r/1",
        "/r/1?lang=",
        "/r/1?lang",
        "/r/1?lang=de&lang=en",
        "/r/1?xlang=de",
    ] {
        let answer = bench.get(path).await;
        assert_eq!(answer.status, 400, "{path}");
        assert!(answer.text().contains("`lang`"), "{}", answer.text());
    }
    assert_eq!(origin.hits(), 0);
    assert_eq!(bench.get("/r/1?lang=de").await.status, 200);
}

/// Rule H22: lines of the same name keep their order and Set-Cookie is never folded.
#[tokio::test]
async fn h22_fields_of_the_origin_pass_unchanged_and_in_order() {
    let reply = Reply::ok("x")
        .header("set-cookie", "a=1, b")
        .header("set-cookie", "c=2")
        .header("cache-control", "no-cache=\"x\", odd")
        .header("x-odd", "\u{e4}");
    for route in ["", STALE] {
        let origin = Origin::always(reply.clone()).await;
        let bench = Bench::start(&contract(origin.address, NO_BREAKER, route)).await;
        let answer = bench.get("/r/1").await;
        let cookies: Vec<&str> = answer
            .headers
            .iter()
            .filter(|(name, _)| name == "set-cookie")
            .map(|(_, value)| value.as_str())
            .collect();
        assert_eq!(cookies, ["a=1, b", "c=2"]);
        assert_eq!(answer.header("cache-control"), Some("no-cache=\"x\", odd"));
        assert!(answer.header("x-odd").is_some());
    }
}

#[tokio::test]
async fn a_client_of_http_1_0_is_served_and_its_version_is_told() {
    let (origin, bench) = bench(STALE).await;
    let mut client = Client::connect(bench.address()).await;
    client.send("GET /r/1 HTTP/1.0\r\nhost: a\r\n\r\n").await;
    let answer = client.answer(false).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "body"));
    assert!(client.closed().await);
    let seen = &origin.seen()[0];
    assert_eq!(
        (seen.line.as_str(), seen.header("via")),
        ("GET /r/1 HTTP/1.1", Some("1.0 evenkeel"))
    );
}

#[tokio::test]
async fn an_upstream_may_be_given_by_name() {
    let origin = Origin::always(Reply::ok("named")).await;
    let text = contract(origin.address, NO_BREAKER, STALE).replace("http://127.0.0.1", "http://localhost");
    let bench = Bench::start(&text).await;
    assert_eq!(bench.get("/r/1").await.text(), "named");
    origin.stop().await;
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.text().as_str(), answer.freshness()), ("named", "stale"));
}

/// Rule M10: a server that is tired of an idle connection says 408 on it and closes. That answers nobody's request.
#[tokio::test]
async fn m10_what_comes_on_an_idle_connection_is_no_answer_and_costs_none() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tired = Arc::new(Notify::new());
    let said = Arc::new(Notify::new());
    let origin = tokio::spawn({
        let (tired, said) = (Arc::clone(&tired), Arc::clone(&said));
        async move {
            let mut first = answered(&listener, "one").await;
            tired.notified().await;
            first
                .write_all(b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
                .await
                .unwrap();
            drop(first);
            said.notify_one();
            answered(&listener, "two").await
        }
    });
    let bench = Bench::start(&contract(address, NO_BREAKER, "")).await;
    assert_eq!(bench.get("/r/1").await.text(), "one");
    tired.notify_one();
    said.notified().await;
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "two"));
    drop(origin.await.unwrap());
}

/// Accepts one connection and answers its first request.
async fn answered(listener: &TcpListener, body: &str) -> TcpStream {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream
}
