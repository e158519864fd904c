//! The gateway over real sockets: a scripted origin on one side, raw clients on the other.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod accessed;
mod addresses;
mod administration;
mod alternates;
mod bodies;
mod cache_answers;
mod cache_failures;
mod cache_reuse;
mod cache_sharing;
mod capacity;
mod failures;
mod framing;
mod keeping;
mod kit;
mod lifecycle;
mod meaning;
mod passing;
mod persistence;
mod poisoning;
mod promtool;
mod protect;
mod queue;
mod recovery;
mod reload;
mod requests;
mod retries;
mod rewriting;
mod routing;
mod seen;
mod sharing;
mod sink;
mod streams;
mod uploads;
