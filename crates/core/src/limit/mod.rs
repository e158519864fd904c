//! Decides how many attempts a dependency can bear when nobody wrote its capacity down: the rules, checked.
//! It exists because a source that was overloaded once stays overloaded unless somebody knows when to stop.
//! It refuses to limit before there was a first sign of overload, but for the first answers of a cold process.
//!
//! [`meter`] is what every call touches, [`learner`] judges what the meter saw, and [`linger`] counts the work
//! that goes on after its caller stopped waiting.

use core::time::Duration;

use crate::problem::Problems;

pub(crate) mod learner;
pub(crate) mod linger;
pub(crate) mod meter;

/// The rules of a learned limit. All of them have a good default; see `docs/decisions/0020`.
///
/// ```
/// use evenkeel_core::{LimitRules, Problems};
/// let mut problems = Problems::default();
/// LimitRules { floor: 0, ..LimitRules::DEFAULT }.check("learn", &mut problems);
/// assert_eq!(problems.list().len(), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitRules {
    /// The least the limit is cut to: 1 to 1000.
    pub floor: u32,
    /// How many attempts a process that knows nothing yet may have in flight before the first answers: 1 to
    /// 1 000 000. It grows by half with each round of good answers, and is gone once it is no longer reached.
    pub cold: u32,
    /// How long an attempt that ran into its limit is still counted, because its work may go on: 0 (not at all) to
    /// 1 h. `None` stands for the timeout of the dependency, and without one for [`LimitRules::LINGER`].
    pub linger: Option<Duration>,
}

impl LimitRules {
    /// Counts a hung attempt for one second more where neither a timeout nor a span is declared.
    pub const LINGER: Duration = Duration::from_secs(1);

    /// One attempt always goes on learning; ten are harmless to any source that is worth a gateway.
    pub const DEFAULT: Self = Self {
        floor: 1,
        cold: 10,
        linger: None,
    };

    /// Adds every problem of these rules to `problems`, each placed under `place`.
    pub fn check(&self, place: &str, problems: &mut Problems) {
        problems.range(&[place, "floor"], u64::from(self.floor), 1, 1000);
        problems.range(&[place, "cold"], u64::from(self.cold), 1, 1_000_000);
        if let Some(linger) = self.linger {
            problems.span(
                &[place, "linger"],
                linger,
                Duration::ZERO,
                Duration::from_secs(3600),
            );
        }
        if self.cold < self.floor {
            problems.add(
                &alloc::format!("{place}.cold"),
                &alloc::format!("{}", self.cold),
                &alloc::format!("`floor` ({}) or more", self.floor),
                "raise it, or lower `floor`",
            );
        }
    }
}

impl Default for LimitRules {
    fn default() -> Self {
        Self::DEFAULT
    }
}
