//! Every key of a contract is flipped, and something else happens.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "every_key/addresses.rs"]
mod addresses;
#[path = "every_key/caching.rs"]
mod caching;
#[path = "every_key/hints.rs"]
mod hints;
#[path = "every_key/keeping.rs"]
mod keeping;
#[path = "e2e/kit.rs"]
mod kit;
#[path = "every_key/ladder.rs"]
mod ladder;
#[path = "every_key/late.rs"]
mod late;
#[path = "every_key/load.rs"]
mod load;
#[path = "every_key/meaning.rs"]
mod meaning;
#[path = "every_key/protection.rs"]
mod protection;
#[path = "every_key/reload.rs"]
mod reload;
#[path = "every_key/retries.rs"]
mod retries;
#[path = "every_key/room.rs"]
mod room;
#[path = "every_key/steering.rs"]
mod steering;
#[path = "every_key/store.rs"]
mod store;

use std::{collections::BTreeSet, future::Future, pin::Pin, process::Command, time::Duration};

use evenkeel_core::{BreakerRules, OpenFor, Over};
use evenkeel_gateway::{config, workers};
use kit::{
    Bench, Client, NO_BREAKER, Origin, Reply, STALE, contract, contract_with, get, get_admin, get_with, until,
};

type Check = fn() -> Pin<Box<dyn Future<Output = ()>>>;

/// Makes a plain function of an async one, so that a table can hold it.
macro_rules! check {
    ($check:expr) => {
        || Box::pin($check)
    };
}

