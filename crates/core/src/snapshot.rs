//! Decides which of two copies of the same data stays, and what a success means for the copy that is kept.
//! It exists so that a late load can never overwrite newer data, in any store.
//! It refuses to hold data; stores do that.

use crate::time::Mono;

/// What becomes of the snapshot when an attempt succeeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// The answer is good enough to be kept: it replaces the snapshot.
    #[default]
    Yes,
    /// It is not (an empty list, a login page): the snapshot stays as it is.
    Leave,
    /// It must not be kept (no-store, too big, private): the snapshot goes too, because it is superseded.
    Remove,
}

/// Tells whether data observed at `new` replaces data observed at `held`: the newest start wins.
///
/// An unknown time never replaces a known one, and is replaced by anything.
#[must_use]
pub fn replaces(new: Option<Mono>, held: Option<Mono>) -> bool {
    match (new, held) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(new), Some(held)) => new >= held,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e47_an_older_load_never_replaces_a_newer_one() {
        let at = |nanos| Some(Mono::from_nanos(nanos));
        assert!(replaces(at(5), at(4)));
        assert!(replaces(at(5), at(5)));
        assert!(!replaces(at(4), at(5)));
        assert!(!replaces(None, at(i64::MIN)));
        assert!(replaces(at(i64::MIN), None));
        assert!(replaces(None, None));
    }
}
