//! Decides how old an answer was on receipt, which lifetime its origin stated, and up to which age that origin
//! lets it be given.
//! It exists so that every age in the product comes from one arithmetic: RFC 9111 §4.2 and RFC 5861,
//! saturating, in `Duration`s.
//! It refuses to read a clock and to guess a lifetime; residence times come from the caller, guesses are
//! [`crate::lifetime`]'s.

use std::time::Duration;

use http::header::{AGE, DATE, EXPIRES, HeaderMap, HeaderValue};

use crate::dates::HttpDate;
use crate::delays::{DELTA_SECONDS_MAX, delta_seconds};
use crate::directives::ResponseDirectives;
use crate::facts::Sharing;
use crate::grammar::trim_ows;

/// Returns the value of a received `Age` (rule C11): the first member of the first line, clamped; `None` if
/// absent or invalid.
#[must_use]
pub fn age_field(headers: &HeaderMap) -> Option<Duration> {
    let line = headers.get(AGE)?.as_bytes();
    let first = line.split(|byte| *byte == b',').next().unwrap_or_default();
    delta_seconds(trim_ows(first))
}

/// Returns the age an answer had when it was received (rule C10; RFC 9111 §4.2.3).
///
/// `received` is the wall time at which the head arrived, `delay` the time since its attempt began, measured
/// by a monotonic clock. A missing, invalid or future `Date` adds nothing; the result is never below `delay`,
/// so that an answer is at least as old as the attempt that fetched it. The age now is this plus the time
/// since: see [`current_age`].
///
/// ```
/// use evenkeel_http::age::corrected_initial_age;
/// use evenkeel_http::dates::HttpDate;
/// use http::{HeaderMap, HeaderValue, header::{AGE, DATE}};
/// use std::time::Duration;
///
/// let received = HttpDate::from_unix_seconds(784_111_787);
/// let mut headers = HeaderMap::new();
/// headers.insert(DATE, HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT")); // ten seconds before
/// headers.insert(AGE, HeaderValue::from_static("30"));
/// let delay = Duration::from_millis(250);
/// assert_eq!(corrected_initial_age(&headers, received, delay), Duration::from_millis(30_250));
/// ```
#[must_use]
pub fn corrected_initial_age(headers: &HeaderMap, received: HttpDate, delay: Duration) -> Duration {
    let apparent = HttpDate::from_field(headers, &DATE, received)
        .map_or(Duration::ZERO, |date| received.saturating_since(date));
    let corrected = age_field(headers).unwrap_or_default().saturating_add(delay);
    apparent.max(corrected)
}

/// Returns the age now: the age on receipt plus the time since, saturating.
#[must_use]
pub const fn current_age(on_receipt: Duration, residence: Duration) -> Duration {
    on_receipt.saturating_add(residence)
}

/// Returns the freshness lifetime the origin stated (rules C06, C08); `None` if it stated none.
///
/// The first of: `s-maxage` (shared copies only), `max-age`, `Expires` − `Date`. An invalid `Expires` ("0",
/// say) is a lifetime of zero; a missing or invalid `Date` is taken to be `received`. `None` is where a
/// guess may begin (rule C09, [`crate::lifetime::Lifetime`]); without one it means "not fresh".
#[must_use]
pub fn freshness_lifetime(
    said: &ResponseDirectives,
    headers: &HeaderMap,
    sharing: Sharing,
    received: HttpDate,
) -> Option<Duration> {
    if sharing == Sharing::Shared && said.s_maxage.is_some() {
        return said.s_maxage;
    }
    said.max_age.or_else(|| {
        let expires = headers.get(EXPIRES)?;
        let Some(expires) = HttpDate::parse_expiration(expires.as_bytes(), received) else {
            return Some(Duration::ZERO);
        };
        let date = HttpDate::from_field(headers, &DATE, received).unwrap_or(received);
        Some(expires.saturating_since(date))
    })
}

