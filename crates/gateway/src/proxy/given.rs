//! Decides what a client gets of a copy: its fields, its age, the labels, and as much of it as was asked for.
//! It exists so that hit, validated, fetched and stale answers differ in their labels alone.
//! It refuses to copy a body, and to send one to a client that has it already.

use std::{sync::Arc, time::Duration};

use evenkeel::{
    Answer, Mono, Reason, Rung,
    http::{HttpCache, Shelved},
};
use evenkeel_http::{
    age::{age_value, ttl},
    answer::unsatisfiable,
    cache_status::{CacheStatus, Forward, Handling},
    dates::HttpDate,
    decision::Decision,
    freshness::DataFreshness,
    preconditions::{Condition, evaluate},
    ranges::{RangeAnswer, select},
    reuse::stale_forbidden,
};
use http::{
    HeaderMap, HeaderValue, Method, Response, StatusCode,
    header::{
        ACCEPT_RANGES, AGE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
        ETAG, IF_RANGE, LAST_MODIFIED,
    },
};

use super::{
    cached::Cached,
    exchange::Exchange,
    labels::{self, NAME},
    outbound::Outbound,
    ready,
    trouble::Trouble,
    whole::{How, Reply},
};

/// The fields added to those of a copy: `Age`, `Content-Length`, labels, and those of a range.
const ADDED: usize = 7;

/// Answers a call by a copy. `fetched` are the fields as they came, for the one whose attempt brought them.
pub(super) fn of_copy(
    exchange: &Exchange,
    (cache, cached): (&HttpCache, &Cached),
    answer: &Answer<Reply, Trouble>,
    (copy, how): (&Arc<Shelved>, How),
    fetched: Option<HeaderMap>,
    connected: bool,
) -> Response<Outbound> {
    if answer.rung == Rung::Fresh
        && let Some(age) = answer.age.filter(|age| copy.facts().is_fresh_at(*age))
    {
        let headers = ready::head(copy, age, || of_a_hit(copy, age));
        return given(exchange, copy, headers);
    }
    let now = exchange.route.engine.now().mono;
    let age = answer
        .age
        .filter(|_| answer.rung != Rung::Live)
        .or_else(|| copy.age(now))
        .unwrap_or_default();
    let mut headers = match fetched {
        // Whoever asked gets the answer as it came, an `Age` of those on the way included.
        Some(fields) if answer.rung == Rung::Live => fields,
        Some(_) | None => {
            let mut headers = copy.headers(ADDED);
            headers.insert(AGE, age_value(age));
            headers
        }
    };
    exchange.changed(&mut headers);
    if answer.rung == Rung::Stale {
        let reason = answer.reason.map_or("unknown", Reason::as_str);
        // What is forbidden and given all the same is given by an override, and says so (X2).
        let overridden = answer.reason != Some(Reason::Revalidating)
            && stale_forbidden(cache.rules().sharing, &copy.facts().facts.directives).is_some();
        let with_override;
        let detail = if overridden {
            with_override = format!("{reason}, override");
            &with_override
        } else {
            reason
        };
        let label = stood_in(cache, cached, answer, (copy, age), now, detail);
        labels::stood_in(&mut headers, &exchange.route.name, answer, label, connected);
    } else {
        let handling = handled(cache, cached, answer, how, now);
        let lifetime = copy.facts().lifetime.span();
        let is_hit = handling == Handling::Hit;
        CacheStatus {
            cache: NAME,
            handling,
            ttl: is_hit.then(|| ttl(lifetime, age)),
            detail: None,
        }
        .append_to(&mut headers);
        if copy.facts().is_good() {
            let is_past = is_hit && !copy.facts().is_fresh_at(age);
            let worth = if is_past {
                DataFreshness::Stale
            } else {
                DataFreshness::Fresh
            };
            worth.set_on(&mut headers);
        }
    }
    given(exchange, copy, headers)
}

/// Makes the head of a hit within its lifetime.
fn of_a_hit(copy: &Shelved, age: Duration) -> HeaderMap {
    let mut headers = copy.headers(ADDED);
    headers.insert(AGE, age_value(age));
    let label = CacheStatus {
        cache: NAME,
        handling: Handling::Hit,
        ttl: Some(ttl(copy.facts().lifetime.span(), age)),
        detail: None,
    };
    label.append_to(&mut headers);
    if copy.facts().is_good() {
        DataFreshness::Fresh.set_on(&mut headers);
    }
    headers
}

/// Gives as much of a copy as was asked for.
fn given(exchange: &Exchange, copy: &Shelved, headers: HeaderMap) -> Response<Outbound> {
    let mut response = Response::new(Outbound::bytes(copy.body().clone(), None));
    *response.status_mut() = copy.status();
    *response.headers_mut() = headers;
    fitted(exchange, response, copy.received())
}

/// What happened to a request that was answered in full.
fn handled(
    cache: &HttpCache,
    cached: &Cached,
    answer: &Answer<Reply, Trouble>,
    how: How,
    now: Mono,
) -> Handling {
    let (status, stored) = match how {
        How::Held => return Handling::Hit,
        How::Fetched { stored } => (None, stored),
        How::Validated { stored } => (Some(StatusCode::NOT_MODIFIED), stored),
    };
    forwarded(cached.first(cache, now)).after_asking(status, stored, answer.joined.then_some(true))
}

