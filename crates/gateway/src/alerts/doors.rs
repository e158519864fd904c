//! Decides which alerts a route needs beside its ladder: the door before it, and the stand-ins that are tried on good days.
//! It exists because a door that nobody answers and a default that no longer fits are seen by no share of old answers.
//! It refuses to treat a denial as a fault: a door that denies does its work.

use std::time::Duration;

use super::{
    Alerts,
    parts::{KEEP, rate},
    rule::{Input, Proof, Rule, Severity},
};
use crate::config::Route;

pub(super) const PROTECTION: &str = "EvenkeelProtectionUnavailable";
pub(super) const EXERCISE: &str = "EvenkeelExerciseFails";

const MINUTE: Duration = Duration::from_secs(60);

pub(super) fn add(alerts: &mut Alerts, route: &Route, window: Duration) {
    if let Some(authority) = &route.authorize {
        alerts.rules.push(protection(route, authority, window));
    }
    if route.exercise.is_some() {
        alerts.rules.push(exercise(route));
    }
}

fn protection(route: &Route, authority: &str, window: Duration) -> Rule {
    let name = &*route.name;
    let series = "evenkeel_protect_total";
    let all = format!("route=\"{name}\"");
    let unavailable = rate(series, &format!("{all},decision=\"unavailable\""), window);
    let decided = |decision: &str, reason: &str, step: u64| {
        Input::grows(
            format!(
                "{series}{{route=\"{name}\",authority=\"{authority}\",decision=\"{decision}\",reason=\"{reason}\"}}"
            ),
            step,
        )
    };
    Rule {
        name: PROTECTION,
        about: Some(("route", name.to_owned())),
        expr: format!("{unavailable}\n  / {} > 0.01", rate(series, &all, window)),
        wait: MINUTE,
        keep: KEEP,
        severity: Severity::Critical,
        summary: format!(
            "For {{{{ $value | humanizePercentage }}}} of the requests of {name} nobody decides"
        ),
        impact: "These users get 503, whatever is kept: nothing is shown without a decision.".to_owned(),
        action: format!(
            "Run `evenkeel status`, and mend the authority {authority}. Nothing opens the door meanwhile, and nothing should."
        ),
        proof: Proof {
            fires: vec![
                decided("unavailable", "breaker-open", 15),
                decided("allowed", "none", 0),
            ],
            quiet: vec![
                decided("unavailable", "timed-out", 1),
                decided("denied", "none", 55),
                decided("allowed", "none", 54),
            ],
            summary: Some(format!("For 100% of the requests of {name} nobody decides")),
            by: 2 * window + 10 * MINUTE,
        },
    }
}

fn exercise(route: &Route) -> Rule {
    let name = &*route.name;
    let series = "evenkeel_exercises_total";
    let grown = |more: &str| format!("sum(increase({series}{{route=\"{name}\"{more}}}[1h]))");
    let tried = |result: &str, step: u64| {
        Input::grows(
            format!("{series}{{route=\"{name}\",rung=\"default\",result=\"{result}\"}}"),
            step,
        )
    };
    Rule {
        name: EXERCISE,
        about: Some(("route", name.to_owned())),
        expr: format!(
            "{} / {} > 0.1\n  and {} >= 10",
            grown(",result=~\"failed|differed\""),
            grown(""),
            grown("")
        ),
        wait: 5 * MINUTE,
        keep: 15 * MINUTE,
        severity: Severity::Warning,
        summary: format!(
            "{{{{ $value | humanizePercentage }}}} of the trials of the stand-ins of {name} fail, or bring something else"
        ),
        impact: "Nothing now. In an outage users would get this in place of the data.".to_owned(),
        action: "The log has which rung it is (event=exercised). Mend the alternate, or bring the default up to date.".to_owned(),
        proof: Proof {
            fires: vec![tried("differed", 1), tried("agreed", 1)],
            quiet: vec![tried("failed", 9), tried("agreed", 91)],
            summary: Some(format!(
                "50% of the trials of the stand-ins of {name} fail, or bring something else"
            )),
            by: 90 * MINUTE,
        },
    }
}
