//! Decides what the demo shows: the same outage hard, graceful, and the way back, with real counts.
//! It exists so that anybody sees in seconds what a ladder changes, on real sockets.
//! It refuses to count what it expects: every count is read from an answer, or from the upstream's own counter.

mod client;
mod origin;
pub mod report;
mod script;

pub use script::{Outcome, Run, WayBack, run};
