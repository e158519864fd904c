//! The alerts of a contract, by Prometheus' own parser, its own tests, and what a real outage exports.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "e2e/kit.rs"]
mod kit;
#[path = "e2e/promtool.rs"]
mod promtool;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use evenkeel_gateway::{
    alerts::{Alerts, EVERY, NAMES},
    config,
};
use kit::{Bench, Origin, Reply, contract};

const FULL: &str = include_str!("random_contracts/full.toml");
const RULES: &str = "evenkeel.rules.yml";

fn alerts(contract: &str, every: Duration) -> Alerts {
    match config::parse("contract.toml", contract) {
        Ok(loaded) => Alerts::of(&loaded.contract, every),
        Err(problems) => panic!("{problems}"),
    }
}

/// Makes a directory of its own for each test, with these rules and these tests in it.
fn written(name: &str, rules: &str, tests: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("alerts")
        .join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(RULES), rules).unwrap();
    std::fs::write(folder.join("tests.yml"), tests).unwrap();
    folder
}

/// Runs `promtool test rules`; `Err` is what it says.
fn tested(promtool: &Path, folder: &Path) -> Result<(), String> {
    let output = Command::new(promtool)
        .args(["test", "rules", "tests.yml"])
        .current_dir(folder)
        .output()
        .unwrap();
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn every_alert_of_every_kind_of_contract_fires_for_what_it_is_about_and_for_nothing_else() {
    let alerts = alerts(FULL, EVERY);
    let made: BTreeSet<&str> = alerts.rules().iter().map(|rule| rule.name).collect();
    assert_eq!(
        made,
        NAMES.iter().copied().collect(),
        "the contract has every kind"
    );
    let Some(promtool) = promtool::promtool() else {
        return;
    };
    let folder = written("every", &alerts.to_rules("full.toml"), &alerts.to_tests(RULES));
    if let Err(said) = tested(&promtool, &folder) {
        panic!("{said}");
    }
}

#[test]
fn a_scrape_a_minute_makes_longer_windows_that_pass_the_same_tests() {
    let text = "[gateway]\nlisten = \"127.0.0.1:0\"\n[dependencies.d]\nurls = [\"http://a\"]\nqueue = { length = 4, wait = \"500ms\" }\n\
        [[routes]]\nname = \"r\"\nmatch = { path = \"/r\" }\nclass = \"read\"\nfrom = \"d\"\nladder = [ { stale = \"60s\" } ]\n";
    let alerts = alerts(text, Duration::from_secs(60));
    let rules = alerts.to_rules("contract.toml");
    assert!(rules.contains("[4m]") && !rules.contains("[1m]"), "{rules}");
    assert!(
        rules.contains("# r: old answers bridge 1m, too little for a warning before they end"),
        "{rules}"
    );
    let Some(promtool) = promtool::promtool() else {
        return;
    };
    let folder = written("minute", &rules, &alerts.to_tests(RULES));
    if let Err(said) = tested(&promtool, &folder) {
        panic!("{said}");
    }
}

/// What the generated tests are worth: a rule that is changed fails them.
#[test]
fn a_rule_that_no_longer_says_what_it_should_fails_its_test() {
    let Some(promtool) = promtool::promtool() else {
        return;
    };
    let text = "[gateway]\nlisten = \"127.0.0.1:0\"\n[dependencies.d]\nurls = [\"http://a\"]\n\
        [[routes]]\nname = \"r\"\nmatch = { path = \"/r\" }\nclass = \"read\"\nfrom = \"d\"\nladder = [ { stale = \"1h\" } ]\n";
    let alerts = alerts(text, EVERY);
    let (rules, tests) = (alerts.to_rules("contract.toml"), alerts.to_tests(RULES));
    for (case, (sound, broken)) in [
        ("> 0.05", "> 5"),
        ("> 0.05", "> 0.03"),
        (",reason!=\"revalidating\"", ""),
        ("< 0.5", "< 0.05"),
        ("rung=\"stale\"", "rung=\"live\""),
        ("state=\"closed\"", "state=\"open\""),
        ("absent(evenkeel_build_info)", "absent(up)"),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(rules.contains(sound), "{sound}");
        let folder = written(&format!("broken-{case}"), &rules.replace(sound, broken), &tests);
        assert!(
            tested(&promtool, &folder).is_err(),
            "{sound} made {broken} is not noticed"
        );
    }
}

/// A test of one alert against series that were not made for it: whether it fires, minute by minute.
fn minutes(
    interval: u64,
    series: &BTreeMap<String, Vec<String>>,
    claims: &[(&str, &[u64], &[u64])],
) -> String {
    let mut text = format!(
        "rule_files: [{RULES}]\nevaluation_interval: 15s\ntests:\n  - interval: {interval}s\n    input_series:\n"
    );
    for (name, values) in series {
        let name = serde_json::Value::from(&**name);
        text.push_str(&format!(
            "      - series: {name}\n        values: \"{}\"\n",
            values.join(" ")
        ));
    }
    text.push_str("    promql_expr_test:\n");
    for (alert, firing, silent) in claims {
        let about = |fires: bool| {
            let expr = format!("count(ALERTS{{alertname=\"{alert}\",alertstate=\"firing\"}})");
            let samples = if fires {
                "[{labels: \"{}\", value: 1}]"
            } else {
                "[]"
            };
            move |minute: &u64| {
                format!(
                    "      - expr: '{expr}'\n        eval_time: {minute}m\n        exp_samples: {samples}\n"
                )
            }
        };
        text.extend(firing.iter().map(about(true)));
        text.extend(silent.iter().map(about(false)));
    }
    text
}

/// Case 067: a breaker that opens and closes every 5 s for 5 min, then is calm for 10 min, then open for 10 min. One
/// notification for the flapping and its end, one for the long outage and its end.
#[test]
fn case_067_flapping_is_one_notification_and_a_long_outage_one_that_resolves() {
    let Some(promtool) = promtool::promtool() else {
        return;
    };
    for ladder in [
        "",
        "ladder = [ { stale = \"60s\" } ]",
        "ladder = [ { stale = \"1d\" } ]",
    ] {
        let address = ([127, 0, 0, 1], 1).into();
        let rules = alerts(&contract(address, "", ladder), EVERY).to_rules("contract.toml");
        let is_open = |second: u64| match second {
            60..360 => (second / 5).is_multiple_of(2),
            960..1560 => true,
            _ => false,
        };
        // Every phase of the scrapes against the flapping, which has a period of ten seconds.
        for offset in [0, 2, 5, 7] {
            let seconds = (0..40 * 60).step_by(15);
            let states: Vec<bool> = seconds.map(|second| is_open(second + offset)).collect();
            let one = |state: &str| format!("evenkeel_breaker_state{{dependency=\"d\",state=\"{state}\"}}");
            let values = |open: bool| -> Vec<String> {
                states
                    .iter()
                    .map(|is| u8::from(*is == open).to_string())
                    .collect()
            };
            let series = BTreeMap::from([(one("open"), values(true)), (one("closed"), values(false))]);
            // Sure to fire at 6 min and from 22 to 26, and not to between: so it begins and ends twice in all.
            let claims = [(
                "EvenkeelBreakerOpen",
                &[22, 23, 24, 25, 26][..],
                &[1, 14, 15, 16, 33, 36, 39][..],
            )];
            let mut tests = minutes(15, &series, &claims);
            if !ladder.contains("1d") {
                let flapping = [("EvenkeelBreakerOpen", &[4, 5, 6, 7, 8][..], &[][..])];
                let more = minutes(15, &BTreeMap::new(), &flapping);
                tests.push_str(more.split_once("promql_expr_test:\n").unwrap().1);
            }
            let folder = written(&format!("067-{}-{offset}", ladder.len()), &rules, &tests);
            if let Err(said) = tested(&promtool, &folder) {
                panic!("{ladder} {offset}: {said}");
            }
        }
    }
}

/// Every series of one gateway, scrape by scrape.
#[derive(Default)]
struct Scrapes {
    series: BTreeMap<String, Vec<String>>,
    taken: usize,
}

impl Scrapes {
    async fn take(&mut self, bench: &Bench) {
        let text = bench.metrics().await;
        for line in text.lines().filter(|line| line.starts_with("evenkeel_")) {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let values = self.series.entry(name.to_owned()).or_default();
            values.resize(self.taken, "_".to_owned());
            values.push(value.to_owned());
        }
        self.taken += 1;
    }

    /// Returns how much a series has grown from one scrape to another.
    fn grew(&self, name: &str, from: usize, to: usize) -> u64 {
        let at = |index: usize| -> u64 { self.series[name][index].parse().unwrap() };
        at(to) - at(from)
    }
}

/// Case 064, at a tenth of its rate: users get 200 for everything, the origin fails for everything, and the alert fires.
/// The values are those that the gateway exported; each scrape stands for fifteen seconds of its clock.
#[tokio::test]
async fn case_064_an_outage_behind_a_good_ladder_is_seen_by_its_alerts() {
    const EACH: u64 = 30;
    let origin = Origin::always(Reply::ok("x")).await;
    let text = contract(origin.address, "", "ladder = [ { stale = \"10m\" } ]");
    let bench = Bench::with_manual_clock(&text).await;
    let mut scrapes = Scrapes::default();
    let mut old = 0;
    // Two minutes of health, five of 503, twelve of health again.
    for step in 0..=76 {
        match step {
            8 => origin.now(Reply::status(503)),
            28 => origin.now(Reply::ok("x")),
            _ => {}
        }
        for _ in 0..EACH {
            let answer = bench.get("/r/1").await;
            assert_eq!(answer.status, 200, "users never see it");
            if (8..28).contains(&step) {
                assert_eq!(answer.freshness(), "stale");
                old += 1;
            }
            bench.advance(Duration::from_millis(15_000 / EACH));
        }
        scrapes.take(&bench).await;
    }
    // Between the last scrape before and the last one within the outage.
    let (before, last) = (7, 27);
    let degraded: u64 = scrapes
        .series
        .keys()
        .filter(|name| name.starts_with("evenkeel_calls_total") && name.contains("rung=\"stale\""))
        .map(|name| scrapes.grew(name, before, last))
        .sum();
    assert_eq!(
        (degraded, old),
        (20 * EACH, 20 * EACH),
        "each of them is counted as degraded"
    );
    let live = "evenkeel_calls_total{route=\"r\",ending=\"answered\",rung=\"live\",reason=\"none\"}";
    assert_eq!(scrapes.grew(live, before, last), 0, "none as live");
    let attempts = |class: &str| format!("evenkeel_attempts_total{{dependency=\"d\",class=\"{class}\"}}");
    assert_eq!(scrapes.grew(&attempts("answer"), before, last), 0);
    assert!(
        scrapes.grew(&attempts("outage"), before, last) > 10,
        "the origin failed, each time it was asked"
    );

    let Some(promtool) = promtool::promtool() else {
        return;
    };
    let rules = alerts(&text, EVERY).to_rules("contract.toml");
    let quiet: Vec<u64> = (0..=19).collect();
    let claims = [
        (
            "EvenkeelStaleAnswers",
            &[4, 5, 6, 7][..],
            &[0, 1, 2, 15, 17, 19][..],
        ),
        ("EvenkeelBreakerOpen", &[7][..], &[0, 1, 2, 16, 18][..]),
        ("EvenkeelNoAnswer", &[][..], &quiet[..]),
        ("EvenkeelAgeNearLimit", &[][..], &quiet[..]),
        ("EvenkeelCoverageLow", &[][..], &quiet[..]),
        ("EvenkeelAnswersNotKept", &[][..], &quiet[..]),
        ("EvenkeelNotSeen", &[][..], &quiet[..]),
        ("EvenkeelLogGaps", &[][..], &quiet[..]),
    ];
    let folder = written("064", &rules, &minutes(15, &scrapes.series, &claims));
    if let Err(said) = tested(&promtool, &folder) {
        panic!("{said}");
    }
}

#[test]
fn the_guide_has_a_section_for_each_alert_and_for_no_other() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/alerts.md");
    let page = std::fs::read_to_string(page).unwrap();
    let written: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .collect();
    assert_eq!(written, NAMES);
    let made = alerts(FULL, EVERY);
    for rule in made.rules() {
        assert_eq!(
            rule.runbook(),
            format!("docs/guide/alerts.md#{}", rule.name.to_lowercase())
        );
    }
}

