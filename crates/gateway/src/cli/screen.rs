//! Decides how the state of a gateway looks on a terminal at night: one screen, what is worse first.
//! It exists apart from asking, so that a test can read the screen without a gateway.
//! It refuses colours and numbers that are no news: what is well is one line.

use std::time::Duration;

use serde_json::Value;

/// Writes the whole screen.
pub(super) fn status(status: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let up = span(status["uptime_seconds"].as_u64().unwrap_or_default());
    let mut head = format!("{} · up {up}", text(&status["host"]));
    for (key, word) in [("observing", "OBSERVING"), ("stopping", "STOPPING")] {
        if status[key] == true || status["state"] == key {
            head = format!("{head} · {word}");
        }
    }
    let mut lines = vec![format!("{:<58} {head}", "evenkeel status")];
    let routes = list(&status["routes"]);
    lines.extend(
        routes
            .iter()
            .filter(|route| route["since"].is_string())
            .map(|route| degraded(route, status)),
    );
    let watched = routes.iter().filter(|route| route["state"] == "observing");
    lines.extend(watched.map(observing));
    lines.extend(
        list(&status["holds"])
            .iter()
            .map(|held| format!(" HELD     {}", hold(held))),
    );
    lines.extend(dependencies(status));
    lines.extend(addresses(status));
    let well: Vec<String> = routes
        .iter()
        .filter(|route| !route["since"].is_string() && route["state"] == "ok")
        .map(|route| text(&route["name"]))
        .collect();
    if !well.is_empty() {
        lines.push(format!(" ok        {}", well.join(", ")));
    }
    if let Some(trouble) = status["trouble"].as_str() {
        lines.push(format!(" WARNING   {trouble}"));
    }
    lines.extend(contract(&status["contract"]).map(|told| format!(" WARNING   {told}")));
    let next = list(&status["next"]);
    for one in next.iter().take(NEXT_MAX) {
        let within = span(one["in_seconds"].as_u64().unwrap_or_default());
        lines.push(format!(" → in {within}: {}", text(&one["what"])));
    }
    if next.len() > NEXT_MAX {
        lines.push(format!(
            " → and {} more; --json shows them",
            next.len() - NEXT_MAX
        ));
    }
    if routes.iter().any(|route| route["since"].is_string()) {
        lines.push("   what would be served if it went on: evenkeel check --explain; to switch: evenkeel hold --help".to_owned());
    }
    lines.join("\n")
}

/// The most that is shown of what happens next: a screen has an end.
const NEXT_MAX: usize = 5;

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn degraded(route: &Value, status: &Value) -> String {
    let name = route["name"].as_str().unwrap_or_default();
    let minute = &route["last_minute"];
    let calls = minute["calls"].as_u64().unwrap_or_default();
    let mut what = Vec::new();
    for (word, count) in by_ending(minute) {
        what.push(format!("{word} {}", percent(count, calls)));
    }
    if what.is_empty() {
        what.push("no calls in the last minute".to_owned());
    }
    let mut line = format!(" DEGRADED  {name:<14} {}", what.join(", "));
    let seconds = |key: &str| route[key].as_u64();
    if let Some(age) = seconds("oldest_age_seconds") {
        let limit =
            seconds("age_limit_seconds").map_or_else(String::new, |limit| format!(" of {}", span(limit)));
        if seconds("age_limit_seconds").is_some_and(|limit| age > limit) {
            line.push_str(&format!("  oldest past its limit{limit}"));
        } else {
            line.push_str(&format!("  oldest {}{limit}", span(age)));
        }
    }
    let since = clock(route["since"].as_str().unwrap_or_default());
    let lasted = span(seconds("for_seconds").unwrap_or_default());
    line.push_str(&format!("  since {since} ({lasted})"));
    if let Some(reason) = route["reason"].as_str() {
        line.push_str(&format!("  {reason}"));
    }
    // Where nobody decided, the cause is where the authority asks, however well the route's own dependency is.
    let asks = if route["reason"] == "protection-unavailable" && route["authority"].is_object() {
        &route["authority"]["dependency"]
    } else {
        &route["dependency"]
    };
    let dependency = list(&status["dependencies"])
        .iter()
        .find(|one| one["name"] == *asks);
    if let Some(dependency) = dependency {
        line.push_str(&format!(
            "  {}: {}",
            asks.as_str().unwrap_or_default(),
            breaker(dependency)
        ));
    }
    line
}

