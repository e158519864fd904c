//! Decides what makes two requests ask for the same URI: contract, scope, scheme, authority and target, each with its
//! length.
//! It exists so that a write can find the copies that it retires, and nobody else's (C32).
//! It refuses an empty scope part, as every key does.

use smallvec::SmallVec;

use crate::key::{self, EmptyScopePart, Key, Scope};

/// The primary key of stored answers: one URI, in one scope.
///
/// ```
/// use evenkeel::http::UriKey;
///
/// let key = |tenant| UriKey::of("shop", &("http", "a.example", tenant), "/cart?page=2").unwrap();
/// assert_ne!(key("acme"), key("other"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriKey(Key);

impl UriKey {
    /// Writes the key of a target. `contract` names whose answers are meant; the scope holds scheme, authority and
    /// whatever says whose data it is; `target` is path and query as the origin sees them.
    ///
    /// # Errors
    /// When a part of the scope is empty.
    pub fn of<S: Scope>(contract: &str, scope: &S, target: &str) -> Result<Self, EmptyScopePart> {
        let contract: SmallVec<[u8; 96]> = key::of_guard(contract);
        key::write(&contract, scope, target.as_bytes()).map(Self)
    }

    /// Returns what is compared.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) const fn bytes(&self) -> &Key {
        &self.0
    }
}
