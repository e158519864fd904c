//! Decides what waits to be written, in which order, and what finds no room.
//! It exists so that whoever hands a snapshot over never waits for a disk, and a slow disk costs a known amount of memory.
//! It refuses to drop a removal: when too many wait, they become one that takes everything away.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::Arc,
};

use evenkeel_core::{
    Mono,
    store::{Done, Found, Marks, NotTaken, Order, Purge, PurgeHow, Record, StoreError},
};

use super::{DiskOptions, tombs::Tombs};

/// A snapshot that waits.
struct Waiting {
    record: Arc<Record>,
    since: Mono,
    /// The writer has it in hand.
    taken: bool,
}

/// Something that comes before snapshots.
pub(super) struct Urgent {
    pub(super) what: What,
    pub(super) order: Order,
    /// Called once it is durable. After a failure it is gone, and the rest is tried again.
    pub(super) done: Option<Done<u64>>,
}

/// What is to be done.
pub(super) enum What {
    Remove(Arc<[u8]>),
    /// The keys are those of snapshots that waited and were concerned: they count too.
    Purge(Purge, PurgeHow, Arc<[Arc<[u8]>]>),
    /// Nothing: everything before it is done.
    Settle,
}

/// This many removals wait one by one.
const URGENT_MAX: usize = 4096;

/// What waits to be written.
#[derive(Default)]
pub(super) struct Backlog {
    waiting: HashMap<Arc<[u8]>, Waiting>,
    /// The keys of those that are not in hand, in the order in which they came.
    came: VecDeque<Arc<[u8]>>,
    pub(super) bytes: u64,
    urgent: VecDeque<Urgent>,
    /// How many of the urgent the writer has in hand: they stay in front until they are durable.
    in_hand: usize,
    pub(super) tombs: Tombs,
    pub(super) flushes: Vec<Done<()>>,
    pub(super) closed: bool,
}

impl fmt::Debug for Backlog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backlog")
            .field("waiting", &self.waiting.len())
            .field("urgent", &self.urgent.len())
            .finish_non_exhaustive()
    }
}

impl Backlog {
    /// Takes a snapshot in.
    pub(super) fn put(&mut self, record: Record, now: Mono, options: &DiskOptions) -> Result<(), NotTaken> {
        if self.closed {
            return Err(NotTaken::Closed);
        }
        let bytes = record.bytes();
        if bytes > options.largest() {
            return Err(NotTaken::TooBig);
        }
        if self.tombs.cover(&record.key, &record.marks, record.order) {
            return Err(NotTaken::Superseded);
        }
        let is_full = self.waiting.len() >= options.backlog_entries;
        let held = self.waiting.get_mut(record.key.as_slice());
        let freed = held.as_ref().map_or(0, |held| held.record.bytes());
        if held
            .as_ref()
            .is_some_and(|held| !record.order.is_after(held.record.order))
        {
            return Err(NotTaken::Superseded);
        }
        if self.bytes - freed + bytes > options.backlog_bytes {
            return Err(NotTaken::Full);
        }
        match held {
            Some(held) => {
                // What waits for the same key is no longer wanted; the time it has waited counts on.
                held.record = Arc::new(record);
                if held.taken {
                    held.taken = false;
                    held.since = now;
                    self.came.push_back(held.record.key.as_slice().into());
                }
            }
            None if is_full => return Err(NotTaken::Full),
            None => {
                let key: Arc<[u8]> = record.key.as_slice().into();
                self.came.push_back(Arc::clone(&key));
                let waiting = Waiting {
                    record: Arc::new(record),
                    since: now,
                    taken: false,
                };
                self.waiting.insert(key, waiting);
            }
        }
        self.bytes = self.bytes - freed + bytes;
        Ok(())
    }

    /// Returns what waits for a key.
    pub(super) fn get(&self, key: &[u8]) -> Option<Found> {
        self.waiting.get(key).map(|waiting| Found {
            record: (*waiting.record).clone(),
            same_boot: true,
        })
    }

