//! Requests that are only forwarded: which, how they are labelled, and what becomes of them when nobody answers.

use std::time::Duration;

use evenkeel::{Hold, HoldMode};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpListener,
};

use crate::{
    kit::{Answer, Bench, Client, NO_BREAKER, Origin, Reply, contract, until},
    sink::take,
};

const PASS: &str = "other_methods = \"pass\"";
const LADDER: &str = "other_methods = \"pass\"\nladder = [ { stale = \"60s\" }, { default = { content_type = \"a/b\", body = \"stand-in\" } } ]";

async fn bench(dependency: &str, route: &str) -> (Origin, Bench) {
    let origin = Origin::always(Reply::ok("done").header("x-data-freshness", "fresh")).await;
    let bench = Bench::start(&contract(origin.address, dependency, route)).await;
    (origin, bench)
}

async fn ask(bench: &Bench, method: &str, path: &str) -> Answer {
    Client::connect(bench.address())
        .await
        .request(method, path, &[])
        .await
}

fn passes(bench: &Bench, ending: evenkeel::Ending) -> u64 {
    bench.gateway.app().pass_counts("r").unwrap().total(ending)
}

fn class_pass(text: &str) -> String {
    text.replace("class = \"read\"", "class = \"pass\"")
}

#[tokio::test]
async fn every_method_is_forwarded_as_it_was_written_and_labelled_as_a_method() {
    let (origin, bench) = bench(NO_BREAKER, LADDER).await;
    let methods = ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW", "get", "Post"];
    for method in methods {
        let answer = ask(&bench, method, "/r/1?a=b").await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "done"), "{method}");
        assert_eq!(answer.header("cache-status"), Some("evenkeel; fwd=method"), "cs4");
        for absent in ["degraded", "proxy-status", "age"] {
            assert_eq!(answer.header(absent), None, "{method} {absent}");
        }
        assert_eq!(
            answer.header("x-data-freshness"),
            Some("fresh"),
            "what the dependency says of itself stays"
        );
    }
    let lines: Vec<String> = origin.seen().into_iter().map(|seen| seen.line).collect();
    assert_eq!(lines, methods.map(|method| format!("{method} /r/1?a=b HTTP/1.1")));
    assert_eq!(bench.gateway.app().snapshots().0, 0, "nothing is kept of them");
    let series = "evenkeel_passes_total{route=\"r\",ending=\"answered\",reason=\"none\"}";
    assert_eq!(bench.metric(series).await, Some(8));
    let reads = bench.gateway.app().counts("r").unwrap();
    assert_eq!(reads.calls(), 0, "they are not counted as reads");
}

#[tokio::test]
async fn connect_and_trace_are_taken_nowhere_and_never_sent() {
    let (origin, bench) = bench(NO_BREAKER, PASS).await;
    for head in [
        "TRACE /r/1 HTTP/1.1\r\nhost: a\r\n\r\n",
        "TRACE /nowhere HTTP/1.1\r\nhost: a\r\n\r\n",
        "CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n",
    ] {
        let mut client = Client::connect(bench.address()).await;
        client.send(head).await;
        let answer = client.answer(false).await;
        assert_eq!(answer.status, 501, "{head}");
        assert!(answer.text().contains("/problems/method-not-implemented"));
        assert_eq!(answer.header("cache-status"), None, "cs6");
    }
    assert_eq!(origin.hits(), 0);
}

