//! Decides what a response says about itself, and how a refusal is told.
//! It exists so that a client, a log and a person can tell a stand-in from live data without guessing.
//! It refuses to name errors and addresses to clients: only the words of the engine.

use std::time::Duration;

use bytes::Bytes;
use evenkeel_core::{Reason, Rung};
use evenkeel_http::{
    age::{age_field, age_value},
    answer::not_modified,
    dates::HttpDate,
    degraded::{DEGRADED, DegradedPart, StandIn, degraded_value, is_degraded},
    freshness::{DataFreshness, X_DATA_FRESHNESS},
    preconditions::{Condition, evaluate},
    problem::{Problem, SkippedRung},
};
use http::{
    HeaderValue, Response, StatusCode,
    header::{AGE, CACHE_CONTROL, SET_COOKIE},
};

use super::{
    trouble::Trouble,
    whole::{Asked, Whole},
};
use crate::{
    answer::{Answer, Unanswered},
    http::problem_kind,
};

/// What a client is told to wait where nobody knows better.
const RETRY_AFTER_DEFAULT: Duration = Duration::from_secs(5);

type End<E> = Result<Answer<Whole, Trouble<E>>, Unanswered<Trouble<E>>>;

/// Makes the response of a call. An error of the service itself, for which nothing could stand in, stays its error.
pub(super) fn respond<E>(name: &str, asked: &Asked, end: End<E>) -> Result<Response<Bytes>, E> {
    match end {
        Ok(answer) => Ok(answered(name, asked, &answer)),
        Err(unanswered) => refused(unanswered),
    }
}

fn answered<E>(name: &str, asked: &Asked, answer: &Answer<Whole, Trouble<E>>) -> Response<Bytes> {
    let mut response = answer.value.response().clone();
    let is_error = is_error(response.status());
    let headers = response.headers_mut();
    let stand_in = match answer.rung {
        Rung::Live => {
            if is_error && !is_degraded(headers) {
                headers.remove(X_DATA_FRESHNESS);
            } else if !is_degraded(headers) {
                DataFreshness::Fresh.set_on(headers);
            }
            None
        }
        Rung::Fresh => {
            DataFreshness::Fresh.set_on(headers);
            None
        }
        Rung::Stale => {
            DataFreshness::Stale.set_on(headers);
            Some(StandIn::Stale)
        }
        Rung::Alternate => {
            DataFreshness::Alternate.set_on(headers);
            Some(StandIn::Alternate)
        }
        Rung::Default => {
            DataFreshness::Default.set_on(headers);
            // Whoever keeps a stand-in shows it after the outage too.
            headers
                .entry(CACHE_CONTROL)
                .or_insert(HeaderValue::from_static("no-store"));
            Some(StandIn::Default)
        }
    };
    let is_copy = matches!(answer.rung, Rung::Fresh | Rung::Stale);
    let age = answer.age.filter(|_| is_copy);
    if let Some(age) = age {
        headers.insert(AGE, age_value(age));
    }
    if let Some(stand_in) = stand_in {
        let observed = answer
            .observed
            .map(|at| HttpDate::from_unix_seconds(at.as_secs()));
        let part = DegradedPart {
            part: name,
            stand_in,
            age,
            observed,
            reason: answer.reason.map_or("unknown", Reason::as_str),
        };
        if let Some(value) = degraded_value([part]) {
            headers.insert(DEGRADED, value);
        }
    }
    unless_known(asked, answer, response)
}

/// Gives a client that has the answer already a 304, as its conditions say.
fn unless_known<E>(
    asked: &Asked,
    answer: &Answer<Whole, Trouble<E>>,
    mut response: Response<Bytes>,
) -> Response<Bytes> {
    let Some(observed) = answer.observed else {
        return response;
    };
    let received = HttpDate::from_unix_seconds(observed.as_secs());
    let condition = evaluate(&asked.headers, response.status(), response.headers(), received);
    // A 304 carries no cookie, and one that was just set is not to be lost.
    if condition == Condition::Proceed || response.headers().contains_key(SET_COOKIE) {
        return response;
    }
    let age = age_field(response.headers()).unwrap_or_default();
    *response.headers_mut() = not_modified(response.headers(), age);
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    *response.body_mut() = Bytes::new();
    response
}

fn refused<E>(unanswered: Unanswered<Trouble<E>>) -> Result<Response<Bytes>, E> {
    let kind = problem_kind(unanswered.reason);
    let skipped: Vec<SkippedRung<'_>> = unanswered
        .skipped
        .iter()
        .map(|(rung, why)| SkippedRung {
            rung: rung.as_str(),
            why: why.as_str(),
        })
        .collect();
    let detail = match unanswered.cause {
        Some(Trouble::Service(error)) => return Err(error),
        Some(Trouble::Answer(mut response)) => {
            if !is_degraded(response.headers()) {
                response.headers_mut().remove(X_DATA_FRESHNESS);
            }
            return Ok(response);
        }
        Some(Trouble::TooLarge(_)) => Some("the answer is larger than what is read here before it is given"),
        Some(Trouble::Cut(_)) | None => None,
    };
    let problem = Problem {
        detail,
        reason: unanswered.reason.map(Reason::as_str),
        skipped: &skipped,
        retry_after: kind
            .has_retry_after()
            .then(|| unanswered.retry_after.unwrap_or(RETRY_AFTER_DEFAULT)),
        ..Problem::new(kind)
    };
    let mut response = Response::new(Bytes::from(problem.to_json() + "\n"));
    *response.status_mut() = problem.status();
    problem.set_headers(response.headers_mut());
    Ok(response)
}

fn is_error(status: StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}
