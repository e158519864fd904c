//! Decides the life of one attempt: from its admission to its one verdict, whatever happens in between.
//! It exists because futures are dropped, panic and run late: the permit lives with the work, and the verdict is
//! given exactly once, by hand or by dropping.
//! It refuses to blame the dependency for a caller who left.

use std::{fmt, mem, time::Duration};

use evenkeel_core::{Class, Gate, Generation, Limit, Mono, Now, Probe, Verdict};

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
        for bulkhead in self.0.bulkheads() {
            bulkhead.release();
        }
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

/// How an attempt passed the breaker.
#[derive(Debug)]
pub(crate) enum Pass {
    /// There is no breaker, or it has nothing to learn from this.
    Free,
    /// Closed; the result counts in this generation.
    Counted(Generation),
    /// As a probe, until it is settled.
    Probe(Option<Probe>),
}

/// One admitted attempt that has no verdict yet.
#[derive(Debug)]
pub(crate) struct Ticket<'a> {
    dependency: Lent<'a, Inner>,
    permit: Option<Permit<'a>>,
    pass: Pass,
    /// When it was admitted: what it produces was observed then.
    pub(crate) began: Now,
    /// When it ends.
    pub(crate) limit: Limit,
    settled: bool,
}

impl<'a> Ticket<'a> {
    pub(crate) fn new(permit: Permit<'a>, pass: Pass, began: Now) -> Self {
        let dependency = permit.0.again();
        let limit = dependency.own_limit(began.mono);
        Self {
            dependency,
            permit: Some(permit),
            pass,
            began,
            limit,
            settled: false,
        }
    }

    pub(crate) const fn is_probe(&self) -> bool {
        matches!(self.pass, Pass::Probe(_))
    }

    /// Hands out what the work gets: its view of the call, and the permit, which is the work's from now on.
    pub(crate) fn parts(&mut self) -> (Call<'a>, Option<Permit<'a>>) {
        let call = Call {
            dependency: self.dependency.again(),
            limit: self.limit,
            probe: self.is_probe(),
        };
        (call, self.permit.take())
    }

    /// Tells whether a success has to know the time: only a window and a probe do.
    pub(crate) fn wants_time(&self) -> bool {
        self.is_probe() || self.dependency.gate.as_ref().is_some_and(Gate::counts_by_time)
    }

    /// Gives the verdict. `blame` is false where a failure is not the dependency's doing.
    pub(crate) fn settle(mut self, class: Class, blame: bool, now: Mono) {
        self.conclude(class, blame, now);
    }

    fn conclude(&mut self, class: Class, blame: bool, now: Mono) {
        if mem::replace(&mut self.settled, true) {
            return;
        }
        self.dependency.attempted(class);
        let verdict = match self.dependency.contract.table().row(class).breaker {
            Verdict::Failure if !blame => Verdict::Neutral,
            verdict @ (Verdict::Failure | Verdict::Success | Verdict::Neutral) => verdict,
        };
        self.tell_breaker(verdict, now);
    }

    fn tell_breaker(&mut self, verdict: Verdict, now: Mono) {
        match (&mut self.pass, &self.dependency.gate) {
            (Pass::Counted(generation), Some(gate)) => match verdict {
                Verdict::Success => gate.succeeded(lane(), now, *generation),
                Verdict::Failure => {
                    if let Some(trip) = gate.failed(lane(), now, *generation) {
                        self.dependency
                            .recover(|gate, recovery| recovery.tripped(gate, trip, now));
                    }
                }
                Verdict::Neutral => {}
            },
            (Pass::Probe(probe), Some(_)) => {
                if let Some(probe) = probe.take() {
                    self.dependency
                        .recover(|gate, recovery| recovery.settle(gate, probe, verdict, now));
                }
            }
            (Pass::Free, _) | (_, None) => {}
        }
    }
}

impl Drop for Ticket<'_> {
    /// The attempt ended without a verdict: its caller left, or the wrapped code broke.
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        self.settled = true;
        let now = self.dependency.engine.now().mono;
        if std::thread::panicking() {
            self.dependency.attempted(Class::Fault);
            self.tell_breaker(Verdict::Failure, now);
        } else {
            self.dependency.attempted(Class::Cancelled);
            self.tell_breaker(Verdict::Neutral, now);
        }
    }
}
