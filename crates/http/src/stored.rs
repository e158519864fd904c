//! Decides which facts of a stored answer the reuse decision needs, and works them out once, at storing.
//! It exists so that a look-up weighs a handful of plain fields and reads no header again.
//! It refuses to hold the answer itself; bodies, headers and keys belong to the store.

use std::time::Duration;

use http::StatusCode;
use http::header::{ETAG, LAST_MODIFIED};

use crate::dates::HttpDate;
use crate::facts::{RequestFacts, ResponseHead, Sharing, StoredFacts};
use crate::lifetime::{Heuristic, Lifetime};

/// What the reuse decision needs to know of a stored answer. Keep it beside the answer; make it anew after a
/// 304 has updated the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredCopy {
    /// Identity and directives.
    pub facts: StoredFacts,
    /// The status it is given with.
    pub status: StatusCode,
    /// For how long it is fresh.
    pub lifetime: Lifetime,
    /// It has an `ETag` or a `Last-Modified` to validate it by.
    pub has_validator: bool,
    /// It was retired softly: no longer fresh whatever its lifetime says, still there for failures. Set by a
    /// soft purge, and where a HEAD showed that it is outdated (rule C25).
    pub expired: bool,
}

impl StoredCopy {
    /// Reads the facts of an answer received at `received`.
    #[must_use]
    pub fn of(
        sharing: Sharing,
        request: &RequestFacts,
        head: &ResponseHead<'_>,
        received: HttpDate,
        heuristic: Heuristic,
    ) -> Self {
        let modified = HttpDate::from_field(head.headers, &LAST_MODIFIED, received);
        Self {
            facts: StoredFacts {
                authorization: request.authorization,
                directives: head.directives,
            },
            status: head.status,
            lifetime: Lifetime::of(head, sharing, received, heuristic),
            has_validator: head.headers.contains_key(ETAG) || modified.is_some(),
            expired: false,
        }
    }

    /// Tells whether it is fresh at this age.
    #[must_use]
    pub fn is_fresh_at(&self, age: Duration) -> bool {
        !self.expired && self.lifetime.is_fresh_at(age)
    }

    /// Tells whether its lifetime was stated or guessed, so that there is an expiry to count from.
    #[must_use]
    pub fn has_lifetime(&self) -> bool {
        self.lifetime != Lifetime::Unknown
    }

    /// Tells whether it is data rather than an error answer. Only data is ever given stale: an error answer is
    /// kept for its own lifetime, never longer, and never stands in for a failure.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.status.is_success() || self.status.is_redirection()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;
    use http::{HeaderMap, Method};

    fn copy(status: u16, lines: &[(&str, &str)]) -> StoredCopy {
        let map = headers(lines.iter().copied());
        let head = ResponseHead::of(StatusCode::from_u16(status).unwrap(), &map);
        let request = RequestFacts::of(&Method::GET, &HeaderMap::new(), &[""; 0]);
        let received = HttpDate::from_unix_seconds(784_111_777);
        StoredCopy::of(Sharing::Shared, &request, &head, received, Heuristic::OFF)
    }

    #[test]
    fn c21_an_etag_or_a_readable_last_modified_is_a_validator() {
        assert!(copy(200, &[("etag", "\"a\"")]).has_validator);
        assert!(copy(200, &[("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT")]).has_validator);
        assert!(!copy(200, &[("last-modified", "yesterday")]).has_validator);
        assert!(!copy(200, &[]).has_validator);
    }

    #[test]
    fn a_softly_retired_copy_is_never_fresh() {
        let mut found = copy(200, &[("cache-control", "max-age=60")]);
        assert!(found.is_fresh_at(Duration::ZERO));
        found.expired = true;
        assert!(!found.is_fresh_at(Duration::ZERO));
    }

    #[test]
    fn only_2xx_and_3xx_are_data() {
        assert!(copy(200, &[]).is_good() && copy(301, &[]).is_good());
        assert!(!copy(404, &[]).is_good() && !copy(503, &[]).is_good());
    }
}
