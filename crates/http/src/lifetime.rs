//! Decides for how long an answer is fresh: as its origin stated, or as a heuristic guesses where that is
//! allowed (RFC 9111 §4.2).
//! It exists so that "stated", "guessed" and "unknown" stay apart: only the first two ever save a request.
//! It refuses to invent a lifetime: no default exists, and a guess needs `Last-Modified`, a status that allows
//! it, and a caller that switched it on.

use std::time::Duration;

use http::header::{DATE, LAST_MODIFIED};

use crate::age::freshness_lifetime;
use crate::dates::HttpDate;
use crate::facts::{ResponseHead, Sharing};
use crate::status::heuristically_cacheable;

/// The share of the time since `Last-Modified` that a guess may take: a tenth (rule C09).
const SHARE: u32 = 10;

/// Whether lifetimes may be guessed, and up to which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heuristic {
    at_most: Duration,
}

impl Heuristic {
    /// No guesses.
    pub const OFF: Self = Self {
        at_most: Duration::ZERO,
    };

    /// A tenth of the time since `Last-Modified`, and never more than `at_most`. Zero is [`Self::OFF`].
    #[must_use]
    pub const fn a_tenth_up_to(at_most: Duration) -> Self {
        Self { at_most }
    }
}

/// For how long an answer is fresh.
///
/// ```
/// use evenkeel_http::lifetime::Lifetime;
/// use std::time::Duration;
///
/// let secs = Duration::from_secs;
/// let lifetime = Lifetime::Stated(secs(60));
/// assert!(lifetime.is_fresh_at(secs(59)));
/// assert!(!lifetime.is_fresh_at(secs(60))); // the end of the lifetime is no longer part of it
/// assert_eq!(lifetime.staleness_at(secs(90)), secs(30));
/// assert!(!Lifetime::Unknown.is_fresh_at(secs(0)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// The origin stated it.
    Stated(Duration),
    /// Guessed; allowed only where nothing is stated.
    Guessed(Duration),
    /// Neither. Such an answer is never reused while the origin answers; it may still be kept for failures.
    Unknown,
}

impl Lifetime {
    /// Returns the lifetime of an answer received at `received` (rules C06, C08, C09).
    ///
    /// The first of: `s-maxage` (shared), `max-age`, `Expires` − `Date`, and then the guess: a tenth of `Date`
    /// − `Last-Modified`. A guess needs a heuristically cacheable status, or `public` (for a private copy also
    /// `private`). `Expires` is ignored where a targeted field speaks (TC1). Without `Date`, `received` counts.
    #[must_use]
    pub fn of(head: &ResponseHead<'_>, sharing: Sharing, received: HttpDate, heuristic: Heuristic) -> Self {
        let stated = if head.expires_counts {
            freshness_lifetime(&head.directives, head.headers, sharing, received)
        } else {
            head.directives
                .s_maxage
                .filter(|_| sharing == Sharing::Shared)
                .or(head.directives.max_age)
        };
        stated.map_or_else(|| Self::guess(head, sharing, received, heuristic), Self::Stated)
    }

    fn guess(head: &ResponseHead<'_>, sharing: Sharing, received: HttpDate, heuristic: Heuristic) -> Self {
        let said = &head.directives;
        let marked = said.public || (sharing == Sharing::Private && said.private);
        if heuristic == Heuristic::OFF || !(marked || heuristically_cacheable(head.status)) {
            return Self::Unknown;
        }
        let modified = head.headers.get(LAST_MODIFIED);
        let Some(modified) = modified.and_then(|line| HttpDate::parse_expiration(line.as_bytes(), received))
        else {
            return Self::Unknown;
        };
        let date = HttpDate::from_field(head.headers, &DATE, received).unwrap_or(received);
        let tenth = date.saturating_since(modified) / SHARE;
        Self::Guessed(tenth.min(heuristic.at_most))
    }

    /// Returns the length; zero if unknown, so that expiry is at age zero.
    #[must_use]
    pub const fn span(self) -> Duration {
        match self {
            Self::Stated(span) | Self::Guessed(span) => span,
            Self::Unknown => Duration::ZERO,
        }
    }

    /// Tells whether an answer of this age is fresh: its lifetime is *greater* than its age (RFC 9111 §4.2).
    #[must_use]
    pub fn is_fresh_at(self, age: Duration) -> bool {
        self.span() > age
    }

