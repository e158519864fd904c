//! `evenkeel check --explain` and `evenkeel init`: what is in force, where it comes from, what an outage would leave.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};

const CONTRACT: &str = r#"include = ["routes/a.toml"]
[gateway]
listen = "127.0.0.1:0"
[dependencies.first]
urls = ["http://127.0.0.1:8000"]
rewrite = { set_request = { authorization = { file = "token" } } }
[dependencies.second]
urls = ["http://127.0.0.1:8001"]
timeout = "300ms"
breaker = "off"
[[routes]]
name = "all-rungs"
match = { path = "/a/{id}" }
class = "read"
from = "first"
deadline = "900ms"
ladder = [
  { stale = "60s" },
  { alternate = "second" },
  { default = { status = 203, content_type = "text/plain", body = { file = "token" } } },
]
"#;
const INCLUDED: &str = r#"
[[routes]]
name = "busy"
match = { path = "/b" }
class = "read"
from = "second"
when_busy = "refuse"
ladder = [ { stale = "1h" } ]
[[routes]]
name = "cached"
match = { path = "/c" }
class = "read"
from = "first"
freshness = "origin"
[[routes]]
name = "writes"
match = { path = "/w" }
class = "pass"
from = "first"
"#;

fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("explain")
        .join(name);
    drop(fs::remove_dir_all(&path));
    fs::create_dir_all(path.join("routes")).unwrap();
    path
}

fn contract(name: &str) -> PathBuf {
    let dir = directory(name);
    fs::write(dir.join("routes/a.toml"), INCLUDED).unwrap();
    fs::write(dir.join("token"), "hunter2-hunter2\n").unwrap();
    fs::set_permissions(dir.join("token"), fs::Permissions::from_mode(0o600)).unwrap();
    let path = dir.join("contract.toml");
    fs::write(&path, CONTRACT).unwrap();
    path
}

fn evenkeel(arguments: &[&str], path: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(arguments)
        .arg(path)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Case 070: the effective configuration can be printed, each value with its source.
#[test]
fn every_setting_is_shown_with_its_value_and_where_it_comes_from() {
    let path = contract("settings");
    let output = evenkeel(&["check", "--explain"], &path);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for line in [
        "name \"all-rungs\" contract.toml:12",
        "ladder[0].stale \"60s\" contract.toml:18",
        "ladder[2].default.body (from file token) contract.toml:20",
        "ladder[2].default.cache_control \"no-store\" (default)",
        "when_busy \"ladder\" (default)",
        "when_busy \"refuse\" routes/a.toml:7",
        "breaker \"off\" contract.toml:10",
        "breaker.window \"10s\" (default)",
        // The shortest deadline of the routes that ask it, which is less than the default of a second.
        "timeout \"900ms\" (default)",
        "rewrite.set_request { authorization = { file = \"token\" } } contract.toml:6",
        "outage failure yes",
        "dependency first: as above",
    ] {
        assert!(
            shown.lines().any(|shown| words(shown) == words(line)),
            "{line} is missing from\n{shown}"
        );
    }
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.lines().all(|line| line.len() <= 130), "{shown}");
    let writes = shown.split("\nroute writes").nth(1).unwrap();
    assert!(
        !writes.contains("when_busy") && !writes.contains("max_body"),
        "reads alone: {writes}"
    );
}

#[test]
fn what_an_outage_would_leave_is_what_the_engine_comes_to() {
    let path = contract("outage");
    let output = evenkeel(&["check", "--explain", "--json"], &path);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(!text(&output.stdout).contains("hunter2"));
    assert_eq!(told["found"], json!([]));
    let outcomes = |route: usize, gone: usize| -> Vec<(String, bool, Value, Value, Value)> {
        let list = told["routes"][route]["if_gone"][gone]["outcomes"]
            .as_array()
            .unwrap();
        let one = |it: &Value| {
            let with = it["with"].as_str().unwrap().to_owned();
            let open = it["breaker_open"].as_bool().unwrap();
            (
                with,
                open,
                it["rung"].clone(),
                it["status"].clone(),
                it["reason"].clone(),
            )
        };
        list.iter().map(one).collect()
    };
    let case = |with: &str, open: bool, rung: Value, status: Value, reason: &str| {
        (with.to_owned(), open, rung, status, json!(reason))
    };
    let null = Value::Null;
    let (failed, opened) = ("dependency-failed", "breaker-open");
    let kept = "a copy up to 1m old";
    assert_eq!(told["routes"][0]["if_gone"][0]["gone"], json!(["first"]));
    assert_eq!(
        outcomes(0, 0),
        [
            case(kept, false, json!("stale"), null.clone(), failed),
            case("an older copy", false, json!("alternate"), null.clone(), failed),
            case("no copy", false, json!("alternate"), null.clone(), failed),
            case(kept, true, json!("stale"), null.clone(), opened),
            case("an older copy", true, json!("alternate"), null.clone(), opened),
            case("no copy", true, json!("alternate"), null.clone(), opened),
        ]
    );
    assert_eq!(
        told["routes"][0]["if_gone"][1]["gone"],
        json!(["first", "second"])
    );
    assert_eq!(
        outcomes(0, 1)[1],
        case("an older copy", false, json!("default"), json!(203), failed)
    );
    let skipped = &told["routes"][0]["if_gone"][1]["outcomes"][1]["skipped"];
    assert_eq!(
        *skipped,
        json!([{ "rung": "stale", "why": "too-old" }, { "rung": "alternate", "why": "failed" }])
    );
    // Without a breaker there is nothing to be busy, so the ladder answers.
    assert_eq!(outcomes(1, 0).len(), 3);
    assert_eq!(
        outcomes(1, 0)[2],
        case("no copy", false, null.clone(), json!(502), failed)
    );
    assert_eq!(
        outcomes(2, 0)[..2],
        [
            case(
                "a copy inside its lifetime",
                false,
                json!("fresh"),
                null.clone(),
                "x"
            ),
            case(
                "a copy past its lifetime",
                false,
                null.clone(),
                json!(502),
                failed
            ),
        ]
        .map(|it| if it.4 == "x" {
            (it.0, it.1, it.2, it.3, Value::Null)
        } else {
            it
        })
    );
    assert_eq!(
        outcomes(3, 0),
        [
            case("nothing kept", false, null.clone(), json!(502), failed),
            case("nothing kept", true, null, json!(503), opened),
        ]
    );
    assert_eq!(told["routes"][0]["settings"][0]["source"]["line"], 12);
}

#[test]
fn a_contract_with_problems_is_not_explained() {
    let path = contract("problems");
    fs::write(&path, CONTRACT.replace("\"60s\"", "\"60\"")).unwrap();
    let output = evenkeel(&["check", "--explain", "--json"], &path);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (output.status.code(), &told[0]["code"]),
        (Some(1), &json!("bad-duration"))
    );
}

#[test]
fn the_contract_to_start_from_passes_the_check_and_is_not_written_over() {
    let path = directory("init").join("first.toml");
    let output = evenkeel(&["init"], &path);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let written = fs::read_to_string(&path).unwrap();
    let output = evenkeel(&["check", "--strict"], &path);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).ends_with("no problem, 2 routes\n"));
    fs::write(&path, "mine").unwrap();
    let output = evenkeel(&["init"], &path);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("is there already"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    assert_eq!(evenkeel(&["init", "--force"], &path).status.code(), Some(0));
    assert_eq!(fs::read_to_string(&path).unwrap(), written);
    let nowhere = path.parent().unwrap().join("no/such/directory/a.toml");
    assert_eq!(evenkeel(&["init"], &nowhere).status.code(), Some(2));
}
