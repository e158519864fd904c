//! Decides what the handle, the writer and the readers of a store on disk share: queues, state, counters and events.
//! It exists so that each of them is told by the others through one value, and none waits for another one's file.
//! It refuses to touch the file; the writer and the readers do.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
};

use evenkeel_core::store::{NotTaken, StoreStats};
use parking_lot::{Condvar, Mutex};

use super::{
    DiskOptions,
    backlog::{Backlog, Urgent},
    reader::Asked,
    rows::Form,
};

/// What happened to a store on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskEvent {
    /// The file is open: with what is in it, and which files in its directory are not ours.
    Up {
        /// Snapshots in the file.
        entries: u64,
        /// Their bytes.
        bytes: u64,
        /// Names of files that were left alone.
        ignored: Vec<String>,
    },
    /// It cannot be used, and is tried again.
    Down {
        /// One stable word.
        why: &'static str,
        /// The rest.
        detail: String,
    },
    /// A damaged file was put aside and a new one begins.
    PutAside {
        /// Its name now.
        name: String,
        /// What was wrong with it.
        detail: String,
    },
}

/// What became of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// A snapshot was found.
    Hit,
    /// There is none.
    Miss,
    /// There was one that cannot be believed; it is taken away.
    Damaged,
    /// The file could not be read.
    Failed,
    /// It was not looked up: the store is down, or too many asked at once.
    Refused,
}

impl Read {
    /// Every result.
    pub const ALL: [Self; 5] = [Self::Hit, Self::Miss, Self::Damaged, Self::Failed, Self::Refused];

    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Damaged => "damaged",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }
}

/// What a store on disk has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounts {
    /// Snapshots written.
    pub written: u64,
    /// Batches written.
    pub batches: u64,
    /// Batches that could not be written and are tried again.
    pub failed_batches: u64,
    /// Snapshots taken away to make room.
    pub evicted: u64,
    /// Snapshots taken away by removals and purges.
    pub removed: u64,
    /// Snapshots not taken, by [`NotTaken::ALL`].
    pub dropped: [u64; NotTaken::ALL.len()],
    /// Look-ups, by [`Read::ALL`].
    pub reads: [u64; Read::ALL.len()],
    /// Files put aside.
    pub put_aside: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) written: AtomicU64,
    pub(super) batches: AtomicU64,
    pub(super) failed_batches: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) removed: AtomicU64,
    pub(super) put_aside: AtomicU64,
    dropped: [AtomicU64; NotTaken::ALL.len()],
    reads: [AtomicU64; Read::ALL.len()],
}

pub(super) fn add(count: &AtomicU64, by: u64) {
    count.fetch_add(by, Ordering::Relaxed);
}

impl Counts {
    pub(super) fn dropped(&self, why: NotTaken) {
        if let Some(at) = NotTaken::ALL.iter().position(|known| *known == why) {
            add(&self.dropped[at], 1);
        }
    }

    pub(super) fn read_ended(&self, read: Read) {
        if let Some(at) = Read::ALL.iter().position(|known| *known == read) {
            add(&self.reads[at], 1);
        }
    }

    pub(super) fn read(&self) -> DiskCounts {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        DiskCounts {
            written: get(&self.written),
            batches: get(&self.batches),
            failed_batches: get(&self.failed_batches),
            evicted: get(&self.evicted),
            removed: get(&self.removed),
            dropped: self.dropped.each_ref().map(get),
            reads: self.reads.each_ref().map(get),
            put_aside: get(&self.put_aside),
        }
    }
}

/// A file that is open.
#[derive(Clone, Debug)]
pub(super) struct OpenFile {
    pub(super) form: Form,
    /// Counts how often a file was opened: readers open theirs anew when it grows.
    pub(super) generation: u64,
}

/// How the file is.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) open: Option<OpenFile>,
    pub(super) down: Option<(&'static str, String)>,
    /// What a reader found that shows that the file is broken.
    pub(super) suspect: Option<String>,
}

/// The word for a file that is being opened for the first time.
const OPENING: &str = "opening";

impl State {
    /// Tells whether it is not known yet whether there is a file to use.
    pub(super) fn is_opening(&self) -> bool {
        self.down.as_ref().is_some_and(|(why, _)| *why == OPENING)
    }
}

/// What readers leave for the writer.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) used: Vec<i64>,
    pub(super) damaged: Vec<i64>,
}

/// So much of that is remembered; what is beyond is seen again.
const SEEN_MAX: usize = 1024;
/// So many look-ups wait.
const ASKED_MAX: usize = 256;
/// So many events are kept.
const EVENTS_MAX: usize = 64;

/// Look-ups that wait.
#[derive(Default)]
pub(super) struct Lookups {
    pub(super) waiting: VecDeque<Asked>,
    pub(super) closed: bool,
}

