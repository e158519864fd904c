//! Decides what becomes of a complete answer in the store: kept, left out, or the old one removed with it.
//! It exists so that the rules of HTTP, the contract's `keep_if` and the engine's terms meet in one place.
//! It refuses to keep what is itself degraded: another gateway's stale answer is no good answer.

use std::time::Duration;

use evenkeel::{Keep, Terms, Wall, http::NotShelved};
use evenkeel_http::{
    age::{corrected_initial_age, freshness_lifetime, stale_limit},
    dates::HttpDate,
    degraded::is_degraded,
    facts::{RequestFacts, ResponseHead, Sharing, StoredFacts},
    reuse::stale_forbidden,
    store_rules::{NotKept, may_be_anothers, may_keep},
    supersede::supersedes,
    vary::Variant,
};
use http::{HeaderMap, StatusCode};

use super::{peer::REPLACED, whole::Shared, worth::Unworthy};

/// Why an answer was not kept; the words are metric labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// A rule of HTTP.
    Http(NotKept),
    /// `keep_if` of the contract.
    KeepIf(Unworthy),
    /// It is itself a degraded answer.
    Degraded,
    /// Its body is larger than `max_body`.
    TooLarge,
    /// No room was left to hold its body back.
    BuffersFull,
    /// Its body ends where the connection does, so nobody can tell whether it is complete.
    UnknownEnd,
    /// It has no lifetime and no validator, and nobody permits it on a failure.
    NoUse,
    /// It is an error answer, and a good copy is held.
    ErrorAnswer,
    /// It is larger than the store takes.
    TooBig,
    /// Something loaded later is already kept, or the URI was retired meanwhile.
    Superseded,
}

impl Why {
    /// Every word, in the order of its index.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let own = [
            Self::Degraded,
            Self::TooLarge,
            Self::BuffersFull,
            Self::UnknownEnd,
            Self::NoUse,
            Self::ErrorAnswer,
            Self::TooBig,
            Self::Superseded,
        ];
        let asked = Unworthy::ALL.into_iter().map(Self::KeepIf);
        NotKept::ALL.into_iter().map(Self::Http).chain(asked).chain(own)
    }

    /// How many words there are.
    pub(crate) const COUNT: usize = NotKept::ALL.len() + Unworthy::ALL.len() + 8;

    /// Names why the shelf does not have an answer.
    pub(super) const fn of(why: NotShelved) -> Self {
        match why {
            NotShelved::Http(why) => Self::Http(why),
            NotShelved::NoUse => Self::NoUse,
            NotShelved::ErrorAnswer => Self::ErrorAnswer,
            NotShelved::TooBig => Self::TooBig,
            NotShelved::Superseded => Self::Superseded,
        }
    }

    /// Returns the place of this word in [`Why::all`].
    pub(crate) fn index(self) -> usize {
        Self::all().position(|why| why == self).unwrap_or(0)
    }

    /// Returns the stable word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Http(why) => why.as_str(),
            Self::KeepIf(why) => why.as_str(),
            Self::Degraded => "degraded",
            Self::TooLarge => "too-large",
            Self::BuffersFull => "buffers-full",
            Self::UnknownEnd => "unknown-end",
            Self::NoUse => "no-use",
            Self::ErrorAnswer => "error-answer",
            Self::TooBig => evenkeel::NotKept::TooBig.as_str(),
            Self::Superseded => evenkeel::NotKept::Superseded.as_str(),
        }
    }
}

/// What was decided.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) terms: Terms,
    pub(super) lifetime: Option<Duration>,
    pub(super) shared: Option<Shared>,
    pub(super) why_not: Option<Why>,
}

impl Verdict {
    /// Nothing is kept, and what is kept already stays.
    pub(super) fn leave(why_not: Option<Why>) -> Self {
        Self::of(Keep::Leave, why_not)
    }

    fn of(keep: Keep, why_not: Option<Why>) -> Self {
        Self {
            terms: Terms {
                keep,
                ..Terms::default()
            },
            lifetime: None,
            shared: None,
            why_not,
        }
    }
}

/// A complete answer and the request that it answers, both as received.
#[derive(Debug)]
pub(super) struct Received<'a> {
    pub(super) sharing: Sharing,
    pub(super) request: &'a RequestFacts,
    pub(super) request_headers: &'a HeaderMap,
    pub(super) status: StatusCode,
    pub(super) headers: &'a HeaderMap,
    pub(super) at: Wall,
}

