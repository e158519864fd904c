//! Decides what is handed to the store on disk when memory keeps something or lets it go.
//! It exists as the seam between two stores that know nothing of each other.
//! It refuses to leave an older copy there in the stead of one that may not be written, or finds no room.

use std::sync::{Arc, atomic::Ordering};

use evenkeel::{
    Behind, Entry, Mono,
    http::{BehindShelf, Shelved, UriKey},
};
use evenkeel_core::store::{NotTaken, Order, Record, SnapshotStore as _};

use super::{
    super::whole::Reply,
    Store,
    marks::{self, Kind},
    plain, shelved,
};

impl Store {
    pub(super) fn order(&self, started: Option<Mono>) -> Order {
        Order {
            turn: self.turns.fetch_add(1, Ordering::Relaxed),
            started,
        }
    }

    /// Hands a record over; `takes_away`: what was there before must not be given again.
    fn put(&self, record: Record, takes_away: bool) {
        let (key, order) = (record.key.clone(), record.order);
        match self.disk.put(record, self.engine.now().mono) {
            // What cannot be kept there takes the older one away all the same.
            Err(NotTaken::TooBig) => self.remove(&key, order),
            // An older copy says of itself how old it is.
            Err(NotTaken::Full) if takes_away => self.remove(&key, order),
            Ok(()) | Err(NotTaken::Full | NotTaken::Superseded | NotTaken::Closed) => {}
        }
    }

    fn remove(&self, key: &[u8], order: Order) {
        // Who has to know when it is durable waits for all removals so far.
        self.disk.remove(key, order, Box::new(|_| ()));
    }
}

impl Behind<Reply> for Store {
    fn turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }

    fn kept(&self, key: &[u8], value: &Reply, entry: &Entry, order: Order) {
        match plain::encode(key, value, entry).filter(|record| !self.personal.has(&record.marks.route)) {
            Some(record) => self.put(Record { order, ..record }, false),
            None => {
                self.private.fetch_add(1, Ordering::Relaxed);
                self.remove(&marks::key(Kind::Plain, key), order);
            }
        }
    }

    fn gone(&self, key: &[u8], order: Order) {
        self.remove(&marks::key(Kind::Plain, key), order);
    }
}

impl BehindShelf for Store {
    fn turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }

    fn kept(&self, key: &UriKey, copies: &[Arc<Shelved>], takes_away: bool, turn: u64) {
        let order = Order { turn, started: None };
        match shelved::encode(key, copies, &self.personal.fields())
            .filter(|record| !self.personal.has(&record.marks.route))
        {
            Some(record) => self.put(Record { order, ..record }, takes_away),
            None => {
                self.private.fetch_add(1, Ordering::Relaxed);
                self.remove(&marks::key(Kind::Shelved, key.as_bytes()), order);
            }
        }
    }

    fn gone(&self, key: &UriKey, turn: u64) {
        self.remove(
            &marks::key(Kind::Shelved, key.as_bytes()),
            Order { turn, started: None },
        );
    }
}
