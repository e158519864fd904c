//! Decides the two ways in which an admission can come out: a pass to be reported under, or a refusal.
//! It exists apart from the admission so that a driver can hold either without knowing how it was decided.
//! It refuses to be forged: only an admission makes a pass, and reporting its result spends it.

use crate::{
    breaker::{Generation, Probe},
    limit::meter::Entry,
    reason::Reason,
    time::Mono,
};

/// A refusal by evenkeel itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// When asking again may help, where that is known.
    pub retry_at: Option<Mono>,
}

/// How an attempt passed. Report its result with [`Dependency::settle`](crate::Dependency::settle).
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Pass {
    pub(crate) through: Through,
    pub(crate) began: Mono,
    /// How it came in, where load is metered.
    pub(crate) entry: Option<Entry>,
    /// Whether its answer has begun, which is when load and slowness are measured.
    pub(crate) answered: bool,
    /// Whether it was counted as slow.
    pub(crate) slow: bool,
    /// Whether somebody else's time is in its time.
    pub(crate) untimed: bool,
    /// Whether the dependency has nothing to work on.
    pub(crate) unsent: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Through {
    /// There is no breaker, or it has nothing to learn from this.
    Free,
    /// Closed; the result counts in this generation.
    Counted(Generation),
    /// As a probe.
    Probe(Probe),
}

impl Pass {
    pub(crate) const fn new(through: Through, entry: Option<Entry>, began: Mono) -> Self {
        Self {
            through,
            began,
            entry,
            answered: false,
            slow: false,
            untimed: false,
            unsent: false,
        }
    }

    /// Tells whether the breaker learns something from the result.
    pub(crate) const fn is_judged(&self) -> bool {
        !matches!(self.through, Through::Free)
    }

    /// Tells whether the attempt is a probe.
    #[must_use]
    pub const fn is_probe(&self) -> bool {
        matches!(self.through, Through::Probe(_))
    }

    /// Says that its request had not been sent when its time was up: nobody works on it, so it does not linger.
    pub const fn was_not_sent(&mut self) {
        self.unsent = true;
    }

    /// Says that the time of this attempt tells nothing about the dependency, because its caller takes part of it, as
    /// with an upload: it is no latency, and leaving late is no sign of a wait in vain.
    pub const fn disregard_time(&mut self) {
        self.untimed = true;
    }
}
