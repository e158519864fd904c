//! Bodies of requests on their way to an origin: as they come, within their limits, and how they break.

use std::time::Duration;

use evenkeel::{Ending, Engine, Rung, State};
use evenkeel_gateway::proxy::Limits;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::{
    kit::{Answer, Bench, Client, NO_BREAKER, Origin, PATIENCE, Reply, contract, until},
    sink::{Sink, take},
};

const PASS: &str = "other_methods = \"pass\"";

async fn sink(dependency: &str, route: &str) -> (Sink, Bench) {
    let sink = Sink::start().await;
    let bench = Bench::start(&contract(sink.address, dependency, &format!("{PASS}\n{route}"))).await;
    (sink, bench)
}

async fn bench_with(address: std::net::SocketAddr, dependency: &str, limits: Limits) -> Bench {
    Bench::start_with(
        &contract(address, dependency, PASS),
        Engine::system(),
        None,
        limits,
    )
    .await
}

async fn post(bench: &Bench, framing: &str, body: &str) -> Answer {
    let mut client = Client::connect(bench.address()).await;
    client
        .send(&format!(
            "POST /r/1 HTTP/1.1\r\nhost: a\r\n{framing}\r\n\r\n{body}"
        ))
        .await;
    client.answer(false).await
}

fn passes(bench: &Bench, ending: Ending) -> u64 {
    bench.gateway.app().pass_counts("r").unwrap().total(ending)
}

fn in_use(bench: &Bench) -> u32 {
    bench.gateway.app().dependency("d").unwrap().status().in_use
}

/// Bytes that tell when one is lost, doubled or out of place.
fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| u8::try_from((at ^ (at >> 8) ^ (at >> 16)) & 0xff).unwrap())
        .collect()
}

#[tokio::test]
async fn h23_a_length_stays_a_length_chunks_stay_chunks_and_nothing_stays_nothing() {
    let (sink, bench) = sink(NO_BREAKER, "").await;
    assert_eq!(post(&bench, "content-length: 5", "hello").await.text(), "5");
    let chunked = "transfer-encoding: chunked";
    assert_eq!(
        post(&bench, chunked, "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n")
            .await
            .text(),
        "5"
    );
    assert_eq!(post(&bench, "content-length: 0", "").await.text(), "0");
    assert_eq!(post(&bench, "x: 1", "").await.text(), "0");
    let framings: Vec<(Option<String>, Option<String>)> = sink
        .taken()
        .iter()
        .map(|taken| {
            let field = |name| taken.header(name).map(str::to_owned);
            (field("content-length"), field("transfer-encoding"))
        })
        .collect();
    let text = |text: &str| Some(text.to_owned());
    let expected = [
        (text("5"), None),
        (None, text("chunked")),
        (text("0"), None),
        (None, None),
    ];
    assert_eq!(framings, expected);
    assert!(sink.taken().iter().take(2).all(|taken| taken.body == b"hello"));
    assert!(
        sink.taken().iter().all(|taken| taken.connection == 0),
        "one connection"
    );
}

/// Rules M01 and M09: whichever of two framings is meant, one request stays one.
#[tokio::test]
async fn m01_a_body_that_could_end_in_two_places_never_becomes_two_requests() {
    let (sink, bench) = sink(NO_BREAKER, "").await;
    let smuggled = "0\r\n\r\nGET /r/evil HTTP/1.1\r\nhost: a\r\n\r\n";
    let both = format!("content-length: {}\r\ntransfer-encoding: chunked", smuggled.len());
    let answer = post(&bench, &both, smuggled).await;
    assert!(matches!(answer.status, 200 | 400), "{}", answer.status);
    for taken in sink.taken() {
        assert!(
            taken.header("content-length").is_none() || taken.header("transfer-encoding").is_none(),
            "one framing is sent on"
        );
        assert!(taken.body.is_empty());
    }
    let underscored = "content-length: 2\r\ncontent_length: 9\r\ntransfer_encoding: chunked";
    assert_eq!(post(&bench, underscored, "ok").await.status, 200);
    let last = sink.taken().pop().unwrap();
    assert_eq!(last.header("content_length"), None);
    assert_eq!(last.header("transfer_encoding"), None);
}

