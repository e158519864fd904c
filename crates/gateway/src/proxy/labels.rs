//! Decides what an answer says about itself: which cache handled it, how old it is, what failed, what stands in.
//! It exists so that a client, a log and a person can tell a stand-in from live data without guessing.
//! It refuses names of dependencies, addresses and error texts: only words of the engine and of RFC 9209.

use std::time::Duration;

use evenkeel::{Answer, Reason, Rung};
use evenkeel_http::{
    age::{age_field, age_value, ttl},
    cache_status::{CACHE_STATUS, CacheStatus, Forward, Handling},
    dates::HttpDate,
    degraded::{DEGRADED, DegradedPart, StandIn, degraded_value, is_degraded},
    freshness::{DataFreshness, X_DATA_FRESHNESS},
    proxy_status::{ProxyError, ProxyStatus},
};
use http::{HeaderMap, HeaderValue, Method, Response, header::AGE};

use super::{
    outbound::Outbound,
    trouble::Trouble,
    whole::{Reply, Whole},
};

/// The name under which this gateway speaks in `Via`, `Cache-Status` and `Proxy-Status`.
pub const NAME: &str = "evenkeel";

/// What the gateway's cache did with a live answer. Written out in `docs/reference/labels.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stored {
    /// The store has it.
    pub(super) kept: bool,
    /// It came with the attempt of another request.
    pub(super) joined: bool,
}

/// The `Cache-Status` of answers that were asked for, made once.
#[derive(Debug)]
pub(crate) struct Labels {
    /// Of live answers of reads: by `joined`, then by `kept`.
    live: [[HeaderValue; 2]; 2],
    /// Of forwarded requests whose method no store could answer.
    method: HeaderValue,
}

impl Labels {
    pub(crate) fn new() -> Self {
        let label = |why, joined: bool, stored| {
            let handling = Handling::Forwarded {
                why,
                status: None,
                stored,
                collapsed: joined.then_some(true),
            };
            CacheStatus {
                cache: NAME,
                handling,
                ttl: None,
                detail: None,
            }
            .to_value()
        };
        Self {
            live: [false, true].map(|joined| [false, true].map(|kept| label(Forward::Bypass, joined, kept))),
            method: label(Forward::Method, false, false),
        }
    }

    fn of(&self, Stored { kept, joined }: Stored) -> &HeaderValue {
        let [apart, together] = &self.live;
        let [passed, stored] = if joined { together } else { apart };
        if kept { stored } else { passed }
    }

    /// Labels an answer that was asked for on a route that caches, and that no copy was made of.
    pub(super) fn asked(&self, response: &mut Response<Outbound>, handling: Handling) {
        CacheStatus {
            cache: NAME,
            handling,
            ttl: None,
            detail: None,
        }
        .append_to(response.headers_mut());
        Self::say_fresh(response);
    }

    /// Labels an answer that was only passed on. It is not data of a read, so it has no freshness; what the dependency
    /// says of itself stays.
    pub(super) fn passed(&self, method: &Method, headers: &mut HeaderMap) {
        let is_read = *method == Method::GET || *method == Method::HEAD;
        let label = if is_read {
            self.of(Stored::default())
        } else {
            &self.method
        };
        headers.append(CACHE_STATUS, label.clone());
    }

    /// Labels an answer that was asked for. An error or a refusal that is passed on holds no data, so it has no
    /// freshness either, whatever the dependency says.
    pub(super) fn live(&self, response: &mut Response<Outbound>, stored: Stored) {
        response
            .headers_mut()
            .append(CACHE_STATUS, self.of(stored).clone());
        Self::say_fresh(response);
    }

    fn say_fresh(response: &mut Response<Outbound>) {
        let is_error = response.status().is_client_error() || response.status().is_server_error();
        let headers = response.headers_mut();
        // What an upstream says about being degraded stays true here.
        if is_degraded(headers) {
            return;
        }
        if is_error {
            headers.remove(X_DATA_FRESHNESS);
        } else {
            DataFreshness::Fresh.set_on(headers);
        }
    }
}

/// Labels an answer of a lower rung.
pub(super) fn degraded(
    headers: &mut HeaderMap,
    route: &str,
    answer: &Answer<Reply, Trouble>,
    connected: bool,
) {
    let freshness = if let Reply::Whole(whole) = &answer.value {
        let age = answer.age.unwrap_or_default();
        headers.insert(AGE, age_value(age));
        let reason = answer.reason.map_or("unknown", Reason::as_str);
        cache_status(whole, answer, age, reason).append_to(headers);
        DataFreshness::Stale
    } else {
        DataFreshness::Default
    };
    freshness.set_on(headers);
    say_degraded(headers, route, answer, connected);
}

