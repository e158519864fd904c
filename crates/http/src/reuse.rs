//! Decides whether a kept answer may be given to the request at hand, and what forbids giving it stale.
//! It exists because the question is asked again at every lookup, also on the stale path and for joined
//! callers, where it is easily forgotten.
//! It refuses to weigh ages, requests and `Vary`; those are [`mod@crate::decide`] and [`crate::vary`].

use std::fmt;

use crate::directives::ResponseDirectives;
use crate::facts::{
    MethodKind, RequestFacts, Reuse, Sharing, StoredFacts, may_be_shared_despite_authorization,
};

/// What forbids giving a kept answer stale. A route may name those it sets aside, openly; the words are the
/// names used there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prohibition {
    /// `no-cache`: not without a successful validation (C15).
    NoCache,
    /// `must-revalidate` (C17).
    MustRevalidate,
    /// `proxy-revalidate`, on a shared copy.
    ProxyRevalidate,
    /// `s-maxage` on a shared copy, without a permission for the same trigger beside it (X1).
    SMaxage,
    /// A `Cache-Control` outside the grammar might hold any of these.
    UnreadableCacheControl,
}

impl Prohibition {
    /// Every prohibition, in the order in which they are looked for.
    pub const ALL: [Self; 5] = [
        Self::NoCache,
        Self::MustRevalidate,
        Self::ProxyRevalidate,
        Self::SMaxage,
        Self::UnreadableCacheControl,
    ];

    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoCache => "no-cache",
            Self::MustRevalidate => "must-revalidate",
            Self::ProxyRevalidate => "proxy-revalidate",
            Self::SMaxage => "s-maxage",
            Self::UnreadableCacheControl => "unreadable-cache-control",
        }
    }

    const fn holds(self, trigger: Trigger, sharing: Sharing, said: &ResponseDirectives) -> bool {
        let shared = matches!(sharing, Sharing::Shared);
        let permitted = match trigger {
            Trigger::Error => said.stale_if_error.is_some(),
            Trigger::Revalidation => said.stale_while_revalidate.is_some(),
            Trigger::Request => false,
        };
        match self {
            Self::NoCache => said.no_cache,
            Self::MustRevalidate => said.must_revalidate,
            Self::ProxyRevalidate => shared && said.proxy_revalidate,
            Self::SMaxage => shared && said.s_maxage.is_some() && !permitted,
            Self::UnreadableCacheControl => said.unreadable,
        }
    }
}

impl fmt::Display for Prohibition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What makes one think of giving a copy stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// The dependency failed, or cannot be asked (`stale-if-error`).
    Error,
    /// It is being asked in the background (`stale-while-revalidate`).
    Revalidation,
    /// The request accepts it (`max-stale`).
    Request,
}

/// Yields everything in a response that forbids giving it stale for this trigger (rules C16, X1).
///
/// `stale-if-error` sets `s-maxage` aside on an error, `stale-while-revalidate` during a revalidation, each
/// only for its own trigger and nothing but `s-maxage`; a request's `max-stale` sets nothing aside. A caller
/// whose route overrides some of these skips them.
pub fn prohibitions(
    trigger: Trigger,
    sharing: Sharing,
    said: &ResponseDirectives,
) -> impl Iterator<Item = Prohibition> {
    Prohibition::ALL
        .into_iter()
        .filter(move |prohibition| prohibition.holds(trigger, sharing, said))
}

/// Yields everything in a response that forbids giving it stale on an error (rules C16, X1).
pub fn stale_prohibitions(sharing: Sharing, said: &ResponseDirectives) -> impl Iterator<Item = Prohibition> {
    prohibitions(Trigger::Error, sharing, said)
}

/// Returns the first prohibition on giving a response stale on an error; `None` if nothing in it forbids
/// that.
///
/// ```
/// use evenkeel_http::directives::ResponseDirectives;
/// use evenkeel_http::facts::Sharing;
/// use evenkeel_http::reuse::{Prohibition, stale_forbidden};
/// use std::time::Duration;
///
/// let mut said = ResponseDirectives { s_maxage: Some(Duration::from_secs(60)), ..Default::default() };
/// assert_eq!(stale_forbidden(Sharing::Shared, &said), Some(Prohibition::SMaxage));
/// said.stale_if_error = Some(Duration::from_secs(300));
/// assert_eq!(stale_forbidden(Sharing::Shared, &said), None);
/// ```
#[must_use]
pub fn stale_forbidden(sharing: Sharing, said: &ResponseDirectives) -> Option<Prohibition> {
    stale_prohibitions(sharing, said).next()
}