#[tokio::test]
async fn a_body_at_the_limit_is_taken_and_one_byte_more_is_413_however_it_is_framed() {
    let (sink, bench) = sink(NO_BREAKER, "max_request_body = \"10B\"").await;
    assert_eq!(
        post(&bench, "content-length: 10", "0123456789").await.text(),
        "10"
    );
    let chunked = "transfer-encoding: chunked";
    assert_eq!(
        post(&bench, chunked, "a\r\n0123456789\r\n0\r\n\r\n").await.text(),
        "10"
    );
    let stated = post(&bench, "content-length: 11", "0123456789x").await;
    assert_eq!(stated.status, 413);
    assert!(
        stated.text().contains("/problems/body-too-large"),
        "{}",
        stated.text()
    );
    assert!(stated.text().contains("nothing was sent on"));
    assert_eq!(
        stated.header("proxy-status"),
        Some("evenkeel; error=http_request_error")
    );
    assert_eq!(sink.taken().len(), 2, "not even begun");
    let found = post(&bench, chunked, "5\r\n01234\r\n6\r\n56789x\r\n0\r\n\r\n").await;
    assert_eq!(found.status, 413);
    until("the broken-off request has ended", || sink.taken().len() == 3).await;
    assert!(!sink.taken()[2].complete, "what was cut off looks cut off");
    assert_eq!(passes(&bench, Ending::Abandoned), 1);
    assert_eq!(in_use(&bench), 0);
    let misdirected = "evenkeel_requests_misdirected_total{problem=\"body-too-large\"}";
    assert_eq!(bench.metric(misdirected).await, Some(1));
}

/// 64 MiB through a gateway that holds next to none of it: an origin that does not read stops the client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_body_flows_with_backpressure_and_arrives_whole() {
    const LENGTH: usize = 64 << 20;
    // What two pairs of sockets of one host may hold between them, several times over.
    const HELD_AT_MOST: usize = 32 << 20;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (go_on, may_go_on) = tokio::sync::oneshot::channel::<()>();
    let origin = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        may_go_on.await.unwrap();
        let taken = take(&mut stream, 0).await.unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            .await
            .unwrap();
        taken.body
    });
    let route = format!("{PASS}\ndeadline = \"20s\"");
    let bench = Bench::start(&contract(address, "timeout = \"20s\"", &route)).await;
    let body = pattern(LENGTH);
    let mut client = Client::connect(bench.address()).await;
    client
        .send(&format!(
            "PUT /r/1 HTTP/1.1\r\nhost: a\r\ncontent-length: {LENGTH}\r\n\r\n"
        ))
        .await;
    let mut sent = 0;
    while let Ok(written) =
        tokio::time::timeout(Duration::from_millis(300), client.stream().write(&body[sent..])).await
    {
        sent += written.unwrap();
        assert!(sent < HELD_AT_MOST, "nobody reads, and still the client may send");
    }
    assert_eq!(bench.gateway.app().buffered(), 0);
    go_on.send(()).unwrap();
    client.stream().write_all(&body[sent..]).await.unwrap();
    assert_eq!(client.answer(false).await.text(), "ok");
    assert!(origin.await.unwrap() == body, "every byte in its place");
    assert_eq!(passes(&bench, Ending::Answered(Rung::Live)), 1);
}

#[tokio::test]
async fn a_client_that_expects_to_be_told_is_told_when_the_body_is_wanted_and_not_when_it_is_refused() {
    let (sink, bench) = sink("breaker = \"off\"", "max_request_body = \"10B\"").await;
    let head = |length: usize| {
        format!("POST /r/1 HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n\r\n")
    };
    let mut client = Client::connect(bench.address()).await;
    client.send(&head(5)).await;
    let mut told = [0; 25];
    client.stream().read_exact(&mut told).await.unwrap();
    assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.send("hello").await;
    assert_eq!(client.answer(false).await.text(), "5");
    assert_eq!(sink.taken()[0].header("expect"), None, "it was met here");
    let mut client = Client::connect(bench.address()).await;
    client.send(&head(11)).await;
    assert_eq!(client.answer(false).await.status, 413, "without a 100 before");
    assert!(
        client.closed().await,
        "the body that was held back cannot be skipped"
    );
}

