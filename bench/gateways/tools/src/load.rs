//! Decides what the load is that wrk has not: each key once, all at once, and at a rate that never waits.
//!
//! It exists because collapsing, first answers and recovery are about single requests, not about
//! throughput. It refuses to hide what went wrong: every request ends in one count.

pub mod client;
pub mod each;
pub mod open;
pub mod options;
pub mod tally;
