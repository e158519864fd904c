//! Decides whether and when a failed attempt may be followed by another: the rules, checked, and the pause between.
//! It exists because a retry helps one caller at the cost of all others, so how much it may cost is written down.
//! It refuses to make an attempt: each one is admitted and judged by itself, like the first.
//!
//! [`budget`] counts what retries may cost a dependency, [`hush`] how long one that said it is busy is left alone.

use core::time::Duration;

use crate::{
    class::{Class, Outage},
    problem::Problems,
    time::Mono,
};

pub(crate) mod budget;
pub(crate) mod hush;

/// The rules of retries. All of them have a good default but the wish to have any; see `docs/decisions/0040`.
///
/// ```
/// use evenkeel_core::{Problems, RetryRules};
/// let mut problems = Problems::default();
/// RetryRules { attempts: 1, ..RetryRules::DEFAULT }.check("retry", &mut problems);
/// assert_eq!(
///     problems.to_string(),
///     "retry.attempts: 1; allowed: 2 to 10; raise it to 2",
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryRules {
    /// The most attempts for one call, the first included: 2 to 10.
    pub attempts: u32,
    /// How many retries a dependency bears for each call that reached it, in parts per million: 0 to 1 000 000.
    /// What is not used is forgotten over about ten seconds.
    pub budget_ppm: u32,
    /// How many retries a second are free beside that, so that a quiet dependency has any: 0 to 1000. Not zero
    /// where `budget_ppm` is.
    pub floor: u32,
    /// The first pause is drawn evenly from zero to this long, and each later one from twice the range: 1 ms to
    /// 1 min. After an answer that was an error the pause is never shorter than this.
    pub pause: Duration,
    /// The longest range to draw from: `pause` to 1 h.
    pub pause_max: Duration,
    /// A wait that the dependency asks for counts as this long if it is longer: 1 s to 1 h.
    pub retry_after_max: Duration,
}

impl RetryRules {
    /// One retry (standards H08), one for each ten calls (R02), three free ones a second; a pause that is over before
    /// a person notices.
    pub const DEFAULT: Self = Self {
        attempts: 2,
        budget_ppm: 100_000,
        floor: 3,
        pause: Duration::from_millis(50),
        pause_max: Duration::from_secs(1),
        retry_after_max: Duration::from_secs(60),
    };

    /// Adds every problem of these rules to `problems`, each placed under `place`.
    pub fn check(&self, place: &str, problems: &mut Problems) {
        const MS: Duration = Duration::from_millis(1);
        const HOUR: Duration = Duration::from_secs(3600);
        problems.range(&[place, "attempts"], u64::from(self.attempts), 2, 10);
        problems.range(&[place, "budget"], u64::from(self.budget_ppm), 0, 1_000_000);
        problems.range(&[place, "floor"], u64::from(self.floor), 0, 1000);
        problems.span(&[place, "pause"], self.pause, MS, Duration::from_secs(60));
        problems.span(&[place, "pause_max"], self.pause_max, MS, HOUR);
        problems.span(
            &[place, "retry_after_max"],
            self.retry_after_max,
            Duration::from_secs(1),
            HOUR,
        );
        if self.pause_max < self.pause {
            problems.add(
                &alloc::format!("{place}.pause_max"),
                &alloc::format!("{:?}", self.pause_max),
                &alloc::format!("`pause` ({:?}) or longer", self.pause),
                "raise it, or lower `pause`",
            );
        }
        if self.floor == 0 && self.budget_ppm == 0 {
            problems.add(
                &alloc::format!("{place}.budget"),
                "0, together with a floor of 0",
                "a share of the calls, a floor, or both",
                "raise one of them, or leave the rules out: nothing would ever be retried",
            );
        }
    }

    /// Returns the pause before attempt number `made + 1` after `failed`, by 64 random bits (full jitter, R05).
    pub(crate) fn pause_after(&self, made: u32, failed: Failed, random: u64) -> Duration {
        let range = self
            .pause
            .saturating_mul(1 << made.saturating_sub(1).min(16))
            .min(self.pause_max);
        let nanos = u64::try_from(range.as_nanos()).unwrap_or(u64::MAX);
        // The high half of the product is evenly drawn from zero to `nanos`.
        let drawn = (u128::from(random) * (u128::from(nanos) + 1)) >> 64;
        let drawn = Duration::from_nanos(u64::try_from(drawn).unwrap_or(u64::MAX));
        let own = if failed.answered() {
            drawn.max(self.pause)
        } else {
            drawn
        };
        // What it asks for is a least wait; jitter on top of it keeps those who were told the same apart.
        let said = failed.advice.wait();
        if said > own {
            said.min(self.retry_after_max).saturating_add(drawn)
        } else {
            own
        }
    }
}

impl Default for RetryRules {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What an attempt came to that may be followed by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What it was.
    pub class: Class,
    /// What it says about asking again.
    pub advice: Advice,
}

