//! Decides what a caller gets: a value that says what it is, or a refusal that says why.
//! It exists so that nobody can use degraded data without having been told.
//! It refuses to lose the original error: it travels with both.

use std::{fmt, ops::Deref, time::Duration};

use evenkeel_core::{Ending, Reason, Rung, Skips, Wall};

use crate::key::EmptyScopePart;

/// A value with its source, age and reason. Dereferences to the value.
///
/// ```
/// use evenkeel::{Answer, Rung};
///
/// /// What a page says beside the value.
/// fn label<T, E>(answer: &Answer<T, E>) -> String {
///     match (answer.rung, answer.age, answer.reason) {
///         (Rung::Live | Rung::Fresh, _, _) => String::new(),
///         (_, Some(age), Some(reason)) => format!("as of {} s ago ({reason})", age.as_secs()),
///         _ => "standard selection".to_owned(),
///     }
/// }
/// # use evenkeel::{Class, Engine, ManualClock, stale, default};
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let clock = ManualClock::new();
/// # let guard = Engine::new(clock.clone(), 7).read::<Vec<u32>>("picks")
/// #     .classify(|_: &std::fmt::Error| Class::OUTAGE)
/// #     .ladder([stale(Duration::from_secs(60)), default(Vec::new)]).build()?;
///
/// let live = guard.call((), "home", |_| async { Ok(vec![7]) }).await?;
/// assert_eq!((live.first(), label(&live).as_str()), (Some(&7), ""));
/// clock.advance(Duration::from_secs(5));
/// let old = guard.call((), "home", |_| async { Err(std::fmt::Error) }).await?;
/// assert_eq!((old.first(), label(&old).as_str()), (Some(&7), "as of 5 s ago (dependency-failed)"));
/// assert_eq!(old.cause, Some(std::fmt::Error));
/// # Ok(()) }
/// ```
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
    /// The alternate's error, if it was asked too and failed; see [`alternate`](crate::ReadBuilder::alternate).
    pub alternate_cause: Option<E>,
    /// It is live, and came with the attempt of another call that was under way; see
    /// [`coalesce`](crate::ReadBuilder::coalesce).
    pub joined: bool,
    /// It is live, and has been kept as the snapshot for its key.
    pub kept: bool,
}

impl<T, E> Answer<T, E> {
    /// Returns every error on the way to this answer, in the order in which they came.
    pub fn causes(&self) -> impl Iterator<Item = &E> {
        self.cause.iter().chain(&self.alternate_cause)
    }
}

impl<E> Unanswered<E> {
    /// Returns every error of this call, in the order in which they came: the dependency's, the alternate's.
    pub fn causes(&self) -> impl Iterator<Item = &E> {
        self.cause.iter().chain(&self.alternate_cause)
    }
}

impl<T, E> Deref for Answer<T, E> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// No answer: refused, or the dependency's own error.
///
/// ```
/// use evenkeel::{Ending, Unanswered};
///
/// /// The status of an HTTP answer, where the client's own error says what its dependency said.
/// fn status(unanswered: &Unanswered<u16>) -> u16 {
///     match (unanswered.ending, unanswered.cause) {
///         (Ending::Failed, Some(said)) => said, // the dependency's answer: not ours to hide
///         (Ending::Failed, None) => 500,        // a bug, or a misuse that says which
///         _ => 503,                             // refused: nobody could answer; see `retry_after`
///     }
/// }
/// # use evenkeel::{Class, Engine, Reason};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let guard = Engine::system().read::<u32>("stock")
/// #     .classify(|said: &u16| Class::of_status(*said)).build()?;
///
/// let refused = guard.call((), "42", |_| async { Err(503) }).await.unwrap_err();
/// assert_eq!((status(&refused), refused.reason), (503, Some(Reason::ErrorAnswer)));
/// let passed_on = guard.call((), "42", |_| async { Err(404) }).await.unwrap_err();
/// assert_eq!((status(&passed_on), passed_on.to_string().as_str()), (404, "failed"));
/// # Ok(()) }
/// ```
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
    /// The alternate's error, unchanged, if it was asked too and failed.
    pub alternate_cause: Option<E>,
    /// The call itself was wrong.
    pub misuse: Option<Misuse>,
}

/// What was wrong with a call itself. It ends as failed, by a fault, and nobody's breaker hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// A part of its scope was empty, so nobody was asked.
    EmptyScopePart(EmptyScopePart),
    /// It had to wait under a time limit by the system's clock, outside a tokio runtime: nothing could have ended it in
    /// time, so its work was dropped where it stood.
    NoTimer,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyScopePart(part) => part.fmt(f),
            Self::NoTimer => f.write_str(
                "a time limit, and no tokio runtime here whose timer could keep it; \
                 call within a runtime, or declare neither timeout nor deadline",
            ),
        }
    }
}

impl std::error::Error for Misuse {}

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
            alternate_cause: None,
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
            alternate_cause: None,
            misuse: None,
        };
        assert_eq!(passed_on.to_string(), "failed");
    }
}
