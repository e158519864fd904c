//! Decides which alerts a dependency needs: its breaker, and the budget that its retries are paid from.
//! It exists because one dependency behind many routes is one cause, and should be one notification.
//! It refuses to fire for what came and went: the breaker has to have been open again and again, or all the time.

use std::time::Duration;

use super::{
    Alerts,
    parts::{KEEP, show},
    rule::{Input, Proof, Rule, Severity},
};
use crate::config::{Breaker, Class, Contract, Dependency};

pub(super) const BREAKER_OPEN: &str = "EvenkeelBreakerOpen";
pub(super) const RETRIES_DENIED: &str = "EvenkeelRetriesDenied";

const MINUTE: Duration = Duration::from_secs(60);

pub(super) fn add(alerts: &mut Alerts, contract: &Contract, dependency: &Dependency) {
    if let Breaker::On(_) = dependency.breaker {
        let rule = breaker_open(contract, dependency, alerts.every);
        alerts.rules.push(rule);
    }
    if dependency.retry.is_some() {
        alerts.rules.push(retries_denied(dependency));
    }
}

/// Waits for half of the shortest age limit of its routes, between a minute and five; a minute where a route has no ladder.
fn wait(contract: &Contract, dependency: &Dependency) -> Duration {
    let routes = contract
        .routes
        .iter()
        .filter(|route| route.from == dependency.name);
    let shortest = routes.map(|route| match route.stale() {
        Some(limit) if route.class == Class::Read => limit / 2,
        Some(_) | None => Duration::ZERO,
    });
    shortest.min().unwrap_or(5 * MINUTE).clamp(MINUTE, 5 * MINUTE)
}

/// Case 067: what opens and closes every few seconds is open in every window, so it is one alert; and it goes on for a
/// while after the last time.
fn breaker_open(contract: &Contract, dependency: &Dependency, every: Duration) -> Rule {
    let name = &*dependency.name;
    let window = (4 * every).max(MINUTE);
    let state = |state: &str, value: u64| {
        Input::stays(
            format!("evenkeel_breaker_state{{dependency=\"{name}\",state=\"{state}\"}}"),
            value,
        )
    };
    let routes: Vec<&str> = contract
        .routes
        .iter()
        .filter(|route| route.from == name)
        .map(|route| &*route.name)
        .collect();
    let wait = wait(contract, dependency);
    let bare = contract
        .routes
        .iter()
        .any(|route| route.from == name && route.ladder.is_empty());
    Rule {
        name: BREAKER_OPEN,
        about: Some(("dependency", name.to_owned())),
        expr: format!(
            "min(min_over_time(evenkeel_breaker_state{{dependency=\"{name}\",state=\"closed\"}}[{}])) == 0",
            show(window)
        ),
        wait,
        keep: KEEP,
        severity: if bare { Severity::Critical } else { Severity::Warning },
        summary: format!("The breaker of {name} is open, or opens again and again"),
        impact: format!(
            "Its routes ({}) live on their ladders; those without one are refused.",
            routes.join(", ")
        ),
        action: "The log has the rule and the cause of the trip (event=breaker), `evenkeel status` the next probe. It closes by itself when a probe succeeds: mend the dependency.".to_owned(),
        proof: Proof {
            fires: vec![state("closed", 0), state("open", 1)],
            quiet: vec![state("closed", 1), state("open", 0)],
            summary: None,
            by: window + wait + 5 * MINUTE,
        },
    }
}

fn retries_denied(dependency: &Dependency) -> Rule {
    let name = &*dependency.name;
    let rate = |series: &str| format!("sum(rate({series}{{dependency=\"{name}\"}}[5m]))");
    let (denied, made) = (
        rate("evenkeel_retries_denied_total"),
        rate("evenkeel_retries_total"),
    );
    let steps = |denied: u64, made: u64| {
        vec![
            Input::grows(
                format!("evenkeel_retries_denied_total{{dependency=\"{name}\"}}"),
                denied,
            ),
            Input::grows(format!("evenkeel_retries_total{{dependency=\"{name}\"}}"), made),
        ]
    };
    Rule {
        name: RETRIES_DENIED,
        about: Some(("dependency", name.to_owned())),
        expr: format!("{denied}\n  / ({denied} + {made}) > 0.5"),
        wait: 10 * MINUTE,
        keep: KEEP,
        severity: Severity::Warning,
        summary: format!("{{{{ $value | humanizePercentage }}}} of the retries at {name} are not paid for"),
        impact: "Failures that one more attempt might have mended reach the ladder.".to_owned(),
        action: format!(
            "This many failures are no blips: look at `evenkeel_attempts_total` of {name} by class, and leave the budget as it is until it is well."
        ),
        proof: Proof {
            fires: steps(75, 25),
            quiet: steps(49, 51),
            summary: Some(format!("75% of the retries at {name} are not paid for")),
            by: 30 * MINUTE,
        },
    }
}
