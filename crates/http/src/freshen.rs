//! Decides which stored copies a 304 or the answer to a HEAD speaks of, and what of them it updates (RFC 9111
//! §3.2, §4.3.4, §4.3.5).
//! It exists because a wrong match puts one representation's headers on another's body.
//! It refuses to touch what describes the stored bytes, and to let a 304 set anybody's cookie.

use http::StatusCode;
use http::header::{
    AGE, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, DATE, ETAG, HeaderMap, HeaderName, LAST_MODIFIED,
    SET_COOKIE,
};

use crate::dates::HttpDate;
use crate::etag::EntityTag;
use crate::hop::strip_hop_by_hop;

/// The fields an update never changes: they describe the stored bytes (C24), or one exchange (`Age`, C10;
/// `Set-Cookie`, C33).
static NOT_UPDATED: [HeaderName; 5] = [CONTENT_LENGTH, CONTENT_ENCODING, CONTENT_RANGE, AGE, SET_COOKIE];

/// Returns the positions of the stored copies that a 304 updates (C23); empty if it speaks of none, and then
/// the request is sent again without conditions.
///
/// `copies` are those of the URI that fit the request, with the time each was received; the store bounds them.
///
/// - The 304 has a strong tag: every copy with the same strong tag.
/// - It has a weak tag or only a `Last-Modified`: the most recent copy with that validator. The most recent
///   also counts where the other side's tag is strong: the weak comparison is the one that validated it.
/// - It has no validator: the only copy, because the request that it answers named that one's validators and no
///   others. RFC 9111 §4.3.4 asks that the copy lack validators too; but origins leave `Last-Modified` out of a
///   304 (RFC 9110 §15.4.5 lets them), and then every validation would cost a second request.
///
/// ```
/// use evenkeel_http::dates::HttpDate;
/// use evenkeel_http::freshen::updated_by;
/// use http::{HeaderMap, HeaderValue, header::ETAG};
///
/// let tagged = |tag| HeaderMap::from_iter([(ETAG, HeaderValue::from_static(tag))]);
/// let (old, new) = (tagged("\"v1\""), tagged("\"v2\""));
/// let at = HttpDate::from_unix_seconds;
/// assert_eq!(updated_by(&tagged("\"v1\""), [(&old, at(1)), (&new, at(2))]), [0]);
/// assert_eq!(updated_by(&tagged("\"v3\""), [(&old, at(1)), (&new, at(2))]), [0; 0]);
/// ```
#[must_use]
pub fn updated_by<'a>(
    not_modified: &HeaderMap,
    copies: impl IntoIterator<Item = (&'a HeaderMap, HttpDate)>,
) -> Vec<usize> {
    let copies: Vec<_> = copies.into_iter().enumerate().collect();
    let tag = EntityTag::of(not_modified);
    if let Some(strong) = tag.filter(|tag| !tag.is_weak()) {
        return copies
            .iter()
            .filter(|(_, (stored, _))| EntityTag::of(stored).is_some_and(|tag| tag.strongly_matches(strong)))
            .map(|(position, _)| *position)
            .collect();
    }
    let modified = not_modified.get(LAST_MODIFIED);
    if tag.is_none() && modified.is_none() && !not_modified.contains_key(ETAG) {
        return match copies.as_slice() {
            [(position, _)] => vec![*position],
            _ => Vec::new(),
        };
    }
    let matches = |stored: &HeaderMap| match tag {
        Some(tag) => EntityTag::of(stored).is_some_and(|stored| stored.weakly_matches(tag)),
        None => modified.is_some() && stored.get(LAST_MODIFIED) == modified,
    };
    copies
        .iter()
        .filter(|(_, (stored, _))| matches(stored))
        .max_by_key(|(_, (_, received))| *received)
        .map(|(position, _)| *position)
        .into_iter()
        .collect()
}

