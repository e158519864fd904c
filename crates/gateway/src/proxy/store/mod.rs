//! Decides how the gateway uses a store on disk: what memory keeps is written behind, what memory lacks is asked for before
//! a call. It exists so that copies survive a deploy or a crash, with their ages.
//! It refuses to be in the way: every wait has a limit of its own, and without the file the gateway is what it is without
//! this.

mod behind;
mod bytes;
mod lookup;
mod marks;
mod plain;
mod shelved;
#[cfg(test)]
mod tests;

mod warm;

use std::{
    collections::BTreeSet,
    fs,
    hash::{BuildHasher as _, RandomState},
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use evenkeel::{Engine, Memory, Mono, Now, http::Shelf};
use evenkeel_core::store::{NotTaken, Purge, PurgeHow, SnapshotStore as _, Stamp, StoreError, StoreStats};
use evenkeel_store::{Disk, DiskCounts, DiskEvent, DiskOptions};
use http::HeaderName;
use parking_lot::RwLock;
use tokio::{sync::oneshot, time::timeout};

use super::whole::Reply;
use crate::{
    config,
    telemetry::{Level, Log},
};

/// The most snapshots that wait to be written: some seconds of writing.
const BACKLOG_ENTRIES: usize = 50_000;

/// A store on disk behind the two in memory.
#[derive(Debug)]
pub(crate) struct Store {
    disk: Disk,
    engine: Engine,
    /// How far the wall clocks of two boots may differ.
    skew: Duration,
    lane: lookup::Lane,
    /// How long a look-up, and the wait for a removal, may take.
    patience: Duration,
    bytes: u64,
    turns: AtomicU64,
    /// Snapshots that were not written because they are one caller's own.
    private: AtomicU64,
    /// Writes whose answer went out before the removal of the copies was durable.
    late: AtomicU64,
    personal: Arc<Personal>,
}

/// The store of a gateway, once it is started.
#[derive(Debug, Default)]
pub(crate) struct StoreSlot {
    store: OnceLock<Arc<Store>>,
    personal: Arc<Personal>,
}

/// The routes whose copies are for memory alone, because their scope names who asked. What makes such copies void is not
/// written down, and a file is read by more people than memory is. Once in it a name stays for as long as the process: what
/// began by an earlier contract is still under way, and a contract that is looked at may yet be refused.
#[derive(Debug, Default)]
struct Personal {
    routes: RwLock<BTreeSet<String>>,
    /// The fields that answers have their tags in, of all routes; these, too, stay.
    fields: RwLock<Arc<[HeaderName]>>,
}

impl Personal {
    fn has(&self, route: &str) -> bool {
        let routes = self.routes.read();
        !routes.is_empty() && routes.contains(route)
    }

    fn fields(&self) -> Arc<[HeaderName]> {
        Arc::clone(&self.fields.read())
    }
}

impl StoreSlot {
    /// Returns the store, if the contract has one.
    pub(crate) fn get(&self) -> Option<&Arc<Store>> {
        self.store.get()
    }

    /// Takes note of the routes of a contract whose copies are for memory alone, and of the fields with tags; before any of
    /// them is asked.
    pub(crate) fn keep_out(&self, contract: &config::Contract) {
        let personal = contract.routes.iter().filter(|route| {
            route
                .scope
                .iter()
                .any(|part| matches!(part, config::ScopePart::Identity(..)))
        });
        self.personal
            .routes
            .write()
            .extend(personal.map(|route| route.name.clone()));
        let mut fields = self.personal.fields.write();
        let named = contract.routes.iter().filter_map(|route| route.tags.as_ref());
        let mut all = fields.to_vec();
        for name in named {
            if !all.contains(name) {
                all.push(name.clone());
            }
        }
        *fields = all.into();
    }

    /// Starts the store of a contract and puts it behind what memory keeps.
    ///
    /// # Errors
    /// When no thread can be started. A file that cannot be used is no error here: the gateway serves without it, and
    /// says so.
    pub(crate) fn start(
        &self,
        contract: Option<&config::Store>,
        engine: &Engine,
        memory: &Memory<Reply>,
        shelf: &Shelf,
    ) -> io::Result<()> {
        let Some(contract) = contract else { return Ok(()) };
        let options = DiskOptions {
            directory: contract.path.clone(),
            bytes: contract.max,
            backlog_entries: BACKLOG_ENTRIES,
            backlog_bytes: contract.backlog,
            boot: boot(),
            seed: RandomState::new().hash_one(0),
        };
        let lane = lookup::lane(engine, contract.timeout)
            .map_err(|problems| io::Error::other(problems.to_string()))?;
        let store = Arc::new(Store {
            disk: Disk::start(options)?,
            engine: engine.clone(),
            skew: contract.clock_skew,
            lane,
            patience: contract.timeout,
            bytes: contract.max,
            turns: AtomicU64::new(0),
            private: AtomicU64::new(0),
            late: AtomicU64::new(0),
            personal: Arc::clone(&self.personal),
        });
        memory.write_behind(Arc::clone(&store) as _);
        shelf.write_behind(Arc::clone(&store) as _);
        warm::begin(&store, memory, shelf);
        drop(self.store.set(store));
        Ok(())
    }
}

/// Returns what tells one start of the machine from the next; empty where nobody says.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}

/// The clocks by which what comes back is dated.
#[derive(Clone, Copy, Debug)]
struct Times {
    now: Now,
    same_boot: bool,
    skew: Duration,
}

impl Times {
    fn restored(self, stamp: Stamp) -> Option<Mono> {
        stamp.restored(self.now, self.same_boot, self.skew)
    }
}

impl Store {
    fn times(&self, same_boot: bool) -> Times {
        Times {
            now: self.engine.now(),
            same_boot,
            skew: self.skew,
        }
    }

    /// Waits until every removal so far is on the disk, for a bounded time. Whoever is told that a write has worked must
    /// not be given what it has made wrong, not even after a crash.
    pub(crate) async fn settled(&self) {
        let (tell, told) = oneshot::channel();
        self.disk
            .settle(Box::new(move |settled| drop(tell.send(settled))));
        let settled = timeout(self.patience, told).await;
        if !matches!(settled, Ok(Ok(Ok(())))) {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Begins to take away, or to soften, what a purge concerns: it is not given any more. What is returned tells how many
    /// copies that were, once it is durable.
    pub(crate) fn purge(&self, purge: Purge, how: PurgeHow) -> mpsc::Receiver<Result<u64, StoreError>> {
        let (tell, told) = mpsc::channel();
        let order = self.order(Some(self.engine.now().mono));
        self.disk
            .purge(purge, how, order, Box::new(move |purged| drop(tell.send(purged))));
        told
    }

    /// Writes what waits, for as long as `at_most`, and lets go of the file.
    pub(crate) async fn end(&self, at_most: Duration) {
        let (tell, told) = oneshot::channel();
        self.disk.flush(Box::new(move |flushed| drop(tell.send(flushed))));
        drop(timeout(at_most, told).await);
        self.disk.close();
    }

    /// Writes what has happened to the store to the log.
    pub(crate) fn log_events(&self, log: &Log) {
        for event in self.disk.events() {
            match event {
                DiskEvent::Up {
                    entries,
                    bytes,
                    ignored,
                } => {
                    let (entries, bytes) = (entries.to_string(), bytes.to_string());
                    let ignored = ignored.join(",");
                    let fields = [("entries", &*entries), ("bytes", &*bytes), ("ignored", &*ignored)];
                    let few = if ignored.is_empty() { &fields[..2] } else { &fields };
                    log.note(Level::Info, "store-up", few);
                }
                DiskEvent::Down { why, detail } => {
                    log.note(
                        Level::Error,
                        "store-down",
                        &[("reason", why), ("detail", &detail)],
                    );
                }
                DiskEvent::PutAside { name, detail } => {
                    log.note(
                        Level::Error,
                        "store-put-aside",
                        &[("file", &name), ("detail", &detail)],
                    );
                }
            }
        }
    }

    pub(crate) fn stats(&self) -> StoreStats {
        self.disk.stats()
    }

    /// Returns the word for why it is down; `None` while it is up.
    pub(crate) fn down(&self) -> Option<&'static str> {
        self.disk.down().map(|(why, _)| why)
    }

    /// Returns the most bytes of the file.
    pub(crate) const fn bytes_limit(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn counts(&self) -> DiskCounts {
        self.disk.counts()
    }

    /// Returns for how long the oldest change has waited to be written.
    pub(crate) fn backlog_age(&self, stats: &StoreStats) -> Duration {
        let now = self.engine.now().mono;
        stats
            .backlog_since
            .map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Returns how many snapshots were not written because they are one caller's own.
    pub(crate) fn private(&self) -> u64 {
        self.private.load(Ordering::Relaxed)
    }

    /// Returns how many writes were answered before their removals were durable.
    pub(crate) fn late(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }

    /// Returns the look-ups that were given up, by [`lookup::GivenUp`].
    pub(crate) fn given_up(&self) -> u64 {
        lookup::given_up(&self.lane)
    }
}

/// Every reason why a snapshot is not written.
pub(crate) const DROPPED: [NotTaken; NotTaken::ALL.len()] = NotTaken::ALL;
