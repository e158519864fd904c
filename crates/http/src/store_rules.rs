//! Decides whether an answer may be kept: as the last good answer for its key, or in a cache for reuse.
//! It exists because a wrong answer here shows one person's data to another; each refusal has a word of its
//! own, so that nobody learns it in the outage.
//! It refuses to know keys, sizes and ages; those belong to the store and to [`crate::age`].

use std::fmt;

use http::StatusCode;
use http::header::{CONTENT_RANGE, EXPIRES, SET_COOKIE};

use crate::directives::ResponseDirectives;
use crate::facts::{MethodKind, RequestFacts, ResponseHead, Sharing, may_be_shared_despite_authorization};
use crate::status::{heuristically_cacheable, in_error_set, understood};
use crate::vary::{Nominated, Unselectable};

/// Why an answer was not kept. The words are stable: they are shown in metrics, logs and the admin interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotKept {
    /// The request is not a GET.
    Method,
    /// The status is not a good final answer, or needs explicit freshness that is missing (C01).
    Status,
    /// 206, or a `Content-Range` (C26).
    Partial,
    /// The response says `no-store` (C03).
    NoStore,
    /// The request says `no-store` (C02).
    RequestNoStore,
    /// A `Cache-Control` of the exchange is outside the grammar (G31).
    UnreadableCacheControl,
    /// The response says `private`, and the copy would be shared.
    Private,
    /// The request carries `Authorization`, and the response does not allow sharing (C12).
    Authorization,
    /// The request carries cookies, and the copy would be shared.
    Cookie,
    /// The response sets a cookie (C33).
    SetCookie,
    /// `Vary: *` (C13).
    VaryStar,
    /// `Vary` cannot be read or names too many fields (G29).
    VaryUnusable,
}

impl NotKept {
    /// Every reason, in the order of declaration.
    pub const ALL: [Self; 12] = [
        Self::Method,
        Self::Status,
        Self::Partial,
        Self::NoStore,
        Self::RequestNoStore,
        Self::UnreadableCacheControl,
        Self::Private,
        Self::Authorization,
        Self::Cookie,
        Self::SetCookie,
        Self::VaryStar,
        Self::VaryUnusable,
    ];

    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Status => "status",
            Self::Partial => "partial",
            Self::NoStore => "no-store",
            Self::RequestNoStore => "request-no-store",
            Self::UnreadableCacheControl => "unreadable-cache-control",
            Self::Private => "private",
            Self::Authorization => "authorization",
            Self::Cookie => "cookie",
            Self::SetCookie => "set-cookie",
            Self::VaryStar => "vary-star",
            Self::VaryUnusable => "vary-unusable",
        }
    }
}

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for NotKept {}

/// Tells whether an answer may be kept as the last good answer for its key.
///
/// Explicit freshness is not needed where RFC 9111 §3 does not ask for it: a plain 200 is kept for failures,
/// though it is never fresh. Error statuses are never last good answers. Prohibitions on giving stale do not
/// prevent keeping: see [`crate::reuse::stale_prohibitions`].
///
/// # Errors
///
/// The first reason against it. Reasons that hold for every copy come before those that hold for shared ones.
///
/// ```
/// use evenkeel_http::facts::{RequestFacts, ResponseHead, Sharing};
/// use evenkeel_http::store_rules::{NotKept, may_keep};
/// use http::{HeaderMap, HeaderValue, Method, StatusCode, header::SET_COOKIE};
///
/// let request = RequestFacts::of(&Method::GET, &HeaderMap::new(), &[""; 0]);
/// let mut headers = HeaderMap::new();
/// assert_eq!(may_keep(Sharing::Shared, &request, &ResponseHead::of(StatusCode::OK, &headers)), Ok(()));
///
/// headers.insert(SET_COOKIE, HeaderValue::from_static("id=7"));
/// let response = ResponseHead::of(StatusCode::OK, &headers);
/// assert_eq!(may_keep(Sharing::Shared, &request, &response), Err(NotKept::SetCookie));
/// ```
pub fn may_keep(
    sharing: Sharing,
    request: &RequestFacts,
    response: &ResponseHead<'_>,
) -> Result<(), NotKept> {
    keep_where(is_good_answer, sharing, request, response)
}

