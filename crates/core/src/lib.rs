#![no_std]
//! Decides what becomes of a call when a dependency is slow, broken, saturated or gone.
//! It exists as pure state machines, so that production and virtual time run the same rules, and a failing case
//! can be replayed from its inputs.
//! It refuses to act: no clock, no lock, no thread, no I/O, no randomness but a seed. Inputs and `now` go in,
//! steps and changes of state come out.
//!
//! # The driver loop
//!
//! A driver owns the clock, the store, and a way to exclusive access ([`Exclusive`]: a lock in real time, a cell in
//! virtual time). For one Read call it:
//!
//! 1. begins with [`ReadCall::begin`] and performs the [`Step`] it is given, until a step ends the call;
//! 2. on [`Step::Look`] looks the snapshot up and reports its [`Facts`] to [`ReadCall::found`];
//! 3. on [`Step::Admit`] asks [`Dependency::admit`]: breaker, bulkhead and resources, all or nothing. It reports the
//!    [`Refusal`] to [`ReadCall::refused`], or keeps the [`Pass`] and goes on with [`ReadCall::admitted`];
//!    Where the contract has a [`Queue`], a call that finds no permit waits there before it is told of a refusal;
//! 4. on [`Step::Attempt`] asks the dependency, up to the [`Limit`], and maps what came to a [`Class`];
//! 5. hands the pass to [`Dependency::settle`] with that class, or to [`Dependency::broke`] if the code broke, once.
//!    Running into [`Limit::Deadline`] blames nobody. It calls [`Dependency::release`] when the work has ended,
//!    which may be later than its answer;
//!    After an outage it may ask [`Dependency::retry`] for one more attempt of work that is repeatable, and goes on
//!    with [`Dependency::admit_again`] when its moment has come;
//! 6. keeps the answer if [`Keep`] and [`replaces`] say so, dated with the *start* of the attempt, and reports
//!    the class to [`ReadCall::attempted`];
//! 7. on [`Step::Refresh`] starts such an attempt on its own, unless one is under way for the key, and reports to
//!    [`ReadCall::refreshed`] what came of it;
//! 8. on [`Step::Serve`], [`Step::Refuse`] or [`Step::Fail`] ends the call, with [`ReadCall::reason`] and
//!    [`ReadCall::skips`] as its label, and counts exactly one [`Ending`].
//!
//! # Map
//!
//! | to know | read |
//! |---|---|
//! | what a contract may say | [`ReadDraft`], [`RefreshRules`], [`DependencyDraft`], [`BreakerRules`], [`Ladder`], [`Problems`] |
//! | the life of a call | [`ReadCall`], [`Step`], [`Deadline`], [`HoldMode`] |
//! | what a result means | [`Class`], [`Table`], [`Verdict`] |
//! | whether the dependency is asked | [`Dependency`], [`Pass`], [`Refusal`], [`Lane`]; of its parts [`Gate`], [`Recovery`], [`Bulkhead`] |
//! | which of its addresses is asked | [`Balance`], [`Spread`], [`EjectRules`] |
//! | whether it is asked again | [`RetryRules`], [`Failed`], [`Retry`], [`NoRetry`] |
//! | who waits, and who goes without | [`Criticality`], [`QueueRules`], [`Queue`], [`Waiting`] |
//! | how traffic comes back, and how much is borne | [`RampRules`], [`Stage`], [`LimitRules`], [`Steering`] |
//! | what a protect step came to | [`Protection`], [`HeldProtection`] |
//! | how old data may be | [`Age`], [`Facts`], [`replaces`] |
//! | the public words | [`Ending`], [`Rung`], [`Reason`], [`Skipped`] |
//! | time and chance | [`Mono`], [`Wall`], [`Now`], [`Rng`] |
//!
//! # One call by hand
//!
//! The dependency fails for the first time, one failure trips, and the snapshot of 20 s ago is served:
//!
//! ```
//! use core::{cell::RefCell, time::Duration};
//! use evenkeel_core::*;
//!
//! // One thread, so exclusive access takes no lock.
//! struct Alone<T>(RefCell<T>);
//!
//! impl<T> Exclusive<T> for Alone<T> {
//!     fn guard(value: T) -> Self {
//!         Self(RefCell::new(value))
//!     }
//!     fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
//!         change(&mut self.0.borrow_mut())
//!     }
//! }
//!
//! # fn main() -> Result<(), Problems> {
//! let contract = DependencyDraft {
//!     name: "stock-db".into(),
//!     timeout: Some(Duration::from_secs(1)),
//!     breaker: Some(BreakerRules { consecutive: Some(1), ..BreakerRules::NONE }),
//!     ..DependencyDraft::default()
//! }
//! .check()?;
//! let stock = ReadDraft {
//!     name: "stock".into(),
//!     ladder: vec![RungRule::Stale { max_age: Duration::from_secs(60) }],
//!     ..ReadDraft::default()
//! }
//! .check()?;
//! let dependency = Dependency::<Alone<_>>::new(contract, Vec::new(), 42);
//! let now = Mono::from_nanos(100_000_000_000);
//! let snapshot = Facts { observed: Some(now.before(Duration::from_secs(20))), ..Facts::default() };
//!
//! let call_once = |class: Class| {
//!     let terms = dependency.contract();
//!     let (mut call, mut step) = ReadCall::begin(&stock, terms.table(), terms.timeout(), None, now);
//!     let mut pass = None;
//!     loop {
//!         step = match step {
//!             Step::Look => call.found(Some(snapshot), now),
//!             Step::Admit => match dependency.admit(now, Asker::Traffic, false).0 {
//!                 Ok(admitted) => {
//!                     pass = Some(admitted);
//!                     call.admitted(now)
//!                 }
//!                 Err(refusal) => call.refused(refusal.reason),
//!             },
//!             Step::Attempt(_limit) => {
//!                 // Here a driver asks. This one is told what came.
//!                 let probe = pass.as_ref().is_some_and(Pass::is_probe);
//!                 if let Some(pass) = pass.take() {
//!                     dependency.settle(pass, class, true, Lane::new(0), now);
//!                     dependency.release();
//!                 }
//!                 call.attempted(class, probe)
//!             }
//!             Step::Refresh => call.refreshed(Refresh::Impossible),
//!             Step::Alternate => call.alternate_skipped(Skipped::Failed),
//!             Step::Serve(..) | Step::Refuse | Step::Fail => return (step, call.reason()),
//!         };
//!     }
//! };
//!
//! let stale = Step::Serve(Rung::Stale, Some(Duration::from_secs(20)));
//! assert_eq!(call_once(Class::OUTAGE), (stale, Some(Reason::DependencyFailed)));
//! // The breaker is open now: the next call gets the same data without asking.
//! assert_eq!(call_once(Class::Answer), (stale, Some(Reason::BreakerOpen)));
//! assert_eq!(dependency.state(), Some(State::Open));
//! assert!(dependency.next_probe().is_some_and(|at| at > now));
//! # Ok(())
//! # }
//! ```
extern crate alloc;
#[cfg(any(test, loom))]
extern crate std;

