//! The evenkeel gateway.

pub mod config;