/// Tells that the contract that runs is not the one in the file.
fn contract(contract: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if let Some(why) = contract["instead_of"].as_str() {
        return Some(format!(
            "the last good contract runs: {why}; `evenkeel check` shows what to mend, then `evenkeel reload`"
        ));
    }
    let refused = &contract["refused"];
    let problems = refused["problems"].as_u64()?;
    let s = if problems == 1 { "" } else { "s" };
    Some(format!(
        "a contract was refused at {}: {problems} problem{s}, at {}; the one before runs on; `evenkeel check` shows what to mend",
        clock(&text(&refused["time"])),
        text(&refused["at"]),
    ))
}

/// Writes what a route that only watches would have done.
fn observing(route: &Value) -> String {
    let name = route["name"].as_str().unwrap_or_default();
    let minute = serde_json::json!({ "by": route["would"] });
    let would: Vec<String> = by_ending(&minute)
        .iter()
        .map(|(word, count)| format!("{word} {count}"))
        .collect();
    format!(" OBSERVING {name:<14} would have been: {}", would.join(", "))
}

/// Adds up what the calls of a minute came to, the most frequent first.
fn by_ending(minute: &Value) -> Vec<(String, u64)> {
    let mut sums: Vec<(String, u64)> = Vec::new();
    for kind in list(&minute["by"]) {
        let word = kind["ending"].as_str().unwrap_or_default().to_owned();
        let count = kind["count"].as_u64().unwrap_or_default();
        match sums.iter_mut().find(|(known, _)| *known == word) {
            Some((_, sum)) => *sum += count,
            None => sums.push((word, count)),
        }
    }
    sums.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sums
}

/// Writes a share without rounding anything to nothing or to all.
fn percent(count: u64, of: u64) -> String {
    if of == 0 {
        return "-".to_owned();
    }
    let whole = count.saturating_mul(100) / of;
    match (count, whole) {
        (0, _) => "0 %".to_owned(),
        (_, 0) => "<1 %".to_owned(),
        (_, whole) => format!("{whole} %"),
    }
}

fn breaker(dependency: &Value) -> String {
    let state = dependency["breaker"].as_str().unwrap_or("no breaker");
    if let Some(left) = dependency["next_probe_seconds"].as_f64() {
        if left <= 0.0 {
            return format!("{state}, the next request is its probe");
        }
        return format!("{state}, next probe {left:.1} s");
    }
    match dependency["ramp_percent"].as_u64() {
        Some(share) => format!("{state}, ramp {share} %"),
        None => state.to_owned(),
    }
}

/// Shows the dependencies that are not well and behind no degraded route: they will be the next.
fn dependencies(status: &Value) -> Vec<String> {
    let shown: Vec<&Value> = list(&status["routes"])
        .iter()
        .filter(|route| route["since"].is_string())
        .map(|route| &route["dependency"])
        .collect();
    list(&status["dependencies"])
        .iter()
        .filter(|one| {
            one["breaker"].as_str().is_some_and(|state| state != "closed") || one["ramp_percent"].is_u64()
        })
        .filter(|one| !shown.contains(&&one["name"]))
        .map(|one| {
            format!(
                " TROUBLED  {:<14} {}",
                one["name"].as_str().unwrap_or_default(),
                breaker(one)
            )
        })
        .collect()
}

/// Shows addresses that are left out, and where they are asked all the same because too few others are left.
fn addresses(status: &Value) -> Vec<String> {
    let dependencies = list(&status["dependencies"]).iter();
    dependencies
        .filter_map(|one| {
            let all = list(&one["addresses"]);
            let out: Vec<&str> = all
                .iter()
                .filter(|address| address["ejected"] == true)
                .filter_map(|address| address["address"].as_str())
                .collect();
            let overridden = if one["ejection_overridden"] == true {
                "; asked all the same: too few others are left"
            } else {
                ""
            };
            let name = one["name"].as_str().unwrap_or_default();
            let shown = format!(
                " UNHEALTHY {name:<14} {} of {}: {}{overridden}",
                out.len(),
                all.len(),
                out.join(", ")
            );
            (!out.is_empty()).then_some(shown)
        })
        .collect()
}