#[tokio::test]
async fn an_answer_before_the_end_of_the_body_is_passed_on_and_its_connection_not_used_again() {
    let origin = Origin::always(Reply::status(403).body("no")).await;
    let bench = bench_with(origin.address, NO_BREAKER, Limits::default()).await;
    let mut client = Client::connect(bench.address()).await;
    client
        .send("POST /r/1 HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\nonly the beginning")
        .await;
    let answer = client.answer(false).await;
    assert_eq!((answer.status, answer.text().as_str()), (403, "no"));
    assert_eq!(bench.gateway.app().idle_connections("d"), 0);
    assert_eq!(bench.get("/r/1").await.status, 403);
    assert_eq!(origin.connections(), 2);
    // The client may still finish what it had begun, and is heard to the end.
    client.send(&"x".repeat(1000 - 18)).await;
    assert_eq!(
        client.get("/r/1", &[]).await.status,
        403,
        "its connection is in step"
    );
    assert_eq!(passes(&bench, Ending::Answered(Rung::Live)), 1);
}

/// Accepts one connection and reads the head of a request and the beginning of its body.
async fn beginning(listener: &TcpListener) -> BufReader<TcpStream> {
    let (stream, _) = listener.accept().await.unwrap();
    let mut stream = BufReader::new(stream);
    let mut seen = Vec::new();
    while !seen.ends_with(b"beginning") {
        seen.push(stream.read_u8().await.unwrap());
    }
    stream
}

const BEGINNING: &str = "POST /r/1 HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\nbeginning";

async fn attempts(bench: &Bench, class: &str) -> Option<u64> {
    bench
        .metric(&format!(
            "evenkeel_attempts_total{{dependency=\"d\",class=\"{class}\"}}"
        ))
        .await
}

#[tokio::test]
async fn a_client_that_leaves_inside_its_body_ends_the_request_and_blames_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let breaker = "concurrency = 1\nbreaker = { consecutive = 1, open_for = \"1h\", open_for_max = \"1h\" }";
    let bench = bench_with(address, breaker, Limits::default()).await;
    let mut client = Client::connect(bench.address()).await;
    client.send(BEGINNING).await;
    let mut upstream = beginning(&listener).await;
    assert_eq!(in_use(&bench), 1);
    drop(client);
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(PATIENCE, upstream.read_to_end(&mut rest)).await;
    assert!(
        closed.is_ok() && rest.is_empty(),
        "the connection is cut, not ended"
    );
    until("the permit is free again", || in_use(&bench) == 0).await;
    assert_eq!(passes(&bench, Ending::Abandoned), 1);
    assert_eq!(attempts(&bench, "cancelled").await, Some(1));
    assert_eq!(attempts(&bench, "outage").await, Some(0));
    assert_eq!(bench.gateway.app().idle_connections("d"), 0);
}

#[tokio::test]
async fn a_client_that_pauses_for_too_long_is_answered_408_and_blames_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let short = Duration::from_millis(100);
    for (limits, what) in [
        (
            Limits {
                upload_idle: short,
                ..Limits::default()
            },
            "the pause",
        ),
        (
            Limits {
                upload: short,
                ..Limits::default()
            },
            "the whole",
        ),
    ] {
        // Whoever leaves after half of the timeout has waited in vain; this client was the one who was waited for.
        let breaker = "timeout = \"150ms\"\nbreaker = { consecutive = 1 }";
        let bench = bench_with(address, breaker, limits).await;
        let mut client = Client::connect(bench.address()).await;
        client.send(BEGINNING).await;
        let _upstream = beginning(&listener).await;
        let answer = client.answer(false).await;
        assert_eq!(answer.status, 408, "{what}");
        assert!(answer.text().contains("/problems/request-timed-out"));
        assert!(answer.text().contains("a part of the request was sent on"));
        assert!(client.closed().await);
        let state = bench.gateway.app().dependency("d").unwrap().status().state;
        assert_eq!(state, Some(State::Closed));
        assert_eq!(passes(&bench, Ending::Abandoned), 1);
        assert_eq!(attempts(&bench, "outage").await, Some(0));
        assert_eq!(in_use(&bench), 0);
    }
}

#[tokio::test]
async fn the_time_that_a_client_takes_for_its_body_is_not_the_upstreams() {
    let (sink, bench) = sink("timeout = \"150ms\"", "deadline = \"150ms\"").await;
    let mut client = Client::connect(bench.address()).await;
    client
        .send("POST /r/1 HTTP/1.1\r\nhost: a\r\ncontent-length: 6\r\n\r\n")
        .await;
    for piece in ["a", "b", "c", "d", "e", "f"] {
        tokio::time::sleep(Duration::from_millis(80)).await;
        client.send(piece).await;
    }
    assert_eq!(client.answer(false).await.text(), "6");
    assert_eq!(sink.taken()[0].body, b"abcdef");
}

