//! Decides what a look at the store says without a call: how old the snapshot is that would stand in now, or why none would.
//! It exists because whoever learns in the outage that nothing is kept learns it too late.
//! It refuses to count, to ask anybody and to serve: only a call does.

use std::time::Duration;

use evenkeel_core::Skipped;

use super::{Read, Usable};
use crate::key::{self, EmptyScopePart, Scope};

impl<T, E, S> Read<T, E, S>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: Scope,
{
    /// Says what the stale rung would give to a call that fails now: the age of the snapshot, or why there is none.
    ///
    /// The inner error is the word that such a call would have among its skipped rungs: [`Skipped::NoSnapshot`] also where
    /// the ladder has no stale rung. One look at the store and at the clock; nothing is counted. A hold on the guard is
    /// not looked at.
    ///
    /// ```
    /// # use evenkeel::{Class, Engine, Skipped, stale};
    /// # use std::time::{Duration, SystemTime};
    /// let guard = Engine::system()
    ///     .read::<u32>("stock")
    ///     .classify(|_: &()| Class::OUTAGE)
    ///     .ladder([stale(Duration::from_secs(60))])
    ///     .build()?;
    /// assert_eq!(guard.servable(&(), "42", None)?, Err(Skipped::NoSnapshot));
    /// guard.seed((), "42", 3, Some(SystemTime::now()))?;
    /// assert!(guard.servable(&(), "42", None)?.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When a part of the scope is empty.
    pub fn servable(
        &self,
        scope: &S,
        key: impl AsRef<[u8]>,
        usable: Usable<'_, T>,
    ) -> Result<Result<Duration, Skipped>, EmptyScopePart> {
        let inner = &self.inner;
        let Some(max_age) = inner.contract.ladder().max_age() else {
            key::check(scope)?;
            return Ok(Err(Skipped::NoSnapshot));
        };
        let key = key::write(&inner.key, scope, key.as_ref())?;
        let Some(snapshot) = inner.memory.get(&key) else {
            return Ok(Err(Skipped::NoSnapshot));
        };
        let usable = usable.is_none_or(|usable| usable(&snapshot.value));
        Ok(snapshot.facts(usable).stale(max_age, inner.now().mono))
    }
}
