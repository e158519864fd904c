//! Decides which alerts a route needs: what its users get, and what they would get in an outage.
//! It exists because users see routes; a dependency that is down behind a good ladder is another matter than one that is not.
//! It refuses to wait for longer than the contract bridges: its waits are shares of the age limits.

use std::time::Duration;

use super::{
    Alerts, doors,
    parts::{self, KEEP, below, calls, has_below, live, rate, share_of_calls, show, window},
    rule::{Input, Proof, Rule, Severity},
};
use crate::config::{Class, Contract, OtherMethods, Route, Rung};

pub(super) const NO_ANSWER: &str = "EvenkeelNoAnswer";
pub(super) const STALE: &str = "EvenkeelStaleAnswers";
pub(super) const AGE_NEAR_LIMIT: &str = "EvenkeelAgeNearLimit";
pub(super) const ALTERNATE: &str = "EvenkeelAlternateAnswers";
pub(super) const DEFAULT: &str = "EvenkeelDefaultAnswers";
pub(super) const TURNED_AWAY: &str = "EvenkeelTurnedAway";
pub(super) const COVERAGE: &str = "EvenkeelCoverageLow";
pub(super) const NOT_KEPT: &str = "EvenkeelAnswersNotKept";
pub(super) const FORWARDING: &str = "EvenkeelForwardingFails";

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// What is left of the age limit when the last warning comes: time to read it and to act.
const LAST_WARNING: Duration = Duration::from_secs(120);

pub(super) fn add(alerts: &mut Alerts, contract: &Contract, route: &Route) {
    let window = window(alerts.every, route.deadline);
    doors::add(alerts, route, window);
    if route.class == Class::Pass || route.other_methods == OtherMethods::Pass {
        alerts.rules.push(forwarding(route, window));
    }
    if route.class == Class::Pass {
        return;
    }
    alerts.rules.push(no_answer(route, window));
    let keeps = route.stale().is_some() || route.caching.is_some();
    if keeps {
        age_near_limit(alerts, route, window);
        alerts.rules.push(stale(route, window));
    }
    for rung in &route.ladder {
        match rung {
            Rung::Stale(_) => {}
            Rung::Alternate(_) => alerts.rules.push(alternate(route, window)),
            Rung::Default(_) => alerts.rules.push(default(route, window)),
        }
    }
    if parts::is_limited(contract, &route.from) {
        alerts.rules.push(turned_away(route, window));
    }
    if keeps {
        alerts.rules.push(coverage(route));
        alerts.rules.push(not_kept(route));
    }
}

/// What the rules of one route have in common.
fn rule(name: &'static str, route: &Route, expr: String) -> Rule {
    Rule {
        name,
        about: Some(("route", route.name.clone())),
        expr,
        wait: MINUTE,
        keep: KEEP,
        severity: Severity::Warning,
        summary: String::new(),
        impact: String::new(),
        action: String::new(),
        proof: Proof {
            fires: Vec::new(),
            quiet: Vec::new(),
            summary: None,
            by: 10 * MINUTE,
        },
    }
}

fn no_answer(route: &Route, window: Duration) -> Rule {
    let name = &*route.name;
    Rule {
        severity: Severity::Critical,
        summary: format!("{{{{ $value | humanizePercentage }}}} of the calls of {name} get no answer"),
        impact: "These users get an error: no rung of the ladder could answer.".to_owned(),
        action: "Run `evenkeel status`: the reason is beside the route. Mend the dependency, or hold the route on a rung that answers.".to_owned(),
        proof: Proof {
            fires: vec![calls(name, "refused", "none", "breaker-open", 15), live(name, 0)],
            quiet: vec![calls(name, "failed", "none", "error-answer", 1), live(name, 109)],
            summary: Some(format!("100% of the calls of {name} get no answer")),
            by: 10 * MINUTE,
        },
        ..rule(
            NO_ANSWER,
            route,
            share_of_calls(name, "ending=~\"refused|failed|cut\"", window, "0.01"),
        )
    }
}

