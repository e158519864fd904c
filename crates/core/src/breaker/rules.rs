//! Decides when a breaker trips, how long it stays open and how it may close: the numbers, checked.
//! It exists so that every default stands next to its range and its reason.
//! It refuses combinations that could never trip or never close.

use core::time::Duration;

use crate::{breaker::ring::Ring, problem::Problems};

/// The calls of which a share is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Those of this long: 100 ms to 1 h. Held in ten parts, so a call leaves between 90 % and 100 % of it later.
    Time(Duration),
    /// The last so many, however long ago: 1 to 100 000. How a dependency is judged that is seldom called.
    Calls(u32),
}

/// Trips when the share of failures in a sliding window reaches a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// The share of failures that trips, in parts per million; 1 to 1 000 000.
    pub failures_ppm: u32,
    /// The calls that count.
    pub window: Over,
    /// Fewer calls than this in the window never trip: 1 to 1 000 000, and not more than a window of calls holds.
    pub min_calls: u32,
}

/// Trips when the share of slow calls in a sliding window reaches a limit.
///
/// A call is slow from the moment at which it has taken this long, whether it has ended or not and whoever has left
/// meanwhile. What ended sooner without an answer because its caller had no more time counts neither way. A probe that
/// is slow has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowRatio {
    /// From here on a call is slow: 1 ms to 1 h, and less than the timeout of the dependency.
    pub after: Duration,
    /// The share of slow calls that trips, in parts per million; 1 to 1 000 000.
    pub slow_ppm: u32,
    /// The calls that count.
    pub window: Over,
    /// Fewer calls than this in the window never trip: 1 to 1 000 000, and not more than a window of calls holds.
    pub min_calls: u32,
}

/// How long a breaker stays open before it may be probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenFor {
    /// Until somebody probes by hand.
    Manual,
    /// `first`, doubled with each reopening in a row, at most `longest`; each drawn ± `jitter_ppm`.
    Timed {
        /// The first open period: 1 ms to a day.
        first: Duration,
        /// The cap on all of them: at least `first`, at most a day.
        longest: Duration,
        /// The spread around each, in parts per million, at most 500 000.
        jitter_ppm: u32,
    },
}

/// The rules of one circuit breaker. At least one of `consecutive`, `ratio` and `slow` trips it.
///
/// ```
/// use evenkeel_core::{BreakerRules, Problems};
/// let rules = BreakerRules { consecutive: Some(3), ..BreakerRules::NONE };
/// let mut problems = Problems::default();
/// rules.check("breaker", &mut problems);
/// assert!(problems.is_empty());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerRules {
    /// Trips after this many failures in a row; 1 to 1 000 000.
    pub consecutive: Option<u32>,
    /// Trips by the share of failures.
    pub ratio: Option<Ratio>,
    /// Trips by the share of slow calls.
    pub slow: Option<SlowRatio>,
    /// How long it stays open.
    pub open_for: OpenFor,
    /// At most this many probes in flight while half-open; 1 to 1000.
    pub probes: u32,
    /// Successful probes in a row that close; 1 to 1000. It may be more than `probes`: they then prove the
    /// recovery one after the other, and no minimum of calls applies to them.
    pub close_after: u32,
    /// How long a probe may go without a verdict before it counts as failed: 1 ms to 1 h, and not less than the
    /// timeout of the dependency, or answers between the two could never close the breaker. `None` stands for the timeout of
    /// the dependency, and where that is missing too, for [`BreakerRules::LEASE`].
    pub lease: Option<Duration>,
}