const CHECKS: &[(&str, &str, Check)] = &[
    ("gateway", "listen", check!(listen())),
    ("gateway", "admin", check!(admin())),
    ("gateway", "memory", check!(memory())),
    ("gateway", "scope_share", check!(caching::scope_share())),
    ("gateway", "buffers", check!(buffers())),
    ("gateway", "workers", check!(worker_threads())),
    ("gateway", "drain", check!(drain())),
    ("gateway", "access_log", check!(access_log())),
    ("gateway", "trusted_peers", check!(trusted_peers())),
    ("gateway", "state", check!(steering::state())),
    (
        "gateway",
        "admin_token_file",
        check!(steering::admin_token_file()),
    ),
    ("gateway", "metrics", check!(steering::metrics())),
    ("routes", "tags", check!(steering::tags())),
    ("gateway", "observe_only", check!(steering::observe_only())),
    ("routes", "observe_only", check!(steering::observe_only())),
    (
        "gateway",
        "identity_from_peers",
        check!(protection::identity_from_peers()),
    ),
    (
        "gateway.identity_from_peers",
        "tenant",
        check!(protection::identity_from_peers()),
    ),
    (
        "gateway.identity_from_peers",
        "subject",
        check!(protection::identity_from_peers()),
    ),
    (
        "gateway.identity_from_peers",
        "entitlements",
        check!(protection::identity_from_peers()),
    ),
    ("authorities.<name>", "from", check!(protection::from())),
    ("authorities.<name>", "method", check!(protection::method())),
    ("authorities.<name>", "path", check!(protection::path())),
    ("authorities.<name>", "headers", check!(protection::headers())),
    ("authorities.<name>", "consume", check!(protection::consume())),
    ("authorities.<name>", "copy", check!(protection::copy())),
    ("authorities.<name>", "identity", check!(protection::identity())),
    ("authorities.<name>", "deny", check!(protection::deny())),
    ("authorities.<name>", "deadline", check!(protection::deadline())),
    (
        "authorities.<name>.identity",
        "tenant",
        check!(protection::identity()),
    ),
    (
        "authorities.<name>.identity",
        "subject",
        check!(protection::identity()),
    ),
    (
        "authorities.<name>.identity",
        "entitlements",
        check!(protection::identity()),
    ),
    ("routes", "authorize", check!(protection::authorize())),
    ("gateway", "watch", check!(reload::watch())),
    ("store", "path", check!(store::path())),
    ("store", "max", check!(store::max())),
    ("store", "backlog", check!(store::backlog())),
    ("store", "timeout", check!(store::timeout())),
    ("store", "clock_skew", check!(store::clock_skew())),
    ("resources.<name>", "concurrency", check!(resource())),
    ("dependencies.<name>", "urls", check!(urls())),
    ("dependencies.<name>", "urls", check!(addresses::urls())),
    ("dependencies.<name>", "classify", check!(meaning::classify())),
    ("dependencies.<name>", "classes", check!(meaning::ladder())),
    ("dependencies.<name>.classes", "outage", check!(meaning::outage())),
    (
        "dependencies.<name>.classes",
        "refusal",
        check!(meaning::refusal()),
    ),
    ("dependencies.<name>.classes", "gone", check!(meaning::gone())),
    ("dependencies.<name>.classes", "busy", check!(meaning::busy())),
    (
        "dependencies.<name>.classes.outage",
        "breaker",
        check!(meaning::breaker()),
    ),
    (
        "dependencies.<name>.classes.outage",
        "ladder",
        check!(meaning::outage()),
    ),
    (
        "dependencies.<name>.classes.refusal",
        "breaker",
        check!(meaning::refusal()),
    ),
    (
        "dependencies.<name>.classes.refusal",
        "ladder",
        check!(meaning::no_ladder()),
    ),
    (
        "dependencies.<name>.classes.gone",
        "breaker",
        check!(meaning::gone()),
    ),
    (
        "dependencies.<name>.classes.gone",
        "ladder",
        check!(meaning::no_ladder()),
    ),
    (
        "dependencies.<name>.classes.busy",
        "breaker",
        check!(meaning::busy()),
    ),
    (
        "dependencies.<name>.classes.busy",
        "ladder",
        check!(meaning::ladder()),
    ),
    ("gateway", "deadline_from", check!(hints::deadline_from())),
    ("gateway", "criticality_from", check!(hints::criticality_from())),
    ("gateway", "trace", check!(hints::trace())),
    ("dependencies.<name>", "deadline_to", check!(hints::deadline_to())),
    ("dependencies.<name>", "balance", check!(addresses::balance())),
    ("dependencies.<name>", "eject", check!(addresses::eject())),
    (
        "dependencies.<name>.eject",
        "consecutive",
        check!(addresses::consecutive()),
    ),
    ("dependencies.<name>.eject", "for", check!(addresses::lasts())),
    (
        "dependencies.<name>.eject",
        "for_max",
        check!(addresses::lasts_at_most()),
    ),
    ("dependencies.<name>.eject", "jitter", check!(addresses::jitter())),
    (
        "dependencies.<name>.eject",
        "max_share",
        check!(addresses::max_share()),
    ),
    (
        "dependencies.<name>.eject",
        "statuses",
        check!(addresses::statuses()),
    ),
    ("dependencies.<name>", "uses", check!(resource())),
    ("dependencies.<name>", "timeout", check!(timeout())),
    ("dependencies.<name>", "concurrency", check!(concurrency())),
    ("dependencies.<name>", "breaker", check!(breaker_off())),
    (
        "dependencies.<name>.breaker",
        "consecutive",
        check!(consecutive()),
    ),
    (
        "dependencies.<name>.breaker",
        "failure_ratio",
        check!(failure_ratio()),
    ),
    (
        "dependencies.<name>.breaker",
        "window",
        check!(rule("window = \"20s\"")),
    ),
    (
        "dependencies.<name>.breaker",
        "window_calls",
        check!(window_calls()),
    ),
    ("dependencies.<name>.breaker", "min_calls", check!(min_calls())),
    ("dependencies.<name>.breaker", "slow_after", check!(slow_after())),
    ("dependencies.<name>.breaker", "slow_ratio", check!(slow_ratio())),
    ("dependencies.<name>.breaker", "open_for", check!(open_for())),
    (
        "dependencies.<name>.breaker",
        "open_for_max",
        check!(rule("open_for_max = \"9s\"")),
    ),
    (
        "dependencies.<name>.breaker",
        "jitter",
        check!(rule("jitter = \"0%\"")),
    ),
    (
        "dependencies.<name>.breaker",
        "probes",
        check!(rule("probes = 2")),
    ),
    (
        "dependencies.<name>.breaker",
        "close_after",
        check!(rule("close_after = 3")),
    ),
    (
        "dependencies.<name>.breaker",
        "lease",
        check!(rule("lease = \"7s\"")),
    ),
    ("dependencies.<name>", "abandoned", check!(room::abandoned())),
    ("dependencies.<name>", "queue", check!(room::queue())),
    ("dependencies.<name>.queue", "length", check!(room::length())),
    ("dependencies.<name>.queue", "wait", check!(room::wait())),
    ("routes", "criticality", check!(room::criticality())),
    ("dependencies.<name>", "retry", check!(retries::retry())),
    (
        "dependencies.<name>.retry",
        "attempts",
        check!(retries::attempts()),
    ),
    ("dependencies.<name>.retry", "budget", check!(retries::budget())),
    ("dependencies.<name>.retry", "floor", check!(retries::floor())),
    ("dependencies.<name>.retry", "pause", check!(retries::pause())),
    (
        "dependencies.<name>.retry",
        "pause_max",
        check!(retries::pause_max()),
    ),
    (
        "dependencies.<name>.retry",
        "retry_after_max",
        check!(retries::retry_after_max()),
    ),
    ("dependencies.<name>", "probe", check!(load::probe())),
    ("dependencies.<name>.probe", "path", check!(load::probe())),
    ("dependencies.<name>", "ramp", check!(load::ramp())),
    ("dependencies.<name>.ramp", "stages", check!(load::stages())),
    ("dependencies.<name>.ramp", "hold", check!(load::hold())),
    ("dependencies.<name>.ramp", "hold_max", check!(load::hold_max())),
    ("dependencies.<name>.ramp", "calls", check!(load::calls())),
    (
        "dependencies.<name>.ramp",
        "failure_ratio",
        check!(load::failure_ratio()),
    ),
    (
        "dependencies.<name>",
        "learned_limit",
        check!(load::learned_limit()),
    ),
    (
        "dependencies.<name>.learned_limit",
        "floor",
        check!(load::floor()),
    ),
    ("dependencies.<name>.learned_limit", "cold", check!(load::cold())),
    (
        "dependencies.<name>.learned_limit",
        "linger",
        check!(load::linger()),
    ),
    (
        "dependencies.<name>",
        "rewrite",
        check!(rewrites("host = \"upstream\"")),
    ),
    (
        "dependencies.<name>.rewrite",
        "host",
        check!(rewrites("host = \"b.example\"")),
    ),
    (
        "dependencies.<name>.rewrite",
        "strip_prefix",
        check!(rewrites("strip_prefix = \"/r\"")),
    ),
    (
        "dependencies.<name>.rewrite",
        "add_prefix",
        check!(rewrites("add_prefix = \"/v1\"")),
    ),
    (
        "dependencies.<name>.rewrite",
        "set_request",
        check!(rewrites("set_request = { x-a = \"1\" }")),
    ),
    (
        "dependencies.<name>.rewrite",
        "remove_request",
        check!(rewrites("remove_request = [\"x-b\"]")),
    ),
    (
        "dependencies.<name>.rewrite",
        "set_response",
        check!(rewrites("set_response = { x-a = \"1\" }")),
    ),
    (
        "dependencies.<name>.rewrite",
        "remove_response",
        check!(rewrites("remove_response = [\"x-c\"]")),
    ),
    ("routes", "name", check!(name())),
    ("routes", "match", check!(path())),
    ("routes", "class", check!(class())),
    ("routes", "from", check!(from())),
    ("routes", "deadline", check!(deadline())),
    ("routes", "scope", check!(scope())),
    ("routes", "ladder", check!(stale())),
    ("routes", "when_busy", check!(when_busy())),
    ("routes", "exact", check!(exact())),
    ("routes", "keep_if", check!(keep_if_status())),
    ("routes", "max_body", check!(max_body())),
    ("routes", "coalesce", check!(coalesce())),
    ("routes", "soft_timeout", check!(soft_timeout())),
    ("routes", "freshness", check!(caching::freshness())),
    ("routes", "heuristic", check!(caching::heuristic())),
    (
        "routes",
        "stale_while_revalidate",
        check!(caching::stale_while_revalidate()),
    ),
    ("routes", "ignore_cookies", check!(caching::ignore_cookies())),
    ("routes", "keep_set_cookie", check!(caching::keep_set_cookie())),
    ("routes", "override", check!(caching::set_aside())),
    (
        "routes",
        "request_directives",
        check!(caching::request_directives()),
    ),
    ("routes", "normalise", check!(caching::normalise())),
    ("dependencies.<name>", "resend", check!(caching::resend())),
    ("routes", "cool_down", check!(cool_down())),
    ("routes", "other_methods", check!(other_methods())),
    ("routes", "max_request_body", check!(max_request_body())),
    ("routes.match", "path", check!(path())),
    ("routes.match", "host", check!(host())),
    ("routes.match", "method", check!(method())),
    ("routes.match", "header", check!(header())),
    ("routes.ladder", "stale", check!(stale())),
    ("routes.ladder", "alternate", check!(ladder::alternate())),
    ("routes", "on_timeout", check!(late::on_timeout())),
    ("routes", "finish_within", check!(late::finish_within())),
    ("routes", "jitter", check!(late::jitter())),
    ("routes", "refresh_ahead", check!(late::refresh_ahead())),
    ("routes", "exercise", check!(ladder::exercise())),
    (
        "routes.ladder",
        "default",
        check!(default("body = \"x\", content_type = \"a/b\"")),
    ),
    (
        "routes.ladder.default",
        "status",
        check!(default("status = 203, body = \"x\", content_type = \"a/b\"")),
    ),
    (
        "routes.ladder.default",
        "content_type",
        check!(default("body = \"x\", content_type = \"c/d\"")),
    ),
    (
        "routes.ladder.default",
        "body",
        check!(default("body = \"y\", content_type = \"a/b\"")),
    ),
    (
        "routes.ladder.default",
        "cache_control",
        check!(default(
            "cache_control = \"max-age=5\", body = \"x\", content_type = \"a/b\""
        )),
    ),
    ("routes.keep_if", "status", check!(keep_if_status())),
    ("routes.keep_if", "not_empty", check!(keep_if_not_empty())),
    ("routes.keep_if", "content_type", check!(keeping::content_type())),
    ("routes.keep_if", "min_size", check!(keeping::min_size())),
    ("routes.keep_if", "max_size", check!(keeping::max_size())),
    ("routes.keep_if", "json", check!(keeping::json_there())),
    (
        "routes.keep_if",
        "json_not_empty",
        check!(keeping::json_not_empty()),
    ),
    ("routes.keep_if", "grpc", check!(keeping::grpc())),
    ("routes.keep_if", "graphql", check!(keeping::graphql())),
    ("routes.keep_if", "else", check!(keeping::otherwise())),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_key_has_an_effect() {
    let known: BTreeSet<(&str, &str)> = config::keys::ALL
        .iter()
        .flat_map(|(table, keys)| keys.iter().map(|key| (*table, *key)))
        .collect();
    let checked: BTreeSet<(&str, &str)> = CHECKS.iter().map(|(table, key, _)| (*table, *key)).collect();
    assert_eq!(known, checked, "a key without a check, or a check without a key");
    for (table, key, check) in CHECKS {
        println!("{table}.{key}");
        check().await;
    }
}

async fn ok() -> Origin {
    Origin::always(Reply::ok("body")).await
}

async fn dead() -> Origin {
    let origin = ok().await;
    origin.stop().await;
    origin
}

async fn status(contract: &str) -> u16 {
    Bench::start(contract).await.get("/r/1").await.status
}

async fn listen() {
    let origin = ok().await;
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let text = contract(origin.address, "", "").replacen("127.0.0.1:0", &free.to_string(), 1);
    let bench = Bench::start(&text).await;
    assert_eq!(bench.address(), free);
    assert_eq!(get(free, "/r/1").await.status, 200);
}

async fn admin() {
    let origin = ok().await;
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let text =
        contract(origin.address, "", "").replace("admin = \"127.0.0.1:0\"", &format!("admin = \"{free}\""));
    let _bench = Bench::start(&text).await;
    let host = free.to_string();
    assert_eq!(get_admin(free, &host, "/livez").await.status, 200);
}

async fn memory() {
    let origin = Origin::always(Reply::ok(vec![b'x'; 700_000])).await;
    for (size, kept) in [("1MiB", 1), ("8MiB", 2)] {
        let text = contract_with(origin.address, &format!("memory = \"{size}\""), "", STALE);
        let bench = Bench::start(&text).await;
        bench.get("/r/1").await;
        bench.get("/r/2").await;
        assert_eq!(bench.gateway.app().snapshots().0, kept, "{size}");
    }
}

async fn buffers() {
    let origin = Origin::always(Reply::ok(vec![b'x'; 70_000])).await;
    for (size, stored) in [("64KiB", false), ("128KiB", true)] {
        let text = contract_with(origin.address, &format!("buffers = \"{size}\""), "", STALE);
        let answer = Bench::start(&text).await.get("/r/1").await;
        assert_eq!(
            answer.header("cache-status").unwrap().ends_with("stored"),
            stored,
            "{size}"
        );
    }
}

async fn worker_threads() {
    let origin = ok().await;
    let text = contract_with(origin.address, "workers = 7", "", "");
    assert_eq!(workers(&config::parse("c", &text).unwrap().contract), 7);
}

/// What runs is cut after the drain time, or finished within it; the exit status tells.
async fn drain() {
    for (drain, code) in [("1ms", 1), ("20s", 0)] {
        let origin = Origin::always(Reply::ok("x").wait(Duration::from_millis(500))).await;
        let free = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let text = contract_with(origin.address, &format!("drain = \"{drain}\""), "", "").replacen(
            "127.0.0.1:0",
            &free.to_string(),
            1,
        );
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("drain-{drain}.toml"));
        std::fs::write(&path, text).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .arg("serve")
            .arg(&path)
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut client = loop {
            match tokio::net::TcpStream::connect(free).await {
                Ok(_) => break Client::connect(free).await,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        client.send("GET /r/1 HTTP/1.1\r\nhost: a\r\n\r\n").await;
        until("the request is at the origin", || origin.hits() == 1).await;
        assert!(
            Command::new("kill")
                .arg(child.id().to_string())
                .status()
                .unwrap()
                .success()
        );
        let ended = tokio::task::spawn_blocking(move || child.wait().unwrap())
            .await
            .unwrap();
        assert_eq!(ended.code(), Some(code), "{drain}");
    }
}

async fn trusted_peers() {
    for (peers, told) in [("::1", "127.0.0.1"), ("127.0.0.0/8", "192.0.2.9, 127.0.0.1")] {
        let origin = ok().await;
        let top = format!("trusted_peers = [\"{peers}\"]");
        let bench = Bench::start(&contract_with(origin.address, &top, "", "")).await;
        bench.get_with("/r/1", &[("x-forwarded-for", "192.0.2.9")]).await;
        assert_eq!(origin.seen()[0].header("x-forwarded-for"), Some(told), "{peers}");
    }
}

/// Without it nothing is written; with it a line, to a file or to standard output.
async fn access_log() {
    let origin = ok().await;
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("access-every-key.log");
    drop(std::fs::remove_file(&file));
    for (named, in_file, out) in [
        ("off".to_owned(), false, false),
        ("stdout".to_owned(), false, true),
        (file.display().to_string(), true, false),
    ] {
        let free = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let top = format!("access_log = \"{named}\"");
        let text = contract_with(origin.address, &top, "", "").replacen("127.0.0.1:0", &free.to_string(), 1);
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("access.toml");
        std::fs::write(&path, text).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .arg("serve")
            .arg(&path)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut client = loop {
            match tokio::net::TcpStream::connect(free).await {
                Ok(_) => break Client::connect(free).await,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        assert_eq!(client.get("/r/1", &[]).await.status, 200);
        drop(client);
        let stopped = Command::new("kill").arg(child.id().to_string()).status().unwrap();
        assert!(stopped.success());
        let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap())
            .await
            .unwrap();
        let line = "\"path\":\"/r/1\",\"status\":200";
        let printed = String::from_utf8_lossy(&output.stdout).contains(line);
        let written = std::fs::read_to_string(&file).is_ok_and(|text| text.contains(line));
        assert_eq!((written, printed), (in_file, out), "{named}");
    }
}

async fn resource() {
    let origin = Origin::always(Reply::hang()).await;
    for (uses, permits, second) in [
        ("", 0, 504),
        ("uses = [\"db\"]", 1, 503),
        ("uses = [\"db\"]", 2, 504),
    ] {
        let top = if uses.is_empty() {
            String::new()
        } else {
            format!("[resources.db]\nconcurrency = {permits}")
        };
        let dependency = format!("timeout = \"200ms\"\nbreaker = \"off\"\n{uses}");
        let bench = Bench::start(&contract_with(origin.address, &top, &dependency, "")).await;
        assert_eq!(second_of_two(&bench, &origin).await, second, "{uses} {permits}");
    }
}

/// Sends two requests to an origin that hangs, and returns the status of the second.
async fn second_of_two(bench: &Bench, origin: &Origin) -> u16 {
    let before = origin.hits();
    let mut first = Client::connect(bench.address()).await;
    first.send("GET /r/1 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    until("the first is at the origin", || origin.hits() > before).await;
    bench.get("/r/2").await.status
}

async fn urls() {
    let (one, other) = (
        Origin::always(Reply::ok("1")).await,
        Origin::always(Reply::ok("2")).await,
    );
    for (origin, body) in [(&one, "1"), (&other, "2")] {
        assert_eq!(
            Bench::start(&contract(origin.address, "", ""))
                .await
                .get("/r/1")
                .await
                .text(),
            body
        );
    }
}

async fn timeout() {
    let origin = Origin::always(Reply::ok("x").wait(Duration::from_millis(300))).await;
    for (span, expected) in [("50ms", 504), ("2s", 200)] {
        assert_eq!(
            status(&contract(origin.address, &format!("timeout = \"{span}\""), "")).await,
            expected
        );
    }
}

async fn concurrency() {
    let origin = Origin::always(Reply::hang()).await;
    for (permits, second) in [("concurrency = 1", 503), ("concurrency = 2", 504), ("", 504)] {
        let dependency = format!("timeout = \"200ms\"\n{permits}");
        let bench = Bench::start(&contract(origin.address, &dependency, "")).await;
        assert_eq!(second_of_two(&bench, &origin).await, second, "{permits}");
    }
}

/// Makes `calls` calls to a dead origin, and returns the status of one more.
async fn after_failures(breaker: &str, calls: usize) -> u16 {
    let origin = dead().await;
    let bench =
        Bench::with_manual_clock(&contract(origin.address, &format!("breaker = {breaker}"), "")).await;
    for _ in 0..calls {
        bench.get("/r/1").await;
    }
    bench.get("/r/1").await.status
}

async fn breaker_off() {
    assert_eq!(after_failures("\"off\"", 6).await, 502);
    assert_eq!(after_failures("{}", 6).await, 503);
}

async fn consecutive() {
    assert_eq!(after_failures("{ consecutive = 2 }", 2).await, 503);
    assert_eq!(after_failures("{ consecutive = 3 }", 2).await, 502);
}

/// Makes `good` calls that succeed and `bad` ones that fail, and tells whether the breaker is open.
async fn is_open(breaker: &str, good: usize, bad: usize) -> bool {
    let origin = ok().await;
    let text = contract(
        origin.address,
        &format!("breaker = {{ consecutive = 1000, {breaker} }}"),
        "",
    );
    let bench = Bench::with_manual_clock(&text).await;
    for _ in 0..good {
        bench.get("/r/1").await;
    }
    origin.stop().await;
    for _ in 0..bad {
        bench.get("/r/1").await;
    }
    bench.get("/r/1").await.status == 503
}

async fn failure_ratio() {
    assert!(is_open("failure_ratio = \"20%\"", 16, 4).await);
    assert!(!is_open("failure_ratio = \"30%\"", 16, 4).await);
}

async fn min_calls() {
    assert!(is_open("min_calls = 4", 2, 2).await);
    assert!(!is_open("min_calls = 6", 2, 2).await);
}

/// Failures that lie hours apart open it where calls are counted and not the time.
async fn window_calls() {
    for (rules, expected) in [("window_calls = 4", 503), ("", 502)] {
        let origin = dead().await;
        let breaker =
            format!("breaker = {{ consecutive = 1000, min_calls = 3, {rules} }}").replace(", }", " }");
        let bench = Bench::with_manual_clock(&contract(origin.address, &breaker, "")).await;
        for _ in 0..3 {
            bench.advance(Duration::from_secs(3600));
            bench.get("/r/1").await;
        }
        assert_eq!(bench.get("/r/1").await.status, expected, "{rules}");
    }
}

/// Makes answers that take a while, and then as many requests as in `asks`; returns the status of the last.
async fn after_slow(rules: &str, asks: usize) -> u16 {
    let origin = Origin::always(Reply::ok("x").wait(Duration::from_millis(40))).await;
    let breaker = format!(
        "breaker = {{ consecutive = 1000, min_calls = 2, open_for = \"1h\", open_for_max = \"1h\", {rules} }}"
    );
    let bench = Bench::start(&contract(origin.address, &breaker.replace(", }", " }"), "")).await;
    for _ in 1..asks {
        bench.get("/r/1").await;
    }
    bench.get("/r/1").await.status
}

async fn slow_after() {
    assert_eq!(after_slow("slow_after = \"10ms\"", 3).await, 503);
    assert_eq!(after_slow("slow_after = \"990ms\"", 3).await, 200);
    assert_eq!(after_slow("", 3).await, 200);
}

/// One answer of three is quick.
async fn slow_ratio() {
    for (share, expected) in [("60%", 503), ("70%", 200)] {
        let waits = [0, 40, 40, 0].map(|millis| Reply::ok("x").wait(Duration::from_millis(millis)));
        let origin = Origin::start(kit::in_turn(waits.to_vec())).await;
        let breaker = format!(
            "breaker = {{ consecutive = 1000, min_calls = 3, open_for = \"1h\", open_for_max = \"1h\", \
             slow_after = \"20ms\", slow_ratio = \"{share}\" }}"
        );
        let bench = Bench::start(&contract(origin.address, &breaker, "")).await;
        for _ in 0..3 {
            bench.get("/r/1").await;
        }
        assert_eq!(bench.get("/r/1").await.status, expected, "{share}");
    }
}

async fn open_for() {
    for (span, expected) in [("1s", "1"), ("30s", "30")] {
        let origin = dead().await;
        let breaker = format!(
            "breaker = {{ consecutive = 1, open_for = \"{span}\", open_for_max = \"30s\", jitter = \"0%\" }}"
        );
        let bench = Bench::with_manual_clock(&contract(origin.address, &breaker, "")).await;
        bench.get("/r/1").await;
        assert_eq!(bench.get("/r/1").await.header("retry-after"), Some(expected));
    }
}

/// Numbers that only time or many nodes would show: in the built dependency.
async fn rule(key: &str) {
    let origin = ok().await;
    let rules = async |text: String| -> BreakerRules {
        let bench = Bench::start(&contract(origin.address, &text, "")).await;
        *bench
            .gateway
            .app()
            .dependency("d")
            .unwrap()
            .contract()
            .breaker()
            .unwrap()
    };
    let before = rules(String::new()).await;
    let after = rules(format!("breaker = {{ {key} }}")).await;
    assert_ne!(before, after, "{key}");
    let OpenFor::Timed {
        longest, jitter_ppm, ..
    } = after.open_for
    else {
        panic!("no timed breaker")
    };
    let shown = format!(
        "window {:?} open_for_max {longest:?} jitter {jitter_ppm} probes {} close_after {} lease {:?}",
        match after.ratio.unwrap().window {
            Over::Time(span) => span,
            Over::Calls(_) => Duration::ZERO,
        },
        after.probes,
        after.close_after,
        after.lease,
    );
    let (name, value) = key.split_once(" = ").unwrap();
    let value = value.trim_matches('"').replace("0%", "0");
    let seen = [format!("{name} {value} "), format!("{name} Some({value})")];
    assert!(
        seen.iter().any(|seen| format!("{shown} ").contains(seen)),
        "{key}: {shown}"
    );
}

async fn name() {
    let origin = dead().await;
    let text = contract(
        origin.address,
        "",
        "ladder = [ { default = { body = \"x\", content_type = \"a/b\" } } ]",
    );
    for name in ["r", "other"] {
        let bench = Bench::start(&text.replace("name = \"r\"", &format!("name = \"{name}\""))).await;
        let answer = bench.get("/r/1").await;
        assert!(
            answer
                .header("degraded")
                .unwrap()
                .starts_with(&format!("{name};rung=default"))
        );
        assert!(
            bench
                .metrics()
                .await
                .contains(&format!("evenkeel_calls_total{{route=\"{name}\""))
        );
    }
}

async fn path() {
    let origin = ok().await;
    let text = contract(origin.address, "", "");
    assert_eq!(status(&text).await, 200);
    assert_eq!(status(&text.replace("/r/{id}", "/s/{id}")).await, 404);
}

/// What the origin sees, or what the client sees, is not what it is without the rewriting.
async fn rewrites(rewrite: &str) {
    let mut outcomes = Vec::new();
    for dependency in [String::new(), format!("rewrite = {{ {rewrite} }}")] {
        let origin = Origin::always(Reply::ok("body").header("x-c", "1")).await;
        let bench = Bench::start(&contract(origin.address, &dependency, "")).await;
        let answer = bench.get_with("/r/1", &[("x-b", "1")]).await;
        let seen = origin.seen().pop().unwrap();
        let fields: Vec<(String, String)> = answer
            .headers
            .into_iter()
            .filter(|(name, _)| name.starts_with("x-"))
            .collect();
        outcomes.push((seen.line, seen.headers, fields));
    }
    assert_ne!(outcomes[0], outcomes[1], "{rewrite}");
}

/// Returns the status of a GET to `shop.example` where `match` has this condition.
async fn status_where(condition: &str) -> u16 {
    let origin = ok().await;
    let text = contract(origin.address, "", "").replace("/r/{id}\"", &format!("/r/{{id}}\", {condition}"));
    let bench = Bench::start(&text).await;
    bench.get_with("/r/1", &[("x-beta", "1")]).await.status
}

async fn host() {
    assert_eq!(status_where("host = [\"shop.example\"]").await, 200);
    assert_eq!(status_where("host = [\"*.shop.example\"]").await, 404);
}

async fn method() {
    assert_eq!(status_where("method = [\"GET\"]").await, 200);
    assert_eq!(status_where("method = [\"HEAD\"]").await, 405);
}

async fn header() {
    assert_eq!(status_where("header = { x-beta = \"1\" }").await, 200);
    assert_eq!(status_where("header = { x-beta = \"2\" }").await, 404);
}

async fn class() {
    let origin = ok().await;
    for class in ["protect", "operate", "page", "Pass", ""] {
        let text =
            contract(origin.address, "", "").replace("class = \"read\"", &format!("class = \"{class}\""));
        assert!(config::parse("c", &text).is_err(), "{class}");
    }
    for (class, status) in [("read", 405), ("pass", 200)] {
        let text =
            contract(origin.address, "", "").replace("class = \"read\"", &format!("class = \"{class}\""));
        assert_eq!(post(&text, "").await, status, "{class}");
    }
}

/// Returns the status of the answer to a POST with this body.
async fn post(contract: &str, body: &str) -> u16 {
    let bench = Bench::start(contract).await;
    let mut client = Client::connect(bench.address()).await;
    let length = body.len();
    client
        .send(&format!(
            "POST /r/1 HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{body}"
        ))
        .await;
    client.answer(false).await.status
}

async fn other_methods() {
    let origin = ok().await;
    for (word, status) in [("refuse", 405), ("pass", 200)] {
        let text = contract(origin.address, "", &format!("other_methods = \"{word}\""));
        assert_eq!(post(&text, "").await, status, "{word}");
    }
}

async fn max_request_body() {
    let origin = ok().await;
    for (most, status) in [("4B", 413), ("5B", 200)] {
        let route = format!("other_methods = \"pass\"\nmax_request_body = \"{most}\"");
        assert_eq!(
            post(&contract(origin.address, "", &route), "hello").await,
            status,
            "{most}"
        );
    }
}

async fn from() {
    let (one, other) = (
        Origin::always(Reply::ok("1")).await,
        Origin::always(Reply::ok("2")).await,
    );
    let dependency = format!("[dependencies.e]\nurls = [\"http://{}\"]", other.address);
    let route = "[[routes]]\nname = \"s\"\nmatch = { path = \"/s\" }\nclass = \"read\"\nfrom = \"e\"";
    let text = contract(one.address, &dependency, route);
    for (path, body) in [("/r/1", "1"), ("/s", "2")] {
        assert_eq!(Bench::start(&text).await.get(path).await.text(), body);
    }
}

async fn deadline() {
    let origin = Origin::always(Reply::ok("x").wait(Duration::from_millis(300))).await;
    for (span, expected) in [("50ms", 504), ("2s", 200)] {
        assert_eq!(
            status(&contract(origin.address, "", &format!("deadline = \"{span}\""))).await,
            expected
        );
    }
}

async fn scope() {
    let origin = ok().await;
    assert_eq!(
        status(&contract(origin.address, "", "scope = [\"query:lang\"]")).await,
        400
    );
    assert_eq!(
        status(&contract(origin.address, "", "scope = [\"path:id\"]")).await,
        200
    );
    assert!(config::parse("c", &contract(origin.address, "", "scope = [\"path:tenant\"]")).is_err());
}

/// Keeps an answer, waits, loses the origin, and returns what the next request gets.
async fn outlived(route: &str, wait: Duration) -> kit::Answer {
    let origin = ok().await;
    let bench = Bench::with_manual_clock(&contract(origin.address, NO_BREAKER, route)).await;
    bench.get("/r/1").await;
    origin.stop().await;
    bench.advance(wait);
    bench.get("/r/1").await
}

async fn stale() {
    let wait = Duration::from_secs(60);
    assert_eq!(
        outlived("ladder = [ { stale = \"60s\" } ]", wait)
            .await
            .freshness(),
        "stale"
    );
    assert_eq!(
        outlived("ladder = [ { stale = \"59s\" } ]", wait).await.status,
        502
    );
    assert_eq!(outlived("", wait).await.status, 502);
}

async fn default(flipped: &str) {
    let answer = async |inside: &str| {
        let origin = dead().await;
        let route = format!("ladder = [ {{ default = {{ {inside} }} }} ]");
        let answer = Bench::start(&contract(origin.address, "", &route))
            .await
            .get("/r/1")
            .await;
        let content_type = answer.header("content-type").unwrap().to_owned();
        let cache_control = answer.header("cache-control").unwrap().to_owned();
        format!(
            "{} {content_type} {cache_control} {}",
            answer.status,
            answer.text()
        )
    };
    let before = answer("status = 201, body = \"x\", content_type = \"a/b\"").await;
    assert_eq!(before, "201 a/b no-store x");
    let after = answer(flipped).await;
    assert_ne!(before, after, "{flipped}");
    assert!(
        [
            "200 a/b no-store x",
            "203 a/b no-store x",
            "200 c/d no-store x",
            "200 a/b max-age=5 x",
            "200 a/b no-store y"
        ]
        .contains(&after.as_str()),
        "{after}"
    );
}

async fn when_busy() {
    for (what, expected) in [("ladder", 200), ("refuse", 503)] {
        let origin = ok().await;
        let route = format!("{STALE}\nwhen_busy = \"{what}\"");
        let text = contract(origin.address, "breaker = { consecutive = 1 }", &route);
        let bench = Bench::with_manual_clock(&text).await;
        bench.get("/r/1").await;
        origin.stop().await;
        bench.get("/r/1").await;
        assert_eq!(bench.get("/r/1").await.status, expected, "{what}");
    }
}

async fn exact() {
    let origin = ok().await;
    let parsed = |route: &str| config::parse("c", &contract(origin.address, "", route));
    assert!(parsed(STALE).is_ok());
    assert!(parsed("exact = true").is_ok_and(|loaded| loaded.contract.routes[0].exact));
    assert!(parsed(&format!("{STALE}\nexact = true")).is_err());
    assert!(parsed("coalesce = true\nexact = true").is_err());
}

/// Keeps `first`, then perhaps `second`, and returns what is left when the origin is gone.
async fn kept(route: &str, first: Reply, second: Reply) -> String {
    let origin = Origin::always(first).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, route)).await;
    bench.get("/r/1").await;
    origin.now(second);
    bench.get("/r/1").await;
    origin.stop().await;
    bench.get("/r/1").await.text()
}

async fn keep_if_status() {
    for (keep_if, expected) in [("", "two"), ("keep_if = { status = [200] }", "one")] {
        let route = format!("{STALE}\n{keep_if}");
        assert_eq!(
            kept(&route, Reply::ok("one"), Reply::status(203).body("two")).await,
            expected
        );
    }
}

async fn keep_if_not_empty() {
    for (not_empty, expected) in [("false", "[]"), ("true", "[1]")] {
        let route = format!("{STALE}\nkeep_if = {{ not_empty = {not_empty} }}");
        assert_eq!(kept(&route, Reply::ok("[1]"), Reply::ok("[]")).await, expected);
    }
}

async fn max_body() {
    let origin = Origin::always(Reply::ok(vec![b'x'; 1000])).await;
    for (size, stored) in [("999B", false), ("1000B", true)] {
        let text = contract(origin.address, "", &format!("{STALE}\nmax_body = \"{size}\""));
        let answer = Bench::start(&text).await.get("/r/1").await;
        assert_eq!(
            answer.header("cache-status").unwrap().ends_with("stored"),
            stored,
            "{size}"
        );
    }
}

async fn coalesce() {
    const RELOAD: (&str, &str) = ("cache-control", "no-cache");
    for (shared, fields, hits) in [("true", &[][..], 1), ("true", &[RELOAD], 4), ("false", &[], 4)] {
        let origin = Origin::always(Reply::ok("x").wait(Duration::from_millis(300))).await;
        let bench = Bench::start(&contract(origin.address, "", &format!("coalesce = {shared}"))).await;
        let address = bench.address();
        let calls: Vec<_> = (0..4)
            .map(|_| tokio::spawn(async move { get_with(address, "/r/1", fields).await }))
            .collect();
        for call in calls {
            assert_eq!(call.await.unwrap().status, 200);
        }
        assert_eq!(origin.hits(), hits, "{shared} {fields:?}");
    }
}

async fn soft_timeout() {
    for (soft, rung, reason) in [("50ms", "stale", Some("slow")), ("900ms", "fresh", None)] {
        let origin = ok().await;
        let route = format!("{STALE}\nsoft_timeout = \"{soft}\"");
        let bench = Bench::start(&contract(origin.address, "", &route)).await;
        bench.get("/r/1").await;
        origin.script(|_| Reply::ok("x").wait(Duration::from_millis(400)));
        let answer = bench.get("/r/1").await;
        assert_eq!(answer.freshness(), rung, "{soft}");
        let said = answer.header("degraded");
        assert_eq!(
            said.is_some_and(|said| said.contains("reason=slow")),
            reason.is_some(),
            "{soft}"
        );
    }
    for (route, place) in [
        ("soft_timeout = \"50ms\"", "set without a stale rung"),
        (
            "ladder = [ { stale = \"60s\" } ]\nsoft_timeout = \"1s\"",
            "ends the attempt after \"1s\"",
        ),
        (
            "ladder = [ { stale = \"60s\" } ]\nsoft_timeout = \"3s\"",
            "the deadline ends the call",
        ),
        ("ladder = [ { stale = \"60s\" } ]\nsoft_timeout = 5", "5"),
    ] {
        let problems = config::parse("c", &contract("127.0.0.1:1".parse().unwrap(), "", route))
            .unwrap_err()
            .to_string();
        assert!(
            problems.contains(".soft_timeout: ") && problems.contains(place),
            "{problems}"
        );
    }
}

async fn cool_down() {
    for (cool_down, second, hits) in [("cool_down = \"5s\"", 503, 1), ("", 500, 2)] {
        let origin = Origin::always(Reply::status(500)).await;
        let route = format!("coalesce = true\n{cool_down}");
        let bench = Bench::with_manual_clock(&contract(origin.address, NO_BREAKER, &route)).await;
        assert_eq!(bench.get("/r/1").await.status, 500);
        let answer = bench.get("/r/1").await;
        assert_eq!((answer.status, origin.hits()), (second, hits), "{cool_down}");
        if second == 503 {
            assert!(answer.text().contains("cool-down"));
            bench.advance(Duration::from_secs(5));
            assert_eq!(bench.get("/r/1").await.status, 500);
        }
    }
    for (route, told) in [
        (
            "cool_down = \"1s\"",
            "beside `coalesce`, or what refreshes copies",
        ),
        ("coalesce = true\ncool_down = \"2h\"", "3600s"),
        ("coalesce = true\ncool_down = 5", "5"),
    ] {
        let text = contract("127.0.0.1:1".parse().unwrap(), "", route);
        let problems = config::parse("c", &text).unwrap_err().to_string();
        assert!(
            problems.contains(".cool_down: ") && problems.contains(told),
            "{problems}"
        );
    }
}
