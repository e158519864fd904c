//! Decides which bytes of a complete stored answer a `Range` asks for (RFC 9110 §14, §13.1.5).
//! It exists so that a range costs no request to the origin where the whole is kept.
//! It refuses to combine or to store parts, and to answer several ranges at once: the whole answer is given
//! then, which every client of ranges must expect (§14.2), and no multipart body can be used to multiply work.

use std::time::Duration;

use http::header::{DATE, HeaderMap, IF_RANGE, LAST_MODIFIED, RANGE};
use http::{Method, StatusCode};

use crate::dates::HttpDate;
use crate::etag::EntityTag;
use crate::grammar::trim_ows;

/// How long before its answer a representation must have been modified for its date to count as a strong
/// validator (RFC 9110 §8.8.2.2): two changes within one second would share it, and clocks differ a little.
pub const SETTLED: Duration = Duration::from_secs(60);

/// What to give of a stored answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RangeAnswer {
    /// All of it, with its own status.
    Whole,
    /// 206 with these bytes, both ends included ([`crate::answer::partial`]).
    Part {
        /// Position of the first byte.
        first: u64,
        /// Position of the last byte, at least `first`, less than the length.
        last: u64,
    },
    /// 416: no byte asked for exists ([`crate::answer::unsatisfiable`]).
    Unsatisfiable,
}

/// Decides what a request gets of a complete stored answer of `length` bytes.
///
/// Asked after the client's conditions ([`crate::preconditions`]). Only a GET of a stored 200 has ranges; an
/// `If-Range` that does not match strongly, another unit, an invalid field and more than one range all give
/// the whole.
///
/// ```
/// use evenkeel_http::dates::HttpDate;
/// use evenkeel_http::ranges::{RangeAnswer, select};
/// use http::{HeaderMap, HeaderValue, Method, StatusCode, header::RANGE};
///
/// let mut request = HeaderMap::new();
/// request.insert(RANGE, HeaderValue::from_static("bytes=-10"));
/// let received = HttpDate::from_unix_seconds(1_764_440_643);
/// let of = |length| select(&Method::GET, &request, StatusCode::OK, &HeaderMap::new(), length, received);
/// assert_eq!(of(100), RangeAnswer::Part { first: 90, last: 99 });
/// ```
#[must_use]
pub fn select(
    method: &Method,
    request: &HeaderMap,
    stored_status: StatusCode,
    stored: &HeaderMap,
    length: u64,
    received: HttpDate,
) -> RangeAnswer {
    let mut lines = request.get_all(RANGE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return RangeAnswer::Whole;
    };
    if *method != Method::GET || stored_status != StatusCode::OK || !if_range_holds(request, stored, received)
    {
        return RangeAnswer::Whole;
    }
    Spec::parse(line.as_bytes()).map_or(RangeAnswer::Whole, |spec| spec.of(length))
}

/// RFC 9110 §13.1.5: a strong tag that matches strongly, or exactly the stored date if that is a strong
/// validator.
fn if_range_holds(request: &HeaderMap, stored: &HeaderMap, received: HttpDate) -> bool {
    let mut lines = request.get_all(IF_RANGE).iter();
    let Some(line) = lines.next() else {
        return true;
    };
    if lines.next().is_some() {
        return false;
    }
    if let Some(asked) = EntityTag::parse(line.as_bytes()) {
        return EntityTag::of(stored).is_some_and(|tag| tag.strongly_matches(asked));
    }
    let asked = HttpDate::parse(line.as_bytes(), received);
    let modified = HttpDate::from_field(stored, &LAST_MODIFIED, received);
    let date = HttpDate::from_field(stored, &DATE, received);
    match (asked, modified, date) {
        (Some(asked), Some(modified), Some(date)) => {
            asked == modified && date.saturating_since(modified) >= SETTLED
        }
        _ => false,
    }
}

/// One range as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spec {
    /// `first-` or `first-last`.
    From(u64, Option<u64>),
    /// `-count`.
    Last(u64),
}

impl Spec {
    /// Reads a field with exactly one byte range; `None` for several, for other units and for anything invalid.
    fn parse(field: &[u8]) -> Option<Self> {
        let (unit, set) = field.split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes=") {
            return None;
        }
        let set = trim_ows(set);
        let dash = set.iter().position(|byte| *byte == b'-')?;
        let (first, last) = (set.get(..dash)?, set.get(dash + 1..)?);
        match (first.is_empty(), last.is_empty()) {
            (true, true) => None,
            (true, false) => Some(Self::Last(position(last)?)),
            (false, true) => Some(Self::From(position(first)?, None)),
            (false, false) => {
                let (first, last) = (position(first)?, position(last)?);
                (first <= last).then_some(Self::From(first, Some(last)))
            }
        }
    }

    fn of(self, length: u64) -> RangeAnswer {
        let end = length.saturating_sub(1);
        match self {
            Self::Last(0) => RangeAnswer::Unsatisfiable,
            // RFC 9110 §14.1.2: satisfiable, but no Content-Range can say "none of zero bytes".
            Self::Last(_) if length == 0 => RangeAnswer::Whole,
            Self::Last(count) => RangeAnswer::Part {
                first: length.saturating_sub(count),
                last: end,
            },
            Self::From(first, _) if first >= length => RangeAnswer::Unsatisfiable,
            Self::From(first, last) => RangeAnswer::Part {
                first,
                last: last.map_or(end, |last| last.min(end)),
            },
        }
    }
}

