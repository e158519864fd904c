//! The reference pages say what the code does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use evenkeel_core::{BreakerRules, Criticality, EjectRules, LimitRules, RampRules, RetryRules, Spread};
use evenkeel_gateway::{
    config::{self, DefaultAnswer, Dependency, Gateway, Route, keys, room, units::show_duration},
    proxy::{FIELDS_MAX, IDLE_MAX, LINGER, LINGER_BYTES, Limits, RESPONSE_HEAD_MAX, RETRY_AFTER_DEFAULT},
    telemetry::series,
};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name)
}

fn page(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap()
}

/// Returns the cells of every table row whose first cell is code.
fn rows(page: &str) -> Vec<Vec<String>> {
    page.lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let cells = line
                .trim_matches('|')
                .split('|')
                .map(|cell| cell.trim().to_owned());
            cells.collect()
        })
        .collect()
}

fn code(cell: &str) -> &str {
    cell.trim_matches('`')
}

#[test]
fn the_contract_page_has_exactly_the_keys_that_are_read() {
    let written: BTreeSet<String> = rows(&page("reference/contract.md"))
        .iter()
        .map(|row| code(&row[0]).to_owned())
        .collect();
    let read: BTreeSet<String> = keys::ALL
        .iter()
        .flat_map(|(table, keys)| keys.iter().map(move |key| format!("{table}.{key}")))
        .collect();
    assert_eq!(written, read);
}

/// Returns what a contract may leave out, and the default as the pages write it.
fn defaults() -> Vec<(String, String)> {
    let span = |span| format!("\"{}\"", show_duration(span));
    let mib = |bytes: usize| format!("\"{}MiB\"", bytes >> 20);
    let share = |ppm: u32| format!("\"{}%\"", ppm / 10_000);
    let breaker = "dependencies.<name>.breaker";
    let (eject, ejections) = ("dependencies.<name>.eject", EjectRules::DEFAULT);
    let (ramp, learned) = ("dependencies.<name>.ramp", "dependencies.<name>.learned_limit");
    let ramp_rules = RampRules::default();
    let queue = "dependencies.<name>.queue";
    let (retry, retries) = ("dependencies.<name>.retry", RetryRules::DEFAULT);
    vec![
        ("gateway.admin".to_owned(), format!("\"{}\"", Gateway::ADMIN)),
        ("gateway.memory".to_owned(), mib(Gateway::MEMORY)),
        ("gateway.scope_share".to_owned(), share(Gateway::SCOPE_SHARE_PPM)),
        ("gateway.buffers".to_owned(), mib(Gateway::BUFFERS)),
        ("gateway.drain".to_owned(), span(Gateway::DRAIN)),
        (
            "dependencies.<name>.timeout".to_owned(),
            span(Dependency::TIMEOUT),
        ),
        (
            "dependencies.<name>.balance".to_owned(),
            format!("\"{}\"", Spread::default().as_str()),
        ),
        (format!("{eject}.consecutive"), ejections.consecutive.to_string()),
        (format!("{eject}.for"), span(ejections.first)),
        (format!("{eject}.for_max"), span(ejections.longest)),
        (format!("{eject}.jitter"), share(ejections.jitter_ppm)),
        (format!("{eject}.max_share"), share(ejections.max_share_ppm)),
        (
            format!("{eject}.statuses"),
            format!("{:?}", config::Spread::FAILURES),
        ),
        (
            format!("{breaker}.consecutive"),
            Dependency::CONSECUTIVE.to_string(),
        ),
        (
            format!("{breaker}.failure_ratio"),
            share(Dependency::FAILURE_RATIO_PPM),
        ),
        (format!("{breaker}.window"), span(Dependency::WINDOW)),
        (format!("{breaker}.min_calls"), Dependency::MIN_CALLS.to_string()),
        (format!("{breaker}.slow_ratio"), share(Dependency::SLOW_RATIO_PPM)),
        (format!("{breaker}.open_for"), span(BreakerRules::OPEN_FOR_FIRST)),
        (
            format!("{breaker}.open_for_max"),
            span(BreakerRules::OPEN_FOR_LONGEST),
        ),
        (format!("{breaker}.jitter"), share(BreakerRules::JITTER_PPM)),
        (format!("{breaker}.probes"), BreakerRules::NONE.probes.to_string()),
        (
            format!("{breaker}.close_after"),
            BreakerRules::NONE.close_after.to_string(),
        ),
        (format!("{ramp}.stages"), format!("{:?}", RampRules::STAGES)),
        (format!("{ramp}.hold"), span(ramp_rules.hold)),
        (format!("{ramp}.hold_max"), span(ramp_rules.longest)),
        (format!("{ramp}.calls"), ramp_rules.calls.to_string()),
        (format!("{ramp}.failure_ratio"), share(ramp_rules.failures_ppm)),
        (format!("{learned}.floor"), LimitRules::DEFAULT.floor.to_string()),
        (format!("{learned}.cold"), LimitRules::DEFAULT.cold.to_string()),
        (format!("{queue}.length"), room::QUEUE_LENGTH.to_string()),
        (format!("{queue}.wait"), span(room::QUEUE_WAIT)),
        (format!("{retry}.attempts"), retries.attempts.to_string()),
        (format!("{retry}.budget"), share(retries.budget_ppm)),
        (format!("{retry}.floor"), retries.floor.to_string()),
        (format!("{retry}.pause"), span(retries.pause)),
        (format!("{retry}.pause_max"), span(retries.pause_max)),
        (format!("{retry}.retry_after_max"), span(retries.retry_after_max)),
        ("routes.deadline".to_owned(), span(Route::DEADLINE)),
        ("routes.on_timeout".to_owned(), "\"cancel\"".to_owned()),
        (
            "routes.criticality".to_owned(),
            format!("\"{}\"", Criticality::default()),
        ),
        ("routes.max_body".to_owned(), mib(Route::MAX_BODY)),
        (
            "routes.max_request_body".to_owned(),
            mib(usize::try_from(Route::MAX_REQUEST_BODY).unwrap()),
        ),
        (
            "routes.ladder.default.cache_control".to_owned(),
            format!("\"{}\"", DefaultAnswer::CACHE_CONTROL),
        ),
    ]
}

