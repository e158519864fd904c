//! Decides what a store of snapshots behind the one in memory is asked to do, and in which words it answers.
//! It exists so that a file, a shared service and a model in a test are one thing to whoever writes into them, and so
//! that all of them pass one suite of tests.
//! It refuses to know what a snapshot holds: facts and body are bytes of whoever keeps them.

mod order;
mod stamp;

use alloc::{boxed::Box, string::String, sync::Arc, vec::Vec};
use core::fmt;

pub use order::Order;
pub use stamp::Stamp;

use crate::time::Mono;

/// The body of a snapshot: bytes that a store and its caller share.
#[derive(Clone)]
pub struct Body(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl Body {
    /// Takes bytes of any kind without copying them.
    pub fn of(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(bytes))
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes().len())
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

/// What is known of a snapshot from outside: all that it can be purged by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The contract whose snapshot it is.
    pub route: String,
    /// Scheme, authority and target, as one text: purges by URI and by prefix go by it.
    pub uri: String,
    /// What says whose data it is; empty where nobody is named.
    pub scope: Vec<u8>,
    /// Words of its origin that it can be purged by.
    pub tags: Vec<String>,
}

impl Marks {
    /// Returns the part of the URI from the path on.
    #[must_use]
    pub fn target(&self) -> &str {
        let site = self.uri.find("://").map_or(0, |at| at + 3);
        let path = self.uri.get(site..).and_then(|rest| rest.find('/'));
        path.and_then(|at| self.uri.get(site + at..)).unwrap_or_default()
    }
}

/// One snapshot as a store keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The whole key. Stores look up by a hash of it, and compare it in full.
    pub key: Vec<u8>,
    /// What it can be purged by.
    pub marks: Marks,
    /// Where it stands among the changes of its key.
    pub order: Order,
    /// When its data was observed.
    pub stamp: Stamp,
    /// It was purged softly: it is never fresh again, and still there for failures.
    pub soft: bool,
    /// What its keeper knows of it, in a form of his.
    pub facts: Vec<u8>,
    /// Its body.
    pub body: Body,
}

impl Record {
    /// Returns the bytes that its parts take, with an allowance for what every store adds.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        const OVERHEAD: usize = 256;
        let tags: usize = self.marks.tags.iter().map(|tag| tag.len() + 32).sum();
        let marks = self.marks.route.len() + self.marks.uri.len() + self.marks.scope.len() + tags;
        (OVERHEAD + self.key.len() + marks + self.facts.len() + self.body.bytes().len()) as u64
    }
}

/// A snapshot that a store gives back.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The snapshot.
    pub record: Record,
    /// Its monotonic times are of the clock that runs now: the machine has not been started since.
    pub same_boot: bool,
}

/// What a purge takes away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purge {
    /// Every snapshot of one URI, whatever its method, variant or scope.
    Uri(String),
    /// Every snapshot whose URI begins so.
    Prefix(String),
    /// Every snapshot of one target, whatever its scheme and authority.
    Target(String),
    /// Every snapshot whose target begins so, whatever its scheme and authority.
    TargetPrefix(String),
    /// Every snapshot with this tag.
    Tag(String),
    /// Every snapshot of one scope.
    Scope(Vec<u8>),
    /// Every snapshot of one contract.
    Route(String),
    /// Everything.
    All,
}

impl Purge {
    /// Tells whether it concerns a snapshot with these marks.
    #[must_use]
    pub fn concerns(&self, marks: &Marks) -> bool {
        match self {
            Self::Uri(uri) => marks.uri == *uri,
            Self::Prefix(prefix) => marks.uri.starts_with(prefix.as_str()),
            Self::Target(target) => marks.target() == target,
            Self::TargetPrefix(prefix) => marks.target().starts_with(prefix.as_str()),
            Self::Tag(tag) => marks.tags.contains(tag),
            Self::Scope(scope) => marks.scope == *scope,
            Self::Route(route) => marks.route == *route,
            Self::All => true,
        }
    }
}

/// What a purge leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeHow {
    /// Nothing.
    Hard,
    /// Snapshots that are never fresh again, and still there for failures.
    Soft,
}

/// Why a store did not take a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// Too much waits to be written.
    Full,
    /// It is larger than the store takes.
    TooBig,
    /// Something later is held, or it was taken away since.
    Superseded,
    /// The store is closed.
    Closed,
}

impl NotTaken {
    /// Every reason.
    pub const ALL: [Self; 4] = [Self::Full, Self::TooBig, Self::Superseded, Self::Closed];

    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "backlog-full",
            Self::TooBig => "too-big",
            Self::Superseded => "superseded",
            Self::Closed => "closed",
        }
    }
}

/// Why a store could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// It cannot be reached or written at the moment.
    Down(String),
    /// Too many ask it at once.
    Busy,
    /// It is closed.
    Closed,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Down(why) => write!(f, "the store is down: {why}"),
            Self::Busy => f.write_str("too many ask the store at once"),
            Self::Closed => f.write_str("the store is closed"),
        }
    }
}

impl core::error::Error for StoreError {}

/// How a store is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// It takes and gives snapshots.
    pub up: bool,
    /// Snapshots held, as last counted.
    pub entries: u64,
    /// Bytes that they take, as last counted.
    pub bytes: u64,
    /// Changes that wait to be written.
    pub backlog: u64,
    /// The bytes of those.
    pub backlog_bytes: u64,
    /// When the change that waits longest was handed over.
    pub backlog_since: Option<Mono>,
}

/// Takes what an operation came to, once. It may run on a thread of the store and must not wait.
pub type Done<T> = Box<dyn FnOnce(Result<T, StoreError>) + Send>;

/// A store of snapshots behind the one in memory.
///
/// No operation waits: results are handed to a function, when they are there. Whoever asks sets the limit of his wait.
///
/// **Order.** Of two changes of one key the later one stays, by [`Order`], in whatever order they arrive; what was written
/// before the store was opened last is earlier than everything since. A removal also refuses earlier snapshots that come
/// after it.
pub trait SnapshotStore: Send + Sync {
    /// Hands over a snapshot to be written, at a time. Takes the place of one that waits for the same key.
    ///
    /// # Errors
    /// [`NotTaken`]: then the store holds what it held before.
    fn put(&self, record: Record, now: Mono) -> Result<(), NotTaken>;

    /// Looks a snapshot up by its whole key, among what waits to be written too.
    fn get(&self, key: &[u8], done: Done<Option<Found>>);

    /// Takes a snapshot away, unless it is later than `order`. Told to be done once that is durable.
    fn remove(&self, key: &[u8], order: Order, done: Done<u64>);

    /// Takes away, or softens, every snapshot concerned that is not later than `order`. Told to be done, with their
    /// number, once that is durable.
    fn purge(&self, purge: Purge, how: PurgeHow, order: Order, done: Done<u64>);

    /// Gives up to `most` snapshots and about `bytes`, the latest used first, beginning behind a place that the call before
    /// returned; the first call says `None`. The place returned is `None` when there are no more.
    fn latest(&self, after: Option<i64>, most: usize, bytes: u64, done: Done<(Vec<Found>, Option<i64>)>);

    /// Tells when every removal and purge until now is durable.
    fn settle(&self, done: Done<()>);

    /// Tells when everything until now is written.
    fn flush(&self, done: Done<()>);

    /// Returns how it is doing.
    fn stats(&self) -> StoreStats;

    /// Writes what waits, as far as that works, and ends. Nothing is taken afterwards.
    fn close(&self);
}
