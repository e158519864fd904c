//! Decides how the alerts of a contract are proven: each fires for what it is about, and for nothing else.
//! It exists because an alert that was never seen firing is a hope.
//! It refuses to prove an alert by its own expression: the series are those that the gateway exports.

use std::{collections::BTreeSet, time::Duration};

use super::{
    Alerts, Rule,
    parts::show,
    rule::Input,
    yaml::{push, quoted},
};

/// How long the healthy day of the last test is.
const DAY: Duration = Duration::from_secs(4 * 3600);
/// How often the rules are evaluated: what fires stays long enough to be met, and every evaluation costs time.
const EVALUATED: Duration = Duration::from_secs(60);

pub(super) fn tests(alerts: &Alerts, rule_file: &str) -> String {
    let mut text = format!(
        "# Written by `evenkeel alerts --tests`; run it with `promtool test rules`.\n\
         rule_files:\n  - {}\nevaluation_interval: {}\ntests:\n",
        quoted(rule_file),
        show(EVALUATED)
    );
    for rule in &alerts.rules {
        for (fires, inputs) in [(true, &rule.proof.fires), (false, &rule.proof.quiet)] {
            let claim = if fires {
                "fires"
            } else {
                "stays quiet just below its threshold"
            };
            begin(&mut text, alerts, &named(rule, claim), inputs, rule.proof.by);
            expect(&mut text, rule, fires);
        }
    }
    // Every alert at once, with the series of all of them as they are on a good day.
    let healthy: Vec<Input> = healthy(alerts);
    begin(
        &mut text,
        alerts,
        "nothing fires while all is well",
        &healthy,
        DAY,
    );
    let names: BTreeSet<&str> = alerts.rules.iter().map(|rule| rule.name).collect();
    for name in names {
        push(
            &mut text,
            format_args!(
                "      - eval_time: {}\n        alertname: {name}\n        exp_alerts: []\n",
                show(DAY)
            ),
        );
    }
    text
}

fn named(rule: &Rule, claim: &str) -> String {
    match &rule.about {
        Some((_, about)) => format!("{} of {about} {claim}", rule.name),
        None => format!("{} {claim}", rule.name),
    }
}

fn begin(text: &mut String, alerts: &Alerts, name: &str, inputs: &[Input], lasts: Duration) {
    push(
        text,
        format_args!(
            "  - name: {}\n    interval: {}\n    input_series:{}\n",
            quoted(name),
            show(alerts.every),
            if inputs.is_empty() { " []" } else { "" }
        ),
    );
    let scrapes = lasts.as_secs().div_ceil(alerts.every.as_secs().max(1)) + 4;
    for input in inputs {
        push(
            text,
            format_args!(
                "      - series: {}\n        values: \"{}+{}x{scrapes}\"\n",
                quoted(&input.series),
                input.first,
                input.step
            ),
        );
    }
    text.push_str("    alert_rule_test:\n");
}

fn expect(text: &mut String, rule: &Rule, fires: bool) {
    push(
        text,
        format_args!(
            "      - eval_time: {}\n        alertname: {}\n        exp_alerts:",
            show(rule.proof.by),
            rule.name
        ),
    );
    if !fires {
        text.push_str(" []\n");
        return;
    }
    push(
        text,
        format_args!(
            "\n          - exp_labels:\n              severity: {}\n",
            rule.severity.as_str()
        ),
    );
    if let Some((label, name)) = &rule.about {
        push(text, format_args!("              {label}: {}\n", quoted(name)));
    }
    text.push_str("            exp_annotations:\n");
    let summary = rule.proof.summary.as_ref().unwrap_or(&rule.summary);
    for (key, value) in [
        ("summary", summary),
        ("impact", &rule.impact),
        ("action", &rule.action),
        ("runbook", &rule.runbook()),
    ] {
        push(text, format_args!("              {key}: {}\n", quoted(value)));
    }
}

/// The series of every test, as they are while all is well: good ones grow, bad ones stand still.
fn healthy(alerts: &Alerts) -> Vec<Input> {
    let mut seen = BTreeSet::new();
    let all = alerts
        .rules
        .iter()
        .flat_map(|rule| rule.proof.fires.iter().chain(&rule.proof.quiet));
    all.filter(|input| seen.insert(input.series.clone()))
        .map(|input| {
            let good = [
                "rung=\"live\"",
                "found=\"servable\"",
                "ending=\"answered\",reason=\"none\"",
            ];
            let is_on = input.series.contains("state=\"closed\"")
                || ["evenkeel_build_info", "evenkeel_store_up"]
                    .iter()
                    .any(|name| input.series.starts_with(name));
            Input {
                series: input.series.clone(),
                first: u64::from(is_on),
                step: if good.iter().any(|word| input.series.contains(word)) {
                    100
                } else {
                    0
                },
            }
        })
        .collect()
}
