//! Decides how the `Cache-Status` member of this gateway is written (RFC 9211).
//! It exists so that a member that contradicts itself, `hit` beside `fwd` say, cannot be expressed.
//! It refuses to touch the members of others: its own is appended last, and none is made where no stored
//! response stands behind the answer (CS6: the caller then makes none).

use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::sf::{header_value, push_integer, push_text};

/// The field name.
pub const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// Why a request went forward (RFC 9211 §2.2). The most specific one that is true is used (CS4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Forward {
    /// The gateway was told not to handle this request as a cache.
    Bypass,
    /// The method requires it; all unsafe ones do.
    Method,
    /// Nothing was kept for the URI.
    UriMiss,
    /// Something was kept for the URI, but not for these request fields.
    VaryMiss,
    /// Nothing usable was kept; for when URI and variant cannot be told apart.
    Miss,
    /// A fresh copy was kept, and the request asked not to use it.
    Request,
    /// A copy was kept, and it was stale.
    Stale,
    /// A partial copy was kept that did not hold all that was asked for.
    Partial,
}

impl Forward {
    /// Every reason, in the order of RFC 9211.
    pub const ALL: [Self; 8] = [
        Self::Bypass,
        Self::Method,
        Self::UriMiss,
        Self::VaryMiss,
        Self::Miss,
        Self::Request,
        Self::Stale,
        Self::Partial,
    ];

    /// Returns the registered token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Miss => "miss",
            Self::Request => "request",
            Self::Stale => "stale",
            Self::Partial => "partial",
        }
    }
}

/// What happened to the request: answered from a copy, or sent forward. Never both (CS2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// Answered from a copy without going forward; stale ones too, then with a negative [`CacheStatus::ttl`].
    Hit,
    /// Sent forward, whatever came of it.
    Forwarded {
        /// Why.
        why: Forward,
        /// The status received, when it is not the one sent or when it refreshed a copy (304). Left out after
        /// a transport failure (CS3).
        status: Option<StatusCode>,
        /// The answer was kept.
        stored: bool,
        /// The request waited for another one's answer: `Some(true)` used it, `Some(false)` could not; `None`
        /// did not wait.
        collapsed: Option<bool>,
    },
}

impl Handling {
    /// Fills in what came of going forward; a hit stays a hit (CS2, CS5).
    ///
    /// `status` is that of the dependency's answer, where it differs from the one sent or is a 304 that refreshed
    /// a copy; `stored` and `collapsed` as in [`Self::Forwarded`].
    #[must_use]
    pub const fn after_asking(
        self,
        status: Option<StatusCode>,
        stored: bool,
        collapsed: Option<bool>,
    ) -> Self {
        match self {
            Self::Hit => Self::Hit,
            Self::Forwarded { why, .. } => Self::Forwarded {
                why,
                status,
                stored,
                collapsed,
            },
        }
    }
}

/// One `Cache-Status` member.
///
/// ```
/// use evenkeel_http::cache_status::{CACHE_STATUS, CacheStatus, Forward, Handling};
/// use http::HeaderMap;
///
/// let mut headers = HeaderMap::new();
/// let mut label = CacheStatus {
///     cache: "evenkeel",
///     handling: Handling::Hit,
///     ttl: Some(-34),
///     detail: Some("breaker-open"),
/// };
/// label.append_to(&mut headers);
/// assert_eq!(headers[CACHE_STATUS], "evenkeel; hit; ttl=-34; detail=breaker-open");
///
/// label.handling = Handling::Forwarded { why: Forward::Stale, status: None, stored: false, collapsed: None };
/// assert_eq!(label.to_value(), "evenkeel; fwd=stale; ttl=-34; detail=breaker-open");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheStatus<'a> {
    /// The name of this cache; the same on every answer.
    pub cache: &'a str,
    /// What happened to the request.
    pub handling: Handling,
    /// Remaining lifetime in seconds, negative once stale (see [`crate::age::ttl`]); `None` where it says
    /// nothing.
    pub ttl: Option<i64>,
    /// A word of our own, a reason for instance. Needed after a transport failure, or the member reads as a
    /// success (CS3).
    pub detail: Option<&'a str>,
}

