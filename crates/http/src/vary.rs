//! Decides which request fields select among the copies of one URI, and whether a stored copy fits the
//! request at hand.
//! It exists because a copy chosen without `Vary` is somebody else's language, coding or account.
//! It refuses `*`, unreadable values and more than [`FIELDS_MAX`] fields: such answers are not kept.

use std::fmt;

use http::header::{ACCEPT_CHARSET, ACCEPT_ENCODING, ACCEPT_LANGUAGE, HeaderMap, HeaderName, VARY};

use crate::dates::HttpDate;
use crate::grammar::{is_ows, list_elements, trim_ows};

/// The most fields one answer may nominate; one more and it is not kept (G29).
pub const FIELDS_MAX: usize = 8;

/// Why the `Vary` of an answer cannot be used to select copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unselectable {
    /// `*`: no later request ever fits (RFC 9111 §4.1).
    Star,
    /// A member is not a field name.
    Unreadable,
    /// More than [`FIELDS_MAX`] different fields.
    TooMany,
}

impl fmt::Display for Unselectable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Star => f.write_str("vary is *, so the answer fits no later request"),
            Self::Unreadable => f.write_str("vary holds a member that is not a field name"),
            Self::TooMany => write!(f, "vary names more than {FIELDS_MAX} fields"),
        }
    }
}

impl std::error::Error for Unselectable {}

/// The request fields an answer nominates in `Vary`: sorted, without repeats, at most [`FIELDS_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nominated(Vec<HeaderName>);

impl Nominated {
    /// Reads all `Vary` lines of a response; without any, nothing is nominated and every request fits.
    ///
    /// # Errors
    ///
    /// When the value cannot select: see [`Unselectable`].
    pub fn of(response: &HeaderMap) -> Result<Self, Unselectable> {
        let mut names = Vec::new();
        for element in response
            .get_all(VARY)
            .iter()
            .flat_map(|line| list_elements(line.as_bytes()))
        {
            if element == b"*" {
                return Err(Unselectable::Star);
            }
            let name = HeaderName::from_bytes(element).map_err(|_| Unselectable::Unreadable)?;
            if names.contains(&name) {
                continue;
            }
            if names.len() == FIELDS_MAX {
                // A star further on would be refused as well, so the rest need not be read.
                return Err(Unselectable::TooMany);
            }
            names.push(name);
        }
        names.sort_unstable_by(|left, right| left.as_str().cmp(right.as_str()));
        Ok(Self(names))
    }

    /// Takes names as they were read once; those beyond [`FIELDS_MAX`] and repeats are no selection: `None`.
    #[must_use]
    pub fn of_names(mut names: Vec<HeaderName>) -> Option<Self> {
        names.sort_unstable_by(|left, right| left.as_str().cmp(right.as_str()));
        let is_usual = names.len() <= FIELDS_MAX && names.windows(2).all(|pair| pair[0] != pair[1]);
        is_usual.then_some(Self(names))
    }

    /// Returns the nominated fields, sorted by name.
    #[must_use]
    pub fn names(&self) -> &[HeaderName] {
        &self.0
    }

    /// Tells whether one of these fields is nominated.
    #[must_use]
    pub fn names_any(&self, fields: &[HeaderName]) -> bool {
        self.0.iter().any(|name| fields.contains(name))
    }

    /// Returns the secondary key of a request: each nominated field with its normalised value,
    /// length-prefixed.
    ///
    /// Two requests select the same copy if and only if their keys are equal. An absent field differs from an
    /// empty one. Many origins read `X_Tenant` as `X-Tenant`, so a field in that spelling counts as well, apart.
    #[must_use]
    pub fn key_of(&self, request: &HeaderMap) -> Vec<u8> {
        let mut key = Vec::new();
        let mut underscored: Vec<(&HeaderName, String)> = Vec::new();
        for name in request.keys().filter(|name| name.as_str().contains('_')) {
            underscored.push((name, name.as_str().replace('_', "-")));
        }
        for name in &self.0 {
            push_prefixed(&mut key, name.as_str().as_bytes());
            match normalised(name, request) {
                None => key.push(0),
                Some(value) => {
                    key.push(1);
                    push_prefixed(&mut key, &value);
                }
            }
            for (other, _) in underscored.iter().filter(|(_, read)| read == name.as_str()) {
                key.push(2);
                push_prefixed(&mut key, other.as_str().as_bytes());
                push_prefixed(&mut key, &normalised(other, request).unwrap_or_default());
            }
        }
        key
    }
}

