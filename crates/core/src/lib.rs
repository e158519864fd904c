#![no_std]
//! The evenkeel engine as pure state machines: inputs and `now` go in, steps and events come out.
extern crate alloc;
#[cfg(any(test, loom))]
extern crate std;

mod age;
mod breaker;
mod bulkhead;
mod call;
mod class;
mod contract;
mod deadline;
mod ending;
mod hold;
mod ladder;
mod lane;
mod problem;
mod reason;
mod rng;
mod snapshot;
mod sync;
mod time;

pub use age::{Age, Facts};
pub use breaker::{
    Admission, Asker, BreakerRules, Cause, Gate, Generation, OpenFor, Probe, Ratio, Recovery, State,
    Transition, Trip,
};
pub use bulkhead::{Bulkhead, acquire_all};
pub use call::{ReadCall, Step};
pub use class::{Class, Outage, Row, Table, Verdict};
pub use contract::{DependencyContract, DependencyDraft, ReadContract, ReadDraft, WhenBusy};
pub use deadline::{Deadline, Limit};
pub use ending::{Ending, Rung};
pub use hold::HoldMode;
pub use ladder::{Ladder, RungRule, Skips};
pub use lane::Lane;
pub use problem::{Problem, Problems};
pub use reason::{Reason, Skipped};
pub use rng::Rng;
pub use snapshot::{Keep, replaces};
pub use time::{Mono, Now, Wall};