impl CacheStatus<'_> {
    /// Writes the member. The common members without `ttl` can be made once and cloned.
    #[must_use]
    pub fn to_value(&self) -> HeaderValue {
        let mut out = String::with_capacity(96);
        push_text(&mut out, self.cache);
        match self.handling {
            Handling::Hit => out.push_str("; hit"),
            Handling::Forwarded {
                why,
                status,
                stored,
                collapsed,
            } => {
                out.push_str("; fwd=");
                out.push_str(why.as_str());
                if let Some(status) = status {
                    out.push_str("; fwd-status=");
                    out.push_str(status.as_str());
                }
                if stored {
                    out.push_str("; stored");
                }
                match collapsed {
                    Some(true) => out.push_str("; collapsed"),
                    Some(false) => out.push_str("; collapsed=?0"),
                    None => {}
                }
            }
        }
        if let Some(ttl) = self.ttl {
            out.push_str("; ttl=");
            push_integer(&mut out, ttl);
        }
        if let Some(detail) = self.detail {
            out.push_str("; detail=");
            push_text(&mut out, detail);
        }
        header_value(out)
    }

    /// Appends the member behind those of caches nearer to the origin (CS1).
    pub fn append_to(&self, headers: &mut HeaderMap) {
        headers.append(CACHE_STATUS, self.to_value());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{headers, parse_list};
    use proptest::prelude::*;

    const FORWARDED: Handling = Handling::Forwarded {
        why: Forward::UriMiss,
        status: None,
        stored: false,
        collapsed: None,
    };

    fn label(handling: Handling) -> CacheStatus<'static> {
        CacheStatus {
            cache: "evenkeel",
            handling,
            ttl: None,
            detail: None,
        }
    }

    #[test]
    fn cs1_the_member_is_appended_last_and_earlier_ones_stay() {
        let mut map = headers([
            ("cache-status", "origin-cache; hit"),
            ("cache-status", "cdn; fwd=miss"),
        ]);
        label(Handling::Hit).append_to(&mut map);
        let members: Vec<_> = map.get_all(CACHE_STATUS).iter().collect();
        assert_eq!(members, ["origin-cache; hit", "cdn; fwd=miss", "evenkeel; hit"]);
        assert_eq!(parse_list(&map, &CACHE_STATUS).len(), 3);
    }

    #[test]
    fn cs2_stale_without_going_forward_is_a_hit_with_negative_ttl() {
        let stale = CacheStatus {
            ttl: Some(-5),
            ..label(Handling::Hit)
        };
        assert_eq!(stale.to_value(), "evenkeel; hit; ttl=-5");
    }

    #[test]
    fn cs2_stale_after_a_failed_forward_names_the_status_that_arrived() {
        let handling = Handling::Forwarded {
            why: Forward::Stale,
            status: Some(StatusCode::BAD_GATEWAY),
            stored: false,
            collapsed: None,
        };
        let stale = CacheStatus {
            ttl: Some(-5),
            detail: Some("error-answer"),
            ..label(handling)
        };
        assert_eq!(
            stale.to_value(),
            "evenkeel; fwd=stale; fwd-status=502; ttl=-5; detail=error-answer"
        );
    }

    #[test]
    fn cs5_what_came_of_asking_is_filled_in_and_a_hit_stays_a_hit() {
        let asked = FORWARDED.after_asking(Some(StatusCode::NOT_MODIFIED), true, Some(false));
        assert_eq!(
            label(asked).to_value(),
            "evenkeel; fwd=uri-miss; fwd-status=304; stored; collapsed=?0"
        );
        assert_eq!(Handling::Hit.after_asking(None, true, Some(true)), Handling::Hit);
    }

    #[test]
    fn cs4_every_forward_reason_is_a_registered_token() {
        let words: Vec<_> = Forward::ALL.into_iter().map(Forward::as_str).collect();
        assert_eq!(
            words,
            [
                "bypass",
                "method",
                "uri-miss",
                "vary-miss",
                "miss",
                "request",
                "stale",
                "partial"
            ]
        );
    }

    #[test]
    fn cs5_stored_and_collapsed_stand_beside_fwd() {
        let handling = |collapsed| Handling::Forwarded {
            why: Forward::Miss,
            status: None,
            stored: true,
            collapsed,
        };
        assert_eq!(
            label(handling(Some(true))).to_value(),
            "evenkeel; fwd=miss; stored; collapsed"
        );
        assert_eq!(
            label(handling(Some(false))).to_value(),
            "evenkeel; fwd=miss; stored; collapsed=?0"
        );
        assert_eq!(label(FORWARDED).to_value(), "evenkeel; fwd=uri-miss");
    }

    proptest! {
        #[test]
        fn every_member_parses_back(
            cache in any::<String>(),
            detail in prop::option::of(any::<String>()),
            ttl in prop::option::of(any::<i64>()),
            why in prop::sample::select(Forward::ALL.to_vec()),
            hit in any::<bool>(),
            status in prop::option::of(100_u16..1000),
            stored in any::<bool>(),
            collapsed in prop::option::of(any::<bool>()),
        ) {
            let status = status.map(|code| StatusCode::from_u16(code).unwrap());
            let forwarded = Handling::Forwarded { why, status, stored, collapsed };
            let handling = if hit { Handling::Hit } else { forwarded };
            let mut map = HeaderMap::new();
            CacheStatus { cache: &cache, handling, ttl, detail: detail.as_deref() }.append_to(&mut map);
            let members = parse_list(&map, &CACHE_STATUS);
            prop_assert_eq!(members.len(), 1);
            let parameters = &members[0].1;
            let has = |name: &str| parameters.iter().any(|(key, _)| key == name);
            prop_assert_eq!((has("hit"), has("fwd")), (hit, !hit));
            prop_assert_eq!((has("ttl"), has("detail")), (ttl.is_some(), detail.is_some()));
            prop_assert_eq!(has("stored") || has("collapsed"), !hit && (stored || collapsed.is_some()));
        }
    }
}
