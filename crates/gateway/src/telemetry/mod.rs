//! Decides what a running gateway tells people: series for machines, lines for logs.
//! It exists so that both speak the engine's words and come from the engine's own counters.
//! It refuses to count by itself what the engine counts already.

mod access;
mod addresses;
mod ages;
mod coverage;
mod degradation;
mod exercises;
mod line;
mod log;
mod metrics;
mod outages;
mod protection;
pub mod series;
mod standing;
mod store;
mod told;

pub use line::{Level, Line};
pub use log::Log;

pub(crate) use access::{AccessLog, CameTo, Record, Request as AccessedRequest};
pub(crate) use addresses::line as address_line;
pub(crate) use degradation::Came;
pub(crate) use line::{rfc3339, unix_seconds};
pub(crate) use metrics::Metrics;
pub(crate) use outages::{Blame, Outages};
pub(crate) use standing::{LOOK_EVERY, Standing};
pub(crate) use told::line as told;

/// What is noted of the calls of one route beside the engine's own counters. Clones of the handle share it, so that
/// another contract with a route of this name goes on counting.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// What the store had for them, where anything is kept.
    pub(crate) coverage: coverage::Coverage,
    /// How near to their limit its old answers were.
    pub(crate) ages: ages::Ages,
}
