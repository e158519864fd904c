//! What listed peers say beside the question: how long they wait, how much it matters, to which trace it belongs.

use std::time::Duration;

use crate::kit::{Bench, Client, NO_BREAKER, NO_LIMITS, Origin, Reply, contract_with, get_with, until};

const LISTED: &str = "trusted_peers = [\"127.0.0.0/8\"]";
const OTHERS: &str = "trusted_peers = [\"::1\"]";
const DEADLINES: &str = "deadline_from = [\"x-timeout-ms\", \"grpc-timeout\"]";
const STALE_AND_OTHERS: &str = "ladder = [ { stale = \"60s\" } ]\nother_methods = \"pass\"";

async fn unread(bench: &Bench, what: &str) -> Option<u64> {
    bench
        .metric(&format!("evenkeel_peer_words_unread_total{{what=\"{what}\"}}"))
        .await
}

/// It shortens the time that a request may take, from listed peers alone, and never lengthens it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listed_peer_shortens_the_deadline_and_nobody_else_does() {
    for (peers, fields, is_short) in [
        (LISTED, ("x-timeout-ms", "100"), true),
        (LISTED, ("grpc-timeout", "100m"), true),
        (LISTED, ("grpc-timeout", "1H"), false),
        (OTHERS, ("x-timeout-ms", "1"), false),
    ] {
        for method in ["GET", "POST"] {
            let origin = Origin::always(Reply::hang()).await;
            let dependency = format!("{NO_BREAKER}\ntimeout = \"600ms\"");
            let route = "deadline = \"600ms\"\nother_methods = \"pass\"";
            let text = contract_with(
                origin.address,
                &format!("{peers}\n{DEADLINES}"),
                &dependency,
                route,
            );
            let bench = Bench::start(&text).await;
            let began = tokio::time::Instant::now();
            let mut client = Client::connect(bench.address()).await;
            let answer = client
                .request(method, "/r/1", &[fields, ("content-length", "0")])
                .await;
            assert_eq!(answer.status, 504, "{peers} {fields:?} {method}");
            // Lower bounds alone: whoever may not shorten it waits for all of the timeout.
            let least = if is_short { 100 } else { 600 };
            assert!(
                began.elapsed() >= Duration::from_millis(least),
                "{fields:?} {method}"
            );
            if is_short {
                // Nobody has waited for as long as the dependency may take, so it is not to blame.
                let dependency = bench.gateway.app().dependency("d").unwrap().clone();
                if method == "GET" {
                    assert_eq!(dependency.status().state, None);
                }
            }
        }
    }
}

/// Whom nobody waits for any more is not sent on; a copy may still answer.
#[tokio::test]
async fn a_request_whose_time_is_over_when_it_arrives_asks_nobody() {
    let origin = Origin::always(Reply::ok("kept")).await;
    let text = contract_with(
        origin.address,
        &format!("{LISTED}\n{DEADLINES}"),
        NO_BREAKER,
        STALE_AND_OTHERS,
    );
    let bench = Bench::start(&text).await;
    bench.get("/r/1").await;
    let over = [("x-timeout-ms", "0")];
    let answer = bench.get_with("/r/1", &over).await;
    assert_eq!(
        (answer.status, answer.freshness(), answer.text().as_str()),
        (200, "stale", "kept")
    );
    let answer = bench.get_with("/r/2", &over).await;
    assert_eq!(answer.status, 504);
    assert!(answer.text().contains("timed-out"), "{}", answer.text());
    let mut client = Client::connect(bench.address()).await;
    let answer = client
        .request("POST", "/r/2", &[over[0], ("content-length", "0")])
        .await;
    assert_eq!(answer.status, 504);
    assert!(answer.text().contains("nothing was sent on"), "{}", answer.text());
    assert_eq!(origin.hits(), 1);
}

