//! Decides what a running gateway tells people: series for machines, lines for logs.
//! It exists so that both speak the engine's words and come from the engine's own counters.
//! It refuses to count by itself what the engine counts already.

pub mod log;
mod metrics;
pub mod series;

pub(crate) use metrics::Metrics;