/// One stored copy among those of its URI: what its answer nominated, and what the request that fetched it
/// held there.
///
/// ```
/// use evenkeel_http::vary::Variant;
/// use http::{HeaderMap, HeaderValue, header::{ACCEPT_ENCODING, VARY}};
///
/// let mut response = HeaderMap::new();
/// response.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
/// let mut gzip = HeaderMap::new();
/// gzip.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
///
/// let stored = Variant::of(&response, &gzip).unwrap();
/// assert!(stored.matches(&gzip));
/// assert!(!stored.matches(&HeaderMap::new())); // absent matches only absent
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    nominated: Nominated,
    key: Vec<u8>,
}

impl Variant {
    /// Describes the copy that this response to this request makes.
    ///
    /// # Errors
    ///
    /// When the response cannot be selected again: see [`Unselectable`].
    pub fn of(response: &HeaderMap, request: &HeaderMap) -> Result<Self, Unselectable> {
        let nominated = Nominated::of(response)?;
        let key = nominated.key_of(request);
        Ok(Self { nominated, key })
    }

    /// Puts a description together again that was taken apart into [`nominated`](Self::nominated) and [`key`](Self::key).
    #[must_use]
    pub const fn of_parts(nominated: Nominated, key: Vec<u8>) -> Self {
        Self { nominated, key }
    }

    /// Returns the fields that select this copy.
    #[must_use]
    pub const fn nominated(&self) -> &Nominated {
        &self.nominated
    }

    /// Returns the secondary key, for hashing and for keeping beside the copy.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Tells whether the copy may answer a request, as far as `Vary` goes (rule C13).
    #[must_use]
    pub fn matches(&self, request: &HeaderMap) -> bool {
        self.nominated.0.is_empty() || self.nominated.key_of(request) == self.key
    }
}

/// Returns the position of the copy to use among those of one URI (rule C14); `None` if none fits.
///
/// Of the copies that fit, the most recent one with a `Vary` is used; only if there is none, the most recent
/// without. `copies` is what the store holds for the URI, which the store bounds.
#[must_use]
pub fn select<'a>(
    copies: impl IntoIterator<Item = (&'a Variant, HttpDate)>,
    request: &HeaderMap,
) -> Option<usize> {
    copies
        .into_iter()
        .enumerate()
        .filter(|(_, (variant, _))| variant.matches(request))
        .max_by_key(|(_, (variant, date))| (!variant.nominated.0.is_empty(), *date))
        .map(|(position, _)| position)
}

/// Returns the value of a request field in the form in which it is compared; `None` if the field is absent.
///
/// Lines are joined with ", " in order (RFC 9110 §5.3). In the three fields whose members are plain tokens,
/// case and the whitespace around commas and semicolons carry no meaning and are removed; everywhere else the
/// value stays as it is, since a needless miss is harmless and a false match is not.
fn normalised(name: &HeaderName, request: &HeaderMap) -> Option<Vec<u8>> {
    let mut lines = request.get_all(name).iter().map(|line| trim_ows(line.as_bytes()));
    let mut value = lines.next()?.to_vec();
    for line in lines {
        value.extend_from_slice(b", ");
        value.extend_from_slice(line);
    }
    if [ACCEPT_ENCODING, ACCEPT_LANGUAGE, ACCEPT_CHARSET].contains(name) {
        value = without_idle_whitespace(&value);
        value.make_ascii_lowercase();
    }
    Some(value)
}

