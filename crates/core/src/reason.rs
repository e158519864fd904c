//! Decides every word for *why*: why a call was not live, and why a rung was not used.
//! It exists so that a reason is one enum with one stable word, the same in values, headers, metrics and logs.
//! It refuses free text and names of dependencies, because reason words are public.

use core::fmt;

/// The trigger that kept a call from being live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Refused, reset, name not found, TLS, unusable answer.
    DependencyFailed,
    /// The attempt or the deadline ended while the dependency was being asked.
    TimedOut,
    /// The body ended early, before the first byte went out.
    Cut,
    /// The dependency answered with an error that counts as an outage (500, 502, 503, 504).
    ErrorAnswer,
    /// The dependency said that it is busy (429), and the contract lets that use the ladder.
    Busy,
    /// A declared schema was violated, the wrapped code broke, or no classifier knew the error.
    Fault,
    /// The circuit breaker refused; the dependency was not asked.
    BreakerOpen,
    /// The dependency was asked once, as a probe, and the probe failed.
    ProbeFailed,
    /// The recovery ramp admits only a share so soon after an outage; the dependency was not asked.
    Ramping,
    /// A shared attempt for the same key has failed just now, or the dependency asked to be left alone; it was not asked.
    CoolDown,
    /// No permit was free.
    AtCapacity,
    /// It waited for a permit, and none came in time.
    QueueExpired,
    /// The permits that were left are kept for calls that matter more, or one of those took its place in the queue.
    Shed,
    /// An operator's hold.
    Held,
    /// The attempt had not ended by the soft timeout; it goes on.
    Slow,
    /// The copy is past its lifetime and inside its window: it is served at once, while a refresh runs. Nothing failed.
    Revalidating,
    /// Its protect step could not be decided: the authority did not answer, or was not asked. The call was not begun.
    ProtectionUnavailable,
}

impl Reason {
    /// Every reason, in the order of the design.
    pub const ALL: [Self; 17] = [
        Self::DependencyFailed,
        Self::TimedOut,
        Self::Cut,
        Self::ErrorAnswer,
        Self::Busy,
        Self::Fault,
        Self::BreakerOpen,
        Self::ProbeFailed,
        Self::Ramping,
        Self::CoolDown,
        Self::AtCapacity,
        Self::QueueExpired,
        Self::Shed,
        Self::Held,
        Self::Slow,
        Self::Revalidating,
        Self::ProtectionUnavailable,
    ];

