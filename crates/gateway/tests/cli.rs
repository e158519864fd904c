//! The program as a person runs it: check, demo, serve, help.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{
    io::{BufRead as _, BufReader, Lines, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Output, Stdio},
};

fn evenkeel(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Writes a contract to a file of its own.
fn file(name: &str, contract: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, contract).unwrap();
    path
}

#[test]
fn the_demo_holds_its_promise_with_counts_of_real_answers() {
    let output = evenkeel(&["demo", "--json"]);
    let outcome: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let counts = |run: &str, keys: &[&str]| -> Vec<u64> {
        keys.iter()
            .map(|key| outcome[run][key].as_u64().unwrap())
            .collect()
    };
    assert_eq!(
        counts("hard", &["requests", "answered", "failed"]),
        [200, 50, 150]
    );
    let keys = ["requests", "live", "stale", "default", "failed"];
    assert_eq!(counts("graceful", &keys), [200, 50, 150, 0, 0]);
    for run in ["hard", "graceful"] {
        assert_eq!(
            counts(run, &["attempts", "upstream_received"]),
            [200, 50],
            "no breaker spares a side"
        );
    }
    assert_eq!(counts("way_back", &["attempts_while_down", "failed"]), [5, 0]);
    assert_eq!(outcome["way_back"]["steps"][2]["to"], "closed");
    assert_eq!(outcome["held"], true);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn the_demo_says_that_the_promise_is_broken_when_the_stale_rung_is_taken_out() {
    let output = evenkeel(&["demo", "--json", "--without-stale"]);
    let outcome: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(outcome["graceful"]["stale"], 0);
    assert_eq!(outcome["graceful"]["default"], 150);
    assert_eq!(outcome["broken"].as_array().unwrap().len(), 1);
    assert_eq!(outcome["held"], false);
    assert_eq!(output.status.code(), Some(1));
    let output = evenkeel(&["demo", "--without-stale"]);
    let shown = text(&output.stdout);
    assert!(
        shown.ends_with(
            "\n PROMISE BROKEN: the last good data afterwards: 0 of 150 answers were stale, 150 default, 0 failed\n"
        ),
        "{shown}"
    );
}

#[test]
fn the_demo_shows_the_table_and_the_labels_of_one_stale_answer() {
    let shown = text(&evenkeel(&["demo"]).stdout);
    for part in [
        "upstream dies after request 50 of 200",
        " hard           50 (25 %)     50      0        0     150",
        " graceful     200 (100 %)     50    150        0       0",
        "request 51:  200",
        "x-data-freshness: stale",
        "proxy-status: evenkeel; error=connection_refused",
        "reason=dependency-failed",
        "closed after",
        "promise held",
    ] {
        assert!(shown.contains(part), "{part} is missing from\n{shown}");
    }
}

const GOOD: &str = r#"
[gateway]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"
[dependencies.catalog]
urls = ["http://127.0.0.1:9"]
[[routes]]
name = "product"
match = { path = "/products/{id}" }
class = "read"
from = "catalog"
ladder = [ { stale = "60s" } ]
"#;

#[test]
fn a_good_contract_passes_the_check() {
    let path = file("good.toml", GOOD);
    let output = evenkeel(&["check", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).ends_with("good.toml: no problem, 1 route\n"));
}

#[test]
fn every_contract_of_the_gateway_bench_passes_the_check() {
    let conf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/gateways/conf");
    let contracts: Vec<PathBuf> = std::fs::read_dir(conf)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    assert!(!contracts.is_empty());
    for contract in contracts {
        let output = evenkeel(&["check", contract.to_str().unwrap()]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}

#[test]
fn every_problem_is_shown_at_once_with_its_line_and_how_to_mend_it() {
    let path = file(
        "bad.toml",
        r#"[gateway]
listen = "127.0.0.1"
memroy = "1GiB"
[dependencies.catalog]
urls = ["http://a:1", "http://a:1"]
timeout = "0s"
uses = ["db"]
breaker = { open_for = "5s" }
[dependencies.spare]
urls = ["http://127.0.0.1:9"]
breaker = { open_for = "5s", jitter = "60%" }
[[routes]]
name = "product"
match = { path = "/products/{id}" }
class = "operate"
from = "catalogue"
ladder = [ { default = { content_type = "text/plain", body = "" } }, { stale = "60s" } ]
[[routes]]
name = "product"
match = { path = "/products/{other}" }
class = "read"
from = "catalog"
keep_if = { not_empty = true }
"#,
    );
    let output = evenkeel(&["check", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stderr);
    for part in [
        "]: gateway.listen: \"127.0.0.1\"",
        "]: gateway.memroy: an unknown key",
        "= mend: did you mean `memory`?",
        "]: dependencies.catalog.urls: \"http://a:1\" twice",
        "]: dependencies.catalog.timeout: \"0s\"",
        "bad.toml:6:11",
        "]: dependencies.catalog.uses: \"db\"",
        "error[pass-with-ladder]: routes[0] \"product\".ladder: something to stand in for a write",
        "]: routes[0] \"product\".from: \"catalogue\"",
        "]: routes[1] \"product\".name: \"product\", as another route",
        "]: routes[1] \"product\".match.path: \"/products/{other}\", the same paths as route \"product\"",
        "]: routes[1] \"product\".keep_if: set without a stale rung",
        "]: dependencies.catalog.breaker.open_for_max: 1s",
        "]: dependencies.spare.breaker.jitter (parts per million): 600000",
        "]: routes[0] \"product\".ladder[0]: default before other rungs",
    ] {
        assert!(shown.contains(part), "{part} is missing from\n{shown}");
    }
}

#[test]
fn problems_that_the_engine_finds_have_their_line_too() {
    let contract = GOOD
        .replace(
            "\n[[routes]]",
            "\ntimeout = \"2h\"\nbreaker = { open_for = \"5s\", jitter = \"60%\" }\n[[routes]]",
        )
        .replace("ladder =", "exact = true\nladder =");
    let path = file("engine.toml", &contract);
    let output = evenkeel(&["check", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stderr);
    for part in [
        "dependencies.catalog.timeout: 7200s",
        "engine.toml:7:11",
        "dependencies.catalog.breaker.open_for_max: 1s",
        "= allowed: `open_for` (5s) or longer",
        "breaker.jitter",
    ] {
        assert!(shown.contains(part), "{part} is missing from\n{shown}");
    }
    let contract = GOOD.replace("ladder =", "exact = true\nladder =");
    let path = file("exact.toml", &contract);
    let shown = text(&evenkeel(&["check", path.to_str().unwrap()]).stderr);
    assert!(
        shown.contains("]: routes[0] \"product\".ladder[0]: stale with `exact`"),
        "{shown}"
    );
    assert!(shown.contains("exact.toml:13:12"), "{shown}");
}

/// Returns what `check` says about [`GOOD`] with these lines added to its dependency, its route and its top.
fn checked(name: &str, dependency: &str, route: &str, top: &str) -> String {
    let contract = GOOD.replace(
        "\n[[routes]]",
        &format!("\n{dependency}\n{top}\n[[routes]]\n{route}"),
    );
    let path = file(name, &contract);
    let output = evenkeel(&["check", path.to_str().unwrap()]);
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_queue_that_cannot_help_and_a_criticality_that_is_none_are_problems_with_a_way_out() {
    let unlimited = "learned_limit = \"off\"\nbreaker = \"off\"\nconcurrency = 9\nqueue = {}";
    for (written, route, parts) in [
        (
            "queue = 64",
            "",
            [
                "dependencies.catalog.queue: 64",
                "a table of bounds",
                "or remove it",
            ],
        ),
        (
            "queue = { length = 0 }",
            "",
            [
                "dependencies.catalog.queue.length: 0",
                "an integer of 1 to 100000",
                "`length = 64`",
            ],
        ),
        (
            "queue = { wait = \"3s\" }",
            "",
            [
                "dependencies.catalog.queue.wait: \"3s\", and the deadline of",
                "less than the shortest deadline of its routes",
                "raise that `deadline`",
            ],
        ),
        (
            "",
            "criticality = \"high\"",
            [
                "criticality: \"high\"",
                "critical, critical_plus,",
                "`criticality = \"critical\"`",
            ],
        ),
    ] {
        let shown = checked("queue-rules.toml", written, route, "");
        for part in parts {
            assert!(shown.contains(part), "{written}\n{part}\n{shown}");
        }
    }
    let shown = checked("queue-limited.toml", unlimited, "", "");
    assert!(shown.contains("no problem"), "{shown}");
    let shown = checked(
        "queue-unlimited.toml",
        &unlimited.replace("concurrency = 9\n", ""),
        "",
        "",
    );
    assert!(shown.contains("beside nothing that limits"), "{shown}");
}

#[test]
fn rules_of_retries_that_cannot_hold_are_problems_with_a_way_out() {
    for (written, parts) in [
        (
            "retry = \"off\"",
            [
                "dependencies.catalog.retry: \"off\"",
                "a table of rules",
                "or remove it",
            ],
        ),
        (
            "retry = { attempts = 1 }",
            [
                "dependencies.catalog.retry.attempts: 1",
                "an integer of 2 to 10",
                "`attempts = 2`",
            ],
        ),
        (
            "retry = { budget = \"0%\", floor = 0 }",
            [
                "dependencies.catalog.retry.budget: 0, together with a floor of 0",
                "a share of the calls, a floor, or both",
                "raise one of them",
            ],
        ),
        (
            "retry = { pause = \"2s\" }",
            [
                "dependencies.catalog.retry.pause_max: 1s",
                "`pause` (2s) or longer",
                "lower `pause`",
            ],
        ),
        (
            "retry = { pause = \"3s\", pause_max = \"3s\" }",
            [
                "dependencies.catalog.retry.pause: \"3s\", and the deadline of",
                "less than the shortest deadline of its routes",
                "raise that `deadline`",
            ],
        ),
        (
            "retry = { tries = 2 }",
            ["dependencies.catalog.retry.tries", "attempts", "remove it"],
        ),
    ] {
        let shown = checked("retry-rules.toml", written, "", "");
        for part in parts {
            assert!(shown.contains(part), "{written}\n{part}\n{shown}");
        }
    }
}

#[test]
fn rules_of_breaker_ramp_and_learned_limit_that_cannot_hold_are_problems_with_a_way_out() {
    let off = "breaker = \"off\"\nramp = { stages = [10, 100] }";
    for (written, parts) in [
        (
            "breaker = { window = \"5s\", window_calls = 50 }",
            [
                "dependencies.catalog.breaker.window_calls: set beside `window` (5s)",
                "a window of time or one of calls",
                "remove one of them",
            ],
        ),
        (
            "breaker = { window_calls = 5 }",
            [
                "dependencies.catalog.breaker.window_calls: 5",
                "`min_calls` (20) or more",
                "raise it, or lower `min_calls`",
            ],
        ),
        (
            "breaker = { slow_ratio = \"20%\" }",
            [
                "dependencies.catalog.breaker.slow_ratio: set without `slow_after`",
                "a share of calls that take longer",
                "add `slow_after",
            ],
        ),
        (
            "breaker = { slow_after = \"1s\" }",
            [
                "dependencies.catalog.breaker.slow_after: 1s, not shorter than the timeout of 1s",
                "less than `timeout`",
                "lower it, or raise `timeout`",
            ],
        ),
        (
            "probe = { path = \"health\" }",
            [
                "dependencies.catalog.probe.path: \"health\"",
                "a path from the root",
                "`path = \"/health\"`",
            ],
        ),
        (
            "probe = {}",
            [
                "dependencies.catalog.probe.path: missing",
                "required",
                "add `path =",
            ],
        ),
        (
            "breaker = \"off\"\nprobe = { path = \"/health\" }",
            [
                "dependencies.catalog.probe: no breaker",
                "where there is a breaker",
                "remove it, or `breaker = \"off\"`",
            ],
        ),
        (
            "ramp = \"on\"",
            [
                "dependencies.catalog.ramp: \"on\"",
                "\"off\", or a table of rules",
                "`ramp = \"off\"`",
            ],
        ),
        (
            "ramp = { stages = [50] }",
            [
                "dependencies.catalog.ramp: stages [50]",
                "the last one 100",
                "end it with 100",
            ],
        ),
        (
            "ramp = { stages = [0, 100] }",
            [
                "dependencies.catalog.ramp.stages: a list",
                "integers of 1 to 100",
                "`stages = [5, 20, 50, 100]`",
            ],
        ),
        (
            "ramp = { hold = \"1s\" }",
            [
                "dependencies.catalog.ramp.hold_max: 750ms",
                "1s to",
                "raise it to 1s",
            ],
        ),
        (
            off,
            [
                "dependencies.catalog.ramp: no breaker",
                "where there is a breaker",
                "declare `breaker`",
            ],
        ),
        (
            "learned_limit = 5",
            [
                "dependencies.catalog.learned_limit: 5",
                "\"off\", or a table of rules",
                "`learned_limit = \"off\"`",
            ],
        ),
        (
            "learned_limit = { floor = 0 }",
            [
                "dependencies.catalog.learned_limit.floor: 0",
                "an integer of 1 to 1000",
                "`floor = 1`",
            ],
        ),
        (
            "learned_limit = { floor = 20 }",
            [
                "dependencies.catalog.learned_limit.cold: 10",
                "`floor` (20) or more",
                "raise it, or lower `floor`",
            ],
        ),
        (
            "learned_limit = { limit = 20 }",
            [
                "dependencies.catalog.learned_limit.limit: an unknown key",
                "floor, cold, linger",
                "remove it",
            ],
        ),
    ] {
        let shown = checked("load.toml", written, "", "");
        for part in parts {
            assert!(shown.contains(part), "{part} is missing from\n{shown}");
        }
    }
}

#[test]
fn what_nobody_uses_is_a_problem() {
    let spare = "[dependencies.spare]\nurls = [\"http://127.0.0.1:9\"]";
    let shown = checked(
        "unused.toml",
        "",
        "",
        &format!("{spare}\n[resources.db]\nconcurrency = 1"),
    );
    for part in [
        "]: dependencies.spare: asked by no route",
        "]: resources.db: used by no dependency",
        "would have no effect",
        "2 problems",
    ] {
        assert!(shown.contains(part), "{part} is missing from\n{shown}");
    }
    let used = format!("{spare}\nuses = [\"db\"]\n[resources.db]\nconcurrency = 1");
    let shown = checked("used.toml", "", "", &used.replace("spare", "catalog2"));
    assert!(!shown.contains("resources.db"), "{shown}");
    // A name that is misspelt in a route is one mistake, not two.
    let misspelt = GOOD.replace("from = \"catalog\"", "from = \"catalgo\"");
    let path = file("misspelt.toml", &misspelt);
    let shown = text(&evenkeel(&["check", path.to_str().unwrap()]).stderr);
    assert!(shown.contains("\n1 problem in"), "{shown}");
}

#[test]
fn a_timeout_that_no_deadline_lets_happen_is_a_problem_where_a_breaker_counts_on_it() {
    let shown = checked("late.toml", "timeout = \"2s\"", "deadline = \"1s\"", "");
    for part in [
        "]: dependencies.catalog.timeout: \"2s\", longer than the deadline of routes[0] \"product\" (1s)",
        "late.toml:7:11",
        "= mend: write `timeout = \"1s\"`, or raise that `deadline`",
    ] {
        assert!(shown.contains(part), "{part} is missing from\n{shown}");
    }
    for (dependency, route) in [
        ("timeout = \"1s\"", "deadline = \"1s\""),
        ("timeout = \"2s\"\nbreaker = \"off\"", "deadline = \"1s\""),
        ("", "deadline = \"1ms\""),
    ] {
        let shown = checked("in-time.toml", dependency, route, "");
        assert!(shown.contains("no problem"), "{shown}");
    }
}

#[test]
fn a_duration_is_mended_without_changing_what_was_meant() {
    for (written, said, mend) in [
        ("\"1min\"", "unknown unit \"min\"", "write `deadline = \"1m\"`"),
        (
            "1500",
            "no unit",
            "write `deadline = \"1500s\"` or `deadline = \"1500ms\"`",
        ),
        ("\"1.5s\"", "a fraction", "write `deadline = \"1500ms\"`"),
        ("\"-5s\"", "negative", "write 1ms or more, or remove `deadline`"),
        ("true", "not a text in quotes", "write `deadline = \"3s\"`, say"),
    ] {
        let shown = checked("span.toml", "", &format!("deadline = {written}"), "");
        for part in [
            &format!("deadline: {written}: {said}\n"),
            &format!("= mend: {mend}\n"),
        ] {
            assert!(shown.contains(part.as_str()), "{part} is missing from\n{shown}");
        }
    }
}

#[test]
fn what_is_not_toml_or_not_there_is_told_apart() {
    let path = file("broken.toml", "[gateway\nlisten = 1\n[x] y\n");
    let output = evenkeel(&["check", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("broken.toml:1:"),
        "{}",
        text(&output.stderr)
    );
    let output = evenkeel(&["check", "no/such/file.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(evenkeel(&["check"]).status.code(), Some(2));
    assert_eq!(evenkeel(&["serve", "no/such/file.toml"]).status.code(), Some(2));
}

#[test]
fn a_contract_with_problems_is_the_answer_of_check_and_keeps_serve_from_starting() {
    let path = file("unserved.toml", &GOOD.replace("60s", "0s"));
    let path = path.to_str().unwrap();
    let (checked, served) = (evenkeel(&["check", path]), evenkeel(&["serve", path]));
    assert_eq!((checked.status.code(), served.status.code()), (Some(1), Some(2)));
    assert_eq!(checked.stderr, served.stderr, "both say what is wrong");
}

#[test]
fn help_has_examples_and_exit_statuses() {
    for verb in ["serve", "check", "explain", "init", "schema", "demo"] {
        let output = evenkeel(&[verb, "--help"]);
        assert_eq!(output.status.code(), Some(0));
        let shown = text(&output.stdout);
        assert!(
            shown.contains(&format!("  evenkeel {verb}")) && shown.contains("Exit status: 0"),
            "{shown}"
        );
    }
}

/// Splits the time off a line of the log.
fn without_time(line: &str) -> (&str, &str) {
    line.strip_prefix("time=").unwrap().split_once(' ').unwrap()
}

type Log = Lines<BufReader<ChildStderr>>;

/// A process that ends with its test, also when the test fails.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Starts a gateway and waits for the first line of its log.
fn started(command: &mut Command) -> (Child, String, Log) {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    (child, first, lines)
}

/// Returns the address on which a gateway says that it listens.
fn listens(started: &str) -> String {
    let (_, rest) = started.split_once("listen=").unwrap();
    rest.split(' ').next().unwrap().to_owned()
}

#[test]
fn the_log_tells_an_outage_with_its_rule_its_cause_and_its_address() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = listener.local_addr().unwrap();
    drop(listener);
    let contract = GOOD.replace("127.0.0.1:9", &upstream.to_string()).replace(
        "\n[[routes]]",
        "\nbreaker = { consecutive = 1, open_for = \"1ms\", open_for_max = \"1ms\" }\n[[routes]]",
    );
    let path = file("told.toml", &contract);
    let (child, started, mut lines) =
        started(Command::new(env!("CARGO_BIN_EXE_evenkeel")).args(["serve", path.to_str().unwrap()]));
    let _ended = Ended(child);
    let address = listens(&started);
    let ask = || {
        let mut client = std::net::TcpStream::connect(&address).unwrap();
        client
            .write_all(b"GET /products/1 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(ask().starts_with("HTTP/1.1 502"));
    let why = format!("reason=dependency-failed error=connection_refused upstream={upstream}");
    // What users get is told beside what the breaker does, a second later or so.
    let mut degraded = Vec::new();
    let mut line = || without_time(&lines.next().unwrap().unwrap()).1.to_owned();
    let mut next = || {
        loop {
            let line = line();
            if !line.contains("event=degraded") {
                return line;
            }
            degraded.push(line);
        }
    };
    assert_eq!(
        next(),
        format!(
            "level=warn event=breaker name=catalog from=closed to=open cause=tripped rule=consecutive {why}"
        )
    );
    // A probe is due after a millisecond; how many asks that takes depends on the machine.
    assert!((0..100_000).any(|_| ask().contains("probe-failed")));
    assert_eq!(
        next(),
        "level=info event=breaker name=catalog from=open to=half-open cause=probing"
    );
    assert_eq!(
        next(),
        format!("level=warn event=breaker name=catalog from=half-open to=open cause=probe-failed {why}")
    );
    let told = degraded.pop().unwrap_or_else(|| {
        let mut lines = std::iter::repeat_with(line);
        lines.find(|line| line.contains("event=degraded")).unwrap()
    });
    assert!(
        told.starts_with("level=warn event=degraded name=product gets=refused reason="),
        "{told}"
    );
}

#[test]
fn serve_starts_says_where_and_ends_on_a_signal() {
    let path = file("serve.toml", GOOD);
    let (mut child, started, mut lines) =
        started(Command::new(env!("CARGO_BIN_EXE_evenkeel")).args(["serve", path.to_str().unwrap()]));
    let (time, rest) = without_time(&started);
    assert!(
        rest.starts_with("level=info event=started listen=127.0.0.1:"),
        "{started}"
    );
    assert!(
        time.ends_with('Z') && time.as_bytes().get(10) == Some(&b'T'),
        "{time}"
    );
    let killed = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(killed.success());
    for expected in [
        "level=info event=stopping signal=terminate",
        "level=info event=stopped drained=yes",
    ] {
        assert_eq!(without_time(&lines.next().unwrap().unwrap()).1, expected);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_second_signal_ends_at_once() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = listener.local_addr().unwrap().to_string();
    let contract = GOOD
        .replace("127.0.0.1:9", &upstream)
        .replace(
            "\n[[routes]]",
            "\ntimeout = \"1h\"\n[[routes]]\ndeadline = \"1h\"",
        )
        .replacen("[dependencies", "drain = \"1h\"\n[dependencies", 1);
    let path = file("second.toml", &contract);
    let (mut child, started, mut lines) =
        started(Command::new(env!("CARGO_BIN_EXE_evenkeel")).args(["serve", path.to_str().unwrap()]));
    let address = listens(&started);
    let mut client = std::net::TcpStream::connect(address).unwrap();
    client
        .write_all(b"GET /products/1 HTTP/1.1\r\nhost: a\r\n\r\n")
        .unwrap();
    // The upstream takes the connection and never answers.
    let (_held, _) = listener.accept().unwrap();
    let signal = || {
        let sent = Command::new("kill").arg(child.id().to_string()).status();
        assert!(sent.unwrap().success());
    };
    signal();
    let mut next = || without_time(&lines.next().unwrap().unwrap()).1.to_owned();
    assert_eq!(next(), "level=info event=stopping signal=terminate");
    signal();
    assert_eq!(next(), "level=warn event=stopped drained=no");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

/// Connections of clients never take the files that attempts, metrics and the log need.
#[test]
fn fewer_open_files_mean_fewer_connections() {
    let path = file("files.toml", GOOD);
    let (mut child, started, _lines) = started(
        Command::new("sh")
            .args(["-c", "ulimit -n 90 && exec \"$0\" serve \"$1\""])
            .args([env!("CARGO_BIN_EXE_evenkeel"), path.to_str().unwrap()]),
    );
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(started.ends_with(" connections=30"), "{started}");
}

#[test]
fn an_alternate_that_could_not_answer_and_an_exercise_of_nothing_are_problems() {
    let spare = "[dependencies.spare]\nurls = [\"http://127.0.0.1:9\"]\ntimeout = \"5s\"";
    let checked = |name: &str, route: &str, more: &str| {
        let contract = GOOD
            .replace("ladder = [ { stale = \"60s\" } ]", route)
            .replace("\n[[routes]]", &format!("\n{more}\n[[routes]]"));
        let path = file(name, &contract);
        let output = evenkeel(&["check", path.to_str().unwrap()]);
        format!("{}{}", text(&output.stdout), text(&output.stderr))
    };
    for (route, more, parts) in [
        (
            "ladder = [ { alternate = \"spare\" } ]",
            "",
            [
                "routes[0] \"product\".ladder[0].alternate",
                "\"spare\"",
                "add `[dependencies.spare]`",
            ],
        ),
        (
            "ladder = [ { alternate = \"catalog\" } ]",
            "",
            [
                "the dependency that could not answer",
                "another dependency than `from`",
                "a `retry`",
            ],
        ),
        (
            "ladder = [ { alternate = \"spare\" } ]",
            spare,
            [
                "a timeout of 5s, and the deadline ends the call",
                "kept free",
                "lower that timeout",
            ],
        ),
        (
            "ladder = [ { alternate = \"spare\", stale = \"1s\" } ]",
            spare,
            [
                "not exactly one of stale, alternate and default",
                "{ alternate = dependency }",
                "one rung in each",
            ],
        ),
        (
            "ladder = [ { stale = \"1s\" } ]\nexercise = \"1%\"",
            "",
            [
                "routes[0] \"product\".exercise",
                "without an alternate or a default",
                "a copy needs no exercise",
            ],
        ),
        (
            "exercise = \"0%\"",
            "",
            ["no share at all", "more than 0% to 100%", "exercise = \"0.1%\""],
        ),
    ] {
        let shown = checked("alternate.toml", route, more);
        for part in parts {
            assert!(shown.contains(part), "{part} is missing from\n{shown}");
        }
    }
    let used = checked(
        "alternate-only.toml",
        "ladder = [ { alternate = \"spare\" } ]",
        &spare.replace("5s", "100ms"),
    );
    assert!(used.contains("no problem"), "{used}");
}
