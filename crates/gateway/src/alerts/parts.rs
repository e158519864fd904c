//! Decides how expressions, spans and series are written that several alerts have in common.
//! It exists so that one share is computed in one way.
//! It refuses windows in which a rate has fewer than four scrapes: with less, one lost scrape is an alert.

use std::time::Duration;

use super::rule::Input;
use crate::config::{Contract, Route, Rung, units::show_duration};

/// For how long a share alert goes on when it no longer holds.
pub(super) const KEEP: Duration = Duration::from_secs(300);

const MINUTE: Duration = Duration::from_secs(60);

/// Returns the window of a rate: a minute, or what holds four scrapes, or four of the longest calls.
pub(super) fn window(every: Duration, deadline: Duration) -> Duration {
    whole((4 * every).max(4 * deadline).max(MINUTE))
}

/// Rounds up to whole seconds.
pub(super) const fn whole(span: Duration) -> Duration {
    Duration::from_secs(span.as_secs() + (span.subsec_nanos() > 0) as u64)
}

pub(super) fn show(span: Duration) -> String {
    show_duration(whole(span))
}

/// The selector of a series with these labels.
pub(super) fn selected(series: &str, labels: &str) -> String {
    format!("{series}{{{labels}}}")
}

/// The rate of a series over a window, added up over every gateway.
pub(super) fn rate(series: &str, labels: &str, window: Duration) -> String {
    format!("sum(rate({}[{}]))", selected(series, labels), show(window))
}

/// The share of some calls of a route in all of them.
pub(super) fn share_of_calls(route: &str, labels: &str, window: Duration, over: &str) -> String {
    let series = "evenkeel_calls_total";
    let some = rate(series, &format!("route=\"{route}\",{labels}"), window);
    let all = rate(series, &format!("route=\"{route}\""), window);
    format!("{some}\n  / {all} > {over}")
}

/// A series of calls.
pub(super) fn calls(route: &str, ending: &str, rung: &str, reason: &str, step: u64) -> Input {
    Input::grows(
        format!(
            "evenkeel_calls_total{{route=\"{route}\",ending=\"{ending}\",rung=\"{rung}\",reason=\"{reason}\"}}"
        ),
        step,
    )
}

/// Live calls of a route.
pub(super) fn live(route: &str, step: u64) -> Input {
    calls(route, "answered", "live", "none", step)
}

/// Says what users get when the rung that answers now no longer does: what stands below it in the ladder.
pub(super) fn below(route: &Route, is_this: impl Fn(&Rung) -> bool) -> &'static str {
    let mut rest = route.ladder.iter().skip_while(|rung| !is_this(rung)).skip(1);
    match rest.next() {
        Some(Rung::Default(_)) => "the declared default",
        Some(Rung::Alternate(_)) => "answers of the alternate",
        Some(Rung::Stale(_)) => "old answers",
        None => "a refusal",
    }
}

/// Tells whether something stands below this rung.
pub(super) fn has_below(route: &Route, is_this: impl Fn(&Rung) -> bool) -> bool {
    below(route, is_this) != "a refusal"
}

/// Tells whether calls of a route can be turned away for want of room.
pub(super) fn is_limited(contract: &Contract, dependency: &str) -> bool {
    contract.dependencies.iter().any(|one| {
        one.name == dependency
            && (one.concurrency.is_some() || one.learned_limit.is_some() || !one.uses.is_empty())
    })
}
