//! Decides what a call notes for those who watch its route: what the store had for it, and how near to its limit an old
//! answer was.
//! It exists beside the life of a request, because nothing that is answered depends on it.
//! It refuses to cost a hit anything: what a copy has answered is known from the engine's own counters.

use std::time::Duration;

use evenkeel::{Answer, Reason, Rung, Skipped, Unanswered, Usable, http::HttpCache};
use evenkeel_http::{
    decide::Origin,
    decision::{Decision, Unusable},
};

use super::{
    alternate::Asking, cached::Cached, exchange::Exchange, route::Route, trouble::Trouble, whole::Reply,
};

/// Returns why a decision gives no copy, in the word for a rung that is not used.
pub(super) const fn skipped(decision: Decision) -> Option<Skipped> {
    match decision {
        Decision::Refuse(Unusable::TooOld | Unusable::NoLimit) => Some(Skipped::TooOld),
        Decision::Refuse(Unusable::UnknownAge) => Some(Skipped::UnknownAge),
        Decision::Refuse(Unusable::NoSnapshot) => Some(Skipped::NoSnapshot),
        Decision::Refuse(_) => Some(Skipped::Forbidden),
        Decision::Fresh
        | Decision::StaleAccepted
        | Decision::StaleWhileRevalidating
        | Decision::FreshOnError
        | Decision::StaleOnError
        | Decision::Validate(_)
        | Decision::Fetch(_)
        | Decision::OnlyIfCached
        | Decision::Answer
        | Decision::ErrorAnswer(_) => None,
    }
}

impl Exchange {
    /// Notes what the store of snapshots has for this call, before it is made: one look, beside the writing of a snapshot
    /// that a healthy call of such a route ends in.
    pub(super) fn note_coverage(&self, asking: &Asking, target: &str, usable: Usable<'_, Reply>) {
        if self.route.keeps
            // An empty scope part ends the call before it looks anything up.
            && let Ok(found) = self.route.guard.servable(asking, target, usable)
        {
            self.route.seen.coverage.note(found);
        }
    }

    /// Notes what the end of a call says: of an old answer its age, and of a call that no copy has answered, what the
    /// shelf had for it.
    pub(super) fn note_end(&self, end: &Result<Answer<Reply, Trouble>, Unanswered<Trouble>>) {
        if let Some((cache, cached)) = self.route.cache.as_ref().zip(self.cached.as_ref())
            && !end.as_ref().is_ok_and(|answer| is_of_a_copy(answer.rung))
        {
            self.route.seen.coverage.note(self.would_serve(cache, cached));
        }
        if let Ok(answer) = end
            && answer.rung == Rung::Stale
            && answer.reason != Some(Reason::Revalidating)
            && let Some(age) = answer.age
            && let Some(limit) = self.limit_of(&answer.value)
        {
            self.route.seen.ages.note(age, limit);
            if let Some(observed) = answer.observed {
                self.route.oldest.note(observed, limit);
            }
        }
    }

    /// Says what a failure now would have been given of the copy that was there when the call came.
    fn would_serve(&self, cache: &HttpCache, cached: &Cached) -> Result<Duration, Skipped> {
        let now = self.route.engine.now().mono;
        let age = cached.looked.chosen().ok_or(Skipped::NoSnapshot)?.age(now);
        match skipped(cache.decide(&cached.looked, now, Origin::NoAnswer)) {
            Some(why) => Err(why),
            // After a failure there is nothing else to decide than whether the copy is given.
            None => age.ok_or(Skipped::UnknownAge),
        }
    }

    /// Returns the age limit that an old answer was served under.
    fn limit_of(&self, held: &Reply) -> Option<Duration> {
        match held {
            Reply::Whole(whole) => {
                let limits = [
                    self.route.guard.contract().ladder().max_age(),
                    whole.terms.own_limit,
                ];
                limits.into_iter().flatten().min()
            }
            Reply::Cached(copy, _) => {
                let (cache, cached) = self.route.cache.as_ref().zip(self.cached.as_ref())?;
                cache.limit_on_failure(cached.looked.request(), copy)
            }
            Reply::Streamed(..) | Reply::Default(_) => None,
        }
    }
}

const fn is_of_a_copy(rung: Rung) -> bool {
    matches!(rung, Rung::Fresh | Rung::Stale)
}

impl Route {
    /// Tells whether calls may share attempts.
    pub(crate) const fn shares(&self) -> bool {
        self.coalesces || self.cache.is_some()
    }

    /// Moves its windows on. Called at every sweep.
    pub(super) fn tick(&self) {
        if self.keeps || self.cache.is_some() {
            let more = match self.cache {
                None => 0,
                Some(_) => self.answered_by_copies(&self.guard.counts()),
            };
            self.seen.coverage.tick(self.engine.now().mono, more);
        }
    }

    /// Returns how many calls found a copy that answered them, on a route that caches. They are not in its coverage.
    pub(crate) fn answered_by_copies(&self, counts: &evenkeel::Counts) -> u64 {
        if self.cache.is_none() {
            return 0;
        }
        [Rung::Fresh, Rung::Stale]
            .map(|rung| counts.total(evenkeel::Ending::Answered(rung)))
            .iter()
            .sum()
    }
}
