//! Decides what a value may say about its own snapshot.
//! It exists because some data has a say in how it is kept, such as an HTTP response by its headers.
//! It refuses to widen what the contract permits.

use std::time::Duration;

use evenkeel_core::Keep;

/// What a value says about its own snapshot. See [`ReadBuilder::terms`](crate::ReadBuilder::terms).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Terms {
    /// Whether it may be kept.
    pub keep: Keep,
    /// A limit on its total age that came with it; the lower of this and the contract's holds.
    pub own_limit: Option<Duration>,
    /// It forbids being served stale. While it is fresh it may be served.
    pub stale_forbidden: bool,
    /// How old it was already when the attempt began, such as an `Age` header.
    pub already: Duration,
    /// How long it counts as fresh, in place of the guard's [`fresh_for`](crate::ReadBuilder::fresh_for). It has an effect
    /// where that is declared, or [`own_lifetimes`](crate::ReadBuilder::own_lifetimes).
    pub lifetime: Option<Duration>,
    /// How long beyond its lifetime it permits being served while a refresh runs, also without a stale rung; the lower
    /// of this and [`stale_while_revalidate`](crate::ReadBuilder::stale_while_revalidate) holds. `None` leaves it to that.
    pub revalidate: Option<Duration>,
}
