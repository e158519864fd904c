//! Decides what a protect step came to: allowed, denied or unavailable; and what an operator's hold makes of it.
//! It exists because a door that opens when nobody can decide is no door, and one that then says "forbidden" lies.
//! It refuses to read a yes or a no out of anything but the authority's own answer to this call.

use crate::{
    ending::{Ending, Rung},
    hold::HoldMode,
    reason::Reason,
};

/// What a protect step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protection {
    /// The authority said yes: what is protected may run.
    Allowed,
    /// The authority said no.
    Denied,
    /// Nobody decided. Neither a yes nor a no: what is protected does not run, and nobody is called forbidden.
    Unavailable,
}

impl Protection {
    /// Every outcome, in the order in which they are shown.
    pub const ALL: [Self; 3] = [Self::Allowed, Self::Denied, Self::Unavailable];

    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allow",
            Self::Denied => "deny",
            Self::Unavailable => "unavailable",
        }
    }

    /// Reads it off the end of the call to the authority. `allows` is what the authority said, if it said anything.
    ///
    /// Only a live answer counts: whatever could stand in for one was said at another time, or by somebody else.
    ///
    /// ```
    /// # use evenkeel_core as evenkeel;
    /// use evenkeel::{Ending, Protection, Rung};
    /// let live = Ending::Answered(Rung::Live);
    /// assert_eq!(Protection::of(live, Some(true)), Protection::Allowed);
    /// assert_eq!(Protection::of(live, Some(false)), Protection::Denied);
    /// assert_eq!(Protection::of(Ending::Refused, None), Protection::Unavailable);
    /// // Nobody builds such a guard; if one were built, it would still not open.
    /// assert_eq!(Protection::of(Ending::Answered(Rung::Stale), Some(true)), Protection::Unavailable);
    /// ```
    #[must_use]
    pub const fn of(ending: Ending, allows: Option<bool>) -> Self {
        match (ending, allows) {
            (Ending::Answered(Rung::Live), Some(true)) => Self::Allowed,
            (Ending::Answered(Rung::Live), Some(false)) => Self::Denied,
            (
                Ending::Answered(Rung::Live | Rung::Fresh | Rung::Stale | Rung::Alternate | Rung::Default)
                | Ending::Refused
                | Ending::Failed
                | Ending::Abandoned
                | Ending::Cut,
                None | Some(_),
            ) => Self::Unavailable,
        }
    }

    /// Returns why nobody decided, by the reason that the call to the authority ended with. An authority that answers
    /// something else than a decision, such as 404, gives no reason of its own: that is a fault, of the question or of
    /// the authority.
    #[must_use]
    pub const fn why(reason: Option<Reason>) -> Reason {
        match reason {
            Some(reason) => reason,
            None => Reason::Fault,
        }
    }
}

/// What a hold makes of a protect step. There is no third kind: none can open it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldProtection {
    /// The authority is not asked, so every call is unavailable.
    Unavailable,
    /// The authority is asked and decides.
    AsUsual,
}

impl HoldMode {
    /// Returns what this mode makes of a protect step; `None` where it may not be put on one, because it chooses among
    /// rungs and there are none.
    ///
    /// ```
    /// # use evenkeel_core as evenkeel;
    /// use evenkeel::{HeldProtection, HoldMode};
    /// assert_eq!(HoldMode::ForcedOff.on_protect(), Some(HeldProtection::Unavailable));
    /// assert_eq!(HoldMode::ForcedClosed.on_protect(), Some(HeldProtection::AsUsual));
    /// assert_eq!(HoldMode::StaleOnly.on_protect(), None);
    /// ```
    #[must_use]
    pub const fn on_protect(self) -> Option<HeldProtection> {
        match self {
            Self::ForcedOpen | Self::ForcedOff => Some(HeldProtection::Unavailable),
            Self::ForcedClosed => Some(HeldProtection::AsUsual),
            Self::StaleOnly | Self::DefaultOnly => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e63_of_all_ends_one_opens_and_one_denies() {
        let mut opened = 0;
        let mut denied = 0;
        for ending in Ending::ALL {
            for allows in [None, Some(true), Some(false)] {
                match Protection::of(ending, allows) {
                    Protection::Allowed => opened += 1,
                    Protection::Denied => denied += 1,
                    Protection::Unavailable => {}
                }
            }
        }
        assert_eq!((opened, denied), (1, 1));
    }

    #[test]
    fn every_outcome_has_its_own_word() {
        assert_eq!(
            Protection::ALL.map(Protection::as_str),
            ["allow", "deny", "unavailable"]
        );
    }

    #[test]
    fn a_hold_keeps_a_protect_step_shut_or_leaves_it_alone() {
        for mode in HoldMode::ALL {
            let held = mode.on_protect();
            assert_eq!(held == Some(HeldProtection::AsUsual), mode.lets_ask(), "{mode:?}");
        }
    }

    #[test]
    fn why_nobody_decided_is_never_without_a_word() {
        assert_eq!(Protection::why(None), Reason::Fault);
        for reason in Reason::ALL {
            assert_eq!(Protection::why(Some(reason)), reason);
        }
    }
}
