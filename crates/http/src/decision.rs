//! Decides which words a reuse decision can have, and what each means to `Cache-Status`.
//! It exists so that every path through the cache ends in one of a few named outcomes, each with its reason.
//! It refuses to weigh anything; that is [`crate::decide`].

use crate::cache_status::{Forward, Handling};
use crate::reuse::{NotGiven, Prohibition};

/// What to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Give the copy: it is fresh.
    Fresh,
    /// Give the copy stale now, and validate it in the background (S01).
    StaleWhileRevalidating,
    /// Give the copy stale: the request's `max-stale` accepts it (C19).
    StaleAccepted,
    /// Ask, with the copy's validators (C21).
    Validate(Why),
    /// Ask, without conditions.
    Fetch(Why),
    /// Answer 504 without asking: the request said `only-if-cached` and nothing usable is kept (C20).
    OnlyIfCached,
    /// Asking failed, and the copy is still fresh: give it.
    FreshOnError,
    /// Asking failed: give the copy stale (S04).
    StaleOnError,
    /// Pass the answer of the dependency on: a real answer is never hidden by old data.
    Answer,
    /// Pass its error answer on, because no copy may stand in for it.
    ErrorAnswer(Unusable),
    /// Answer with an error of our own, 504 unless a better one fits (C17): nothing came, and no copy may be
    /// given.
    Refuse(Unusable),
}

/// Why a request goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The method is neither GET nor HEAD.
    Method,
    /// Nothing is kept for the URI.
    UriMiss,
    /// Something is kept for the URI, but not for these request fields.
    VaryMiss,
    /// A copy is kept that this request may not have.
    NotGiven(NotGiven),
    /// The age of the copy cannot be known.
    UnknownAge,
    /// The response said `no-cache`, or something unreadable (C15).
    ResponseNoCache,
    /// The request said `no-cache`, or `Pragma: no-cache`.
    RequestNoCache,
    /// The copy is older than the request's `max-age`.
    RequestMaxAge,
    /// The copy is not fresh for as long as the request's `min-fresh`.
    RequestMinFresh,
    /// The copy is stale, or has no lifetime.
    Stale,
}

impl Why {
    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::NotGiven(why) => why.as_str(),
            Self::UnknownAge => "unknown-age",
            Self::ResponseNoCache => "no-cache",
            Self::RequestNoCache => "request-no-cache",
            Self::RequestMaxAge => "request-max-age",
            Self::RequestMinFresh => "request-min-fresh",
            Self::Stale => "stale",
        }
    }

    /// Returns the most specific reason that `Cache-Status` has for it (CS4).
    ///
    /// A copy the request may not have is the request's doing, so `request`; `no-cache` in the response and an
    /// unknown age make a copy unusable without validation, which is what `stale` says.
    #[must_use]
    pub const fn forward(self) -> Forward {
        match self {
            Self::Method | Self::NotGiven(NotGiven::Method) => Forward::Method,
            Self::UriMiss => Forward::UriMiss,
            Self::VaryMiss => Forward::VaryMiss,
            Self::NotGiven(NotGiven::Authorization | NotGiven::Cookie)
            | Self::RequestNoCache
            | Self::RequestMaxAge
            | Self::RequestMinFresh => Forward::Request,
            Self::UnknownAge | Self::ResponseNoCache | Self::Stale => Forward::Stale,
        }
    }
}

/// Why no copy stands in for a failure. The words are those of the skipped rungs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unusable {
    /// Nothing fitting is kept.
    NoSnapshot,
    /// The request may not have it.
    NotGiven(NotGiven),
    /// It is an error answer itself.
    ErrorCopy,
    /// Its age cannot be known.
    UnknownAge,
    /// The response forbids it.
    Forbidden(Prohibition),
    /// The request forbids it, on a route where requests may.
    Request,
    /// Neither the route nor the response nor the request states a limit: a missing limit serves nothing.
    NoLimit,
    /// It is past the strictest limit (C18).
    TooOld,
}

impl Unusable {
    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSnapshot => "no-snapshot",
            Self::NotGiven(why) => why.as_str(),
            Self::ErrorCopy => "error-copy",
            Self::UnknownAge => "unknown-age",
            Self::Forbidden(_) => "forbidden",
            Self::Request => "request",
            Self::NoLimit => "no-limit",
            Self::TooOld => "too-old",
        }
    }
}

impl Decision {
    /// Returns the stable word, without the reason.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::StaleWhileRevalidating => "stale-while-revalidating",
            Self::StaleAccepted => "stale-accepted",
            Self::Validate(_) => "validate",
            Self::Fetch(_) => "fetch",
            Self::OnlyIfCached => "only-if-cached",
            Self::FreshOnError => "fresh-on-error",
            Self::StaleOnError => "stale-on-error",
            Self::Answer => "answer",
            Self::ErrorAnswer(_) => "error-answer",
            Self::Refuse(_) => "refuse",
        }
    }

    /// Tells whether the copy is given, fresh or stale.
    #[must_use]
    pub const fn gives_the_copy(self) -> bool {
        match self {
            Self::Fresh
            | Self::StaleWhileRevalidating
            | Self::StaleAccepted
            | Self::FreshOnError
            | Self::StaleOnError => true,
            Self::Validate(_)
            | Self::Fetch(_)
            | Self::OnlyIfCached
            | Self::Answer
            | Self::ErrorAnswer(_)
            | Self::Refuse(_) => false,
        }
    }

    /// Returns what a first decision means to `Cache-Status` (CS2, CS4): a hit, or going forward and why.
    ///
    /// Keep it until the answer is written; then [`Handling::after_asking`] fills in what came of it. `None` where
    /// that member was already settled by the decision before asking, and for `only-if-cached`, which has no
    /// stored response behind it (CS6).
    #[must_use]
    pub const fn handling(self) -> Option<Handling> {
        match self {
            Self::Fresh | Self::StaleWhileRevalidating | Self::StaleAccepted => Some(Handling::Hit),
            Self::Validate(why) | Self::Fetch(why) => Some(Handling::Forwarded {
                why: why.forward(),
                status: None,
                stored: false,
                collapsed: None,
            }),
            Self::OnlyIfCached
            | Self::FreshOnError
            | Self::StaleOnError
            | Self::Answer
            | Self::ErrorAnswer(_)
            | Self::Refuse(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cs4_the_most_specific_reason_is_used() {
        let of = |why: Why| why.forward().as_str();
        assert_eq!(of(Why::Method), "method");
        assert_eq!(of(Why::UriMiss), "uri-miss");
        assert_eq!(of(Why::VaryMiss), "vary-miss");
        assert_eq!(of(Why::RequestMaxAge), "request");
        assert_eq!(of(Why::NotGiven(NotGiven::Authorization)), "request");
        assert_eq!(of(Why::ResponseNoCache), "stale");
        assert_eq!(of(Why::Stale), "stale");
    }

    #[test]
    fn cs2_a_decision_is_a_hit_or_goes_forward_never_both() {
        assert_eq!(Decision::StaleWhileRevalidating.handling(), Some(Handling::Hit));
        assert!(matches!(
            Decision::Validate(Why::Stale).handling(),
            Some(Handling::Forwarded {
                why: Forward::Stale,
                ..
            })
        ));
        assert_eq!(Decision::OnlyIfCached.handling(), None);
    }
}