#[test]
fn the_guide_argues_for_exactly_the_defaults_in_force() {
    let written: Vec<(String, String)> = rows(&page("guide/defaults.md"))
        .iter()
        .map(|row| (code(&row[0]).to_owned(), code(&row[1]).to_owned()))
        .collect();
    assert_eq!(written, defaults());
}

#[test]
fn the_defaults_on_the_contract_page_are_those_in_force() {
    let rows = rows(&page("reference/contract.md"));
    for (key, default) in defaults() {
        let row = rows.iter().find(|row| code(&row[0]) == key).unwrap();
        assert_eq!(code(&row[1]), default, "{key}");
    }
}

/// A timeout that ends after the deadline would never be run into, so no hang would ever be blamed.
#[test]
fn a_timeout_that_is_not_written_down_ends_with_the_shortest_deadline_of_its_routes() {
    let timeout = |deadlines: &[&str]| {
        let mut text =
            "[gateway]\nlisten = \"127.0.0.1:0\"\n[dependencies.d]\nurls = [\"http://a\"]\n".to_owned();
        for (index, deadline) in deadlines.iter().enumerate() {
            text.push_str(&format!(
                "[[routes]]\nname = \"r{index}\"\nmatch = {{ path = \"/r{index}\" }}\nclass = \"read\"\nfrom = \"d\"\n{deadline}\n"
            ));
        }
        config::parse("contract.toml", &text)
            .unwrap()
            .contract
            .dependencies[0]
            .timeout
    };
    assert_eq!(
        timeout(&[""]),
        Dependency::TIMEOUT,
        "the deadline is longer by itself"
    );
    assert_eq!(
        timeout(&["", "deadline = \"400ms\"", "deadline = \"2s\""]),
        Duration::from_millis(400)
    );
    for page in ["reference/contract.md", "guide/defaults.md"] {
        let row = rows(&self::page(page))
            .into_iter()
            .find(|row| code(&row[0]) == "dependencies.<name>.timeout")
            .unwrap();
        assert!(row.last().unwrap().contains("shortest deadline"), "{page}");
    }
}