/// What cannot be read is as good as not said, and is counted.
#[tokio::test]
async fn what_a_peer_writes_wrongly_is_left_out_and_counted() {
    let origin = Origin::always(Reply::ok("x")).await;
    let top = format!("{LISTED}\n{DEADLINES}\ncriticality_from = \"x-criticality\"\ntrace = \"on\"");
    let bench = Bench::start(&contract_with(origin.address, &top, NO_LIMITS, "")).await;
    for what in ["deadline", "criticality", "trace"] {
        assert_eq!(unread(&bench, what).await, Some(0), "{what}");
    }
    let fields = [
        ("x-timeout-ms", "soon"),
        ("grpc-timeout", "5"),
        ("x-criticality", "very"),
        ("traceparent", "00-0-0-0"),
    ];
    assert_eq!(bench.get_with("/r/1", &fields).await.status, 200);
    assert_eq!(unread(&bench, "deadline").await, Some(2));
    assert_eq!(unread(&bench, "criticality").await, Some(1));
    assert_eq!(unread(&bench, "trace").await, Some(1));
    let seen = &origin.seen()[0];
    for name in ["x-timeout-ms", "grpc-timeout", "x-criticality"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
}

/// The dependency is told what is left as the request leaves: no more than the timeout, no more than the peer waits. What a
/// client says there itself never passes.
#[tokio::test]
async fn the_time_that_is_left_is_handed_on() {
    for (peers, method, fields, most) in [
        (LISTED, "GET", &[][..], 800),
        (LISTED, "GET", &[("x-timeout-ms", "300")], 300),
        (LISTED, "POST", &[("grpc-timeout", "300000u")], 300),
        (
            OTHERS,
            "GET",
            &[("x-timeout-ms", "1"), ("x-left-ms", "7"), ("grpc-timeout", "1n")],
            800,
        ),
    ] {
        let origin = Origin::always(Reply::ok("x")).await;
        let dependency =
            format!("{NO_LIMITS}\ntimeout = \"800ms\"\ndeadline_to = [\"x-left-ms\", \"grpc-timeout\"]");
        let top = format!("{peers}\n{DEADLINES}");
        let text = contract_with(origin.address, &top, &dependency, "other_methods = \"pass\"");
        let bench = Bench::start(&text).await;
        let mut client = Client::connect(bench.address()).await;
        let mut fields = fields.to_vec();
        fields.push(("content-length", "0"));
        assert_eq!(client.request(method, "/r/1", &fields).await.status, 200);
        let seen = &origin.seen()[0];
        let left: u64 = seen.header("x-left-ms").unwrap().parse().unwrap();
        assert!((1..=most).contains(&left), "{peers} {method} {left}");
        let grpc = seen.header("grpc-timeout").unwrap();
        let grpc: u64 = grpc.strip_suffix('m').unwrap().parse().unwrap();
        assert!((1..=most).contains(&grpc), "{peers} {method} {grpc}");
        assert_eq!(seen.header("x-timeout-ms"), None);
    }
}

#[tokio::test]
async fn each_attempt_of_a_trace_is_a_span_of_its_own_and_the_trace_goes_on() {
    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{ID}-00f067aa0ba902b7-01");
    let origin = Origin::start(crate::kit::in_turn(vec![Reply::status(503), Reply::ok("x")])).await;
    let dependency = format!("{NO_LIMITS}\nretry = {{ pause = \"1ms\" }}");
    let text = contract_with(
        origin.address,
        "trace = \"on\"",
        &dependency,
        "other_methods = \"pass\"",
    );
    let bench = Bench::start(&text).await;
    let fields = [
        ("traceparent", parent.as_str()),
        ("tracestate", "a=1"),
        ("tracestate", "b=2"),
    ];
    assert_eq!(bench.get_with("/r/1", &fields).await.status, 200);
    let spans: Vec<String> = origin
        .seen()
        .iter()
        .map(|seen| {
            assert_eq!(seen.header("tracestate"), Some("a=1,b=2"));
            let line = seen.header("traceparent").unwrap();
            assert!(
                line.starts_with(&format!("00-{ID}-")) && line.ends_with("-01"),
                "{line}"
            );
            line.to_owned()
        })
        .collect();
    assert_eq!(spans.len(), 2);
    assert!(spans[0] != spans[1] && !spans.contains(&parent), "{spans:?}");
    // Without one, or with one that is none, another begins, and what was noted of the old one goes.
    let mut ids = Vec::new();
    for (method, fields) in [
        ("GET", &[][..]),
        (
            "GET",
            &[
                ("traceparent", "00-zz-00f067aa0ba902b7-01"),
                ("tracestate", "a=1"),
            ],
        ),
        ("POST", &[("content-length", "0")]),
    ] {
        let mut client = Client::connect(bench.address()).await;
        assert_eq!(client.request(method, "/r/2", fields).await.status, 200);
        let seen = origin.seen().pop().unwrap();
        assert_eq!(seen.header("tracestate"), None);
        let line = seen.header("traceparent").unwrap().to_owned();
        let id = line.split('-').nth(1).unwrap().to_owned();
        assert!(id.len() == 32 && id != ID && !ids.contains(&id), "{line}");
        ids.push(id);
    }
}

/// A trace says nothing about the data: one copy for all of them, also where the origin varies by it.
#[tokio::test]
async fn a_trace_is_part_of_no_key() {
    for vary in ["", "traceparent"] {
        let reply = Reply::ok("x").header("cache-control", "max-age=60");
        let reply = if vary.is_empty() {
            reply
        } else {
            reply.header("vary", vary)
        };
        let origin = Origin::always(reply).await;
        let text = contract_with(
            origin.address,
            "trace = \"on\"",
            NO_BREAKER,
            "freshness = \"origin\"",
        );
        let bench = Bench::start(&text).await;
        for n in 1..5 {
            let parent = format!("00-4bf92f3577b34da6a3ce929d0e0e473{n}-00f067aa0ba902b7-01");
            let answer = bench.get_with("/r/1", &[("traceparent", &parent)]).await;
            assert_eq!((answer.status, answer.header("traceparent")), (200, None));
        }
        assert_eq!(origin.hits(), 1, "{vary}");
    }
}

/// Of four permits one is kept for what matters more; a peer says what does, nobody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listed_peer_says_how_much_a_request_matters() {
    for (peers, reason) in [(LISTED, Some("\"reason\":\"shed\"")), (OTHERS, None)] {
        let origin = Origin::start(|seen| {
            if seen.line.contains("/r/1") {
                Reply::hang()
            } else {
                Reply::ok("x")
            }
        })
        .await;
        let top = format!("{peers}\ncriticality_from = \"x-criticality\"");
        let dependency = format!("{NO_LIMITS}\nconcurrency = 4\ntimeout = \"2s\"");
        let text = contract_with(origin.address, &top, &dependency, "");
        let bench = Bench::start(&text).await;
        let mut hung = Vec::new();
        for number in 1..=3 {
            let mut client = Client::connect(bench.address()).await;
            client
                .send("GET /r/1 HTTP/1.1\r\nhost: a\r\nx-criticality: sheddable\r\n\r\n")
                .await;
            hung.push(client);
            until("it is in flight", || {
                bench.gateway.app().dependency("d").unwrap().status().in_use == number
            })
            .await;
        }
        let high = [("x-criticality", "critical_plus")];
        assert_eq!(get_with(bench.address(), "/r/2", &high).await.status, 200);
        let last = get_with(bench.address(), "/r/2", &[("x-criticality", "sheddable")]).await;
        match reason {
            Some(reason) => assert!(last.text().contains(reason), "{}", last.text()),
            None => assert_eq!(last.status, 200, "it is as everybody"),
        }
        // The word of a listed peer goes on, that of anybody else does not.
        let said = origin
            .seen()
            .iter()
            .any(|seen| seen.header("x-criticality").is_some());
        assert_eq!(said, reason.is_some(), "{peers}");
    }
}
