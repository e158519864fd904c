//! What the series say: coverage before it is needed, ages against their limit, breakers step by step, one label per route.

use std::{
    collections::BTreeSet,
    io::Write as _,
    process::{Command, Stdio},
    time::Duration,
};

use crate::kit::{Bench, Client, NO_BREAKER, Origin, Reply, STALE, contract, until};

async fn found(bench: &Bench, word: &str) -> u64 {
    let series = format!("evenkeel_coverage_calls_total{{route=\"r\",found=\"{word}\"}}");
    bench.metric(&series).await.unwrap()
}

async fn ages(bench: &Bench, bound: &str) -> u64 {
    let series = format!("evenkeel_stale_age_ratio_bucket{{route=\"r\",le=\"{bound}\"}}");
    bench.metric(&series).await.unwrap()
}

#[tokio::test]
async fn a_healthy_route_shows_what_an_outage_would_find() {
    let origin = Origin::always(Reply::ok("x")).await;
    let bench = Bench::with_manual_clock(&contract(origin.address, NO_BREAKER, STALE)).await;
    bench.get("/r/1").await;
    bench.get("/r/1").await;
    bench.get("/r/2").await;
    assert_eq!(
        (
            found(&bench, "servable").await,
            found(&bench, "no-snapshot").await
        ),
        (1, 2)
    );
    let text = bench.metrics().await;
    assert!(
        text.contains("evenkeel_coverage_ratio{route=\"r\"} 0.333333\n"),
        "{text}"
    );
    bench.advance(Duration::from_secs(60));
    bench.get("/r/1").await;
    assert_eq!(found(&bench, "servable").await, 2, "at its limit it is servable");
    bench.advance(Duration::from_secs(61));
    bench.get("/r/1").await;
    assert_eq!(found(&bench, "too-old").await, 1);
    bench.get_with("/r/1", &[("cookie", "id=7")]).await;
    assert_eq!(found(&bench, "forbidden").await, 1, "not this caller's to have");
    origin.stop().await;
    assert_eq!(bench.get("/r/1").await.freshness(), "stale");
    assert_eq!(
        found(&bench, "servable").await,
        3,
        "calls that fail are counted like the others"
    );
    assert_eq!(
        bench
            .metric("evenkeel_calls_total{route=\"r\",ending=\"answered\",rung=\"live\",reason=\"none\"}")
            .await,
        Some(6)
    );
}

#[tokio::test]
async fn a_route_that_keeps_nothing_has_no_coverage() {
    let origin = Origin::always(Reply::ok("x")).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, "")).await;
    bench.get("/r/1").await;
    let text = bench.metrics().await;
    assert!(
        !text.lines().any(|line| line.starts_with("evenkeel_coverage")),
        "{text}"
    );
    assert!(
        !text.lines().any(|line| line.starts_with("evenkeel_stale_")),
        "{text}"
    );
}

#[tokio::test]
async fn coverage_of_a_cache_counts_hits_and_what_a_failure_would_have_found() {
    let reply = |control: &str| Reply::ok("x").header("cache-control", control);
    let origin = Origin::always(reply("max-age=60")).await;
    let route = "freshness = \"origin\"\nladder = [ { stale = \"100s\" } ]";
    let bench = Bench::with_manual_clock(&contract(origin.address, NO_BREAKER, route)).await;
    bench.get("/r/1").await;
    assert_eq!(found(&bench, "no-snapshot").await, 1);
    bench.get("/r/1").await;
    assert_eq!(found(&bench, "servable").await, 1, "a hit");
    bench.advance(Duration::from_secs(61));
    origin.now(reply("max-age=60, must-revalidate"));
    bench.get("/r/1").await;
    assert_eq!(
        found(&bench, "servable").await,
        2,
        "past its lifetime, and the contract permits it"
    );
    bench.advance(Duration::from_secs(61));
    bench.get("/r/1").await;
    assert_eq!(
        found(&bench, "forbidden").await,
        1,
        "past its lifetime, and its origin forbids it"
    );
    origin.now(reply("max-age=60"));
    bench.get("/r/2").await;
    bench.advance(Duration::from_secs(101));
    bench.get("/r/2").await;
    assert_eq!(found(&bench, "too-old").await, 1);
}

