//! Hands that slip: what is said twice, misspelt or impossible is refused, and two gateways do not write one file.

use std::time::Duration;

use serde_json::Value;

use crate::{
    kit::{Origin, Reply, STALE, contract, contract_with},
    process::{Running, directory, finished, told},
};

/// Sends one request to the administration port, and returns status and body.
async fn sent(running: &Running, line: &str, body: &str) -> (u16, String) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let tokens = std::fs::read_dir(running.directory.join("evenkeel")).unwrap();
    let token = tokens
        .map(|file| file.unwrap().path())
        .find(|file| {
            file.to_string_lossy()
                .contains(&format!("{}", running.admin.port()))
        })
        .unwrap();
    let token = std::fs::read_to_string(token).unwrap();
    let mut stream = tokio::net::TcpStream::connect(running.admin).await.unwrap();
    let text = format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n{body}",
        token.trim(),
        body.len()
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_twice_misspelt_or_steers_a_terminal_is_refused_and_changes_nothing() {
    let origin = Origin::always(Reply::ok("x")).await;
    let route = format!("{STALE}\ntags = \"surrogate-key\"");
    let running = Running::start(&directory("slips"), &contract(origin.address, "", &route)).await;
    for (line, body, why) in [
        (
            "POST /hold",
            r#"{"route":"q","route":"r","mode":"forced-off","by":"ana","reason":"x"}"#,
            "member \\\"route\\\" is there twice",
        ),
        (
            "POST /hold",
            r#"{"route":"r","mode":"forced-off","by":"ana\u001b[31m","reason":"x"}"#,
            "by contains",
        ),
        (
            "POST /hold",
            r#"{"route":"r","mode":"forced-off","by":"ana","reason":"x\n ok r"}"#,
            "reason contains",
        ),
        (
            "POST /seed?uri=http://shop.example/r/1&by=a%1bc",
            "x",
            "by contains",
        ),
        (
            "POST /seed?uri=http://shop.example/r/1&by=ana&observd=@1795921327",
            "x",
            "unknown parameter",
        ),
        (
            "POST /seed?uri=http://shop.example/r/1&by=ana&observed=@1&observed=@2",
            "x",
            "is there twice",
        ),
        (
            "POST /seed?uri=http://shop.example/r/1%23a&by=ana&observed=@1",
            "x",
            "contains '#'",
        ),
        ("GET /snapshots?rout=r", "", "unknown parameter"),
        ("GET /snapshot?uri=/r/1&number=1", "", "unknown parameter"),
        ("POST /purge", r#"{"tag":"one two","by":"ana"}"#, "name one tag"),
        ("POST /purge", r#"{"uri":"/r/a b","by":"ana"}"#, "contains ' '"),
    ] {
        let (status, answer) = sent(&running, line, body).await;
        assert_eq!(status, 400, "{line} {body}: {answer}");
        assert!(answer.contains(why), "{line} {body}: {answer}");
    }
    // No clock of this machine reaches that time.
    let never = format!(
        "POST /seed?uri=http://shop.example/r/1&by=ana&observed=@{}",
        u64::MAX
    );
    let (status, answer) = sent(&running, &never, "x").await;
    assert_eq!(status, 422, "{answer}");
    assert!(answer.contains("is none of this clock"), "{answer}");
    assert_eq!(running.json(&["holds"]).await["holds"], Value::Array(Vec::new()));
    assert!(!running.log().contains("panicked"), "{}", running.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_with_one_state_directory_do_not_write_over_each_others_holds() {
    let origin = Origin::always(Reply::ok("x")).await;
    let shared = directory("two-states");
    let state = format!("state = \"{}\"", shared.join("state").display());
    let text = contract_with(origin.address, &state, "", STALE);
    let first = Running::start(&directory("two-first"), &text).await;
    let second = Running::start(&directory("two-second"), &text).await;
    let hold = |reason| ["hold", "r", "forced-open", "--reason", reason];
    assert_eq!(first.json(&hold("of the first")).await["kept_over_restart"], true);
    let other = second.json(&hold("of the second")).await;
    assert_eq!(other["kept_over_restart"], false, "{other}");
    let trouble = other["trouble"].as_str().unwrap();
    assert!(trouble.contains("another gateway"), "{trouble}");
    assert!(second.json(&["status"]).await["trouble"].is_string());
    let kept = || std::fs::read_to_string(shared.join("state/holds.json")).unwrap();
    assert!(kept().contains("of the first"), "{}", kept());
    drop(first);
    // The one that is left takes over by itself, and what was put on meanwhile is kept.
    second
        .until(&["status"], |status| status["trouble"].is_null())
        .await;
    assert!(kept().contains("of the second"), "{}", kept());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_could_not_be_kept_is_kept_as_soon_as_it_can_be() {
    let origin = Origin::always(Reply::ok("x")).await;
    let place = directory("kept-later");
    let state = format!("state = \"{}\"", place.join("state").display());
    let running = Running::start(&place, &contract_with(origin.address, &state, "", STALE)).await;
    std::fs::remove_dir_all(place.join("state")).unwrap();
    std::fs::write(place.join("state"), "in the way").unwrap();
    let held = running
        .json(&["hold", "r", "forced-open", "--reason", "migration"])
        .await;
    assert_eq!(held["kept_over_restart"], false, "{held}");
    std::fs::remove_file(place.join("state")).unwrap();
    running
        .until(&["status"], |status| status["trouble"].is_null())
        .await;
    let running = running.killed_and_started_again().await;
    let holds = running.json(&["holds"]).await;
    assert_eq!(holds["holds"][0]["reason"], "migration", "{holds}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stands_in_the_place_of_a_state_file_neither_hangs_nor_is_written_through() {
    let origin = Origin::always(Reply::ok("x")).await;
    let place = directory("in-place");
    let directory = place.join("state");
    std::fs::create_dir(&directory).unwrap();
    let victim = place.join("victim");
    std::fs::write(&victim, "not ours").unwrap();
    std::os::unix::fs::symlink(&victim, directory.join("holds.new")).unwrap();
    for pipe in ["holds.json", "audit.jsonl"] {
        let mut make = std::process::Command::new("mkfifo");
        make.arg(directory.join(pipe));
        let made = finished(make).await;
        assert!(made.status.success(), "{}", told(&made));
    }
    let state = format!("state = \"{}\"", directory.display());
    let text = contract_with(origin.address, &state, "", STALE);
    let started = tokio::time::timeout(Duration::from_secs(60), Running::start(&place, &text));
    let running = started.await.expect("it starts whatever stands there");
    let held = running
        .json(&["hold", "r", "forced-open", "--reason", "migration"])
        .await;
    assert!(
        held["trouble"].as_str().unwrap().contains("audit.jsonl"),
        "{held}"
    );
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "not ours");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pipe_in_the_place_of_a_contract_refuses_one_reload_and_does_not_stop_the_next() {
    let origin = Origin::always(Reply::ok("x")).await;
    let place = directory("piped");
    let text = contract(origin.address, "", STALE);
    let running = Running::start(&place, &text).await;
    let file = place.join("contract.toml");
    let good = std::fs::read_to_string(&file).unwrap();
    let pipe = place.join("pipe");
    let mut make = std::process::Command::new("mkfifo");
    make.arg(&pipe);
    let made = finished(make).await;
    assert!(made.status.success(), "{}", told(&made));
    std::fs::rename(&pipe, &file).unwrap();
    let patience = Duration::from_secs(60);
    let said = tokio::time::timeout(patience, running.refused(&["reload"])).await;
    let said = said.expect("it does not wait for whoever writes into the pipe");
    assert!(said.contains("is a pipe or a device"), "{said}");
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, &good).unwrap();
    let done = tokio::time::timeout(patience, running.json(&["reload"]))
        .await
        .unwrap();
    assert_eq!(done["result"], "unchanged", "{done}");
}
