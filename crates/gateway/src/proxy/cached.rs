//! Decides what a request gets from the shelf on a route that caches, and with whom it may ask together.
//! It exists as the seam between three parties: the rule book decides, the guard drives, the shelf holds.
//! It refuses to weigh ages and directives; it hands the rule book's answers to the guard as facts about a copy.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use evenkeel::{
    EmptyScopePart, Facts, Held, Moment, Mono, Now,
    http::{HttpCache, Looked, Shelved, UriKey},
};
use evenkeel_http::{
    decide::{Origin, RequestSay},
    decision::{Decision, Unusable},
};
use http::request::Parts;

use super::{
    exchange::Exchange,
    route::Whose,
    whole::{How, Reply},
};

/// What a request on a caching route has beside the others.
#[derive(Debug)]
pub(super) struct Cached {
    pub(super) key: UriKey,
    pub(super) looked: Looked,
    /// What was decided before asking: the label needs it, whatever came of that.
    first: OnceLock<Decision>,
    /// It was looked at for the first time.
    brought: AtomicBool,
}

impl Cached {
    /// Looks a request up.
    pub(super) fn look(
        cache: &HttpCache,
        route: &str,
        whose: &Whose,
        request: &Parts,
        is_void: impl FnOnce(Mono) -> bool,
    ) -> Result<Self, EmptyScopePart> {
        let target = request.uri.path_and_query().map_or("", |target| target.as_str());
        let key = whose.key(route, target)?;
        let looked = cache
            .look(&key, &request.method, &request.headers)
            .unless(is_void);
        Ok(Self {
            key,
            looked,
            first: OnceLock::new(),
            brought: AtomicBool::new(false),
        })
    }

    /// Returns what was decided before asking. Once decided it stays, so that label and deed are one.
    pub(super) fn first(&self, cache: &HttpCache, now: Mono) -> Decision {
        *self
            .first
            .get_or_init(|| cache.decide(&self.looked, now, Origin::NotAsked))
    }
}

impl Exchange {
    /// Brings the copy that the shelf has for this request, with what the rule book says about it at this moment.
    pub(super) fn bring(
        &self,
        cache: &HttpCache,
        cached: &Cached,
        moment: Moment,
        now: Now,
    ) -> Option<Held<Reply>> {
        match moment {
            Moment::BeforeAsking => {
                let again;
                let (looked, decision) = if cached.brought.swap(true, Ordering::Relaxed) {
                    // Somebody else's attempt has been waited for: what it brought may be kept by now.
                    again = self.look_again(cache, cached);
                    (&again, cache.decide(&again, now.mono, Origin::NotAsked))
                } else {
                    (&cached.looked, cached.first(cache, now.mono))
                };
                let mut held = held(looked.chosen()?);
                let (lifetime, window) = match decision {
                    // What the request itself accepts is a full answer to it.
                    Decision::Fresh | Decision::StaleAccepted => (Duration::MAX, Duration::ZERO),
                    Decision::StaleWhileRevalidating => (Duration::ZERO, Duration::MAX),
                    Decision::Validate(_)
                    | Decision::Fetch(_)
                    | Decision::OnlyIfCached
                    | Decision::FreshOnError
                    | Decision::StaleOnError
                    | Decision::Answer
                    | Decision::ErrorAnswer(_)
                    | Decision::Refuse(_) => return None,
                };
                held.facts.lifetime = Some(lifetime);
                held.facts.revalidate = Some(window);
                if decision == Decision::Fresh
                    && let Some((copy, age)) =
                        looked.chosen().and_then(|copy| Some((copy, copy.age(now.mono)?)))
                {
                    self.route.ahead.tell(&mut held.facts, (&cached.key, copy), age);
                }
                Some(held)
            }
            // What is kept may have changed while the dependency was asked.
            Moment::AfterFailure => {
                let looked = self.look_again(cache, cached);
                // An error answer stands in for nothing, not even within its lifetime.
                let copy = looked.chosen().filter(|copy| copy.facts().is_good())?;
                let mut held = held(copy);
                if let Decision::Refuse(why) = cache.decide(&looked, now.mono, Origin::NoAnswer) {
                    forbid(&mut held.facts, why, now.mono);
                }
                Some(held)
            }
        }
    }

    /// Looks up once more: what is kept may have changed, or be void.
    fn look_again(&self, cache: &HttpCache, cached: &Cached) -> Looked {
        cache
            .look_again(&cached.key, *cached.looked.request(), &self.request.headers)
            .unless(|began| self.is_void(Some(began)))
    }

    /// Tells whether the answer will be nobody else's, whatever it says.
    pub(super) fn asks_alone(&self, cache: &HttpCache, cached: &Cached) -> bool {
        // Where requests do not steer, none of them asks for more than others get.
        let steers = cache.rules().requests != RequestSay::Ignored;
        self.asks_for_itself(cached.looked.request(), steers)
    }

    /// Tells whether what was fetched for somebody else just now may be given to this request (rule C30).
    pub(super) fn may_share(&self, cache: &HttpCache, cached: &Cached, fetched: &Reply) -> bool {
        let Reply::Cached(copy, _) = fetched else {
            return false;
        };
        let now = self.route.engine.now().mono;
        !self.is_void(Some(copy.began()))
            && cache.may_share(cached.looked.request(), &self.request.headers, copy, now)
    }
}

fn held(copy: &Arc<Shelved>) -> Held<Reply> {
    Held {
        value: Reply::Cached(Arc::clone(copy), How::Held),
        facts: Facts {
            observed: Some(copy.observed()),
            ..Facts::default()
        },
        observed_wall: Some(copy.observed_wall()),
    }
}

/// Puts the rule book's refusal into the words of the engine.
fn forbid(facts: &mut Facts, why: Unusable, now: Mono) {
    match why {
        Unusable::TooOld | Unusable::NoLimit => {
            facts.own_limit = Some(Duration::ZERO);
            // Of no age at all no limit is exceeded; it is forbidden all the same.
            facts.stale_forbidden = facts.observed == Some(now);
        }
        Unusable::UnknownAge => {}
        Unusable::NotGiven(_)
        | Unusable::ErrorCopy
        | Unusable::Forbidden(_)
        | Unusable::Request
        | Unusable::NoSnapshot => facts.forbidden = true,
    }
}
