//! Decides how a store on disk is held: a handle that never waits, a thread that writes, and a few that read.
//! It exists so that snapshots survive the process, with nothing but bounded queues between callers and the file.
//! It refuses to fail its callers: with the file gone, full, locked or broken they are told so at once, and go on.

mod backlog;
mod file;
mod reader;
mod rows;
mod shared;
mod tombs;
mod writer;

use std::{fmt, path::PathBuf, sync::Arc, thread};

use evenkeel_core::{
    Mono,
    store::{Done, Found, NotTaken, Order, Purge, PurgeHow, Record, SnapshotStore, StoreError, StoreStats},
};
use parking_lot::Mutex;

use backlog::{Urgent, What};
use reader::{Asked, Job};
use shared::Shared;

pub use shared::{DiskCounts, DiskEvent, Read};

/// How a store on disk is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// The directory. It is made, for this user alone, if it is not there, and belongs to one process at a time.
    pub directory: PathBuf,
    /// The most bytes of the file with its journal; at least [`DiskOptions::BYTES_MIN`].
    pub bytes: u64,
    /// The most snapshots that wait to be written.
    pub backlog_entries: usize,
    /// The most bytes of those.
    pub backlog_bytes: u64,
    /// What tells one start of the machine from the next; empty if that is not known.
    pub boot: String,
    /// Where hashes begin, in a file that is made. Drawn by chance, it keeps outsiders from choosing keys that meet.
    pub seed: u64,
}

impl DiskOptions {
    /// Less than this is no store: pages, journal and one batch need room.
    pub const BYTES_MIN: u64 = 16 << 20;

    /// Returns the bytes of the largest snapshot taken.
    #[must_use]
    pub fn largest(&self) -> u64 {
        (self.bytes.max(Self::BYTES_MIN) / 16).min(self.backlog_bytes / 2)
    }
}

/// A store of snapshots in a file.
///
/// Snapshots are written behind, in batches. A batch survives a crash of the process; the last ones before a machine loses
/// power may be lost, as a whole each. Removals and purges are on the disk when they are told to be done.
#[derive(Debug)]
pub struct Disk {
    shared: Arc<Shared>,
    writer: Mutex<Option<thread::JoinHandle<()>>>,
}

/// How many threads read.
const READERS: usize = 2;

impl Disk {
    /// Starts a store. Opening the file is the first thing that its thread does: nobody waits for that, and a file that
    /// cannot be opened is told as a [`DiskEvent`].
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(options: DiskOptions) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::new(options));
        for number in 0..READERS {
            let reading = Arc::clone(&shared);
            thread::Builder::new()
                .name(format!("store-read-{number}"))
                .spawn(move || reader::run(&reading))
                .inspect_err(|_| shared.close())?;
        }
        let writing = Arc::clone(&shared);
        let writer = thread::Builder::new()
            .name("store-write".to_owned())
            .spawn(move || writer::run(&writing))
            .inspect_err(|_| shared.close())?;
        Ok(Self {
            shared,
            writer: Mutex::new(Some(writer)),
        })
    }

    /// Returns what happened since the last call, oldest first; of too many the oldest are lost.
    #[must_use]
    pub fn events(&self) -> Vec<DiskEvent> {
        self.shared.events.lock().drain(..).collect()
    }

    /// Returns what it has done so far.
    #[must_use]
    pub fn counts(&self) -> DiskCounts {
        self.shared.counts.read()
    }

    /// Returns why it is down; `None` while it is up.
    #[must_use]
    pub fn down(&self) -> Option<(&'static str, String)> {
        self.shared.state.lock().down.clone()
    }

    /// Closes it and waits until the file is let go. Not for a thread that has other things to do.
    pub fn join(&self) {
        self.shared.close();
        if let Some(writer) = self.writer.lock().take() {
            // A writer that broke has let go of the file too.
            drop(writer.join());
        }
    }

    fn ask(&self, asked: Asked) {
        if let Err(asked) = self.shared.ask(asked) {
            let why = match self.down() {
                _ if self.shared.is_closed() => StoreError::Closed,
                Some((_, why)) => StoreError::Down(why),
                None => StoreError::Busy,
            };
            self.shared.counts.read_ended(Read::Refused);
            asked.fail(why);
        }
    }
}

impl SnapshotStore for Disk {
    fn put(&self, record: Record, now: Mono) -> Result<(), NotTaken> {
        let options = &self.shared.options;
        let mut backlog = self.shared.backlog.lock();
        let was_empty = backlog.is_empty();
        let put = backlog.put(record, now, options);
        // A writer who waits for more to come is woken by the first and by a whole batch.
        let wake = was_empty || backlog.fills(writer::BATCH);
        drop(backlog);
        match put {
            Ok(()) if wake => {
                self.shared.more.notify_one();
            }
            Ok(()) => {}
            Err(why) => self.shared.counts.dropped(why),
        }
        put
    }

    fn get(&self, key: &[u8], done: Done<Option<Found>>) {
        let backlog = self.shared.backlog.lock();
        let waited = backlog.get(key);
        let removals = backlog.settled_removals();
        drop(backlog);
        if waited.is_some() && !self.shared.can_be_asked() {
            // The file may hold something later; without it this is the answer.
            self.shared.counts.read_ended(Read::Hit);
            return done(Ok(waited));
        }
        let job = Job {
            key: key.to_vec(),
            waited: waited.map(Box::new),
            removals,
        };
        self.ask(Asked::Get(job, done));
    }

    fn remove(&self, key: &[u8], order: Order, done: Done<u64>) {
        self.shared.urge(Urgent {
            what: What::Remove(key.into()),
            order,
            done: Some(done),
        });
    }

    fn purge(&self, purge: Purge, how: PurgeHow, order: Order, done: Done<u64>) {
        self.shared.urge(Urgent {
            what: What::Purge(purge, how, Arc::default()),
            order,
            done: Some(done),
        });
    }

    fn latest(&self, after: Option<i64>, most: usize, bytes: u64, done: Done<(Vec<Found>, Option<i64>)>) {
        self.ask(Asked::Latest(after, (most, bytes), done));
    }

    fn settle(&self, done: Done<()>) {
        self.shared.urge(Urgent {
            what: What::Settle,
            order: Order {
                turn: 0,
                started: None,
            },
            done: Some(Box::new(|settled| done(settled.map(|_| ())))),
        });
    }

    fn flush(&self, done: Done<()>) {
        let mut backlog = self.shared.backlog.lock();
        if backlog.closed {
            drop(backlog);
            return done(Err(StoreError::Closed));
        }
        backlog.flushes.push(done);
        drop(backlog);
        self.shared.more.notify_one();
    }

    fn stats(&self) -> StoreStats {
        self.shared.stats()
    }

    fn close(&self) {
        self.shared.close();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").finish_non_exhaustive()
    }
}
