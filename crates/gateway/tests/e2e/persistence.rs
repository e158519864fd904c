//! Copies that survive: restarts, crashes, and files that fail.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use evenkeel::{Engine, ManualClock};
use evenkeel_gateway::proxy::Limits;

use crate::kit::{Answer, Bench, NO_BREAKER, Origin, PATIENCE, Reply, Seen, contract_with};

/// A directory of its own for each test.
pub(crate) struct Directory(PathBuf);

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl Directory {
    pub(crate) fn new() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("evenkeel-kept-{}-{number}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("snapshots.db")
    }

    pub(crate) fn keys(&self) -> String {
        format!("[store]\npath = {:?}\n", self.0)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
        drop(fs::remove_file(&self.0));
    }
}

/// Answers with the path, and with a lifetime where the route caches.
fn by_path(
    fields: &'static [(&'static str, &'static str)],
) -> impl Fn(&Seen) -> Reply + Send + Sync + 'static {
    move |seen| {
        let reply = Reply::ok(format!(
            "{} for {}",
            path_of(seen),
            seen.header("accept-language").unwrap_or("all")
        ));
        fields
            .iter()
            .fold(reply, |reply, (name, value)| reply.header(name, value))
    }
}

const PLAIN: &str = "ladder = [ { stale = \"1h\" } ]";
const CACHING: &str = "freshness = \"origin\"";

fn kept(directory: &Directory, origin: &Origin, route: &str) -> String {
    contract_with(origin.address, &directory.keys(), NO_BREAKER, route)
}