/// Labels a copy of the shelf that stands in.
pub(super) fn stood_in(
    headers: &mut HeaderMap,
    route: &str,
    answer: &Answer<Reply, Trouble>,
    label: CacheStatus<'_>,
    connected: bool,
) {
    label.append_to(headers);
    DataFreshness::Stale.set_on(headers);
    say_degraded(headers, route, answer, connected);
}

/// Labels an answer of the alternate. What that one says of its own answer being degraded stays beside.
pub(super) fn alternate(
    headers: &mut HeaderMap,
    route: &str,
    answer: &Answer<Reply, Trouble>,
    handling: Handling,
    connected: bool,
) {
    let reason = answer.reason.map_or("unknown", Reason::as_str);
    CacheStatus {
        cache: NAME,
        handling,
        ttl: None,
        detail: Some(reason),
    }
    .append_to(headers);
    DataFreshness::Alternate.set_on(headers);
    // It may come from a cache on its way.
    let age = age_field(headers).unwrap_or_default();
    let part = DegradedPart {
        part: route,
        stand_in: StandIn::Alternate,
        age: Some(age),
        observed: answer
            .observed
            .map(|at| HttpDate::from_unix_seconds(at.as_secs().saturating_sub_unsigned(age.as_secs()))),
        reason,
    };
    if let Some(value) = degraded_value([part]) {
        headers.append(DEGRADED, value);
    }
    failure(headers, answer.reason, answer.cause.as_ref(), connected);
}

/// Says what stands in, why, and what went wrong.
fn say_degraded(headers: &mut HeaderMap, route: &str, answer: &Answer<Reply, Trouble>, connected: bool) {
    let reason = answer.reason.map_or("unknown", Reason::as_str);
    let part = DegradedPart {
        part: route,
        stand_in: if answer.rung == Rung::Default {
            StandIn::Default
        } else {
            StandIn::Stale
        },
        age: answer.age,
        observed: answer
            .observed
            .map(|at| HttpDate::from_unix_seconds(at.as_secs())),
        reason,
    };
    if let Some(value) = degraded_value([part]) {
        headers.insert(DEGRADED, value);
    }
    failure(headers, answer.reason, answer.cause.as_ref(), connected);
}

/// A stale answer after a failed attempt went forward in vain; one without an attempt is a hit (rule CS2).
fn cache_status<'a>(
    whole: &Whole,
    answer: &Answer<Reply, Trouble>,
    age: Duration,
    reason: &'a str,
) -> CacheStatus<'a> {
    let lifetime = whole.lifetime.unwrap_or_default();
    let handling = if answer.reason.is_some_and(Reason::was_attempted) {
        Handling::Forwarded {
            why: if age < lifetime {
                Forward::Bypass
            } else {
                Forward::Stale
            },
            status: answer.cause.as_ref().and_then(Trouble::status),
            stored: false,
            collapsed: None,
        }
    } else {
        Handling::Hit
    };
    CacheStatus {
        cache: NAME,
        handling,
        ttl: Some(ttl(lifetime, age)),
        detail: Some(reason),
    }
}

/// Adds what went wrong between here and the dependency.
pub(super) fn failure(
    headers: &mut HeaderMap,
    reason: Option<Reason>,
    cause: Option<&Trouble>,
    connected: bool,
) {
    let error = match (cause, reason) {
        (Some(cause), _) => cause.proxy_error(),
        (None, Some(reason)) => of_reason(reason, connected),
        (None, None) => None,
    };
    let status = ProxyStatus {
        proxy: NAME,
        error,
        received_status: cause.and_then(Trouble::status),
    };
    status.append_to(headers);
}

/// The types of design §14 for reasons that come without an error of the dependency.
const fn of_reason(reason: Reason, connected: bool) -> Option<ProxyError> {
    Some(match reason {
        Reason::DependencyFailed => ProxyError::ConnectionTerminated,
        // A probe that failed without an error of its own ran out of time.
        Reason::TimedOut | Reason::ProbeFailed if connected => ProxyError::HttpResponseTimeout,
        Reason::TimedOut | Reason::ProbeFailed => ProxyError::ConnectionTimeout,
        Reason::Cut => ProxyError::HttpResponseIncomplete,
        Reason::ErrorAnswer | Reason::Slow | Reason::Revalidating => return None,
        Reason::Busy => ProxyError::HttpRequestError,
        Reason::Fault => ProxyError::ProxyInternalError,
        Reason::BreakerOpen | Reason::Ramping | Reason::CoolDown => ProxyError::DestinationUnavailable,
        Reason::AtCapacity | Reason::QueueExpired => ProxyError::ConnectionLimitReached,
        Reason::Shed | Reason::Held | Reason::ProtectionUnavailable => ProxyError::ProxyInternalResponse,
    })
}
