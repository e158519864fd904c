//! Decides whether a body may be held back: all bodies held back at once share one bound in bytes.
//! It exists so that many large answers at the same time cannot exhaust memory; they are streamed instead.
//! It refuses to wait: a body that finds no room flows on at once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The room for bodies that are held back. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Buffers(Arc<Room>);

#[derive(Debug)]
struct Room {
    limit: AtomicUsize,
    used: AtomicUsize,
}

/// A share of the room, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    room: Arc<Room>,
    bytes: usize,
}

impl Buffers {
    pub(crate) fn new(limit: usize) -> Self {
        Self(Arc::new(Room {
            limit: AtomicUsize::new(limit),
            used: AtomicUsize::new(0),
        }))
    }

    /// Takes room for `bytes`, if there is that much.
    pub(crate) fn take(&self, bytes: usize) -> Option<Lease> {
        let mut lease = Lease {
            room: Arc::clone(&self.0),
            bytes: 0,
        };
        lease.grow(bytes).then_some(lease)
    }

    /// Gives another bound; what is held already stays.
    pub(crate) fn set_limit(&self, limit: usize) {
        self.0.limit.store(limit, Ordering::Relaxed);
    }

    /// Returns the bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }
}

impl Lease {
    /// Takes room for `bytes` more; `false`, and nothing taken, if there is not that much.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let limit = self.room.limit.load(Ordering::Relaxed);
        let grown = self
            .room
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(bytes).filter(|used| *used <= limit)
            });
        if grown.is_ok() {
            self.bytes += bytes;
        }
        grown.is_ok()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.room.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_up_to_the_limit_and_one_byte_more_is_refused() {
        let buffers = Buffers::new(10);
        let mut first = buffers.take(4).unwrap();
        assert!(buffers.take(7).is_none());
        assert!(first.grow(6));
        assert!(!first.grow(1));
        assert_eq!(buffers.used(), 10);
        drop(first);
        assert_eq!(buffers.used(), 0);
        assert!(buffers.take(usize::MAX).is_none());
    }
}
