//! Keep answering truthfully while dependencies fail: guards around async calls, with last good data, defaults and
//! honest refusals.
//!
//! A guard wraps calls to something that can fail. Each call comes back as an [`Answer`], which says where its value
//! is from, how old it is and what kept it from being live, or as [`Unanswered`], which says why nothing could be
//! served. What may be served in place of a live answer is agreed beforehand, in the guard's contract; nothing else
//! ever is.
//!
//! # One guard
//!
//! ```
//! use evenkeel::{Class, Engine, Reason, Rung, default, stale};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # async fn ask(up: bool) -> Result<Vec<u32>, std::io::Error> {
//! #     if up { Ok(vec![7]) } else { Err(std::io::ErrorKind::ConnectionRefused.into()) }
//! # }
//! let engine = Engine::system();
//! let picks = engine
//!     .read::<Vec<u32>>("recommendations")
//!     .timeout(Duration::from_millis(250))
//!     .concurrency(64)
//!     .breaker(|b| b.consecutive(3))
//!     .classify(evenkeel::classify::io)
//!     .ladder([stale(Duration::from_secs(120)), default(Vec::new)])
//!     .build()?;
//!
//! let live = picks.call((), "home", |_| ask(true)).await?;
//! assert_eq!((live.rung, &*live), (Rung::Live, &vec![7]));
//! let old = picks.call((), "home", |_| ask(false)).await?;
//! assert_eq!((old.rung, old.reason), (Rung::Stale, Some(Reason::DependencyFailed)));
//! # Ok(()) }
//! ```
//!
//! `examples/guard.rs` is the same with a scope (whose data it is) and a client of its own.
//!
//! Guards run in any tokio runtime with its timer on. For what is on this page a program needs, beside `evenkeel`:
//!
//! ```toml
//! [dependencies]
//! tokio = { version = "1", features = ["macros", "rt", "time"] } # or "rt-multi-thread"
//! ```
//!
//! # The rungs
//!
//! | rung | what the value is | `age` | when |
//! |---|---|---|---|
//! | [`Rung::Live`] | asked for this call, or shared with one that was | zero | the dependency answered |
//! | [`Rung::Fresh`] | the snapshot, younger than [`fresh_for`](ReadBuilder::fresh_for) | known | before anybody is asked |
//! | [`Rung::Stale`] | the snapshot, at most as old as [`stale`] says | known | the ladder lists it, and live failed; or while it is [refreshed](ReadBuilder::stale_while_revalidate) |
//! | [`Rung::Alternate`] | asked of [another dependency](ReadBuilder::alternate) for this call | zero | the ladder lists it, and the first could not answer |
//! | [`Rung::Default`] | a declared constant or cheap local function | none | the ladder lists it, last |
//!
//! The snapshot is the last good answer for the same guard, scope and key. Its age counts from the *beginning* of
//! the attempt that produced it, in boot time, exactly: the limit itself is served, a nanosecond more is not, and
//! neither is an age that is unknown or lies in the future. Reading never makes it younger.
//!
//! # What failures lead to
//!
//! | what happened | breaker | the caller gets |
//! |---|---|---|
//! | slow: the [`timeout`](ReadBuilder::timeout) passed | failure | the ladder, [`Reason::TimedOut`] |
//! | slow: the call's [`deadline`](ReadBuilder::deadline) came first | not blamed | the ladder, [`Reason::TimedOut`] |
//! | failed: [`Class::Outage`] | failure | the ladder, [`Reason::DependencyFailed`] and its like |
//! | the breaker is open | - | the ladder, [`Reason::BreakerOpen`]; the dependency is not asked |
//! | saturated: no permit is free | - | the ladder, [`Reason::AtCapacity`]; the dependency is not asked |
//! | saturated: it waited in the [`queue`](ReadBuilder::queue), in vain | - | the ladder, [`Reason::QueueExpired`]; the dependency is not asked |
//! | saturated: the permits that are left are for calls of a higher [`Criticality`] | - | the ladder, [`Reason::Shed`]; the dependency is not asked |
//! | busy: [`Class::Busy`] | not blamed | the error, unless a [`row`](ReadBuilder::row) sends it down the ladder |
//! | gone: [`Class::Gone`] | not blamed | the error; the snapshot is retired |
//! | refusal: [`Class::Refusal`] | not blamed | the error: a real answer is never hidden by old data |
//! | bug: [`Class::Fault`] | not blamed | the error, [`Reason::Fault`]: a bug is never hidden |
//! | the work panics | failure | the panic; of a shared attempt [`Reason::Fault`], and one of those who joined it takes over, once |
//! | a person's [`Hold`] | - | what the hold leaves, [`Reason::Held`] |
//! | the caller leaves: the future is dropped | not blamed | nothing; counted as [`Ending::Abandoned`] |
//! | a streamed result breaks off: [`Permit::cut`] | failure | what had come; counted as [`Ending::Cut`] |
//!
//! When the ladder is empty or none of its rungs can answer, the call is refused, with the first cause: the
//! dependency's own error travels in [`Unanswered::cause`], and in [`Answer::cause`] when a lower rung answered.
//!
//! # What is off
//!
//! Everything, until it is declared: no timeout, no deadline, no limit of concurrency, no breaker, no fresh copies, no
//! ladder, no sharing of attempts. A guard with nothing but a classifier calls, counts and labels. A classifier has
//! no default: only you know which of your errors is an outage and which is a bug.
//!
//! Where a breaker is declared, it stays open for 0.5 s, doubling to 1 s, each ± 20 %, and lets one probe at a time
//! through; see [`BreakerBuilder`].
//!
//! # Four ways to call
//!
//! - [`Read::call`] borrows what it needs. It never joins another call, and is its own probe when one is due. What it
//!   borrows cannot go on without it, so a [`soft_timeout`](ReadBuilder::soft_timeout) does not end its wait.
//! - [`Read::call_owned`] owns what it needs, so that it can go on without its caller: due probes then run in the
//!   background while a rung answers, so do refreshes, and with [`coalesce`](ReadBuilder::coalesce) calls for one key share an attempt.
//! - [`Read::call_repeatable`] is the same for work that may be run again, as [`retry`](ReadBuilder::retry) says: `call` and
//!   `call_owned` run theirs once, whatever is declared.
//! - [`Read::call_work`] is `call_owned` for work that outlives its result, such as a streamed body; [`Read::call_alone`]
//!   too, for a result that is one caller's own.
//!
//! The first needs no runtime, unless a time limit is declared and the clock is the system's: then a call that has to
//! wait uses tokio's timer, and outside a runtime fails with [`Misuse::NoTimer`]. The others use the tokio runtime
//! they are called in. Dropping any of them, at any moment, leaves permits, counters and the breaker right.
//!
//! Traffic that nothing may stand in for, writes above all, goes through a [`Pass`]: the same permits, breaker and holds,
//! and no method that could answer it from anywhere else, or make it twice.
//!
//! Decisions that guard something, such as who may do what, go through a [`Protect`]: allow, deny or unavailable. Whatever
//! goes wrong is the third, and there is no method that could make it one of the others.
//!
//! # Time
//!
//! Time comes from the [`Clock`] that the [`Engine`] was made with. The system's clock is boot time: it counts
//! suspend and never steps, so a wall clock that is set changes no age. Nothing here reads another clock.
//!
//! A [`ManualClock`] stands still until it is moved, so that tests are exact and take no time:
//!
//! ```
//! use evenkeel::{Class, Engine, ManualClock, Rung, Skipped, stale};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = ManualClock::new();
//! let guard = Engine::new(clock.clone(), 7) // the seed draws the jitter
//!     .read::<u32>("stock")
//!     .classify(|_: &std::fmt::Error| Class::OUTAGE)
//!     .ladder([stale(Duration::from_secs(60))])
//!     .build()?;
//! guard.call((), "42", |_| async { Ok(3) }).await?;
//!
//! clock.advance(Duration::from_secs(60));
//! let old = guard.call((), "42", |_| async { Err(std::fmt::Error) }).await?;
//! assert_eq!((old.rung, old.age), (Rung::Stale, Some(Duration::from_secs(60))));
//!
//! clock.advance(Duration::from_nanos(1));
//! let refused = guard.call((), "42", |_| async { Err(std::fmt::Error) }).await.unwrap_err();
//! assert_eq!(refused.skipped.why(Rung::Stale), Some(Skipped::TooOld));
//! # Ok(()) }
//! ```
//!
//! # In other people's stacks
//!
//! Features add modules and functions and change nothing else; none is on by default, and no type of another library is in
//! a signature outside of them.
//!
//! | feature | adds | needs |
//! |---|---|---|
//! | `hyper` | `classify::hyper`, `classify::hyper_within` | hyper |
//! | `reqwest` | `classify::reqwest` | reqwest, without TLS of its own |
//! | `tonic` | `classify::tonic` | tonic, without its transport; [`classify::grpc()`] needs nothing |
//! | `tower` | `tower`: a layer that puts a guard around services | tower-service, tower-layer |
//! | `http` | `http`: a cache by RFC 9111; with `tower` also `tower::http`: a layer that labels responses | evenkeel-http, http, http-body |
//!
//! `examples/stacks` has a router of axum and clients of reqwest and tonic that run and end by themselves.
//!
//! # HTTP
//!
//! With the feature `http` the module `http` keeps answers by RFC 9111: several for one URI, validated, updated and
//! retired together. [`Read::call_held`] makes a call that brings its copy from there, or from any other store of its
//! caller's, so that breaker, permits, ladder and counters are the same as for every other call.
//!
//! # Seeing and steering
//!
//! [`Read::counts`] says what calls came to, by ending and reason: an answer made of old data is never counted as a
//! live one. [`Dependency::status`] shows breaker and permits, [`Engine::drain_events`] what has changed.
//! [`Read::hold`] and [`Dependency::hold`] force a mode, [`Read::probe`] asks now, [`Dependency::reset`] closes the breaker,
//! [`Read::seed`] and [`Read::forget`] put a snapshot in and take it out.

