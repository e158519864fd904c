//! Decides which alerts the gateway itself needs: that it is seen, that its log has no gaps, that it runs by the contract that
//! was written.
//! It exists because every other alert is silent when nobody scrapes.
//! It refuses alerts about memory and processors: those are the platform's, with limits that only it knows.

use std::time::Duration;

use super::{
    Alerts,
    parts::KEEP,
    rule::{Input, Proof, Rule, Severity},
};

pub(super) const NOT_SEEN: &str = "EvenkeelNotSeen";
pub(super) const LOG_GAPS: &str = "EvenkeelLogGaps";
pub(super) const RELOAD_REFUSED: &str = "EvenkeelReloadRefused";
pub(super) const LAST_GOOD: &str = "EvenkeelLastGoodContract";

const MINUTE: Duration = Duration::from_secs(60);

pub(super) fn add(alerts: &mut Alerts) {
    alerts.rules.push(Rule {
        name: NOT_SEEN,
        about: None,
        expr: "absent(evenkeel_build_info)".to_owned(),
        wait: 5 * MINUTE,
        keep: Duration::ZERO,
        severity: Severity::Critical,
        summary: "No gateway is scraped".to_owned(),
        impact: "Either none runs, or nothing about it is known: no other alert of this file can fire.".to_owned(),
        action: "See whether it runs and answers `/livez` on its administration port, then the target in Prometheus."
            .to_owned(),
        proof: Proof {
            fires: Vec::new(),
            quiet: vec![Input::stays("evenkeel_build_info{version=\"0\"}", 1)],
            summary: None,
            by: 15 * MINUTE,
        },
    });
    let lost = |series: &str| format!("increase({series}[10m])");
    let gap = |step: u64| Input::grows("evenkeel_log_lines_lost_total", step);
    let events = |step: u64| Input::grows("evenkeel_events_lost_total", step);
    alerts.rules.push(Rule {
        name: LOG_GAPS,
        about: None,
        expr: format!(
            "sum({} + {}) > 0",
            lost("evenkeel_log_lines_lost_total"),
            lost("evenkeel_events_lost_total")
        ),
        wait: Duration::ZERO,
        keep: KEEP,
        severity: Severity::Warning,
        summary: "Lines of the log were lost".to_owned(),
        impact: "Nothing for users. What happened meanwhile cannot be read up.".to_owned(),
        action: "See who reads standard error of the gateway, and whether it keeps up.".to_owned(),
        proof: Proof {
            fires: vec![gap(1), events(0)],
            quiet: vec![gap(0), events(0)],
            summary: None,
            by: 15 * MINUTE,
        },
    });
    contract(alerts);
}

/// What runs is not what somebody wrote down.
fn contract(alerts: &mut Alerts) {
    let reloads = |result: &str, step: u64| {
        Input::grows(
            format!("evenkeel_contract_reloads_total{{result=\"{result}\"}}"),
            step,
        )
    };
    alerts.rules.push(Rule {
        name: RELOAD_REFUSED,
        about: None,
        expr: "sum(increase(evenkeel_contract_reloads_total{result=\"refused\"}[15m])) > 0".to_owned(),
        wait: Duration::ZERO,
        keep: 15 * MINUTE,
        severity: Severity::Warning,
        summary: "A contract was to be loaded and was refused".to_owned(),
        impact: "Nothing for users: the contract before it runs on. What was meant to change has not.".to_owned(),
        action: "The log has the first problem with its line (event=reload-refused), `evenkeel check` all of them."
            .to_owned(),
        proof: Proof {
            fires: vec![reloads("refused", 1)],
            quiet: vec![reloads("refused", 0), reloads("reloaded", 1)],
            summary: None,
            by: 15 * MINUTE,
        },
    });
    let last_good = "evenkeel_contract_is_last_good";
    alerts.rules.push(Rule {
        name: LAST_GOOD,
        about: None,
        expr: format!("max({last_good}) == 1"),
        wait: MINUTE,
        keep: Duration::ZERO,
        severity: Severity::Critical,
        summary: "A gateway runs by its last good contract".to_owned(),
        impact: "It started with a file that could not be loaded, so it answers as it did before that was written.".to_owned(),
        action: "Run `evenkeel check` on the file, mend it, and `evenkeel reload`.".to_owned(),
        proof: Proof {
            fires: vec![Input::stays(last_good, 1)],
            quiet: vec![Input::stays(last_good, 0)],
            summary: None,
            by: 10 * MINUTE,
        },
    });
}