fn without_idle_whitespace(value: &[u8]) -> Vec<u8> {
    let mut kept: Vec<u8> = Vec::with_capacity(value.len());
    for byte in value {
        if matches!(byte, b',' | b';') {
            while kept.pop_if(|last| is_ows(*last)).is_some() {}
        } else if is_ows(*byte) && matches!(kept.last(), Some(b',' | b';')) {
            continue;
        }
        kept.push(*byte);
    }
    kept
}

fn push_prefixed(key: &mut Vec<u8>, text: &[u8]) {
    key.extend_from_slice(&(text.len() as u64).to_be_bytes());
    key.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;
    use proptest::prelude::*;

    fn variant(vary: &[&str], request: &[(&str, &str)]) -> Variant {
        let response = headers(vary.iter().map(|line| ("vary", *line)));
        Variant::of(&response, &headers(request.iter().copied())).unwrap()
    }

    fn refused(vary: &str) -> Unselectable {
        Nominated::of(&headers([("vary", vary)])).unwrap_err()
    }

    #[test]
    fn c13_every_nominated_field_must_match() {
        let stored = variant(
            &["Accept-Language, X-Tenant"],
            &[("accept-language", "de"), ("x-tenant", "a")],
        );
        assert!(stored.matches(&headers([
            ("x-tenant", "a"),
            ("accept-language", "de"),
            ("x-other", "1")
        ])));
        assert!(!stored.matches(&headers([("x-tenant", "b"), ("accept-language", "de")])));
        assert!(!stored.matches(&headers([("x-tenant", "a")])));
    }

    #[test]
    fn c13_a_field_that_an_origin_may_read_as_a_nominated_one_selects_too() {
        let request = |name| headers([(name, "b")]);
        for fetched in ["x_tenant", "x-tenant", "x-other"] {
            let stored = variant(&["X-Tenant"], &[(fetched, "b")]);
            for name in ["x_tenant", "x-tenant", "x-other"] {
                assert_eq!(
                    stored.matches(&request(name)),
                    fetched == name,
                    "{fetched} {name}"
                );
            }
            assert_eq!(stored.matches(&headers([])), fetched == "x-other");
        }
        // What nobody reads as a nominated field selects nothing.
        let stored = variant(&["Accept-Language"], &[("x_tenant", "b")]);
        assert!(stored.matches(&headers([])));
    }

    #[test]
    fn c13_absent_matches_only_absent() {
        let absent = variant(&["x-a"], &[]);
        assert!(absent.matches(&HeaderMap::new()));
        assert!(!absent.matches(&headers([("x-a", "")])));
        let empty = variant(&["x-a"], &[("x-a", "")]);
        assert!(!empty.matches(&HeaderMap::new()));
    }

    #[test]
    fn c13_vary_star_never_matches() {
        assert_eq!(refused("*"), Unselectable::Star);
        assert_eq!(refused("accept, *"), Unselectable::Star);
        let two_lines = headers([("vary", "accept"), ("vary", "*")]);
        assert_eq!(Nominated::of(&two_lines), Err(Unselectable::Star));
    }

    #[test]
    fn without_vary_every_request_fits() {
        let stored = variant(&[], &[("accept", "text/html")]);
        assert!(stored.matches(&HeaderMap::new()) && stored.key().is_empty());
        assert!(variant(&["", " , "], &[]).nominated().names().is_empty());
    }

    #[test]
    fn an_unreadable_vary_cannot_select() {
        assert_eq!(refused("accept encoding"), Unselectable::Unreadable);
        assert_eq!(refused("accept;q=1"), Unselectable::Unreadable);
    }

    #[test]
    fn g29_the_number_of_nominated_fields_is_capped() {
        let names = |count: usize| {
            (0..count)
                .map(|at| format!("x-{at}"))
                .collect::<Vec<_>>()
                .join(",")
        };
        let at_limit = headers([("vary", names(FIELDS_MAX).as_str()), ("vary", "X-0, x-1")]);
        assert_eq!(Nominated::of(&at_limit).unwrap().names().len(), FIELDS_MAX);
        assert_eq!(refused(&names(FIELDS_MAX + 1)), Unselectable::TooMany);
    }

    #[test]
    fn order_case_and_repeats_in_vary_do_not_matter() {
        let request = [("accept", "a"), ("x-b", "b")];
        assert_eq!(
            variant(&["Accept, X-B"], &request),
            variant(&["x-b", "accept, x-b"], &request)
        );
    }

    #[test]
    fn two_lines_equal_one_combined_line_and_other_order_does_not() {
        let stored = variant(&["x-a"], &[("x-a", "1"), ("x-a", "2")]);
        assert!(stored.matches(&headers([("x-a", "1, 2")])));
        assert!(!stored.matches(&headers([("x-a", "2, 1")])));
    }

    #[test]
    fn g29_idle_whitespace_and_case_of_coding_lists_are_normalised() {
        let stored = variant(&["accept-encoding"], &[("accept-encoding", "gzip;q=1.0,br")]);
        assert!(stored.matches(&headers([("accept-encoding", "GZip; q=1.0 ,\t br ")])));
        assert!(!stored.matches(&headers([("accept-encoding", "gzi p;q=1.0,br")])));
        let opaque = variant(&["user-agent"], &[("user-agent", "A, b")]);
        assert!(!opaque.matches(&headers([("user-agent", "A,b")])));
    }

    #[test]
    fn g28_values_cannot_be_shifted_between_fields() {
        let vary = ["x-a, x-b"];
        let left = variant(&vary, &[("x-a", "1"), ("x-b", "23")]);
        assert!(!left.matches(&headers([("x-a", "12"), ("x-b", "3")])));
    }

    #[test]
    fn c14_the_most_recent_copy_with_vary_wins_over_one_without() {
        // Case 059: a plain copy without Vary and a gzip copy with it.
        let plain = variant(&[], &[]);
        let gzip = variant(&["accept-encoding"], &[("accept-encoding", "gzip")]);
        let at = HttpDate::from_unix_seconds;
        let copies = [(&gzip, at(1)), (&plain, at(3)), (&gzip, at(2))];
        assert_eq!(select(copies, &headers([("accept-encoding", "gzip")])), Some(2));
        assert_eq!(select(copies, &HeaderMap::new()), Some(1));
        assert_eq!(select([(&gzip, at(1))], &HeaderMap::new()), None);
    }

    proptest! {
        #[test]
        fn keys_are_equal_only_for_equal_fields(
            left in prop::collection::vec(prop::option::of("[ -~]{0,6}"), 3),
            right in prop::collection::vec(prop::option::of("[ -~]{0,6}"), 3),
        ) {
            let request = |values: &[Option<String>]| {
                let mut map = HeaderMap::new();
                for (name, value) in ["x-a", "x-b", "x-c"].into_iter().zip(values) {
                    if let Some(value) = value {
                        map.append(name, value.parse().unwrap());
                    }
                }
                map
            };
            let trimmed = |values: &[Option<String>]| {
                let trim = |value: &Option<String>| value.as_deref().map(|text| text.trim_matches(' ').to_owned());
                values.iter().map(trim).collect::<Vec<_>>()
            };
            let nominated = Nominated::of(&headers([("vary", "x-a, x-b, x-c")])).unwrap();
            let same_key = nominated.key_of(&request(&left)) == nominated.key_of(&request(&right));
            prop_assert_eq!(same_key, trimmed(&left) == trimmed(&right));
        }

        #[test]
        fn no_bytes_make_the_reader_panic(line in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(value) = http::HeaderValue::from_bytes(&line) {
                let mut map = HeaderMap::new();
                map.append(VARY, value);
                if let Ok(nominated) = Nominated::of(&map) {
                    prop_assert!(nominated.names().len() <= FIELDS_MAX);
                }
            }
        }
    }
}