/// Rule H13, and RFC 9110 §9.3.7 for the asterisk.
#[tokio::test]
async fn h13_options_for_the_gateway_itself_end_here_and_others_count_the_hop() {
    let (origin, bench) = bench(NO_BREAKER, PASS).await;
    let mut client = Client::connect(bench.address()).await;
    client.send("OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(client.answer(false).await.status, 204);
    for (forwards, status) in [
        ("0", 204),
        ("x", 400),
        ("-1", 400),
        ("", 400),
        ("1", 200),
        ("10", 200),
    ] {
        let answer = client
            .request("OPTIONS", "/r/1", &[("max-forwards", forwards)])
            .await;
        assert_eq!(answer.status, status, "{forwards}");
    }
    let seen: Vec<Option<String>> = origin
        .seen()
        .iter()
        .map(|seen| seen.header("max-forwards").map(str::to_owned))
        .collect();
    assert_eq!(seen, [Some("0".to_owned()), Some("9".to_owned())]);
    client.request("POST", "/r/1", &[("max-forwards", "7")]).await;
    let last = origin.seen().pop().unwrap();
    assert_eq!(
        last.header("max-forwards"),
        Some("7"),
        "it means nothing elsewhere"
    );
}

#[tokio::test]
async fn nothing_stands_in_for_what_is_forwarded() {
    let (origin, bench) = bench(NO_BREAKER, LADDER).await;
    assert_eq!(bench.get("/r/1").await.status, 200);
    origin.stop().await;
    assert_eq!(bench.get("/r/1").await.freshness(), "stale");
    for method in ["POST", "DELETE", "OPTIONS"] {
        let answer = ask(&bench, method, "/r/1").await;
        assert_eq!(answer.status, 502, "{method}");
        assert_eq!(answer.header("x-data-freshness"), None);
        assert_eq!(answer.header("cache-status"), None);
        assert_eq!(
            answer.header("proxy-status"),
            Some("evenkeel; error=connection_refused")
        );
        let says_unsent = answer.text().contains("it has had no effect");
        assert_eq!(says_unsent, method != "OPTIONS", "{}", answer.text());
    }
    assert_eq!(passes(&bench, evenkeel::Ending::Refused), 3);
}

/// Rule C27: a copy that contradicts a write is wrong, even as a last resort.
#[tokio::test]
async fn c27_a_write_that_worked_retires_the_copy_of_its_target_and_one_that_failed_does_not() {
    for (status, stays) in [(204, false), (303, false), (404, true), (503, true)] {
        let (origin, bench) = bench(NO_BREAKER, LADDER).await;
        bench.get("/r/1").await;
        bench.get("/r/2").await;
        origin.now(Reply::status(status));
        assert_eq!(ask(&bench, "PUT", "/r/1").await.status, status);
        origin.stop().await;
        let expected = if stays { "stale" } else { "default" };
        assert_eq!(bench.get("/r/1").await.freshness(), expected, "{status}");
        assert_eq!(bench.get("/r/2").await.freshness(), "stale", "{status}");
    }
}

/// Rules H07, H09 and G33: an origin that reads a write and closes has perhaps done it.
#[tokio::test]
async fn h09_a_write_that_may_have_left_is_never_sent_again_and_its_effect_is_called_unknown() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let origin = tokio::spawn(async move {
        let mut lines = Vec::new();
        for connection in 0..2 {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            // The first request of a connection is answered, the second read and left.
            lines.push(take(&mut stream, connection).await.unwrap().line);
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                .await
                .unwrap();
            lines.push(take(&mut stream, connection).await.unwrap().line);
        }
        // Nobody comes a third time.
        assert!(
            tokio::time::timeout(Duration::from_millis(200), listener.accept())
                .await
                .is_err()
        );
        lines
    });
    let bench = Bench::start(&contract(address, NO_BREAKER, PASS)).await;
    assert_eq!(bench.get("/r/1").await.status, 200);
    let lost = ask(&bench, "POST", "/r/1").await;
    assert_eq!(lost.status, 502);
    assert!(
        lost.text().contains("has taken effect is not known"),
        "{}",
        lost.text()
    );
    assert_eq!(
        lost.header("proxy-status"),
        Some("evenkeel; error=connection_terminated")
    );
    assert_eq!(ask(&bench, "PATCH", "/r/1").await.status, 200);
    assert_eq!(ask(&bench, "POST", "/r/1").await.status, 502);
    let lines = origin.await.unwrap();
    let methods: Vec<&str> = lines.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(methods, ["GET", "POST", "PATCH", "POST"]);
}

