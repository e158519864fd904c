//! Decides what is kept of an answer: its fields, its body, and the facts that later decisions need.
//! It exists so that a hit reads no header, copies no body, and makes nothing but the fields that differ each time.
//! It refuses to change: a copy that is updated or retired is replaced by another one.

use std::time::Duration;

use bytes::Bytes;
use evenkeel_core::{Mono, Now, Wall};
use evenkeel_http::{
    age::corrected_initial_age, answer::add_date, dates::HttpDate, facts::RequestFacts,
    freshness::X_DATA_FRESHNESS, hop::strip_hop_by_hop, stored::StoredCopy, vary::Variant,
};
use http::{
    HeaderMap, StatusCode,
    header::{AGE, CONTENT_LENGTH, SET_COOKIE},
};

use super::{facts::Facts, head::Head, rules::CacheRules};

/// The head of an answer as it arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'a> {
    /// Its status.
    pub status: StatusCode,
    /// Its fields, before those that end at this hop are taken out.
    pub headers: &'a HeaderMap,
    /// When the attempt began.
    pub began: Mono,
    /// When the head had arrived.
    pub at: Now,
}

impl Arrived<'_> {
    pub(super) const fn received(&self) -> HttpDate {
        HttpDate::from_unix_seconds(self.at.wall.as_secs())
    }

    /// When the data was observed: C10 counts the age from here.
    fn observed(&self) -> Mono {
        let delay = self.at.mono.since(self.began);
        let age = corrected_initial_age(self.headers, self.received(), delay);
        self.at.mono.before(age)
    }
}

/// A stored answer.
#[derive(Clone, Debug)]
pub struct Shelved {
    facts: Facts,
    head: Head,
    body: Bytes,
    /// `None` if it fits every request: most copies, and it is large.
    variant: Option<Box<Variant>>,
    pub(super) received: HttpDate,
    pub(super) began: Mono,
    observed: Mono,
    observed_wall: Wall,
    took: Duration,
}

impl Shelved {
    /// Copies an answer. `fields` are those that it is passed on with.
    pub(super) fn of(
        rules: &CacheRules,
        request: &RequestFacts,
        (arrived, fields): (&Arrived<'_>, &HeaderMap),
        variant: Variant,
        body: &[u8],
    ) -> Self {
        let mut kept = fields.clone();
        add_date(&mut kept, arrived.received());
        strip_hop_by_hop(&mut kept);
        let body = Bytes::copy_from_slice(body);
        Self::made(rules, request, arrived, (arrived.headers, kept, variant), body)
    }

    /// Makes the copy that an update leaves: these fields with the same body.
    pub(super) fn updated(
        &self,
        rules: &CacheRules,
        request: &RequestFacts,
        arrived: &Arrived<'_>,
        (fields, variant): (HeaderMap, Variant),
    ) -> Self {
        let known = self.facts();
        let authorization = known.facts.authorization || request.authorization;
        let request = RequestFacts {
            authorization,
            ..*request
        };
        let arrived = Arrived {
            status: known.status,
            ..*arrived
        };
        let said = fields.clone();
        let body = self.body.clone();
        Self::made(rules, &request, &arrived, (&said, fields, variant), body)
    }

    fn made(
        rules: &CacheRules,
        request: &RequestFacts,
        arrived: &Arrived<'_>,
        (said, mut kept, variant): (&HeaderMap, HeaderMap, Variant),
        body: Bytes,
    ) -> Self {
        let observed = arrived.observed();
        let head = rules.head(arrived.status, said);
        let facts = StoredCopy::of(rules.sharing, request, &head, arrived.received(), rules.heuristic);
        // Written anew for each answer: the age, what it is worth, and the length of what is sent.
        kept.remove(AGE);
        kept.remove(X_DATA_FRESHNESS);
        kept.remove(CONTENT_LENGTH);
        if !rules.keep_set_cookie {
            kept.remove(SET_COOKIE);
        }
        Self {
            facts: Facts::of(&facts),
            head: Head::of(&kept),
            body,
            variant: (!variant.nominated().names().is_empty()).then(|| Box::new(variant)),
            received: arrived.received(),
            began: arrived.began,
            observed,
            observed_wall: arrived.at.wall_of(observed),
            took: arrived.at.mono.since(arrived.began),
        }
    }

    /// Makes the copy that a soft retirement leaves: the same, and never fresh again.
    pub(super) fn expired(&self) -> Self {
        let mut copy = self.clone();
        copy.facts = Facts::of(&StoredCopy {
            expired: true,
            ..self.facts()
        });
        copy
    }

    /// Returns the status it is given with.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.facts().status
    }

    /// Returns the body; clones share it.
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    /// Makes the fields it is given with, with room for `more`: all but `Age` and `Content-Length`.
    #[must_use]
    pub fn headers(&self, more: usize) -> HeaderMap {
        self.head.to_map(more)
    }

    /// Tells whether it has a lifetime within which it may be given without asking.
    #[must_use]
    pub fn may_be_fresh(&self) -> bool {
        let known = self.facts();
        let said = &known.facts.directives;
        !known.expired && !said.no_cache && !said.unreadable && !known.lifetime.span().is_zero()
    }

    /// Returns its facts.
    #[must_use]
    pub fn facts(&self) -> StoredCopy {
        self.facts.get()
    }

    /// Returns when the attempt began that loaded it, or asked last whether it still holds.
    #[must_use]
    pub const fn began(&self) -> Mono {
        self.began
    }

    /// Returns when its data was observed, by the clock of ages.
    #[must_use]
    pub const fn observed(&self) -> Mono {
        self.observed
    }

    /// Returns when its data was observed, by the wall clock of that time.
    #[must_use]
    pub const fn observed_wall(&self) -> Wall {
        self.observed_wall
    }

    /// Returns when it was received, by the wall clock of that time.
    #[must_use]
    pub const fn received(&self) -> HttpDate {
        self.received
    }

    /// Returns how long its head took to come, which is what another one will cost.
    #[must_use]
    pub const fn took(&self) -> Duration {
        self.took
    }

    /// Returns its age; `None` if its time lies ahead.
    #[must_use]
    pub fn age(&self, now: Mono) -> Option<Duration> {
        (self.observed <= now).then(|| now.since(self.observed))
    }

    /// Tells whether it fits a request, as far as `Vary` goes.
    pub(super) fn fits(&self, request: &HeaderMap) -> bool {
        self.variant
            .as_ref()
            .is_none_or(|variant| variant.matches(request))
    }

    pub(super) fn variant(&self) -> Option<&Variant> {
        self.variant.as_deref()
    }

    /// Returns the bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let variant = self.variant.as_ref().map_or(0, |variant| {
            size_of::<Variant>() + variant.key().len() + variant.nominated().names().len() * 32
        });
        size_of::<Self>() + self.head.bytes() + self.body.len() + variant
    }
}