#[tokio::test]
async fn the_ages_of_old_answers_are_shares_of_the_limit_they_were_served_under() {
    let origin = Origin::always(Reply::ok("x")).await;
    let bench = Bench::with_manual_clock(&contract(origin.address, NO_BREAKER, STALE)).await;
    bench.get("/r/1").await;
    origin.stop().await;
    for (seconds, bounds) in [(6, [1, 1, 1]), (47, [1, 1, 2]), (7, [1, 1, 3])] {
        bench.advance(Duration::from_secs(seconds));
        assert_eq!(bench.get("/r/1").await.freshness(), "stale");
        let seen = [
            ages(&bench, "0.1").await,
            ages(&bench, "0.75").await,
            ages(&bench, "1").await,
        ];
        assert_eq!(seen, bounds, "{seconds}");
    }
    assert_eq!(ages(&bench, "0.9").await, 2, "53 s of 60 s, and not 60 s");
    // The stricter limit of the origin is the one that counts.
    origin.heal().await;
    origin.now(Reply::ok("x").header("cache-control", "max-age=5, stale-if-error=5"));
    bench.get("/r/2").await;
    origin.stop().await;
    bench.advance(Duration::from_secs(10));
    assert_eq!(bench.get("/r/2").await.freshness(), "stale");
    assert_eq!((ages(&bench, "0.9").await, ages(&bench, "1").await), (2, 4));
}

/// Case 065: each change is counted under its own from, to and cause; state and beginning are gauges that follow.
#[tokio::test]
async fn case_065_every_change_of_a_breaker_is_counted_and_the_gauges_follow() {
    let origin = Origin::always(Reply::ok("x")).await;
    let breaker = "breaker = { consecutive = 1, open_for = \"1s\", open_for_max = \"1s\", jitter = \"0%\" }";
    let bench = Bench::with_manual_clock(&contract(origin.address, breaker, "")).await;
    let counted = async |from: &str, to: &str, cause: &str| {
        let series = format!(
            "evenkeel_breaker_transitions_total{{dependency=\"d\",from=\"{from}\",to=\"{to}\",cause=\"{cause}\"}}"
        );
        bench.metric(&series).await.unwrap()
    };
    let gauges = async || {
        let state = async |state: &str| {
            let series = format!("evenkeel_breaker_state{{dependency=\"d\",state=\"{state}\"}}");
            bench.metric(&series).await.unwrap()
        };
        let opened = "evenkeel_breaker_opened_timestamp_seconds{dependency=\"d\"}";
        (
            [state("closed").await, state("open").await],
            bench.metric(opened).await.unwrap(),
        )
    };
    assert_eq!(gauges().await, ([1, 0], 0));
    bench.advance(Duration::from_secs(5));
    origin.now(Reply::status(503));
    bench.get("/r/1").await;
    assert_eq!(
        gauges().await,
        ([0, 1], 1_000_000_005),
        "the manual clock began at 1 000 000 000"
    );
    bench.advance(Duration::from_secs(1));
    bench.get("/r/1").await;
    assert_eq!(
        gauges().await,
        ([0, 1], 1_000_000_005),
        "the outage began where it began"
    );
    origin.now(Reply::ok("x"));
    bench.advance(Duration::from_secs(1));
    bench.get("/r/1").await;
    assert_eq!(gauges().await, ([1, 0], 0));
    for (from, to, cause, times) in [
        ("closed", "open", "tripped", 1),
        ("open", "half-open", "probing", 2),
        ("half-open", "open", "probe-failed", 1),
        ("half-open", "open", "lease-expired", 0),
        ("half-open", "closed", "proven", 1),
    ] {
        assert_eq!(counted(from, to, cause).await, times, "{from} {to} {cause}");
    }
}

