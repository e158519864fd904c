//! Decides what becomes of a request: give the copy, ask with or without conditions, or refuse.
//! It exists as one total function, so that fresh, stale, error and only-if-cached paths cannot drift apart:
//! identity, prohibitions and ages are asked on each (RFC 9111 §4, RFC 5861).
//! It refuses to act; asking, joining, storing and labelling are the caller's.
//!
//! The same function is called twice: before asking ([`Origin::NotAsked`]), and again with what came of it. A
//! caller that joined another one's flight calls it with the copy that flight stored, and shares it only if
//! the decision is [`Decision::Fresh`]; otherwise it asks for itself (rule C30).

use std::time::Duration;

use http::StatusCode;

use crate::decision::{Decision, Unusable, Why};
use crate::directives::MaxStale;
use crate::facts::{MethodKind, RequestFacts, Reuse, Sharing};
use crate::reuse::{NotGiven, Prohibition, Trigger, given_from_shared, prohibitions};
use crate::status::in_error_set;
use crate::stored::StoredCopy;

/// What was found for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// Nothing for the URI.
    Nothing,
    /// Something for the URI, but not for these request fields.
    OtherVariants,
    /// A copy that fits by key and `Vary`.
    Copy {
        /// Its facts.
        copy: &'a StoredCopy,
        /// Its current age ([`crate::age::current_age`]); `None` if it cannot be known, or lies in the future.
        age: Option<Duration>,
    },
}

/// What came of asking the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// It was not asked yet.
    NotAsked,
    /// It gave no usable answer, or cannot be asked: transport failure, timeout, truncation, open breaker, no
    /// permit. Also while it is still being asked, once a route's soft timeout has passed (G17);
    /// [`Decision::Refuse`] then means to go on waiting.
    NoAnswer,
    /// It answered with an error that old data may stand in for (X4, or what the route lists).
    ErrorAnswer,
    /// It answered anything else. A 304 to our validation is not passed here; it updates the copy
    /// ([`crate::freshen`]).
    Answered,
}

impl Origin {
    /// Classifies an answer by the error set of RFC 5861. A route that lists more statuses passes
    /// [`Self::ErrorAnswer`] itself.
    #[must_use]
    pub const fn answered(status: StatusCode) -> Self {
        if in_error_set(status) {
            Self::ErrorAnswer
        } else {
            Self::Answered
        }
    }
}

/// How far a request steers (rule C19; RFC 9111 §5.2.1 makes its directives advice). `only-if-cached` costs
/// nobody anything and is honoured under each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RequestSay {
    /// Not at all: for clients that would force revalidations.
    Ignored,
    /// `no-cache`, `max-age` and `min-fresh` force an attempt, and do not take the copy away if it fails.
    #[default]
    BeforeAsking,
    /// They hold after a failed attempt too.
    Always,
}

/// What the route allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms<'a> {
    /// For whom its copies are.
    pub sharing: Sharing,
    /// How far requests steer.
    pub requests: RequestSay,
    /// Age up to which its stale rung gives a copy, limit included. A permission where the response states
    /// none, and a limit on every stale answer; `None` leaves it to response and request.
    pub stale_age: Option<Duration>,
    /// Age up to which anything may be given stale: a limit, never a permission.
    pub age_cap: Option<Duration>,
    /// Staleness up to which a copy may be given while it is being refreshed. A permission where the response
    /// states none, else the stricter counts.
    pub stale_while_revalidate: Option<Duration>,
    /// The prohibitions the route sets aside, openly (X2).
    pub set_aside: &'a [Prohibition],
}

impl Terms<'_> {
    /// Plain RFC 9111: nothing stale unless response or request permit it, and no prohibition set aside.
    #[must_use]
    pub const fn plain(sharing: Sharing) -> Self {
        Self {
            sharing,
            requests: RequestSay::BeforeAsking,
            stale_age: None,
            age_cap: None,
            stale_while_revalidate: None,
            set_aside: &[],
        }
    }
}

