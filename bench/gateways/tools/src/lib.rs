//! Decides what the measuring tools of the gateway benchmark have in common: one
//! answer, one way to start, and the origin with its faults.
//!
//! It exists so that every server in a comparison sends the same bytes. It refuses to
//! do anything a product would: no configuration, no logging, no protection.

pub mod answer;
pub mod origin;
pub mod start;