/// Judges an answer that is not an error; `worth` is what the contract's `keep_if` says of it.
pub(super) fn judge(received: &Received<'_>, worth: Result<(), Unworthy>) -> Verdict {
    let head = ResponseHead::of(received.status, received.headers);
    let sharing = received.sharing;
    if let Err(why) = may_keep(sharing, received.request, &head) {
        return Verdict::of(after(why, sharing, received.request, &head), Some(Why::Http(why)));
    }
    if is_degraded(received.headers) {
        return Verdict::leave(Some(Why::Degraded));
    }
    // Selectable by the rules above, unless by what nobody but the origin sees.
    let variant = Variant::of(received.headers, received.request_headers);
    let Some(variant) = variant
        .ok()
        .filter(|variant| !variant.nominated().names_any(&REPLACED))
    else {
        return Verdict::of(Keep::Remove, Some(Why::Http(NotKept::VaryUnusable)));
    };
    let at = HttpDate::from_unix_seconds(received.at.as_secs());
    let said = head.directives;
    let lifetime = freshness_lifetime(&said, received.headers, sharing, at);
    Verdict {
        terms: Terms {
            keep: if worth.is_ok() { Keep::Yes } else { Keep::Leave },
            own_limit: stale_limit(lifetime, said.stale_if_error),
            stale_forbidden: stale_forbidden(sharing, &said).is_some(),
            // The engine counts from the beginning of the attempt, so the response delay is in the age already.
            already: corrected_initial_age(received.headers, at, Duration::ZERO),
            ..Terms::default()
        },
        lifetime,
        shared: Some(Shared {
            facts: StoredFacts {
                authorization: received.request.authorization,
                directives: said,
            },
            variant,
        }),
        why_not: worth.err().map(Why::KeepIf),
    }
}

/// Says for which others who wait an error answer is too; `None` if it is for the one who asked alone.
pub(super) fn of_failure(
    sharing: Sharing,
    request: &RequestFacts,
    request_headers: &HeaderMap,
    status: StatusCode,
    headers: &HeaderMap,
) -> Option<Shared> {
    let head = ResponseHead::of(status, headers);
    may_be_anothers(sharing, request, &head).ok()?;
    let variant = Variant::of(headers, request_headers).ok()?;
    Some(Shared {
        facts: StoredFacts {
            authorization: request.authorization,
            directives: head.directives,
        },
        variant,
    })
    .filter(|shared| !shared.variant.nominated().names_any(&REPLACED))
}

/// Decides what becomes of the old snapshot once the body of an answer has ended that was too large to be held back:
/// the answer cannot be kept, so it is as with one that may not be.
pub(super) fn flowing(
    sharing: Sharing,
    request: &RequestFacts,
    status: StatusCode,
    headers: &HeaderMap,
) -> Keep {
    if is_degraded(headers) {
        return Keep::Leave;
    }
    let head = ResponseHead::of(status, headers);
    match may_keep(sharing, request, &head) {
        Ok(()) => Keep::Remove,
        Err(why) => after(why, sharing, request, &head),
    }
}

/// Tells whether an answer says that there is nothing to be kept.
pub(super) const fn is_gone(status: StatusCode) -> bool {
    matches!(status.as_u16(), 404 | 410)
}

/// Decides what becomes of the old snapshot when the dependency says that there is nothing: it goes, unless the answer is
/// one user's own.
pub(super) fn gone(
    sharing: Sharing,
    request: &RequestFacts,
    status: StatusCode,
    headers: &HeaderMap,
) -> Verdict {
    Verdict::of(flowing(sharing, request, status, headers), None)
}

/// What becomes of the old snapshot when a new answer may not be kept.
fn after(why: NotKept, sharing: Sharing, request: &RequestFacts, response: &ResponseHead<'_>) -> Keep {
    if supersedes(why, sharing, request, &response.directives) {
        Keep::Remove
    } else {
        Keep::Leave
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_http::freshness::X_DATA_FRESHNESS;

    #[test]
    fn every_why_stands_at_its_own_index_and_has_its_own_word() {
        let words: std::collections::BTreeSet<&str> = Why::all().map(Why::as_str).collect();
        assert_eq!(words.len(), Why::COUNT);
        for (index, why) in Why::all().enumerate() {
            assert_eq!(why.index(), index);
        }
    }

    #[test]
    fn one_word_of_being_degraded_among_several_is_enough() {
        let said = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(X_DATA_FRESHNESS, http::HeaderValue::from_static(value));
            }
            is_degraded(&headers)
        };
        assert!(!said(&[]));
        assert!(!said(&["fresh", "fresh"]));
        for values in [&["stale"][..], &["fresh", "stale"], &["fresh, stale"], &["Fresh"]] {
            assert!(said(values), "{values:?}");
        }
    }
}
