//! The screen of somebody who was woken.

use crate::{
    kit::{Origin, Reply, STALE, contract, get},
    process::{Running, directory},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_shown_with_its_share_its_age_and_what_comes_next_and_is_gone_afterwards() {
    let origin = Origin::always(Reply::ok("x")).await;
    let running = Running::start(&directory("outage"), &contract(origin.address, "", STALE)).await;
    assert_eq!(get(running.address, "/r/1").await.status, 200);
    let well = running.text(&["status"]).await;
    assert!(well.contains(" ok        r"), "{well}");
    origin.stop().await;
    for _ in 0..20 {
        assert_eq!(get(running.address, "/r/1").await.freshness(), "stale");
    }
    let status = running
        .until(&["status"], |status| status["routes"][0]["state"] == "degraded")
        .await;
    let route = &status["routes"][0];
    assert_eq!(
        (route["mostly"].as_str(), route["age_limit_seconds"].as_u64()),
        (Some("stale"), Some(60))
    );
    assert_eq!(route["last_minute"]["degraded"], 20);
    assert!(route["oldest_age_seconds"].as_u64().is_some(), "{route}");
    let left = route["reaches_limit_in_seconds"].as_u64().unwrap();
    assert!((20..=60).contains(&left), "{left}");
    assert_eq!(status["dependencies"][0]["name"], "d");
    assert_ne!(status["dependencies"][0]["breaker"], "closed");
    let shown = running.text(&["status"]).await;
    let line = shown
        .lines()
        .find(|line| line.starts_with(" DEGRADED  r "))
        .unwrap();
    for part in ["stale 9", "oldest ", " of 60 s", "since ", "d: "] {
        assert!(line.contains(part), "{part} is missing from\n{shown}");
    }
    assert!(shown.contains("reaches its limit"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_goes_on_until_it_is_ended() {
    use std::io::{BufRead as _, BufReader};
    let origin = Origin::always(Reply::ok("x")).await;
    let running = Running::start(&directory("watch"), &contract(origin.address, "", STALE)).await;
    let mut child = crate::process::evenkeel(&[
        "status",
        "--watch",
        "--json",
        "--admin",
        &running.admin.to_string(),
    ])
    .stdout(std::process::Stdio::piped())
    .spawn()
    .unwrap();
    let out = child.stdout.take().unwrap();
    let lines = tokio::task::spawn_blocking(move || {
        let lines = BufReader::new(out).lines().take(2);
        lines
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect::<Vec<serde_json::Value>>()
    });
    let lines = lines.await.unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(lines.iter().all(|status| status["state"] == "ready"), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_are_read_where_the_contract_says_and_nothing_else_is_there() {
    let origin = Origin::always(Reply::ok("x")).await;
    let text = crate::kit::contract_with(origin.address, "metrics = \"127.0.0.1:0\"", "", "");
    let bench = crate::kit::Bench::start(&text).await;
    let metrics = bench.gateway.metrics_address().unwrap();
    let ask = async |path: &str| crate::kit::get_admin(metrics, "gw-2.example:9182", path).await;
    assert!(ask("/metrics").await.text().contains("evenkeel_build_info"));
    assert_eq!(ask("/readyz").await.status, 200);
    for path in ["/status", "/holds", "/"] {
        assert_eq!(ask(path).await.status, 404, "{path}");
    }
}

/// Case 075: an "ejected" host still gets traffic.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_075_addresses_that_are_left_out_and_asked_all_the_same_are_shown() {
    let (one, other) = (
        Origin::always(Reply::ok("x")).await,
        Origin::always(Reply::ok("x")).await,
    );
    let dependency = "breaker = \"off\"\neject = { consecutive = 1 }";
    let text = contract(one.address, dependency, "").replace(
        &format!("[\"http://{}\"]", one.address),
        &format!("[\"http://{}\", \"http://{}\"]", one.address, other.address),
    );
    let running = Running::start(&directory("ejected"), &text).await;
    one.stop().await;
    for _ in 0..20 {
        get(running.address, "/r/1").await;
    }
    let shown = running.text(&["status"]).await;
    let unhealthy = format!(" UNHEALTHY d              1 of 2: {}", one.address);
    assert!(shown.contains(&unhealthy), "{shown}");
    other.stop().await;
    for _ in 0..20 {
        get(running.address, "/r/1").await;
    }
    let shown = running.text(&["status"]).await;
    assert!(
        shown.contains("asked all the same: too few others are left"),
        "{shown}"
    );
}
