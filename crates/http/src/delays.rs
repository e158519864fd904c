//! Decides how long a number of seconds or a `Retry-After` means, and writes the wait a client is told.
//! It exists because these numbers come from strangers: they may be huge, negative or text, and must never
//! wrap.
//! It refuses to choose a wait; backoff and jitter are the caller's.

use std::time::Duration;

use http::header::{HeaderMap, HeaderValue, RETRY_AFTER};

use crate::dates::HttpDate;

/// Seconds at which every delta-seconds value is clamped: 2^31, the least RFC 9111 §1.2.2 allows.
pub const DELTA_SECONDS_MAX: u64 = 1 << 31;

/// Reads a delta-seconds value: digits only, clamped to [`DELTA_SECONDS_MAX`] (rule C07); `None` for anything
/// else.
///
/// ```
/// use std::time::Duration;
/// use evenkeel_http::delays::{DELTA_SECONDS_MAX, delta_seconds};
///
/// assert_eq!(delta_seconds(b"60"), Some(Duration::from_secs(60)));
/// assert_eq!(delta_seconds(b"99999999999999999999"), Some(Duration::from_secs(DELTA_SECONDS_MAX)));
/// assert_eq!(delta_seconds(b"-1"), None);
/// ```
#[must_use]
pub fn delta_seconds(text: &[u8]) -> Option<Duration> {
    if text.is_empty() {
        return None;
    }
    text.iter()
        .try_fold(0_u64, |sum, byte| {
            byte.is_ascii_digit()
                .then(|| (sum * 10 + u64::from(byte - b'0')).min(DELTA_SECONDS_MAX))
        })
        .map(Duration::from_secs)
}

/// Returns how long the sender of a `Retry-After` asks to wait, at most `cap` (rule H05).
///
/// Digits are tried before dates; a date in the past is zero. `None` if the field is absent, negative or
/// malformed: the caller then uses its own backoff. Of several lines the first counts.
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: HttpDate, cap: Duration) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.as_bytes();
    let wait = delta_seconds(value).or_else(|| Some(HttpDate::parse(value, now)?.saturating_since(now)))?;
    Some(wait.min(cap))
}

/// Returns the whole seconds a client is told to wait: `wait` rounded up, at least 1, at most
/// [`DELTA_SECONDS_MAX`] (rule H04).
///
/// Rounding up keeps the promise that a retry is not invited before the next probe or permit. Jitter is the
/// caller's.
#[must_use]
pub fn retry_after_seconds(wait: Duration) -> u64 {
    let whole = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
    whole.clamp(1, DELTA_SECONDS_MAX)
}

/// Writes `Retry-After` for an answer made here, from the same seconds as [`retry_after_seconds`].
#[must_use]
pub fn retry_after_value(wait: Duration) -> HeaderValue {
    HeaderValue::from(retry_after_seconds(wait))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;
    use proptest::prelude::*;

    const NOW: HttpDate = HttpDate::from_unix_seconds(1_764_440_643); // Sat, 29 Nov 2025 18:24:03 GMT

    fn waits(value: &str) -> Option<u64> {
        let cap = Duration::from_secs(3600);
        retry_after(&headers([("retry-after", value)]), NOW, cap).map(|wait| wait.as_secs())
    }

    #[test]
    fn h05_retry_after_reads_seconds_and_dates() {
        assert_eq!(waits("120"), Some(120));
        assert_eq!(waits("0"), Some(0));
        assert_eq!(waits("Sat, 29 Nov 2025 18:24:33 GMT"), Some(30));
    }

    #[test]
    fn h05_retry_after_in_the_past_is_zero() {
        assert_eq!(waits("Sun, 06 Nov 1994 08:49:37 GMT"), Some(0));
    }

    #[test]
    fn h05_malformed_or_negative_retry_after_counts_as_absent() {
        // The values of case 032.
        for value in ["-1", "-5", "abc", "", "1.5", "10s", "1, 2"] {
            assert_eq!(waits(value), None, "{value:?}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), NOW, Duration::MAX), None);
    }

    #[test]
    fn h05_retry_after_above_the_cap_is_capped_not_ignored() {
        assert_eq!(waits("3601"), Some(3600));
        assert_eq!(waits("99999999999999999999999999"), Some(3600));
        assert_eq!(waits("Fri, 31 Dec 9999 23:59:59 GMT"), Some(3600));
    }

    #[test]
    fn h04_retry_after_rounds_up_and_is_never_zero() {
        assert_eq!(retry_after_value(Duration::ZERO), "1");
        assert_eq!(retry_after_value(Duration::from_secs(2)), "2");
        assert_eq!(retry_after_value(Duration::from_nanos(2_000_000_001)), "3");
        assert_eq!(retry_after_value(Duration::MAX), "2147483648");
    }

    #[test]
    fn c07_oversized_delta_seconds_clamp() {
        for text in [
            "2147483648",
            "2147483649",
            "4294967296",
            "18446744073709551616",
            "9999999999999999999999999999",
        ] {
            assert_eq!(
                delta_seconds(text.as_bytes()),
                Some(Duration::from_secs(DELTA_SECONDS_MAX)),
                "{text}"
            );
        }
        assert_eq!(
            delta_seconds(b"2147483647"),
            Some(Duration::from_secs(DELTA_SECONDS_MAX - 1))
        );
        assert_eq!(
            delta_seconds(b"0000000000000000000000000060"),
            Some(Duration::from_secs(60))
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_readers_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            cap in any::<u32>(),
        ) {
            if let Some(delta) = delta_seconds(&bytes) {
                prop_assert!(delta <= Duration::from_secs(DELTA_SECONDS_MAX));
            }
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                let mut map = HeaderMap::new();
                map.insert(RETRY_AFTER, value);
                let cap = Duration::from_secs(cap.into());
                prop_assert!(retry_after(&map, NOW, cap).is_none_or(|wait| wait <= cap));
            }
        }

        #[test]
        fn delta_seconds_equal_the_number_written(seconds in any::<u64>()) {
            let expected = Duration::from_secs(seconds.min(DELTA_SECONDS_MAX));
            prop_assert_eq!(delta_seconds(seconds.to_string().as_bytes()), Some(expected));
        }
    }
}
