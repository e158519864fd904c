//! Decides what the tests of stores have in common: records, waiting for an answer, directories that go away.
//! It exists so that a test says what it is about and no more.
//! It refuses to wait for ever: an answer that does not come fails the test.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests; each file uses its part"
)]

use std::{
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    time::Duration,
};

use evenkeel_core::{
    Mono, Wall,
    store::{Body, Done, Found, Marks, Order, Record, SnapshotStore, Stamp, StoreError},
};
use evenkeel_store::DiskOptions;

pub(crate) fn at(nanos: i64) -> Mono {
    Mono::from_nanos(nanos)
}

pub(crate) fn order(turn: u64, started: i64) -> Order {
    Order {
        turn,
        started: Some(at(started)),
    }
}

/// A record whose parts say which one it is.
pub(crate) fn record(key: &str, turn: u64) -> Record {
    let started = i64::try_from(turn).unwrap();
    Record {
        key: key.as_bytes().to_vec(),
        marks: Marks {
            route: format!("route-{}", key.len() % 2),
            uri: format!("http://shop.example/{key}"),
            scope: key.as_bytes()[..1].to_vec(),
            tags: vec![format!("tag-{}", key.len() % 3), "all".to_owned()],
        },
        order: order(turn, started),
        stamp: Stamp {
            mono: Some(at(started)),
            wall: Some(Wall::from_nanos(1_700_000_000_000_000_000 + started)),
        },
        soft: false,
        facts: turn.to_be_bytes().to_vec(),
        body: Body::of(format!("{key} as of {turn}").into_bytes()),
    }
}

/// Calls an operation and waits for what it came to.
pub(crate) fn wait<T: Send + 'static>(operation: impl FnOnce(Done<T>)) -> Result<T, StoreError> {
    let (tell, told) = mpsc::channel();
    operation(Box::new(move |result| drop(tell.send(result))));
    told.recv_timeout(Duration::from_secs(60))
        .expect("the store answers")
}

pub(crate) fn get(store: &dyn SnapshotStore, key: &str) -> Option<Found> {
    wait(|done| store.get(key.as_bytes(), done)).unwrap()
}

/// Returns the turn of what is held.
pub(crate) fn held(store: &dyn SnapshotStore, key: &str) -> Option<u64> {
    get(store, key).map(|found| found.record.order.turn)
}

pub(crate) fn remove(store: &dyn SnapshotStore, key: &str, order: Order) -> u64 {
    wait(|done| store.remove(key.as_bytes(), order, done)).unwrap()
}

pub(crate) fn flush(store: &dyn SnapshotStore) {
    wait(|done| store.flush(done)).unwrap();
}

/// Polls until something holds, for a minute.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        #[allow(clippy::disallowed_methods, reason = "the test waits for another thread")]
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("waited in vain: {what}");
}

/// A directory of its own for each test.
pub(crate) struct Directory(PathBuf);

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl Directory {
    pub(crate) fn new() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("evenkeel-store-{}-{number}", std::process::id()));
        drop(std::fs::remove_dir_all(&path));
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("snapshots.db")
    }

    pub(crate) fn options(&self) -> DiskOptions {
        options(&self.0)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

pub(crate) fn options(directory: &Path) -> DiskOptions {
    DiskOptions {
        directory: directory.to_owned(),
        bytes: 64 << 20,
        backlog_entries: 1000,
        backlog_bytes: 16 << 20,
        boot: "this boot".to_owned(),
        seed: 7,
    }
}
