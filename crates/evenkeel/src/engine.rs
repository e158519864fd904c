//! Decides what guards share: the clock, the seed, the resources and the queue of events.
//! It exists as a handle that is cloned, so that state lives in one place however often a guard is handed around.
//! It refuses to be a global.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

use evenkeel_core::{Bulkhead, Now, Problems, Rng, check_name};
use parking_lot::Mutex;

use crate::{
    clock::Clock,
    dependency::{Dependency, DependencyBuilder},
    event::{Event, EventKind, Events},
    line::Lines,
    pass::PassBuilder,
    protect::ProtectBuilder,
    read::ReadBuilder,
};

/// What guards are built from. Clones share everything.
#[derive(Clone, Debug)]
pub struct Engine(Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    seeds: Mutex<Rng>,
    events: Events,
}

impl Engine {
    /// Makes an engine with the system's clocks and a random seed.
    #[must_use]
    pub fn system() -> Self {
        Self::new(Clock::system(), RandomState::new().hash_one(0))
    }

    /// Makes an engine with a clock and a seed of your choice. The same seed draws the same jitter.
    #[must_use]
    pub fn new(clock: impl Into<Clock>, seed: u64) -> Self {
        let seeds = Mutex::new(Rng::new(seed));
        Self(Arc::new(Shared {
            clock: clock.into(),
            seeds,
            events: Events::default(),
        }))
    }

    /// Starts the contract of a Read: data that may be reduced. Nothing is on unless declared.
    ///
    /// The name is what metrics, events and keys go by. Two guards may have one, as when a guard is built anew from a
    /// changed contract: each has its own breaker, permits, counters and holds, but their events read alike, and if
    /// both are given one [`Memory`](crate::Memory) they serve each other's snapshots. Guards that mean different data
    /// have different names.
    pub fn read<T>(&self, name: &str) -> ReadBuilder<T> {
        ReadBuilder::new(self.clone(), name)
    }

    /// Starts the contract with a dependency that several guards ask: they share its breaker and its permits.
    pub fn dependency(&self, name: &str) -> DependencyBuilder {
        DependencyBuilder::new(self.clone(), name)
    }

    /// Starts a guard for traffic that is only forwarded to this dependency, see [`Pass`](crate::Pass).
    ///
    /// The name stands in events and counters: 1 to 64 characters of `A-Z a-z 0-9 - _ . /`.
    pub fn pass<T>(&self, name: &str, dependency: &Dependency) -> PassBuilder<T> {
        PassBuilder::new(self.read(name).from(dependency))
    }

    /// Starts the contract of a Protect: decisions that guard something, see [`Protect`](crate::Protect).
    ///
    /// The name stands in events and counters: 1 to 64 characters of `A-Z a-z 0-9 - _ . /`.
    pub fn protect<T, D>(&self, name: &str) -> ProtectBuilder<T, D> {
        ProtectBuilder::new(self.read(name))
    }

    /// Declares a resource: a capacity of 1 to 1 000 000 that several dependencies draw on.
    ///
    /// # Errors
    /// When the capacity is out of range, or the name is none: 1 to 64 characters of `A-Z a-z 0-9 - _ . /`.
    ///
    /// ```
    /// # use evenkeel::Engine;
    /// let database = Engine::system().resource("catalog-db", 100)?;
    /// assert_eq!((database.in_use(), database.limit()), (0, 100));
    /// # Ok::<(), evenkeel::Problems>(())
    /// ```
    pub fn resource(&self, name: &str, concurrency: u32) -> Result<Resource, Problems> {
        let mut problems = Problems::default();
        check_name("resource.name", name, &mut problems);
        check_capacity(concurrency, problems).or(Resource {
            name: name.into(),
            bulkhead: Arc::new(Bulkhead::new(concurrency)),
            lines: Arc::default(),
        })
    }

    /// Reads the engine's clock.
    #[must_use]
    pub fn now(&self) -> Now {
        self.0.clock.now()
    }

    /// Takes the events that have happened since the last time. Up to 1024 wait; beyond that the oldest are
    /// lost, and counted by [`Engine::events_lost`].
    #[must_use]
    pub fn drain_events(&self) -> Vec<Event> {
        self.0.events.drain()
    }

    /// Returns how many events were lost because nobody took them.
    #[must_use]
    pub fn events_lost(&self) -> u64 {
        self.0.events.lost()
    }

    /// Tells whether both are one and the same.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0
    }

    /// Draws a seed for a driver's own choices, such as which of several addresses is asked.
    #[must_use]
    pub fn draw_seed(&self) -> u64 {
        self.0.seeds.lock().next_u64()
    }

    pub(crate) fn tell(&self, name: &Arc<str>, kind: EventKind) {
        self.0.events.push(Event {
            at: self.now().wall,
            name: Arc::clone(name),
            kind,
        });
    }
}

fn check_capacity(concurrency: u32, mut problems: Problems) -> Problems {
    problems.range(&["resource.concurrency"], u64::from(concurrency), 1, 1_000_000);
    problems
}

/// A named capacity that several dependencies draw on: one database behind a primary and its spare.
#[derive(Clone, Debug)]
pub struct Resource {
    name: Arc<str>,
    pub(crate) bulkhead: Arc<Bulkhead>,
    /// The queues of those who draw on it.
    pub(crate) lines: Arc<Lines>,
}

impl Resource {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tells whether both are one and the same.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.bulkhead, &other.bulkhead)
    }

    /// Sets another capacity, from 1 to 1 000 000, for all who draw on it. Where more is in use than that, nobody gets any until
    /// less is.
    ///
    /// # Errors
    /// When the capacity is out of range; then nothing has changed.
    pub fn set_limit(&self, concurrency: u32) -> Result<(), Problems> {
        check_capacity(concurrency, Problems::default()).or(())?;
        self.bulkhead.set_limit(concurrency);
        // There may be room for several now, and each who leaves calls the next.
        self.lines.freed();
        Ok(())
    }

    /// Returns how much of it is in use.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.bulkhead.in_use()
    }

    /// Returns the capacity.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.bulkhead.limit()
    }
}