/// Rule H07: what may be repeated is, once, when an idle connection turns out to be closed.
#[tokio::test]
async fn h07_a_delete_on_a_connection_that_had_been_closed_is_sent_once_more() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let origin = tokio::spawn(async move {
        let mut lines = Vec::new();
        for answers in [1, 1] {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            for _ in 0..answers {
                lines.push(take(&mut stream, 0).await.unwrap().line);
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                    .await
                    .unwrap();
            }
            if let Some(unanswered) = take(&mut stream, 0).await {
                lines.push(unanswered.line);
            }
        }
        lines
    });
    let bench = Bench::start(&contract(address, NO_BREAKER, PASS)).await;
    assert_eq!(bench.get("/r/1").await.status, 200);
    assert_eq!(ask(&bench, "DELETE", "/r/1").await.status, 200);
    drop(bench);
    let lines = origin.await.unwrap();
    assert_eq!(
        lines,
        [
            "GET /r/1 HTTP/1.1",
            "DELETE /r/1 HTTP/1.1",
            "DELETE /r/1 HTTP/1.1"
        ]
    );
}

/// Rule H09: a connection that was closed while it was idle has taken nothing, so another one is used.
#[tokio::test]
async fn h09_a_write_that_provably_never_left_goes_out_on_another_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (closed, is_closed) = tokio::sync::oneshot::channel();
    let origin = tokio::spawn(async move {
        let mut taken = Vec::new();
        let mut closed = Some(closed);
        for connection in 0..2 {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            taken.push(take(&mut stream, connection).await.unwrap());
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                .await
                .unwrap();
            drop(stream);
            if let Some(closed) = closed.take() {
                closed.send(()).unwrap();
            }
        }
        taken
    });
    let bench = Bench::start(&contract(address, NO_BREAKER, PASS)).await;
    assert_eq!(bench.get("/r/1").await.status, 200);
    is_closed.await.unwrap();
    // The end of the connection has to be seen before the next request: it is on its way within this host.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut client = Client::connect(bench.address()).await;
    client
        .send("POST /r/1 HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello")
        .await;
    assert_eq!(client.answer(false).await.status, 200);
    let taken = origin.await.unwrap();
    assert_eq!(
        (taken[1].connection, taken[1].body.as_slice()),
        (1, &b"hello"[..])
    );
}

#[tokio::test]
async fn a_write_without_an_answer_in_time_ends_in_504_blames_the_dependency_and_is_called_unknown() {
    let dependency = "timeout = \"100ms\"\nconcurrency = 1\nbreaker = { consecutive = 2, open_for = \"1h\", open_for_max = \"1h\" }";
    let origin = Origin::always(Reply::hang()).await;
    let bench = Bench::start(&contract(origin.address, dependency, PASS)).await;
    for _ in 0..2 {
        let answer = ask(&bench, "POST", "/r/1").await;
        assert_eq!(answer.status, 504);
        assert!(answer.text().contains("has taken effect is not known"));
        assert!(answer.text().contains("\"reason\":\"timed-out\""));
        assert_eq!(
            answer.header("proxy-status"),
            Some("evenkeel; error=http_response_timeout")
        );
    }
    let refused = ask(&bench, "POST", "/r/1").await;
    assert_eq!(refused.status, 503);
    assert!(
        refused.text().contains("/problems/breaker-open"),
        "{}",
        refused.text()
    );
    assert!(refused.text().contains("it has had no effect"));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(origin.hits(), 2);
    assert_eq!(bench.gateway.app().dependency("d").unwrap().status().in_use, 0);
}