impl Over {
    fn check(self, place: &str, min_calls: u32, problems: &mut Problems) {
        problems.range(&[place, "min_calls"], u64::from(min_calls), 1, 1_000_000);
        match self {
            Self::Time(span) => problems.span(
                &[place, "window"],
                span,
                Duration::from_millis(100),
                Duration::from_secs(3600),
            ),
            Self::Calls(calls) => {
                let place = [place, "window_calls"];
                problems.range(&place, u64::from(calls), 1, u64::from(Ring::CALLS_MAX));
                if calls < min_calls {
                    problems.add(
                        &place.join("."),
                        &alloc::format!("{calls}"),
                        &alloc::format!("`min_calls` ({min_calls}) or more: fewer calls never trip"),
                        "raise it, or lower `min_calls`",
                    );
                }
            }
        }
    }
}

impl BreakerRules {
    /// First open period: long enough for a restart, short enough that one background probe costs nothing.
    pub const OPEN_FOR_FIRST: Duration = Duration::from_millis(500);
    /// Longest open period: a source that is back is noticed within a second and a fifth.
    pub const OPEN_FOR_LONGEST: Duration = Duration::from_secs(1);
    /// Spread of open periods, so that many nodes do not probe in step.
    pub const JITTER_PPM: u32 = 200_000;
    /// Lease of a probe where neither a timeout nor a lease is declared.
    pub const LEASE: Duration = Duration::from_secs(1);

    /// No trips declared, everything else at its default. Not valid by itself.
    pub const NONE: Self = Self {
        consecutive: None,
        ratio: None,
        slow: None,
        open_for: OpenFor::Timed {
            first: Self::OPEN_FOR_FIRST,
            longest: Self::OPEN_FOR_LONGEST,
            jitter_ppm: Self::JITTER_PPM,
        },
        probes: 1,
        close_after: 1,
        lease: None,
    };

