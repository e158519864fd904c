//! Decides how protect steps are counted: each once, as allowed, denied, unavailable for a reason, or left by its caller.
//! It exists apart from the counts of other guards because "answered" would not say which of the two answers it was.
//! It refuses to count a call twice, or not at all.

use std::fmt;

use evenkeel_core::{Protection, Reason};

use super::Decided;
use crate::counts;

const ALLOWED: usize = 0;
const DENIED: usize = 1;
const ABANDONED: usize = 2;
const FIRST_REASON: usize = 3;
const CELLS: usize = FIRST_REASON + Reason::ALL.len();

/// The counters of one guard.
#[derive(Debug)]
pub(super) struct Counters(counts::Counters<CELLS>);

impl Default for Counters {
    fn default() -> Self {
        Self(counts::Counters::new())
    }
}

impl Counters {
    pub(super) fn read(&self) -> ProtectCounts {
        ProtectCounts(std::array::from_fn(|index| self.0.sum(index)))
    }
}

/// A protect step that is under way. Dropped without an end it counts as abandoned.
#[derive(Debug)]
pub(super) struct Counting<'c> {
    counters: &'c Counters,
    cell: usize,
}

impl<'c> Counting<'c> {
    pub(super) const fn of(counters: &'c Counters) -> Self {
        Self {
            counters,
            cell: ABANDONED,
        }
    }

    pub(super) fn end<T, D, E>(mut self, decided: Decided<T, D, E>) -> Decided<T, D, E> {
        self.cell = match &decided {
            Decided::Allow(_) => ALLOWED,
            Decided::Deny(_) => DENIED,
            Decided::Unavailable(nobody) => FIRST_REASON + nobody.reason.index(),
        };
        decided
    }
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        self.counters.0.add(self.cell);
    }
}

/// What the calls of one Protect guard came to, since it was built.
#[derive(Clone)]
pub struct ProtectCounts([u64; CELLS]);

impl ProtectCounts {
    /// Returns how many calls came to this.
    #[must_use]
    pub fn total(&self, protection: Protection) -> u64 {
        match protection {
            Protection::Allowed => self.0[ALLOWED],
            Protection::Denied => self.0[DENIED],
            Protection::Unavailable => self.0.iter().skip(FIRST_REASON).sum(),
        }
    }

    /// Returns how many calls were unavailable for this reason.
    #[must_use]
    pub const fn unavailable(&self, reason: Reason) -> u64 {
        self.0[FIRST_REASON + reason.index()]
    }

    /// Returns how many calls were left by their callers before anything was decided.
    #[must_use]
    pub const fn abandoned(&self) -> u64 {
        self.0[ABANDONED]
    }

    /// Returns how many calls have ended.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl fmt::Debug for ProtectCounts {
    /// Names what was counted at least once.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        let totals = [Protection::Allowed, Protection::Denied].map(|what| (what.as_str(), self.total(what)));
        let reasons = Reason::ALL.map(|reason| (reason.as_str(), self.unavailable(reason)));
        let all = totals.into_iter().chain([("abandoned", self.abandoned())]);
        for (what, count) in all.chain(reasons).filter(|(_, count)| *count > 0) {
            map.entry(&format_args!("{what}"), &count);
        }
        map.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protect::Unavailable;

    #[test]
    fn each_step_is_counted_once_under_its_own_word() {
        let counters = Counters::default();
        let end = |decided: Decided<(), (), ()>| drop(Counting::of(&counters).end(decided));
        end(Decided::Allow(()));
        end(Decided::Deny(()));
        for reason in Reason::ALL {
            end(Decided::Unavailable(Unavailable {
                reason,
                retry_after: None,
                cause: None,
                misuse: None,
            }));
        }
        drop(Counting::of(&counters));
        let counts = counters.read();
        assert!(Reason::ALL.iter().all(|reason| counts.unavailable(*reason) == 1));
        let totals = Protection::ALL.map(|what| counts.total(what));
        assert_eq!(totals, [1, 1, Reason::ALL.len() as u64]);
        assert_eq!(
            (counts.abandoned(), counts.calls()),
            (1, 3 + Reason::ALL.len() as u64)
        );
        assert!(format!("{counts:?}").starts_with("{allow: 1, deny: 1, abandoned: 1, dependency-failed: 1"));
    }
}
