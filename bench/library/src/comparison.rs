//! Decides what one line of the table says: two subjects, one measure, and how far apart they should be.
//! It exists so that goals are data beside the names they speak of.
//! It refuses goals without a direction: each says "at most" or "at least".

use std::fmt;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// CPU nanoseconds per call on one thread.
    OneThread,
    /// Calls per second by two threads on one shared subject.
    TwoThreads,
    /// Calls per second by 64 tasks on two workers on one shared subject.
    ManyTasks,
    /// Allocations per call. Bounds are on the count itself, not on the ratio.
    Allocations,
}

impl Measure {
    /// Returns the word in the table.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OneThread => "1 thread",
            Self::TwoThreads => "2 threads",
            Self::ManyTasks => "64 tasks",
            Self::Allocations => "allocations",
        }
    }

    /// Tells whether more is better, so that the ratio is of speeds and not of costs.
    #[must_use]
    pub const fn is_speed(self) -> bool {
        matches!(self, Self::TwoThreads | Self::ManyTasks)
    }
}

/// A goal for a ratio, or for a count of allocations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// This or less.
    AtMost(f64),
    /// This or more.
    AtLeast(f64),
}

impl Bound {
    /// Tells whether `value` reaches the goal.
    #[must_use]
    pub fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= bound,
            Self::AtLeast(bound) => value >= bound,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(bound) => write!(f, "≤ {bound:.2}"),
            Self::AtLeast(bound) => write!(f, "≥ {bound:.2}"),
        }
    }
}

/// Wants this or less.
#[must_use]
pub const fn at_most(bound: f64) -> Option<Bound> {
    Some(Bound::AtMost(bound))
}

/// Wants this or more.
#[must_use]
pub const fn at_least(bound: f64) -> Option<Bound> {
    Some(Bound::AtLeast(bound))
}

/// One line of the table. Without goals it is for orientation.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The row of the goals that it belongs to.
    pub row: u32,
    /// What is compared.
    pub measure: Measure,
    /// The name of our case.
    pub ours: &'static str,
    /// The name of the other one.
    pub peer: &'static str,
    /// What must hold.
    pub must: Option<Bound>,
    /// What we want.
    pub ambitious: Option<Bound>,
}

impl Comparison {
    /// Tells whether the line contains `text`.
    #[must_use]
    pub fn contains(&self, text: &str) -> bool {
        let Self {
            row,
            measure,
            ours,
            peer,
            ..
        } = self;
        format!("row {row} {} {ours} {peer}", measure.as_str()).contains(text)
    }
}

/// Compares two cases, by their names.
#[must_use]
pub const fn compare(
    row: u32,
    measure: Measure,
    (ours, peer): (&'static str, &'static str),
    must: Option<Bound>,
    ambitious: Option<Bound>,
) -> Comparison {
    Comparison {
        row,
        measure,
        ours,
        peer,
        must,
        ambitious,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_itself_reaches_the_goal() {
        assert!(Bound::AtMost(0.25).is_met_by(0.25));
        assert!(!Bound::AtMost(0.25).is_met_by(0.2501));
        assert!(Bound::AtLeast(5.0).is_met_by(5.0));
        assert!(!Bound::AtLeast(5.0).is_met_by(4.999));
    }
}
