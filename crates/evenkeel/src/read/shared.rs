//! Decides what all calls of one guard share: the contract, the user's functions, the store and the counters.
//! It exists so that a call, a background probe and a flight work with the same things.
//! It refuses to hold anything that belongs to one call.

use std::sync::Arc;

use evenkeel_core::{Class, Ending, HoldMode, Keep, Mono, Now, ReadContract, Reason, Skips};

use crate::{
    answer::Unanswered,
    counts::{GuardCounters, NotKept},
    dependency::Dependency,
    event::EventKind,
    flight::Flights,
    hold::{HoldSlot, Look},
    key::{self, EmptyScopePart, Key, Scope},
    memory::{Entry, Memory, Put},
    read::builder::Terms,
};

type Of<T, R> = Box<dyn Fn(&T) -> R + Send + Sync>;

pub(crate) struct Inner<T, E> {
    pub(crate) contract: ReadContract,
    pub(crate) name: Arc<str>,
    /// The guard's own part of its keys.
    pub(crate) key: Key,
    pub(crate) dependency: Dependency,
    pub(crate) classify: Of<E, Class>,
    pub(crate) class_of: Option<Of<T, Class>>,
    pub(crate) keep_if: Option<Of<T, bool>>,
    pub(crate) terms: Option<Of<T, Terms>>,
    pub(crate) share_if: Option<Of<T, bool>>,
    pub(crate) weigh: Of<T, usize>,
    pub(crate) default: Option<Box<dyn Fn() -> T + Send + Sync>>,
    pub(crate) memory: Memory<T>,
    pub(crate) hold: HoldSlot,
    pub(crate) counters: GuardCounters,
    pub(crate) flights: Option<Arc<Flights<T, E>>>,
    /// Copies an error for each of several callers; only guards that coalesce need it.
    pub(crate) copy_error: Option<fn(&E) -> E>,
}

impl<T, E> Inner<T, E> {
    pub(crate) fn now(&self) -> Now {
        self.dependency.0.engine.now()
    }

    pub(crate) fn tell(&self, kind: EventKind) {
        self.dependency.0.engine.tell(&self.name, kind);
    }

    /// Returns the mode forced at `now`, telling once when a hold has run out.
    pub(crate) fn hold_mode(&self, now: Mono) -> Option<HoldMode> {
        self.look(now).map(|(mode, _)| mode)
    }

    /// Returns the mode forced at `now` and when it ends.
    pub(crate) fn look(&self, now: Mono) -> Option<(HoldMode, Mono)> {
        match self.hold.look(now) {
            Look::None => None,
            Look::Held(mode, until) => Some((mode, until)),
            Look::Expired(mode) => {
                self.tell(EventKind::Released { mode, by: None });
                None
            }
        }
    }

    /// Writes the key of a call into `place`. Only calls that look something up, keep something or join somebody
    /// need one.
    pub(crate) fn key_of<'k, S: Scope>(
        &self,
        place: &'k mut Key,
        scope: &S,
        key: &[u8],
    ) -> Result<Option<&'k Key>, EmptyScopePart> {
        if self.contract.keeps_snapshots() || self.contract.coalesce() {
            key::write_into(place, &self.key, scope, key)?;
            Ok(Some(place))
        } else {
            key::check(scope)?;
            Ok(None)
        }
    }

    /// Ends a call whose scope says nothing about whose data is meant.
    pub(crate) fn misused(&self, misuse: EmptyScopePart) -> Unanswered<E> {
        self.counters.ended(Ending::Failed, Some(Reason::Fault));
        Unanswered {
            ending: Ending::Failed,
            reason: Some(Reason::Fault),
            skipped: Skips::default(),
            retry_after: None,
            cause: None,
            misuse: Some(misuse),
        }
    }
}

impl<T: Clone, E> Inner<T, E> {
    pub(crate) fn class_of(&self, value: &T) -> Class {
        self.class_of
            .as_ref()
            .map_or(Class::Answer, |class_of| class_of(value))
    }

    /// Does with a success what contract and data say: keeps it, leaves the old snapshot, or retires it. `true` if it
    /// is the snapshot now.
    pub(crate) fn keep(&self, key: Option<&Key>, value: &T, class: Class, began: Now) -> bool {
        let Some(key) = key.filter(|_| self.contract.keeps_snapshots()) else {
            return false;
        };
        if class != Class::Answer {
            if class == Class::Gone {
                self.memory.retire(key, began.mono);
            }
            self.counters.not_kept(NotKept::NotAnAnswer);
            return false;
        }
        let terms = self
            .terms
            .as_ref()
            .map_or_else(Terms::default, |terms| terms(value));
        let worth_keeping = self.keep_if.as_ref().is_none_or(|keep_if| keep_if(value));
        let observed = began.mono.before(terms.already);
        let why_not = match terms.keep {
            Keep::Remove => {
                self.memory.retire(key, observed);
                NotKept::MustNotBeKept
            }
            Keep::Leave => NotKept::NotWorthKeeping,
            Keep::Yes if !worth_keeping => NotKept::NotWorthKeeping,
            Keep::Yes => {
                let entry = Entry {
                    observed: Some(observed),
                    observed_wall: Some(began.wall_of(observed)),
                    own_limit: terms.own_limit,
                    stale_forbidden: terms.stale_forbidden,
                };
                match self.memory.keep(key, value.clone(), (self.weigh)(value), entry) {
                    Put::Kept => return true,
                    Put::Superseded => NotKept::Superseded,
                    Put::TooBig => NotKept::TooBig,
                }
            }
        };
        self.counters.not_kept(why_not);
        false
    }
}
