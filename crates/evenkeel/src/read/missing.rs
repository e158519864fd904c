//! Decides whether a snapshot would have to be fetched from a store behind the one in memory.
//! It exists so that who has such a store asks it before the call, where waiting has a limit of its own.
//! It refuses to look there itself: the path that serves snapshots touches nothing that can be down.

use super::Read;
use crate::key::{self, Scope};

impl<T, E, S> Read<T, E, S>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: Scope,
{
    /// Returns the whole key under which a store behind the one in memory may have a snapshot, if none is held here.
    ///
    /// `None` if one is held, if the guard keeps none, and for a scope with an empty part. The scope is the one of a call, of
    /// whatever type.
    pub fn missing(&self, scope: &impl Scope, key: impl AsRef<[u8]>) -> Option<Vec<u8>> {
        if !self.inner.contract.keeps_snapshots() {
            return None;
        }
        let key = key::write(&self.inner.key, scope, key.as_ref()).ok()?;
        self.inner.memory.get(&key).is_none().then(|| key.into_vec())
    }
}
