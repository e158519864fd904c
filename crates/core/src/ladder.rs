//! Decides the order in which the rungs of a contract are tried, and keeps count of those that were not used.
//! It exists so that the order is data from the contract, not code in a driver.
//! It refuses rungs that no contract lists.

use core::time::Duration;

use alloc::vec::Vec;

use crate::{codes, ending::Rung, problem::Problems, reason::Skipped};

/// One rung below live, with its conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RungRule {
    /// The snapshot, while its age is at most this.
    Stale {
        /// The age limit: 1 ns to 365 days. The limit itself may be served.
        max_age: Duration,
    },
    /// Another dependency, inside its own budget; at most one attempt.
    Alternate {
        /// The longest span of that attempt, which is kept free for it before the deadline; `None` keeps nothing free.
        timeout: Option<Duration>,
    },
    /// The declared constant or cheap local function.
    Default,
}

impl RungRule {
    /// Returns the rung that this rule leads to.
    #[must_use]
    pub const fn rung(self) -> Rung {
        match self {
            Self::Stale { .. } => Rung::Stale,
            Self::Alternate { .. } => Rung::Alternate,
            Self::Default => Rung::Default,
        }
    }
}

/// The rungs that a contract lists below live, in its order. Empty by default: nothing is served in place of a
/// live answer unless somebody said so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ladder(Vec<RungRule>);

impl Ladder {
    /// The oldest data that any contract may serve.
    pub const MAX_AGE_LIMIT: Duration = Duration::from_secs(365 * 86_400);

    /// Makes a ladder; [`Ladder::check`] says what is wrong with it.
    #[must_use]
    pub const fn new(rungs: Vec<RungRule>) -> Self {
        Self(rungs)
    }

    /// Returns the rungs in order.
    #[must_use]
    pub fn rungs(&self) -> &[RungRule] {
        &self.0
    }

    /// Returns the age limit of the stale rung, if the ladder has one.
    #[must_use]
    pub fn max_age(&self) -> Option<Duration> {
        self.0.iter().find_map(|rule| match rule {
            RungRule::Stale { max_age } => Some(*max_age),
            RungRule::Alternate { .. } | RungRule::Default => None,
        })
    }

    /// Tells whether the ladder has an alternate.
    #[must_use]
    pub fn has_alternate(&self) -> bool {
        self.0.iter().any(|rule| rule.rung() == Rung::Alternate)
    }

    /// Returns the longest span of the attempt at the alternate, if there is an alternate that has one.
    #[must_use]
    pub fn alternate_timeout(&self) -> Option<Duration> {
        self.0.iter().find_map(|rule| match rule {
            RungRule::Alternate { timeout } => *timeout,
            RungRule::Stale { .. } | RungRule::Default => None,
        })
    }

    /// Tells whether the ladder ends in a default.
    #[must_use]
    pub fn has_default(&self) -> bool {
        self.0.contains(&RungRule::Default)
    }

    /// Adds every problem of the ladder.
    pub fn check(&self, exact: bool, deadline: Option<Duration>, problems: &mut Problems) {
        for (index, rule) in self.0.iter().enumerate() {
            let word = rule.rung().as_str();
            let place = alloc::format!("ladder[{index}]");
            if self
                .0
                .iter()
                .take(index)
                .any(|earlier| earlier.rung() == rule.rung())
            {
                problems.coded(
                    codes::RUNG_TWICE,
                    &place,
                    &alloc::format!("a second {word} rung"),
                    "each rung once",
                    "remove one",
                );
            }
            if exact && rule.rung() != Rung::Alternate {
                problems.coded(
                    codes::EXACT_WITH_OLD_DATA,
                    &place,
                    &alloc::format!("{word} with `exact`"),
                    "nothing but an answer asked for this call",
                    "remove the rung, or `exact`",
                );
            }
            match rule {
                RungRule::Stale { max_age } => {
                    problems.span(
                        &[&place, word],
                        *max_age,
                        Duration::from_nanos(1),
                        Self::MAX_AGE_LIMIT,
                    );
                }
                RungRule::Default if index + 1 < self.0.len() => {
                    problems.coded(
                        codes::DEFAULT_NOT_LAST,
                        &place,
                        "default before other rungs",
                        "default last: it always answers",
                        "move it to the end",
                    );
                }
                RungRule::Alternate {
                    timeout: Some(timeout),
                } => {
                    if let Some(deadline) = deadline.filter(|deadline| deadline <= timeout) {
                        problems.coded(
                            codes::TIMES_CONFLICT,
                            &alloc::format!("{place}.{word}"),
                            &alloc::format!("a timeout of {timeout:?}, and the deadline ends the call after {deadline:?}"),
                            "a timeout shorter than the deadline: it is kept free while the rungs above are tried",
                            "lower that timeout, or raise the deadline: as it stands no time is left for the first attempt",
                        );
                    }
                }
                RungRule::Alternate { timeout: None } if deadline.is_some() => {
                    problems.add(
                        &alloc::format!("{place}.{word}"),
                        "no timeout",
                        "a dependency with a timeout, beside a deadline: it says how much time is kept free",
                        "declare `timeout` on the alternate dependency",
                    );
                }
                RungRule::Alternate { timeout: None } | RungRule::Default => {}
            }
        }
    }
}

/// The rungs that a call did not use, each with the word for why. Holds one entry per rung, without allocating.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skips([Option<(Rung, Skipped)>; Self::ROOM]);

impl Skips {
    /// One for each rung below live; each is passed over once at most.
    const ROOM: usize = 3;

    /// Notes that `rung` was not used.
    pub fn note(&mut self, rung: Rung, why: Skipped) {
        if let Some(place) = self
            .0
            .iter_mut()
            .find(|place| place.is_none_or(|(noted, _)| noted == rung))
        {
            *place = Some((rung, why));
        }
    }

    /// Returns the rungs not used, in the order in which they were passed over.
    pub fn iter(&self) -> impl Iterator<Item = (Rung, Skipped)> + '_ {
        // Places are taken in order, so the first that is free ends it: for most calls, at once.
        self.0.iter().map_while(|place| *place)
    }

    /// Returns why `rung` was not used, if it was tried and was not.
    #[must_use]
    pub fn why(&self, rung: Rung) -> Option<Skipped> {
        self.iter()
            .find(|(skipped, _)| *skipped == rung)
            .map(|(_, why)| why)
    }

    /// Tells whether every rung that was tried was used.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0[0].is_none()
    }
}
