//! Decides what of evenkeel is measured.
//! It exists to keep our subjects beside each other, each in the words of its contract.
//! It refuses special treatment: all is public API, used as a user would.

pub(crate) mod gate;
pub(crate) mod hits;
pub(crate) mod stack;

use std::error::Error;

use evenkeel_bench_library::{Case, Tasks};

pub(crate) fn cases(tasks: &Tasks) -> Result<Vec<Case>, Box<dyn Error>> {
    let mut cases = gate::cases();
    cases.extend(stack::cases(tasks)?);
    cases.extend(hits::cases()?);
    Ok(cases)
}
