//! Decides how HTTP answers are kept and reused: the steps of one exchange with a cache, by the rules of RFC 9111.
//! It exists so that a program and the gateway store, validate, update and retire by the same code; the rules
//! themselves are the pure functions of `evenkeel-http`, which this turns into actions on a [`Shelf`].
//! It refuses to send anything, and to read a clock: requests go out by other hands, and times come in.

mod budget;
mod cache;
mod head;
mod key;
mod place;
mod refused;
mod rules;
mod shelf;
mod shelved;

pub use cache::{Head, HttpCache, Looked, NotShelved, Settled};
pub use key::UriKey;
pub use place::COPIES_MAX;
pub use refused::problem_kind;
pub use rules::{CacheRules, IgnoredCookies};
pub use shelf::{Retire, Shelf};
pub use shelved::{Arrived, Shelved};