/// Tells whether an answer may be stored for reuse, by the rules of RFC 9111 §3: like [`may_keep`], and error
/// answers too (404 for its heuristic or stated lifetime, 503 with `max-age`).
///
/// A status nobody here knows is stored if its freshness is stated: since RFC 9111 a cache must know a status
/// only where `must-understand` says so, and every unknown status is treated as the x00 of its class. Never
/// stored are answers to one request's own conditions: 206, 304, 412, 416.
///
/// Whether it will be *fresh* is [`crate::lifetime`]; an error answer is never given stale
/// ([`crate::decide::decide`]), and must not replace a good copy ([`replaces_a_good_copy`]).
///
/// # Errors
///
/// The first reason against it.
///
/// ```
/// use evenkeel_http::facts::{RequestFacts, ResponseHead, Sharing};
/// use evenkeel_http::store_rules::{NotKept, may_keep, may_store};
/// use http::{HeaderMap, Method, StatusCode};
///
/// let request = RequestFacts::of(&Method::GET, &HeaderMap::new(), &[""; 0]);
/// let headers = HeaderMap::new();
/// let gone = ResponseHead::of(StatusCode::GONE, &headers);
/// assert_eq!(may_store(Sharing::Shared, &request, &gone), Ok(()));
/// assert_eq!(may_keep(Sharing::Shared, &request, &gone), Err(NotKept::Status));
/// ```
pub fn may_store(
    sharing: Sharing,
    request: &RequestFacts,
    response: &ResponseHead<'_>,
) -> Result<(), NotKept> {
    keep_where(is_storable, sharing, request, response)
}

/// Tells whether an answer that may be stored may take the place of a good copy: true unless it is in the
/// error set (500, 502, 503, 504), which stands for no answer at all (rule X4), or 429, which asks for fewer questions and
/// says nothing about the data.
#[must_use]
pub const fn replaces_a_good_copy(status: StatusCode) -> bool {
    !in_error_set(status) && status.as_u16() != 429
}

/// Tells whether an answer that nobody keeps may be given to others who asked at the same time: like [`may_keep`], for
/// every status. An error page can be somebody's own too. `no-store` alone does not make it that: nothing is stored.
///
/// # Errors
///
/// The first reason against it.
pub fn may_be_anothers(
    sharing: Sharing,
    request: &RequestFacts,
    response: &ResponseHead<'_>,
) -> Result<(), NotKept> {
    let directives = ResponseDirectives {
        no_store: false,
        ..response.directives
    };
    let response = ResponseHead {
        directives,
        ..*response
    };
    keep_where(|_, _| true, sharing, request, &response)
}

