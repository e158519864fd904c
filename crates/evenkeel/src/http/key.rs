//! Decides what makes two requests ask for the same URI: contract, scope, scheme, authority and target, each with its
//! length.
//! It exists so that a write can find the copies that it retires, and nobody else's (C32).
//! It refuses an empty scope part, as every key does.

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
pub struct UriKey {
    whole: Key,
    /// How much of it says whose data it is, where that has a budget of its own.
    scope: Option<usize>,
}

impl UriKey {
    /// Writes the key of a target. `contract` names whose answers are meant; the scope holds scheme, authority and
    /// whatever says whose data it is; `target` is path and query as the origin sees them.
    ///
    /// # Errors
    /// When a part of the scope is empty.
    pub fn of<S: Scope>(contract: &str, scope: &S, target: &str) -> Result<Self, EmptyScopePart> {
        let whole = key::write_named(contract, scope, target.as_bytes())?;
        Ok(Self { whole, scope: None })
    }

    /// Gives the scope a budget of its own: on a shelf with shares it cannot push out what others have. `target` is the
    /// one that the key was written with.
    #[must_use]
    pub fn with_budget(self, target: &str) -> Self {
        Self {
            scope: Some(self.whole.len().saturating_sub(target.len())),
            ..self
        }
    }

    /// Makes a key of bytes that a store behind a shelf has kept, and of how many of them [have a budget](Self::budget_length).
    #[must_use]
    pub fn of_bytes(whole: &[u8], budget: Option<usize>) -> Self {
        Self {
            whole: Key::from_slice(whole),
            scope: budget.filter(|length| *length <= whole.len()),
        }
    }

    /// Returns how many of its bytes say whose data it is, where that has a budget.
    #[must_use]
    pub const fn budget_length(&self) -> Option<usize> {
        self.scope
    }

    /// Returns what says whose data it is, where that has a budget.
    pub(super) fn scope(&self) -> Option<&[u8]> {
        self.whole.get(..self.scope?)
    }

    /// Returns what is compared.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.whole
    }

    pub(super) const fn bytes(&self) -> &Key {
        &self.whole
    }
}
