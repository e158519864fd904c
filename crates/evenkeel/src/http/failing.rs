//! Decides what would be given of a copy if its dependency failed: to one request, or to a plain one.
//! It exists because people ask this of a copy before there is a request.
//! It refuses to weigh anything; the rule book does.

use std::time::Duration;

use evenkeel_core::Mono;
use evenkeel_http::{
    decide::{Found, Origin, decide, limit_on_error},
    decision::Decision,
    facts::RequestFacts,
};
use http::{HeaderMap, Method};

use super::{cache::HttpCache, shelved::Shelved};

impl HttpCache {
    /// Returns the greatest age at which a copy stands in for a failure beyond its lifetime; `None` if nobody permits any.
    #[must_use]
    pub fn limit_on_failure(&self, request: &RequestFacts, copy: &Shelved) -> Option<Duration> {
        limit_on_error(request, &copy.facts(), &self.rules().terms())
    }

    /// Decides whether a plain request would be given this copy if its dependency failed now.
    #[must_use]
    pub fn on_failure(&self, copy: &Shelved, now: Mono) -> Decision {
        let facts = copy.facts();
        let found = Found::Copy {
            copy: &facts,
            age: copy.age(now),
        };
        decide(&self.plain(), found, Origin::NoAnswer, &self.rules().terms())
    }

    /// Returns the greatest age at which a plain request would be given this copy if its dependency failed.
    #[must_use]
    pub fn limit_of(&self, copy: &Shelved) -> Option<Duration> {
        self.limit_on_failure(&self.plain(), copy)
    }

    fn plain(&self) -> RequestFacts {
        self.rules().request(&Method::GET, &HeaderMap::new())
    }
}