mod abandoned;
mod age;
mod ahead;
mod balance;
mod breaker;
mod bulkhead;
mod call;
mod class;
pub mod codes;
mod contract;
mod criticality;
mod deadline;
mod dependency;
mod ending;
mod hold;
mod ladder;
mod lane;
mod limit;
mod pass;
mod problem;
mod protect;
mod queue;
mod ramp;
mod reason;
mod refresh;
mod retry;
mod rng;
mod snapshot;
mod steering;
pub mod store;
mod sync;
mod time;

pub use age::{Age, Facts};
pub use balance::{
    AddressStatus, Balance, BalanceEvent, BalanceStatus, Chosen, EjectRules, Ejections, Spread,
};
pub use breaker::{
    Admission, Asker, BreakerRules, Cause, Changes, Gate, Generation, OpenFor, Over, Probe, Ratio, Recovery,
    SlowRatio, State, Transition, Trip, TripRule,
};
pub use bulkhead::{Bulkhead, acquire_all};
pub use call::{ReadCall, Step};
pub use class::{Class, Outage, Row, Table, Verdict};
pub use contract::{DependencyContract, DependencyDraft, ReadContract, ReadDraft, WhenBusy, check_name};
pub use criticality::Criticality;
pub use deadline::{Deadline, Limit};
pub use dependency::{Carried, CarriedLoad, CarriedOpening, CarriedRamp, Dependency, Exclusive};
pub use ending::{Ending, Rung};
pub use hold::HoldMode;
pub use ladder::{Ladder, RungRule, Skips};
pub use lane::Lane;
pub use limit::LimitRules;
pub use pass::{Pass, Refusal};
pub use problem::{Problem, Problems};
pub use protect::{HeldProtection, Protection};
pub use queue::{Joined, Place, Queue, QueueRules, Waiting};
pub use ramp::{RampEvent, RampRules, RampStep, Stage};
pub use reason::{Reason, Skipped};
pub use refresh::{Refresh, RefreshRules};
pub use retry::{Advice, Failed, NoRetry, Retry, RetryRules};
pub use rng::Rng;
pub use snapshot::{Keep, replaces};
pub use steering::Steering;
pub use time::{Mono, Now, Wall};