/// Updates the stored headers of a copy from a 304, or from the answer to a HEAD (C22, C24, G21).
///
/// Each field of `newer` takes the place of all stored lines of that name, save what describes the stored
/// bytes; fields it omits stay, a stored `Vary` too. The stored `Age` goes: the age counts from this answer
/// ([`crate::age::corrected_initial_age`] of `newer`). Without a `Date` of its own it gets `received` (H16).
///
/// Afterwards ask [`crate::store_rules::may_store`] again with the updated headers (the origin may have said
/// `no-store` meanwhile), and make [`crate::stored::StoredCopy`] and [`crate::vary::Variant`] anew.
pub fn update(stored: &mut HeaderMap, newer: &HeaderMap, received: HttpDate) {
    let mut newer = newer.clone();
    strip_hop_by_hop(&mut newer);
    for name in &NOT_UPDATED {
        newer.remove(name);
    }
    stored.remove(AGE);
    for name in newer.keys() {
        stored.remove(name);
        for line in newer.get_all(name) {
            stored.append(name, line.clone());
        }
    }
    if !newer.contains_key(DATE) {
        stored.insert(DATE, received.to_value());
    }
}

/// What the answer to a HEAD means for a stored GET.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeadEffect {
    /// It describes the same representation: [`update`] the copy; its body stays.
    Freshens,
    /// It describes another: the copy is no longer fresh ([`crate::stored::StoredCopy::expired`]).
    Outdates,
    /// It says nothing about the copy.
    Nothing,
}

