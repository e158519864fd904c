//! Whole bodies, cut bodies, large bodies.

use std::time::Duration;

use evenkeel::Engine;
use evenkeel_gateway::proxy::Limits;

use crate::kit::{
    Bench, Client, NO_BREAKER, Origin, Reply, STALE, Then, contract, contract_with, get, until,
};

fn cut_by_length() -> Reply {
    Reply::raw(
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this",
        Then::Close,
    )
}

/// Cut exactly at a chunk boundary, without the last chunk.
fn cut_by_chunk() -> Reply {
    Reply::raw(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nonly\r\n",
        Then::Close,
    )
}

fn cut_by_reset() -> Reply {
    Reply::raw(
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this",
        Then::Reset,
    )
}

/// Case 057 and rules M05, M06: completeness is judged by framing, and a cut is the next rung.
#[tokio::test]
async fn case_057_a_cut_body_becomes_the_stale_answer_and_the_good_copy_survives() {
    for cut in [cut_by_length(), cut_by_chunk(), cut_by_reset()] {
        let origin = Origin::always(Reply::ok("good")).await;
        let bench = Bench::start(&contract(origin.address, NO_BREAKER, STALE)).await;
        assert_eq!(bench.get("/r/1").await.text(), "good");
        origin.now(cut);
        for _ in 0..2 {
            let answer = bench.get("/r/1").await;
            assert_eq!((answer.text().as_str(), answer.freshness()), ("good", "stale"));
            assert_eq!(
                answer.header("proxy-status"),
                Some("evenkeel; error=http_response_incomplete")
            );
            assert!(answer.header("degraded").unwrap().ends_with("reason=cut"));
        }
    }
}

#[tokio::test]
async fn a_cut_body_with_nothing_to_stand_in_is_a_502() {
    let origin = Origin::always(cut_by_length()).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, STALE)).await;
    let answer = bench.get("/r/1").await;
    assert_eq!(answer.status, 502);
    assert!(answer.text().contains("\"reason\":\"cut\""), "{}", answer.text());
}

/// Rule M06, G24: after the first byte there is only an abort.
#[tokio::test]
async fn without_a_ladder_a_cut_is_passed_on_as_a_visible_abort() {
    for cut in [cut_by_length(), cut_by_chunk()] {
        let origin = Origin::always(cut).await;
        let bench = Bench::start(&contract(origin.address, NO_BREAKER, "")).await;
        let answer = bench.get("/r/1").await;
        assert_eq!(answer.status, 200);
        assert!(!answer.complete, "a clean end would pass a cut body off as whole");
        assert!(answer.text().starts_with("only"));
    }
}

fn with_max_body(route: &str) -> String {
    format!("{STALE}\nmax_body = \"64KiB\"\n{route}")
}

#[tokio::test]
async fn a_body_of_max_body_is_kept_and_one_byte_more_flows_and_is_not() {
    let origin = Origin::always(Reply::ok(vec![b'x'; 65_536])).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, &with_max_body(""))).await;
    assert_eq!(
        bench.get("/r/1").await.header("cache-status"),
        Some("evenkeel; fwd=bypass; stored")
    );
    origin.now(Reply::ok(vec![b'y'; 65_537]));
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.body.len(), answer.complete), (65_537, true));
    assert_eq!(answer.header("cache-status"), Some("evenkeel; fwd=bypass"));
    assert_eq!(
        bench
            .metric("evenkeel_answers_not_kept_total{route=\"r\",why=\"too-large\"}")
            .await,
        Some(1)
    );
    // E51: what cannot be kept supersedes what was.
    origin.stop().await;
    assert_eq!(bench.get("/r/1").await.status, 502);
}

#[tokio::test]
async fn a_chunked_body_that_outgrows_max_body_flows_on_from_what_was_held_back() {
    let chunk = "x".repeat(50_000);
    let mut raw = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
    for _ in 0..4 {
        raw.push_str(&format!("c350\r\n{chunk}\r\n"));
    }
    let whole = Reply::raw(format!("{raw}0\r\n\r\n"), Then::KeepAlive);
    let origin = Origin::always(whole).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, &with_max_body(""))).await;
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.body.len(), answer.complete), (200_000, true));
    origin.now(Reply::raw(raw, Then::Close));
    let answer = bench.get("/r/1").await;
    assert!(!answer.complete, "cut after the first byte: an abort");
    until("buffers are given back", || bench.gateway.app().buffered() == 0).await;
}

#[tokio::test]
async fn beyond_the_buffers_bodies_flow_instead_of_waiting() {
    let origin = Origin::always(Reply::ok(vec![b'x'; 70_000])).await;
    let contract = contract_with(origin.address, "buffers = \"64KiB\"", NO_BREAKER, STALE);
    let bench = Bench::start(&contract).await;
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.body.len(), answer.complete), (70_000, true));
    assert_eq!(answer.header("cache-status"), Some("evenkeel; fwd=bypass"));
    let series = "evenkeel_answers_not_kept_total{route=\"r\",why=\"buffers-full\"}";
    assert_eq!(bench.metric(series).await, Some(1));
    assert_eq!(bench.gateway.app().buffered(), 0);
}

