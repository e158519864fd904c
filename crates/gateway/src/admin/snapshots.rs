//! Decides how copies are looked at and put in over the administration port.
//! It exists because what is kept is somebody's data: who looks shows the token, and a list shows neither bodies nor
//! whose each copy is in full.
//! It refuses lists without a bound, and times that cannot be read.

use evenkeel_http::problem::ProblemKind;
use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use serde_json::{Value, json};

use super::{
    asked::{Asked, decoded, encoded},
    hold::apart,
    reply::{Refused, Reply},
};
use crate::{
    proxy::{App, Current, Item, PAGE_MAX, Place, Seed, Wanted},
    steering::{Entry, Refusal},
    telemetry::{rfc3339, unix_seconds},
};

/// How many copies a page has when nobody says.
const PAGE: usize = 100;

fn bad(detail: impl Into<String>) -> Refused {
    Refused::because(ProblemKind::BadRequest, detail)
}

/// Lists copies, page by page.
pub(super) async fn list(current: &Current, asked: &Asked) -> Result<Reply, Refused> {
    let place = |name| asked.parameter(name).map(|text| Place::read(&text)).transpose();
    let wanted = Wanted {
        route: asked.parameter("route"),
        prefix: place("prefix").map_err(bad)?,
        uri: None,
        scope: asked.parameter("scope"),
    };
    let most = match asked.parameter("limit") {
        None => PAGE,
        Some(text) => {
            let most = text.parse().ok().filter(|most| (1..=PAGE_MAX).contains(most));
            most.ok_or_else(|| bad(format!("limit is {text:?}; allowed: 1 to {PAGE_MAX}")))?
        }
    };
    let (after, route) = (
        asked.parameter("after").map(|place| decoded(&place)),
        wanted.route.clone(),
    );
    let page = apart(current, move |(_, app)| {
        let page = app.copies(&wanted, after.as_deref(), most);
        known(&app, route.as_deref(), page.items.is_empty()).map(|()| page)
    })
    .await??;
    let items: Vec<Value> = page.items.iter().map(|item| shown(item, false)).collect();
    Ok(Reply::json(
        &json!({ "copies": items, "next": page.next.as_deref().map(encoded) }),
    ))
}

/// Shows every copy of one URI, or the body of one of them.
pub(super) async fn show(current: &Current, asked: &Asked) -> Result<Reply, Refused> {
    let uri = asked
        .parameter("uri")
        .ok_or_else(|| bad("uri is missing; it is required"))?;
    let wanted = Wanted {
        route: asked.parameter("route"),
        uri: Some(Place::read(&uri).map_err(bad)?),
        scope: asked.parameter("scope"),
        ..Wanted::default()
    };
    let page = apart(current, move |(_, app)| app.copies(&wanted, None, PAGE_MAX)).await?;
    let Some(number) = asked.parameter("body") else {
        if page.items.is_empty() {
            return Err(Refused::because(
                ProblemKind::NotThere,
                format!("nothing is kept for {uri}"),
            ));
        }
        let items: Vec<Value> = page.items.iter().map(|item| shown(item, true)).collect();
        return Ok(Reply::json(&json!({ "copies": items })));
    };
    let item = number
        .parse::<usize>()
        .ok()
        .and_then(|number| page.items.get(number.checked_sub(1)?));
    let item = item.ok_or_else(|| {
        Refused::because(
            ProblemKind::NotThere,
            format!("there is no copy {number:?}; there are {}", page.items.len()),
        )
    })?;
    let plain = HeaderValue::from_static("application/octet-stream");
    let content_type = item.headers.get(CONTENT_TYPE).cloned().unwrap_or(plain);
    Ok(Reply::bytes(item.body.clone()).with(CONTENT_TYPE, content_type))
}

/// Refuses a route that the contract does not have and nothing is kept of: "nothing" would be read as an answer.
fn known(app: &App, route: Option<&str>, is_empty: bool) -> Result<(), Refused> {
    let there = app.route_names();
    match route {
        Some(route) if is_empty && !there.iter().any(|known| known == route) => {
            Err(Refusal::not_there(&format!("route {route:?}"), &there).into())
        }
        _ => Ok(()),
    }
}

/// Writes one copy; whose it is and its fields only if it was asked for by itself.
fn shown(item: &Item, in_full: bool) -> Value {
    let scope: Vec<String> = item
        .scope
        .iter()
        .map(|part| if in_full { part.clone() } else { shortened(part) })
        .collect();
    let mut shown = json!({
        "route": item.route,
        "uri": item.uri,
        "scope": scope,
        "kind": item.kind,
        "status": item.status.as_u16(),
        "observed": item.observed.map(rfc3339),
        "age_seconds": item.age.map(|age| age.as_secs()),
        "limit_seconds": item.limit.map(|limit| limit.as_secs()),
        "not_servable": item.not_servable,
        "expired": item.expired,
        "body_bytes": item.body.len(),
    });
    if in_full {
        let fields = item.headers.iter();
        shown["headers"] = fields
            .map(|(name, value)| json!([name.as_str(), String::from_utf8_lossy(value.as_bytes())]))
            .collect();
    }
    shown
}

/// Leaves of a part what tells it from others at a glance.
fn shortened(part: &str) -> String {
    let mut characters = part.chars();
    let first: String = characters.by_ref().take(2).collect();
    if characters.next().is_some() {
        format!("{first}…")
    } else {
        first
    }
}

/// Puts an answer in.
pub(super) async fn seed(current: &Current, asked: &Asked) -> Result<Reply, Refused> {
    let required = |name: &str| {
        let given = asked.parameter(name).filter(|text| !text.trim().is_empty());
        given.ok_or_else(|| bad(format!("{name} is missing; it is required")))
    };
    let (uri, by) = (required("uri")?, required("by")?);
    let mut headers = HeaderMap::new();
    for (name, field) in [
        ("content_type", "content-type"),
        ("cache_control", "cache-control"),
    ] {
        if let Some(text) = asked.parameter(name) {
            let value = HeaderValue::from_str(&text)
                .map_err(|_| bad(format!("{name} is {text:?}; write a field value")))?;
            headers.insert(field, value);
        }
    }
    let observed = match asked.parameter("observed") {
        None => None,
        Some(text) => Some(unix_seconds(&text).ok_or_else(|| {
            bad(format!(
                "observed is {text:?}; write 2026-11-29T03:02:07Z, or seconds of Unix time as @1795921327"
            ))
        })?),
    };
    let seed = Seed {
        place: Place::read(&uri).map_err(bad)?,
        headers,
        body: asked.body.clone(),
        observed: observed.map(std::time::Duration::from_secs),
    };
    let peer = asked.peer.to_string();
    let done = apart(current, move |(process, app)| {
        let bytes = seed.body.len();
        let done = app.seed(seed);
        let after = json!({ "observed_unix": observed, "body_bytes": bytes });
        let entry = Entry {
            what: "seed",
            by: &by,
            peer: &peer,
            target: &format!("uri {uri}"),
            before: None,
            after: done.is_ok().then(|| after.clone()),
            refused: done.as_ref().err().cloned(),
        };
        let audited = process.steering.note(process.engine.now(), &entry);
        done.map(|route| {
            json!({
                "route": &*route,
                "uri": uri,
                "body_bytes": bytes,
                // Without a time it is held and never given.
                "not_servable": observed.is_none().then_some("unknown-age"),
                "trouble": audited.err(),
            })
        })
    })
    .await?;
    let done = done.map_err(|why| Refused::because(ProblemKind::NotPermitted, why))?;
    Ok(Reply::json(&done))
}