fn is_stale(rung: &Rung) -> bool {
    matches!(rung, Rung::Stale(_))
}

/// A tenth of the time that the copies bridge, between a minute and ten.
fn stale(route: &Route, window: Duration) -> Rule {
    let name = &*route.name;
    let wait = route
        .stale()
        .map_or(5 * MINUTE, |limit| (limit / 10).clamp(MINUTE, 10 * MINUTE));
    let limit = route
        .stale()
        .map_or_else(|| "what its origin permits".to_owned(), show);
    Rule {
        wait,
        summary: format!("{{{{ $value | humanizePercentage }}}} of the answers of {name} are old"),
        impact: format!(
            "Users get data up to {limit} old, marked as stale. After that they get {}.",
            below(route, is_stale)
        ),
        action: format!(
            "Run `evenkeel status`: it has the reason, the oldest age and what happens next. The cause is at the dependency {}.",
            route.from
        ),
        proof: Proof {
            fires: vec![
                calls(name, "answered", "stale", "breaker-open", 15),
                live(name, 0),
            ],
            quiet: vec![
                calls(name, "answered", "stale", "timed-out", 24),
                calls(name, "answered", "stale", "revalidating", 400),
                live(name, 76),
            ],
            summary: Some(format!("100% of the answers of {name} are old")),
            by: 2 * window + wait + 5 * MINUTE,
        },
        ..rule(
            STALE,
            route,
            share_of_calls(name, "rung=\"stale\",reason!=\"revalidating\"", window, "0.05"),
        )
    }
}

/// Warns while there is still time: at the highest bucket that leaves two minutes.
fn age_near_limit(alerts: &mut Alerts, route: &Route, window: Duration) {
    let bound = match route.stale() {
        // The limit is each copy's own.
        None => Some(750),
        Some(limit) => [900, 750, 500, 250]
            .into_iter()
            .find(|bound| limit * (1000 - bound) / 1000 >= LAST_WARNING),
    };
    let Some(bound) = bound else {
        alerts.notes.push(format!(
            "{}: old answers bridge {}, too little for a warning before they end; {NO_ANSWER} tells when they have.",
            route.name,
            route.stale().map_or_else(String::new, show)
        ));
        return;
    };
    let name = &*route.name;
    let all = format!("route=\"{name}\"");
    let bound_text = f64::from(bound) / 1000.0;
    let within = format!("{all},le=\"{bound_text}\"");
    let (count, bucket) = (
        "evenkeel_stale_age_ratio_count",
        "evenkeel_stale_age_ratio_bucket",
    );
    let total = rate(count, &all, window);
    let left = route.stale().map_or_else(
        || "a quarter of the time that its origin permits".to_owned(),
        |limit| show(limit * (1000 - bound) / 1000),
    );
    let ages = |within_step: u64, all_step: u64| {
        vec![
            Input::grows(parts::selected(bucket, &within), within_step),
            Input::grows(parts::selected(count, &all), all_step),
        ]
    };
    let (percent, next) = (bound / 10, below(route, is_stale));
    alerts.rules.push(Rule {
        wait: Duration::ZERO,
        severity: if has_below(route, is_stale) {
            Severity::Warning
        } else {
            Severity::Critical
        },
        summary: format!(
            "{{{{ $value | humanizePercentage }}}} of the old answers of {name} are past {percent} % of their age limit"
        ),
        impact: format!("In at most {left} the first of these users get {next} in place of old data."),
        action: "Decide before it runs out: mend the dependency, or `evenkeel hold` the route on what is to be shown, with a reason.".to_owned(),
        proof: Proof {
            fires: ages(0, 15),
            quiet: ages(95, 100),
            summary: Some(format!(
                "100% of the old answers of {name} are past {percent} % of their age limit"
            )),
            by: 10 * MINUTE,
        },
        ..rule(
            AGE_NEAR_LIMIT,
            route,
            format!("({total} - {})\n  / {total} > 0.1", rate(bucket, &within, window)),
        )
    });
}