/// Reads digits only, saturating: a position past every length is just that.
fn position(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |sum, byte| {
        byte.is_ascii_digit()
            .then(|| sum.saturating_mul(10).saturating_add(u64::from(byte - b'0')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;
    use proptest::prelude::*;

    const RECEIVED: HttpDate = HttpDate::from_unix_seconds(784_111_777); // Sun, 06 Nov 1994 08:49:37 GMT
    const DATE_NOW: (&str, &str) = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");

    fn asked(request: &[(&str, &str)], stored: &[(&str, &str)], length: u64) -> RangeAnswer {
        select(
            &Method::GET,
            &headers(request.iter().copied()),
            StatusCode::OK,
            &headers(stored.iter().copied()),
            length,
            RECEIVED,
        )
    }

    fn of_ten(range: &str) -> RangeAnswer {
        asked(&[("range", range)], &[], 10)
    }

    const fn part(first: u64, last: u64) -> RangeAnswer {
        RangeAnswer::Part { first, last }
    }

    #[test]
    fn one_range_is_answered_to_the_byte() {
        assert_eq!(of_ten("bytes=0-0"), part(0, 0));
        assert_eq!(of_ten("bytes=2-5"), part(2, 5));
        assert_eq!(of_ten("bytes=9-"), part(9, 9));
        assert_eq!(of_ten("Bytes=2-99999999999999999999999"), part(2, 9));
        assert_eq!(of_ten("bytes=-3"), part(7, 9));
        assert_eq!(of_ten("bytes=-30"), part(0, 9));
    }

    #[test]
    fn a_range_past_the_end_is_unsatisfiable_and_an_empty_body_has_none() {
        for range in [
            "bytes=10-",
            "bytes=10-20",
            "bytes=-0",
            "bytes=99999999999999999999999-",
        ] {
            assert_eq!(of_ten(range), RangeAnswer::Unsatisfiable, "{range}");
        }
        assert_eq!(
            asked(&[("range", "bytes=0-")], &[], 0),
            RangeAnswer::Unsatisfiable
        );
        assert_eq!(asked(&[("range", "bytes=-1")], &[], 0), RangeAnswer::Whole);
    }

    #[test]
    fn several_ranges_other_units_and_invalid_fields_give_the_whole() {
        for range in [
            "bytes=0-1,3-4",
            "bytes=0-1,",
            "items=0-1",
            "bytes=5-2",
            "bytes=-",
            "bytes=",
            "bytes 0-1",
            "bytes=a-b",
            "bytes=1--2",
            "bytes=+1-2",
            "",
        ] {
            assert_eq!(of_ten(range), RangeAnswer::Whole, "{range}");
        }
        let twice = [("range", "bytes=0-1"), ("range", "bytes=0-1")];
        assert_eq!(asked(&twice, &[], 10), RangeAnswer::Whole);
        assert_eq!(asked(&[], &[], 10), RangeAnswer::Whole);
    }

    #[test]
    fn only_a_get_of_a_stored_200_has_ranges() {
        let request = headers([("range", "bytes=0-1")]);
        let with =
            |method: Method, status| select(&method, &request, status, &HeaderMap::new(), 10, RECEIVED);
        assert_eq!(with(Method::HEAD, StatusCode::OK), RangeAnswer::Whole);
        assert_eq!(with(Method::GET, StatusCode::NOT_FOUND), RangeAnswer::Whole);
    }

    #[test]
    fn h19_if_range_needs_a_strong_match() {
        let with = |if_range, stored: &[(&str, &str)]| {
            let answer = asked(&[("range", "bytes=0-1"), ("if-range", if_range)], stored, 10);
            answer == part(0, 1)
        };
        assert!(with("\"a\"", &[("etag", "\"a\"")]));
        assert!(!with("\"b\"", &[("etag", "\"a\"")]));
        assert!(!with("W/\"a\"", &[("etag", "W/\"a\"")]));
        assert!(!with("\"a\"", &[("etag", "W/\"a\"")]));
        assert!(!with("a", &[("etag", "\"a\"")]));
        let settled = ("last-modified", "Sun, 06 Nov 1994 08:48:37 GMT");
        let recent = ("last-modified", "Sun, 06 Nov 1994 08:48:38 GMT");
        assert!(with(settled.1, &[settled, DATE_NOW]));
        assert!(!with(recent.1, &[recent, DATE_NOW]));
        assert!(!with(DATE_NOW.1, &[settled, DATE_NOW]));
        assert!(!with(settled.1, &[settled]));
        let twice = [
            ("range", "bytes=0-1"),
            ("if-range", "\"a\""),
            ("if-range", "\"a\""),
        ];
        assert_eq!(asked(&twice, &[("etag", "\"a\"")], 10), RangeAnswer::Whole);
    }

    proptest! {
        #[test]
        fn a_part_lies_within_the_length(line in "bytes=[0-9]{0,22}-[0-9]{0,22}", length in any::<u64>()) {
            if let RangeAnswer::Part { first, last } = asked(&[("range", line.as_str())], &[], length) {
                prop_assert!(first <= last && last < length);
            }
        }

        #[test]
        fn no_bytes_make_it_panic(line in prop::collection::vec(any::<u8>(), 0..40), length in any::<u64>()) {
            if let Ok(value) = http::HeaderValue::from_bytes(&line) {
                let mut request = HeaderMap::new();
                request.insert(RANGE, value.clone());
                request.insert(IF_RANGE, value);
                let answer = select(&Method::GET, &request, StatusCode::OK, &request, length, RECEIVED);
                if let RangeAnswer::Part { last, .. } = answer {
                    prop_assert!(last < length);
                }
            }
        }
    }
}