fn keep_where(
    fits: impl Fn(Sharing, &ResponseHead<'_>) -> bool,
    sharing: Sharing,
    request: &RequestFacts,
    response: &ResponseHead<'_>,
) -> Result<(), NotKept> {
    let ResponseHead {
        status,
        headers,
        directives: said,
        expires_counts: _,
    } = response;
    let refuse_if = |holds: bool, reason: NotKept| if holds { Err(reason) } else { Ok(()) };
    refuse_if(request.method != MethodKind::Get, NotKept::Method)?;
    refuse_if(said.forbids_storing(*status), NotKept::NoStore)?;
    refuse_if(request.directives.no_store, NotKept::RequestNoStore)?;
    refuse_if(
        said.unreadable || request.directives.unreadable,
        NotKept::UnreadableCacheControl,
    )?;
    refuse_if(
        *status == StatusCode::PARTIAL_CONTENT || headers.contains_key(CONTENT_RANGE),
        NotKept::Partial,
    )?;
    refuse_if(!fits(sharing, response), NotKept::Status)?;
    refuse_if(headers.contains_key(SET_COOKIE), NotKept::SetCookie)?;
    match Nominated::of(headers) {
        Ok(_) => {}
        Err(Unselectable::Star) => return Err(NotKept::VaryStar),
        Err(Unselectable::Unreadable | Unselectable::TooMany) => return Err(NotKept::VaryUnusable),
    }
    if sharing == Sharing::Shared {
        refuse_if(said.private, NotKept::Private)?;
        refuse_if(
            request.authorization && !may_be_shared_despite_authorization(said),
            NotKept::Authorization,
        )?;
        refuse_if(request.cookies, NotKept::Cookie)?;
    }
    Ok(())
}

/// RFC 9111 §3, narrowed to good answers: 2xx and 3xx.
fn is_good_answer(sharing: Sharing, response: &ResponseHead<'_>) -> bool {
    let status = response.status;
    (status.is_success() || status.is_redirection()) && is_storable(sharing, response)
}

/// RFC 9111 §3, the conditions on the status: final, no answer to one request's own conditions, known if it
/// must be, and either storable by default or marked explicitly.
fn is_storable(sharing: Sharing, response: &ResponseHead<'_>) -> bool {
    let ResponseHead {
        status,
        headers,
        directives: said,
        expires_counts,
    } = response;
    let own_conditions = matches!(status.as_u16(), 206 | 304 | 412 | 416);
    let marked = match sharing {
        Sharing::Shared => said.public || said.s_maxage.is_some(),
        Sharing::Private => said.public || said.private,
    } || said.max_age.is_some()
        || (*expires_counts && headers.contains_key(EXPIRES));
    !status.is_informational()
        && !own_conditions
        && (!said.must_understand || understood(*status))
        && (marked || heuristically_cacheable(*status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;
    use http::{HeaderMap, Method};
    use proptest::prelude::*;

    type Lines<'a> = &'a [(&'a str, &'a str)];

    fn kept_as(
        sharing: Sharing,
        method: &Method,
        request: Lines<'_>,
        status: u16,
        response: Lines<'_>,
    ) -> &'static str {
        let request = RequestFacts::of(method, &headers(request.iter().copied()), &["theme"]);
        let response = headers(response.iter().copied());
        let head = ResponseHead::of(StatusCode::from_u16(status).unwrap(), &response);
        may_keep(sharing, &request, &head).map_or_else(NotKept::as_str, |()| "kept")
    }

    fn shared(request: Lines<'_>, response: Lines<'_>) -> &'static str {
        kept_as(Sharing::Shared, &Method::GET, request, 200, response)
    }

    fn private(request: Lines<'_>, response: Lines<'_>) -> &'static str {
        kept_as(Sharing::Private, &Method::GET, request, 200, response)
    }

    fn status(status: u16, response: Lines<'_>) -> &'static str {
        kept_as(Sharing::Shared, &Method::GET, &[], status, response)
    }

    const fn cache_control(value: &str) -> (&str, &str) {
        ("cache-control", value)
    }

    const TOKEN: (&str, &str) = ("authorization", "Bearer t1");

    #[test]
    fn a_plain_answer_without_freshness_is_kept_for_failures() {
        assert_eq!(shared(&[], &[]), "kept");
        assert_eq!(
            shared(&[], &[cache_control("max-age=0, must-revalidate")]),
            "kept"
        );
        assert_eq!(shared(&[], &[cache_control("no-cache")]), "kept");
    }

    #[test]
    fn c30_an_error_answer_may_be_anothers_unless_it_is_somebodys_own() {
        let of = |request: Lines<'_>, response: Lines<'_>| {
            let request = RequestFacts::of(&Method::GET, &headers(request.iter().copied()), &[""; 0]);
            let response = headers(response.iter().copied());
            let head = ResponseHead::of(StatusCode::SERVICE_UNAVAILABLE, &response);
            may_be_anothers(Sharing::Shared, &request, &head).map_or_else(NotKept::as_str, |()| "anothers")
        };
        assert_eq!(of(&[], &[]), "anothers");
        assert_eq!(of(&[], &[("set-cookie", "a=b")]), "set-cookie");
        assert_eq!(of(&[], &[cache_control("private")]), "private");
        assert_eq!(of(&[], &[cache_control("no-store")]), "anothers");
        assert_eq!(of(&[], &[cache_control("private, no-store")]), "private");
        assert_eq!(of(&[TOKEN], &[]), "authorization");
    }

    #[test]
    fn h25_only_answers_to_get_are_kept() {
        for method in [
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::OPTIONS,
            Method::from_bytes(b"get").unwrap(),
        ] {
            let word = kept_as(
                Sharing::Shared,
                &method,
                &[],
                200,
                &[cache_control("public, max-age=60")],
            );
            assert_eq!(word, "method", "{method}");
        }
    }

    #[test]
    fn c01_statuses_that_are_no_good_answer_are_not_kept() {
        for code in [100, 101, 304, 400, 401, 403, 404, 410, 429, 500, 503, 599] {
            assert_eq!(
                status(code, &[cache_control("public, max-age=60")]),
                "status",
                "{code}"
            );
        }
    }

    #[test]
    fn c01_statuses_not_cacheable_by_default_need_an_explicit_mark() {
        for code in [201, 202, 302, 303, 307] {
            assert_eq!(status(code, &[]), "status", "{code}");
            assert_eq!(status(code, &[cache_control("max-age=1")]), "kept", "{code}");
            assert_eq!(status(code, &[cache_control("s-maxage=1")]), "kept", "{code}");
            assert_eq!(status(code, &[cache_control("public")]), "kept", "{code}");
            assert_eq!(status(code, &[("expires", "0")]), "kept", "{code}");
        }
        for code in [200, 203, 204, 300, 301, 308] {
            assert_eq!(status(code, &[]), "kept", "{code}");
        }
    }

    #[test]
    fn c01_must_understand_needs_a_known_status_and_never_lifts_no_store() {
        assert_eq!(status(299, &[cache_control("max-age=1")]), "kept");
        assert_eq!(
            status(299, &[cache_control("max-age=1, must-understand")]),
            "status"
        );
        assert_eq!(
            status(299, &[cache_control("must-understand, no-store, max-age=1")]),
            "no-store"
        );
    }

    #[test]
    fn c01_must_understand_sets_no_store_aside_where_the_status_is_known() {
        assert_eq!(status(200, &[cache_control("must-understand, no-store")]), "kept");
    }

    fn stored(status: u16, response: Lines<'_>) -> &'static str {
        let request = RequestFacts::of(&Method::GET, &HeaderMap::new(), &[""; 0]);
        let response = headers(response.iter().copied());
        let head = ResponseHead::of(StatusCode::from_u16(status).unwrap(), &response);
        may_store(Sharing::Shared, &request, &head).map_or_else(NotKept::as_str, |()| "stored")
    }

    #[test]
    fn c01_error_answers_and_unknown_statuses_are_stored_for_their_stated_lifetime() {
        for code in [299, 399, 400, 403, 404, 410, 429, 499, 500, 502, 503, 504, 599] {
            assert_eq!(stored(code, &[cache_control("max-age=9")]), "stored", "{code}");
        }
        for code in [404, 405, 410, 414, 501] {
            assert_eq!(stored(code, &[]), "stored", "{code}");
        }
        for code in [299, 403, 499, 500, 503, 599] {
            assert_eq!(stored(code, &[]), "status", "{code}");
        }
    }

    #[test]
    fn c01_answers_to_one_requests_own_conditions_are_never_stored() {
        for code in [100, 103, 304, 412, 416] {
            assert_eq!(stored(code, &[cache_control("max-age=9")]), "status", "{code}");
        }
        assert_eq!(stored(206, &[cache_control("max-age=9")]), "partial");
    }

    #[test]
    fn tc1_an_expires_set_aside_does_not_mark_an_answer() {
        let map = headers([("expires", "0"), ("cdn-cache-control", "must-revalidate")]);
        let request = RequestFacts::of(&Method::GET, &HeaderMap::new(), &[""; 0]);
        let head = ResponseHead::targeted(StatusCode::CREATED, &map, &[crate::targeted::CDN_CACHE_CONTROL]);
        assert_eq!(may_store(Sharing::Shared, &request, &head), Err(NotKept::Status));
    }

    #[test]
    fn x4_an_answer_that_says_nothing_about_the_data_replaces_no_good_copy() {
        let kept_out = (100..600).filter(|code| !replaces_a_good_copy(StatusCode::from_u16(*code).unwrap()));
        assert_eq!(kept_out.collect::<Vec<_>>(), [429, 500, 502, 503, 504]);
    }

    #[test]
    fn c02_an_answer_to_a_no_store_request_is_not_kept() {
        assert_eq!(shared(&[cache_control("no-store")], &[]), "request-no-store");
        assert_eq!(private(&[cache_control("no-store")], &[]), "request-no-store");
        assert_eq!(shared(&[cache_control("no-cache")], &[]), "kept");
    }

    #[test]
    fn c03_no_store_is_not_kept_not_even_privately() {
        assert_eq!(
            shared(&[], &[cache_control("public, max-age=60, no-store")]),
            "no-store"
        );
        assert_eq!(private(&[], &[cache_control("No-Store")]), "no-store");
    }

    #[test]
    fn c01_private_is_not_kept_for_all_but_is_kept_for_its_principal() {
        assert_eq!(shared(&[], &[cache_control("public, private")]), "private");
        assert_eq!(private(&[], &[cache_control("private, max-age=60")]), "kept");
    }

    #[test]
    fn c05_qualified_private_is_not_kept_for_all() {
        assert_eq!(
            shared(&[], &[cache_control("private=\"x-user\", max-age=60")]),
            "private"
        );
    }

    #[test]
    fn c12_an_answer_to_authorization_needs_public_s_maxage_or_must_revalidate() {
        // Case 009.
        assert_eq!(shared(&[TOKEN], &[cache_control("max-age=60")]), "authorization");
        for permitting in ["public", "s-maxage=60", "must-revalidate"] {
            assert_eq!(
                shared(&[TOKEN], &[cache_control(permitting)]),
                "kept",
                "{permitting}"
            );
        }
        assert_eq!(
            shared(&[TOKEN], &[cache_control("proxy-revalidate, max-age=60")]),
            "authorization"
        );
        assert_eq!(shared(&[TOKEN], &[cache_control("public, private")]), "private");
    }

    #[test]
    fn c12_a_private_copy_is_kept_despite_authorization() {
        // Case 011.
        assert_eq!(
            private(&[TOKEN, ("cookie", "id=1")], &[cache_control("max-age=60")]),
            "kept"
        );
    }

    #[test]
    fn answers_to_requests_with_cookies_are_not_shared_unless_all_are_ignored() {
        let public = &[cache_control("public, max-age=60")];
        assert_eq!(shared(&[("cookie", "id=1")], public), "cookie");
        assert_eq!(shared(&[("cookie", "theme=dark; id=1")], public), "cookie");
        assert_eq!(
            shared(&[("cookie", "theme=dark"), ("cookie", "id=1")], public),
            "cookie"
        );
        assert_eq!(shared(&[("cookie", "Theme=dark")], public), "cookie");
        assert_eq!(shared(&[("cookie", "junk")], public), "cookie");
        assert_eq!(shared(&[("cookie", "theme=dark; theme=id=1 ;")], public), "kept");
        assert_eq!(shared(&[("cookie", "")], public), "kept");
    }

    #[test]
    fn c33_an_answer_that_sets_a_cookie_is_not_kept() {
        let answer = &[("set-cookie", "id=1"), cache_control("public, max-age=60")];
        assert_eq!(shared(&[], answer), "set-cookie");
        assert_eq!(private(&[], answer), "set-cookie");
    }

    #[test]
    fn c26_partial_answers_are_never_kept() {
        // Case 056.
        assert_eq!(status(206, &[cache_control("max-age=60")]), "partial");
        assert_eq!(status(200, &[("content-range", "bytes 0-9/100")]), "partial");
    }

    #[test]
    fn c13_vary_star_is_not_kept() {
        assert_eq!(shared(&[], &[("vary", "accept"), ("vary", "*")]), "vary-star");
    }

    #[test]
    fn g29_an_unusable_vary_is_not_kept() {
        assert_eq!(shared(&[], &[("vary", "a b")]), "vary-unusable");
        assert_eq!(shared(&[], &[("vary", "a,b,c,d,e,f,g,h,i")]), "vary-unusable");
        assert_eq!(shared(&[], &[("vary", "a,b,c,d,e,f,g,h")]), "kept");
    }

    #[test]
    fn g31_an_unreadable_cache_control_is_not_kept() {
        assert_eq!(
            shared(&[], &[cache_control("max-age = 60")]),
            "unreadable-cache-control"
        );
        assert_eq!(shared(&[cache_control("\"")], &[]), "unreadable-cache-control");
        assert_eq!(
            shared(&[], &[cache_control("max-age=60"), cache_control("x=\"open")]),
            "unreadable-cache-control"
        );
    }

    #[test]
    fn every_reason_has_its_own_word() {
        let words: std::collections::BTreeSet<_> = NotKept::ALL.into_iter().map(NotKept::as_str).collect();
        assert_eq!(words.len(), NotKept::ALL.len());
    }

    proptest! {
        #[test]
        fn whatever_is_shared_is_also_kept_privately(
            status in 100_u16..600,
            directives in prop::collection::vec(
                prop::sample::select(vec![
                    "public", "private", "no-store", "no-cache", "max-age=1", "s-maxage=1", "must-revalidate", "x=",
                ]),
                0..4,
            ),
            authorized in any::<bool>(),
        ) {
            let line = directives.join(", ");
            let request = if authorized { vec![TOKEN] } else { vec![] };
            let marked_for_shared_only = line.contains("s-maxage");
            let response = [cache_control(line.as_str())];
            let kept = |sharing| kept_as(sharing, &Method::GET, &request, status, &response);
            if kept(Sharing::Shared) == "kept" && !marked_for_shared_only {
                prop_assert_eq!(kept(Sharing::Private), "kept");
                prop_assert!(!line.contains("private") && !line.contains("no-store"));
            }
        }
    }
}
