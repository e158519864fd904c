//! Decides which fields an answer made from a stored copy carries: whole, as 304, as 206, as 416.
//! It exists so that each of these is built in one place, with an `Age` and without anybody's cookie.
//! It refuses to add labels and framing; those are written by their own modules and by the server.

use std::time::Duration;

use http::header::{
    AGE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG,
    HeaderMap, HeaderName, HeaderValue, IF_RANGE, LAST_MODIFIED, SET_COOKIE,
};

use crate::age::age_value;
use crate::dates::HttpDate;

/// What describes a body the receiver already has (RFC 9110 §8.3-§8.6).
static OF_THE_BODY: [HeaderName; 4] = [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_RANGE];

/// Adds `Date` to a received answer that has none: the time of its receipt (H16).
///
/// To be done before it is stored or forwarded. An unreadable one stays as its origin wrote it.
pub fn add_date(headers: &mut HeaderMap, received: HttpDate) {
    headers.entry(DATE).or_insert_with(|| received.to_value());
}

/// Makes the header of an answer from a stored copy of this age: `Age` in place of any received (C11), no
/// `Set-Cookie` (C33), all else as stored, `Date` too.
///
/// ```
/// use evenkeel_http::answer::whole;
/// use http::{HeaderMap, HeaderValue, header::{AGE, ETAG}};
/// use std::time::Duration;
///
/// let mut stored = HeaderMap::new();
/// stored.insert(ETAG, HeaderValue::from_static("\"v1\""));
/// let given = whole(&stored, Duration::from_millis(34_900));
/// assert_eq!((&given[AGE], &given[ETAG]), (&HeaderValue::from(34), &stored[ETAG]));
/// ```
#[must_use]
pub fn whole(stored: &HeaderMap, age: Duration) -> HeaderMap {
    let mut headers = stored.clone();
    headers.insert(AGE, age_value(age));
    headers.remove(SET_COOKIE);
    headers
}

/// Makes the header of a 304 for a client that has the stored copy (RFC 9110 §15.4.5).
///
/// As [`whole`], without what describes the body; `Content-Location`, `Date`, `ETag`, `Vary`, `Cache-Control`
/// and `Expires` thus stay. `Last-Modified` stays only where there is no `ETag` to go by.
#[must_use]
pub fn not_modified(stored: &HeaderMap, age: Duration) -> HeaderMap {
    let mut headers = whole(stored, age);
    headers.remove(CONTENT_LENGTH);
    drop_what_the_client_has(&mut headers);
    headers
}

/// Makes the header of a 206 with the bytes `first` to `last` of a copy of `length` bytes (RFC 9110 §15.3.7).
///
/// A client that sent `If-Range` has the fields that describe the body already, and does not get them again.
#[must_use]
pub fn partial(
    request: &HeaderMap,
    stored: &HeaderMap,
    age: Duration,
    (first, last): (u64, u64),
    length: u64,
) -> HeaderMap {
    let mut headers = whole(stored, age);
    if request.contains_key(IF_RANGE) {
        drop_what_the_client_has(&mut headers);
    }
    let count = last.saturating_sub(first).saturating_add(1);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(count));
    headers.insert(
        CONTENT_RANGE,
        content_range(format!("bytes {first}-{last}/{length}")),
    );
    headers
}

/// Makes the `Content-Range` of a 416 for a copy of `length` bytes (RFC 9110 §15.5.17); the rest of that
/// answer is a problem of our own.
#[must_use]
pub fn unsatisfiable(length: u64) -> HeaderValue {
    content_range(format!("bytes */{length}"))
}

fn content_range(text: String) -> HeaderValue {
    HeaderValue::try_from(text)
        .expect("a content range is letters, digits, spaces, slashes, stars and dashes")
}

fn drop_what_the_client_has(headers: &mut HeaderMap) {
    for name in &OF_THE_BODY {
        headers.remove(name);
    }
    if headers.contains_key(ETAG) {
        headers.remove(LAST_MODIFIED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;

    const AGE_34: Duration = Duration::from_secs(34);

    fn stored() -> HeaderMap {
        headers([
            ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("etag", "\"a\""),
            ("last-modified", "Sun, 06 Nov 1994 07:49:37 GMT"),
            ("vary", "accept"),
            ("cache-control", "max-age=60"),
            ("expires", "0"),
            ("content-location", "/a"),
            ("content-type", "text/plain"),
            ("content-encoding", "gzip"),
            ("content-length", "10"),
            ("x-frame-options", "deny"),
            ("set-cookie", "id=1"),
            ("age", "900"),
        ])
    }

    #[test]
    fn c11_age_takes_the_place_of_any_received_and_c33_cookies_are_not_replayed() {
        let given = whole(&stored(), AGE_34);
        assert_eq!(given.get_all(AGE).iter().collect::<Vec<_>>(), ["34"]);
        assert_eq!(given[DATE], "Sun, 06 Nov 1994 08:49:37 GMT");
        assert!(!given.contains_key(SET_COOKIE));
        assert_eq!(given.len(), stored().len() - 1);
    }

    #[test]
    fn h18_a_304_carries_what_a_200_would_have_said_about_caching() {
        let expected = headers([
            ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("etag", "\"a\""),
            ("vary", "accept"),
            ("cache-control", "max-age=60"),
            ("expires", "0"),
            ("content-location", "/a"),
            ("x-frame-options", "deny"),
            ("age", "34"),
        ]);
        assert_eq!(not_modified(&stored(), AGE_34), expected);
    }

    #[test]
    fn without_an_etag_a_304_keeps_last_modified() {
        let modified = headers([("last-modified", "Sun, 06 Nov 1994 07:49:37 GMT")]);
        assert!(not_modified(&modified, AGE_34).contains_key(LAST_MODIFIED));
    }

    #[test]
    fn h23_a_206_states_its_own_length_and_range() {
        let part = partial(&HeaderMap::new(), &stored(), AGE_34, (2, 4), 10);
        assert_eq!(part[CONTENT_RANGE], "bytes 2-4/10");
        assert_eq!(part[CONTENT_LENGTH], "3");
        assert_eq!(part[CONTENT_TYPE], "text/plain");
        let resumed = partial(&headers([("if-range", "\"a\"")]), &stored(), AGE_34, (2, 4), 10);
        assert!(!resumed.contains_key(CONTENT_TYPE) && !resumed.contains_key(LAST_MODIFIED));
        assert_eq!(resumed[ETAG], "\"a\"");
        assert_eq!(unsatisfiable(10), "bytes */10");
    }

    #[test]
    fn h16_date_is_added_only_where_there_is_none() {
        let received = HttpDate::from_unix_seconds(784_111_777);
        let mut map = HeaderMap::new();
        add_date(&mut map, received);
        assert_eq!(map[DATE], "Sun, 06 Nov 1994 08:49:37 GMT");
        let mut odd = headers([("date", "yesterday")]);
        add_date(&mut odd, received);
        assert_eq!(odd[DATE], "yesterday");
    }
}
