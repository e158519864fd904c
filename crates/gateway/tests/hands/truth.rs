//! What the screen must not claim: old news, the wrong cause, a probe that nobody sends, a contract that does not run.

use std::time::Duration;

use crate::{
    kit::{Origin, Reply, STALE, contract, get},
    process::{Running, directory},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_has_reached_its_limit_is_not_said_to_reach_it() {
    let origin = Origin::always(Reply::ok("x")).await;
    let ladder =
        "ladder = [ { stale = \"2s\" }, { default = { content_type = \"text/plain\", body = \"-\" } } ]";
    let running = Running::start(&directory("past"), &contract(origin.address, "", ladder)).await;
    assert_eq!(get(running.address, "/r/1").await.status, 200);
    origin.stop().await;
    assert_eq!(get(running.address, "/r/1").await.freshness(), "stale");
    let past = |route: &serde_json::Value| {
        let seconds = |key: &str| route[key].as_u64();
        seconds("oldest_age_seconds") > seconds("age_limit_seconds")
    };
    running
        .until(&["status"], |status| {
            status["routes"][0]["state"] == "degraded" && past(&status["routes"][0])
        })
        .await;
    let shown = running.text(&["status"]).await;
    assert!(shown.contains("oldest past its limit of 2 s"), "{shown}");
    assert!(!shown.contains("reaches its limit"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_that_is_well_has_no_oldest_copy() {
    let origin = Origin::always(Reply::ok("x")).await;
    let text = contract(origin.address, "breaker = \"off\"", STALE);
    let running = Running::start(&directory("well-again"), &text).await;
    assert_eq!(get(running.address, "/r/1").await.status, 200);
    origin.stop().await;
    assert_eq!(get(running.address, "/r/1").await.freshness(), "stale");
    running
        .until(&["status"], |status| status["routes"][0]["state"] == "degraded")
        .await;
    origin.heal().await;
    let end = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        assert!(tokio::time::Instant::now() < end, "it is degraded for ever");
        get(running.address, "/r/1").await;
        let status = running.json(&["status"]).await;
        if status["routes"][0]["state"] == "ok" {
            // It is within the minute in which that copy was given.
            assert_eq!(status["routes"][0]["last_minute"]["by"][0]["ending"], "stale");
            assert_eq!(status["routes"][0]["oldest_age_seconds"], serde_json::Value::Null);
            assert_eq!(status["next"].as_array().unwrap().len(), 0, "{status}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_that_waits_for_a_request_is_said_to() {
    let origin = Origin::always(Reply::ok("x")).await;
    let text = contract(origin.address, "breaker = { consecutive = 1 }", STALE);
    let running = Running::start(&directory("due"), &text).await;
    origin.stop().await;
    assert_eq!(get(running.address, "/r/1").await.status, 502);
    running
        .until(&["status"], |status| {
            status["routes"][0]["state"] == "degraded"
                && status["dependencies"][0]["next_probe_seconds"].as_f64() == Some(0.0)
        })
        .await;
    let shown = running.text(&["status"]).await;
    for part in [
        "d: open, the next request is its probe",
        "the next request to d is its probe; if",
    ] {
        assert!(shown.contains(part), "{part} is missing from\n{shown}");
    }
    assert!(!shown.contains("next probe"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nobody_decides_the_dependency_of_the_authority_is_named() {
    let (origin, sso) = (
        Origin::always(Reply::ok("x")).await,
        Origin::always(Reply::status(500)).await,
    );
    let text = format!(
        "{}authorize = \"door\"\n\
         [dependencies.sso]\nurls = [\"http://{}\"]\nconcurrency = 8\n\
         [authorities.door]\nfrom = \"sso\"\npath = \"/verify\"\nheaders = [\"authorization\"]\n",
        contract(origin.address, "", ""),
        sso.address
    );
    let running = Running::start(&directory("door"), &text).await;
    assert_eq!(get(running.address, "/r/1").await.status, 503);
    let status = running
        .until(&["status"], |status| status["routes"][0]["state"] == "degraded")
        .await;
    assert_eq!(status["routes"][0]["authority"]["name"], "door");
    let shown = running.text(&["status"]).await;
    assert!(shown.contains("protection-unavailable  sso: closed"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contract_that_was_refused_is_shown_until_one_is_taken() {
    let origin = Origin::always(Reply::ok("x")).await;
    let running = Running::start(&directory("refused"), &contract(origin.address, "", STALE)).await;
    let file = running.directory.join("contract.toml");
    let good = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, good.replace("60s", "for ever")).unwrap();
    running.refused(&["reload"]).await;
    let shown = running.text(&["status"]).await;
    for part in [" WARNING   a contract was refused at ", ": 1 problem, at "] {
        assert!(shown.contains(part), "{part} is missing from\n{shown}");
    }
    assert!(
        !shown.contains("for ever"),
        "everybody may look, and nobody is shown what stands there"
    );
    let running = running.killed_and_started_again().await;
    let shown = running.text(&["status"]).await;
    assert!(
        shown.contains(" WARNING   the last good contract runs: 1 problem in "),
        "{shown}"
    );
    std::fs::write(&file, good).unwrap();
    running.text(&["reload"]).await;
    let shown = running.text(&["status"]).await;
    assert!(!shown.contains("WARNING"), "{shown}");
}
