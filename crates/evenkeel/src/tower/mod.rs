//! Decides how a guard stands around a tower service, so that it fits into stacks that others have built.
//! It exists because clients and routers in Rust are services, and a stack is where their failures are met.
//! It refuses to hold state of its own: breaker, permits, snapshots and counters are the guard's, and a layer that is
//! applied once for each request, as some routers do, shares them all the same.
//!
//! [`ReadLayer`] is for services of any kind: it says by functions of yours what is asked for and whose it is, and
//! returns an [`Answer`](crate::Answer). With the feature `http`, [`HttpReadLayer`](http::HttpReadLayer) is for services
//! of HTTP: it returns responses, labelled, and refuses by problem details.
//!
//! ```
//! use evenkeel::{Engine, Rung, classify, stale, tower::ReadLayer};
//! use std::{convert::Infallible, io, task::{Context, Poll}, time::Duration};
//! use tower_layer::Layer as _;
//! use tower_service::Service;
//!
//! /// Stands for a client of yours.
//! #[derive(Clone)]
//! struct Stock { up: bool }
//!
//! impl Service<String> for Stock {
//!     type Response = u32;
//!     type Error = io::Error;
//!     type Future = std::future::Ready<io::Result<u32>>;
//!     fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
//!         Poll::Ready(Ok(()))
//!     }
//!     fn call(&mut self, item: String) -> Self::Future {
//!         std::future::ready(if self.up { Ok(3) } else { Err(io::ErrorKind::ConnectionRefused.into()) })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let guard = Engine::system()
//!     .read::<u32>("stock")
//!     .timeout(Duration::from_millis(250))
//!     .classify(classify::io)
//!     .ladder([stale(Duration::from_secs(60))])
//!     .build()?;
//! let layer = ReadLayer::new(&guard, |_: &String| (), String::clone); // whose, and what
//!
//! assert_eq!(layer.layer(Stock { up: true }).call("42".into()).await?.rung, Rung::Live);
//! let old = layer.layer(Stock { up: false }).call("42".into()).await?;
//! assert_eq!((old.rung, *old), (Rung::Stale, 3));
//! # Ok(()) }
//! ```
//!
//! # Readiness
//!
//! A service that is polled until it is ready may reserve something for the call that follows: a permit, a place in a
//! buffer. The service that was polled is therefore the one that is called, and a clone of it stays behind; a call that
//! the guard answers without asking drops it, and with it what was reserved.
//!
//! - While the inner service is not ready, this one is not either: back-pressure goes on to whoever calls. No limit of
//!   the guard runs meanwhile, because no call has begun.
//! - An inner service that fails to become ready has failed the call that follows: the error is classified like any
//!   other, the breaker hears of it, and the ladder answers.
//! - [`ReadLayer::ready_in_call`] moves the wait into the call: timeout and deadline hold for it, so that a service that
//!   never gets ready leads to the ladder, and a guard that need not ask does not touch it. Take it where nobody uses
//!   the back-pressure, as behind servers that call once ready, however long that takes.
//!
//! # What a call costs
//!
//! One allocation beside the guard's own: the future of a call has no name that a service could state as its type.

#[cfg(feature = "http")]
pub mod http;
mod layer;
mod service;

pub use layer::ReadLayer;
pub use service::{Calling, ReadService};
