//! Decides how what is in force on a route is written for people: aligned, a screen for each.
//! It exists so that the shape can change without the facts.
//! It refuses lines that a terminal would break, as far as names and values let it.

use std::fmt::Write as _;

use super::{OfRoute, Outcome, Outlook, Setting, Source};

/// Where values begin.
const KEY_WIDTH: usize = 29;
/// Where sources begin, behind a value of usual length.
const VALUE_WIDTH: usize = 34;
/// The longest line of keys that are not set.
const LINE_WIDTH: usize = 100;

/// Writes a route; `told` names the dependencies that have been told already, and is added to.
pub(super) fn route<'r>(route: &'r OfRoute, told: &mut Vec<&'r str>) -> String {
    let mut out = format!("route {}\n", route.name);
    settings(&mut out, &route.settings);
    if let Some((name, of)) = &route.authority {
        let _written = writeln!(out, "\n authority {name}");
        settings(&mut out, of);
    }
    for dependency in &route.dependencies {
        if told.contains(&dependency.name.as_str()) {
            let _written = writeln!(out, "\n dependency {}: as above", dependency.name);
            continue;
        }
        told.push(&dependency.name);
        let _written = writeln!(out, "\n dependency {}", dependency.name);
        settings(&mut out, &dependency.settings);
        let _written = writeln!(
            out,
            "\n  {:<KEY_WIDTH$} {:<12}lower rung",
            "what an attempt comes to", "breaker"
        );
        for (class, breaker, lower) in &dependency.classes {
            let lower = if *lower { "yes" } else { "no" };
            let _written = writeln!(out, "  {class:<KEY_WIDTH$} {breaker:<12}{lower}");
        }
    }
    for outlook in &route.outlooks {
        self::outlook(&mut out, outlook);
    }
    out.push('\n');
    out
}

fn settings(out: &mut String, settings: &[Setting]) {
    let mut off = Vec::new();
    for Setting { key, value, source } in settings {
        let source = match source {
            Source::Off => {
                off.push(key.as_str());
                continue;
            }
            Source::Default => "(default)".to_owned(),
            Source::Written { file, line } => format!("{file}:{line}"),
        };
        let _written = writeln!(out, "  {key:<KEY_WIDTH$} {value:<VALUE_WIDTH$} {source}");
    }
    let mut line = format!("  {:<KEY_WIDTH$} ", "not set");
    for (index, key) in off.iter().enumerate() {
        if line.len() + key.len() > LINE_WIDTH {
            let _written = writeln!(out, "{}", line.trim_end());
            line = " ".repeat(KEY_WIDTH + 3);
        }
        line.push_str(key);
        line.push_str(if index + 1 < off.len() { ", " } else { "" });
    }
    if !off.is_empty() {
        let _written = writeln!(out, "{}", line.trim_end());
    }
}

fn outlook(out: &mut String, outlook: &Outlook) {
    let are = if outlook.gone.len() == 1 { "is" } else { "are" };
    let _written = writeln!(
        out,
        "\n  if {} {are} gone\n  {:<KEY_WIDTH$} {:<24}while the breaker is open",
        outlook.gone.join(" and "),
        "with",
        "at first"
    );
    let (first, open): (Vec<&Outcome>, Vec<&Outcome>) =
        outlook.outcomes.iter().partition(|outcome| !outcome.breaker_open);
    for outcome in first {
        let later = open.iter().find(|later| later.with == outcome.with);
        let later = later.map_or_else(|| "no breaker".to_owned(), |later| came_to(later));
        let _written = writeln!(
            out,
            "  {:<KEY_WIDTH$} {:<24}{later}",
            outcome.with,
            came_to(outcome)
        );
    }
}

/// Returns what a call came to, in a few words.
fn came_to(outcome: &Outcome) -> String {
    match (outcome.rung, outcome.status) {
        (Some(rung), Some(status)) => format!("{} {status}", rung.as_str()),
        (Some(rung), None) => rung.as_str().to_owned(),
        (None, status) => format!("refused {}", status.unwrap_or_default()),
    }
}
