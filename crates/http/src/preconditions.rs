//! Decides whether a client that asked conditionally gets the stored answer or a 304 (RFC 9111 §4.3.2).
//! It exists so that a client's validators cost no request to the origin while a copy may be given.
//! It refuses to evaluate `If-Match` and `If-Unmodified-Since`: they are the origin's to judge (H18).

use http::StatusCode;
use http::header::{DATE, HeaderMap, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};

use crate::dates::HttpDate;
use crate::etag::EntityTag;
use crate::grammar::is_ows;

/// What a client's own conditions make of a stored answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// Give the answer (ranges are looked at next).
    Proceed,
    /// The client has it: give a 304 ([`crate::answer::not_modified`]).
    NotModified,
}

/// Evaluates the conditions of a GET or HEAD on a stored answer that may be given (H18, H19).
///
/// `If-None-Match` comes first, by weak comparison; where the field is present, `If-Modified-Since` is
/// ignored, also when no tag in it can be read. `If-Modified-Since` is compared with `Last-Modified`, without
/// that with `Date`, without that with `received`; an unreadable or repeated one is ignored. Only a stored 200
/// is ever turned into a 304.
///
/// ```
/// use evenkeel_http::dates::HttpDate;
/// use evenkeel_http::preconditions::{Condition, evaluate};
/// use http::{HeaderMap, HeaderValue, StatusCode, header::{ETAG, IF_NONE_MATCH}};
///
/// let mut stored = HeaderMap::new();
/// stored.insert(ETAG, HeaderValue::from_static("\"v1\""));
/// let mut request = HeaderMap::new();
/// request.insert(IF_NONE_MATCH, HeaderValue::from_static("\"v0\", W/\"v1\""));
/// let received = HttpDate::from_unix_seconds(1_764_440_643);
/// assert_eq!(evaluate(&request, StatusCode::OK, &stored, received), Condition::NotModified);
/// ```
#[must_use]
pub fn evaluate(
    request: &HeaderMap,
    stored_status: StatusCode,
    stored: &HeaderMap,
    received: HttpDate,
) -> Condition {
    let unchanged = stored_status == StatusCode::OK
        && if request.contains_key(IF_NONE_MATCH) {
            names_the_tag(request, stored)
        } else {
            not_modified_since(request, stored, received)
        };
    if unchanged {
        Condition::NotModified
    } else {
        Condition::Proceed
    }
}

fn names_the_tag(request: &HeaderMap, stored: &HeaderMap) -> bool {
    let mut lines = request.get_all(IF_NONE_MATCH).iter().map(|line| line.as_bytes());
    if request.get_all(IF_NONE_MATCH).iter().count() == 1
        && request
            .get(IF_NONE_MATCH)
            .is_some_and(|line| line.as_bytes() == b"*")
    {
        return true;
    }
    EntityTag::of(stored)
        .is_some_and(|tag| lines.any(|line| Tags { rest: line }.any(|named| named.weakly_matches(tag))))
}

fn not_modified_since(request: &HeaderMap, stored: &HeaderMap, received: HttpDate) -> bool {
    let mut lines = request.get_all(IF_MODIFIED_SINCE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return false;
    };
    HttpDate::parse(line.as_bytes(), received).is_some_and(|since| {
        let modified = HttpDate::from_field(stored, &LAST_MODIFIED, received)
            .or_else(|| HttpDate::from_field(stored, &DATE, received))
            .unwrap_or(received);
        modified <= since
    })
}

