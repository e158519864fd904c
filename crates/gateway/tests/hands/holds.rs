//! Holds: put on, shown, limited, written down, kept over a restart, ended.

use std::time::Duration;

use serde_json::Value;

use crate::{
    kit::{Origin, Reply, STALE, contract, contract_with, get},
    process::{Running, directory, evenkeel, finished, told},
};

fn audit(running: &Running) -> Vec<Value> {
    let text = std::fs::read_to_string(running.directory.join("state/audit.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

async fn started(name: &str, origin: &Origin, dependency: &str, route: &str) -> Running {
    let directory = directory(name);
    let state = format!("state = \"{}\"", directory.join("state").display());
    Running::start(
        &directory,
        &contract_with(origin.address, &state, dependency, route),
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_says_who_why_and_until_when_and_is_written_down_with_its_release() {
    let origin = Origin::always(Reply::ok("x")).await;
    let running = started("said", &origin, "", STALE).await;
    assert_eq!(get(running.address, "/r/1").await.status, 200);
    let shown = running
        .text(&[
            "hold",
            "r",
            "stale-only",
            "--reason",
            "wrong \"prices\"",
            "--for",
            "30m",
        ])
        .await;
    assert!(shown.starts_with("held: r"), "{shown}");
    let answer = get(running.address, "/r/1").await;
    assert_eq!((answer.status, answer.freshness()), (200, "stale"));
    assert!(answer.header("degraded").unwrap().contains("reason=held"));
    assert_eq!(
        get(running.address, "/r/2").await.status,
        503,
        "nothing is kept for it"
    );
    assert_eq!(origin.hits(), 1);
    let holds = running.json(&["holds"]).await;
    let held = &holds["holds"][0];
    assert_eq!(
        (held["name"].as_str(), held["mode"].as_str()),
        (Some("r"), Some("stale-only"))
    );
    assert!(held["by"].as_str().unwrap().starts_with("ana@"), "{held}");
    let left = held["remaining_seconds"].as_u64().unwrap();
    assert!((1700..=1800).contains(&left), "{left}");
    let status = running.text(&["status"]).await;
    assert!(status.contains(" HELD      r "), "{status}");
    running.text(&["release", "r", "--author", "ben"]).await;
    assert_eq!(get(running.address, "/r/2").await.status, 200);
    let again = running.refused(&["release", "r"]).await;
    assert!(again.contains("there is none at all"), "{again}");
    let written = audit(&running);
    let verbs: Vec<_> = written
        .iter()
        .map(|entry| (entry["what"].as_str().unwrap(), entry["result"].as_str().unwrap()))
        .collect();
    assert_eq!(
        verbs,
        [("hold", "done"), ("release", "done"), ("release", "refused")]
    );
    assert_eq!(written[0]["after"]["reason"], "wrong \"prices\"");
    assert_eq!(written[1]["by"], "ben");
    assert_eq!(written[1]["before"]["mode"], "stale-only");
    assert!(written[0]["peer"].as_str().unwrap().starts_with("127.0.0.1:"));
    use std::os::unix::fs::MetadataExt as _;
    for file in ["state/audit.jsonl", "state/holds.json"] {
        let mode = std::fs::metadata(running.directory.join(file)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_outlives_the_process_and_one_whose_name_is_gone_is_shown_and_not_dropped() {
    let origin = Origin::always(Reply::ok("x")).await;
    let running = started("restart", &origin, "", STALE).await;
    let arguments = ["hold", "--dependency", "d", "forced-off", "--reason", "migration"];
    let done = running.json(&arguments).await;
    assert_eq!(done["kept_over_restart"], true);
    running.text(&["hold", "r", "stale-only", "--reason", "x"]).await;
    let running = running.killed_and_started_again().await;
    assert_eq!(get(running.address, "/r/1").await.status, 503);
    assert_eq!(origin.hits(), 0);
    let path = running.directory.join("contract.toml");
    let renamed = std::fs::read_to_string(&path)
        .unwrap()
        .replace("dependencies.d", "dependencies.e")
        .replace("from = \"d\"", "from = \"e\"");
    std::fs::write(&path, renamed).unwrap();
    let running = running.killed_and_started_again().await;
    let holds = running.json(&["holds"]).await;
    let applicable: Vec<_> = holds["holds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|held| &held["applicable"])
        .collect();
    assert_eq!(applicable, [&Value::Bool(true), &Value::Bool(false)]);
    let shown = running.text(&["holds"]).await;
    assert!(shown.contains("NOT APPLICABLE"), "{shown}");
    running.text(&["release", "--dependency", "d"]).await;
    running.text(&["release", "r"]).await;
    assert_eq!(get(running.address, "/r/1").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_holds_are_put_aside_and_traffic_goes_on() {
    let origin = Origin::always(Reply::ok("x")).await;
    let running = started("damaged", &origin, "", STALE).await;
    running.text(&["hold", "r", "forced-off", "--reason", "x"]).await;
    std::fs::write(running.directory.join("state/holds.json"), "{\"version\":1,\"ho").unwrap();
    let running = running.killed_and_started_again().await;
    assert_eq!(get(running.address, "/r/1").await.status, 200);
    assert!(running.log().contains("event=holds-lost"), "{}", running.log());
    assert!(running.directory.join("state/holds.damaged").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_contract_does_not_permit_is_refused_and_changes_nothing() {
    let origin = Origin::always(Reply::ok("x")).await;
    let plain = started("permitted", &origin, "", "").await;
    for (arguments, part) in [
        (&["hold", "r", "stale-only"][..], "no stale rung"),
        (&["hold", "r", "default-only"], "no default rung"),
        (
            &["hold", "--dependency", "d", "stale-only"],
            "forced-open, forced-off, forced-closed",
        ),
        (&["hold", "nobody", "forced-off"], "there is: r"),
        (&["hold", "--dependency", "nobody", "forced-off"], "there is: d"),
        (&["hold", "r", "forced-off", "--for", "8d"], "1s to 7d"),
        (&["hold", "r", "forced-off", "--for", "soon"], "1s to 7d"),
    ] {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--reason", "x"]).collect();
        let said = plain.refused(&arguments).await;
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    assert_eq!(get(plain.address, "/r/1").await.status, 200);
    let refused = plain.run(&["hold", "r", "forced-off", "--reason", " "]).await;
    assert_eq!(refused.status.code(), Some(1), "{}", told(&refused));
    let missing = plain.run(&["hold", "r", "forced-off"]).await;
    assert_eq!(
        missing.status.code(),
        Some(2),
        "a reason is required: {}",
        told(&missing)
    );
    let exact = started("exact", &origin, "", "exact = true").await;
    let said = exact.refused(&["hold", "r", "stale-only", "--reason", "x"]).await;
    assert!(said.contains("exact"), "{said}");
    let refused: Vec<_> = audit(&plain)
        .iter()
        .map(|entry| entry["result"].clone())
        .collect();
    assert!(
        !refused.is_empty() && refused.iter().all(|result| result == "refused"),
        "{refused:?}"
    );
}

/// Case 073: planned maintenance.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_073_forced_open_keeps_every_request_and_probe_away_until_it_expires_and_then_the_ramp_begins() {
    let origin = Origin::always(Reply::ok("x")).await;
    let dependency = "probe = { path = \"/health\" }\nbreaker = { consecutive = 2 }";
    let running = started("maintenance", &origin, dependency, "").await;
    assert_eq!(get(running.address, "/r/1").await.status, 200);
    let arguments = [
        "hold",
        "--dependency",
        "d",
        "forced-open",
        "--reason",
        "maintenance",
        "--for",
        "2s",
    ];
    running.text(&arguments).await;
    let before = origin.hits();
    let refused = get(running.address, "/r/1").await;
    assert_eq!(refused.status, 503);
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=2).contains(&wait), "what is left of it: {wait}");
    assert!(
        refused.text().contains("\"reason\":\"held\""),
        "{}",
        refused.text()
    );
    // Whoever waits for it sees only refusals, and then answers.
    let mut refusals = 0;
    let end = tokio::time::Instant::now() + crate::kit::PATIENCE;
    loop {
        let hits = origin.hits();
        let answer = get(running.address, "/r/1").await;
        if answer.status == 200 {
            break;
        }
        assert_eq!(hits, before, "nothing reaches it");
        refusals += 1;
        assert!(tokio::time::Instant::now() < end, "it expires");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(refusals > 1);
    crate::kit::until("its end is told", || running.log().contains("event=released")).await;
    let log = running.log();
    assert!(
        log.contains("event=released name=d mode=forced-open by=expiry"),
        "{log}"
    );
    assert!(
        log.contains("event=reset name=d by=expiry"),
        "traffic comes back by the ramp: {log}"
    );
    running
        .until(&["holds"], |holds| holds["holds"].as_array().unwrap().is_empty())
        .await;
    assert_eq!(audit(&running).last().unwrap()["what"], "expire");
}

/// Case 072: fixed early, still broken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_072_a_reset_brings_traffic_back_long_before_the_open_period_ends() {
    let origin = Origin::always(Reply::status(503)).await;
    let breaker = "breaker = { consecutive = 2, open_for = \"10m\", open_for_max = \"10m\" }";
    let running = started("reset", &origin, breaker, "").await;
    for _ in 0..3 {
        get(running.address, "/r/1").await;
    }
    let hits = origin.hits();
    assert_eq!(get(running.address, "/r/1").await.status, 503);
    assert_eq!(origin.hits(), hits, "the breaker is open");
    origin.now(Reply::ok("x"));
    let done = running.json(&["reset", "r", "--reason", "repaired"]).await;
    assert_eq!(
        (done["before"].as_str(), done["state"].as_str()),
        (Some("open"), Some("closed"))
    );
    let end = tokio::time::Instant::now() + crate::kit::PATIENCE;
    while get(running.address, "/r/1").await.status != 200 {
        assert!(tokio::time::Instant::now() < end, "traffic is back");
    }
    let written = audit(&running);
    let last = written.last().unwrap();
    assert_eq!(
        (last["what"].as_str(), last["before"].as_str()),
        (Some("reset"), Some("open"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_token_nothing_changes_and_without_a_gateway_the_address_is_named() {
    let origin = Origin::always(Reply::ok("x")).await;
    let directory = directory("token");
    let running = Running::start(&directory, &contract(origin.address, "", "")).await;
    let other = directory.join("other.token");
    std::fs::write(&other, "0123456789abcdef\n").unwrap();
    let file = other.display().to_string();
    let said = running
        .refused(&["hold", "r", "forced-off", "--reason", "x", "--token-file", &file])
        .await;
    assert!(said.contains("the token is another one"), "{said}");
    assert_eq!(get(running.address, "/r/1").await.status, 200);
    let missing = running
        .run(&[
            "hold",
            "r",
            "forced-off",
            "--reason",
            "x",
            "--token-file",
            "/nonexistent",
        ])
        .await;
    assert_eq!(missing.status.code(), Some(2));
    assert!(told(&missing).contains("/nonexistent"), "{}", told(&missing));
    let admin = running.admin.to_string();
    drop(running);
    let nobody = finished(evenkeel(&["status", "--admin", &admin])).await;
    assert_eq!(nobody.status.code(), Some(2));
    let said = told(&nobody);
    assert!(said.contains(&admin) && said.contains("evenkeel serve"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_that_also_forwards_is_held_on_both_sides() {
    let origin = Origin::always(Reply::ok("x")).await;
    let route = format!("{STALE}\nother_methods = \"pass\"");
    let running = started("both", &origin, "", &route).await;
    let post = async || {
        let mut client = crate::kit::Client::connect(running.address).await;
        client
            .request("POST", "/r/1", &[("content-length", "0")])
            .await
            .status
    };
    assert_eq!(post().await, 200);
    running.text(&["hold", "r", "stale-only", "--reason", "x"]).await;
    let hits = origin.hits();
    assert_eq!(post().await, 503, "the dependency gets nothing");
    assert_eq!(origin.hits(), hits);
    running.text(&["release", "r"]).await;
    assert_eq!(post().await, 200);
}

/// The dependency may be on its way back by the ramp.
async fn answers(running: &Running) {
    let end = tokio::time::Instant::now() + crate::kit::PATIENCE;
    while get(running.address, "/r/1").await.status != 200 {
        assert!(tokio::time::Instant::now() < end, "it answers again");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn is_held(running: &Running) {
    let answer = get(running.address, "/r/1").await;
    assert_eq!(answer.status, 503);
    assert!(answer.text().contains("\"reason\":\"held\""), "{}", answer.text());
}

/// Case 073, step 2: the contract is loaded anew while the hold is in force.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_073_a_hold_survives_a_reload_and_a_hold_on_what_comes_back_is_in_force_again() {
    let origin = Origin::always(Reply::ok("x")).await;
    let running = started("reload", &origin, "", STALE).await;
    let path = running.directory.join("contract.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    running
        .text(&[
            "hold",
            "--dependency",
            "d",
            "forced-open",
            "--reason",
            "migration",
        ])
        .await;
    running
        .text(&["hold", "r", "forced-off", "--reason", "wrong prices"])
        .await;
    std::fs::write(&path, text.replace("60s", "30s")).unwrap();
    running.text(&["reload"]).await;
    is_held(&running).await;
    running.text(&["release", "--dependency", "d"]).await;
    assert_eq!(
        get(running.address, "/r/1").await.status,
        503,
        "the route is still held"
    );
    // The route goes, and comes back under its name.
    std::fs::write(&path, text.replace("name = \"r\"", "name = \"other\"")).unwrap();
    running.text(&["reload"]).await;
    answers(&running).await;
    std::fs::write(&path, &text).unwrap();
    running.text(&["reload"]).await;
    is_held(&running).await;
    running.text(&["release", "r"]).await;
    answers(&running).await;
}

/// No hold, on the route or on its authority, lets anybody through who is not allowed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_hold_opens_a_protected_route() {
    let origin = Origin::always(Reply::ok("secret")).await;
    let sso = Origin::always(Reply::status(403)).await;
    let directory = directory("protected");
    let text = format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n[dependencies.d]\nurls = [\"http://{}\"]\n\
         [dependencies.sso]\nurls = [\"http://{}\"]\nbreaker = {{ consecutive = 1 }}\n\
         [authorities.sso]\nfrom = \"sso\"\npath = \"/verify\"\nheaders = [\"authorization\"]\n\
         [[routes]]\nname = \"r\"\nmatch = {{ path = \"/r/{{id}}\" }}\nclass = \"read\"\nfrom = \"d\"\nauthorize = \"sso\"\n\
         ladder = [ {{ default = {{ status = 200, content_type = \"text/plain\", body = \"secret\" }} }} ]\n",
        origin.address, sso.address
    );
    let running = Running::start(&directory, &text).await;
    let targets = [&["r"][..], &["--dependency", "sso"], &["--dependency", "d"]];
    let modes = [
        "forced-open",
        "forced-off",
        "stale-only",
        "default-only",
        "forced-closed",
    ];
    for is_down in [false, true] {
        for target in targets {
            for mode in modes {
                let arguments: Vec<&str> = ["hold"]
                    .iter()
                    .chain(target)
                    .copied()
                    .chain([mode, "--reason", "x"])
                    .collect();
                drop(running.run(&arguments).await);
                for _ in 0..3 {
                    let answer = get(running.address, "/r/1").await;
                    assert!(
                        [403, 503].contains(&answer.status),
                        "{target:?} {mode}: {}",
                        answer.status
                    );
                    assert!(!answer.text().contains("secret"), "{target:?} {mode}");
                }
            }
        }
        if !is_down {
            sso.now(Reply::status(503));
        }
    }
    assert_eq!(origin.hits(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asks_without_the_token_is_written_down_and_fills_no_disk() {
    let origin = Origin::always(Reply::ok("x")).await;
    let running = started("locked-out", &origin, "", "").await;
    let other = running.directory.join("other.token");
    std::fs::write(&other, "0123456789abcdef\n").unwrap();
    let file = other.display().to_string();
    let begun = tokio::time::Instant::now();
    for _ in 0..10 {
        running
            .refused(&["hold", "r", "forced-off", "--reason", "x", "--token-file", &file])
            .await;
    }
    let seconds = begun.elapsed().as_secs() + 2;
    crate::kit::until("it is written down", || {
        running.directory.join("state/audit.jsonl").exists()
    })
    .await;
    let written = audit(&running);
    assert!((1..=seconds).contains(&(written.len() as u64)), "{written:?}");
    assert_eq!(
        (written[0]["what"].as_str(), written[0]["target"].as_str()),
        (Some("locked-out"), Some("/hold"))
    );
}
