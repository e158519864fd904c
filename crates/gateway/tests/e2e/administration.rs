//! The administration port: who may ask for what, and how it says no.

use std::net::SocketAddr;

use evenkeel::Engine;
use evenkeel_gateway::{
    Gateway,
    admin::{ENDPOINTS, places, read_token},
    config,
    proxy::Limits,
};

use crate::kit::{Answer, Bench, Client, Origin, Reply, contract, contract_with, get_admin};

async fn ask(admin: SocketAddr, method: &str, path: &str, fields: &[(&str, &str)], body: &str) -> Answer {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
    for (name, value) in fields {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    let mut client = Client::connect(admin).await;
    client.send(&text).await;
    client.answer(method == "HEAD").await
}

async fn bench() -> Bench {
    let origin = Origin::always(Reply::ok("x")).await;
    Bench::start(&contract(origin.address, "", "")).await
}

#[tokio::test]
async fn every_address_is_known_and_none_takes_a_method_that_is_not_its_own() {
    let bench = bench().await;
    let admin = bench.gateway.admin_address();
    for known in ENDPOINTS {
        let answer = ask(admin, known.method, known.path, &[], "").await;
        assert_ne!(answer.status, 405, "{} {}", known.method, known.path);
        assert!(
            !answer.text().contains("/problems/no-such-route"),
            "{} {}",
            known.method,
            known.path
        );
        let answer = ask(admin, "PUT", known.path, &[], "").await;
        assert_eq!(answer.status, 405, "{}", known.path);
        assert!(answer.header("allow").unwrap().contains(known.method));
    }
    let answer = get_admin(admin, "localhost", "/nowhere").await;
    assert_eq!(answer.status, 404);
    assert!(
        answer.text().contains("/readyz"),
        "it says what there is: {}",
        answer.text()
    );
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
}

#[tokio::test]
async fn what_needs_the_token_is_not_done_without_it_and_no_foreign_page_asks_for_changes() {
    let bench = bench().await;
    let admin = bench.gateway.admin_address();
    for known in ENDPOINTS.iter().filter(|known| known.token) {
        for fields in [&[][..], &[("authorization", "Bearer 0123456789abcdef")]] {
            let answer = ask(admin, known.method, known.path, fields, "").await;
            assert_eq!(answer.status, 401, "{} {}", known.method, known.path);
            assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer "));
        }
    }
    for known in ENDPOINTS.iter().filter(|known| known.method != "GET") {
        assert!(known.token, "{} changes something", known.path);
        let foreign = [("origin", "http://evil.example")];
        let answer = ask(admin, known.method, known.path, &foreign, "").await;
        assert_eq!(answer.status, 403, "{}", known.path);
    }
}

#[tokio::test]
async fn the_token_of_a_process_is_in_a_file_of_its_own_that_nobody_else_reads_and_that_ends_with_it() {
    use std::os::unix::fs::MetadataExt as _;
    let bench = bench().await;
    let places = places(bench.gateway.admin_address());
    let place = places
        .iter()
        .find(|place| place.exists())
        .expect("it was written");
    assert_eq!(std::fs::metadata(place).unwrap().mode() & 0o777, 0o600);
    assert_eq!(read_token(place).unwrap().len(), 64);
    drop(bench);
    crate::kit::until("it is gone", || !place.exists()).await;
}

#[tokio::test]
async fn ready_says_more_when_it_is_asked_for_more() {
    let bench = bench().await;
    let answer = get_admin(bench.gateway.admin_address(), "localhost", "/readyz?verbose").await;
    let detail: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(detail["state"], "ready");
}

#[tokio::test]
async fn what_is_refused_late_in_the_start_leaves_nothing_running() {
    let origin = Origin::always(Reply::ok("x")).await;
    let busy = Origin::always(Reply::ok("x")).await;
    let missing = "admin_token_file = \"/nowhere/token\"".to_owned();
    for late in [format!("metrics = \"{}\"", busy.address), missing] {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = free.local_addr().unwrap();
        drop(free);
        let text =
            contract_with(origin.address, &late, "", "").replacen("127.0.0.1:0", &listen.to_string(), 1);
        let loaded = config::parse("contract.toml", &text).unwrap();
        let started = Gateway::start(&loaded.contract, &Engine::system(), Limits::default()).await;
        assert!(started.is_err(), "{late}");
        // Tasks that were begun would have their turn here.
        tokio::task::yield_now().await;
        assert!(
            std::net::TcpStream::connect(listen).is_err(),
            "{late}: somebody listens"
        );
    }
}
