//! Decides how calls of a few dozen nanoseconds are measured so that two of them can be compared.
//! It exists because such figures move by a quarter from one second to the next: everything is measured in turn,
//! round by round, and only ratios from inside one round are believed.
//! It refuses to know what is measured; the subjects and the goals stand in `benches/library`.

mod allocations;
mod case;
mod comparison;
mod cpu;
mod options;
mod report;
mod rounds;

pub use case::{Case, Tasks, block_on};
pub use comparison::{Bound, Comparison, Measure, at_least, at_most, compare};
pub use options::{Options, USAGE};
pub use report::{json, table};
pub use rounds::{Figures, measure};