/// Waits until the store says so.
pub(crate) async fn store(bench: &Bench, series: &str, value: u64) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while bench.metric(series).await != Some(value) {
        assert!(
            tokio::time::Instant::now() < end,
            "waited in vain: {series} {value}\n{}",
            bench.metrics().await
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn start(contract: &str) -> Bench {
    let bench = Bench::start(contract).await;
    store(&bench, "evenkeel_store_up", 1).await;
    bench
}

async fn stop(bench: Bench) {
    assert!(bench.gateway.stop(PATIENCE).await);
}

fn age(answer: &Answer) -> u64 {
    answer.header("age").unwrap_or("none").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_040_a_thousand_snapshots_outlive_a_restart_with_the_origin_down() {
    for (route, fields) in [
        (PLAIN, &[][..]),
        (
            CACHING,
            &[
                ("cache-control", "max-age=0, stale-if-error=3600"),
                ("etag", "\"1\""),
            ][..],
        ),
    ] {
        let (directory, origin) = (Directory::new(), Origin::start(by_path(fields)).await);
        let text = kept(&directory, &origin, route);
        let bench = start(&text).await;
        for number in 0..1000 {
            assert_eq!(bench.get(&format!("/r/{number}")).await.status, 200);
        }
        stop(bench).await;
        origin.stop().await;
        // Nobody waits until everything is in memory.
        let bench = start(&text).await;
        for number in 0..1000 {
            let answer = bench.get(&format!("/r/{number}")).await;
            assert_eq!(
                (answer.status, answer.freshness(), answer.text()),
                (200, "stale", format!("/r/{number} for all")),
                "{route}"
            );
        }
        stop(bench).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ages_count_on_over_a_restart_and_are_never_younger() {
    for (route, fields) in [
        (PLAIN, &[("age", "40")][..]),
        (CACHING, &[("cache-control", "max-age=600"), ("age", "40")][..]),
    ] {
        let (directory, origin) = (Directory::new(), Origin::start(by_path(fields)).await);
        let text = kept(&directory, &origin, route);
        let bench = start(&text).await;
        bench.get("/r/1").await;
        tokio::time::sleep(Duration::from_millis(1100)).await;
        stop(bench).await;
        origin.stop().await;
        let bench = start(&text).await;
        let answer = bench.get("/r/1").await;
        assert_eq!(answer.status, 200);
        assert!((41..60).contains(&age(&answer)), "{route}: {}", age(&answer));
        stop(bench).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fresh_copy_is_fresh_after_a_restart_and_keeps_its_variants_and_fields() {
    let fields = &[
        ("cache-control", "max-age=600"),
        ("vary", "accept-language"),
        ("x-kept", "a"),
        ("x-kept", "b"),
        ("content-type", "text/plain"),
    ];
    let (directory, origin) = (Directory::new(), Origin::start(by_path(fields)).await);
    let text = kept(&directory, &origin, CACHING);
    let bench = start(&text).await;
    for language in ["de", "en"] {
        bench.get_with("/r/1", &[("accept-language", language)]).await;
    }
    stop(bench).await;
    let bench = start(&text).await;
    for language in ["de", "en"] {
        let answer = bench.get_with("/r/1", &[("accept-language", language)]).await;
        assert_eq!(answer.text(), format!("/r/1 for {language}"));
        assert_eq!(answer.header("x-kept"), Some("a"));
        assert_eq!(answer.header("content-type"), Some("text/plain"));
        assert!(answer.header("cache-status").unwrap().contains("hit"));
    }
    assert_eq!(origin.hits(), 2, "nothing was asked again");
    bench.get_with("/r/1", &[("accept-language", "fr")]).await;
    assert_eq!(origin.hits(), 3);
    stop(bench).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e44_a_copy_dated_ahead_of_the_clock_is_not_served_after_a_restart() {
    for (route, fields) in [
        (PLAIN, &[][..]),
        (
            CACHING,
            &[("cache-control", "max-age=600, stale-if-error=3600")][..],
        ),
    ] {
        let (directory, origin) = (Directory::new(), Origin::start(by_path(fields)).await);
        let text = kept(&directory, &origin, route);
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(3600));
        let engine = Engine::new(clock.clone(), 7);
        let bench = Bench::start_with(&text, engine, Some(clock), Limits::default()).await;
        store(&bench, "evenkeel_store_up", 1).await;
        bench.get("/r/1").await;
        stop(bench).await;
        origin.stop().await;
        // This one begins an hour earlier.
        let bench = Bench::with_manual_clock(&text).await;
        store(&bench, "evenkeel_store_up", 1).await;
        let answer = bench.get("/r/1").await;
        assert_eq!(answer.status, 502, "{route}: {}", answer.text());
        // Waiting does not make it true.
        bench.advance(Duration::from_secs(3700));
        assert_eq!(bench.get("/r/1").await.status, 502);
        stop(bench).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_contract_says_now_holds_for_copies_of_before() {
    let (directory, origin) = (Directory::new(), Origin::start(by_path(&[("age", "50")])).await);
    let bench = start(&kept(&directory, &origin, PLAIN)).await;
    bench.get("/r/1").await;
    stop(bench).await;
    origin.stop().await;
    for (route, status) in [
        ("ladder = [ { stale = \"40s\" } ]", 502),
        ("", 502),
        ("ladder = [ { stale = \"10m\" } ]\nscope = [ \"path:id\" ]", 502),
        ("ladder = [ { stale = \"10m\" } ]", 200),
    ] {
        let bench = start(&kept(&directory, &origin, route)).await;
        assert_eq!(bench.get("/r/1").await.status, status, "{route}");
        stop(bench).await;
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Returns what is in the files of a store, once this text is in them. The last of its threads may still be closing it:
/// what was listed can be gone when it is read, and be in another file by then.
async fn all_of(directory: &Directory, text: &str) -> Vec<u8> {
    for _ in 0..200 {
        let files = fs::read_dir(directory.path()).unwrap();
        let read: Result<Vec<Vec<u8>>, _> = files.map(|entry| fs::read(entry?.path())).collect();
        if let Ok(all) = read.map(|files| files.concat())
            && holds(&all, text)
        {
            return all;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{text} is in no file of the store");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_private_or_not_to_be_stored_never_gets_to_the_disk() {
    const SECRET: &str = "the secret of one caller";
    for route in [PLAIN, CACHING] {
        for said in ["no-store", "private, max-age=60"] {
            let directory = Directory::new();
            let origin = Origin::always(Reply::ok(SECRET).header("cache-control", said)).await;
            let bench = start(&kept(&directory, &origin, route)).await;
            bench.get("/r/1").await;
            origin.now(Reply::ok("public").header("cache-control", "max-age=60"));
            bench.get("/r/2").await;
            stop(bench).await;
            let all = all_of(&directory, "public").await;
            assert!(!holds(&all, SECRET), "{route} {said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_write_has_made_wrong_is_gone_for_good_when_the_write_is_answered() {
    for (route, fields) in [
        (PLAIN, &[][..]),
        (
            CACHING,
            &[("cache-control", "max-age=600, stale-if-error=3600")][..],
        ),
    ] {
        let (directory, origin) = (Directory::new(), Origin::start(by_path(fields)).await);
        let text = kept(&directory, &origin, &format!("{route}\nother_methods = \"pass\""));
        let bench = start(&text).await;
        bench.get("/r/1").await;
        bench.get("/r/2").await;
        store(&bench, "evenkeel_store_entries", 2).await;
        stop(bench).await;
        // Memory does not have them; the file does.
        let bench = start(&text).await;
        let mut client = crate::kit::Client::connect(bench.address()).await;
        let written = client.request("POST", "/r/1", &[("content-length", "0")]).await;
        assert_eq!(written.status, 200, "{}", written.text());
        // At this moment the process could be killed: a copy of its file says what would be left.
        let copy = Directory::new();
        fs::create_dir_all(copy.path()).unwrap();
        for entry in fs::read_dir(directory.path()).unwrap() {
            let entry = entry.unwrap();
            if entry.file_name() != "lock" {
                fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
            }
        }
        assert_eq!(bench.metric("evenkeel_store_removals_late_total").await, Some(0));
        origin.stop().await;
        assert_eq!(bench.get("/r/1").await.status, 502, "{route}");
        let after =
            start(&text.replace(directory.path().to_str().unwrap(), copy.path().to_str().unwrap())).await;
        assert_eq!(after.get("/r/1").await.status, 502, "{route}");
        assert_eq!(after.get("/r/2").await.status, 200, "{route}");
        stop(after).await;
        stop(bench).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_memory_has_no_room_for_comes_from_the_disk() {
    for (route, cache_control) in [(PLAIN, "max-age=0"), (CACHING, "max-age=0, stale-if-error=3600")] {
        let directory = Directory::new();
        let origin = Origin::start(move |seen| {
            let body = format!("{} {}", path_of(seen), "x".repeat(20_000));
            Reply::ok(body)
                .header("cache-control", cache_control)
                .header("etag", "\"1\"")
        })
        .await;
        let top = format!("memory = \"1MiB\"\n{}", directory.keys());
        let bench = start(&contract_with(origin.address, &top, NO_BREAKER, route)).await;
        for number in 0..200 {
            bench.get(&format!("/r/{number}")).await;
        }
        store(&bench, "evenkeel_store_entries", 200).await;
        origin.stop().await;
        for number in 0..200 {
            let answer = bench.get(&format!("/r/{number}")).await;
            assert_eq!(answer.status, 200, "{route} {number} {}", bench.metrics().await);
            assert!(answer.text().starts_with(&format!("/r/{number} ")));
        }
        for series in ["evenkeel_snapshot_bytes", "evenkeel_shelf_bytes"] {
            assert!(bench.metric(series).await.unwrap() <= 1 << 20);
        }
        stop(bench).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_042_whatever_is_in_the_directory_the_gateway_starts_and_serves() {
    let contents: [(&str, Vec<u8>); 4] = [
        ("nothing", Vec::new()),
        ("text", b"this is a list of things to buy\n".repeat(500)),
        (
            "noise",
            (0..50_000_u32)
                .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
                .collect(),
        ),
        ("a head alone", b"SQLite format 3\0".to_vec()),
    ];
    for (what, content) in contents {
        let (directory, origin) = (Directory::new(), Origin::start(by_path(&[])).await);
        fs::create_dir_all(directory.path()).unwrap();
        fs::write(directory.file(), &content).unwrap();
        for name in ["snapshots.db-wal", "other.txt", "empty"] {
            fs::write(directory.path().join(name), &content).unwrap();
        }
        let text = kept(&directory, &origin, PLAIN);
        let bench = start(&text).await;
        for number in 0..20 {
            assert_eq!(bench.get(&format!("/r/{number}")).await.status, 200, "{what}");
        }
        stop(bench).await;
        assert!(directory.path().join("other.txt").exists(), "{what}");
        origin.stop().await;
        let bench = start(&text).await;
        for number in 0..20 {
            let answer = bench.get(&format!("/r/{number}")).await;
            assert_eq!((answer.status, answer.freshness()), (200, "stale"), "{what}");
        }
        stop(bench).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_place_to_write_the_gateway_serves_from_memory_and_says_so() {
    let (directory, origin) = (Directory::new(), Origin::start(by_path(&[])).await);
    fs::write(directory.path(), "a file where a directory should be").unwrap();
    let bench = Bench::start(&kept(&directory, &origin, PLAIN)).await;
    store(&bench, "evenkeel_store_down{reason=\"unreachable\"}", 1).await;
    assert_eq!(bench.metric("evenkeel_store_up").await, Some(0));
    assert_eq!(bench.get("/r/1").await.status, 200);
    origin.stop().await;
    assert_eq!(bench.get("/r/1").await.freshness(), "stale");
    assert_eq!(bench.get("/r/2").await.status, 502);
    // Somebody mends it, and what waited is written.
    fs::remove_file(directory.path()).unwrap();
    store(&bench, "evenkeel_store_up", 1).await;
    store(&bench, "evenkeel_store_entries", 1).await;
    stop(bench).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_gateway_on_one_directory_serves_without_it_until_it_is_free() {
    let (directory, origin) = (Directory::new(), Origin::start(by_path(&[])).await);
    let text = kept(&directory, &origin, PLAIN);
    let first = start(&text).await;
    let second = Bench::start(&text).await;
    store(&second, "evenkeel_store_down{reason=\"in-use\"}", 1).await;
    assert_eq!(second.get("/r/1").await.status, 200);
    stop(first).await;
    store(&second, "evenkeel_store_up", 1).await;
    store(&second, "evenkeel_store_entries", 1).await;
    stop(second).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_hangs_holds_up_no_request_and_its_backlog_is_seen() {
    let (directory, origin) = (Directory::new(), Origin::start(by_path(&[])).await);
    let bench = start(&kept(&directory, &origin, PLAIN)).await;
    bench.get("/r/0").await;
    store(&bench, "evenkeel_store_entries", 1).await;
    let other = rusqlite::Connection::open(directory.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for number in 1..100 {
        assert_eq!(bench.get(&format!("/r/{number}")).await.status, 200);
    }
    store(&bench, "evenkeel_store_down{reason=\"in-use\"}", 1).await;
    store(&bench, "evenkeel_store_backlog_entries", 99).await;
    assert!(bench.metric("evenkeel_store_backlog_bytes").await.unwrap() > 99 * 200);
    let waited = bench.metrics().await;
    assert!(
        !waited.contains("evenkeel_store_backlog_seconds 0.0\n"),
        "{waited}"
    );
    other.execute_batch("ROLLBACK").unwrap();
    store(&bench, "evenkeel_store_up", 1).await;
    store(&bench, "evenkeel_store_entries", 100).await;
    store(&bench, "evenkeel_store_backlog_entries", 0).await;
    stop(bench).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_taken_away_while_it_is_used_is_begun_anew() {
    let (directory, origin) = (Directory::new(), Origin::start(by_path(&[])).await);
    let bench = start(&kept(&directory, &origin, PLAIN)).await;
    bench.get("/r/0").await;
    store(&bench, "evenkeel_store_entries", 1).await;
    fs::remove_file(directory.file()).unwrap();
    for number in 1..10 {
        assert_eq!(bench.get(&format!("/r/{number}")).await.status, 200);
    }
    let end = tokio::time::Instant::now() + PATIENCE;
    while !directory.file().exists() {
        assert!(tokio::time::Instant::now() < end, "no new file");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    store(&bench, "evenkeel_store_up", 1).await;
    bench.get("/r/99").await;
    store(&bench, "evenkeel_store_backlog_entries", 0).await;
    stop(bench).await;
}

fn path_of(seen: &Seen) -> &str {
    seen.line.split(' ').nth(1).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_of_routes_that_say_who_asked_are_for_memory_alone() {
    for route in [PLAIN, CACHING] {
        let directory = Directory::new();
        let origin = Origin::start(by_path(&[("cache-control", "max-age=600, stale-if-error=3600")])).await;
        let top = format!(
            "trusted_peers = [\"127.0.0.1\"]\nidentity_from_peers = {{ tenant = \"x-tenant\" }}\n{}",
            directory.keys()
        );
        let route = format!("{route}\nscope = [\"tenant\"]");
        let text = contract_with(origin.address, &top, NO_BREAKER, &route);
        let bench = start(&text).await;
        assert_eq!(bench.get_with("/r/1", &[("x-tenant", "acme")]).await.status, 200);
        store(&bench, "evenkeel_store_drops_total{why=\"private\"}", 1).await;
        stop(bench).await;
        origin.stop().await;
        let bench = start(&text).await;
        assert_eq!(bench.metric("evenkeel_store_entries").await, Some(0));
        assert_eq!(
            bench.get_with("/r/1", &[("x-tenant", "acme")]).await.status,
            502,
            "{route}"
        );
        stop(bench).await;
    }
}
