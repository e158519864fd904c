//! The HTTP rules of evenkeel as pure functions over the types of the `http` crate.

pub mod age;
pub mod cache_status;
pub mod dates;
pub mod degraded;
pub mod delays;
pub mod directives;
pub mod facts;
pub mod freshness;
mod grammar;
pub mod hop;
pub mod invalidate;
pub mod proxy_status;
pub mod reuse;
mod sf;
pub mod status;
pub mod store_rules;
#[cfg(test)]
mod testing;
pub mod vary;
