//! Decides what the measuring tools of the gateway benchmark have in common: one
//! answer, one way to start, the origins with their faults, and the load that wrk has not.
//!
//! It exists so that every server in a comparison sends the same bytes. It refuses to
//! do anything a product would: no configuration, no logging, no protection.

pub mod answer;
pub mod congested;
pub mod control;
pub mod load;
pub mod origin;
pub mod request;
pub mod start;
