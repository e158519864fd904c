//! Decides what an answer says about asking again, and marks the failures that are not worth it for those in front.
//! It exists so that of several gateways in a row one retries: the one nearest to the failure.
//! It refuses to trust more than it must: all that a forged mark can do is to spare the one who sent it.

use std::time::Duration;

use evenkeel::{Advice, Class, Wall};
use evenkeel_http::{dates::HttpDate, delays::retry_after};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

use super::{outbound::Outbound, trouble::Trouble, whole::Reply};

/// Says of a failure that retries of it were made, or decided against, behind the one who sends it: a boolean of RFC
/// 9651, only ever true.
const RETRIED: HeaderName = HeaderName::from_static("evenkeel-retried");
const YES: HeaderValue = HeaderValue::from_static("?1");

/// Tells whether a request may be sent once more without harm. These are the methods whose requests have no body here.
pub(super) fn is_repeatable(method: &Method) -> bool {
    *method == Method::GET || *method == Method::HEAD
}

/// Tells whether a failure of this status is worth another attempt, as others see it.
fn is_worth_repeating(status: StatusCode) -> bool {
    matches!(Class::of_status(status.as_u16()), Class::Outage(_) | Class::Busy)
}

/// Reads what an error says about asking again.
pub(super) fn advice_of_trouble(trouble: &Trouble, now: Wall) -> Advice {
    match trouble {
        Trouble::ErrorAnswer(.., Some(whole)) => advice(&whole.headers, now),
        Trouble::ErrorAnswer(.., None)
        | Trouble::Refused
        | Trouble::NameNotFound
        | Trouble::Unroutable
        | Trouble::ConnectTimedOut
        | Trouble::ConnectTooLate
        | Trouble::AnswerTooLate
        | Trouble::NothingLeft
        | Trouble::Terminated
        | Trouble::Unreadable
        | Trouble::Cut
        | Trouble::Fault => Advice::Whenever,
    }
}

/// Reads the same from an answer that is no error of ours, a 429.
pub(super) fn advice_of_reply(reply: &Reply, now: Wall) -> Advice {
    match reply {
        Reply::Whole(whole) => advice(&whole.headers, now),
        Reply::Cached(copy, _) => advice(&copy.headers(0), now),
        Reply::Streamed(_, _, _, advice) => *advice,
        Reply::Default(_) => Advice::Whenever,
    }
}

/// Reads it from the head of an answer whose body flows, where it is one that asks for patience.
pub(super) fn advice_of_head(status: StatusCode, headers: &HeaderMap, now: Wall) -> Advice {
    if is_worth_repeating(status) {
        advice(headers, now)
    } else {
        Advice::Whenever
    }
}

/// Reads it from the fields of any answer.
pub(super) fn advice(headers: &HeaderMap, now: Wall) -> Advice {
    if headers.get(RETRIED).is_some_and(|value| *value == YES) {
        return Advice::Never;
    }
    let now = HttpDate::from_unix_seconds(now.as_secs());
    // The contract's own limit holds; this one keeps the sum of times finite.
    retry_after(headers, now, Duration::from_secs(3600)).map_or(Advice::Whenever, Advice::After)
}

/// Marks a failure of a route that retries.
pub(super) fn mark(response: &mut Response<Outbound>) {
    if is_worth_repeating(response.status()) {
        response.headers_mut().insert(RETRIED, YES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Wall = Wall::from_nanos(1_764_440_643_000_000_000); // Sat, 29 Nov 2025 18:24:03 GMT

    fn read(fields: &[(&'static str, &'static str)]) -> Advice {
        let headers = fields
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        advice(&headers, NOW)
    }

    #[test]
    fn case_032_a_past_or_malformed_retry_after_adds_nothing() {
        let zero = Advice::After(Duration::ZERO);
        assert_eq!(read(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")]), zero);
        assert_eq!(read(&[("retry-after", "0")]), zero);
        for value in ["-1", "-5", "abc", ""] {
            assert_eq!(read(&[("retry-after", value)]), Advice::Whenever, "{value:?}");
        }
        let later = Advice::After(Duration::from_secs(30));
        assert_eq!(read(&[("retry-after", "30")]), later);
        assert_eq!(read(&[("retry-after", "Sat, 29 Nov 2025 18:24:33 GMT")]), later);
    }

    #[test]
    fn r05_a_marked_failure_is_left_alone_and_only_a_true_mark_counts() {
        assert_eq!(
            read(&[("evenkeel-retried", "?1"), ("retry-after", "1")]),
            Advice::Never
        );
        assert_eq!(read(&[("evenkeel-retried", "?0")]), Advice::Whenever);
    }

    #[test]
    fn h07_only_methods_without_effect_are_repeatable() {
        for method in [Method::GET, Method::HEAD] {
            assert!(is_repeatable(&method));
        }
        for method in [
            Method::POST,
            Method::PUT,
            Method::DELETE,
            Method::PATCH,
            Method::OPTIONS,
        ] {
            assert!(!is_repeatable(&method));
        }
    }
}