    /// Takes something urgent in.
    pub(super) fn urge(&mut self, mut urgent: Urgent) {
        if self.closed {
            if let Some(done) = urgent.done {
                done(Err(StoreError::Closed));
            }
            return;
        }
        if matches!(urgent.what, What::Settle) && self.urgent.is_empty() {
            // Everything before it is done.
            if let Some(done) = urgent.done {
                done(Ok(0));
            }
            return;
        }
        match &mut urgent.what {
            What::Remove(key) => {
                self.tombs.note_key(key, urgent.order);
                let goes = |waiting: &Waiting| urgent.order.covers(waiting.record.order);
                if self.waiting.get(key).is_some_and(goes) {
                    self.forget(&Arc::clone(key));
                }
            }
            What::Purge(purge, how, keys) => {
                self.tombs.note_purge(purge.clone(), urgent.order);
                let concerned = self.concerned(purge, urgent.order);
                for key in &concerned {
                    match how {
                        PurgeHow::Hard => self.forget(key),
                        PurgeHow::Soft => self.soften(key),
                    }
                }
                *keys = concerned.into();
            }
            What::Settle => {}
        }
        self.urgent.push_back(urgent);
        if self.urgent.len() > self.in_hand + URGENT_MAX {
            self.merge_urgent();
        }
    }

    /// Marks a snapshot that waits: it is never fresh again.
    fn soften(&mut self, key: &Arc<[u8]>) {
        if let Some(waiting) = self.waiting.get_mut(key) {
            let mut record = (*waiting.record).clone();
            record.soft = true;
            waiting.record = Arc::new(record);
            if waiting.taken {
                waiting.taken = false;
                self.came.push_back(Arc::clone(key));
            }
        }
    }

    fn concerned(&self, purge: &Purge, order: Order) -> Vec<Arc<[u8]>> {
        let concerned =
            |waiting: &Waiting| purge.concerns(&waiting.record.marks) && order.covers(waiting.record.order);
        let all = self.waiting.iter().filter(|(_, waiting)| concerned(waiting));
        all.map(|(key, _)| Arc::clone(key)).collect()
    }

    /// Puts one removal of everything in the stead of too many: snapshots are lost, and none comes back.
    fn merge_urgent(&mut self) {
        let mut merged = Order {
            turn: 0,
            started: None,
        };
        let mut waiting = Vec::new();
        for urgent in self.urgent.drain(self.in_hand..) {
            merged.turn = merged.turn.max(urgent.order.turn);
            waiting.extend(urgent.done);
        }
        self.urgent.push_back(Urgent {
            what: What::Purge(Purge::All, PurgeHow::Hard, Arc::default()),
            order: merged,
            done: None,
        });
        for done in waiting {
            done(Err(StoreError::Busy));
        }
    }

    fn forget(&mut self, key: &Arc<[u8]>) {
        if let Some(waiting) = self.waiting.remove(key) {
            self.bytes -= waiting.record.bytes();
            if !waiting.taken {
                self.came.retain(|came| came != key);
            }
        }
    }

    /// Tells whether a snapshot with these marks is about to be taken away; one without an order is earlier than all.
    pub(super) fn hides(&self, key: &[u8], marks: &Marks, order: Option<Order>) -> bool {
        self.urgent.iter().any(|urgent| {
            let concerns = match &urgent.what {
                What::Remove(removed) => **removed == *key,
                What::Purge(purge, PurgeHow::Hard, _) => purge.concerns(marks),
                What::Purge(_, PurgeHow::Soft, _) | What::Settle => false,
            };
            concerns && order.is_none_or(|order| urgent.order.covers(order))
        })
    }