#[test]
fn the_limits_on_the_contract_page_are_those_in_force() {
    let page = page("reference/contract.md");
    let limits = Limits::default();
    for row in [
        format!(
            "| client connections at once | {} 000, or a third of",
            limits.connections / 1000
        ),
        format!("pause between two requests | {} s |", limits.head_read.as_secs()),
        format!("| bytes of a request head | {} KiB |", limits.head_bytes >> 10),
        format!("| fields of a head | {FIELDS_MAX} |"),
        format!(
            "| bytes of the head of an upstream's answer | {} KiB |",
            RESPONSE_HEAD_MAX >> 10
        ),
        format!(
            "| pause of a client that takes nothing of its answer | {} s |",
            limits.client_idle.as_secs()
        ),
        format!(
            "| pause inside a streamed body | {} s |",
            limits.stream_idle.as_secs()
        ),
        format!(
            "| pause inside the body of a request | {} s |",
            limits.upload_idle.as_secs()
        ),
        format!("from the first wait | {} s |", limits.upload.as_secs()),
        format!(
            "| what is still read of a body whose request has been answered | {} MiB, {} s |",
            LINGER_BYTES >> 20,
            LINGER.as_secs()
        ),
        format!("| idle connections per worker and address | {IDLE_MAX} |"),
        format!(
            "| Retry-After without a known instant | {} s |",
            RETRY_AFTER_DEFAULT.as_secs()
        ),
    ] {
        assert!(page.contains(&row), "{row}");
    }
}

#[test]
fn the_example_on_the_contract_page_passes_the_check() {
    let page = page("reference/contract.md");
    let example = page
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    if let Err(problems) = config::parse("contract.md", example) {
        panic!("{problems}");
    }
}

#[test]
fn the_metrics_page_has_exactly_the_series_that_are_exported() {
    let expected: Vec<Vec<String>> = series::ALL
        .iter()
        .map(|series| {
            let labels: Vec<String> = series.labels.iter().map(|label| format!("`{label}`")).collect();
            vec![
                format!("`{}`", series.exported()),
                format!("{:?}", series.kind).to_lowercase(),
                if labels.is_empty() {
                    "-".to_owned()
                } else {
                    labels.join(", ")
                },
                series.help.to_owned(),
            ]
        })
        .collect();
    if std::env::var_os("EVENKEEL_UPDATE").is_some() {
        write_series(&expected);
    }
    let written: Vec<Vec<String>> = rows(&page("reference/metrics.md"))
        .into_iter()
        .filter(|row| row.len() == 4 && row[0].contains('_'))
        .collect();
    assert_eq!(written, expected);
}

/// Writes the table of the metrics page anew.
fn write_series(rows: &[Vec<String>]) {
    let text = page("reference/metrics.md");
    let (before, rest) = text.split_once("|---|---|---|---|\n").unwrap();
    let (_, after) = rest.split_once("\n\n").unwrap();
    let table: String = rows
        .iter()
        .map(|row| format!("| {} |\n", row.join(" | ")))
        .collect();
    let text = format!("{before}|---|---|---|---|\n{table}\n{after}");
    std::fs::write(path("reference/metrics.md"), text).unwrap();
}

#[test]
fn series_are_named_by_the_house_rule() {
    for series in series::ALL {
        // Those of the process have the names that every program gives them.
        let prefixes = ["evenkeel_", "process_"];
        assert!(
            prefixes.iter().any(|prefix| series.name.starts_with(prefix)) && !series.name.ends_with("_total"),
            "{}",
            series.name
        );
        assert!(!series.help.ends_with('.'));
    }
}
