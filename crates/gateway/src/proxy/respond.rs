//! Decides what a client gets for the end of a call: the fields, the labels and the body of its answer.
//! It exists so that live, stale, default and passed-on answers are made in one place, each from a clean start.
//! It refuses to mix fields of a failed answer into the one that stands in for it.

use std::sync::{Arc, atomic::Ordering};

use evenkeel::{Answer, Ending, Rung, Unanswered, http::HttpCache};
use evenkeel_http::dates::HttpDate;
use http::{
    HeaderMap, HeaderValue, Method, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE},
};

use super::{
    alternate,
    cached::Cached,
    exchange::{Exchange, Handed},
    given,
    labels::{self, Labels, Stored},
    outbound::Outbound,
    refuse,
    trouble::Trouble,
    whole::{Reply, Whole},
};

/// Makes the response for the end of a call.
pub(super) fn respond(
    exchange: &Exchange,
    end: Result<Answer<Reply, Trouble>, Unanswered<Trouble>>,
    labels: &Labels,
) -> Response<Outbound> {
    let handed = std::mem::take(&mut *exchange.handed.lock());
    let connected = exchange.connected.load(Ordering::Relaxed);
    if let Ok(answer) = &end
        && answer.rung == Rung::Alternate
    {
        return alternate::respond(exchange, answer, connected);
    }
    if let Some(caching) = exchange.route.cache.as_ref().zip(exchange.cached.as_ref()) {
        return cached(exchange, caching, end, handed, labels, connected);
    }
    match end {
        Ok(answer) if answer.rung == Rung::Live => live(exchange, answer, handed, labels),
        Ok(answer) => stand_in(exchange, &answer, connected),
        Err(end) => match (end.ending, &end.cause) {
            (Ending::Failed, Some(Trouble::ErrorAnswer(status, _, whole))) => {
                passed_on(exchange, *status, whole.as_deref(), handed, labels)
                    .unwrap_or_else(|| refuse::unanswered(&end, connected, || exchange.route.next_turn()))
            }
            _ => refuse::unanswered(&end, connected, || exchange.route.next_turn()),
        },
    }
}

/// Makes the response for the end of a call on a route that caches.
fn cached(
    exchange: &Exchange,
    caching: (&HttpCache, &Cached),
    end: Result<Answer<Reply, Trouble>, Unanswered<Trouble>>,
    handed: Handed,
    labels: &Labels,
    connected: bool,
) -> Response<Outbound> {
    let now = || exchange.route.engine.now();
    let (cache, cached) = caching;
    let passed = |mut response: Response<Outbound>, joined: bool| {
        let handling = given::forwarded(cached.first(cache, now().mono));
        let handling = handling.after_asking(None, false, joined.then_some(true));
        labels.asked(&mut response, handling);
        response
    };
    match end {
        Ok(answer) => match &answer.value {
            Reply::Cached(copy, how) => given::of_copy(
                exchange,
                caching,
                &answer,
                (copy, *how),
                handed.headers,
                connected,
            ),
            Reply::Default(_) => stand_in(exchange, &answer, connected),
            Reply::Whole(_) | Reply::Streamed(..) => {
                let joined = answer.joined;
                let response = passed(unlabelled(answer.value, handed), joined);
                let received = HttpDate::from_unix_seconds(now().wall.as_secs());
                given::fitted(exchange, response, received)
            }
        },
        Err(end) => match (end.ending, &end.cause) {
            (Ending::Failed, Some(Trouble::ErrorAnswer(status, _, whole))) => {
                error_answer(exchange, *status, whole.as_deref(), handed).map_or_else(
                    || refuse::unanswered(&end, connected, || exchange.route.next_turn()),
                    |response| passed(response, false),
                )
            }
            _ => refuse::unanswered(&end, connected, || exchange.route.next_turn()),
        },
    }
}

fn live(
    exchange: &Exchange,
    answer: Answer<Reply, Trouble>,
    handed: Handed,
    labels: &Labels,
) -> Response<Outbound> {
    let stored = Stored {
        kept: answer.kept,
        joined: answer.joined,
    };
    let mut response = unlabelled(answer.value, handed);
    labels.live(&mut response, stored);
    finished(exchange, response)
}

