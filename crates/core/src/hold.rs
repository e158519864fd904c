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
}
