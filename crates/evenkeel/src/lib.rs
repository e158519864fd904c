//! Keep answering truthfully while dependencies fail.
mod answer;
pub mod classify;
mod clock;
mod counts;
mod dependency;
mod engine;
mod event;
mod flight;
mod hold;
mod key;
mod lent;
mod memory;
mod read;
mod retired;
mod ticket;
mod until;

pub use answer::{Answer, Unanswered};
pub use clock::{Clock, ManualClock};
pub use counts::{Counts, NotKept};
pub use dependency::{BreakerBuilder, Dependency, DependencyBuilder, DependencyStatus};
pub use engine::{Engine, Resource};
pub use evenkeel_core::{
    Cause, Class, Ending, HoldMode, Keep, LimitRules, Mono, Now, Outage, Problem, Problems, RampRules,
    Reason, Row, Rung, Skipped, Skips, Stage, State, Transition, Verdict, Wall, WhenBusy,
};
pub use event::{Event, EventKind};
pub use hold::Hold;
pub use key::{EmptyScopePart, Scope};
pub use memory::Memory;
pub use read::{
    Classifier, LadderRung, Read, ReadBuilder, Seeded, Terms, Unclassified, Usable, default, stale,
};
pub use ticket::{Call, Permit};