mod answer;
mod behind;
mod breaker;
pub mod classify;
mod clock;
mod counts;
mod dependency;
mod engine;
mod event;
mod flight;
mod hold;
#[cfg(feature = "http")]
pub mod http;
mod key;
mod lent;
mod line;
mod memory;
mod parked;
mod pass;
mod protect;
mod purge;
mod read;
mod retired;
mod synthetic;
mod tail;
mod ticket;
#[cfg(feature = "tower")]
pub mod tower;
mod until;

pub use answer::{Answer, Misuse, Unanswered};
pub use behind::{Before, Behind, Restored};
pub use breaker::BreakerBuilder;
pub use clock::{Clock, ManualClock};
pub use counts::{Counts, Exercised, NotKept, Refreshed, RetryCounts};
pub use dependency::{Dependency, DependencyBuilder, DependencyStatus};
pub use engine::{Engine, Resource};
pub use evenkeel_core::{
    Advice, BreakerRules, Carried, CarriedLoad, CarriedOpening, CarriedRamp, Cause, Class, Criticality,
    DependencyContract, Ending, Facts, HeldProtection, HoldMode, Keep, Ladder, LimitRules, Mono, Now,
    OpenFor, Outage, Over, Problem, Problems, Protection, QueueRules, RampEvent, RampRules, RampStep, Ratio,
    ReadContract, Reason, RetryRules, Row, Rung, RungRule, Skipped, Skips, SlowRatio, Stage, State, Table,
    Transition, TripRule, Verdict, Wall, WhenBusy,
};
pub use event::{Event, EventKind};
pub use hold::Hold;
pub use key::{EmptyScopePart, Scope};
pub use memory::{Copied, Entry, Memory};
pub use pass::{Pass, PassBuilder};
pub use protect::{Decided, Decision, Protect, ProtectBuilder, ProtectCounts, Unavailable};
pub use purge::{Concerns, KeyParts, Purge, Purged};
pub use read::{
    AlternateBuilder, Bring, Classified, Classifier, Held, LadderRung, Moment, Read, ReadBuilder, Seeded,
    Terms, Together, Unclassified, Usable, default, stale,
};
pub use ticket::{Call, Permit};
