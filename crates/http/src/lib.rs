//! The HTTP rules of evenkeel as pure functions over the types of the `http` crate.

pub mod age;
pub mod dates;
pub mod delays;
pub mod directives;
pub mod facts;
mod grammar;
pub mod hop;
pub mod invalidate;
pub mod reuse;
pub mod status;
pub mod store_rules;
#[cfg(test)]
mod testing;
pub mod vary;
