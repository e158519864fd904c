//! Decides what a guard has of one before it of the same name: its counters, its hold, and which of its snapshots.
//! It exists so that a contract that is loaded anew neither forgets what was counted nor serves what it does not mean.
//! It refuses a hold that the new contract forbids.

use std::sync::Arc;

use evenkeel_core::ReadContract;

use super::{Read, ReadBuilder};
use crate::{
    counts::GuardCounters,
    hold::HoldSlot,
    key::{self, Key},
};

/// What comes from before.
#[derive(Debug, Default)]
pub(crate) struct Before {
    guard: Option<(Arc<GuardCounters>, Arc<HoldSlot>)>,
    version: String,
}

impl Before {
    /// Returns the guard's part of keys, its counters and its hold.
    pub(super) fn parts(self, contract: &ReadContract) -> (Key, Arc<GuardCounters>, Arc<HoldSlot>) {
        let key = if self.version.is_empty() {
            key::of_guard(contract.name())
        } else {
            // No name has this character.
            key::of_guard(&format!("{}@{}", contract.name(), self.version))
        };
        let Some((counters, hold)) = self.guard else {
            return (key, Arc::new(GuardCounters::new()), Arc::default());
        };
        let suits = hold.current().is_none_or(|hold| hold.mode.suits(contract));
        (key, counters, if suits { hold } else { Arc::default() })
    }
}

impl<T, C, S> ReadBuilder<T, C, S> {
    /// Goes on with the counters and the hold of a guard of the same name that had another contract. A hold that this
    /// contract forbids is left behind.
    ///
    /// ```
    /// # use evenkeel::{Class, Engine, Hold, HoldMode};
    /// # use std::fmt::Error;
    /// let engine = Engine::system();
    /// let old = engine.read::<u32>("stock").classify(|_: &Error| Class::OUTAGE).build()?;
    /// old.hold(Hold { mode: HoldMode::ForcedOpen, by: "ana".into(), why: "migration".into(), lasts: None })?;
    /// let new = engine.read::<u32>("stock").succeeds(&old).exact().classify(|_: &Error| Class::OUTAGE).build()?;
    /// assert_eq!(new.held(), old.held());
    /// # Ok::<(), evenkeel::Problems>(())
    /// ```
    pub fn succeeds<E, R>(mut self, before: &Read<T, E, R>) -> Self {
        self.before.guard = Some((Arc::clone(&before.inner.counters), Arc::clone(&before.inner.hold)));
        self
    }

    /// Says which version of the data is meant, in any word: snapshots that were kept under another word are not found. For
    /// a contract whose scope, or whose source, has become another.
    pub fn version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.before.version);
        self
    }
}
