//! Decides how the outcome of the demo is shown: a table and a timeline for people, one object for programs.
//! It exists so that showing and doing are apart, and both faces show the same counts.
//! It refuses to leave out what does not look good.

use std::{fmt::Write as _, time::Duration};

use serde_json::json;

use super::{
    client::{Seen, Source},
    script::{DIES_AFTER, Outcome, REQUESTS, Run},
};

/// Writes the outcome as one JSON object.
#[must_use]
pub fn json(outcome: &Outcome) -> String {
    let Outcome {
        hard,
        graceful,
        way_back,
    } = outcome;
    json!({
        "hard": {
            "requests": hard.requests(),
            "answered": hard.answered(),
            "failed": hard.count(Source::Failed),
            "attempts": hard.attempts,
            "upstream_received": hard.received,
        },
        "graceful": {
            "requests": graceful.requests(),
            "live": graceful.count(Source::Live),
            "stale": graceful.count(Source::Stale),
            "default": graceful.count(Source::Default),
            "failed": graceful.count(Source::Failed),
            "attempts": graceful.attempts,
            "upstream_received": graceful.received,
        },
        "way_back": {
            "requests_while_down": way_back.requests,
            "attempts_while_down": way_back.attempts,
            "closed_after_ms": way_back.closed_after.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
            "failed": way_back.failed,
            "steps": way_back.steps.iter().map(|(state, cause)| json!({"to": state.as_str(), "cause": cause})).collect::<Vec<_>>(),
        },
        "held": outcome.is_held(),
        "broken": outcome.broken(),
    })
    .to_string()
}

/// Writes the outcome for people.
#[must_use]
pub fn text(outcome: &Outcome) -> String {
    let mut out = format!("upstream dies after request {DIES_AFTER} of {REQUESTS}\n\n");
    out.push_str("                 answered   live  stale  default  failed        p50        p99\n");
    row(&mut out, "hard", &outcome.hard);
    row(&mut out, "graceful", &outcome.graceful);
    out.push('\n');
    timeline(&mut out, &outcome.graceful);
    if let Some(first) = outcome.graceful.seen().get(DIES_AFTER) {
        out.push('\n');
        answer(&mut out, DIES_AFTER + 1, first);
    }
    out.push('\n');
    way_back(&mut out, outcome);
    let broken = outcome.broken();
    if broken.is_empty() {
        out.push_str("\n promise held: live data while there was any, then the last good data, and a way back without a failed answer");
    }
    for what in broken {
        write!(out, "\n PROMISE BROKEN: {what}").unwrap_or_default();
    }
    out
}

// Writing to a `String` cannot fail, so the results below say nothing.

fn row(out: &mut String, name: &str, run: &Run) {
    let share = run.answered() * 100 / run.requests().max(1);
    let answered = format!("{} ({share} %)", run.answered());
    writeln!(
        out,
        " {name:<10}{answered:>14}{:>7}{:>7}{:>9}{:>8}{:>11}{:>11}",
        run.count(Source::Live),
        run.count(Source::Stale),
        run.count(Source::Default),
        run.count(Source::Failed),
        millis(run.percentile(50)),
        millis(run.percentile(99)),
    )
    .unwrap_or_default();
}

/// Requests per character of the timeline.
const STEP: usize = 5;

/// Draws one line per source that occurred: a block where most of the requests of that time had it.
fn timeline(out: &mut String, run: &Run) {
    let sources = [
        (Source::Live, "live"),
        (Source::Stale, "stale"),
        (Source::Default, "default"),
        (Source::Failed, "failed"),
    ];
    for (source, name) in sources {
        let count = run.count(source);
        if count == 0 {
            continue;
        }
        let line: String = run
            .seen()
            .chunks(STEP)
            .map(|chunk| {
                let same = chunk.iter().filter(|seen| seen.source == source).count();
                if same * 2 > chunk.len() { '█' } else { ' ' }
            })
            .collect();
        let note = match source {
            Source::Live => "",
            Source::Stale | Source::Default => ": this is the incident; alert on it",
            Source::Failed => ": these users got nothing",
        };
        writeln!(out, " {name:<8}{line}  {count} of {}{note}", run.requests()).unwrap_or_default();
    }
}

/// Shows the labels of one answer.
fn answer(out: &mut String, number: usize, seen: &Seen) {
    writeln!(out, " request {number}:  {}", seen.status).unwrap_or_default();
    for name in [
        "x-data-freshness",
        "age",
        "cache-status",
        "proxy-status",
        "degraded",
    ] {
        if let Some(value) = seen.headers.get(name).and_then(|value| value.to_str().ok()) {
            writeln!(out, "   {name}: {value}").unwrap_or_default();
        }
    }
}

fn way_back(out: &mut String, outcome: &Outcome) {
    let back = &outcome.way_back;
    writeln!(
        out,
        " without a breaker: {} attempts for {} requests of the graceful run",
        outcome.graceful.attempts,
        outcome.graceful.requests(),
    )
    .unwrap_or_default();
    writeln!(
        out,
        " with a breaker:    {} attempts for {} requests while the upstream was down",
        back.attempts, back.requests,
    )
    .unwrap_or_default();
    let steps: Vec<String> = back
        .steps
        .iter()
        .map(|(state, cause)| format!("{} ({cause})", state.as_str()))
        .collect();
    let closed = back.closed_after.map_or_else(
        || "not closed again".to_owned(),
        |span| format!("closed after {:.1} s", span.as_secs_f64()),
    );
    writeln!(
        out,
        " upstream healed:   {} -> {closed}, {} failed",
        steps.join(" -> "),
        back.failed
    )
    .unwrap_or_default();
}

fn millis(span: Duration) -> String {
    format!("{:.2} ms", span.as_secs_f64() * 1_000.0)
}