/// The program as a person runs it.
#[test]
fn the_program_prints_rules_and_tests_and_refuses_what_it_cannot_make_alerts_of() {
    let folder = written("program", "", "");
    let contract = folder.join("contract.toml");
    let text = "[gateway]\nlisten = \"127.0.0.1:0\"\n[dependencies.d]\nurls = [\"http://a\"]\n\
        [[routes]]\nname = \"r\"\nmatch = { path = \"/r\" }\nclass = \"read\"\nfrom = \"d\"\nladder = [ { stale = \"1h\" } ]\n";
    std::fs::write(&contract, text).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
        let output = command
            .arg("alerts")
            .arg(&contract)
            .args(arguments)
            .output()
            .unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code().unwrap(), out, err)
    };
    let made = alerts(text, EVERY);
    assert_eq!(run(&[]), (0, made.to_rules("contract.toml"), String::new()));
    assert_eq!(run(&["--tests"]), (0, made.to_tests(RULES), String::new()));
    let slow = alerts(text, Duration::from_secs(60)).to_rules("contract.toml");
    assert_eq!(run(&["--scrape-interval", "1m"]), (0, slow, String::new()));
    for (span, part) in [
        ("500ms", "whole seconds from 1s to 5m"),
        ("10m", "whole seconds from 1s to 5m"),
        ("1500ms", "whole seconds from 1s to 5m"),
        ("often", "--scrape-interval \"often\":"),
    ] {
        let (code, out, err) = run(&["--scrape-interval", span]);
        assert_eq!((code, out.as_str()), (2, ""), "{span}");
        assert!(err.contains(part), "{span}: {err}");
    }
    std::fs::write(&contract, text.replace("from = \"d\"", "from = \"e\"")).unwrap();
    let (code, out, err) = run(&[]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("\"e\""), "{err}");
}