/// Returns the total age up to which a `stale-if-error` lets an answer be given on an error, limit included
/// (rules S04, S06); `None` if there is no such directive, and with it no limit of its own.
///
/// Staleness counts from expiry, so the limit is `lifetime + stale_if_error`; without a stated lifetime
/// expiry is at age zero. The same arithmetic gives the limit of a request's own `stale-if-error` (S05); the
/// strictest of all limits wins.
///
/// ```
/// use evenkeel_http::age::stale_limit;
/// use std::time::Duration;
///
/// let secs = Duration::from_secs;
/// assert_eq!(stale_limit(Some(secs(60)), Some(secs(300))), Some(secs(360)));
/// assert_eq!(stale_limit(Some(secs(60)), None), None);
/// ```
#[must_use]
pub fn stale_limit(lifetime: Option<Duration>, stale_if_error: Option<Duration>) -> Option<Duration> {
    stale_if_error.map(|window| lifetime.unwrap_or_default().saturating_add(window))
}

/// Writes the `Age` of an answer given from a copy (rule C11): whole seconds, rounded down, at most
/// [`DELTA_SECONDS_MAX`].
#[must_use]
pub fn age_value(age: Duration) -> HeaderValue {
    HeaderValue::from(age.as_secs().min(DELTA_SECONDS_MAX))
}