fn alternate(route: &Route, window: Duration) -> Rule {
    let name = &*route.name;
    Rule {
        wait: 5 * MINUTE,
        summary: format!(
            "{{{{ $value | humanizePercentage }}}} of the answers of {name} come from its alternate"
        ),
        impact: format!(
            "Users get answers of the alternate, which now bears traffic that is not its own. When it cannot, they get {}.",
            below(route, |rung| matches!(rung, Rung::Alternate(_)))
        ),
        action: format!(
            "Run `evenkeel status`: see that the alternate has room, and mend {}.",
            route.from
        ),
        proof: Proof {
            fires: vec![
                calls(name, "answered", "alternate", "breaker-open", 15),
                live(name, 0),
            ],
            quiet: vec![
                calls(name, "answered", "alternate", "timed-out", 4),
                live(name, 96),
            ],
            summary: Some(format!("100% of the answers of {name} come from its alternate")),
            by: 2 * window + 15 * MINUTE,
        },
        ..rule(
            ALTERNATE,
            route,
            share_of_calls(name, "rung=\"alternate\"", window, "0.05"),
        )
    }
}

fn default(route: &Route, window: Duration) -> Rule {
    let name = &*route.name;
    Rule {
        summary: format!(
            "{{{{ $value | humanizePercentage }}}} of the answers of {name} are its declared default"
        ),
        impact:
            "Users get a constant in place of data, marked as such. It goes on for as long as the cause does."
                .to_owned(),
        action: format!("Run `evenkeel status` for the reason, and mend {}.", route.from),
        proof: Proof {
            fires: vec![
                calls(name, "answered", "default", "breaker-open", 15),
                live(name, 0),
            ],
            quiet: vec![
                calls(name, "answered", "default", "timed-out", 1),
                live(name, 109),
            ],
            summary: Some(format!("100% of the answers of {name} are its declared default")),
            by: 2 * window + 10 * MINUTE,
        },
        ..rule(
            DEFAULT,
            route,
            share_of_calls(name, "rung=\"default\"", window, "0.01"),
        )
    }
}

fn turned_away(route: &Route, window: Duration) -> Rule {
    let name = &*route.name;
    Rule {
        wait: 5 * MINUTE,
        summary: format!("{{{{ $value | humanizePercentage }}}} of the calls of {name} find no room"),
        impact: "These calls were not sent: they got a lower rung, or were refused.".to_owned(),
        action: format!(
            "See `evenkeel_permits_in_use`, `evenkeel_learned_limit` and the latency of {}: either it is slow, or it is given too little.",
            route.from
        ),
        proof: Proof {
            fires: vec![calls(name, "refused", "none", "at-capacity", 15), live(name, 85)],
            quiet: vec![calls(name, "refused", "none", "shed", 1), live(name, 109)],
            summary: Some(format!("15% of the calls of {name} find no room")),
            by: 2 * window + 15 * MINUTE,
        },
        ..rule(
            TURNED_AWAY,
            route,
            share_of_calls(name, "reason=~\"at-capacity|queue-expired|shed\"", window, "0.01"),
        )
    }
}

