//! Decides what a store behind the one in memory is told, and when: after each change, with a number that says which of two
//! was the later one.
//! It exists so that what is kept can outlive the process, while the store in memory stays what is asked first.
//! It refuses to wait for it, and to believe it blindly: what comes back is kept only if nothing was retired meanwhile.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use evenkeel_core::store::Order;

use crate::memory::Entry;

/// A store behind a [`Memory`](crate::Memory). It is called where calls are made, so it hands things over and returns.
pub trait Behind<T>: Send + Sync {
    /// Draws the next turn: a number that grows with each call. It is drawn while the key is held.
    fn turn(&self) -> u64;

    /// Is told that a copy is kept now.
    fn kept(&self, key: &[u8], value: &T, entry: &Entry, order: Order);

    /// Is told that whatever is not later than this is gone.
    fn gone(&self, key: &[u8], order: Order);
}

/// The store behind one in memory, once there is one.
pub(crate) struct Beyond<B: ?Sized>(OnceLock<Arc<B>>);

impl<B: ?Sized> Default for Beyond<B> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<B: ?Sized> Beyond<B> {
    /// Sets it. `false` if there was one already; then that stays.
    pub(crate) fn set(&self, behind: Arc<B>) -> bool {
        self.0.set(behind).is_ok()
    }

    pub(crate) fn get(&self) -> Option<&B> {
        self.0.get().map(|behind| &**behind)
    }
}

impl<B: ?Sized> fmt::Debug for Beyond<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Beyond").field(&self.0.get().is_some()).finish()
    }
}

/// A moment before a store behind is asked. What comes back is kept only if its key was not retired since.
#[derive(Clone, Copy, Debug)]
pub struct Before(pub(crate) u64);

/// Something that a store behind has given back and that is in memory now. While this is held it does not go for want of
/// room, so that the call that it was fetched for finds it.
#[derive(Debug)]
#[must_use = "what was fetched for a call may be gone before it is used, unless this is held"]
pub struct Restored(Option<Pinned>);

/// What is held in memory, and its bytes, among those that all such take.
#[derive(Debug)]
struct Pinned {
    pin: Pin,
    bytes: u64,
    taken: Arc<AtomicU64>,
}

/// Tells whether something may not go.
pub(crate) type Pin = Arc<AtomicBool>;

pub(crate) fn is_pinned(pin: Option<&Pin>) -> bool {
    pin.is_some_and(|pin| pin.load(Relaxed))
}

/// How much of a store is held by those who have fetched it.
#[derive(Debug, Default)]
pub(crate) struct Pins(Arc<AtomicU64>);

impl Pins {
    /// Holds so many bytes, if that is not more than an eighth of the store: the rest must be able to go.
    pub(crate) fn hold(&self, bytes: u64, limit: u64) -> Restored {
        let taken = self.0.fetch_add(bytes, Relaxed);
        let pinned = Pinned {
            pin: Arc::new(AtomicBool::new(true)),
            bytes,
            taken: Arc::clone(&self.0),
        };
        // Beyond that it is dropped here, which gives the bytes back.
        Restored((taken.saturating_add(bytes) <= limit / 8).then_some(pinned))
    }
}

impl Restored {
    pub(crate) fn pin(&self) -> Option<Pin> {
        self.0.as_ref().map(|pinned| Arc::clone(&pinned.pin))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.pin.store(false, Relaxed);
        self.taken.fetch_sub(self.bytes, Relaxed);
    }
}
