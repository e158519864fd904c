//! Decides what all calls of one guard share: the contract, the user's functions, the store and the counters.
//! It exists so that a call, a background probe and a flight work with the same things.
//! It refuses to hold anything that belongs to one call.

use std::{fmt, mem, sync::Arc};

use evenkeel_core::{Advice, Class, Ending, HoldMode, Keep, Mono, Now, ReadContract, Reason, Skips};

use crate::{
    answer::{Misuse, Unanswered},
    counts::{GuardCounters, NotKept},
    dependency::Dependency,
    event::EventKind,
    flight::Flights,
    hold::{self, HoldSlot},
    key::{self, EmptyScopePart, Key, Scope},
    memory::{Entry, Memory, Put},
    read::{draws::Draws, exercise::Exercise, terms::Terms},
    tail,
};

/// What a value that owns something is taken to own, where nobody says.
const OWNED_BYTES_GUESS: usize = 1024;

/// Returns how many bytes a value is taken to be, where nobody says.
pub(crate) const fn guess<T>() -> usize {
    mem::size_of::<T>()
        + if mem::needs_drop::<T>() {
            OWNED_BYTES_GUESS
        } else {
            0
        }
}

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
    pub(crate) advice: Option<Of<E, Advice>>,
    pub(crate) advice_of: Option<Of<T, Advice>>,
    pub(crate) share_if: Option<Of<T, bool>>,
    pub(crate) weigh: Of<T, usize>,
    pub(crate) default: Option<Box<dyn Fn() -> T + Send + Sync>>,
    pub(crate) memory: Memory<T>,
    pub(crate) hold: Arc<HoldSlot>,
    pub(crate) counters: Arc<GuardCounters>,
    pub(crate) flights: Option<Arc<Flights<T, E>>>,
    /// Copies an error for each of several callers; only guards that coalesce need it.
    pub(crate) copy_error: Option<fn(&E) -> E>,
    /// The work keeps the time: no limit of the dependency's ends its attempts.
    pub(crate) untimed: bool,
    pub(crate) draws: Draws,
    pub(crate) exercise: Option<Exercise<T>>,
}

impl<T, E> Inner<T, E> {
    pub(crate) fn now(&self) -> Now {
        self.dependency.0.engine.now()
    }

    pub(crate) fn tell(&self, kind: EventKind) {
        self.dependency.0.engine.tell(&self.name, kind);
    }

    /// Returns the mode forced on this guard at `now` and when it ends, telling once when it has run out.
    pub(crate) fn held(&self, now: Mono) -> Option<(HoldMode, Mono)> {
        self.hold
            .look(now, |mode| self.tell(EventKind::Released { mode, by: None }))
    }

    /// Returns the mode in force at `now`, be it by a hold on this guard or on its dependency, and when calls get
    /// through again.
    pub(crate) fn look(&self, now: Mono) -> Option<(HoldMode, Mono)> {
        hold::both(self.held(now), self.dependency.0.held(now))
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
            alternate_cause: None,
            misuse: Some(Misuse::EmptyScopePart(misuse)),
        }
    }
}

impl<T: Clone, E> Inner<T, E> {
    pub(crate) fn class_of(&self, value: &T) -> Class {
        self.class_of
            .as_ref()
            .map_or(Class::Answer, |class_of| class_of(value))
    }

    /// Tells whether a value says that what is kept stays.
    fn says_leave(&self, value: &T) -> bool {
        self.terms
            .as_ref()
            .is_some_and(|terms| terms(value).keep == Keep::Leave)
    }

    /// Does with a success what contract and data say: keeps it, or leaves the old snapshot, or says that the old one
    /// is superseded.
    pub(crate) fn keep(&self, key: Option<&Key>, value: &T, class: Class, began: Now) -> Kept {
        let Some(key) = key.filter(|_| self.contract.keeps_snapshots()) else {
            return Kept::No;
        };
        if class != Class::Answer {
            self.counters.not_kept(NotKept::NotAnAnswer);
            return match class {
                // Who has a say in how values are kept says whether this one is about more than its caller.
                Class::Gone if self.says_leave(value) => Kept::No,
                Class::Gone => Kept::Supersedes(began.mono),
                Class::Answer
                | Class::Outage(_)
                | Class::Refusal
                | Class::Busy
                | Class::Fault
                | Class::Local
                | Class::Cancelled => Kept::No,
            };
        }
        let terms = self
            .terms
            .as_ref()
            .map_or_else(Terms::default, |terms| terms(value));
        let worth_keeping = self.keep_if.as_ref().is_none_or(|keep_if| keep_if(value));
        let observed = began.mono.before(terms.already);
        let why_not = match terms.keep {
            Keep::Remove => {
                self.counters.not_kept(NotKept::MustNotBeKept);
                return Kept::Supersedes(observed);
            }
            Keep::Leave => NotKept::NotWorthKeeping,
            Keep::Yes if !worth_keeping => NotKept::NotWorthKeeping,
            Keep::Yes => {
                let entry = Entry {
                    observed: Some(observed),
                    observed_wall: Some(began.wall_of(observed)),
                    own_limit: terms.own_limit,
                    stale_forbidden: terms.stale_forbidden,
                    lifetime: self.lifetime(terms.lifetime),
                    revalidate: terms.revalidate,
                    cost: self.cost(began),
                };
                match self.memory.keep(key, value.clone(), (self.weigh)(value), entry) {
                    Put::Kept => return Kept::Yes,
                    Put::Superseded => NotKept::Superseded,
                    Put::TooBig => NotKept::TooBig,
                }
            }
        };
        self.counters.not_kept(why_not);
        Kept::No
    }
}

/// What became of a success in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is the snapshot now.
    Yes,
    /// It is not, and the old one stays.
    No,
    /// It must not be kept, and what was observed up to this time is to be retired.
    Supersedes(Mono),
}

impl Kept {
    /// Tells whether it is the snapshot now.
    pub(crate) const fn is_yes(self) -> bool {
        matches!(self, Self::Yes)
    }

    /// Returns up to when the old snapshot must have been observed to be superseded.
    pub(crate) const fn supersedes(self) -> Option<Mono> {
        match self {
            Self::Supersedes(at) => Some(at),
            Self::Yes | Self::No => None,
        }
    }
}
impl<T, E> tail::Guard for Inner<T, E>
where
    T: Send + Sync,
    E: Send + Sync,
{
    fn ended(&self, ending: Ending, reason: Option<Reason>) {
        self.counters.ended(ending, reason);
    }

    fn retire(&self, key: &Key, at: Mono) {
        self.memory.retire(key, at);
    }
}

impl<T, E> fmt::Debug for Inner<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