/// Makes the response of what the dependency has answered.
pub(super) fn unlabelled(value: Reply, handed: Handed) -> Response<Outbound> {
    let Handed {
        headers,
        stream,
        lease,
    } = handed;
    match value {
        Reply::Streamed(status, ..) => {
            let body = stream.map_or(Outbound::Empty, Outbound::Stream);
            with_status(status, headers.unwrap_or_default(), body)
        }
        Reply::Whole(whole) => {
            // The fields as they came, if this is the one who asked; a copy for those who joined.
            let (status, body) = (whole.status, whole.body.clone());
            let headers = headers.unwrap_or_else(|| match Arc::try_unwrap(whole) {
                Ok(whole) => whole.headers,
                Err(shared) => shared.headers.clone(),
            });
            with_status(status, headers, Outbound::bytes(body, lease))
        }
        // Copies are answered with elsewhere.
        Reply::Cached(copy, _) => with_status(
            copy.status(),
            copy.headers(0),
            Outbound::bytes(copy.body().clone(), lease),
        ),
        // The engine never calls a default live.
        Reply::Default(answer) => with_status(
            answer.status,
            HeaderMap::new(),
            Outbound::bytes(answer.body.clone(), None),
        ),
    }
}

fn stand_in(exchange: &Exchange, answer: &Answer<Reply, Trouble>, connected: bool) -> Response<Outbound> {
    let mut response = match &answer.value {
        Reply::Whole(whole) => with_status(
            whole.status,
            whole.headers.clone(),
            Outbound::bytes(whole.body.clone(), None),
        ),
        Reply::Default(constant) => {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, constant.content_type.clone());
            headers.insert(CACHE_CONTROL, constant.cache_control.clone());
            with_status(
                constant.status,
                headers,
                Outbound::bytes(constant.body.clone(), None),
            )
        }
        // Streams are never kept, so no rung below live can hold one; copies are answered with elsewhere.
        Reply::Streamed(status, ..) => with_status(*status, HeaderMap::new(), Outbound::Empty),
        Reply::Cached(copy, _) => with_status(
            copy.status(),
            copy.headers(0),
            Outbound::bytes(copy.body().clone(), None),
        ),
    };
    labels::degraded(response.headers_mut(), &exchange.route.name, answer, connected);
    if answer.rung != Rung::Default {
        return finished(exchange, response);
    }
    // A constant is no answer of the dependency's: nobody has it, and it has no parts.
    if exchange.request.method == Method::HEAD {
        head_only(&mut response);
    }
    response
}

/// Passes an error answer on as it was; `None` if it is somebody else's.
fn passed_on(
    exchange: &Exchange,
    status: StatusCode,
    whole: Option<&Whole>,
    handed: Handed,
    labels: &Labels,
) -> Option<Response<Outbound>> {
    let mut response = error_answer(exchange, status, whole, handed)?;
    labels.live(&mut response, Stored::default());
    Some(response)
}

fn error_answer(
    exchange: &Exchange,
    status: StatusCode,
    whole: Option<&Whole>,
    handed: Handed,
) -> Option<Response<Outbound>> {
    let Handed {
        headers,
        stream,
        lease,
    } = handed;
    match (whole, stream) {
        // Who asked has the lease of its body.
        (Some(whole), _) if lease.is_none() && !exchange.may_be_given_whole(whole) => None,
        (Some(whole), _) => {
            let headers = headers.unwrap_or_else(|| whole.headers.clone());
            Some(with_status(
                status,
                headers,
                Outbound::bytes(whole.body.clone(), lease),
            ))
        }
        (None, Some(stream)) => Some(with_status(
            status,
            headers.unwrap_or_default(),
            Outbound::Stream(stream),
        )),
        (None, None) => None,
    }
}

fn with_status(status: StatusCode, headers: HeaderMap, body: Outbound) -> Response<Outbound> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Fits the response to the request. What is kept was asked for whole, so that conditions and ranges are answered here; on
/// other routes they were sent on, and the answer is what the dependency made of them.
fn finished(exchange: &Exchange, mut response: Response<Outbound>) -> Response<Outbound> {
    if exchange.route.keeps {
        let received = HttpDate::from_unix_seconds(exchange.route.engine.now().wall.as_secs());
        return given::fitted(exchange, response, received);
    }
    if exchange.request.method == Method::HEAD {
        head_only(&mut response);
    }
    response
}

/// Answers HEAD from an answer to GET: the length stays, the body does not (rule H25).
pub(super) fn head_only(response: &mut Response<Outbound>) {
    if let Outbound::Bytes(bytes) = response.body()
        && !bytes.is_empty()
        && !response.headers().contains_key(CONTENT_LENGTH)
    {
        let length = HeaderValue::from(bytes.len());
        response.headers_mut().insert(CONTENT_LENGTH, length);
    }
    if let Outbound::Bytes(_) = response.body() {
        *response.body_mut() = Outbound::Empty;
    }
}
