//! Steering a gateway that runs as a process of its own, by the command line of the same program.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod holds;
#[path = "../e2e/kit.rs"]
mod kit;
mod observes;
mod pages;
mod process;
mod purges;
mod snapshots;
mod status;
mod truth;