#[tokio::test]
async fn error_answers_pass_as_they_are_and_count_as_failures() {
    let dependency = "breaker = { consecutive = 2, open_for = \"1h\", open_for_max = \"1h\" }";
    let (origin, bench) = bench(dependency, LADDER).await;
    origin.now(Reply::status(503).body("broken").header("retry-after", "7"));
    for _ in 0..2 {
        let answer = ask(&bench, "POST", "/r/1").await;
        assert_eq!((answer.status, answer.text().as_str()), (503, "broken"));
        assert_eq!(answer.header("retry-after"), Some("7"));
        assert_eq!(answer.header("cache-status"), Some("evenkeel; fwd=method"));
    }
    assert_eq!(passes(&bench, evenkeel::Ending::Failed), 2);
    let refused = ask(&bench, "POST", "/r/1").await;
    assert!(refused.text().contains("/problems/breaker-open"));
    assert_eq!(
        bench.get("/r/1").await.freshness(),
        "default",
        "reads and writes share the breaker"
    );
}

#[tokio::test]
async fn holds_that_keep_calls_away_keep_writes_away_too() {
    let (origin, bench) = bench(NO_BREAKER, LADDER).await;
    let dependency = bench.gateway.app().dependency("d").unwrap();
    for mode in [HoldMode::ForcedOpen, HoldMode::ForcedOff] {
        dependency
            .hold(Hold {
                mode,
                by: "ana".into(),
                why: "migration".into(),
                lasts: None,
            })
            .unwrap();
        let answer = ask(&bench, "POST", "/r/1").await;
        assert_eq!(answer.status, 503, "{mode:?}");
        assert!(answer.text().contains("/problems/held"));
        assert_eq!(origin.hits(), 0);
    }
    dependency.release("ana").unwrap();
    assert_eq!(ask(&bench, "POST", "/r/1").await.status, 200);
}

#[tokio::test]
async fn a_permit_lasts_as_long_as_the_answer_flows() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this";
    let origin = Origin::always(Reply::raw(head, crate::kit::Then::Hang)).await;
    let bench = Bench::start(&contract(origin.address, "concurrency = 1", PASS)).await;
    let mut first = Client::connect(bench.address()).await;
    first.send("POST /r/1 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let mut some = [0; 16];
    first.stream().read_exact(&mut some).await.unwrap();
    let second = ask(&bench, "POST", "/r/1").await;
    assert_eq!(second.status, 503);
    assert!(second.text().contains("/problems/at-capacity"));
    drop(first);
    let status = || bench.gateway.app().dependency("d").unwrap().status().in_use;
    until("the permit is free again", || status() == 0).await;
    assert_eq!(passes(&bench, evenkeel::Ending::Abandoned), 1);
}

#[tokio::test]
async fn a_route_of_class_pass_forwards_every_method_and_keeps_nothing() {
    let origin = Origin::always(Reply::ok("live").header("etag", "\"v1\"")).await;
    let bench = Bench::start(&class_pass(&contract(origin.address, NO_BREAKER, ""))).await;
    for method in ["GET", "HEAD", "POST"] {
        let answer = Client::connect(bench.address())
            .await
            .request(
                method,
                "/r/1",
                &[("if-none-match", "\"v0\""), ("range", "bytes=0-1")],
            )
            .await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-data-freshness"), None, "{method}");
        let label = if method == "POST" {
            "fwd=method"
        } else {
            "fwd=bypass"
        };
        assert_eq!(
            answer.header("cache-status"),
            Some(format!("evenkeel; {label}").as_str())
        );
        let seen = origin.seen().pop().unwrap();
        assert_eq!(seen.header("if-none-match"), Some("\"v0\""));
        assert_eq!(seen.header("range"), Some("bytes=0-1"));
    }
    assert_eq!(origin.connections(), 1, "connections are reused");
    assert_eq!(bench.gateway.app().snapshots().0, 0);
    assert!(bench.gateway.app().counts("r").is_none(), "it has no reads");
    assert_eq!(
        passes(&bench, evenkeel::Ending::Answered(evenkeel::Rung::Live)),
        3
    );
    origin.stop().await;
    let answer = bench.get("/r/1").await;
    assert_eq!(answer.status, 502);
    assert!(!answer.text().contains("effect"), "a GET has none");
}
