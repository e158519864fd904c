//! Decides how a wrong contract is reported: every problem at once, each with place, value, range and remedy.
//! It exists so that nobody has to mend a contract one error at a time.
//! It refuses to stop at the first problem.

use alloc::{
    format,
    string::{String, ToString as _},
    vec::Vec,
};
use core::{fmt, time::Duration};

use crate::codes;

/// One thing that is wrong with a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of mistake it is: a stable word of [`codes`].
    pub code: &'static str,
    /// Where: the dotted path of the setting.
    pub place: String,
    /// What stands there.
    pub seen: String,
    /// What may stand there.
    pub allowed: String,
    /// How to mend it.
    pub mend: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            seen,
            allowed,
            mend,
            ..
        } = self;
        write!(f, "{place}: {seen}; allowed: {allowed}; {mend}")
    }
}

/// Every problem found in one contract, in the order found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Adds a problem that is of no kind with a word of its own: [`codes::BAD_VALUE`].
    pub fn add(&mut self, place: &str, seen: &str, allowed: &str, mend: &str) {
        self.coded(codes::BAD_VALUE, place, seen, allowed, mend);
    }

    /// Adds a problem that was found elsewhere.
    pub fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// Adds a problem of a kind.
    pub fn coded(&mut self, code: &'static str, place: &str, seen: &str, allowed: &str, mend: &str) {
        self.0.push(Problem {
            code,
            place: place.to_string(),
            seen: seen.to_string(),
            allowed: allowed.to_string(),
            mend: mend.to_string(),
        });
    }

    /// Adds a problem unless `min <= value <= max`. The place is given in parts.
    pub fn range(&mut self, place: &[&str], value: u64, min: u64, max: u64) {
        if !(min..=max).contains(&value) {
            let mend = if value < min {
                format!("raise it to {min}")
            } else {
                format!("lower it to {max}")
            };
            self.coded(
                codes::OUT_OF_RANGE,
                &place.join("."),
                &value.to_string(),
                &format!("{min} to {max}"),
                &mend,
            );
        }
    }

    /// Adds a problem unless `min <= value <= max`. The place is given in parts.
    pub fn span(&mut self, place: &[&str], value: Duration, min: Duration, max: Duration) {
        if !(min..=max).contains(&value) {
            let mend = if value < min {
                format!("raise it to {min:?}")
            } else {
                format!("lower it to {max:?}")
            };
            self.coded(
                codes::OUT_OF_RANGE,
                &place.join("."),
                &format!("{value:?}"),
                &format!("{min:?} to {max:?}"),
                &mend,
            );
        }
    }

    /// Tells whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the problems in the order found.
    #[must_use]
    pub fn list(&self) -> &[Problem] {
        &self.0
    }

    /// Takes over the problems of another list, each placed under `place`.
    pub fn absorb(&mut self, place: &str, other: Self) {
        self.0.extend(other.0.into_iter().map(|mut problem| {
            problem.place = if problem.place.is_empty() {
                place.to_string()
            } else {
                format!("{place}.{}", problem.place)
            };
            problem
        }));
    }

    /// Returns `value` if nothing is wrong.
    ///
    /// # Errors
    /// The problems, when there are any.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl core::error::Error for Problems {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_reports_one_past_either_end_and_nothing_inside() {
        let mut problems = Problems::default();
        for value in [1, 2, 3] {
            problems.range(&["breaker", "probes"], value, 1, 3);
        }
        assert!(problems.is_empty());
        problems.range(&["breaker", "probes"], 0, 1, 3);
        problems.range(&["breaker", "probes"], 4, 1, 3);
        assert_eq!(
            problems.to_string(),
            "breaker.probes: 0; allowed: 1 to 3; raise it to 1\nbreaker.probes: 4; allowed: 1 to 3; lower it to 3"
        );
    }
}
