//! Answers whose framing can be read in two ways, or that answer what nobody asked.

use crate::kit::{Bench, Client, NO_BREAKER, Origin, Reply, STALE, Then, contract};

fn chunked(fields: &str) -> Reply {
    let head = format!("HTTP/1.1 200 OK\r\n{fields}transfer-encoding: chunked\r\n\r\n");
    Reply::raw(format!("{head}5\r\nhello\r\n0\r\n\r\n"), Then::KeepAlive)
}

/// RFC 9112 §6.3: a length beside chunks is how answers are smuggled. Passed on, it would make the client read the
/// rest of the body as the beginning of its next answer.
#[tokio::test]
async fn a_length_beside_chunks_never_reaches_a_client() {
    for route in ["", STALE] {
        let origin = Origin::always(chunked("content-length: 3\r\n")).await;
        let bench = Bench::start(&contract(origin.address, NO_BREAKER, route)).await;
        let mut client = Client::connect(bench.address()).await;
        let answer = client.get("/r/1", &[]).await;
        assert_eq!(answer.status, 502, "{route}: {}", answer.text());
        assert_eq!(
            answer.header("proxy-status"),
            Some("evenkeel; error=http_protocol_error")
        );
        origin.now(Reply::ok("whole"));
        assert_eq!(client.get("/r/1", &[]).await.text(), "whole");
    }
}

/// Rule M02: the field ends here, so a client could not undo such a coding, and the end of it is not known.
#[tokio::test]
async fn m02_a_body_in_a_coding_that_was_not_offered_is_unusable_and_never_kept() {
    for coding in ["gzip", "identity", "chunked, gzip"] {
        let origin = Origin::always(Reply::ok("good")).await;
        let bench = Bench::start(&contract(origin.address, NO_BREAKER, STALE)).await;
        bench.get("/r/1").await;
        let head = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: {coding}\r\n\r\n");
        origin.now(Reply::raw(format!("{head}5\r\nhello\r\n"), Then::Close));
        let answer = bench.get("/r/1").await;
        assert_eq!(
            (answer.text().as_str(), answer.freshness()),
            ("good", "stale"),
            "{coding}"
        );
    }
}

/// Rule M03: identical lengths are one length.
#[tokio::test]
async fn m03_repeated_lengths_reach_the_client_as_one() {
    let raw = "HTTP/1.1 200 OK\r\ncontent-length: 5, 5\r\ncontent-length: 5\r\n\r\nhello";
    for route in ["", STALE] {
        let origin = Origin::always(Reply::raw(raw, Then::KeepAlive)).await;
        let bench = Bench::start(&contract(origin.address, NO_BREAKER, route)).await;
        let answer = bench.get("/r/1").await;
        let lengths: Vec<&str> = answer
            .headers
            .iter()
            .filter(|(name, _)| name == "content-length")
            .map(|(_, value)| value.as_str())
            .collect();
        assert_eq!((lengths, answer.text().as_str()), (vec!["5"], "hello"), "{route}");
    }
}

/// An upgrade, a 304 or a part that nobody asked for is no answer: what is kept stands in for it.
#[tokio::test]
async fn an_answer_to_a_question_that_was_not_asked_is_unusable() {
    let unasked = [
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\netag: \"a\"\r\n\r\n",
        "HTTP/1.1 206 Partial Content\r\ncontent-range: bytes 0-3/9\r\ncontent-length: 4\r\n\r\npart",
    ];
    for raw in unasked {
        let origin = Origin::always(Reply::ok("good")).await;
        let bench = Bench::start(&contract(origin.address, NO_BREAKER, STALE)).await;
        bench.get("/r/1").await;
        origin.now(Reply::raw(raw, Then::KeepAlive));
        // The part that this client asked for is taken out of the copy, not out of what came unasked.
        let answer = bench.get_with("/r/1", &[("range", "bytes=0-2")]).await;
        assert_eq!(
            (answer.status, answer.text().as_str(), answer.freshness()),
            (206, "goo", "stale"),
            "{raw}"
        );
        assert_eq!(bench.get("/r/2").await.status, 502, "{raw}");
    }
}

/// Rule M03: behind this hop nobody can undo a coding, because the field that names it ends here.
#[tokio::test]
async fn m03_a_request_with_another_coding_than_chunked_once_reaches_nobody() {
    let origin = Origin::always(Reply::ok("done")).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, "other_methods = \"pass\"")).await;
    for coding in [
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: chunked, chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "transfer-encoding: gzip\r\ntransfer-encoding: chunked",
    ] {
        for method in ["POST", "GET"] {
            let mut client = Client::connect(bench.address()).await;
            client
                .send(&format!(
                    "{method} /r/1 HTTP/1.1\r\nhost: a\r\n{coding}\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
                ))
                .await;
            assert_eq!(client.answer(false).await.status, 400, "{method} {coding}");
        }
    }
    assert_eq!(origin.hits(), 0);
}
