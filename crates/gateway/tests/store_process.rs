//! The gateway as a process: killed in the middle of its work, with no room on the disk, with a store that takes long to open.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "e2e/kit.rs"]
mod kit;

use std::{
    fs,
    io::{BufRead as _, BufReader, Lines},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
    time::Duration,
};

use kit::{NO_LIMITS, Origin, PATIENCE, Reply, Seen, contract_with, get, get_admin};

/// A process that ends with its test, also when the test fails.
struct Running {
    child: Child,
    address: SocketAddr,
    admin: SocketAddr,
    log: Option<Lines<BufReader<ChildStderr>>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Running {
    /// Starts a gateway, behind a shell command if one is given.
    fn start(contract: &Path, before: &str) -> Self {
        let binary = env!("CARGO_BIN_EXE_evenkeel");
        let script = format!("{before} exec \"{binary}\" serve \"{}\"", contract.display());
        let mut child = Command::new("bash")
            .args(["-c", &script])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let started = loop {
            let line = log.next().expect("a first line").unwrap();
            if line.contains("event=started") {
                break line;
            }
        };
        let said = |key: &str| {
            let (_, rest) = started.split_once(key).unwrap();
            rest.split(' ').next().unwrap().parse().unwrap()
        };
        Self {
            address: said("listen="),
            admin: said("admin="),
            child,
            log: Some(log),
        }
    }

    fn kill(mut self) {
        // Not a signal that it could handle.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    async fn metric(&self, series: &str) -> Option<u64> {
        let text = get_admin(self.admin, "localhost", "/metrics").await.text();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
        line.trim().parse().ok()
    }

    async fn until(&self, series: &str, value: u64) {
        let end = tokio::time::Instant::now() + PATIENCE;
        while self.metric(series).await != Some(value) {
            assert!(
                tokio::time::Instant::now() < end,
                "waited in vain: {series} {value}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits for a line of the log.
    async fn says(&mut self, what: &'static str) {
        let mut log = self.log.take().unwrap();
        let (log, found) = tokio::task::spawn_blocking(move || {
            let found = log.by_ref().map_while(Result::ok).any(|line| line.contains(what));
            (log, found)
        })
        .await
        .unwrap();
        assert!(found, "{what}");
        self.log = Some(log);
    }
}

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("evenkeel-process-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("store").join("snapshots.db")
    }

    /// Writes a contract with a store in this directory.
    fn contract(&self, origin: &Origin, route: &str) -> PathBuf {
        let store = format!("[store]\npath = {:?}\ntimeout = \"5s\"\n", self.0.join("store"));
        let text = contract_with(origin.address, &store, NO_LIMITS, route);
        let path = self.0.join("contract.toml");
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn path_of(seen: &Seen) -> &str {
    seen.line.split(' ').nth(1).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_040_twenty_kills_in_the_middle_of_writing_lose_nothing_that_was_durable() {
    let directory = Directory::new("kill");
    let origin = Origin::start(|seen| Reply::ok(path_of(seen))).await;
    let contract = directory.contract(
        &origin,
        "ladder = [ { stale = \"1h\" } ]\nother_methods = \"pass\"",
    );
    for round in 0..20_u64 {
        let gateway = Running::start(&contract, "");
        let address = gateway.address;
        gateway.until("evenkeel_store_up", 1).await;
        let path = move |number: u64| format!("/r/{round}-{number}");
        for number in 0..20 {
            assert_eq!(get(address, &path(number)).await.status, 200);
        }
        gateway.until("evenkeel_store_backlog_entries", 0).await;
        // What was written makes these wrong, and the client has been told that it was.
        for number in 0..5 {
            let mut client = kit::Client::connect(address).await;
            let fields = [("content-length", "0")];
            assert_eq!(client.request("POST", &path(number), &fields).await.status, 200);
        }
        // Killed while more and more comes in.
        let traffic = tokio::spawn(async move {
            for number in 100.. {
                // The last one is cut off by the kill.
                let Ok(mut stream) = tokio::net::TcpStream::connect(address).await else {
                    return;
                };
                let request = format!(
                    "GET {} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
                    path(number)
                );
                let mut answer = Vec::new();
                let sent = tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await;
                if sent.is_err()
                    || tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut answer)
                        .await
                        .is_err()
                {
                    return;
                }
            }
        });
        tokio::time::sleep(Duration::from_millis(3 * round)).await;
        gateway.kill();
        traffic.await.unwrap();
        let file = rusqlite::Connection::open(directory.file()).unwrap();
        let check: String = file
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(check, "ok", "round {round}");
        drop(file);
        origin.stop().await;
        let gateway = Running::start(&contract, "");
        for number in 0..20 {
            let answer = get(gateway.address, &path(number)).await;
            if number < 5 {
                assert_eq!(answer.status, 502, "round {round}: {number} came back");
            } else {
                let known = (answer.status, answer.freshness(), answer.text());
                assert_eq!(known, (200, "stale", path(number)), "round {round}");
                assert!(answer.header("age").is_some());
            }
        }
        gateway.kill();
        origin.heal().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_no_room_on_the_disk_every_request_is_answered_and_it_is_said() {
    let directory = Directory::new("full");
    let origin = Origin::start(|seen| Reply::ok(format!("{} {}", path_of(seen), "x".repeat(50_000)))).await;
    let contract = directory.contract(&origin, "ladder = [ { stale = \"1h\" } ]");
    // No file may grow beyond 1 MiB; the signal that says so is ignored, so that writing fails instead.
    let mut gateway = Running::start(&contract, "trap '' XFSZ; ulimit -f 1024;");
    for number in 0..200 {
        assert_eq!(get(gateway.address, &format!("/r/{number}")).await.status, 200);
    }
    gateway.says("event=store-down").await;
    origin.stop().await;
    for number in 0..200 {
        let answer = get(gateway.address, &format!("/r/{number}")).await;
        assert_eq!((answer.status, answer.freshness()), (200, "stale"), "{number}");
    }
    let file = rusqlite::Connection::open(directory.file()).unwrap();
    let check: String = file
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_041_a_store_that_takes_long_to_open_holds_up_no_start() {
    let directory = Directory::new("long");
    let origin = Origin::start(|seen| Reply::ok(path_of(seen))).await;
    let contract = directory.contract(&origin, "ladder = [ { stale = \"1h\" } ]");
    let gateway = Running::start(&contract, "");
    gateway.until("evenkeel_store_up", 1).await;
    assert_eq!(get(gateway.address, "/r/1").await.status, 200);
    gateway.until("evenkeel_store_entries", 1).await;
    gateway.kill();
    // As good as a file that takes for ever.
    let other = rusqlite::Connection::open(directory.file()).unwrap();
    other
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
        .unwrap();
    let gateway = Running::start(&contract, "");
    assert_eq!(get_admin(gateway.admin, "localhost", "/readyz").await.status, 200);
    assert_eq!(
        get(gateway.address, "/r/2").await.status,
        200,
        "a miss is allowed"
    );
    assert_eq!(gateway.metric("evenkeel_store_up").await, Some(0));
    origin.stop().await;
    drop(other);
    gateway.until("evenkeel_store_up", 1).await;
    assert_eq!(get(gateway.address, "/r/1").await.freshness(), "stale");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_is_written_when_the_gateway_is_told_to_stop() {
    let directory = Directory::new("stop");
    let origin = Origin::start(|seen| Reply::ok(path_of(seen))).await;
    let contract = directory.contract(&origin, "ladder = [ { stale = \"1h\" } ]");
    let mut gateway = Running::start(&contract, "");
    for number in 0..300 {
        get(gateway.address, &format!("/r/{number}")).await;
    }
    let pid = gateway.child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    gateway.says("event=stopped").await;
    assert!(gateway.child.wait().unwrap().success());
    let file = rusqlite::Connection::open(directory.file()).unwrap();
    let entries: i64 = file
        .query_row("SELECT count(*) FROM copies", [], |row| row.get(0))
        .unwrap();
    assert_eq!(entries, 300);
}
