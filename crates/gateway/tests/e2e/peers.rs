//! Fields by which a client, or a hop, claims what only others may say: case by case.

use crate::kit::{Bench, Client, NO_BREAKER, Origin, Reply, STALE, contract, contract_with};

const CACHED: &str = "freshness = \"origin\"";

/// Case 079: links that the origin makes of forwarding fields, on every kind of route that keeps, by every such field.
#[tokio::test]
async fn case_079_a_forwarded_host_poisons_no_copy() {
    for route in [STALE, CACHED, "ladder = [ { stale = \"60s\" } ]\ncoalesce = true"] {
        for field in [
            "x-forwarded-host",
            "x-forwarded-server",
            "x-forwarded-port",
            "x-forwarded-prefix",
            "x-forwarded-scheme",
            "x-forwarded-proto",
            "x-forwarded-for",
            "x_forwarded_host",
            "x-host",
            "x-original-url",
            "x-rewrite-url",
            "x-real-ip",
            "forwarded",
        ] {
            let origin = Origin::start(|seen| {
                let links: Vec<String> = seen
                    .headers
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                Reply::ok(links.join("\n")).header("cache-control", "max-age=60")
            })
            .await;
            let bench = Bench::start(&contract(origin.address, NO_BREAKER, route)).await;
            let evil = bench.get_with("/r/1", &[(field, "evil")]).await;
            assert!(!evil.text().contains("evil"), "{route} {field}: {}", evil.text());
            origin.stop().await;
            let plain = bench.get("/r/1").await;
            assert_eq!(plain.status, 200, "{route} {field}");
            assert!(!plain.text().contains("evil"), "{route} {field}");
        }
    }
}

/// Case 079 from the other side: a listed peer's word is added to and not replaced, and still selects no copy.
#[tokio::test]
async fn case_079_the_word_of_a_listed_peer_goes_on_and_copies_are_told_apart_by_the_scheme_alone() {
    let origin = Origin::start(|_| Reply::ok("x").header("cache-control", "max-age=60")).await;
    let top = "trusted_peers = [\"127.0.0.1\"]";
    let bench = Bench::start(&contract_with(origin.address, top, NO_BREAKER, CACHED)).await;
    let said = |address: &'static str, proto: &'static str| {
        [
            ("x-forwarded-for", address),
            ("x-forwarded-proto", proto),
            ("x-real-ip", "9.9.9.9"),
        ]
    };
    bench.get_with("/r/1", &said("192.0.2.1", "http")).await;
    bench.get_with("/r/1", &said("192.0.2.2", "http")).await;
    assert_eq!(origin.hits(), 1, "whoever it comes from, it is one copy");
    bench.get_with("/r/1", &said("192.0.2.1", "https")).await;
    assert_eq!(origin.hits(), 2, "another scheme is another copy");
    let seen = &origin.seen()[0];
    assert_eq!(seen.header("x-forwarded-for"), Some("192.0.2.1, 127.0.0.1"));
    assert_eq!(
        seen.header("x-real-ip"),
        None,
        "it says nothing that X-Forwarded-For does not"
    );
}

/// Of a length beside chunks the length is dropped, and the connection ends with the answer, as RFC 9112 §6.3 allows: nothing
/// behind the request is read.
const CHUNKS_WIN: [&str; 2] = [
    "content-length: 5\r\ntransfer-encoding: chunked",
    "transfer-encoding: chunked\r\ncontent-length: 5",
];

/// Case 080: what could be read in two ways is answered 400, the connection is closed, and nobody else's request is made
/// of its rest.
#[tokio::test]
async fn case_080_ambiguous_framing_is_a_400_and_the_end_of_the_connection() {
    let origin = Origin::always(Reply::ok("x")).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, "other_methods = \"pass\"")).await;
    for framing in [
        CHUNKS_WIN[0],
        CHUNKS_WIN[1],
        "transfer-encoding: chunked, identity",
        "transfer-encoding: identity, chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "transfer-encoding: xchunked",
        "content-length: 5\r\ncontent-length: 6",
        "content-length: 5, 6",
        "content-length: +5",
        "transfer-encoding : chunked",
    ] {
        for method in ["POST", "GET"] {
            let mut client = Client::connect(bench.address()).await;
            client
                .send(&format!(
                    "{method} /r/1 HTTP/1.1\r\nhost: a\r\n{framing}\r\n\r\n0\r\n\r\nGET /r/smuggled HTTP/1.1\r\nhost: a\r\n\r\n"
                ))
                .await;
            let answer = client.answer(false).await;
            if !CHUNKS_WIN.contains(&framing) {
                assert_eq!(answer.status, 400, "{method} {framing}");
            }
            assert!(client.closed().await, "{method} {framing}: it stays open");
        }
    }
    let smuggled = origin
        .seen()
        .into_iter()
        .any(|seen| seen.line.contains("smuggled"));
    assert!(!smuggled, "the origin saw a request that nobody sent");
}

/// Case 080, the other half: an upgrade to which the origin says 200 is an ordinary answer, and what follows is a request.
#[tokio::test]
async fn case_080_an_upgrade_that_the_origin_does_not_make_leaves_a_connection_of_requests() {
    let origin = Origin::start(|seen| Reply::ok(seen.line.clone())).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, "other_methods = \"pass\"")).await;
    let mut client = Client::connect(bench.address()).await;
    client
        .send(
            "GET /r/1 HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n\
             GET /r/2 HTTP/1.1\r\nhost: a\r\n\r\n",
        )
        .await;
    assert_eq!(client.answer(false).await.text(), "GET /r/1 HTTP/1.1");
    assert_eq!(client.answer(false).await.text(), "GET /r/2 HTTP/1.1");
    assert_eq!(origin.hits(), 2);
    assert!(origin.seen().iter().all(|seen| seen.header("upgrade").is_none()));
}

/// Case 081: credentials for the next hop and fields of a connection cross it in neither direction, and no later hit has
/// them.
#[tokio::test]
async fn case_081_fields_of_a_hop_cross_it_in_neither_direction_and_are_in_no_copy() {
    let hop = [
        ("proxy-authorization", "Basic c2VjcmV0"),
        ("te", "gzip"),
        ("upgrade", "x"),
        ("keep-alive", "timeout=9"),
        ("proxy-connection", "keep-alive"),
        ("x-named", "secret"),
        ("connection", "x-named"),
    ];
    for route in [STALE, CACHED, "other_methods = \"pass\""] {
        let reply = Reply::ok("x")
            .header("cache-control", "max-age=60")
            .header("proxy-authenticate", "Basic")
            .header("proxy-authentication-info", "x")
            .header("keep-alive", "timeout=9")
            .header("x-own", "secret")
            .header("connection", "x-own");
        let origin = Origin::always(reply).await;
        let bench = Bench::start(&contract(origin.address, NO_BREAKER, route)).await;
        let method = if route.contains("pass") { "POST" } else { "GET" };
        let mut client = Client::connect(bench.address()).await;
        let mut fields = hop.to_vec();
        fields.push(("content-length", "0"));
        let first = client.request(method, "/r/1", &fields).await;
        let later = client.get("/r/1", &[]).await;
        for answer in [first, later] {
            assert_eq!(answer.status, 200, "{route}");
            for name in ["proxy-authenticate", "proxy-authentication-info", "x-own"] {
                assert_eq!(answer.header(name), None, "{route} {name}");
            }
        }
        for seen in origin.seen() {
            for (name, _) in hop {
                assert!(seen.header(name).is_none(), "{route} {name}");
            }
        }
    }
}
