//! Decides what the `Cache-Control` lines of a request or a response say, as plain fields that the other
//! rules read.
//! It exists so that the field is parsed once per message, over all its lines, by one grammar.
//! It refuses to be generous: an invalid number is a lifetime of zero, and a value outside the grammar is
//! reported as unreadable.

use std::time::Duration;

use http::StatusCode;
use http::header::{CACHE_CONTROL, HeaderMap, PRAGMA};

use crate::delays::{DELTA_SECONDS_MAX, delta_seconds};
use crate::grammar::{Argument, Directive, Directives, list_elements};
use crate::status::understood;

/// What `Cache-Control` says in a response (RFC 9111 §5.2.2, RFC 5861).
///
/// Repeated directives: the first number counts, and a flag once set stays set (rule C06). Unknown directives
/// are ignored. Numbers that are negative, fractions, text or missing are zero; oversized ones are clamped
/// (C07). Qualified `private="f"` and `no-cache="f"` count as unqualified (C05). Permissions (`public`) are
/// honoured only in the form the grammar gives them, prohibitions in any form.
///
/// ```
/// use evenkeel_http::directives::ResponseDirectives;
/// use http::{HeaderMap, HeaderValue, header::CACHE_CONTROL};
/// use std::time::Duration;
///
/// let mut headers = HeaderMap::new();
/// headers.append(CACHE_CONTROL, HeaderValue::from_static("max-age=60, stale-if-error=\"300\""));
/// headers.append(CACHE_CONTROL, HeaderValue::from_static("private=\"x-user\""));
/// let said = ResponseDirectives::of(&headers);
/// assert_eq!(said.max_age, Some(Duration::from_secs(60)));
/// assert_eq!(said.stale_if_error, Some(Duration::from_secs(300)));
/// assert!(said.private && !said.unreadable);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseDirectives {
    /// `no-store`: nothing of this exchange may be kept (§5.2.2.5).
    pub no_store: bool,
    /// `no-cache`: not to be given without a successful validation (§5.2.2.4).
    pub no_cache: bool,
    /// `private`: for one user only (§5.2.2.7).
    pub private: bool,
    /// `public`: may be kept even where it otherwise might not (§5.2.2.9).
    pub public: bool,
    /// `must-revalidate`: never to be given stale (§5.2.2.2).
    pub must_revalidate: bool,
    /// `proxy-revalidate`: never to be given stale by a shared cache (§5.2.2.8).
    pub proxy_revalidate: bool,
    /// `must-understand`: to be kept only by who knows the status (§5.2.2.3); see
    /// [`Self::forbids_storing`].
    pub must_understand: bool,
    /// `no-transform`: the content must not be changed on the way (§5.2.2.6).
    pub no_transform: bool,
    /// `max-age`: lifetime in any cache (§5.2.2.1).
    pub max_age: Option<Duration>,
    /// `s-maxage`: lifetime in shared caches, before all others (§5.2.2.10).
    pub s_maxage: Option<Duration>,
    /// `stale-while-revalidate`: staleness up to which it may be given while it is being refreshed (RFC 5861
    /// §3).
    pub stale_while_revalidate: Option<Duration>,
    /// `stale-if-error`: staleness up to which it may be given on an error (RFC 5861 §4).
    pub stale_if_error: Option<Duration>,
    /// Some part of the value is outside the grammar. Such an answer is not kept and not given stale (G31).
    pub unreadable: bool,
}

impl ResponseDirectives {
    /// Reads all `Cache-Control` lines of a response; without any, every field is unset.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let mut said = Self::default();
        for line in headers.get_all(CACHE_CONTROL) {
            for directive in Directives::of(line.as_bytes()) {
                said.add(directive);
            }
        }
        said
    }

    /// Tells whether `no-store` holds for an answer with this status (rules C01, C03).
    ///
    /// `must-understand` beside it sets it aside for a status whose rules are known here: `no-store` then
    /// speaks to caches that do not know `must-understand` (§5.2.2.3).
    #[must_use]
    pub const fn forbids_storing(&self, status: StatusCode) -> bool {
        self.no_store && !(self.must_understand && understood(status))
    }

    fn add(&mut self, Directive { name, argument }: Directive<'_>) {
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted.as_bytes());
        self.unreadable |= argument == Argument::Broken;
        // By length first: one comparison per directive instead of twelve.
        match name.len() {
            6 if is("public") => self.public |= argument == Argument::Absent,
            7 if is("max-age") => keep_first(&mut self.max_age, argument),
            7 if is("private") => self.private = true,
            8 if is("no-store") => self.no_store = true,
            8 if is("no-cache") => self.no_cache = true,
            8 if is("s-maxage") => keep_first(&mut self.s_maxage, argument),
            12 if is("no-transform") => self.no_transform = true,
            14 if is("stale-if-error") => keep_first(&mut self.stale_if_error, argument),
            15 if is("must-revalidate") => self.must_revalidate = true,
            15 if is("must-understand") => self.must_understand = true,
            16 if is("proxy-revalidate") => self.proxy_revalidate = true,
            22 if is("stale-while-revalidate") => keep_first(&mut self.stale_while_revalidate, argument),
            _ => {}
        }
    }
}

