//! Decides whether an answer that may not be kept takes the older copy away with it.
//! It exists once for every store, so that nobody's own answer takes away what others are given.
//! It refuses to touch a copy; removing it is the store's.

use crate::directives::ResponseDirectives;
use crate::facts::{RequestFacts, Sharing, speaks_for_all};
use crate::store_rules::NotKept;

/// Tells whether the older copy is superseded by an answer that may not be kept for the reason `why`.
///
/// It is, unless the reason lies in who asked or how, which says nothing about what others were given: credentials,
/// cookies, a method, a part, or what the request itself said.
///
/// ```
/// use evenkeel_http::facts::{RequestFacts, ResponseHead, Sharing};
/// use evenkeel_http::store_rules::{NotKept, may_keep};
/// use evenkeel_http::supersede::supersedes;
/// use http::{HeaderMap, HeaderValue, Method, StatusCode, header::{AUTHORIZATION, CACHE_CONTROL}};
///
/// let mut answer = HeaderMap::new();
/// answer.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
/// let head = ResponseHead::of(StatusCode::OK, &answer);
///
/// let anybody = RequestFacts::of(&Method::GET, &HeaderMap::new(), &[""; 0]);
/// assert_eq!(may_keep(Sharing::Shared, &anybody, &head), Err(NotKept::NoStore));
/// assert!(supersedes(NotKept::NoStore, Sharing::Shared, &anybody, &head.directives));
///
/// // Somebody's own answer is theirs: the copy for everybody else stays.
/// let mut fields = HeaderMap::new();
/// fields.insert(AUTHORIZATION, HeaderValue::from_static("Bearer t"));
/// let somebody = RequestFacts::of(&Method::GET, &fields, &[""; 0]);
/// assert!(!supersedes(NotKept::NoStore, Sharing::Shared, &somebody, &head.directives));
/// ```
#[must_use]
pub fn supersedes(why: NotKept, sharing: Sharing, request: &RequestFacts, said: &ResponseDirectives) -> bool {
    !lies_in_the_request(why, request) && speaks_for_all(sharing, request, said)
}

/// Tells whether an answer may not be kept because of who asked or how, whatever it says itself.
#[must_use]
pub const fn lies_in_the_request(why: NotKept, request: &RequestFacts) -> bool {
    match why {
        NotKept::Method
        | NotKept::RequestNoStore
        | NotKept::Authorization
        | NotKept::Cookie
        | NotKept::Partial => true,
        NotKept::UnreadableCacheControl => request.directives.unreadable,
        NotKept::Status
        | NotKept::NoStore
        | NotKept::Private
        | NotKept::SetCookie
        | NotKept::VaryStar
        | NotKept::VaryUnusable => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;
    use http::Method;

    #[test]
    fn c12_what_lies_in_the_request_supersedes_nothing_and_what_the_answer_says_to_all_does() {
        let said = ResponseDirectives::default();
        let of = |fields: &[(&str, &str)]| {
            let map = headers(fields.iter().copied());
            let request = RequestFacts::of(&Method::GET, &map, &[""; 0]);
            let counted = |why: &NotKept| supersedes(*why, Sharing::Shared, &request, &said);
            NotKept::ALL
                .iter()
                .filter(|why| counted(why))
                .map(|why| why.as_str())
                .collect::<Vec<_>>()
        };
        let by_the_answer = [
            "status",
            "no-store",
            "private",
            "set-cookie",
            "vary-star",
            "vary-unusable",
        ];
        assert_eq!(of(&[("cache-control", "\"")]), by_the_answer);
        assert_eq!(
            of(&[]).len(),
            by_the_answer.len() + 1,
            "an unreadable answer speaks for all"
        );
        assert!(of(&[("cookie", "a=b")]).is_empty());
        assert!(of(&[("authorization", "x")]).is_empty());
    }
}
