//! Decides what a store behind the one in memory may put back into it.
//! It exists apart because what comes back is older than anything that a call brings, and must undo nothing.
//! It refuses a copy whose key was retired since the store behind was asked.

use std::sync::Arc;

use super::{Entry, FUTURE, Memory, OVERHEAD, Put};
use crate::{
    behind::{Before, Behind, Restored},
    key::Key,
};

impl<T> Memory<T> {
    /// Tells a store behind this one of every change from now on. `false` if there is one already.
    pub fn write_behind(&self, behind: Arc<dyn Behind<T>>) -> bool {
        self.0.behind.set(behind)
    }

    /// Begins to ask a store behind for what is not held here.
    #[must_use]
    pub fn before(&self) -> Before {
        Before(self.0.retired.count())
    }

    /// Keeps what a store behind has given back, under the whole key that it was told: unless something observed later is
    /// held, or the key was retired since it was asked: `None`. What is returned holds it for the call that it is for.
    pub fn restore(
        &self,
        key: &[u8],
        value: T,
        value_bytes: usize,
        entry: Entry,
        before: Before,
    ) -> Option<Restored> {
        let key = Key::from_slice(key);
        let retired = || self.0.retired.since(&key, before.0);
        let bytes = (value_bytes as u64).saturating_add(OVERHEAD);
        let restored = self.0.pins.hold(bytes, self.limit());
        let pin = restored.pin();
        if retired() || self.put_quietly(&key, (value, value_bytes), entry, pin, None).0 != Put::Kept {
            return None;
        }
        let retired = retired();
        if retired {
            // Whoever retired it may not have seen this copy.
            let rank = entry.observed.filter(|at| *at < FUTURE);
            drop(self.0.cache.remove_if(&self.hash(&key), |held| {
                held.key.as_slice() == key.as_slice() && held.rank() == rank
            }));
        }
        (!retired).then_some(restored)
    }
}