/// Writes one hold.
pub(super) fn hold(held: &Value) -> String {
    let text = |key: &str| held[key].as_str().unwrap_or_default();
    let whose = if text("kind") == "dependency" {
        "dependency "
    } else {
        ""
    };
    let idle = if held["applicable"] == false {
        "  NOT APPLICABLE: no such name in the contract, or another class"
    } else {
        ""
    };
    format!(
        " {whose}{:<14} {}  by {} until {} ({})  {:?}{idle}",
        text("name"),
        text("mode"),
        text("by"),
        clock(text("until")),
        span(held["remaining_seconds"].as_u64().unwrap_or_default()),
        text("reason"),
    )
}

/// Returns the time of day of an instant in RFC 3339.
fn clock(instant: &str) -> String {
    instant
        .get(11..16)
        .map_or_else(|| instant.to_owned(), |time| format!("{time} UTC"))
}

/// Writes a span in its largest unit that is not nothing.
pub(super) fn span(seconds: u64) -> String {
    let span = Duration::from_secs(seconds);
    match span.as_secs() {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        7200..=172_799 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_screen_shows_what_is_worse_first_and_what_is_well_in_one_line() {
        let shown = status(&json!({
            "host": "gw-2", "uptime_seconds": 14 * 86_400, "state": "ready",
            "routes": [
                { "name": "search", "state": "ok", "dependency": "catalog", "last_minute": { "calls": 5, "by": [] } },
                { "name": "product", "state": "degraded", "dependency": "catalog",
                  "since": "2026-11-29T03:02:07.000Z", "for_seconds": 360, "reason": "breaker-open",
                  "oldest_age_seconds": 41, "age_limit_seconds": 60,
                  "last_minute": { "calls": 100, "by": [
                      { "ending": "stale", "reason": "dependency-failed", "count": 5 },
                      { "ending": "refused", "reason": "breaker-open", "count": 3 },
                      { "ending": "stale", "reason": "breaker-open", "count": 87 } ] } },
                { "name": "login", "state": "ok", "dependency": "users", "last_minute": { "calls": 0, "by": [] } },
                { "name": "recs", "state": "held", "dependency": "recs", "last_minute": { "calls": 0, "by": [] } } ],
            "dependencies": [
                { "name": "catalog", "breaker": "open", "next_probe_seconds": 1.62 },
                { "name": "users", "breaker": "closed", "ramp_percent": 20 } ],
            "holds": [ { "kind": "route", "name": "recs", "mode": "forced-off", "by": "on-call",
                "reason": "db migration", "until": "2026-11-29T04:00:00.000Z", "remaining_seconds": 3000 } ],
            "next": [ { "in_seconds": 19, "what": "the oldest copy that product gives reaches its limit" } ],
        }));
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[0].ends_with("gw-2 · up 14 d"), "{shown}");
        assert_eq!(
            lines[1],
            " DEGRADED  product        stale 92 %, refused 3 %  oldest 41 s of 60 s  since 03:02 UTC (6 min)  breaker-open  catalog: open, next probe 1.6 s"
        );
        assert_eq!(
            lines[2],
            " HELD      recs           forced-off  by on-call until 04:00 UTC (50 min)  \"db migration\""
        );
        assert_eq!(lines[3], " TROUBLED  users          closed, ramp 20 %");
        assert_eq!(lines[4], " ok        search, login");
        assert_eq!(
            lines[5],
            " → in 19 s: the oldest copy that product gives reaches its limit"
        );
    }

    #[test]
    fn a_share_is_never_rounded_to_nothing() {
        let shares = [(0, 10), (1, 1000), (10, 1000), (999, 1000), (5, 5), (0, 0)];
        let shown = shares.map(|(count, of)| percent(count, of));
        assert_eq!(shown, ["0 %", "<1 %", "1 %", "99 %", "100 %", "-"]);
    }
}
