//! Decides which atomics the engine uses: the real ones, or those of loom when its model checker runs.
//! It exists so that the code which is checked is the code which runs.
//! It refuses locks: core has none.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence};