    /// Returns the stable public word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DependencyFailed => "dependency-failed",
            Self::TimedOut => "timed-out",
            Self::Cut => "cut",
            Self::ErrorAnswer => "error-answer",
            Self::Busy => "busy",
            Self::Fault => "fault",
            Self::BreakerOpen => "breaker-open",
            Self::ProbeFailed => "probe-failed",
            Self::Ramping => "ramping",
            Self::CoolDown => "cool-down",
            Self::AtCapacity => "at-capacity",
            Self::QueueExpired => "queue-expired",
            Self::Shed => "shed",
            Self::Held => "held",
            Self::Slow => "slow",
            Self::Revalidating => "revalidating",
            Self::ProtectionUnavailable => "protection-unavailable",
        }
    }

    /// Returns this reason's place in [`Reason::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::DependencyFailed => 0,
            Self::TimedOut => 1,
            Self::Cut => 2,
            Self::ErrorAnswer => 3,
            Self::Busy => 4,
            Self::Fault => 5,
            Self::BreakerOpen => 6,
            Self::ProbeFailed => 7,
            Self::Ramping => 8,
            Self::CoolDown => 9,
            Self::AtCapacity => 10,
            Self::QueueExpired => 11,
            Self::Shed => 12,
            Self::Held => 13,
            Self::Slow => 14,
            Self::Revalidating => 15,
            Self::ProtectionUnavailable => 16,
        }
    }

    /// Tells whether the dependency was asked at all for this call.
    #[must_use]
    pub const fn was_attempted(self) -> bool {
        match self {
            Self::DependencyFailed
            | Self::TimedOut
            | Self::Cut
            | Self::ErrorAnswer
            | Self::Busy
            | Self::Fault
            | Self::ProbeFailed
            | Self::Slow => true,
            Self::BreakerOpen
            | Self::Ramping
            | Self::CoolDown
            | Self::AtCapacity
            | Self::QueueExpired
            | Self::Shed
            | Self::Held
            | Self::Revalidating
            | Self::ProtectionUnavailable => false,
        }
    }

    /// Tells whether an answer that carries this reason is less than was promised. One that is served while it is
    /// revalidated is just what the contract or the data permits, so it is counted apart.
    #[must_use]
    pub const fn is_degradation(self) -> bool {
        match self {
            Self::DependencyFailed
            | Self::TimedOut
            | Self::Cut
            | Self::ErrorAnswer
            | Self::Busy
            | Self::Fault
            | Self::BreakerOpen
            | Self::ProbeFailed
            | Self::Ramping
            | Self::CoolDown
            | Self::AtCapacity
            | Self::QueueExpired
            | Self::Shed
            | Self::Held
            | Self::Slow
            | Self::ProtectionUnavailable => true,
            Self::Revalidating => false,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a rung of the ladder was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Skipped {
    /// Nothing is kept under this key.
    NoSnapshot,
    /// Its age is past the limit, or no limit permits any age.
    TooOld,
    /// Its time lies ahead of the clock.
    FutureDated,
    /// It came with no time.
    UnknownAge,
    /// A prohibition: the data says that it may not be used this way, or not for this caller.
    Forbidden,
    /// An operator's hold leaves this rung out, or keeps calls from the alternate.
    Held,
    /// The alternate had no permit free.
    AtCapacity,
    /// The alternate's own breaker, or the ramp after it, kept this call away.
    BreakerOpen,
    /// Nothing was left of the deadline for the alternate.
    NoTime,
    /// The alternate was asked and did not answer.
    Failed,
}

impl Skipped {
    /// Every word, in the order of the design.
    pub const ALL: [Self; 10] = [
        Self::NoSnapshot,
        Self::TooOld,
        Self::FutureDated,
        Self::UnknownAge,
        Self::Forbidden,
        Self::Held,
        Self::AtCapacity,
        Self::BreakerOpen,
        Self::NoTime,
        Self::Failed,
    ];

    /// Returns the stable public word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSnapshot => "no-snapshot",
            Self::TooOld => "too-old",
            Self::FutureDated => "future-dated",
            Self::UnknownAge => "unknown-age",
            Self::Forbidden => "forbidden",
            Self::Held => "held",
            Self::AtCapacity => "at-capacity",
            Self::BreakerOpen => "breaker-open",
            Self::NoTime => "no-time",
            Self::Failed => "failed",
        }
    }

    /// Returns the word for a rung whose dependency evenkeel itself did not ask.
    #[must_use]
    pub const fn of_refusal(reason: Reason) -> Self {
        match reason {
            Reason::BreakerOpen | Reason::ProbeFailed | Reason::Ramping => Self::BreakerOpen,
            // A guard's own shared attempts are no business of an alternate's.
            Reason::CoolDown => Self::Failed,
            Reason::AtCapacity | Reason::QueueExpired | Reason::Shed => Self::AtCapacity,
            Reason::Held => Self::Held,
            Reason::DependencyFailed
            | Reason::TimedOut
            | Reason::Cut
            | Reason::ErrorAnswer
            | Reason::Busy
            | Reason::Fault
            | Reason::Slow
            | Reason::Revalidating
            | Reason::ProtectionUnavailable => Self::Failed,
        }
    }

    /// Returns this word's place in [`Skipped::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::NoSnapshot => 0,
            Self::TooOld => 1,
            Self::FutureDated => 2,
            Self::UnknownAge => 3,
            Self::Forbidden => 4,
            Self::Held => 5,
            Self::AtCapacity => 6,
            Self::BreakerOpen => 7,
            Self::NoTime => 8,
            Self::Failed => 9,
        }
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn every_word_stands_at_its_own_index_and_is_its_own() {
        for (index, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason.index(), index);
        }
        for (index, skipped) in Skipped::ALL.into_iter().enumerate() {
            assert_eq!(skipped.index(), index);
        }
        let words: BTreeSet<&str> = Reason::ALL.map(Reason::as_str).into();
        assert_eq!(words.len(), Reason::ALL.len());
        let words: BTreeSet<&str> = Skipped::ALL.map(Skipped::as_str).into();
        assert_eq!(words.len(), Skipped::ALL.len());
    }
}
