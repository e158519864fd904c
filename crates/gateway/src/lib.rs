//! The evenkeel gateway: a reverse proxy that keeps answering, truthfully, while its dependencies fail.
//!
//! A contract file says what is promised on which route; each route is a guard of the `evenkeel` library, and
//! this package is what HTTP needs around it: connections, bodies, labels, metrics.
//!
//! | module | what |
//! |---|---|
//! | [`config`] | the contract file: every problem at once, with its line |
//! | [`proxy`] | from a request to its answer |
//! | [`admin`] | what operators see and steer |
//! | [`reload`] | from one contract to the next, without a restart |
//! | [`telemetry`] | series and log lines |
//! | [`alerts`] | rules of Prometheus made of a contract, and their tests |
//! | [`cli`] | the verbs of the `evenkeel` program |
//! | [`explain`] | what is in force on each route, and what an outage would leave |
//! | [`demo`] | what an outage looks like with and without a ladder |

pub mod admin;
pub mod alerts;
pub mod cli;
pub mod config;
pub mod demo;
pub mod explain;
mod gateway;
mod probe;
pub mod proxy;
pub mod reload;
pub mod steering;
pub mod telemetry;

pub use gateway::{Gateway, StartError, workers};