/// What a result says about asking again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Advice {
    /// Nothing: whenever the rules say.
    #[default]
    Whenever,
    /// Not before this much time has passed; see RFC 9110 §10.2.3.
    After(Duration),
    /// Not at all: somebody nearer to the failure has tried already.
    Never,
}

impl Advice {
    /// Returns the least wait.
    pub(crate) const fn wait(self) -> Duration {
        match self {
            Self::After(wait) => wait,
            Self::Whenever | Self::Never => Duration::ZERO,
        }
    }
}

impl Failed {
    /// Tells whether the kind of failure may be retried at all: outages and 429, never a real answer, a bug, a refusal
    /// of our own, or a caller who left.
    pub(crate) const fn is_retryable(self) -> bool {
        match self.class {
            Class::Outage(_) | Class::Busy => !matches!(self.advice, Advice::Never),
            Class::Answer | Class::Refusal | Class::Gone | Class::Fault | Class::Local | Class::Cancelled => {
                false
            }
        }
    }

    /// Tells whether the dependency answered: it is there, and has too much to do or is broken.
    const fn answered(self) -> bool {
        matches!(self.class, Class::Outage(Outage::ErrorAnswer) | Class::Busy)
    }
}

/// The right to one more attempt from a moment on, its cost already counted.
///
/// Hand it to [`Dependency::admit_again`](crate::Dependency::admit_again) when the moment has come, or to
/// [`Dependency::give_back`](crate::Dependency::give_back) if the attempt is not made.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a retry that is not made is given back"]
pub struct Retry {
    pub(crate) at: Mono,
    pub(crate) cost: budget::Cost,
}

impl Retry {
    /// Returns when the attempt may start.
    #[must_use]
    pub const fn at(&self) -> Mono {
        self.at
    }
}

/// Why there is no further attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRetry {
    /// No rules are declared, or this kind of result is never retried.
    NotRetryable,
    /// The call has had its attempts.
    NoAttempts,
    /// The breaker is not closed; the dependency is asked by probes only.
    BreakerOpen,
    /// The pause would not end before the call does.
    NoTime,
    /// The dependency has had its share of retries.
    NoBudget,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const RULES: RetryRules = RetryRules {
        pause: Duration::from_millis(100),
        pause_max: Duration::from_millis(300),
        ..RetryRules::DEFAULT
    };

    fn failed(class: Class, said: Option<Duration>) -> Failed {
        let advice = said.map_or(Advice::Whenever, Advice::After);
        Failed { class, advice }
    }

    fn pauses(made: u32, failed: Failed) -> [Duration; 2] {
        [0, u64::MAX].map(|random| RULES.pause_after(made, failed, random))
    }

    #[test]
    fn r05_pauses_are_drawn_from_zero_to_a_range_that_doubles_up_to_its_limit() {
        let refused = failed(Class::OUTAGE, None);
        let ranges = [1, 2, 3, 4, 100].map(|made| pauses(made, refused));
        assert_eq!(
            ranges,
            [100, 200, 300, 300, 300].map(|longest| [Duration::ZERO, MS * longest])
        );
    }

    #[test]
    fn case_033_after_an_error_answer_no_pause_is_shorter_than_the_base_whatever_the_header_says() {
        for class in [Class::Busy, Class::of_status(503)] {
            for said in [None, Some(Duration::ZERO), Some(MS)] {
                assert_eq!(pauses(1, failed(class, said)), [MS * 100, MS * 100]);
                assert_eq!(pauses(2, failed(class, said)), [MS * 100, MS * 200]);
            }
        }
    }

    #[test]
    fn h05_a_wait_that_is_asked_for_is_kept_and_one_that_is_too_long_is_capped() {
        let busy = |said| pauses(1, failed(Class::Busy, Some(said)));
        assert_eq!(busy(MS * 900), [MS * 900, MS * 1000]);
        let most = RULES.retry_after_max;
        assert_eq!(busy(most + MS), [most, most + MS * 100]);
        assert_eq!(busy(Duration::MAX), [most, most + MS * 100]);
    }

    #[test]
    fn only_outages_and_429_are_retried() {
        let retried = Class::ALL.map(|class| failed(class, None).is_retryable());
        assert_eq!(retried, [true, false, false, false, true, false, false, false]);
    }

    #[test]
    fn the_defaults_are_rules() {
        let mut problems = Problems::default();
        RetryRules::DEFAULT.check("retry", &mut problems);
        assert!(problems.is_empty());
    }

    #[test]
    fn every_problem_of_the_rules_is_told_at_once() {
        let mut problems = Problems::default();
        RetryRules {
            attempts: 11,
            budget_ppm: 0,
            floor: 0,
            pause: Duration::from_secs(2),
            pause_max: Duration::from_secs(1),
            retry_after_max: Duration::ZERO,
        }
        .check("retry", &mut problems);
        let places: alloc::vec::Vec<_> = problems.list().iter().map(|one| one.place.as_str()).collect();
        assert_eq!(
            places,
            [
                "retry.attempts",
                "retry.retry_after_max",
                "retry.pause_max",
                "retry.budget"
            ]
        );
    }
}