/// Decides what the answer to a HEAD means for a stored GET that fits the request (C25).
///
/// Only a 200 speaks of a stored 200. Each of `ETag`, `Last-Modified` and `Content-Length` that the answer has
/// must equal the stored one; `stored_length` is that of the stored body, which needs no field. An answer with
/// none of the three says nothing.
#[must_use]
pub fn head_effect(
    head_status: StatusCode,
    head: &HeaderMap,
    stored_status: StatusCode,
    stored: &HeaderMap,
    stored_length: u64,
) -> HeadEffect {
    if head_status != StatusCode::OK || stored_status != StatusCode::OK {
        return HeadEffect::Nothing;
    }
    let validators = [ETAG, LAST_MODIFIED]
        .into_iter()
        .filter_map(|name| Some(stored.get(&name) == Some(head.get(&name)?)));
    let length = head.get(CONTENT_LENGTH).map(|length| {
        let length = std::str::from_utf8(length.as_bytes()).map(str::parse::<u64>);
        matches!(length, Ok(Ok(length)) if length == stored_length)
    });
    let mut compared = validators.chain(length).peekable();
    if compared.peek().is_none() {
        HeadEffect::Nothing
    } else if compared.all(|same| same) {
        HeadEffect::Freshens
    } else {
        HeadEffect::Outdates
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;

    const AT: fn(i64) -> HttpDate = HttpDate::from_unix_seconds;
    const MODIFIED: (&str, &str) = ("last-modified", "Sun, 06 Nov 1994 07:49:37 GMT");

    type Lines<'a> = &'a [(&'a str, &'a str)];

    fn updated(not_modified: Lines<'_>, copies: &[Lines<'_>]) -> Vec<usize> {
        let copies: Vec<_> = copies
            .iter()
            .map(|lines| headers(lines.iter().copied()))
            .collect();
        updated_by(
            &headers(not_modified.iter().copied()),
            copies.iter().zip((0..).map(AT)),
        )
    }

    #[test]
    fn c23_a_strong_tag_updates_every_copy_that_has_it_and_no_other() {
        let copies: &[Lines<'_>] = &[&[("etag", "\"a\"")], &[("etag", "\"b\"")], &[("etag", "\"a\"")]];
        assert_eq!(updated(&[("etag", "\"a\"")], copies), [0, 2]);
        assert_eq!(updated(&[("etag", "\"z\"")], copies), [0; 0]);
        assert_eq!(updated(&[("etag", "\"a\"")], &[&[("etag", "W/\"a\"")]]), [0; 0]);
        assert_eq!(updated(&[("etag", "\"z\""), MODIFIED], &[&[MODIFIED]]), [0; 0]);
    }

    #[test]
    fn c23_a_weak_validator_updates_the_most_recent_copy_that_has_it() {
        let weak: Lines<'_> = &[("etag", "W/\"a\"")];
        assert_eq!(updated(weak, &[weak, weak, &[("etag", "W/\"b\"")]]), [1]);
        assert_eq!(updated(weak, &[&[("etag", "\"a\"")]]), [0]);
        assert_eq!(updated(&[MODIFIED], &[&[MODIFIED], &[MODIFIED], &[]]), [1]);
        assert_eq!(
            updated(
                &[("last-modified", "Sun, 06 Nov 1994 08:00:00 GMT")],
                &[&[MODIFIED]]
            ),
            [0; 0]
        );
    }

    #[test]
    fn c23_without_a_validator_only_a_single_copy_is_updated() {
        assert_eq!(updated(&[], &[&[]]), [0]);
        assert_eq!(updated(&[], &[&[], &[]]), [0; 0]);
        assert_eq!(updated(&[], &[&[MODIFIED]]), [0]);
        assert_eq!(updated(&[], &[&[MODIFIED], &[]]), [0; 0]);
        assert_eq!(updated(&[("etag", "broken")], &[&[]]), [0; 0]);
    }

    #[test]
    fn c24_an_update_changes_all_but_what_describes_the_bytes() {
        let mut stored = headers([
            ("content-length", "10"),
            ("content-encoding", "gzip"),
            ("vary", "accept-encoding"),
            ("content-type", "text/plain"),
            ("x-list", "1"),
            ("x-list", "2"),
            ("x-kept", "1"),
            ("age", "500"),
            ("cache-control", "max-age=1"),
        ]);
        let newer = headers([
            ("content-length", "0"),
            ("content-encoding", "br"),
            ("content-range", "bytes 0-1/2"),
            ("content-type", "text/html"),
            ("x-list", "3"),
            ("age", "7"),
            ("set-cookie", "id=1"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("cache-control", "max-age=60"),
        ]);
        update(&mut stored, &newer, AT(0));
        let expected = headers([
            ("content-length", "10"),
            ("content-encoding", "gzip"),
            ("vary", "accept-encoding"),
            ("content-type", "text/html"),
            ("x-list", "3"),
            ("x-kept", "1"),
            ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("cache-control", "max-age=60"),
        ]);
        assert_eq!(stored, expected);
    }

    #[test]
    fn h16_an_update_without_date_counts_from_its_receipt() {
        let mut stored = headers([("date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("age", "9")]);
        update(&mut stored, &HeaderMap::new(), AT(784_111_877));
        assert_eq!(stored, headers([("date", "Sun, 06 Nov 1994 08:51:17 GMT")]));
    }

    #[test]
    fn c25_a_head_freshens_or_outdates_by_validators_and_length() {
        let stored = headers([("etag", "\"a\""), MODIFIED]);
        let effect = |lines: Lines<'_>| {
            let head = headers(lines.iter().copied());
            head_effect(StatusCode::OK, &head, StatusCode::OK, &stored, 10)
        };
        assert_eq!(
            effect(&[("etag", "\"a\""), ("content-length", "10")]),
            HeadEffect::Freshens
        );
        assert_eq!(effect(&[("etag", "\"b\"")]), HeadEffect::Outdates);
        assert_eq!(
            effect(&[MODIFIED, ("content-length", "11")]),
            HeadEffect::Outdates
        );
        assert_eq!(effect(&[("content-length", "x")]), HeadEffect::Outdates);
        assert_eq!(effect(&[]), HeadEffect::Nothing);
    }

    #[test]
    fn c25_other_statuses_say_nothing() {
        let map = headers([("etag", "\"b\"")]);
        for (head, stored) in [(404, 200), (304, 200), (200, 404)] {
            let status = |code| StatusCode::from_u16(code).unwrap();
            assert_eq!(
                head_effect(status(head), &map, status(stored), &HeaderMap::new(), 0),
                HeadEffect::Nothing
            );
        }
    }
}