#[tokio::test]
async fn an_upstream_that_takes_nothing_more_is_given_up_and_blamed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let breaker =
        "timeout = \"200ms\"\nbreaker = { consecutive = 1, open_for = \"1h\", open_for_max = \"1h\" }";
    let bench = bench_with(address, breaker, Limits::default()).await;
    let length = 48 << 20;
    let mut client = Client::connect(bench.address()).await;
    client
        .send(&format!(
            "PUT /r/1 HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n"
        ))
        .await;
    let (mut read, mut write) = client.into_stream().into_split();
    let sending = tokio::spawn(async move {
        let piece = vec![0; 1 << 20];
        // Nobody reads, so it cannot finish; the gateway's closing ends it.
        while write.write_all(&piece).await.is_ok() {}
    });
    let (_stalled, _) = listener.accept().await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"}\n") {
        answer.push(
            tokio::time::timeout(PATIENCE, read.read_u8())
                .await
                .unwrap()
                .unwrap(),
        );
    }
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
    assert!(answer.contains("has taken effect is not known"), "{answer}");
    assert_eq!(attempts(&bench, "outage").await, Some(1));
    assert_eq!(in_use(&bench), 0);
    sending.await.unwrap();
}

#[tokio::test]
async fn an_upstream_that_breaks_off_inside_the_body_ends_in_502_and_an_unknown_effect() {
    for reset in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let bench = bench_with(address, NO_BREAKER, Limits::default()).await;
        let mut client = Client::connect(bench.address()).await;
        client.send(BEGINNING).await;
        let upstream = beginning(&listener).await;
        if reset {
            upstream.get_ref().set_zero_linger().unwrap();
        }
        drop(upstream);
        let answer = client.answer(false).await;
        assert_eq!(answer.status, 502, "reset {reset}");
        assert!(answer.text().contains("has taken effect is not known"));
        assert_eq!(passes(&bench, Ending::Refused), 1);
        assert_eq!(attempts(&bench, "outage").await, Some(1));
    }
}

/// Rules H10 and H24: trailers that are announced go on as trailers, without what ends at this hop.
#[tokio::test]
async fn h24_announced_trailers_of_a_request_go_on_as_trailers() {
    let (sink, bench) = sink(NO_BREAKER, "").await;
    let framing = "transfer-encoding: chunked\r\ntrailer: x-sum, x-mine\r\nconnection: x-mine";
    let body = "2\r\nok\r\n0\r\nx-sum: 7\r\nx-mine: 1\r\nx-late: 1\r\n\r\n";
    assert_eq!(post(&bench, framing, body).await.text(), "2");
    let taken = &sink.taken()[0];
    assert_eq!(taken.trailers, [("x-sum".to_owned(), "7".to_owned())]);
    assert_eq!(taken.header("x-sum"), None);
}

#[tokio::test]
async fn a_body_on_get_goes_on_only_where_nothing_is_ever_kept() {
    let sink = Sink::start().await;
    let text = contract(sink.address, NO_BREAKER, "").replace("class = \"read\"", "class = \"pass\"");
    let bench = Bench::start(&text).await;
    let mut client = Client::connect(bench.address()).await;
    client
        .send("GET /r/1 HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nquery")
        .await;
    assert_eq!(client.answer(false).await.text(), "5");
    assert_eq!(sink.taken()[0].body, b"query");
}

/// Rule M09: a connection that is closed under a client that is still sending is reset, and the answer with it.
#[tokio::test]
async fn m09_a_refusal_reaches_a_client_that_sends_all_of_its_body_first() {
    let sink = Sink::start().await;
    let bench = Bench::start(&contract(sink.address, NO_BREAKER, "")).await;
    let body = pattern(800 << 10);
    for method in ["POST", "GET"] {
        let mut client = Client::connect(bench.address()).await;
        client
            .send(&format!(
                "{method} /r/1 HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n",
                body.len()
            ))
            .await;
        client.stream().write_all(&body).await.unwrap();
        let expected = if method == "GET" { 200 } else { 405 };
        assert_eq!(client.answer(false).await.status, expected, "{method}");
        assert_eq!(
            client.get("/r/1", &[]).await.status,
            200,
            "its connection is in step"
        );
    }
    assert!(sink.taken().iter().all(|taken| taken.body.is_empty()));
}
