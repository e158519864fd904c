//! Decides what an operator's forced mode does to calls, and which contracts it may be put on.
//! It exists so that a person can steer in an incident without a deploy and without new risks.
//! It refuses modes that would serve old data where only exact answers are allowed.

use crate::contract::ReadContract;

/// An operator's forced mode on a guard or dependency.
///
/// | mode | the dependency gets | callers get |
/// |---|---|---|
/// | `forced-open` | nothing, no probes | the ladder, else refused |
/// | `forced-off` | nothing | refused, without trying rungs |
/// | `stale-only`, `default-only` | nothing | that rung, else refused |
/// | `forced-closed` | everything within permits; the breaker only observes | as usual |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HoldMode {
    /// The breaker is held open.
    ForcedOpen,
    /// Switched off.
    ForcedOff,
    /// Only the stale rung.
    StaleOnly,
    /// Only the default rung.
    DefaultOnly,
    /// The breaker only observes.
    ForcedClosed,
}

impl HoldMode {
    /// Every mode, in the order of the design.
    pub const ALL: [Self; 5] = [
        Self::ForcedOpen,
        Self::ForcedOff,
        Self::StaleOnly,
        Self::DefaultOnly,
        Self::ForcedClosed,
    ];

    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ForcedOpen => "forced-open",
            Self::ForcedOff => "forced-off",
            Self::StaleOnly => "stale-only",
            Self::DefaultOnly => "default-only",
            Self::ForcedClosed => "forced-closed",
        }
    }

    /// Tells whether this mode may be put on a guard with this contract: a guard that is `exact` is never made
    /// to serve old or default data.
    #[must_use]
    pub const fn suits(self, contract: &ReadContract) -> bool {
        match self {
            Self::StaleOnly | Self::DefaultOnly => !contract.exact(),
            Self::ForcedOpen | Self::ForcedOff | Self::ForcedClosed => true,
        }
    }

    /// Tells whether this mode may be put on a dependency: it says what the dependency gets, and which rungs there
    /// are only a guard knows.
    #[must_use]
    pub const fn suits_a_dependency(self) -> bool {
        match self {
            Self::ForcedOpen | Self::ForcedOff | Self::ForcedClosed => true,
            Self::StaleOnly | Self::DefaultOnly => false,
        }
    }

    /// Tells whether calls still reach the dependency.
    #[must_use]
    pub const fn lets_ask(self) -> bool {
        match self {
            Self::ForcedClosed => true,
            Self::ForcedOpen | Self::ForcedOff | Self::StaleOnly | Self::DefaultOnly => false,
        }
    }

    /// Returns what is in force where a guard is held in one mode and its dependency in the other: the stricter, so
    /// that whoever keeps calls from a dependency need not know the guards that ask it.
    ///
    /// From the strictest: forced-off, stale-only and default-only, forced-open, forced-closed.
    ///
    /// ```
    /// # use evenkeel_core as evenkeel;
    /// use evenkeel::HoldMode;
    /// assert_eq!(HoldMode::ForcedClosed.or_stricter(HoldMode::ForcedOpen), HoldMode::ForcedOpen);
    /// assert_eq!(HoldMode::StaleOnly.or_stricter(HoldMode::ForcedOpen), HoldMode::StaleOnly);
    /// assert_eq!(HoldMode::StaleOnly.or_stricter(HoldMode::ForcedOff), HoldMode::ForcedOff);
    /// ```
    #[must_use]
    pub fn or_stricter(self, other: Self) -> Self {
        let leaves = |mode| match mode {
            Self::ForcedOff => 0,
            Self::StaleOnly | Self::DefaultOnly => 1,
            Self::ForcedOpen => 2,
            Self::ForcedClosed => 3,
        };
        if leaves(other) < leaves(self) { other } else { self }
    }
}
