//! Decides nothing about degradation: it drives the engine of `evenkeel-core` through virtual time.
//! It exists so that an outage of minutes, a fleet of a thousand nodes or a collapse that never ends is a test that
//! takes a second, can be repeated from its seed, and runs the code that production runs.
//! It refuses sockets, files, threads and clocks, and has no admission and no breaker of its own.

mod queue;
pub mod recovery;
mod scenario;
mod setup;
mod slab;
mod source;
mod tally;
mod world;

pub use scenario::Scenario;
pub use setup::{
    Arrivals, Change, Node, Owned, Setup, Workload, cached_read, shipped_dependency, shipped_read,
};
pub use source::{Mode, Slowdown, SourceModel};
pub use tally::{SLOT, Seen, Slot, Tally};
pub use world::run;
