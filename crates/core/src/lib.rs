#![no_std]
//! Decides what becomes of a call when a dependency is slow, broken, saturated or gone.
//! It exists as pure state machines, so that production and virtual time run the same rules, and a failing case
//! can be replayed from its inputs.
//! It refuses to act: no clock, no lock, no thread, no I/O, no randomness but a seed. Inputs and `now` go in,
//! steps and changes of state come out.
//!
//! # The driver loop
//!
//! A driver owns the clock, the lock around [`Steering`], the store and the dependency. Steps 3, 4 and 6 are
//! [`Dependency::admit`], [`Dependency::release`] and [`Dependency::settle`], which add ramp and learned limit. For
//! one Read call it:
//!
//! 1. begins with [`ReadCall::begin`] and performs the [`Step`] it is given, until a step ends the call;
//! 2. on [`Step::Look`] looks the snapshot up and reports its [`Facts`] to [`ReadCall::found`];
//! 3. on [`Step::Admit`] asks [`Gate::admit`]. Closed: it remembers the [`Generation`]. Time for a probe: it
//!    locks and asks [`Recovery::probe`]. Refused: it reports [`Reason::BreakerOpen`] to [`ReadCall::refused`];
//! 4. takes a permit of every [`Bulkhead`] with [`acquire_all`], or gives the probe back as [`Verdict::Neutral`]
//!    and reports [`Reason::AtCapacity`]; then [`ReadCall::admitted`];
//! 5. on [`Step::Attempt`] asks the dependency, up to the [`Limit`], and maps what came to a [`Class`];
//! 6. looks the class up in the [`Table`] and tells the breaker: [`Gate::succeeded`], [`Gate::failed`] or
//!    [`Recovery::settle`]; a [`Trip`] goes to [`Recovery::tripped`]. Running into [`Limit::Deadline`] is no
//!    verdict. It releases the permits when the work has ended, not before;
//! 7. keeps the answer if [`Keep`] and [`replaces`] say so, dated with the *start* of the attempt, and reports
//!    the class to [`ReadCall::attempted`];
//! 8. on [`Step::Serve`], [`Step::Refuse`] or [`Step::Fail`] ends the call, with [`ReadCall::reason`] and
//!    [`ReadCall::skips`] as its label, and counts exactly one [`Ending`].
//!
//! # Map
//!
//! | to know | read |
//! |---|---|
//! | what a contract may say | [`ReadDraft`], [`DependencyDraft`], [`BreakerRules`], [`Ladder`], [`Problems`] |
//! | the life of a call | [`ReadCall`], [`Step`], [`Deadline`], [`HoldMode`] |
//! | what a result means | [`Class`], [`Table`], [`Verdict`] |
//! | whether the dependency is asked | [`Dependency`], [`Gate`], [`Recovery`], [`Bulkhead`], [`Lane`] |
//! | how traffic comes back, and how much is borne | [`RampRules`], [`Stage`], [`LimitRules`], [`Steering`] |
//! | how old data may be | [`Age`], [`Facts`], [`replaces`] |
//! | the public words | [`Ending`], [`Rung`], [`Reason`], [`Skipped`] |
//! | time and chance | [`Mono`], [`Wall`], [`Now`], [`Rng`] |
//!
//! # One call by hand
//!
//! The dependency fails for the first time, one failure trips, and the snapshot of 20 s ago is served:
//!
//! ```
//! use core::time::Duration;
//! use evenkeel_core::*;
//!
//! # fn main() -> Result<(), Problems> {
//! let dependency = DependencyDraft {
//!     name: "stock-db".into(),
//!     timeout: Some(Duration::from_secs(1)),
//!     breaker: Some(BreakerRules { consecutive: Some(1), ..BreakerRules::NONE }),
//!     ..DependencyDraft::default()
//! }
//! .check()?;
//! let contract = ReadDraft {
//!     name: "stock".into(),
//!     ladder: vec![RungRule::Stale { max_age: Duration::from_secs(60) }],
//!     ..ReadDraft::default()
//! }
//! .check()?;
//! let rules = *dependency.breaker().expect("declared above");
//! let (gate, mut recovery) = (Gate::new(&rules), Recovery::new(rules, 42));
//! let lane = Lane::new(0);
//! let now = Mono::from_nanos(100_000_000_000);
//! let snapshot = Facts { observed: Some(now.before(Duration::from_secs(20))), ..Facts::default() };
//!
//! let mut call_once = |answer: Class, now: Mono| {
//!     let (mut call, mut step) =
//!         ReadCall::begin(&contract, dependency.table(), dependency.timeout(), None, now);
//!     let mut generation = None;
//!     loop {
//!         step = match step {
//!             Step::Look => call.found(Some(snapshot), now),
//!             Step::Admit => match gate.admit(now) {
//!                 Admission::Admitted(admitted) => {
//!                     generation = Some(admitted);
//!                     call.admitted(now)
//!                 }
//!                 // A whole driver would probe when the time has come.
//!                 Admission::Refused { .. } | Admission::MayProbe => call.refused(Reason::BreakerOpen),
//!             },
//!             Step::Attempt(_) => {
//!                 if let Some(generation) = generation {
//!                     match dependency.table().row(answer).breaker {
//!                         Verdict::Success => gate.succeeded(lane, now, generation),
//!                         Verdict::Failure => {
//!                             if let Some(trip) = gate.failed(lane, now, generation) {
//!                                 recovery.tripped(&gate, trip, now);
//!                             }
//!                         }
//!                         Verdict::Neutral => {}
//!                     }
//!                 }
//!                 call.attempted(answer, false)
//!             }
//!             Step::Serve(..) | Step::Refuse | Step::Fail => return (step, call.reason()),
//!         };
//!     }
//! };
//!
//! let stale = Step::Serve(Rung::Stale, Some(Duration::from_secs(20)));
//! assert_eq!(call_once(Class::OUTAGE, now), (stale, Some(Reason::DependencyFailed)));
//! // The breaker is open now: the next call gets the same data without asking.
//! assert_eq!(call_once(Class::Answer, now), (stale, Some(Reason::BreakerOpen)));
//! assert_eq!(gate.state(), State::Open);
//! assert!(gate.next_probe().is_some_and(|at| at > now));
//! # Ok(())
//! # }
//! ```
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
mod dependency;
mod ending;
mod hold;
mod ladder;
mod lane;
mod limit;
mod problem;
mod ramp;
mod reason;
mod rng;
mod snapshot;
mod steering;
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
pub use dependency::{Dependency, Exclusive, Pass, Refusal};
pub use ending::{Ending, Rung};
pub use hold::HoldMode;
pub use ladder::{Ladder, RungRule, Skips};
pub use lane::Lane;
pub use limit::LimitRules;
pub use problem::{Problem, Problems};
pub use ramp::{RampRules, Stage};
pub use reason::{Reason, Skipped};
pub use rng::Rng;
pub use snapshot::{Keep, replaces};
pub use steering::Steering;
pub use time::{Mono, Now, Wall};