impl fmt::Debug for Lookups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookups")
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: DiskOptions,
    pub(super) backlog: Mutex<Backlog>,
    /// There is something to write, or nothing ever again.
    pub(super) more: Condvar,
    pub(super) lookups: Mutex<Lookups>,
    pub(super) asked: Condvar,
    pub(super) state: Mutex<State>,
    /// It is known whether there is a file to use.
    pub(super) opened: Condvar,
    pub(super) seen: Mutex<Seen>,
    pub(super) counts: Counts,
    pub(super) events: Mutex<VecDeque<DiskEvent>>,
    pub(super) entries: AtomicI64,
    /// Of the file with its journal, as last looked at.
    pub(super) bytes: AtomicU64,
}

impl Shared {
    pub(super) fn new(options: DiskOptions) -> Self {
        Self {
            options,
            backlog: Mutex::default(),
            more: Condvar::new(),
            lookups: Mutex::default(),
            asked: Condvar::new(),
            state: Mutex::new(State {
                down: Some((OPENING, "the file is being opened".to_owned())),
                ..State::default()
            }),
            opened: Condvar::new(),
            seen: Mutex::default(),
            counts: Counts::default(),
            events: Mutex::default(),
            entries: AtomicI64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.backlog.lock().closed
    }

    pub(super) fn close(&self) {
        self.backlog.lock().closed = true;
        self.more.notify_one();
        {
            let mut state = self.state.lock();
            if state.is_opening() {
                state.down = Some(("closed", "the store is closed".to_owned()));
            }
        }
        self.opened.notify_all();
        let mut lookups = self.lookups.lock();
        lookups.closed = true;
        let left: Vec<Asked> = lookups.waiting.drain(..).collect();
        drop(lookups);
        self.asked.notify_all();
        for asked in left {
            asked.fail(evenkeel_core::store::StoreError::Closed);
        }
    }

    pub(super) fn urge(&self, urgent: Urgent) {
        self.backlog.lock().urge(urgent);
        self.more.notify_one();
    }

    /// Tells whether look-ups are answered, or will be in a moment.
    pub(super) fn can_be_asked(&self) -> bool {
        let state = self.state.lock();
        state.open.is_some() || state.is_opening()
    }

    /// Hands a look-up to the readers.
    ///
    /// # Errors
    /// The look-up itself, when nobody will do it.
    pub(super) fn ask(&self, asked: Asked) -> Result<(), Asked> {
        // One that is being opened for the first time is there in a moment; whoever asks has a limit of his own.
        if !self.can_be_asked() {
            return Err(asked);
        }
        let mut lookups = self.lookups.lock();
        if lookups.closed || lookups.waiting.len() >= ASKED_MAX {
            return Err(asked);
        }
        lookups.waiting.push_back(asked);
        drop(lookups);
        self.asked.notify_one();
        Ok(())
    }

    pub(super) fn tell(&self, event: DiskEvent) {
        let mut events = self.events.lock();
        if events.len() >= EVENTS_MAX {
            events.pop_front();
        }
        events.push_back(event);
    }

    /// Notes that so many more snapshots are in the file.
    pub(super) fn grew(&self, by: i64) {
        self.entries.fetch_add(by, Ordering::Relaxed);
    }

    /// Notes that a row was used or found damaged.
    pub(super) fn saw(&self, hash: i64, is_damaged: bool) {
        let mut seen = self.seen.lock();
        let list = if is_damaged {
            &mut seen.damaged
        } else {
            &mut seen.used
        };
        if list.len() < SEEN_MAX {
            list.push(hash);
        }
    }

    /// Notes that the store is down, and tells so if it was not, or for another reason.
    pub(super) fn went_down(&self, why: &'static str, detail: &str, is_open: bool) {
        let mut state = self.state.lock();
        let is_news = state.down.as_ref().is_none_or(|(known, _)| *known != why);
        state.down = Some((why, detail.to_owned()));
        if !is_open {
            state.open = None;
        }
        drop(state);
        self.opened.notify_all();
        if is_news {
            self.tell(DiskEvent::Down {
                why,
                detail: detail.to_owned(),
            });
        }
    }

    /// Notes that the store is up, and tells so if it was not.
    pub(super) fn came_up(&self, ignored: impl FnOnce() -> Vec<String>) {
        if self.state.lock().down.take().is_some() {
            let stats = self.stats();
            self.tell(DiskEvent::Up {
                entries: stats.entries,
                bytes: stats.bytes,
                ignored: ignored(),
            });
        }
    }

    pub(super) fn stats(&self) -> StoreStats {
        let backlog = self.backlog.lock();
        let (length, since) = backlog.length();
        let (backlog_bytes, closed) = (backlog.bytes, backlog.closed);
        drop(backlog);
        StoreStats {
            up: !closed && self.state.lock().down.is_none(),
            entries: u64::try_from(self.entries.load(Ordering::Relaxed)).unwrap_or(0),
            bytes: self.bytes.load(Ordering::Relaxed),
            backlog: length as u64,
            backlog_bytes,
            backlog_since: since,
        }
    }
}

/// What readers and the writer share.
pub(super) type Hand = Arc<Shared>;