/// Returns the remaining lifetime for the `ttl` of `Cache-Status`: whole seconds, negative once stale.
///
/// Computed from the ages as shown, so that `ttl` is always the lifetime minus the `Age` beside it.
#[must_use]
pub fn ttl(lifetime: Duration, age: Duration) -> i64 {
    let clamp = |span: Duration| i64::try_from(span.as_secs().min(DELTA_SECONDS_MAX)).unwrap_or(i64::MAX);
    clamp(lifetime) - clamp(age)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;
    use proptest::prelude::*;

    const RECEIVED: HttpDate = HttpDate::from_unix_seconds(784_111_777); // Sun, 06 Nov 1994 08:49:37 GMT

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn initial(lines: &[(&str, &str)], delay: Duration) -> Duration {
        corrected_initial_age(&headers(lines.iter().copied()), RECEIVED, delay)
    }

    fn lifetime(lines: &[(&str, &str)], sharing: Sharing) -> Option<u64> {
        let headers = headers(lines.iter().copied());
        let said = ResponseDirectives::of(&headers);
        freshness_lifetime(&said, &headers, sharing, RECEIVED).map(|lifetime| lifetime.as_secs())
    }

    #[test]
    fn c10_initial_age_is_the_greater_of_apparent_and_corrected() {
        let ten_before = ("date", "Sun, 06 Nov 1994 08:49:27 GMT");
        assert_eq!(initial(&[ten_before], Duration::ZERO), secs(10));
        assert_eq!(initial(&[ten_before, ("age", "9")], secs(2)), secs(11));
        assert_eq!(initial(&[ten_before, ("age", "3")], secs(2)), secs(10));
    }

    #[test]
    fn c10_the_delay_of_the_answer_counts_even_without_any_field() {
        assert_eq!(
            initial(&[], Duration::from_millis(1_500)),
            Duration::from_millis(1_500)
        );
    }

    #[test]
    fn c10_a_future_or_invalid_date_makes_nothing_younger() {
        assert_eq!(
            initial(&[("date", "Sun, 06 Nov 1994 09:49:37 GMT")], secs(1)),
            secs(1)
        );
        assert_eq!(initial(&[("date", "yesterday"), ("age", "7")], secs(1)), secs(8));
    }

    #[test]
    fn c10_ages_saturate() {
        assert_eq!(
            initial(&[("age", "99999999999999")], Duration::MAX),
            Duration::MAX
        );
        assert_eq!(current_age(Duration::MAX, secs(1)), Duration::MAX);
        assert_eq!(current_age(secs(3), secs(4)), secs(7));
    }

    #[test]
    fn c11_a_list_valued_age_is_its_first_member_and_an_invalid_one_is_ignored() {
        let age = |value| age_field(&headers([("age", value)]));
        assert_eq!(age("30, 40"), Some(secs(30)));
        assert_eq!(age("30 ,40"), Some(secs(30)));
        assert_eq!(age("99999999999999999999"), Some(secs(DELTA_SECONDS_MAX)));
        for invalid in ["", "-1", "1.5", "abc", ", 5", "\"5\""] {
            assert_eq!(age(invalid), None, "{invalid}");
        }
        assert_eq!(age_field(&headers([("age", "5"), ("age", "90")])), Some(secs(5)));
    }

    #[test]
    fn c11_age_is_written_rounded_down_and_clamped() {
        assert_eq!(age_value(Duration::from_millis(34_999)), "34");
        assert_eq!(age_value(Duration::ZERO), "0");
        assert_eq!(age_value(Duration::MAX), "2147483648");
    }

    #[test]
    fn c06_lifetime_is_s_maxage_then_max_age_then_expires() {
        let cache_control = ("cache-control", "max-age=20, s-maxage=10");
        let expires = ("expires", "Sun, 06 Nov 1994 08:50:07 GMT");
        assert_eq!(lifetime(&[cache_control, expires], Sharing::Shared), Some(10));
        assert_eq!(lifetime(&[cache_control, expires], Sharing::Private), Some(20));
        assert_eq!(
            lifetime(&[("cache-control", "max-age=20"), expires], Sharing::Shared),
            Some(20)
        );
        assert_eq!(lifetime(&[expires], Sharing::Shared), Some(30));
        assert_eq!(
            lifetime(
                &[expires, ("date", "Sun, 06 Nov 1994 08:49:57 GMT")],
                Sharing::Shared
            ),
            Some(10)
        );
    }

    #[test]
    fn c06_an_invalid_number_hides_expires_and_means_stale() {
        let expires = ("expires", "Sun, 06 Nov 1994 08:50:07 GMT");
        assert_eq!(
            lifetime(&[("cache-control", "max-age=abc"), expires], Sharing::Shared),
            Some(0)
        );
    }

    #[test]
    fn c08_invalid_or_past_expires_is_already_expired() {
        for value in [
            "0",
            "-1",
            "",
            "tomorrow",
            "Sun, 06 Nov 1994 08:49:36 GMT",
            "Sun, 06 Nov 1994 09:49:37 UTC",
        ] {
            assert_eq!(
                lifetime(&[("expires", value)], Sharing::Shared),
                Some(0),
                "{value}"
            );
        }
    }

    #[test]
    fn c09_without_explicit_freshness_there_is_no_lifetime() {
        let modified = ("last-modified", "Sun, 06 Nov 1994 07:49:37 GMT");
        assert_eq!(
            lifetime(&[modified, ("cache-control", "public")], Sharing::Shared),
            None
        );
    }

    #[test]
    fn s06_staleness_is_measured_from_expiry() {
        assert_eq!(stale_limit(Some(secs(60)), Some(secs(30))), Some(secs(90)));
        assert_eq!(stale_limit(None, Some(secs(30))), Some(secs(30)));
        assert_eq!(stale_limit(Some(secs(60)), Some(Duration::ZERO)), Some(secs(60)));
        assert_eq!(
            stale_limit(Some(Duration::MAX), Some(secs(1))),
            Some(Duration::MAX)
        );
    }

    #[test]
    fn s04_without_stale_if_error_the_origin_gives_no_limit() {
        assert_eq!(stale_limit(Some(secs(60)), None), None);
    }

    #[test]
    fn cs2_ttl_is_lifetime_minus_age_and_negative_once_stale() {
        assert_eq!(ttl(secs(60), secs(26)), 34);
        assert_eq!(ttl(Duration::ZERO, Duration::from_millis(34_900)), -34);
        assert_eq!(ttl(Duration::ZERO, Duration::MAX), -2_147_483_648);
    }

    proptest! {
        #[test]
        fn age_on_receipt_is_never_below_the_delay_nor_below_the_age_field(
            age in any::<u64>(), delay in any::<u32>(), date in any::<i32>(), received in any::<i32>(),
        ) {
            let received = HttpDate::from_unix_seconds(received.into());
            let date = HttpDate::from_unix_seconds(date.into());
            let (age_text, date_text) = (age.to_string(), date.to_string());
            let headers = headers([("age", age_text.as_str()), ("date", date_text.as_str())]);
            let delay = Duration::from_millis(delay.into());
            let found = corrected_initial_age(&headers, received, delay);
            prop_assert!(found >= delay);
            prop_assert!(found >= secs(age.min(DELTA_SECONDS_MAX)));
            prop_assert!(found >= received.saturating_since(date));
        }
    }
}
