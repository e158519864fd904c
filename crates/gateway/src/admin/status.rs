//! Decides what an operator is shown in one look: what is degraded, since when, how old, what happens next.
//! It exists as one JSON object, so that the command line, a dashboard and a script show the same.
//! It refuses to measure anything: every number is one that the engine, the tracker or the register has.

use std::{net::SocketAddr, time::Duration};

use evenkeel::{Counts, Ending, Mono, Now, Reason, Rung, State, Wall};
use serde_json::{Value, json};

use super::reply::Reply;
use crate::{
    proxy::{App, Current, Process},
    steering::Target,
    telemetry::{Came, rfc3339},
};

/// Shows everything.
pub(super) fn show(current: &Current, (started, listen): (Mono, SocketAddr)) -> Reply {
    let (process, app) = (current.process(), current.app());
    let now = process.engine.now();
    let routes: Vec<Value> = app
        .route_names()
        .iter()
        .map(|name| route(process, &app, name, now))
        .collect();
    let dependencies: Vec<Value> = app
        .dependencies
        .iter()
        .map(|(one, upstream)| {
            let mut shown = dependency(one, now);
            if let Some(spreading) = upstream.spreading() {
                let status = spreading.status();
                let addresses = upstream.labels().zip(&status.addresses);
                shown["addresses"] = addresses
                    .map(|(address, one)| {
                        json!({
                            "address": address,
                            "in_flight": one.in_flight,
                            "ejected": one.ejected_until.is_some(),
                        })
                    })
                    .collect();
                shown["ejection_overridden"] = Value::from(status.overrides);
            }
            shown
        })
        .collect();
    let holds = process.steering.list(&app, now.mono);
    let next = next(&routes, &dependencies, &holds);
    Reply::json(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "host": rustix::system::uname().nodename().to_string_lossy(),
        "process": std::process::id(),
        "listen": listen.to_string(),
        "time": rfc3339(now.wall),
        "uptime_seconds": now.mono.since(started).as_secs(),
        "state": if process.is_stopping() { "stopping" } else { "ready" },
        "contract": process.reloads.json(),
        "observing": !app.observed.is_empty(),
        "routes": routes,
        "dependencies": dependencies,
        "holds": holds,
        "next": next,
        "trouble": process.steering.trouble(),
    }))
}

fn route(process: &Process, app: &App, name: &str, now: Now) -> Value {
    let (episode, minute) = process.standing.of(name, now.mono);
    let dependency = app.asks(name).unwrap_or_default();
    let held = process.steering.on(&Target::Route(name.to_owned())).is_some()
        || process
            .steering
            .on(&Target::Dependency(dependency.clone()))
            .is_some();
    let state = match (&episode, held) {
        (_, true) => "held",
        (Some(_), false) => "degraded",
        (None, false) => "ok",
    };
    let mut shown = json!({
        "name": name,
        "state": state,
        "dependency": dependency,
        "last_minute": came(&minute),
    });
    if let Some(episode) = &episode {
        shown["since"] = Value::from(rfc3339(now.wall_of(episode.since)));
        shown["for_seconds"] = Value::from(now.mono.since(episode.since).as_secs());
        shown["mostly"] = Value::from(word(episode.mostly));
        shown["reason"] = Value::from(episode.came.why(episode.mostly).map(Reason::as_str));
        shown["came_to"] = came(&episode.came);
    }
    if let Some(observing) = app.observed.iter().find(|one| *one.name == *name) {
        shown["state"] = Value::from("observing");
        shown["would"] = would(&observing.counts());
    }
    if let Some(gate) = app.gates.iter().find(|gate| *gate.route == *name) {
        let asks = gate.guard.dependency().name();
        shown["authority"] = json!({ "name": &*gate.authority, "dependency": asks });
    }
    // A copy that went out while nothing failed is not one that users depend on.
    if episode.is_some()
        && minute.of(Ending::Answered(Rung::Stale)) > 0
        && let Some(route) = app.routes.iter().find(|route| &*route.name == name)
    {
        let (observed, ends) = route.oldest.read();
        shown["oldest_age_seconds"] = Value::from(observed.map(|at| span(at, now.wall).as_secs()));
        shown["age_limit_seconds"] =
            Value::from(route.guard.contract().ladder().max_age().map(|age| age.as_secs()));
        if route.cache.is_some() {
            // There each copy says for itself how old it may be.
            shown["age_limit_seconds"] =
                Value::from(ends.zip(observed).map(|(end, at)| span(at, end).as_secs()));
        }
        shown["reaches_limit_in_seconds"] = Value::from(ends.map(|at| span(now.wall, at).as_secs()));
    }
    shown
}

