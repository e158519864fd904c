//! Decides from when on what was loaded may be given, where it is somebody's: after the last write to it, and after the
//! dependency last refused the one it belongs to.
//! It exists because the copies of one target stand under as many keys as there are principals, and nobody can list them.
//! It refuses to grow: a table of fixed size, in which two that meet only lose more copies than they had to.

use std::{
    hash::{BuildHasher as _, Hash},
    sync::atomic::{AtomicI64, Ordering},
};

use evenkeel::Mono;
use foldhash::fast::RandomState;

/// Places of the table: 32 KiB, and with a thousand notes at once one copy in four asks once more than needed.
const PLACES: usize = 4096;

/// When what was void last, by a hash of what it is.
pub(crate) struct Since {
    times: Box<[AtomicI64]>,
    hashes: RandomState,
}

impl std::fmt::Debug for Since {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Since")
    }
}

/// A place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(usize);

impl Default for Since {
    fn default() -> Self {
        Self {
            times: (0..PLACES).map(|_| AtomicI64::new(i64::MIN)).collect(),
            hashes: RandomState::default(),
        }
    }
}

impl Since {
    /// Returns the place of something.
    pub(super) fn place(&self, what: impl Hash) -> Place {
        let hash = self.hashes.hash_one(what);
        // The remainder fits.
        Place(usize::try_from(hash % PLACES as u64).unwrap_or(0))
    }

    /// Notes that whatever an attempt loaded which began up to `at` is void.
    pub(super) fn note(&self, place: Place, at: Mono) {
        if let Some(time) = self.times.get(place.0) {
            time.fetch_max(at.as_nanos(), Ordering::AcqRel);
        }
    }

    /// Tells whether what an attempt loaded which began at `began` is void.
    pub(super) fn covers(&self, place: Place, began: Mono) -> bool {
        self.times
            .get(place.0)
            .is_none_or(|time| began.as_nanos() <= time.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_began_up_to_a_note_is_void_and_what_began_after_it_is_not() {
        let since = Since::default();
        let place = since.place(("ana", 1));
        assert!(!since.covers(place, Mono::from_nanos(0)));
        since.note(place, Mono::from_nanos(5));
        since.note(place, Mono::from_nanos(3));
        let covered = |nanos| since.covers(place, Mono::from_nanos(nanos));
        assert_eq!([4, 5, 6].map(covered), [true, true, false]);
        let others = (0..PLACES).map(|other| since.place((other, 2)));
        let also = others
            .filter(|other| since.covers(*other, Mono::from_nanos(0)))
            .count();
        assert!(also < PLACES / 100, "{also} of {PLACES} lost theirs too");
    }
}
