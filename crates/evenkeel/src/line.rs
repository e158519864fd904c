//! Decides how calls wait for a permit in real time: who sleeps, who is woken, and what is left when one goes away.
//! It exists as the driver of the engine's queue, one for each dependency that has one.
//! It refuses to wake anybody under its lock, and to let a permit lie idle beside somebody who waits.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use evenkeel_core::{Criticality, Joined, Mono, Place, Queue, QueueRules, Waiting};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use crate::engine::Engine;

/// The queue of one dependency.
#[derive(Debug)]
pub(crate) struct Line {
    queue: Mutex<Queue<Arc<Notify>>>,
    waiting: Waiting,
    waits: Arc<Waits>,
    engine: Engine,
}

/// How many calls have waited, and for how long together.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    count: AtomicU64,
    nanos: AtomicU64,
}

impl Waits {
    fn add(&self, span: Duration) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(
            u64::try_from(span.as_nanos()).unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
    }

    pub(crate) fn read(&self) -> (u64, Duration) {
        (
            self.count.load(Ordering::Relaxed),
            Duration::from_nanos(self.nanos.load(Ordering::Relaxed)),
        )
    }
}

impl Line {
    pub(crate) fn new(rules: QueueRules, engine: Engine, waits: &Arc<Waits>) -> Self {
        Self {
            queue: Mutex::new(Queue::new(rules)),
            waiting: Waiting::new(),
            waits: Arc::clone(waits),
            engine,
        }
    }

    /// Waits by other rules from now on.
    pub(crate) fn set_rules(&self, rules: QueueRules) {
        self.queue.lock().set_rules(rules);
    }

    /// Tells whether somebody waits whom such a call may not overtake.
    pub(crate) fn is_ahead_of(&self, criticality: Criticality) -> bool {
        self.waiting.count() > 0 && self.queue.lock().is_ahead_of(criticality)
    }

    /// Something was given back that somebody may wait for.
    pub(crate) fn freed(&self) {
        if self.waiting.sees() {
            self.call();
        }
    }

    /// Wakes the one whose turn it is.
    fn call(&self) {
        let now = self.engine.now().mono;
        let next = self.queue.lock().call(now).map(Arc::clone);
        if let Some(next) = next {
            next.notify_one();
        }
    }

    /// Wakes everybody: nobody will be let in for a while, and they should learn it now.
    pub(crate) fn call_all(&self) {
        if self.waiting.count() == 0 {
            return;
        }
        let all: Vec<Arc<Notify>> = self.queue.lock().call_all().into_iter().cloned().collect();
        for one in all {
            one.notify_one();
        }
    }

    /// Takes a place; `None` if there is none, or no time to wait.
    pub(crate) fn join(
        self: &Arc<Self>,
        criticality: Criticality,
        now: Mono,
        ends: Option<Mono>,
    ) -> Option<Waiter> {
        let token = Arc::new(Notify::new());
        let joined = self.queue.lock().join(criticality, now, ends, Arc::clone(&token));
        let Joined { place, instead_of } = joined.ok()?;
        self.waiting.join();
        if let Some(displaced) = instead_of {
            displaced.notify_one();
        }
        Some(Waiter {
            line: Arc::clone(self),
            place,
            token,
            since: now,
        })
    }

    /// Returns how many wait.
    pub(crate) fn waiting(&self) -> u32 {
        self.waiting.count()
    }
}

/// A call that waits. Dropped, it gives up its place, and the next one has its turn.
#[derive(Debug)]
pub(crate) struct Waiter {
    line: Arc<Line>,
    place: Place,
    token: Arc<Notify>,
    since: Mono,
}

impl Waiter {
    /// Tells whether nobody waits before it.
    pub(crate) fn is_next(&self) -> bool {
        self.line.queue.lock().is_next(self.place)
    }

    /// Returns when it has waited in vain.
    pub(crate) const fn expires(&self) -> Mono {
        self.place.expires()
    }

    /// Sleeps until it is called.
    pub(crate) async fn called(&self) {
        self.token.notified().await;
    }

    /// Takes the call as heard; `false` if the place went to somebody who matters more.
    pub(crate) fn is_up(&self) -> bool {
        self.line.queue.lock().up(self.place)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.line.waits.add(self.line.engine.now().mono.since(self.since));
        self.line.queue.lock().leave(self.place);
        self.line.waiting.leave();
        // Whether it was let in, gave up or left when it was its turn: the next one may have a chance now.
        self.line.freed();
    }
}

/// The queues of those who draw on one resource. What any of them gives back may be what the others wait for.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// Most resources have none, and then nothing below is looked at.
    any: AtomicBool,
    list: RwLock<Vec<Weak<Line>>>,
}

impl Lines {
    /// Adds the queue of one more dependency, and forgets those of dependencies that are gone.
    pub(crate) fn add(&self, line: &Arc<Line>) {
        let mut list = self.list.write();
        list.retain(|line| line.strong_count() > 0);
        // A queue stays where its dependency goes on by another contract.
        if !list
            .iter()
            .any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(line)))
        {
            list.push(Arc::downgrade(line));
        }
        self.any.store(true, Ordering::Release);
    }

    /// A permit of the resource was given back.
    pub(crate) fn freed(&self) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let waiting: Vec<Arc<Line>> = {
            let list = self.list.read();
            list.iter()
                .filter_map(Weak::upgrade)
                .filter(|line| line.waiting.sees())
                .collect()
        };
        for line in waiting {
            line.call();
        }
    }
}