/// Writes what calls came to.
fn came(came: &Came) -> Value {
    let by: Vec<Value> = came
        .degraded
        .iter()
        .map(|kind| {
            json!({
                "ending": word(kind.ending),
                "reason": kind.reason.map(Reason::as_str),
                "count": kind.count,
            })
        })
        .collect();
    json!({ "calls": came.calls, "degraded": came.degraded(), "by": by })
}

/// Writes what the calls of a route that only watches would have come to since it was loaded.
fn would(counts: &[Counts]) -> Value {
    let reasons = || std::iter::once(None).chain(Reason::ALL.into_iter().map(Some));
    let pairs = Ending::ALL
        .into_iter()
        .flat_map(|ending| reasons().map(move |reason| (ending, reason)));
    let counted = pairs.filter_map(|(ending, reason)| {
        let count: u64 = counts.iter().map(|one| one.get(ending, reason)).sum();
        let shown = json!({ "ending": word(ending), "reason": reason.map(Reason::as_str), "count": count });
        (count > 0).then_some(shown)
    });
    counted.collect()
}

/// Returns the rung of an answer, else the ending.
fn word(ending: Ending) -> &'static str {
    ending.rung().map_or_else(|| ending.as_str(), Rung::as_str)
}

fn dependency(one: &evenkeel::Dependency, now: Now) -> Value {
    let status = one.status();
    let remaining = |at: Mono| at.since(now.mono).as_secs_f64();
    json!({
        "name": one.name(),
        "breaker": status.state.map(State::as_str),
        "next_probe_seconds": status.next_probe.map(remaining),
        "ramp_percent": status.ramp.map(|stage| stage.share_ppm / 10_000),
        "in_use": status.in_use,
        "limit": status.limit,
        "admitted": status.admitted,
        "waiting": status.waiting,
        "lingering": status.lingering,
        "held": one.held().map(|hold| hold.mode.as_str()),
        "hushed_seconds": one.hushed_until().map(remaining),
    })
}

/// Returns what will happen by itself, the soonest first, each with what then.
fn next(routes: &[Value], dependencies: &[Value], holds: &[Value]) -> Vec<Value> {
    let mut next: Vec<(u64, Value)> = Vec::new();
    let mut add =
        |seconds: u64, what: String| next.push((seconds, json!({ "in_seconds": seconds, "what": what })));
    for route in routes {
        let name = route["name"].as_str().unwrap_or_default();
        // What has reached its limit already is not given any more, and is no news of what comes.
        let left = route["reaches_limit_in_seconds"].as_u64();
        if let Some(left) = left.filter(|left| *left > 0) {
            add(
                left,
                format!("the oldest copy that {name} gives reaches its limit; then the next rung, or 503"),
            );
        }
    }
    for one in dependencies {
        let name = one["name"].as_str().unwrap_or_default();
        if let Some(left) = one["next_probe_seconds"].as_f64() {
            let whole = Duration::try_from_secs_f64(left).unwrap_or_default().as_secs();
            // One that is due waits for a request: without any, nothing happens however long one waits.
            let probe = if left > 0.0 {
                format!("the next probe of {name}")
            } else {
                format!("the next request to {name} is its probe")
            };
            add(
                whole,
                format!("{probe}; if it is answered, traffic comes back by the ramp"),
            );
        }
    }
    for hold in holds {
        let (kind, name) = (hold["kind"].as_str(), hold["name"].as_str());
        if let (Some(kind), Some(name), Some(left)) = (kind, name, hold["remaining_seconds"].as_u64()) {
            add(left, format!("the hold on {kind} {name} ends"));
        }
    }
    next.sort_by_key(|(seconds, _)| *seconds);
    next.into_iter().map(|(_, next)| next).collect()
}

fn span(from: Wall, to: Wall) -> Duration {
    let nanos = to.as_nanos().saturating_sub(from.as_nanos());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}
