//! Decides the life of one attempt: from its admission to its one verdict, whatever happens in between.
//! It exists because futures are dropped, panic and run late: the permit lives with the work, and the verdict is
//! given exactly once, by hand or by dropping.
//! It refuses to blame the dependency for a caller who left.

use std::{fmt, time::Duration};

use evenkeel_core::{Class, Limit, Mono, Now, Pass};

use crate::{counts::lane, dependency::Inner, lent::Lent};

/// The right to have one attempt in flight. Dropping it gives it back; keep it exactly as long as the work lasts.
pub struct Permit<'a>(Lent<'a, Inner>);

impl<'a> Permit<'a> {
    /// Takes over permits that were acquired.
    pub(crate) const fn new(dependency: Lent<'a, Inner>) -> Self {
        Self(dependency)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.seat.release();
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Permit").field(&self.0.name).finish()
    }
}

/// What an attempt may know about the call that it serves.
#[derive(Debug)]
pub struct Call<'a> {
    dependency: Lent<'a, Inner>,
    limit: Limit,
    probe: bool,
}

impl Call<'_> {
    /// Returns what remains for this attempt now; [`Duration::MAX`] where nothing limits it. Hand it on to
    /// whatever you call, so that nobody works longer than somebody waits.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        let now = || self.dependency.engine.now().mono;
        self.limit.at().map_or(Duration::MAX, |at| at.since(now()))
    }

    /// Tells whether this attempt is a probe of an open breaker.
    #[must_use]
    pub const fn is_probe(&self) -> bool {
        self.probe
    }
}

/// One admitted attempt that has no verdict yet.
#[derive(Debug)]
pub(crate) struct Ticket<'a> {
    dependency: Lent<'a, Inner>,
    permit: Option<Permit<'a>>,
    /// Taken when the verdict is given.
    pass: Option<Pass>,
    /// When it was admitted: what it produces was observed then.
    pub(crate) began: Now,
    /// When it ends.
    pub(crate) limit: Limit,
    /// Whether the work waits; see [`crate::parked`].
    pub(crate) parked: bool,
    started: bool,
}

impl<'a> Ticket<'a> {
    pub(crate) fn new(permit: Permit<'a>, pass: Pass, began: Now) -> Self {
        let dependency = permit.0.again();
        let limit = dependency.own_limit(began.mono);
        Self {
            dependency,
            permit: Some(permit),
            pass: Some(pass),
            began,
            limit,
            parked: false,
            started: false,
        }
    }

    pub(crate) fn is_probe(&self) -> bool {
        self.pass.as_ref().is_some_and(Pass::is_probe)
    }

    /// Starts the attempt and hands out what the work gets: its view of the call, and the permit, which is the work's from now on.
    pub(crate) fn start(&mut self) -> (Call<'a>, Option<Permit<'a>>) {
        self.started = true;
        let call = Call {
            dependency: self.dependency.again(),
            limit: self.limit,
            probe: self.is_probe(),
        };
        (call, self.permit.take())
    }

    /// Tells whether a success has to know the time: only a window and a probe do.
    pub(crate) fn wants_time(&self) -> bool {
        self.is_probe() || self.dependency.seat.counts_by_time()
    }

    /// Gives the verdict. `blame` is false where a failure is not the dependency's doing.
    pub(crate) fn settle(&mut self, class: Class, blame: bool, now: Mono) {
        if let Some(pass) = self.pass.take() {
            self.dependency.attempted(class);
            self.dependency
                .changed(self.dependency.seat.settle(pass, class, blame, lane(), now));
        }
    }
}

impl Drop for Ticket<'_> {
    /// The attempt ended without a verdict: it was never made, its caller left, or the wrapped code broke.
    fn drop(&mut self) {
        let Some(pass) = self.pass.take() else { return };
        let now = self.dependency.engine.now().mono;
        let transition = match (self.started, self.parked) {
            (true, false) => {
                self.dependency.attempted(Class::Fault);
                self.dependency.seat.broke(pass, lane(), now)
            }
            (true, true) => {
                self.dependency.attempted(Class::Cancelled);
                self.dependency
                    .seat
                    .settle(pass, Class::Cancelled, false, lane(), now)
            }
            // It was never made, so it is no attempt; only its place is given back.
            (false, _) => self
                .dependency
                .seat
                .settle(pass, Class::Cancelled, false, lane(), now),
        };
        self.dependency.changed(transition);
    }
}