/// What `Cache-Control` says in a request (RFC 9111 §5.2.1, RFC 5861 §4).
///
/// The same reading rules as for responses; without any `Cache-Control` line, `Pragma: no-cache` means
/// `no-cache` (§5.4; a request only, in a response it means nothing). An invalid number takes the meaning that asks for the most:
/// `max-age` zero, `min-fresh` the greatest value, `max-stale` and `stale-if-error` zero.
///
/// ```
/// use evenkeel_http::directives::{MaxStale, RequestDirectives};
/// use http::{HeaderMap, HeaderValue, header::CACHE_CONTROL};
///
/// let mut headers = HeaderMap::new();
/// headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, max-stale"));
/// let asked = RequestDirectives::of(&headers);
/// assert!(asked.no_cache);
/// assert_eq!(asked.max_stale, Some(MaxStale::Any));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestDirectives {
    /// `no-store`: keep nothing of this exchange (§5.2.1.5).
    pub no_store: bool,
    /// `no-cache`: answer only after asking (§5.2.1.4).
    pub no_cache: bool,
    /// `no-transform`: the content must not be changed on the way (§5.2.1.6).
    pub no_transform: bool,
    /// `only-if-cached`: do not ask; 504 if nothing usable is kept (§5.2.1.7).
    pub only_if_cached: bool,
    /// `max-age`: greatest age wanted (§5.2.1.1).
    pub max_age: Option<Duration>,
    /// `min-fresh`: least remaining lifetime wanted (§5.2.1.3).
    pub min_fresh: Option<Duration>,
    /// `max-stale`: staleness accepted (§5.2.1.2).
    pub max_stale: Option<MaxStale>,
    /// `stale-if-error`: staleness accepted on an error, for this request only (rule S05).
    pub stale_if_error: Option<Duration>,
    /// Some part of the value is outside the grammar.
    pub unreadable: bool,
}

/// The staleness a request accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxStale {
    /// `max-stale` without a value: any staleness.
    Any,
    /// `max-stale=n`: at most this much.
    UpTo(Duration),
}

impl RequestDirectives {
    /// Reads all `Cache-Control` lines of a request; without any, every field is unset.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let mut asked = Self::default();
        for line in headers.get_all(CACHE_CONTROL) {
            for directive in Directives::of(line.as_bytes()) {
                asked.add(directive);
            }
        }
        if !headers.contains_key(CACHE_CONTROL) {
            asked.no_cache = pragma_no_cache(headers);
        }
        asked
    }

    fn add(&mut self, Directive { name, argument }: Directive<'_>) {
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted.as_bytes());
        self.unreadable |= argument == Argument::Broken;
        match name.len() {
            7 if is("max-age") => keep_first(&mut self.max_age, argument),
            8 if is("no-store") => self.no_store = true,
            8 if is("no-cache") => self.no_cache = true,
            9 if is("max-stale") => {
                let accepted = match argument {
                    Argument::Absent => MaxStale::Any,
                    Argument::Text(_) | Argument::Broken => {
                        MaxStale::UpTo(seconds(argument).unwrap_or_default())
                    }
                };
                self.max_stale = self.max_stale.or(Some(accepted));
            }
            9 if is("min-fresh") => {
                let wanted = seconds(argument).unwrap_or(Duration::from_secs(DELTA_SECONDS_MAX));
                self.min_fresh = self.min_fresh.or(Some(wanted));
            }
            12 if is("no-transform") => self.no_transform = true,
            14 if is("only-if-cached") => self.only_if_cached = true,
            14 if is("stale-if-error") => keep_first(&mut self.stale_if_error, argument),
            _ => {}
        }
    }
}

