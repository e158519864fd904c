//! Decides how services of HTTP stand behind a guard: what is kept of their answers, and how each answer is labelled.
//! It exists so that a router or a client gets stale answers and honest refusals by one line in its stack.
//! It refuses to touch what is not a plain GET: writes, upgrades and everything else go through as they are.
//!
//! ```
//! use evenkeel::{Engine, stale, tower::http::{HttpReadLayer, Whole, guard}};
//! use http::Request;
//! use std::{convert::Infallible, time::Duration};
//!
//! # fn main() -> Result<(), evenkeel::Problems> {
//! let engine = Engine::system();
//! let products = engine
//!     .read::<Whole>("products")
//!     .timeout(Duration::from_millis(250))
//!     .breaker(|b| b.consecutive(5))
//!     .ladder([stale(Duration::from_secs(60))]);
//! let products = guard(products, |error: &Infallible| match *error {})?;
//! let layer = HttpReadLayer::new(&products, |_: &http::request::Parts| ());
//! // axum: Router::new().route(..).layer(layer)
//! # let _layer = layer; Ok(()) }
//! ```
//!
//! # What is guarded
//!
//! GET without `Upgrade`. The key is authority, path and query, exactly as they came; who an answer is for is the
//! scope's to say. Conditions and ranges are taken off the request, so that a whole answer comes that can be kept, and
//! conditions are evaluated on what is given. Everything else goes to the inner service at once and is not labelled.
//!
//! # What a response means
//!
//! Its status is classified by [`Class::of_status`](crate::Class::of_status). An outage (500, 502, 503, 504) and busy
//! (429) lead to the ladder as the dependency's table says; if that has no answer, the response is given as it came.
//! Other refusals are answers, given as they came; 404 and 410 also retire the snapshot. Bodies are read to their end,
//! up to [`BODY_MAX`] or what [`HttpReadLayer::body_max`] says: one that breaks off is a cut, one that is larger is a
//! fault, because its beginning is gone when that is found out. Put the layer around routes whose answers fit.
//!
//! # What is kept
//!
//! What HTTP lets a shared store keep for a failure: not `no-store`, not `private`, not what sets a cookie, not answers
//! to `Authorization` unless they are public, not answers to cookies, not what is itself degraded. A copy is given
//! where its `Vary` fits. Its own `stale-if-error`, `must-revalidate` and the like narrow the contract.
//!
//! # Labels
//!
//! | answer | `X-Data-Freshness` | `Age` | `Degraded` |
//! |---|---|---|---|
//! | live | `fresh`, unless it says itself that it is degraded, or is an error | as it came | as it came |
//! | fresh | `fresh` | of the data | - |
//! | stale | `stale` | of the data | name of the guard, rung, age, time, reason |
//! | alternate | `alternate` | as it came | the same, without age |
//! | default | `default`; `Cache-Control: no-store` where it has none | - | the same, without age |
//! | refused | - | - | problem details (RFC 9457), and `Retry-After` |

mod label;
mod layer;
mod service;
mod trouble;
mod whole;

pub use layer::{BODY_MAX, HttpReadLayer, guard};
pub use service::{Given, HttpReadService};
pub use trouble::Trouble;
pub use whole::Whole;