/// Decides what becomes of a request. Total: every combination has one outcome, and none panics.
///
/// Two things hold throughout, and are tested as properties: an older copy is never more usable, and a request
/// that asks for more never gets less.
///
/// ```
/// use evenkeel_http::dates::HttpDate;
/// use evenkeel_http::decide::{Found, Origin, Terms, decide};
/// use evenkeel_http::decision::{Decision, Unusable, Why};
/// use evenkeel_http::facts::{RequestFacts, ResponseHead, Sharing};
/// use evenkeel_http::lifetime::Heuristic;
/// use evenkeel_http::stored::StoredCopy;
/// use http::{HeaderMap, HeaderValue, Method, StatusCode, header::CACHE_CONTROL};
/// use std::time::Duration;
///
/// let mut headers = HeaderMap::new();
/// headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60, stale-if-error=300"));
/// let request = RequestFacts::of(&Method::GET, &HeaderMap::new(), &[""; 0]);
/// let response = ResponseHead::of(StatusCode::OK, &headers);
/// let received = HttpDate::from_unix_seconds(1_764_440_643);
/// let copy = StoredCopy::of(Sharing::Shared, &request, &response, received, Heuristic::OFF);
///
/// let terms = Terms::plain(Sharing::Shared);
/// let at = |seconds, origin| {
///     let found = Found::Copy { copy: &copy, age: Some(Duration::from_secs(seconds)) };
///     decide(&request, found, origin, &terms)
/// };
/// assert_eq!(at(59, Origin::NotAsked), Decision::Fresh);
/// assert_eq!(at(60, Origin::NotAsked), Decision::Fetch(Why::Stale)); // nothing to validate by
/// assert_eq!(at(360, Origin::NoAnswer), Decision::StaleOnError);
/// assert_eq!(at(361, Origin::NoAnswer), Decision::Refuse(Unusable::TooOld));
/// ```
#[must_use]
pub fn decide(request: &RequestFacts, found: Found<'_>, origin: Origin, terms: &Terms<'_>) -> Decision {
    match origin {
        Origin::NotAsked => {
            let decision = before_asking(request, found, terms);
            if request.directives.only_if_cached && !decision.gives_the_copy() {
                Decision::OnlyIfCached
            } else {
                decision
            }
        }
        Origin::Answered => Decision::Answer,
        Origin::NoAnswer => on_error(request, found, terms).unwrap_or_else(Decision::Refuse),
        Origin::ErrorAnswer => on_error(request, found, terms).unwrap_or_else(Decision::ErrorAnswer),
    }
}

fn before_asking(request: &RequestFacts, found: Found<'_>, terms: &Terms<'_>) -> Decision {
    if request.method == MethodKind::Other {
        return Decision::Fetch(Why::Method);
    }
    let (copy, age) = match found {
        Found::Nothing => return Decision::Fetch(Why::UriMiss),
        Found::OtherVariants => return Decision::Fetch(Why::VaryMiss),
        Found::Copy { copy, age } => (copy, age),
    };
    // A copy that is not this request's to have is not validated for it either: a 304 would give it the body.
    if let Err(why) = given(request, copy, Reuse::Fresh, terms) {
        return Decision::Fetch(Why::NotGiven(why));
    }
    let ask = |why: Why| {
        if copy.has_validator {
            Decision::Validate(why)
        } else {
            Decision::Fetch(why)
        }
    };
    let Some(age) = age else {
        return ask(Why::UnknownAge);
    };
    if validation_demanded(copy).is_some() {
        return ask(Why::ResponseNoCache);
    }
    if let Some(why) = asked_for_more(request, copy, age, terms) {
        return ask(why);
    }
    if copy.is_fresh_at(age) {
        Decision::Fresh
    } else if stale_while_revalidating(request, copy, age, terms) {
        Decision::StaleWhileRevalidating
    } else if stale_accepted(request, copy, age, terms) {
        Decision::StaleAccepted
    } else {
        ask(Why::Stale)
    }
}

fn on_error(request: &RequestFacts, found: Found<'_>, terms: &Terms<'_>) -> Result<Decision, Unusable> {
    let Found::Copy { copy, age } = found else {
        return Err(Unusable::NoSnapshot);
    };
    let age = age.ok_or(Unusable::UnknownAge)?;
    if terms.requests == RequestSay::Always && asked_for_more(request, copy, age, terms).is_some() {
        return Err(Unusable::Request);
    }
    if copy.is_fresh_at(age) {
        given(request, copy, Reuse::Fresh, terms).map_err(Unusable::NotGiven)?;
        return match validation_demanded(copy).filter(|demand| !terms.set_aside.contains(demand)) {
            Some(prohibition) => Err(Unusable::Forbidden(prohibition)),
            None => Ok(Decision::FreshOnError),
        };
    }
    given(request, copy, Reuse::Stale, terms).map_err(Unusable::NotGiven)?;
    if !copy.is_good() {
        return Err(Unusable::ErrorCopy);
    }
    if let Some(prohibition) = forbidden(Trigger::Error, copy, terms) {
        return Err(Unusable::Forbidden(prohibition));
    }
    let limit = limit_on_error(request, copy, terms).ok_or(Unusable::NoLimit)?;
    if age > limit {
        return Err(Unusable::TooOld);
    }
    Ok(Decision::StaleOnError)
}

/// Identity. A private copy has its principal in the key, so only the method is left to ask.
fn given(request: &RequestFacts, copy: &StoredCopy, reuse: Reuse, terms: &Terms<'_>) -> Result<(), NotGiven> {
    match terms.sharing {
        Sharing::Shared => given_from_shared(request, &copy.facts, reuse),
        Sharing::Private if request.method == MethodKind::Other => Err(NotGiven::Method),
        Sharing::Private => Ok(()),
    }
}

/// Rule C15: what keeps a copy, fresh or not, from being given without a successful validation. A route can
/// set it aside for failures only.
fn validation_demanded(copy: &StoredCopy) -> Option<Prohibition> {
    let said = &copy.facts.directives;
    if said.no_cache {
        Some(Prohibition::NoCache)
    } else if said.unreadable {
        Some(Prohibition::UnreadableCacheControl)
    } else {
        None
    }
}

