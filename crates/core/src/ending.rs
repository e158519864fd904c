//! Decides the words for where an answer came from and what a call came to.
//! It exists so that value, header, metric, log and trace cannot name the same thing differently.
//! It refuses free text.

/// A source of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rung {
    /// The dependency was asked for this call and answered.
    Live,
    /// A snapshot inside its lifetime; nothing was asked.
    Fresh,
    /// The last good answer, inside the age limit of the contract.
    Stale,
    /// Another dependency was asked for this call and answered.
    Alternate,
    /// The declared constant, or the result of a cheap local function.
    Default,
}

impl Rung {
    /// Every rung, in the order in which they are shown.
    pub const ALL: [Self; 5] = [
        Self::Live,
        Self::Fresh,
        Self::Stale,
        Self::Alternate,
        Self::Default,
    ];

    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Fresh => "fresh",
            Self::Stale => "stale",
            Self::Alternate => "alternate",
            Self::Default => "default",
        }
    }

    /// Tells whether an answer from this rung is less than the caller asked for.
    #[must_use]
    pub const fn is_degraded(self) -> bool {
        match self {
            Self::Live | Self::Fresh => false,
            Self::Stale | Self::Alternate | Self::Default => true,
        }
    }
}

/// What a call came to. Every call has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Answered by this rung.
    Answered(Rung),
    /// No rung of the contract could answer, and the caller was told so.
    Refused,
    /// A fault, or the dependency's own error passed on.
    Failed,
    /// The caller left before there was an answer, or before all of a streamed one had come.
    Abandoned,
    /// A streamed answer broke off after its beginning had been handed on.
    Cut,
}

impl Ending {
    /// Every ending, in the order in which they are shown.
    pub const ALL: [Self; 9] = [
        Self::Answered(Rung::Live),
        Self::Answered(Rung::Fresh),
        Self::Answered(Rung::Stale),
        Self::Answered(Rung::Alternate),
        Self::Answered(Rung::Default),
        Self::Refused,
        Self::Failed,
        Self::Abandoned,
        Self::Cut,
    ];

    /// Returns the stable word; the rung of an answer has its own, see [`Ending::rung`].
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered(_) => "answered",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Abandoned => "abandoned",
            Self::Cut => "cut",
        }
    }

    /// Returns the rung that answered, if one did.
    #[must_use]
    pub const fn rung(self) -> Option<Rung> {
        match self {
            Self::Answered(rung) => Some(rung),
            Self::Refused | Self::Failed | Self::Abandoned | Self::Cut => None,
        }
    }

    /// Returns this ending's place in [`Ending::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Answered(Rung::Live) => 0,
            Self::Answered(Rung::Fresh) => 1,
            Self::Answered(Rung::Stale) => 2,
            Self::Answered(Rung::Alternate) => 3,
            Self::Answered(Rung::Default) => 4,
            Self::Refused => 5,
            Self::Failed => 6,
            Self::Abandoned => 7,
            Self::Cut => 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_stands_at_its_own_index() {
        for (index, ending) in Ending::ALL.into_iter().enumerate() {
            assert_eq!(ending.index(), index);
        }
    }

    #[test]
    fn only_reduced_answers_count_as_degraded() {
        let degraded = Rung::ALL.map(Rung::is_degraded);
        assert_eq!(degraded, [false, false, true, true, true]);
    }
}
