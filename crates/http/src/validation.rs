//! Decides how a request to the origin is made from a client's: with our conditions in place of theirs, or
//! with none (RFC 9111 §4.3.1).
//! It exists so that the answer is one the cache can use: a full answer to store, or a 304 about a copy that it
//! has.
//! It refuses to touch anything else: method, target, the fields that `Vary` nominates and all others go on as
//! they came, for a background refresh too.

use http::header::{
    CACHE_CONTROL, ETAG, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED,
    PRAGMA, RANGE,
};

use crate::dates::HttpDate;
use crate::etag::EntityTag;

/// The most entity tags one validation names; of more copies the first ones passed count.
pub const TAGS_MAX: usize = 8;

/// Removes the client's conditions and ranges, so that a full answer comes back: for a fetch.
///
/// They are kept by the caller and evaluated on the answer ([`crate::preconditions`], [`crate::ranges`]).
/// `If-Match` and `If-Unmodified-Since` go on: they are the origin's to judge.
pub fn make_unconditional(request: &mut HeaderMap) {
    for name in [IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_RANGE, RANGE] {
        request.remove(name);
    }
}

/// Puts the validators of stored copies in place of the client's conditions: for a validation (C21).
///
/// `selected` are the stored headers of the copy to validate, `others` those of further copies that fit the
/// request and whose tags may be named as well: a 304 then says which of them holds. `If-None-Match` names every
/// tag that can be read, at most [`TAGS_MAX`]. `If-Modified-Since` is the `Last-Modified` of `selected` as it
/// was received, left out where several tags are named (§4.3.1). Tells whether the request is conditional now;
/// it is not if there was nothing to validate by.
///
/// ```
/// use evenkeel_http::dates::HttpDate;
/// use evenkeel_http::validation::make_conditional;
/// use http::{HeaderMap, HeaderValue, header::{ETAG, IF_NONE_MATCH}};
///
/// let mut stored = HeaderMap::new();
/// stored.insert(ETAG, HeaderValue::from_static("\"v1\""));
/// let mut request = HeaderMap::new();
/// request.insert(IF_NONE_MATCH, HeaderValue::from_static("\"the client's\""));
/// let received = HttpDate::from_unix_seconds(1_764_440_643);
/// assert!(make_conditional(&mut request, &stored, [], received));
/// assert_eq!(request[IF_NONE_MATCH], "\"v1\"");
/// ```
pub fn make_conditional<'a>(
    request: &mut HeaderMap,
    selected: &'a HeaderMap,
    others: impl IntoIterator<Item = &'a HeaderMap>,
    received: HttpDate,
) -> bool {
    make_unconditional(request);
    let mut tags: Vec<&HeaderValue> = Vec::new();
    for copy in std::iter::once(selected).chain(others) {
        let readable = copy.get(ETAG).filter(|_| EntityTag::of(copy).is_some());
        if let Some(tag) = readable
            && !tags.contains(&tag)
            && tags.len() < TAGS_MAX
        {
            tags.push(tag);
        }
    }
    let line = tags
        .iter()
        .map(|tag| tag.as_bytes())
        .collect::<Vec<_>>()
        .join(b", ".as_slice());
    if let Ok(line) = HeaderValue::from_bytes(&line)
        && !tags.is_empty()
    {
        request.insert(IF_NONE_MATCH, line);
    }
    if let Some(modified) = selected.get(LAST_MODIFIED)
        && tags.len() <= 1
        && HttpDate::parse(modified.as_bytes(), received).is_some()
    {
        request.insert(IF_MODIFIED_SINCE, modified.clone());
    }
    request.contains_key(IF_NONE_MATCH) || request.contains_key(IF_MODIFIED_SINCE)
}

/// Makes the request of a background refresh from the one that triggered it (S02): the caller's own
/// `Cache-Control` and `Pragma` go as well, since nobody waits and the result is for everyone.
///
/// The trigger fits the copy by `Vary`, so the nominated fields are those of the request that fetched it
/// (C21). Call [`make_conditional`] next.
pub fn make_refresh(request: &mut HeaderMap) {
    make_unconditional(request);
    request.remove(CACHE_CONTROL);
    request.remove(PRAGMA);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;

    const RECEIVED: HttpDate = HttpDate::from_unix_seconds(784_111_777);
    const MODIFIED: (&str, &str) = ("last-modified", "Sun, 06 Nov 1994 07:49:37 GMT");

    #[test]
    fn c21_the_stored_validators_take_the_place_of_the_clients_and_other_fields_stay() {
        let mut request = headers([
            ("if-none-match", "\"client\""),
            ("if-modified-since", "Sun, 06 Nov 1904 07:49:37 GMT"),
            ("range", "bytes=0-1"),
            ("if-range", "\"client\""),
            ("accept-language", "de"),
            ("if-match", "\"x\""),
        ]);
        let stored = headers([("etag", "W/\"a\""), MODIFIED]);
        assert!(make_conditional(&mut request, &stored, [], RECEIVED));
        let expected = headers([
            ("accept-language", "de"),
            ("if-match", "\"x\""),
            ("if-none-match", "W/\"a\""),
            ("if-modified-since", MODIFIED.1),
        ]);
        assert_eq!(request, expected);
    }

    #[test]
    fn c21_the_tags_of_all_variants_are_named_once_and_at_most_eight() {
        let tagged: Vec<_> = (0..20)
            .map(|at| headers([("etag", format!("\"{}\"", at % 10).as_str()), MODIFIED]))
            .collect();
        let mut request = HeaderMap::new();
        assert!(make_conditional(&mut request, &tagged[0], &tagged[1..], RECEIVED));
        let line = request[IF_NONE_MATCH].to_str().unwrap();
        assert_eq!(line, r#""0", "1", "2", "3", "4", "5", "6", "7""#);
        assert!(!request.contains_key(IF_MODIFIED_SINCE));
    }

    #[test]
    fn c21_without_readable_validators_the_request_is_unconditional() {
        let stored = headers([("etag", "bare"), ("last-modified", "yesterday")]);
        let mut request = headers([("if-none-match", "\"client\"")]);
        assert!(!make_conditional(&mut request, &stored, [], RECEIVED));
        assert!(request.is_empty());
    }

    #[test]
    fn s02_a_refresh_carries_none_of_its_triggers_wishes() {
        let mut request = headers([
            ("cache-control", "max-stale=5, no-store"),
            ("pragma", "no-cache"),
            ("range", "bytes=0-1"),
            ("x-tenant", "a"),
        ]);
        make_refresh(&mut request);
        assert_eq!(request, headers([("x-tenant", "a")]));
    }
}
