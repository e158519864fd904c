//! What concerns operators: where it is kept, who may change something, where numbers are read.

use std::path::{Path, PathBuf};

use evenkeel_gateway::admin::{places, read_token};

use crate::kit::{Bench, Client, Origin, Reply, contract_with, get_admin};

async fn bench(top: &str) -> Bench {
    let origin = Origin::always(Reply::ok("x")).await;
    Bench::start(&contract_with(origin.address, top, "", "")).await
}

async fn change(bench: &Bench, path: &str, token: &str, body: &str) -> (u16, String) {
    let mut client = Client::connect(bench.gateway.admin_address()).await;
    client
        .send(&format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    let answer = client.answer(false).await;
    (answer.status, answer.text())
}

async fn hold(bench: &Bench, token: &str) -> (u16, String) {
    let body = "{\"route\":\"r\",\"mode\":\"forced-off\",\"reason\":\"x\",\"by\":\"ana\"}";
    change(bench, "/hold", token, body).await
}

/// Without it a tag names nothing; with it whatever carries it.
pub(crate) async fn tags() {
    let origin = Origin::always(Reply::ok("x").header("cache-tag", "one,two")).await;
    for (key, status) in [
        ("", 404),
        ("tags = \"surrogate-key\"", 200),
        ("tags = \"cache-tag\"", 200),
    ] {
        let route = format!("ladder = [ {{ stale = \"60s\" }} ]\n{key}");
        let bench = Bench::start(&contract_with(origin.address, "", "", &route)).await;
        bench.get("/r/1").await;
        let body = "{\"tag\":\"two\",\"by\":\"ana\"}";
        let (got, said) = change(&bench, "/purge", &made(&bench), body).await;
        assert_eq!(got, status, "{key}: {said}");
        assert_eq!(
            said.contains("\"snapshots\":1"),
            key.contains("cache-tag"),
            "{key}: {said}"
        );
    }
}

fn made(bench: &Bench) -> String {
    let places = places(bench.gateway.admin_address());
    places.iter().find_map(|place| read_token(place).ok()).unwrap()
}

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Without it a hold ends with the process; with it the next gateway has it.
pub(crate) async fn state() {
    let directory = place("state-every-key");
    drop(std::fs::remove_dir_all(&directory));
    let without = bench("").await;
    let (status, said) = hold(&without, &made(&without)).await;
    assert!(
        status == 200 && said.contains("\"kept_over_restart\":false"),
        "{said}"
    );
    let top = format!("state = \"{}\"", directory.display());
    let with = bench(&top).await;
    let (status, said) = hold(&with, &made(&with)).await;
    assert!(
        status == 200 && said.contains("\"kept_over_restart\":true"),
        "{said}"
    );
    drop(with);
    let next = bench(&top).await;
    assert_eq!(next.get("/r/1").await.status, 503);
    assert_eq!(bench("").await.get("/r/1").await.status, 200);
}

/// Without it the gateway makes a token; with it that one counts and no other.
pub(crate) async fn admin_token_file() {
    let file = place("token-every-key");
    std::fs::write(&file, "chosen-by-somebody\n").unwrap();
    let with = bench(&format!("admin_token_file = \"{}\"", file.display())).await;
    assert_eq!(hold(&with, "0123456789abcdef").await.0, 401);
    assert_eq!(hold(&with, "chosen-by-somebody").await.0, 200);
    let without = bench("").await;
    assert_eq!(hold(&without, "chosen-by-somebody").await.0, 401);
    assert_eq!(hold(&without, &made(&without)).await.0, 200);
}

/// Without it there is one place for numbers; with it another one.
pub(crate) async fn metrics() {
    assert_eq!(bench("").await.gateway.metrics_address(), None);
    let with = bench("metrics = \"127.0.0.1:0\"").await;
    let address = with.gateway.metrics_address().unwrap();
    let answer = get_admin(address, "gw.example", "/metrics").await;
    assert!(answer.text().contains("evenkeel_build_info"));
}

/// With it an error passes through that a ladder would have hidden; a route can say otherwise, both ways.
pub(crate) async fn observe_only() {
    for (gateway, route, status) in [
        ("", "", 200),
        ("observe_only = true", "", 503),
        ("", "observe_only = true", 503),
        ("observe_only = true", "observe_only = false", 200),
    ] {
        let origin = Origin::always(Reply::ok("x")).await;
        let route = format!("ladder = [ {{ stale = \"60s\" }} ]\n{route}");
        let bench = Bench::start(&contract_with(origin.address, gateway, "", &route)).await;
        bench.get("/r/1").await;
        origin.now(Reply::status(503));
        assert_eq!(bench.get("/r/1").await.status, status, "{gateway} {route}");
    }
}
