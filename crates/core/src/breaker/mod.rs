//! Decides whether a dependency is asked at all: closed, open, half-open.
//! It exists to spare callers a wait that has failed all the time, and the dependency calls it cannot serve.
//! It refuses to close by the passing of time: only a probe that succeeded proves a recovery.
//!
//! A breaker is two parts. [`Gate`] is what every call touches: lock-free, one load on the closed path.
//! [`Recovery`] is what only a tripped breaker needs, kept under exclusive access. [`crate::Dependency`] joins them, and
//! drivers go through it:
//!
//! 1. [`Gate::admit`]: admitted (remember the generation), refused, or a probe may start.
//! 2. For a probe, lock and ask [`Recovery::probe`]; it may still be refused.
//! 3. Make the attempt. Report [`Gate::succeeded`] or [`Gate::failed`] under the generation, or
//!    [`Recovery::settle`] for a probe.
//! 4. A [`Trip`] goes to [`Recovery::tripped`]; each [`Transition`] goes to the log and the counters.

mod gate;
mod recovery;
mod ring;
mod rules;
mod share;
mod window;

pub use gate::{Admission, Gate, Generation, State, Trip, TripRule};
pub use recovery::{Asker, Cause, Changes, Probe, Recovery, Transition};
pub use rules::{BreakerRules, OpenFor, Over, Ratio, SlowRatio};
