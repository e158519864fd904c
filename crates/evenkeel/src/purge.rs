//! Decides what it means to purge: which keys are concerned, what becomes of their copies, and of loads that are under way.
//! It exists so that every store purges in the same words, and so that a purge of a million keys holds up nobody.
//! It refuses to hand out keys that can be changed; whoever purges sees their parts.

use std::{fmt, sync::Arc};

/// What becomes of the copies that are purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purge {
    /// They are gone, and do not stand in for anything any more.
    Hard,
    /// They are no longer fresh, and still there for failures.
    Soft,
}

impl Purge {
    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hard => "hard",
            Self::Soft => "soft",
        }
    }
}

/// What a purge came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// How many keys were looked at.
    pub looked_at: u64,
    /// How many of them had a copy that was concerned.
    pub purged: u64,
}

/// A key in its parts, as a guard has written it.
///
/// ```
/// use evenkeel::{Class, Engine, KeyParts, stale};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let guard = Engine::system()
///     .read::<u32>("stock")
///     .scope::<(&str,)>()
///     .classify(|_: &std::fmt::Error| Class::OUTAGE)
///     .ladder([stale(std::time::Duration::from_secs(60))])
///     .build()?;
/// guard.call(("acme",), "42", |_| async { Ok(3) }).await?;
/// let mut seen = Vec::new();
/// guard.memory().each(|key, copy| seen.push((key.guard.to_owned(), key.scope.join("/"), key.key.to_vec(), *copy.value)));
/// assert_eq!(seen, [("stock".to_owned(), "acme".to_owned(), b"42".to_vec(), 3)]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyParts<'k> {
    /// The name of the guard.
    pub guard: &'k str,
    /// The parts that say whose data it is, in their order.
    pub scope: Vec<&'k str>,
    /// What the caller gave as the key.
    pub key: &'k [u8],
}

/// Ends the scope; see `key.rs`.
const KEY_FOLLOWS: u8 = 0xff;

impl<'k> KeyParts<'k> {
    /// Takes a key apart. `None` for what no guard has written.
    #[must_use]
    pub fn of(whole: &'k [u8]) -> Option<Self> {
        let (guard, mut rest) = part(whole)?;
        let mut scope = Vec::new();
        loop {
            if let Some((&KEY_FOLLOWS, key)) = rest.split_first() {
                return Some(Self { guard, scope, key });
            }
            let (next, behind) = part(rest)?;
            scope.push(next);
            rest = behind;
        }
    }
}

/// Takes one part with its length off the front.
fn part(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_be_bytes(*length)).ok()?;
    let (part, rest) = rest.split_at_checked(length)?;
    Some((std::str::from_utf8(part).ok()?, rest))
}

/// Which keys a purge concerns.
///
/// It is kept for a while, because a load that is under way may bring a copy under such a key that was asked for before
/// the purge.
#[derive(Clone)]
pub struct Concerns(Arc<dyn Fn(&KeyParts<'_>) -> bool + Send + Sync>);

impl fmt::Debug for Concerns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Concerns")
    }
}

impl Concerns {
    /// Concerns the keys of which this holds. It is asked on the way of calls too, so it has to be quick.
    pub fn keys(concerns: impl Fn(&KeyParts<'_>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(concerns))
    }

    /// Tells whether a whole key is concerned.
    pub(crate) fn whole(&self, key: &[u8]) -> bool {
        KeyParts::of(key).is_some_and(|parts| (self.0)(&parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_key_comes_apart_into_what_it_was_made_of(
            guard in "[a-z]{1,8}", scope in proptest::collection::vec("[a-z\u{e4}]{1,4}", 0..4),
            rest in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            let whole = key::write(&key::of_guard(&guard), &scope, &rest).unwrap();
            let parts = KeyParts::of(&whole).unwrap();
            prop_assert_eq!(parts.guard, guard);
            prop_assert_eq!(parts.scope, scope);
            prop_assert_eq!(parts.key, rest);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            drop(KeyParts::of(&bytes));
        }
    }
}