    /// Returns how long ago an answer of this age expired (rule S06); zero while it is fresh.
    #[must_use]
    pub const fn staleness_at(self, age: Duration) -> Duration {
        age.saturating_sub(self.span())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;
    use http::StatusCode;

    const RECEIVED: HttpDate = HttpDate::from_unix_seconds(784_111_777); // Sun, 06 Nov 1994 08:49:37 GMT
    const DAY: Duration = Duration::from_secs(86_400);
    // One hour before.
    const MODIFIED: (&str, &str) = ("last-modified", "Sun, 06 Nov 1994 07:49:37 GMT");

    fn of(sharing: Sharing, status: u16, lines: &[(&str, &str)], heuristic: Heuristic) -> Lifetime {
        let map = headers(lines.iter().copied());
        let head = ResponseHead::targeted(
            StatusCode::from_u16(status).unwrap(),
            &map,
            &[crate::targeted::CDN_CACHE_CONTROL],
        );
        Lifetime::of(&head, sharing, RECEIVED, heuristic)
    }

    fn shared(status: u16, lines: &[(&str, &str)]) -> Lifetime {
        of(Sharing::Shared, status, lines, Heuristic::a_tenth_up_to(DAY))
    }

    const fn guessed(seconds: u64) -> Lifetime {
        Lifetime::Guessed(Duration::from_secs(seconds))
    }

    #[test]
    fn c09_a_guess_is_a_tenth_of_the_time_since_last_modified() {
        assert_eq!(shared(200, &[MODIFIED]), guessed(360));
        let date = ("date", "Sun, 06 Nov 1994 08:19:37 GMT");
        assert_eq!(shared(200, &[MODIFIED, date]), guessed(180));
        let old = ("last-modified", "Sun, 06 Nov 1904 07:49:37 GMT");
        assert_eq!(shared(200, &[old]), Lifetime::Guessed(DAY));
    }

    #[test]
    fn c09_a_guess_needs_last_modified_permission_and_a_fitting_status() {
        assert_eq!(shared(200, &[]), Lifetime::Unknown);
        assert_eq!(shared(200, &[("last-modified", "yesterday")]), Lifetime::Unknown);
        assert_eq!(
            of(Sharing::Shared, 200, &[MODIFIED], Heuristic::OFF),
            Lifetime::Unknown
        );
        for status in [201, 202, 302, 307, 403, 500, 502, 503, 504, 599, 299] {
            assert_eq!(shared(status, &[MODIFIED]), Lifetime::Unknown, "{status}");
            assert_eq!(
                shared(status, &[MODIFIED, ("cache-control", "public")]),
                guessed(360),
                "{status}"
            );
        }
        let private = [MODIFIED, ("cache-control", "private")];
        assert_eq!(shared(201, &private), Lifetime::Unknown);
        assert_eq!(
            of(Sharing::Private, 201, &private, Heuristic::a_tenth_up_to(DAY)),
            guessed(360)
        );
    }

    #[test]
    fn c09_a_statement_however_bad_leaves_nothing_to_guess() {
        for line in [
            ("expires", "0"),
            ("cache-control", "max-age=0"),
            ("cache-control", "max-age=x"),
            ("cache-control", "s-maxage=0"),
        ] {
            assert_eq!(
                shared(200, &[MODIFIED, line]),
                Lifetime::Stated(Duration::ZERO),
                "{line:?}"
            );
        }
        assert_eq!(
            of(
                Sharing::Private,
                200,
                &[MODIFIED, ("cache-control", "s-maxage=9")],
                Heuristic::a_tenth_up_to(DAY)
            ),
            guessed(360)
        );
    }

    #[test]
    fn c09_modified_after_the_answer_was_made_is_no_lifetime() {
        assert_eq!(
            shared(200, &[("last-modified", "Sun, 06 Nov 1994 09:49:37 GMT")]),
            guessed(0)
        );
    }

    #[test]
    fn tc1_a_targeted_field_sets_cache_control_and_expires_aside() {
        let expires = ("expires", "Sun, 06 Nov 1994 09:49:37 GMT");
        let cache_control = ("cache-control", "max-age=10");
        let targeted = |value| shared(200, &[cache_control, expires, ("cdn-cache-control", value)]);
        assert_eq!(targeted("max-age=5"), Lifetime::Stated(Duration::from_secs(5)));
        assert_eq!(
            targeted("s-maxage=7, max-age=5"),
            Lifetime::Stated(Duration::from_secs(7))
        );
        assert_eq!(targeted("must-revalidate"), Lifetime::Unknown);
        assert_eq!(targeted("&"), Lifetime::Stated(Duration::from_secs(10)));
    }
}