/// The bound holds for clients that do not read, too: what is queued for them is held back as before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_takes_room_until_its_client_has_taken_it() {
    let origin = Origin::always(Reply::ok(vec![b'x'; 32 << 20])).await;
    let route = format!("{STALE}\nmax_body = \"32MiB\"\ndeadline = \"20s\"");
    let dependency = format!("{NO_BREAKER}\ntimeout = \"20s\"");
    let bench = Bench::start(&contract(origin.address, &dependency, &route)).await;
    let answered = || bench.gateway.app().counts("r").unwrap().calls();
    let mut client = Client::connect(bench.address()).await;
    client
        .send("GET /r/1 HTTP/1.1\r\nhost: a\r\ncookie: a\r\n\r\n")
        .await;
    until("the call has ended", || answered() == 1).await;
    assert_eq!(bench.gateway.app().buffered(), 32 << 20);
    let answer = client.answer(false).await;
    assert_eq!((answer.body.len(), answer.complete), (32 << 20, true));
    until("the room is back", || bench.gateway.app().buffered() == 0).await;
}

/// Rule M02: a body that ends with its connection may be cut or whole; nobody can tell, so it is not kept.
#[tokio::test]
async fn m02_a_body_without_a_known_end_is_passed_on_and_not_kept() {
    let origin = Origin::always(Reply::raw("HTTP/1.1 200 OK\r\n\r\nwho knows", Then::Close)).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, STALE)).await;
    assert_eq!(bench.get("/r/1").await.text(), "who knows");
    assert_eq!(bench.gateway.app().snapshots().0, 0);
    let series = "evenkeel_answers_not_kept_total{route=\"r\",why=\"unknown-end\"}";
    assert_eq!(bench.metric(series).await, Some(1));
}

/// Rule H17: no body for 204 and 304 whatever the headers say; the connection stays usable.
#[tokio::test]
async fn h17_bodiless_answers_leave_the_connection_usable() {
    for route in ["", STALE] {
        let origin = Origin::always(Reply::status(204)).await;
        let bench = Bench::start(&contract(origin.address, NO_BREAKER, route)).await;
        let mut client = Client::connect(bench.address()).await;
        for _ in 0..3 {
            assert_eq!(client.get("/r/1", &[]).await.status, 204);
        }
        assert_eq!(origin.connections(), 1, "{route}");
        origin.now(Reply::ok(""));
        for _ in 0..3 {
            assert_eq!(client.get("/r/1", &[]).await.status, 200);
        }
        assert_eq!(origin.connections(), 1, "{route}");
    }
}

/// The permit rides with a streamed body until the upstream's end, and is free after it.
#[tokio::test]
async fn a_streamed_body_holds_its_permit_until_it_ends() {
    let origin = Origin::always(Reply::raw(
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
        Then::Hang,
    ))
    .await;
    let bench = Bench::start(&contract(origin.address, "concurrency = 1", "")).await;
    let mut client = Client::connect(bench.address()).await;
    client.send("GET /r/1 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let in_use = || bench.gateway.app().dependency("d").unwrap().status().in_use;
    until("the attempt is in flight", || in_use() == 1).await;
    // The head has gone out, the body has not ended: the second call finds no permit.
    assert_eq!(bench.get("/r/2").await.status, 503);
    assert_eq!(in_use(), 1);
    drop(client);
    until("the permit of a client who left is back", || in_use() == 0).await;
}

#[tokio::test]
async fn a_stream_that_stalls_is_cut_and_gives_its_permit_back() {
    let origin = Origin::always(Reply::raw(
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
        Then::Hang,
    ))
    .await;
    let limits = Limits {
        stream_idle: Duration::from_millis(100),
        ..Limits::default()
    };
    let contract = contract(origin.address, "concurrency = 1", "");
    let bench = Bench::start_with(&contract, Engine::system(), None, limits).await;
    let answer = get(bench.address(), "/r/1").await;
    assert!(!answer.complete);
    assert_eq!(answer.text(), "half");
    let in_use = || bench.gateway.app().dependency("d").unwrap().status().in_use;
    until("the permit is back", || in_use() == 0).await;
}

#[tokio::test]
async fn keep_if_leaves_the_old_snapshot_when_an_answer_is_not_worth_keeping() {
    let origin = Origin::always(Reply::ok("[1]")).await;
    let route = format!("{STALE}\nkeep_if = {{ status = [200], not_empty = true }}");
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, &route)).await;
    assert_eq!(bench.get("/r/1").await.text(), "[1]");
    for poor in [
        Reply::ok("[]"),
        Reply::ok(" { } "),
        Reply::ok(""),
        Reply::status(203).body("other"),
    ] {
        let given = String::from_utf8(poor.body.clone()).unwrap();
        origin.now(poor);
        assert_eq!(
            bench.get("/r/1").await.text(),
            given,
            "it is given to the one who asked"
        );
    }
    origin.stop().await;
    assert_eq!(bench.get("/r/1").await.text(), "[1]");
}

/// Design §3 step 8: degraded answers of others are never stored as data, and stay labelled.
#[tokio::test]
async fn a_degraded_answer_of_another_gateway_is_passed_on_as_that_and_not_kept() {
    let origin = Origin::always(Reply::ok("good")).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, STALE)).await;
    assert_eq!(bench.get("/r/1").await.text(), "good");
    origin.now(Reply::ok("old").header("x-data-freshness", "stale"));
    let answer = bench.get("/r/1").await;
    assert_eq!((answer.text().as_str(), answer.freshness()), ("old", "stale"));
    origin.stop().await;
    assert_eq!(bench.get("/r/1").await.text(), "good");
}