/// The tags of one line. Each call consumes at least one byte; reading ends at the first thing that is none.
struct Tags<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Tags<'a> {
    type Item = EntityTag<'a>;

    fn next(&mut self) -> Option<EntityTag<'a>> {
        while let [first, rest @ ..] = self.rest
            && (*first == b',' || is_ows(*first))
        {
            self.rest = rest;
        }
        let (tag, mut rest) = EntityTag::take(self.rest)?;
        while let [first, after @ ..] = rest
            && is_ows(*first)
        {
            rest = after;
        }
        // Two tags without a comma between them are no list; what was read so far still counts.
        self.rest = if matches!(rest, [] | [b',', ..]) {
            rest
        } else {
            &[]
        };
        Some(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;
    use proptest::prelude::*;

    const RECEIVED: HttpDate = HttpDate::from_unix_seconds(784_111_777); // Sun, 06 Nov 1994 08:49:37 GMT
    const AN_HOUR_AGO: &str = "Sun, 06 Nov 1994 07:49:37 GMT";

    fn changed(request: &[(&str, &str)], stored: &[(&str, &str)]) -> bool {
        let verdict = evaluate(
            &headers(request.iter().copied()),
            StatusCode::OK,
            &headers(stored.iter().copied()),
            RECEIVED,
        );
        verdict == Condition::Proceed
    }

    #[test]
    fn h19_any_tag_of_the_list_matches_weakly() {
        let stored = [("etag", "\"b,c\"")];
        for line in [
            "\"b,c\"",
            "W/\"b,c\"",
            "\"a\", \"b,c\"",
            "\"a\",, W/\"b,c\" , \"z\"",
            "*",
        ] {
            assert!(!changed(&[("if-none-match", line)], &stored), "{line}");
        }
        assert!(!changed(
            &[("if-none-match", "\"a\""), ("if-none-match", "\"b,c\"")],
            &stored
        ));
        for line in [
            "\"b\"",
            "b,c",
            "",
            "\"b,c",
            "\"a\" \"b,c\"",
            "x, \"b,c\"",
            "\"a\", *",
        ] {
            assert!(changed(&[("if-none-match", line)], &stored), "{line}");
        }
    }

    #[test]
    fn h18_if_none_match_comes_first_even_when_unreadable() {
        let stored = [("etag", "\"a\""), ("last-modified", AN_HOUR_AGO)];
        let since = ("if-modified-since", AN_HOUR_AGO);
        assert!(!changed(&[since], &stored));
        assert!(changed(&[("if-none-match", "\"b\""), since], &stored));
        assert!(changed(&[("if-none-match", ""), since], &stored));
        let long_ago = ("if-modified-since", "Sun, 06 Nov 1904 07:49:37 GMT");
        assert!(!changed(&[("if-none-match", "\"a\""), long_ago], &stored));
    }

    #[test]
    fn h18_if_modified_since_falls_back_to_date_and_then_to_the_time_of_receipt() {
        let now = ("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT");
        let hour_ago = ("if-modified-since", AN_HOUR_AGO);
        assert!(!changed(&[now], &[]));
        assert!(changed(&[hour_ago], &[]));
        assert!(!changed(&[hour_ago], &[("date", AN_HOUR_AGO)]));
        assert!(!changed(
            &[hour_ago],
            &[("last-modified", AN_HOUR_AGO), ("date", "x")]
        ));
        assert!(!changed(
            &[("if-modified-since", "Sunday, 06-Nov-94 07:49:37 GMT")],
            &[("last-modified", AN_HOUR_AGO)]
        ));
    }

    #[test]
    fn h18_an_unreadable_or_repeated_if_modified_since_is_ignored() {
        let stored = [("last-modified", AN_HOUR_AGO)];
        let now = ("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert!(changed(&[("if-modified-since", "now")], &stored));
        assert!(changed(&[now, now], &stored));
    }

    #[test]
    fn h18_the_conditions_for_origins_are_not_evaluated() {
        let stored = [("etag", "\"a\""), ("last-modified", AN_HOUR_AGO)];
        assert!(changed(&[("if-match", "\"z\"")], &stored));
        assert!(changed(
            &[("if-unmodified-since", "Sun, 06 Nov 1904 07:49:37 GMT")],
            &stored
        ));
    }

    #[test]
    fn only_a_stored_200_becomes_a_304() {
        let request = headers([("if-none-match", "*")]);
        let stored = headers([("etag", "\"a\"")]);
        for status in [204, 301, 404] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(evaluate(&request, status, &stored, RECEIVED), Condition::Proceed);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(line in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(value) = http::HeaderValue::from_bytes(&line) {
                let mut request = HeaderMap::new();
                request.append(IF_NONE_MATCH, value.clone());
                request.append(IF_MODIFIED_SINCE, value.clone());
                let mut stored = HeaderMap::new();
                stored.insert(http::header::ETAG, value);
                let verdict = evaluate(&request, StatusCode::OK, &stored, RECEIVED);
                // A tag that can be read matches itself.
                if EntityTag::of(&stored).is_some() {
                    prop_assert_eq!(verdict, Condition::NotModified);
                }
            }
        }
    }
}
