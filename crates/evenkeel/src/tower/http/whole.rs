//! Decides what a complete response is to a guard: what it means, whether it may be kept, and who may have the copy.
//! It exists so that the rules of `evenkeel-http` are asked once for each response, when it is complete.
//! It refuses to keep what is itself degraded: somebody else's old data would seem as young as this call.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use evenkeel_core::{Class, Keep, Wall};
use evenkeel_http::{
    age::{corrected_initial_age, freshness_lifetime, stale_limit},
    dates::HttpDate,
    degraded::is_degraded,
    facts::{RequestFacts, ResponseHead, Reuse, Sharing, StoredFacts},
    reuse::{given_from_shared, stale_forbidden},
    store_rules::{NotKept, may_keep},
    supersede::supersedes,
    vary::Variant,
};
use http::{HeaderMap, HeaderName, Method, Response};

use crate::read::Terms;

/// A complete response, and on which terms it may be given again. Clones share it.
#[derive(Clone, Debug)]
pub struct Whole(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    response: Response<Bytes>,
    terms: Terms,
    given_to: GivenTo,
}

/// Who may have a copy.
#[derive(Debug)]
enum GivenTo {
    Everybody,
    Those { facts: StoredFacts, variant: Variant },
}

/// A request, as far as keeping and giving depend on it: as it was received.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) headers: HeaderMap,
    facts: RequestFacts,
}

impl Asked {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        Self {
            facts: RequestFacts::of(&Method::GET, headers, &[""; 0]),
            headers: headers.clone(),
        }
    }
}

impl Whole {
    /// Makes one of a response that a program declares, for a default or a seed: for everybody in its scope.
    #[must_use]
    pub fn new(response: Response<Bytes>) -> Self {
        Self(Arc::new(Inner {
            response,
            terms: Terms::default(),
            given_to: GivenTo::Everybody,
        }))
    }

    /// Makes one of a response that has come to its end at this time.
    pub(super) fn received(response: Response<Bytes>, asked: &Asked, at: Wall) -> Self {
        let (terms, given_to) = judge(&response, asked, HttpDate::from_unix_seconds(at.as_secs()));
        Self(Arc::new(Inner {
            response,
            terms,
            given_to,
        }))
    }

    /// Returns the response, as it came.
    #[must_use]
    pub fn response(&self) -> &Response<Bytes> {
        &self.0.response
    }

    pub(super) fn class(&self) -> Class {
        // An answer to the request's own conditions, and what is none of HTTP's business, is an answer too.
        Class::of_status(self.0.response.status().as_u16())
    }

    pub(super) fn terms(&self) -> Terms {
        self.0.terms
    }

    /// Returns the bytes that it takes: body, fields, and what holds them.
    pub(super) fn weight(&self) -> usize {
        let field = |(name, value): (&HeaderName, &http::HeaderValue)| name.as_str().len() + value.len() + 64;
        let fields: usize = self.0.response.headers().iter().map(field).sum();
        self.0.response.body().len() + fields + size_of::<Inner>()
    }

    /// Tells whether a copy may be given to whoever asked.
    pub(super) fn fits(&self, asked: &Asked) -> bool {
        match &self.0.given_to {
            GivenTo::Everybody => true,
            // The stricter of the two rules: it holds for fresh copies as well.
            GivenTo::Those { facts, variant } => {
                variant.matches(&asked.headers)
                    && given_from_shared(&asked.facts, facts, Reuse::Stale).is_ok()
            }
        }
    }
}

fn judge(response: &Response<Bytes>, asked: &Asked, at: HttpDate) -> (Terms, GivenTo) {
    let keep = |keep| {
        let terms = Terms {
            keep,
            ..Terms::default()
        };
        (terms, GivenTo::Everybody)
    };
    let head = ResponseHead::of(response.status(), response.headers());
    if let Err(why) = may_keep(Sharing::Shared, &asked.facts, &head) {
        return keep(after(why, &asked.facts, &head));
    }
    if is_degraded(response.headers()) {
        return keep(Keep::Leave);
    }
    let Ok(variant) = Variant::of(response.headers(), &asked.headers) else {
        return keep(Keep::Remove);
    };
    let said = head.directives;
    let lifetime = freshness_lifetime(&said, response.headers(), Sharing::Shared, at);
    let terms = Terms {
        own_limit: stale_limit(lifetime, said.stale_if_error),
        stale_forbidden: stale_forbidden(Sharing::Shared, &said).is_some(),
        // The age counts from the beginning of the attempt, so the delay of the response is in it already.
        already: corrected_initial_age(response.headers(), at, Duration::ZERO),
        ..Terms::default()
    };
    let facts = StoredFacts {
        authorization: asked.facts.authorization,
        directives: said,
    };
    (terms, GivenTo::Those { facts, variant })
}

/// What becomes of the snapshot when a newer response may not be kept.
fn after(why: NotKept, asked: &RequestFacts, response: &ResponseHead<'_>) -> Keep {
    if supersedes(why, Sharing::Shared, asked, &response.directives) {
        Keep::Remove
    } else {
        Keep::Leave
    }
}
