//! Decides which other libraries are measured, and that each is set up as its users would.
//! It exists so that the next version of a peer is one line in `Cargo.toml` and one name here.
//! It refuses settings that nobody would run with.

pub(crate) mod amalgam_cache;
pub(crate) mod breakers;
pub(crate) mod caches;
pub(crate) mod tower_resilience;

use std::error::Error;

use evenkeel_bench_library::{Case, Tasks};

pub(crate) fn cases(tasks: &Tasks) -> Result<Vec<Case>, Box<dyn Error>> {
    let mut cases = breakers::cases();
    cases.extend(tower_resilience::cases(tasks)?);
    cases.extend(caches::cases());
    cases.extend(amalgam_cache::cases()?);
    Ok(cases)
}
