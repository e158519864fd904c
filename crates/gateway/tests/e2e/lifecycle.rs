//! Starting, draining, slow clients, health.

use std::time::Duration;

use evenkeel::Engine;
use evenkeel_gateway::{Gateway, StartError, config, proxy::Limits};
use tokio::net::TcpStream;

use crate::kit::{Bench, Client, Origin, PATIENCE, Reply, STALE, contract, get, get_admin, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_takes_no_new_connections_and_finishes_what_runs() {
    let origin = Origin::always(Reply::ok("done").wait(Duration::from_millis(300))).await;
    let bench = Bench::start(&contract(origin.address, "", "")).await;
    let address = bench.address();
    let idle = Client::connect(address).await;
    let running = tokio::spawn(async move { get(address, "/r/1").await });
    until("the request is at the origin", || origin.hits() == 1).await;
    let Bench { gateway, .. } = bench;
    let stopping = tokio::spawn(gateway.stop(PATIENCE));
    assert!(idle.closed().await, "an idle connection is closed at once");
    let answer = running.await.unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, "done"));
    assert!(stopping.await.unwrap());
    assert!(TcpStream::connect(address).await.is_err(), "the port is closed");
}

#[tokio::test]
async fn draining_is_bounded() {
    let origin = Origin::always(Reply::hang()).await;
    let bench = Bench::start(&contract(origin.address, "timeout = \"1h\"", "deadline = \"1h\"")).await;
    let mut client = Client::connect(bench.address()).await;
    client.send("GET /r/1 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    until("the request is at the origin", || origin.hits() == 1).await;
    assert!(!bench.gateway.stop(Duration::from_millis(50)).await);
}

#[tokio::test]
async fn an_address_in_use_starts_nothing_and_says_which() {
    let origin = Origin::always(Reply::ok("x")).await;
    let busy = Origin::always(Reply::ok("x")).await;
    let text = contract(origin.address, "", "").replace(
        "listen = \"127.0.0.1:0\"",
        &format!("listen = \"{}\"", busy.address),
    );
    let loaded = config::parse("contract.toml", &text).unwrap();
    let error = Gateway::start(&loaded.contract, &Engine::system(), Limits::default())
        .await
        .unwrap_err();
    assert!(matches!(error, StartError::Bind(address, _) if address == busy.address));
    assert!(error.to_string().contains(&busy.address.to_string()));
}

#[tokio::test]
async fn a_client_that_is_slow_with_its_head_is_cut_off() {
    let origin = Origin::always(Reply::ok("x")).await;
    let limits = Limits {
        head_read: Duration::from_millis(100),
        ..Limits::default()
    };
    let bench = Bench::start_with(&contract(origin.address, "", ""), Engine::system(), None, limits).await;
    let mut client = Client::connect(bench.address()).await;
    client.send("GET /r/1 HTTP/1.1\r\nho").await;
    assert!(client.closed().await);
    assert_eq!(origin.hits(), 0);
}

/// Nobody may hold a dependency's capacity by not reading.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_takes_nothing_of_its_answer_is_cut_off_and_its_permit_given_back() {
    let origin = Origin::always(Reply::ok(vec![b'x'; 32 << 20])).await;
    let limits = Limits {
        client_idle: Duration::from_millis(300),
        ..Limits::default()
    };
    let contract = contract(origin.address, "concurrency = 1", "");
    let bench = Bench::start_with(&contract, Engine::system(), None, limits).await;
    let mut client = Client::connect(bench.address()).await;
    client.send("GET /r/1 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let in_use = || bench.gateway.app().dependency("d").unwrap().status().in_use;
    until("the attempt is in flight", || in_use() == 1).await;
    until("the permit is back", || in_use() == 0).await;
    assert_eq!(
        bench.metric("evenkeel_client_connections").await,
        Some(0),
        "its connection is closed"
    );
    drop(client);
}

#[tokio::test]
async fn the_connections_counted_are_those_of_clients_and_no_others() {
    let origin = Origin::always(Reply::ok("x")).await;
    let bench = Bench::start(&contract(origin.address, "", "")).await;
    assert_eq!(bench.metric("evenkeel_client_connections").await, Some(0));
    let mut client = Client::connect(bench.address()).await;
    client.get("/r/1", &[]).await;
    assert_eq!(bench.metric("evenkeel_client_connections").await, Some(1));
}

#[tokio::test]
async fn more_connections_than_the_cap_wait_their_turn() {
    let origin = Origin::always(Reply::ok("x")).await;
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let bench = Bench::start_with(&contract(origin.address, "", ""), Engine::system(), None, limits).await;
    let mut first = Client::connect(bench.address()).await;
    assert_eq!(first.get("/r/1", &[]).await.status, 200);
    let address = bench.address();
    let second = tokio::spawn(async move { get(address, "/r/2").await });
    assert_eq!(first.get("/r/1", &[]).await.status, 200);
    assert_eq!(origin.hits(), 2, "the second connection is not served yet");
    drop(first);
    assert_eq!(second.await.unwrap().status, 200);
}

#[tokio::test]
async fn the_gateway_is_live_and_ready_also_when_everything_it_asks_is_down() {
    let origin = Origin::always(Reply::ok("x")).await;
    origin.stop().await;
    let bench = Bench::start(&contract(origin.address, "", STALE)).await;
    bench.get("/r/1").await;
    let admin = bench.gateway.admin_address();
    for path in ["/livez", "/readyz"] {
        assert_eq!(get_admin(admin, "localhost", path).await.status, 200);
    }
    assert_eq!(get_admin(admin, "localhost", "/").await.status, 404);
    let mut client = Client::connect(admin).await;
    client
        .send("POST /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await;
    let answer = client.answer(false).await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")));
    assert_eq!(
        get(bench.address(), "/metrics").await.status,
        404,
        "not where traffic is"
    );
}

/// A page in a browser whose name resolves to this machine says that name in `Host`.
#[tokio::test]
async fn the_administration_port_is_not_read_under_a_name_that_somebody_else_controls() {
    let origin = Origin::always(Reply::ok("x")).await;
    let bench = Bench::start(&contract(origin.address, "", "")).await;
    let admin = bench.gateway.admin_address();
    let own = admin.to_string();
    for host in [
        own.as_str(),
        "127.0.0.1",
        "10.1.2.3:9181",
        "[::1]:9181",
        "LOCALHOST:9181",
    ] {
        assert_eq!(get_admin(admin, host, "/metrics").await.status, 200, "{host}");
    }
    for host in [
        "rebound.example",
        "localhost.example:9181",
        "127.0.0.1.example",
        "",
        "[::1",
    ] {
        let answer = get_admin(admin, host, "/metrics").await;
        assert_eq!(answer.status, 421, "{host}");
        assert!(answer.text().contains("/problems/wrong-host"), "{host}");
    }
}

/// PM2: every reachable pair is there from the start, as zero.
#[tokio::test]
async fn reachable_series_exist_before_the_first_call() {
    let origin = Origin::always(Reply::ok("x")).await;
    let route =
        "ladder = [ { stale = \"60s\" }, { default = { content_type = \"text/plain\", body = \"x\" } } ]";
    let bench = Bench::start(&contract(origin.address, "concurrency = 3", route)).await;
    let text = bench.metrics().await;
    for series in [
        "evenkeel_calls_total{route=\"r\",ending=\"answered\",rung=\"live\",reason=\"none\"} 0",
        "evenkeel_calls_total{route=\"r\",ending=\"answered\",rung=\"stale\",reason=\"timed-out\"} 0",
        "evenkeel_calls_total{route=\"r\",ending=\"answered\",rung=\"default\",reason=\"at-capacity\"} 0",
        "evenkeel_rungs_skipped_total{route=\"r\",rung=\"stale\",why=\"too-old\"} 0",
        "evenkeel_answers_not_kept_total{route=\"r\",why=\"set-cookie\"} 0",
        "evenkeel_attempts_total{dependency=\"d\",class=\"outage\"} 0",
        "evenkeel_breaker_transitions_total{dependency=\"d\",from=\"closed\",to=\"open\",cause=\"tripped\"} 0",
        "evenkeel_breaker_opened_timestamp_seconds{dependency=\"d\"} 0",
        "evenkeel_coverage_calls_total{route=\"r\",found=\"servable\"} 0",
        "evenkeel_coverage_calls_total{route=\"r\",found=\"no-snapshot\"} 0",
        "evenkeel_stale_limit_seconds{route=\"r\"} 60",
        "evenkeel_stale_age_ratio_count{route=\"r\"} 0",
        "evenkeel_permits_limit{dependency=\"d\"} 3",
        "evenkeel_requests_misdirected_total{problem=\"bad-request\"} 0",
    ] {
        assert!(text.contains(series), "{series} is missing from\n{text}");
    }
    assert!(
        !text.contains("ending=\"refused\""),
        "a route with a default never refuses"
    );
    bench.get("/r/1").await;
    let live = "evenkeel_calls_total{route=\"r\",ending=\"answered\",rung=\"live\",reason=\"none\"}";
    assert_eq!(bench.metric(live).await, Some(1));
    let (count, bytes) = bench.gateway.app().snapshots();
    assert_eq!((count, bench.metric("evenkeel_snapshots").await), (1, Some(1)));
    assert_eq!(bench.metric("evenkeel_snapshot_bytes").await, Some(bytes));
}
