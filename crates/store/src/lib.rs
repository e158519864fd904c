//! Decides where snapshots are kept that are to outlive the process: behind the store in memory, never in its place.
//! It exists so that a restart, a deploy or a crash does not begin with nothing to answer from.
//! It refuses to be waited for: what is written goes through a bounded backlog, what is read through a bounded lane, and
//! whatever happens to the file, its callers go on.
//!
//! What a store does is declared in [`evenkeel_core::store`]; here are the stores: [`Model`], which a reader can check by
//! eye, and behind feature `disk` [`Disk`]. One suite of tests holds all of them to the same words.

#[cfg(feature = "disk")]
mod disk;
mod model;

#[cfg(feature = "disk")]
pub use disk::{Disk, DiskCounts, DiskEvent, DiskOptions, Read};
pub use model::Model;