/// Why a shared copy is not given to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotGiven {
    /// The request is neither GET nor HEAD (H06).
    Method,
    /// `Authorization` is involved and the response does not allow sharing, or not beyond its lifetime (C12).
    Authorization,
    /// The request carries cookies.
    Cookie,
}

impl NotGiven {
    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Authorization => "authorization",
            Self::Cookie => "cookie",
        }
    }
}

impl fmt::Display for NotGiven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for NotGiven {}

/// Tells whether a kept shared copy may be given to a request, as far as identity goes; age, `Vary` and
/// prohibitions are asked elsewhere.
///
/// Asked on every path that gives a copy: fresh, stale and joined (G18). With `Authorization` on either side
/// the response must carry `public`, `s-maxage` or `must-revalidate`; the last two allow it only within the
/// lifetime.
///
/// # Errors
///
/// The first reason against it.
pub fn given_from_shared(request: &RequestFacts, stored: &StoredFacts, reuse: Reuse) -> Result<(), NotGiven> {
    if request.method == MethodKind::Other {
        return Err(NotGiven::Method);
    }
    if request.authorization || stored.authorization {
        let allowed = match reuse {
            Reuse::Fresh => may_be_shared_despite_authorization(&stored.directives),
            Reuse::Stale => stored.directives.public,
        };
        if !allowed {
            return Err(NotGiven::Authorization);
        }
    }
    if request.cookies {
        return Err(NotGiven::Cookie);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;
    use http::Method;

    fn said(line: &str) -> ResponseDirectives {
        ResponseDirectives::of(&headers([("cache-control", line)]))
    }

    fn forbidden(line: &str) -> Option<&'static str> {
        stale_forbidden(Sharing::Shared, &said(line)).map(Prohibition::as_str)
    }

    fn given(method: &Method, request: &[(&str, &str)], stored: (bool, &str), reuse: Reuse) -> &'static str {
        let request = RequestFacts::of(method, &headers(request.iter().copied()), &["theme"]);
        let stored = StoredFacts {
            authorization: stored.0,
            directives: said(stored.1),
        };
        given_from_shared(&request, &stored, reuse).map_or_else(NotGiven::as_str, |()| "given")
    }

    const TOKEN: &[(&str, &str)] = &[("authorization", "Bearer t2")];

    #[test]
    fn nothing_forbids_stale_where_the_response_says_nothing() {
        for line in ["", "max-age=0", "public", "private", "stale-while-revalidate=5"] {
            assert_eq!(forbidden(line), None, "{line}");
        }
    }

    #[test]
    fn c16_each_prohibition_forbids_stale() {
        assert_eq!(forbidden("no-cache"), Some("no-cache"));
        assert_eq!(forbidden("no-cache=\"set-cookie\""), Some("no-cache"));
        assert_eq!(forbidden("max-age=2, must-revalidate"), Some("must-revalidate"));
        assert_eq!(forbidden("proxy-revalidate"), Some("proxy-revalidate"));
        assert_eq!(forbidden("s-maxage=60"), Some("s-maxage"));
        assert_eq!(forbidden("max-age=60, x=\""), Some("unreadable-cache-control"));
    }

    #[test]
    fn x1_explicit_stale_if_error_wins_over_s_maxage_and_over_nothing_else() {
        assert_eq!(forbidden("s-maxage=60, stale-if-error=300"), None);
        assert_eq!(
            forbidden("s-maxage=60, stale-while-revalidate=300"),
            Some("s-maxage")
        );
        for strong in ["no-cache", "must-revalidate", "proxy-revalidate"] {
            assert_eq!(
                forbidden(&format!("{strong}, s-maxage=60, stale-if-error=300")),
                Some(strong)
            );
        }
    }

    #[test]
    fn x1_each_permission_sets_s_maxage_aside_for_its_own_trigger_only() {
        let found = |trigger, line| prohibitions(trigger, Sharing::Shared, &said(line)).next();
        let swr = "s-maxage=60, stale-while-revalidate=300";
        assert_eq!(found(Trigger::Revalidation, swr), None);
        assert_eq!(found(Trigger::Error, swr), Some(Prohibition::SMaxage));
        assert_eq!(found(Trigger::Request, swr), Some(Prohibition::SMaxage));
        let sie = "s-maxage=60, stale-if-error=300";
        assert_eq!(found(Trigger::Revalidation, sie), Some(Prohibition::SMaxage));
        for trigger in [Trigger::Error, Trigger::Revalidation, Trigger::Request] {
            let strong = "must-revalidate, stale-if-error=1, stale-while-revalidate=1";
            assert_eq!(found(trigger, strong), Some(Prohibition::MustRevalidate));
            assert_eq!(found(trigger, "max-age=1"), None);
        }
    }

    #[test]
    fn a_private_copy_is_not_bound_by_rules_for_shared_caches() {
        for line in ["proxy-revalidate", "s-maxage=60"] {
            assert_eq!(stale_forbidden(Sharing::Private, &said(line)), None, "{line}");
        }
        assert_eq!(
            stale_forbidden(Sharing::Private, &said("must-revalidate")),
            Some(Prohibition::MustRevalidate)
        );
    }

    #[test]
    fn all_prohibitions_are_reported_so_that_an_override_names_each() {
        let found: Vec<_> =
            stale_prohibitions(Sharing::Shared, &said("no-cache, s-maxage=1, must-revalidate")).collect();
        assert_eq!(
            found,
            [
                Prohibition::NoCache,
                Prohibition::MustRevalidate,
                Prohibition::SMaxage
            ]
        );
    }

    #[test]
    fn c12_authorization_on_either_side_needs_a_permission() {
        // Case 009: C with another token, and B with none after an answer to A.
        for reuse in [Reuse::Fresh, Reuse::Stale] {
            assert_eq!(
                given(&Method::GET, TOKEN, (false, "max-age=60"), reuse),
                "authorization"
            );
            assert_eq!(
                given(&Method::GET, &[], (true, "max-age=60"), reuse),
                "authorization"
            );
            assert_eq!(
                given(&Method::GET, TOKEN, (true, "public, max-age=60"), reuse),
                "given"
            );
            assert_eq!(given(&Method::GET, &[], (true, "public"), reuse), "given");
            assert_eq!(given(&Method::GET, &[], (false, "max-age=60"), reuse), "given");
        }
    }

    #[test]
    fn c12_s_maxage_and_must_revalidate_permit_only_within_the_lifetime() {
        for line in [
            "s-maxage=60",
            "must-revalidate",
            "s-maxage=60, stale-if-error=300",
        ] {
            assert_eq!(
                given(&Method::GET, TOKEN, (true, line), Reuse::Fresh),
                "given",
                "{line}"
            );
            assert_eq!(
                given(&Method::GET, TOKEN, (true, line), Reuse::Stale),
                "authorization",
                "{line}"
            );
            assert_eq!(
                given(&Method::GET, &[], (true, line), Reuse::Stale),
                "authorization",
                "{line}"
            );
        }
    }

    #[test]
    fn g18_requests_with_cookies_get_no_shared_copy_not_even_a_public_one() {
        for reuse in [Reuse::Fresh, Reuse::Stale] {
            assert_eq!(
                given(&Method::GET, &[("cookie", "id=1")], (false, "public"), reuse),
                "cookie"
            );
            assert_eq!(
                given(&Method::GET, &[("cookie", "theme=dark")], (false, ""), reuse),
                "given"
            );
        }
    }

    #[test]
    fn h06_only_get_and_head_are_answered_from_a_copy() {
        assert_eq!(given(&Method::HEAD, &[], (false, ""), Reuse::Stale), "given");
        for method in [Method::POST, Method::DELETE, Method::OPTIONS] {
            assert_eq!(
                given(&method, &[], (false, "public"), Reuse::Stale),
                "method",
                "{method}"
            );
        }
    }

    #[test]
    fn c02_a_no_store_request_may_be_answered_from_an_existing_copy() {
        assert_eq!(
            given(
                &Method::GET,
                &[("cache-control", "no-store")],
                (false, ""),
                Reuse::Stale
            ),
            "given"
        );
    }
}
