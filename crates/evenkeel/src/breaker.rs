//! Decides how the rules of a circuit breaker are written in code: one method for each number of the contract.
//! It exists apart from the dependency because it is the longest of its settings, and guards write it too.
//! It refuses nothing by itself: the numbers are checked together, when the contract is built.

use std::time::Duration;

use evenkeel_core::{BreakerRules, OpenFor, Over, Ratio, SlowRatio};

/// The trips and periods of a circuit breaker, in the words of the contract.
///
/// At least one trip has to be declared: [`consecutive`](Self::consecutive), [`failure_ratio`](Self::failure_ratio)
/// or [`slow_ratio`](Self::slow_ratio); all of them may be. The order of the settings does not matter.
///
/// ```
/// # use evenkeel::{Class, Engine, State};
/// # use std::time::Duration;
/// let guard = Engine::system()
///     .read::<u32>("g")
///     .breaker(|b| b.consecutive(5).failure_ratio(500_000, Duration::from_secs(10), 20).close_after(2))
///     .classify(|_: &()| Class::OUTAGE)
///     .build()?;
/// assert_eq!(guard.dependency().status().state, Some(State::Closed));
/// # Ok::<(), evenkeel::Problems>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BreakerBuilder(pub(crate) BreakerRules);

impl BreakerBuilder {
    /// Trips after this many failures in a row: 1 to 1 000 000. A success starts the count anew; what counts as
    /// neither, such as a refusal, does not.
    #[must_use]
    pub const fn consecutive(mut self, failures: u32) -> Self {
        self.0.consecutive = Some(failures);
        self
    }

    /// Trips when at least `failures_ppm` parts per million of `min_calls` or more calls in `window` failed.
    ///
    /// 1 to 1 000 000 parts, a window of 100 ms to 1 h, and 1 to 1 000 000 calls.
    #[must_use]
    pub const fn failure_ratio(self, failures_ppm: u32, window: Duration, min_calls: u32) -> Self {
        self.failure_ratio_over(failures_ppm, Over::Time(window), min_calls)
    }

    /// The same over the last so many calls, however long ago, with [`Over::Calls`]: 1 to 100 000. It is how a
    /// dependency is judged that is seldom called.
    ///
    /// ```
    /// # use evenkeel::{Class, Engine, Over};
    /// let exports = Engine::system()
    ///     .dependency("exports")
    ///     .breaker(|b| b.failure_ratio_over(500_000, Over::Calls(10), 4))
    ///     .build()?;
    /// # Ok::<(), evenkeel::Problems>(())
    /// ```
    #[must_use]
    pub const fn failure_ratio_over(mut self, failures_ppm: u32, window: Over, min_calls: u32) -> Self {
        self.0.ratio = Some(Ratio {
            failures_ppm,
            window,
            min_calls,
        });
        self
    }

    /// Trips when at least `slow_ppm` parts per million of `min_calls` or more calls in `window` were slow: took `after`
    /// or longer. A call that is still under way is slow at that moment, and a caller who has left by then changes nothing.
    ///
    /// `after` is 1 ms to 1 h and less than the timeout; the others as in [`failure_ratio`](Self::failure_ratio). A probe
    /// that is slow has failed.
    ///
    /// ```
    /// # use evenkeel::{Engine, Over};
    /// # use std::time::Duration;
    /// let search = Engine::system()
    ///     .dependency("search")
    ///     .timeout(Duration::from_secs(2))
    ///     .breaker(|b| b.slow_ratio(Duration::from_millis(500), 500_000, Over::Calls(20), 10))
    ///     .build()?;
    /// # Ok::<(), evenkeel::Problems>(())
    /// ```
    #[must_use]
    pub const fn slow_ratio(mut self, after: Duration, slow_ppm: u32, window: Over, min_calls: u32) -> Self {
        self.0.slow = Some(SlowRatio {
            after,
            slow_ppm,
            window,
            min_calls,
        });
        self
    }

    /// Stays open for `first`, doubled with each reopening in a row, `longest` at most, each ± 20 % or what
    /// [`jitter`](Self::jitter) says. Both 1 ms to a day; without this, 0.5 s and 1 s.
    #[must_use]
    pub const fn open_for(mut self, first: Duration, longest: Duration) -> Self {
        let jitter_ppm = match self.0.open_for {
            OpenFor::Timed { jitter_ppm, .. } => jitter_ppm,
            OpenFor::Manual => BreakerRules::JITTER_PPM,
        };
        self.0.open_for = OpenFor::Timed {
            first,
            longest,
            jitter_ppm,
        };
        self
    }

    /// Spreads the open periods by this many parts per million either way, instead of 20 %: 0 to 500 000. Has no
    /// effect together with [`open_until_probed`](Self::open_until_probed).
    #[must_use]
    pub const fn jitter(mut self, ppm: u32) -> Self {
        if let OpenFor::Timed { first, longest, .. } = self.0.open_for {
            self.0.open_for = OpenFor::Timed {
                first,
                longest,
                jitter_ppm: ppm,
            };
        }
        self
    }

    /// Stays open until somebody probes by hand, with [`Read::probe`](crate::Read::probe), or resets it.
    #[must_use]
    pub const fn open_until_probed(mut self) -> Self {
        self.0.open_for = OpenFor::Manual;
        self
    }

    /// Lets this many probes run at once: 1 to 1000, without this 1.
    #[must_use]
    pub const fn probes(mut self, probes: u32) -> Self {
        self.0.probes = probes;
        self
    }

    /// Closes after this many successful probes in a row: 1 to 1000, without this 1. It may be more than
    /// [`probes`](Self::probes): they then prove the recovery one after the other.
    #[must_use]
    pub const fn close_after(mut self, successes: u32) -> Self {
        self.0.close_after = successes;
        self
    }

    /// Counts a probe without a verdict as failed after this long, instead of after the timeout: 1 ms to 1 h, and not
    /// less than the timeout. Where no timeout is declared either it is 1 s.
    ///
    /// It says when the breaker stops waiting. A probe in the background ends then too; one that a caller waits for
    /// ends with that caller's limits.
    #[must_use]
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.0.lease = Some(lease);
        self
    }
}
