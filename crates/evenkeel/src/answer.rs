//! Decides what a caller gets: a value that says what it is, or a refusal that says why.
//! It exists so that nobody can use degraded data without having been told.
//! It refuses to lose the original error: it travels with both.

use std::{fmt, ops::Deref, time::Duration};

use evenkeel_core::{Ending, Reason, Rung, Skips, Wall};

use crate::key::EmptyScopePart;

/// A value with its source, age and reason. Dereferences to the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<T, E> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub rung: Rung,
    /// How old it is; zero for a live one, `None` for a default, which has no age.
    pub age: Option<Duration>,
    /// When the attempt that produced it began, by the wall clock of that time; `None` for a default.
    pub observed: Option<Wall>,
    /// What kept the call from being live, if it was not.
    pub reason: Option<Reason>,
    /// The rungs that were not used, each with the word for why.
    pub skipped: Skips,
    /// The dependency's error, if it was asked and failed.
    pub cause: Option<E>,
    /// It is live, and came with the attempt of another call that was under way; see
    /// [`coalesce`](crate::ReadBuilder::coalesce).
    pub joined: bool,
    /// It is live, and has been kept as the snapshot for its key.
    pub kept: bool,
}

impl<T, E> Deref for Answer<T, E> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// No answer: refused, or the dependency's own error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered<E> {
    /// [`Ending::Refused`] or [`Ending::Failed`].
    pub ending: Ending,
    /// The trigger; `None` when the dependency itself refused, which is its answer.
    pub reason: Option<Reason>,
    /// The rungs that were not used, each with the word for why.
    pub skipped: Skips,
    /// When asking again may help, where that is known: the next probe, or the end of a hold.
    pub retry_after: Option<Duration>,
    /// The dependency's error, unchanged, if it was asked and failed.
    pub cause: Option<E>,
    /// The call itself was wrong: a part of its scope was empty, so nobody was asked.
    pub misuse: Option<EmptyScopePart>,
}

impl<E> fmt::Display for Unanswered<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.ending.as_str())?;
        if let Some(reason) = self.reason {
            write!(f, ": {reason}")?;
        }
        for (index, (rung, why)) in self.skipped.iter().enumerate() {
            let lead = if index == 0 { " (" } else { ", " };
            write!(f, "{lead}{} {why}", rung.as_str())?;
        }
        if !self.skipped.is_empty() {
            f.write_str(")")?;
        }
        if let Some(misuse) = self.misuse {
            write!(f, ": {misuse}")?;
        }
        Ok(())
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Unanswered<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_core::Skipped;

    #[test]
    fn a_refusal_says_in_one_line_what_was_tried() {
        let mut skipped = Skips::default();
        skipped.note(Rung::Stale, Skipped::TooOld);
        let refused = Unanswered {
            ending: Ending::Refused,
            reason: Some(Reason::TimedOut),
            skipped,
            retry_after: None,
            cause: Some(std::io::Error::other("x")),
            misuse: None,
        };
        assert_eq!(refused.to_string(), "refused: timed-out (stale too-old)");
        assert_eq!(std::error::Error::source(&refused).unwrap().to_string(), "x");
        let passed_on = Unanswered::<()> {
            ending: Ending::Failed,
            reason: None,
            skipped: Skips::default(),
            retry_after: None,
            cause: None,
            misuse: None,
        };
        assert_eq!(passed_on.to_string(), "failed");
    }
}
