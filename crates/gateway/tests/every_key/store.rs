//! The keys of the store are flipped, and something else happens.

use std::{fs, path::PathBuf, time::Duration};

use crate::kit::{Bench, Client, NO_BREAKER, Origin, PATIENCE, Reply, contract_with};

const STALE: &str = "ladder = [ { stale = \"1h\" } ]\nother_methods = \"pass\"";

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("evenkeel-key-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        Self(path)
    }

    fn keys(&self, more: &str) -> String {
        format!("[store]\npath = {:?}\n{more}\n", self.0)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

async fn until(bench: &Bench, what: &str, holds: impl Fn(u64) -> bool) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while !bench.metric(what).await.is_some_and(&holds) {
        assert!(
            tokio::time::Instant::now() < end,
            "{what}\n{}",
            bench.metrics().await
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn start(origin: &Origin, store: &str) -> Bench {
    let bench = Bench::start(&contract_with(origin.address, store, NO_BREAKER, STALE)).await;
    if !store.is_empty() {
        until(&bench, "evenkeel_store_up", |up| up == 1).await;
    }
    bench
}

pub(crate) async fn path() {
    let directory = Directory::new("path");
    for (store, status) in [(String::new(), 502), (directory.keys(""), 200)] {
        let origin = Origin::always(Reply::ok("x")).await;
        let bench = start(&origin, &store).await;
        bench.get("/r/1").await;
        assert!(bench.gateway.stop(PATIENCE).await);
        origin.stop().await;
        let bench = start(&origin, &store).await;
        assert_eq!(bench.get("/r/1").await.status, status);
        assert!(bench.gateway.stop(PATIENCE).await);
    }
}

pub(crate) async fn max() {
    let body = "x".repeat(900_000);
    let directory = Directory::new("max");
    let origin = Origin::always(Reply::ok(&body)).await;
    let bench = start(&origin, &directory.keys("max = \"16MiB\"")).await;
    for number in 0..30 {
        bench.get(&format!("/r/{number}")).await;
    }
    until(&bench, "evenkeel_store_evictions_total", |gone| gone > 0).await;
    until(&bench, "evenkeel_store_backlog_entries", |waiting| waiting == 0).await;
    assert!(bench.metric("evenkeel_store_bytes").await.unwrap() <= 16 << 20);
    assert_eq!(bench.metric("evenkeel_store_bytes_limit").await, Some(16 << 20));
}

/// Somebody else holds the file, so everything waits.
async fn held(directory: &Directory) -> rusqlite::Connection {
    let other = rusqlite::Connection::open(directory.0.join("snapshots.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

pub(crate) async fn backlog() {
    let body = "x".repeat(100_000);
    for (keys, dropped) in [("", false), ("backlog = \"1MiB\"", true)] {
        let directory = Directory::new("backlog");
        let origin = Origin::always(Reply::ok(&body)).await;
        let bench = start(&origin, &directory.keys(keys)).await;
        let other = held(&directory).await;
        for number in 0..20 {
            assert_eq!(bench.get(&format!("/r/{number}")).await.status, 200);
        }
        let drops = "evenkeel_store_drops_total{why=\"backlog-full\"}";
        assert_eq!(bench.metric(drops).await.unwrap() > 0, dropped, "{keys}");
        drop(other);
    }
}

/// What the answer to a write waits for cannot be done. Told to be late long before the clients of these tests give up.
pub(crate) async fn timeout() {
    for (keys, is_late) in [("timeout = \"20ms\"", true), ("timeout = \"10s\"", false)] {
        let directory = Directory::new("timeout");
        let origin = Origin::always(Reply::ok("x")).await;
        let bench = start(&origin, &directory.keys(keys)).await;
        bench.get("/r/1").await;
        until(&bench, "evenkeel_store_entries", |entries| entries == 1).await;
        let other = held(&directory).await;
        let mut client = Client::connect(bench.address()).await;
        client
            .send("POST /r/1 HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n")
            .await;
        if is_late {
            assert_eq!(client.answer(false).await.status, 200);
            assert_eq!(bench.metric("evenkeel_store_removals_late_total").await, Some(1));
        } else {
            // The write is at the origin, and its answer is held until the other one lets go.
            crate::until("the write is there", || origin.hits() == 2).await;
            drop(other);
            assert_eq!(client.answer(false).await.status, 200);
        }
    }
}

/// The machine was started anew: the age is the wall clock's, and as much more as that may be off.
pub(crate) async fn clock_skew() {
    for (keys, least) in [("clock_skew = \"1ms\"", 0), ("clock_skew = \"20m\"", 1200)] {
        let directory = Directory::new("clock-skew");
        let origin = Origin::always(Reply::ok("x")).await;
        let bench = start(&origin, &directory.keys(keys)).await;
        bench.get("/r/1").await;
        assert!(bench.gateway.stop(PATIENCE).await);
        origin.stop().await;
        let file = rusqlite::Connection::open(directory.0.join("snapshots.db")).unwrap();
        file.execute("UPDATE store SET boot = 'an earlier one'", [])
            .unwrap();
        drop(file);
        let bench = start(&origin, &directory.keys(keys)).await;
        let answer = bench.get("/r/1").await;
        let age: u64 = answer.header("age").unwrap().parse().unwrap();
        assert!((least..least + 600).contains(&age), "{keys}: {age}");
        assert!(bench.gateway.stop(PATIENCE).await);
    }
}