fn pragma_no_cache(headers: &HeaderMap) -> bool {
    headers
        .get_all(PRAGMA)
        .iter()
        .flat_map(|line| list_elements(line.as_bytes()))
        .any(|element| element.eq_ignore_ascii_case(b"no-cache"))
}

/// RFC 9111 §4.2.1: of several values the first is used, and an invalid one means stale.
fn keep_first(slot: &mut Option<Duration>, argument: Argument<'_>) {
    if slot.is_none() {
        *slot = Some(seconds(argument).unwrap_or_default());
    }
}

/// RFC 9111 §5.2: both the token and the quoted form of an argument are accepted.
fn seconds(argument: Argument<'_>) -> Option<Duration> {
    match argument {
        Argument::Text(text) => delta_seconds(text),
        Argument::Absent | Argument::Broken => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;
    use proptest::prelude::*;

    fn said(lines: &[&str]) -> ResponseDirectives {
        ResponseDirectives::of(&headers(lines.iter().map(|line| ("cache-control", *line))))
    }

    fn asked(line: &str) -> RequestDirectives {
        RequestDirectives::of(&headers([("cache-control", line)]))
    }

    const fn secs(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    #[test]
    fn every_response_directive_is_read_whatever_its_case() {
        let all = "No-Store, NO-CACHE, private, Public, must-revalidate, proxy-revalidate, \
                   must-understand, no-transform, \
                   Max-Age=1, S-MaxAge=2, stale-while-revalidate=3, Stale-If-Error=4";
        assert_eq!(
            said(&[all]),
            ResponseDirectives {
                no_store: true,
                no_cache: true,
                private: true,
                public: true,
                must_revalidate: true,
                proxy_revalidate: true,
                must_understand: true,
                no_transform: true,
                max_age: secs(1),
                s_maxage: secs(2),
                stale_while_revalidate: secs(3),
                stale_if_error: secs(4),
                unreadable: false,
            }
        );
    }

    #[test]
    fn every_request_directive_is_read_whatever_its_case() {
        assert_eq!(
            asked(
                "no-store, No-Cache, no-transform, ONLY-IF-CACHED, max-age=1, min-fresh=2, max-stale=3, \
                 stale-if-error=4"
            ),
            RequestDirectives {
                no_store: true,
                no_cache: true,
                no_transform: true,
                only_if_cached: true,
                max_age: secs(1),
                min_fresh: secs(2),
                max_stale: Some(MaxStale::UpTo(Duration::from_secs(3))),
                stale_if_error: secs(4),
                unreadable: false,
            }
        );
    }

    #[test]
    fn g31_all_lines_are_read_as_one_list() {
        let said = said(&["max-age=60", "private", "", "stale-if-error=9, no-cache"]);
        assert!(said.private && said.no_cache && !said.unreadable);
        assert_eq!((said.max_age, said.stale_if_error), (secs(60), secs(9)));
    }

    #[test]
    fn unknown_directives_are_ignored() {
        let odd = said(&[r#"x-a, immutable, y=1, z="no-store, private", max-agee=1, no-stores"#]);
        assert_eq!(odd, ResponseDirectives::default());
    }

    #[test]
    fn c05_qualified_private_and_no_cache_count_as_unqualified() {
        let said = said(&[r#"private="x-user, x-b", no-cache="set-cookie", max-age=60"#]);
        assert!(said.private && said.no_cache && !said.unreadable);
        assert_eq!(said.max_age, secs(60));
    }

    #[test]
    fn c06_duplicate_directives_keep_the_first_value() {
        assert_eq!(said(&["max-age=10, max-age=100"]).max_age, secs(10));
        assert_eq!(said(&["max-age=100", "max-age=10"]).max_age, secs(100));
        assert_eq!(said(&["max-age=x, max-age=10"]).max_age, secs(0));
        assert_eq!(
            asked("max-stale=5, max-stale").max_stale,
            Some(MaxStale::UpTo(Duration::from_secs(5)))
        );
    }

    #[test]
    fn c06_conflicting_directives_all_stand_so_that_the_strictest_can_win() {
        let said = said(&["public, private, max-age=60, no-store"]);
        assert!(said.public && said.private && said.no_store);
    }

    #[test]
    fn c06_invalid_numbers_mean_stale() {
        for value in ["-1", "1.5", "abc", "1e3", "0x10", "\"\"", "\"1 \"", "\"-1\""] {
            let said = said(&[&format!(
                "max-age={value}, s-maxage={value}, stale-if-error={value}"
            )]);
            assert_eq!(
                (said.max_age, said.s_maxage, said.stale_if_error),
                (secs(0), secs(0), secs(0)),
                "{value}"
            );
        }
        assert_eq!(said(&["max-age"]).max_age, secs(0));
        assert_eq!(asked("max-age=abc").max_age, secs(0));
        assert_eq!(asked("min-fresh=abc").min_fresh, secs(DELTA_SECONDS_MAX));
        assert_eq!(
            asked("max-stale=abc").max_stale,
            Some(MaxStale::UpTo(Duration::ZERO))
        );
        assert_eq!(asked("stale-if-error").stale_if_error, secs(0));
    }

    #[test]
    fn c07_oversized_delta_seconds_clamp() {
        let said = said(&["max-age=2147483649, s-maxage=99999999999999999999999, stale-if-error=4294967296"]);
        let most = secs(DELTA_SECONDS_MAX);
        assert_eq!(
            (said.max_age, said.s_maxage, said.stale_if_error),
            (most, most, most)
        );
    }

    #[test]
    fn quoted_numbers_are_accepted() {
        assert_eq!(said(&[r#"max-age="60", stale-if-error="5""#]).max_age, secs(60));
        assert_eq!(
            asked(r#"max-stale="7""#).max_stale,
            Some(MaxStale::UpTo(Duration::from_secs(7)))
        );
    }

    #[test]
    fn a_permission_with_an_unexpected_argument_is_not_honoured_but_a_prohibition_is() {
        let said = said(&["public=yes, no-store=1, must-revalidate=x"]);
        assert!(!said.public && said.no_store && said.must_revalidate);
    }

    #[test]
    fn g31_a_value_outside_the_grammar_is_unreadable_and_its_prohibitions_still_count() {
        for line in [
            "max-age = 60",
            "private=\"x",
            "max-age=60; private",
            "a b",
            "max-age=60 \u{e9}",
            "=1",
            "private=",
            "\"a\"",
        ] {
            assert!(said(&[line]).unreadable, "{line}");
            assert!(asked(line).unreadable, "{line}");
        }
        let broken = said(&["foo=\"open, no-store", "private=, max-age=5"]);
        assert!(broken.unreadable && broken.no_store && broken.private);
    }

    #[test]
    fn pragma_counts_only_in_requests_without_cache_control() {
        let asked = |lines: &[(&str, &str)]| RequestDirectives::of(&headers(lines.iter().copied())).no_cache;
        assert!(asked(&[("pragma", "x, No-Cache")]));
        assert!(!asked(&[("pragma", "no-cache"), ("cache-control", "max-stale")]));
        assert!(!asked(&[("pragma", "no-cache=1")]));
        let response = headers([("pragma", "no-cache")]);
        assert_eq!(ResponseDirectives::of(&response), ResponseDirectives::default());
    }

    #[test]
    fn c01_must_understand_sets_no_store_aside_for_known_statuses_only() {
        let both = said(&["no-store, must-understand"]);
        assert!(!both.forbids_storing(StatusCode::OK));
        assert!(both.forbids_storing(StatusCode::from_u16(299).unwrap()));
        assert!(said(&["no-store"]).forbids_storing(StatusCode::OK));
        assert!(!said(&["must-understand"]).forbids_storing(StatusCode::from_u16(299).unwrap()));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parsers_panic(
            lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..4),
        ) {
            let mut map = HeaderMap::new();
            for line in &lines {
                if let Ok(value) = http::HeaderValue::from_bytes(line) {
                    map.append(CACHE_CONTROL, value);
                }
            }
            let most = secs(DELTA_SECONDS_MAX);
            prop_assert!(ResponseDirectives::of(&map).max_age <= most);
            prop_assert!(RequestDirectives::of(&map).max_age <= most);
        }

        #[test]
        fn a_prohibition_is_seen_among_any_elements(
            before in "[ -~]{0,30}",
            after in "[ -~]{0,30}",
        ) {
            // Only an open quoted string that happens to close later may hide it; then a quote stands on both
            // sides.
            prop_assume!(!(before.contains('"') && after.contains('"')));
            let line = format!("{before},no-store,{after}");
            prop_assert!(said(&[&line]).no_store, "{}", line);
        }
    }
}
