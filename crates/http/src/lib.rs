//! HTTP rules as pure functions.