    /// Adds every problem of these rules to `problems`, each placed under `place`.
    pub fn check(&self, place: &str, problems: &mut Problems) {
        if self.consecutive.is_none() && self.ratio.is_none() && self.slow.is_none() {
            problems.add(
                place,
                "no trip",
                "`consecutive`, a failure ratio, a slow ratio, or several of them",
                "add `consecutive = 5`",
            );
        }
        if let Some(consecutive) = self.consecutive {
            problems.range(&[place, "consecutive"], u64::from(consecutive), 1, 1_000_000);
        }
        if let Some(ratio) = self.ratio {
            problems.range(
                &[place, "failure_ratio (parts per million)"],
                u64::from(ratio.failures_ppm),
                1,
                1_000_000,
            );
            ratio.window.check(place, ratio.min_calls, problems);
        }
        if let Some(slow) = self.slow {
            problems.span(
                &[place, "slow_after"],
                slow.after,
                Duration::from_millis(1),
                Duration::from_secs(3600),
            );
            problems.range(
                &[place, "slow_ratio (parts per million)"],
                u64::from(slow.slow_ppm),
                1,
                1_000_000,
            );
            if self.ratio.map(|ratio| (ratio.window, ratio.min_calls)) != Some((slow.window, slow.min_calls))
            {
                slow.window.check(place, slow.min_calls, problems);
            }
        }
        if let OpenFor::Timed {
            first,
            longest,
            jitter_ppm,
        } = self.open_for
        {
            problems.span(
                &[place, "open_for"],
                first,
                Duration::from_millis(1),
                Duration::from_secs(86_400),
            );
            problems.range(
                &[place, "jitter (parts per million)"],
                u64::from(jitter_ppm),
                0,
                500_000,
            );
            // Beyond all reason a period would reach the end of time, and the breaker never be probed.
            problems.span(
                &[place, "open_for_max"],
                longest,
                Duration::from_millis(1),
                Duration::from_secs(86_400),
            );
            if longest < first {
                problems.add(
                    &alloc::format!("{place}.open_for_max"),
                    &alloc::format!("{longest:?}"),
                    &alloc::format!("`open_for` ({first:?}) or longer"),
                    "raise it, or lower `open_for`",
                );
            }
        }
        problems.range(&[place, "probes"], u64::from(self.probes), 1, 1000);
        problems.range(&[place, "close_after"], u64::from(self.close_after), 1, 1000);
        if let Some(lease) = self.lease {
            problems.span(
                &[place, "lease"],
                lease,
                Duration::from_millis(1),
                Duration::from_secs(3600),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{string::String, vec::Vec};

    fn places(rules: BreakerRules) -> Vec<String> {
        let mut problems = Problems::default();
        rules.check("b", &mut problems);
        problems
            .list()
            .iter()
            .map(|problem| problem.place.clone())
            .collect()
    }

    #[test]
    fn e14_rules_that_could_never_trip_or_never_close_are_refused() {
        assert_eq!(places(BreakerRules::NONE), ["b"], "no trip");
        let none = BreakerRules {
            consecutive: Some(0),
            ratio: Some(Ratio {
                failures_ppm: 0,
                window: Over::Time(Duration::ZERO),
                min_calls: 0,
            }),
            probes: 0,
            close_after: 0,
            lease: Some(Duration::ZERO),
            ..BreakerRules::NONE
        };
        let ratio = ["b.failure_ratio (parts per million)", "b.min_calls", "b.window"];
        let recovery = ["b.probes", "b.close_after", "b.lease"];
        let all: Vec<&str> = ["b.consecutive"]
            .into_iter()
            .chain(ratio)
            .chain(recovery)
            .collect();
        assert_eq!(places(none), all);
    }

    #[test]
    fn each_number_is_accepted_at_its_limit_and_refused_one_past_it() {
        let hour = Duration::from_secs(3600);
        let at_limit = BreakerRules {
            consecutive: Some(1_000_000),
            ratio: Some(Ratio {
                failures_ppm: 1_000_000,
                window: Over::Time(hour),
                min_calls: 1_000_000,
            }),
            probes: 1000,
            close_after: 1000,
            lease: Some(hour),
            ..BreakerRules::NONE
        };
        assert_eq!(places(at_limit), [""; 0]);
        let past = BreakerRules {
            consecutive: Some(1_000_001),
            ratio: Some(Ratio {
                failures_ppm: 1_000_001,
                window: Over::Time(hour + Duration::from_nanos(1)),
                min_calls: 1_000_001,
            }),
            probes: 1001,
            close_after: 1001,
            lease: Some(hour + Duration::from_nanos(1)),
            ..BreakerRules::NONE
        };
        assert_eq!(places(past).len(), 7);
    }

    #[test]
    fn slow_calls_and_windows_of_calls_have_their_ranges_too() {
        let slow = |after, slow_ppm, window, min_calls| {
            let slow = Some(SlowRatio {
                after,
                slow_ppm,
                window,
                min_calls,
            });
            places(BreakerRules {
                slow,
                ..BreakerRules::NONE
            })
        };
        let ms = Duration::from_millis(1);
        assert_eq!(slow(ms, 1, Over::Calls(1), 1), [""; 0]);
        assert_eq!(
            slow(ms * 3_600_000, 1_000_000, Over::Calls(100_000), 100_000),
            [""; 0]
        );
        assert_eq!(
            slow(Duration::ZERO, 0, Over::Calls(100_001), 1),
            [
                "b.slow_after",
                "b.slow_ratio (parts per million)",
                "b.window_calls"
            ]
        );
        assert_eq!(slow(ms, 1, Over::Calls(4), 5), ["b.window_calls"]);
    }

    #[test]
    fn what_both_shares_have_in_common_is_told_once() {
        let window = Over::Calls(4);
        let both = BreakerRules {
            ratio: Some(Ratio {
                failures_ppm: 1,
                window,
                min_calls: 5,
            }),
            slow: Some(SlowRatio {
                after: Duration::from_millis(1),
                slow_ppm: 1,
                window,
                min_calls: 5,
            }),
            ..BreakerRules::NONE
        };
        assert_eq!(places(both), ["b.window_calls"]);
    }
}
