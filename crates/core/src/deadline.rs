//! Decides how long an attempt may take: the one absolute deadline of the call, and the timeout of the attempt.
//! It exists so that every wait spends from the same deadline and nobody counts it twice.
//! It refuses to extend a deadline once it is fixed.

use core::time::Duration;

use crate::time::Mono;

/// The absolute end of a whole call, fixed when it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline(Option<Mono>);

impl Deadline {
    /// No end. The call then ends when its attempt does.
    pub const NONE: Self = Self(None);

    /// Fixes the end of a call that arrived at `arrived` and may take `span`; `None` means no end.
    #[must_use]
    pub fn fix(arrived: Mono, span: Option<Duration>) -> Self {
        Self(span.map(|span| arrived.after(span)))
    }

    /// The end of a call that is known already.
    pub(crate) const fn ending(at: Mono) -> Self {
        Self(Some(at))
    }

    /// Returns the instant at which the call ends, if it has an end.
    #[must_use]
    pub const fn at(self) -> Option<Mono> {
        self.0
    }

    /// Returns what remains at `now`: zero at and after the end, `None` without an end.
    #[must_use]
    pub fn remaining(self, now: Mono) -> Option<Duration> {
        self.0.map(|at| at.since(now))
    }

    /// Returns this deadline less a span that is kept free at its end.
    #[must_use]
    pub(crate) fn less(self, reserve: Duration) -> Self {
        Self(self.0.map(|at| at.before(reserve)))
    }

    /// Returns the end of an attempt that starts at `now` and may take `timeout`.
    #[must_use]
    pub fn attempt(self, now: Mono, timeout: Option<Duration>) -> Limit {
        match (timeout.map(|timeout| now.after(timeout)), self.0) {
            (None, None) => Limit::None,
            (Some(timeout), None) => Limit::Timeout(timeout),
            (None, Some(deadline)) => Limit::Deadline(deadline),
            (Some(timeout), Some(deadline)) if timeout <= deadline => Limit::Timeout(timeout),
            (Some(_), Some(deadline)) => Limit::Deadline(deadline),
        }
    }
}

/// When an attempt ends, and which of the two limits ends it.
///
/// The difference matters for blame: running into its own timeout is the dependency's failure, a caller
/// whose deadline is shorter is not (it counts as neutral).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Nothing ends it.
    None,
    /// The dependency's own timeout.
    Timeout(Mono),
    /// The call's deadline, earlier than the timeout.
    Deadline(Mono),
}

impl Limit {
    /// Returns the instant, if there is one.
    #[must_use]
    pub const fn at(self) -> Option<Mono> {
        match self {
            Self::None => None,
            Self::Timeout(at) | Self::Deadline(at) => Some(at),
        }
    }

    /// Tells whether running into this limit is to be blamed on the dependency.
    #[must_use]
    pub const fn blames_the_dependency(self) -> bool {
        match self {
            Self::Timeout(_) => true,
            Self::None | Self::Deadline(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);
    const NS: Duration = Duration::from_nanos(1);

    #[test]
    fn the_earlier_of_timeout_and_deadline_ends_an_attempt() {
        let start = Mono::ORIGIN;
        let deadline = Deadline::fix(start, Some(S));
        assert_eq!(
            deadline.attempt(start, Some(S - NS)),
            Limit::Timeout(start.after(S - NS))
        );
        assert_eq!(deadline.attempt(start, Some(S)), Limit::Timeout(start.after(S)));
        assert_eq!(
            deadline.attempt(start, Some(S + NS)),
            Limit::Deadline(start.after(S))
        );
        assert_eq!(deadline.attempt(start, None), Limit::Deadline(start.after(S)));
        assert_eq!(Deadline::NONE.attempt(start, None), Limit::None);
        assert_eq!(
            Deadline::NONE.attempt(start, Some(S)),
            Limit::Timeout(start.after(S))
        );
    }

    #[test]
    fn e21_only_its_own_timeout_blames_the_dependency() {
        assert!(Limit::Timeout(Mono::ORIGIN).blames_the_dependency());
        assert!(!Limit::Deadline(Mono::ORIGIN).blames_the_dependency());
    }

    #[test]
    fn nothing_remains_at_the_deadline_and_after() {
        let deadline = Deadline::fix(Mono::ORIGIN, Some(S));
        assert_eq!(deadline.remaining(Mono::ORIGIN.after(S - NS)), Some(NS));
        assert_eq!(deadline.remaining(Mono::ORIGIN.after(S)), Some(Duration::ZERO));
        assert_eq!(
            deadline.remaining(Mono::ORIGIN.after(S + NS)),
            Some(Duration::ZERO)
        );
        assert_eq!(Deadline::NONE.remaining(Mono::END), None);
    }
}
