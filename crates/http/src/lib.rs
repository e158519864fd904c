//! The HTTP rules of evenkeel as pure functions over the types of the `http` crate.

pub mod dates;
pub mod delays;
pub mod directives;
mod grammar;
pub mod status;
#[cfg(test)]
mod testing;
