//! Decides how a rule file of Prometheus is written.
//! It exists so that what people review is readable: one block per alert, expressions on lines of their own.
//! It refuses to write text unquoted: names and sentences are always strings.

use std::fmt::Write as _;

use super::{Alerts, Rule, parts::show};

pub(super) fn rules(alerts: &Alerts, contract: &str) -> String {
    let mut text = format!(
        "# Written by `evenkeel alerts {contract}`; write it anew when the contract changes.\n\
         # Needs Prometheus 2.42 or later (keep_firing_for). What each alert means: docs/guide/alerts.md\n"
    );
    for note in &alerts.notes {
        push(&mut text, format_args!("# {note}\n"));
    }
    text.push_str("groups:\n  - name: evenkeel\n    rules:\n");
    for rule in &alerts.rules {
        push_rule(&mut text, rule);
    }
    text
}

fn push_rule(text: &mut String, rule: &Rule) {
    push(
        text,
        format_args!("      - alert: {}\n        expr: |-\n", rule.name),
    );
    for line in rule.expr.lines() {
        push(text, format_args!("          {line}\n"));
    }
    if !rule.wait.is_zero() {
        push(text, format_args!("        for: {}\n", show(rule.wait)));
    }
    if !rule.keep.is_zero() {
        push(
            text,
            format_args!("        keep_firing_for: {}\n", show(rule.keep)),
        );
    }
    push(
        text,
        format_args!(
            "        labels:\n          severity: {}\n",
            rule.severity.as_str()
        ),
    );
    if let Some((label, name)) = &rule.about {
        push(text, format_args!("          {label}: {}\n", quoted(name)));
    }
    text.push_str("        annotations:\n");
    for (key, value) in [
        ("summary", &rule.summary),
        ("impact", &rule.impact),
        ("action", &rule.action),
        ("runbook", &rule.runbook()),
    ] {
        push(text, format_args!("          {key}: {}\n", quoted(value)));
    }
}

/// A string of JSON is one of YAML.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

pub(super) fn push(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    text.write_fmt(more).unwrap_or_default();
}