/// Returns what of the request this copy does not satisfy. A stale copy is left to the stale rules, except
/// that `min-fresh`, and `max-age` without `max-stale`, do not want one at all (RFC 9111 §5.2.1.1).
fn asked_for_more(
    request: &RequestFacts,
    copy: &StoredCopy,
    age: Duration,
    terms: &Terms<'_>,
) -> Option<Why> {
    let asked = &request.directives;
    if terms.requests == RequestSay::Ignored {
        return None;
    }
    if asked.no_cache {
        return Some(Why::RequestNoCache);
    }
    if asked.max_age.is_some_and(|most| age > most) {
        return Some(Why::RequestMaxAge);
    }
    if copy.is_fresh_at(age) {
        let remaining = copy.lifetime.span().saturating_sub(age);
        return (asked.min_fresh.is_some_and(|least| remaining < least)).then_some(Why::RequestMinFresh);
    }
    let wants_fresh = asked.min_fresh.is_some() || (asked.max_age.is_some() && asked.max_stale.is_none());
    wants_fresh.then_some(Why::Stale)
}

fn forbidden(trigger: Trigger, copy: &StoredCopy, terms: &Terms<'_>) -> Option<Prohibition> {
    prohibitions(trigger, terms.sharing, &copy.facts.directives)
        .find(|prohibition| !terms.set_aside.contains(prohibition))
}

/// What every stale answer needs before asking, whatever permits it.
fn may_be_stale(
    trigger: Trigger,
    request: &RequestFacts,
    copy: &StoredCopy,
    age: Duration,
    terms: &Terms<'_>,
) -> bool {
    !copy.expired
        && copy.is_good()
        && given(request, copy, Reuse::Stale, terms).is_ok()
        && forbidden(trigger, copy, terms).is_none()
        && terms.stale_age.is_none_or(|limit| age <= limit)
        && terms.age_cap.is_none_or(|limit| age <= limit)
}

/// S01: inside the window of response and route, the stricter if both state one; S07: never that of errors.
fn stale_while_revalidating(
    request: &RequestFacts,
    copy: &StoredCopy,
    age: Duration,
    terms: &Terms<'_>,
) -> bool {
    let windows = [
        copy.facts.directives.stale_while_revalidate,
        terms.stale_while_revalidate,
    ];
    let staleness = copy.lifetime.staleness_at(age);
    strictest(windows).is_some_and(|window| staleness <= window)
        && staleness_bound(request, terms).is_none_or(|most| staleness <= most)
        && may_be_stale(Trigger::Revalidation, request, copy, age, terms)
}

/// C19: `max-stale` widens, by its number; without one only up to a limit of the route. A copy whose lifetime
/// nobody stated has no expiry to count from.
fn stale_accepted(request: &RequestFacts, copy: &StoredCopy, age: Duration, terms: &Terms<'_>) -> bool {
    let accepted = match request.directives.max_stale {
        Some(MaxStale::UpTo(most)) => copy.lifetime.staleness_at(age) <= most,
        Some(MaxStale::Any) => terms.stale_age.is_some() || terms.age_cap.is_some(),
        None => false,
    };
    accepted
        && terms.requests != RequestSay::Ignored
        && copy.has_lifetime()
        && may_be_stale(Trigger::Request, request, copy, age, terms)
}

/// Returns the greatest age at which a copy is given on an error: the strictest of what route, response and request
/// state (S05, S06); `None` if none of them permits it at all.
///
/// An age limit and nothing else: prohibitions and identity are for [`decide`], and within its lifetime a copy is given
/// whatever this says.
#[must_use]
pub fn limit_on_error(request: &RequestFacts, copy: &StoredCopy, terms: &Terms<'_>) -> Option<Duration> {
    let from_expiry = |window: Duration| copy.lifetime.span().saturating_add(window);
    let heard = terms.requests != RequestSay::Ignored;
    let asked = request.directives.stale_if_error.filter(|_| heard);
    let permission = strictest([
        terms.stale_age,
        copy.facts.directives.stale_if_error.map(from_expiry),
        asked.map(from_expiry),
    ])?;
    // `max-stale` says how much staleness is accepted; `stale-if-error` says it for errors.
    let narrowed = staleness_bound(request, terms).filter(|_| asked.is_none());
    strictest([Some(permission), narrowed.map(from_expiry), terms.age_cap])
}

/// The staleness a request's `max-stale=n` bounds every stale answer by.
fn staleness_bound(request: &RequestFacts, terms: &Terms<'_>) -> Option<Duration> {
    match request.directives.max_stale {
        Some(MaxStale::UpTo(most)) if terms.requests != RequestSay::Ignored => Some(most),
        Some(MaxStale::UpTo(_) | MaxStale::Any) | None => None,
    }
}

fn strictest<const N: usize>(limits: [Option<Duration>; N]) -> Option<Duration> {
    limits.into_iter().flatten().min()
}