/// What a first decision means to the label of a request that did go forward.
pub(super) fn forwarded(first: Decision) -> Handling {
    let why = if first == Decision::StaleWhileRevalidating {
        // Who asks for themselves waits for what others get in the background.
        Forward::Stale
    } else {
        // A copy that went between look and answer.
        Forward::Miss
    };
    match first.handling() {
        Some(forwarded @ Handling::Forwarded { .. }) => forwarded,
        // Asked although a copy was good.
        Some(Handling::Hit) | None => Handling::Forwarded {
            why,
            status: None,
            stored: false,
            collapsed: None,
        },
    }
}

/// The label of a copy that stands in: a hit if nothing was asked, else what came of asking (CS2, CS3).
fn stood_in<'a>(
    cache: &HttpCache,
    cached: &Cached,
    answer: &Answer<Reply, Trouble>,
    (copy, age): (&Shelved, Duration),
    now: Mono,
    detail: &'a str,
) -> CacheStatus<'a> {
    let handling = if answer.reason.is_some_and(Reason::was_attempted) {
        let status = answer.cause.as_ref().and_then(Trouble::status);
        forwarded(cached.first(cache, now)).after_asking(status, false, None)
    } else {
        Handling::Hit
    };
    CacheStatus {
        cache: NAME,
        handling,
        ttl: Some(ttl(copy.facts().lifetime.span(), age)),
        detail: Some(detail),
    }
}

/// What of a body describes it, and is of no use to who has it.
const OF_THE_BODY: [http::HeaderName; 4] = [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_RANGE];

/// Fits a whole answer to what the client asked for: the head alone, nothing it has, or a part.
pub(super) fn fitted(
    exchange: &Exchange,
    mut response: Response<Outbound>,
    received: HttpDate,
) -> Response<Outbound> {
    let request = &exchange.request;
    let status = response.status();
    let length = match response.body() {
        Outbound::Bytes(bytes) => bytes.len(),
        Outbound::Empty => 0,
        // What flows is given as it is, unless the client has it.
        Outbound::Stream(_) => usize::MAX,
    };
    if evaluate(&request.headers, status, response.headers(), received) == Condition::NotModified {
        return not_modified(response);
    }
    if length == usize::MAX {
        return response;
    }
    let range = select(
        &request.method,
        &request.headers,
        status,
        response.headers(),
        length as u64,
        received,
    );
    match range {
        RangeAnswer::Whole => {}
        RangeAnswer::Part { first, last } => return part(response, &request.headers, first, last, length),
        RangeAnswer::Unsatisfiable => return unsatisfied(&response, length),
    }
    if request.method == Method::HEAD {
        let has_body = !matches!(status.as_u16(), 204 | 304);
        if has_body && !response.headers().contains_key(CONTENT_LENGTH) {
            let headers = response.headers_mut();
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        *response.body_mut() = Outbound::Empty;
    }
    response
}

fn not_modified(mut response: Response<Outbound>) -> Response<Outbound> {
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    let headers = response.headers_mut();
    headers.remove(CONTENT_LENGTH);
    drop_what_the_client_has(headers);
    if let Outbound::Stream(stream) = std::mem::replace(response.body_mut(), Outbound::Empty) {
        stream.dismiss();
    }
    response
}

fn drop_what_the_client_has(headers: &mut HeaderMap) {
    for name in &OF_THE_BODY {
        headers.remove(name);
    }
    if headers.contains_key(ETAG) {
        headers.remove(LAST_MODIFIED);
    }
}

fn part(
    mut response: Response<Outbound>,
    request: &HeaderMap,
    first: u64,
    last: u64,
    length: usize,
) -> Response<Outbound> {
    let span = usize::try_from(first).ok().zip(usize::try_from(last).ok());
    let (Outbound::Bytes(bytes), Some((from, to))) = (response.body(), span) else {
        return response;
    };
    // Both ends lie inside the body, or the range would not have been chosen.
    let bytes = bytes.slice(from.min(length)..to.saturating_add(1).min(length));
    let headers = response.headers_mut();
    if request.contains_key(IF_RANGE) {
        drop_what_the_client_has(headers);
    }
    headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
    if let Ok(range) = HeaderValue::try_from(format!("bytes {first}-{last}/{length}")) {
        headers.insert(CONTENT_RANGE, range);
    }
    *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    *response.body_mut() = Outbound::bytes(bytes, None);
    response
}

/// 416: no byte asked for exists. Of the whole its date, its way here and what the cache did with it stay.
fn unsatisfied(whole: &Response<Outbound>, length: usize) -> Response<Outbound> {
    let mut response = Response::new(Outbound::Empty);
    *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
    let headers = response.headers_mut();
    headers.insert(CONTENT_RANGE, unsatisfiable(length as u64));
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    for name in [http::header::DATE, http::header::VIA] {
        for value in whole.headers().get_all(&name) {
            headers.append(name.clone(), value.clone());
        }
    }
    for value in whole
        .headers()
        .get_all(&evenkeel_http::cache_status::CACHE_STATUS)
    {
        headers.append(evenkeel_http::cache_status::CACHE_STATUS, value.clone());
    }
    response
}