    /// Returns how many removals and purges are done: those that come after this number may be done at any time.
    pub(super) fn settled_removals(&self) -> u64 {
        let waiting = self
            .urgent
            .iter()
            .filter(|urgent| !matches!(urgent.what, What::Settle));
        self.tombs.count.saturating_sub(waiting.count() as u64)
    }

    /// Returns how many changes wait, and since when the oldest of them does.
    pub(super) fn length(&self) -> (usize, Option<Mono>) {
        let oldest = self.waiting.values().map(|waiting| waiting.since).min();
        (self.waiting.len() + self.urgent.len(), oldest)
    }

    /// Tells whether the writer should not wait for more to come.
    pub(super) fn is_urgent(&self) -> bool {
        self.closed || !self.flushes.is_empty() || self.urgent.len() > self.in_hand
    }

    /// Tells whether nothing is to be written.
    pub(super) fn is_empty(&self) -> bool {
        self.came.is_empty() && self.urgent.is_empty()
    }

    /// Tells whether so many wait that a whole batch is there.
    pub(super) fn fills(&self, entries: usize) -> bool {
        self.came.len() >= entries
    }

    /// Returns what is urgent. It stays here until [`Self::committed`] or [`Self::failed`] is called.
    pub(super) fn take_urgent(&mut self) -> Vec<(What, Order)> {
        self.in_hand = self.urgent.len();
        let copied = self.urgent.iter().map(|urgent| {
            let what = match &urgent.what {
                What::Remove(key) => What::Remove(Arc::clone(key)),
                What::Purge(purge, how, keys) => What::Purge(purge.clone(), *how, Arc::clone(keys)),
                What::Settle => What::Settle,
            };
            (what, urgent.order)
        });
        copied.collect()
    }

    /// Returns the snapshots that have waited longest.
    pub(super) fn take(&mut self, most: usize, bytes: u64) -> Vec<Arc<Record>> {
        let mut batch = Vec::new();
        let mut size = 0;
        while batch.len() < most && size < bytes {
            let Some(key) = self.came.pop_front() else { break };
            if let Some(waiting) = self.waiting.get_mut(&key) {
                waiting.taken = true;
                size += waiting.record.bytes();
                batch.push(Arc::clone(&waiting.record));
            }
        }
        batch
    }

    /// Notes that a batch of snapshots is written.
    pub(super) fn written(&mut self, batch: &[Arc<Record>]) {
        for record in batch {
            let key = record.key.as_slice();
            // Another one may have come for its key meanwhile.
            if self
                .waiting
                .get(key)
                .is_some_and(|waiting| Arc::ptr_eq(&waiting.record, record))
            {
                self.bytes -= record.bytes();
                self.waiting.remove(key);
            }
        }
    }

    /// Puts a batch that could not be written back in front.
    pub(super) fn put_back(&mut self, batch: &[Arc<Record>]) {
        for record in batch.iter().rev() {
            let key: Arc<[u8]> = record.key.as_slice().into();
            if let Some(waiting) = self.waiting.get_mut(&key).filter(|waiting| waiting.taken) {
                waiting.taken = false;
                self.came.push_front(key);
            }
        }
    }

    /// Ends what is urgent and in hand: it is durable, with these numbers.
    pub(super) fn urgent_done(&mut self, counts: &[u64]) -> Vec<(Done<u64>, u64)> {
        let ended = self.urgent.drain(..self.in_hand);
        let told = ended
            .zip(counts)
            .filter_map(|(urgent, count)| Some((urgent.done?, *count)));
        let told = told.collect();
        self.in_hand = 0;
        told
    }

    /// Returns who is to be told that what is urgent and in hand did not work; it will be tried again.
    pub(super) fn urgent_failed(&mut self) -> Vec<Done<u64>> {
        let told = self
            .urgent
            .iter_mut()
            .filter_map(|urgent| urgent.done.take())
            .collect();
        self.urgent.retain(|urgent| !matches!(urgent.what, What::Settle));
        self.in_hand = 0;
        told
    }
}
