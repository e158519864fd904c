//! Decides what a store does in the plainest way there is: a map, and a list of what was taken away.
//! It exists so that the suite of all stores has something to compare with that a reader can check by eye.
//! It refuses to be bounded or fast; nobody serves from it.

use std::collections::BTreeMap;

use evenkeel_core::{
    Mono,
    store::{Done, Found, NotTaken, Order, Purge, PurgeHow, Record, SnapshotStore, StoreError, StoreStats},
};
use parking_lot::Mutex;

/// A store that keeps everything in a map. For tests.
#[derive(Debug, Default)]
pub struct Model(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    records: BTreeMap<Vec<u8>, (Record, u64)>,
    removed: Vec<(Taken, Order)>,
    uses: u64,
    closed: bool,
}

#[derive(Debug)]
enum Taken {
    Key(Vec<u8>),
    Purged(Purge),
}

impl Model {
    /// Makes an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Kept {
    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }
}

impl SnapshotStore for Model {
    fn put(&self, record: Record, _now: Mono) -> Result<(), NotTaken> {
        let mut kept = self.0.lock();
        if kept.closed {
            return Err(NotTaken::Closed);
        }
        let taken_away = kept.removed.iter().any(|(taken, order)| {
            let concerns = match taken {
                Taken::Key(key) => *key == record.key,
                Taken::Purged(purge) => purge.concerns(&record.marks),
            };
            concerns && order.covers(record.order)
        });
        let held = kept.records.get(&record.key);
        if taken_away || held.is_some_and(|(held, _)| !record.order.is_after(held.order)) {
            return Err(NotTaken::Superseded);
        }
        let used = kept.next_use();
        kept.records.insert(record.key.clone(), (record, used));
        Ok(())
    }

    fn get(&self, key: &[u8], done: Done<Option<Found>>) {
        let mut kept = self.0.lock();
        if kept.closed {
            return done(Err(StoreError::Closed));
        }
        let used = kept.next_use();
        let found = kept.records.get_mut(key).map(|(record, last)| {
            *last = used;
            Found {
                record: record.clone(),
                same_boot: true,
            }
        });
        done(Ok(found));
    }

    fn remove(&self, key: &[u8], order: Order, done: Done<u64>) {
        let mut kept = self.0.lock();
        let held = kept.records.get(key);
        let goes = held.is_some_and(|(held, _)| order.covers(held.order));
        if goes {
            kept.records.remove(key);
        }
        kept.removed.push((Taken::Key(key.to_vec()), order));
        done(Ok(u64::from(goes)));
    }

    fn purge(&self, purge: Purge, how: PurgeHow, order: Order, done: Done<u64>) {
        let mut kept = self.0.lock();
        let mut concerned = 0;
        kept.records.retain(|_, (record, _)| {
            if !(purge.concerns(&record.marks) && order.covers(record.order)) {
                return true;
            }
            concerned += 1;
            record.soft = true;
            how == PurgeHow::Soft
        });
        kept.removed.push((Taken::Purged(purge), order));
        done(Ok(concerned));
    }

    fn latest(&self, after: Option<i64>, most: usize, bytes: u64, done: Done<(Vec<Found>, Option<i64>)>) {
        let kept = self.0.lock();
        let mut all: Vec<(i64, &Record)> = kept
            .records
            .values()
            .map(|(record, used)| (i64::try_from(*used).unwrap_or(i64::MAX), record))
            .filter(|(used, _)| after.is_none_or(|after| *used < after))
            .collect();
        all.sort_by_key(|(used, _)| -used);
        let mut given = Vec::new();
        let (mut last, mut size) = (None, 0);
        for (used, record) in all {
            if given.len() >= most || (size >= bytes && !given.is_empty()) {
                return done(Ok((given, last)));
            }
            size += record.bytes();
            last = Some(used);
            given.push(Found {
                record: record.clone(),
                same_boot: true,
            });
        }
        done(Ok((given, None)));
    }

    fn settle(&self, done: Done<()>) {
        done(Ok(()));
    }

    fn flush(&self, done: Done<()>) {
        done(Ok(()));
    }

    fn stats(&self) -> StoreStats {
        let kept = self.0.lock();
        StoreStats {
            up: !kept.closed,
            entries: kept.records.len() as u64,
            bytes: kept.records.values().map(|(record, _)| record.bytes()).sum(),
            ..StoreStats::default()
        }
    }

    fn close(&self) {
        self.0.lock().closed = true;
    }
}