/// Case 066, at a fiftieth: 20 000 distinct paths under one template leave the series as they were, byte for byte but for
/// the numbers in them.
#[tokio::test]
async fn case_066_distinct_paths_make_no_series_and_the_export_does_not_grow() {
    const PATHS: usize = 20_000;
    let origin = Origin::always(Reply::ok("x")).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, "")).await;
    let names = |text: &str| -> Vec<String> {
        let values = text.lines().filter(|line| !line.starts_with('#'));
        values
            .map(|line| line.rsplit_once(' ').unwrap().0.to_owned())
            .collect()
    };
    bench.get("/r/first").await;
    let before = names(&bench.metrics().await);
    let address = bench.address();
    let clients = (0..8).map(|number| {
        tokio::spawn(async move {
            let mut client = Client::connect(address).await;
            for path in (number..PATHS).step_by(8) {
                let answer = client.get(&format!("/r/user-{path}"), &[]).await;
                assert_eq!(answer.status, 200);
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    let text = bench.metrics().await;
    assert_eq!(names(&text), before);
    assert!(!text.contains("user-"), "no path is in it");
    let live = "evenkeel_calls_total{route=\"r\",ending=\"answered\",rung=\"live\",reason=\"none\"}";
    assert_eq!(bench.metric(live).await, Some(1 + PATHS as u64));
}

#[tokio::test]
async fn waits_for_permits_are_counted_with_their_time() {
    let origin = Origin::always(Reply::hang()).await;
    let dependency = "concurrency = 1\nqueue = { length = 4, wait = \"500ms\" }\nlearned_limit = \"off\"\nbreaker = \"off\"\nramp = \"off\"";
    let bench = Bench::with_manual_clock(&contract(origin.address, dependency, "deadline = \"1s\"")).await;
    let address = bench.address();
    let get = move || tokio::spawn(async move { crate::kit::get(address, "/r/1").await.status });
    let first = get();
    until("the permit is taken", || origin.hits() == 1).await;
    let second = get();
    let app = bench.gateway.app();
    until("the second waits", || {
        app.dependency("d").unwrap().status().waiting == 1
    })
    .await;
    bench.advance(Duration::from_millis(500));
    assert_eq!(second.await.unwrap(), 503);
    assert_eq!(
        bench.metric("evenkeel_queue_waits_total{dependency=\"d\"}").await,
        Some(1)
    );
    let text = bench.metrics().await;
    assert!(
        text.contains("evenkeel_queue_wait_seconds_total{dependency=\"d\"} 0.5\n"),
        "{text}"
    );
    bench.advance(Duration::from_millis(500));
    assert_eq!(first.await.unwrap(), 504);
}

#[tokio::test]
async fn the_process_tells_what_every_process_tells() {
    let origin = Origin::always(Reply::ok("x")).await;
    let bench = Bench::with_manual_clock(&contract(origin.address, "", "")).await;
    for series in [
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_max_fds",
    ] {
        assert!(
            bench.metric(series).await.is_some_and(|value| value > 0),
            "{series}"
        );
    }
    assert_eq!(
        bench.metric("process_start_time_seconds").await,
        Some(1_000_000_000)
    );
}

/// The parser and the lints of Prometheus itself, over an export with every kind of series in it.
#[tokio::test]
async fn the_export_passes_the_checks_of_prometheus() {
    let origin = Origin::always(Reply::ok("x")).await;
    let dependency =
        "concurrency = 3\nabandoned = 3\nretry = { attempts = 2 }\nqueue = { length = 4, wait = \"500ms\" }";
    let route = "coalesce = true\nladder = [ { stale = \"60s\" } ]";
    let bench = Bench::start(&contract(origin.address, dependency, route)).await;
    bench.get("/r/1").await;
    origin.stop().await;
    assert_eq!(bench.get("/r/1").await.freshness(), "stale");
    let text = bench.metrics().await;
    let Some(promtool) = crate::promtool::promtool() else {
        return;
    };
    let mut checking = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    checking.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = checking.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The words in code of the first cells of the table that follows this line of a page.
fn words(page: &str, before: &str) -> BTreeSet<String> {
    let (_, table) = page.split_once(before).unwrap();
    let rows = table
        .trim_start()
        .lines()
        .take_while(|line| line.starts_with('|'))
        .skip(2);
    rows.flat_map(|row| {
        row.split('|')
            .nth(1)
            .unwrap()
            .split(',')
            .map(|cell| cell.trim().trim_matches('`').to_owned())
    })
    .collect()
}

#[tokio::test]
async fn every_reason_for_not_keeping_is_exported_from_the_start_and_explained_on_both_pages() {
    let origin = Origin::always(Reply::ok("x")).await;
    let bench = Bench::start(&contract(origin.address, NO_BREAKER, STALE)).await;
    let text = bench.metrics().await;
    let prefix = "evenkeel_answers_not_kept_total{route=\"r\",why=\"";
    let exported: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix(prefix)?.strip_suffix("\"} 0"))
        .map(str::to_owned)
        .collect();
    assert!(exported.len() > 20, "{exported:?}");
    let reference = include_str!("../../../../docs/reference/metrics.md");
    assert_eq!(
        exported,
        words(reference, "`why` of an answer that was not kept is one of:")
    );
    let guide = include_str!("../../../../docs/guide/why-nothing-is-kept.md");
    assert_eq!(exported, words(guide, "this one says what to do."));
}