/// Over an hour, or over the age limit where that is longer, up to six: what is asked for again within the limit is covered.
fn coverage(route: &Route) -> Rule {
    let name = &*route.name;
    let window = route.stale().map_or(HOUR, |limit| limit.clamp(HOUR, 6 * HOUR));
    let series = "evenkeel_coverage_calls_total";
    let (all, servable) = (
        format!("route=\"{name}\""),
        format!("route=\"{name}\",found=\"servable\""),
    );
    let span = show(window);
    let grown = |labels: &str| format!("sum(increase({series}{{{labels}}}[{span}]))");
    let found =
        |word: &str, step: u64| Input::grows(format!("{series}{{route=\"{name}\",found=\"{word}\"}}"), step);
    let alone = !has_below(route, is_stale);
    Rule {
        wait: 30 * MINUTE,
        keep: 15 * MINUTE,
        summary: format!("Only {{{{ $value | humanizePercentage }}}} of the calls of {name} would find an answer to stand in"),
        impact: if alone {
            "Nothing now. If the dependency failed, more than half of the users would get an error.".to_owned()
        } else {
            format!("Nothing now. If the dependency failed, more than half of the users would get {}.", below(route, is_stale))
        },
        action: "See `evenkeel_coverage_calls_total` for what calls find, and docs/guide/why-nothing-is-kept.md; `evenkeel check --probe` tells it of one address.".to_owned(),
        proof: Proof {
            fires: vec![found("servable", 10), found("no-snapshot", 90)],
            quiet: vec![found("servable", 51), found("no-snapshot", 49)],
            summary: Some(format!("Only 10% of the calls of {name} would find an answer to stand in")),
            by: window + 45 * MINUTE,
        },
        ..rule(
            COVERAGE,
            route,
            format!(
                "{} / {} < 0.5\n  and {} >= 20",
                grown(&servable),
                grown(&all),
                grown(&all)
            ),
        )
    }
}

fn not_kept(route: &Route) -> Rule {
    let name = &*route.name;
    let window = 10 * MINUTE;
    let all = format!("route=\"{name}\"");
    let lost = rate(
        "evenkeel_answers_not_kept_total",
        // What is held already is better than these.
        &format!("{all},why!~\"superseded|error-answer\""),
        window,
    );
    let asked = rate("evenkeel_calls_total", &format!("{all},rung=\"live\""), window);
    let not_kept = |step: u64| {
        Input::grows(
            format!("evenkeel_answers_not_kept_total{{route=\"{name}\",why=\"set-cookie\"}}"),
            step,
        )
    };
    Rule {
        wait: 15 * MINUTE,
        summary: format!("{{{{ $value | humanizePercentage }}}} of the live answers of {name} are not kept"),
        impact: "Nothing now. What is kept grows old, and an outage would find little of it.".to_owned(),
        action: "`evenkeel_answers_not_kept_total` has the reason as `why`, docs/guide/why-nothing-is-kept.md what to do about each.".to_owned(),
        proof: Proof {
            fires: vec![not_kept(15), live(name, 15)],
            quiet: vec![
                not_kept(7),
                Input::grows(
                    format!("evenkeel_answers_not_kept_total{{route=\"{name}\",why=\"superseded\"}}"),
                    15,
                ),
                live(name, 15),
            ],
            summary: Some(format!("100% of the live answers of {name} are not kept")),
            by: 45 * MINUTE,
        },
        ..rule(NOT_KEPT, route, format!("{lost}\n  / {asked} > 0.5"))
    }
}

fn forwarding(route: &Route, window: Duration) -> Rule {
    let name = &*route.name;
    let series = "evenkeel_passes_total";
    let all = format!("route=\"{name}\"");
    let bad = rate(series, &format!("{all},ending=~\"refused|failed|cut\""), window);
    let passes = |ending: &str, reason: &str, step: u64| {
        Input::grows(
            format!("{series}{{route=\"{name}\",ending=\"{ending}\",reason=\"{reason}\"}}"),
            step,
        )
    };
    Rule {
        severity: Severity::Critical,
        summary: format!("{{{{ $value | humanizePercentage }}}} of the requests that {name} forwards fail"),
        impact: "These users get an error. What was sent and not answered may have taken effect.".to_owned(),
        action: format!("Run `evenkeel status` for the reason, and mend {}.", route.from),
        proof: Proof {
            fires: vec![
                passes("refused", "breaker-open", 15),
                passes("answered", "none", 0),
            ],
            quiet: vec![
                passes("failed", "error-answer", 1),
                passes("answered", "none", 109),
            ],
            summary: Some(format!("100% of the requests that {name} forwards fail")),
            by: 2 * window + 10 * MINUTE,
        },
        ..rule(
            FORWARDING,
            route,
            format!("{bad}\n  / {} > 0.01", rate(series, &all, window)),
        )
    }
}
