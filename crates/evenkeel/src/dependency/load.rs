//! Decides how a contract with a dependency says how much it bears: after an outage, at once,
//! in a queue, asked again, given up.
//! It exists apart from the rest of the contract because these are about many calls at once, not about one.
//! It refuses to check them; the engine does, with the rest.

use std::time::Duration;

use evenkeel_core::{LimitRules, QueueRules, RampRules, RetryRules};

use super::DependencyBuilder;

impl DependencyBuilder {
    /// Lets traffic back stage by stage after the breaker has closed: these shares of calls and permits in percent,
    /// rising, the last one 100. [`DependencyBuilder::ramp_rules`] sets the rest.
    #[must_use]
    pub fn ramp(self, stages: impl Into<Vec<u8>>) -> Self {
        self.ramp_rules(RampRules {
            stages: stages.into(),
            ..RampRules::default()
        })
    }

    /// Lets traffic back by these rules after the breaker has closed.
    #[must_use]
    pub fn ramp_rules(mut self, rules: RampRules) -> Self {
        self.draft.ramp = Some(rules);
        self
    }

    /// Learns how many attempts the dependency bears: no limit until a first sign of overload, then one that follows
    /// its latency. An attempt that ran into its limit is counted for a while longer, see [`LimitRules::linger`].
    ///
    /// ```
    /// # use evenkeel::{Engine, LimitRules};
    /// # use std::time::Duration;
    /// let stock = Engine::system()
    ///     .dependency("stock")
    ///     .timeout(Duration::from_secs(1))
    ///     .breaker(|breaker| breaker.consecutive(5))
    ///     .ramp([5, 20, 50, 100])
    ///     .learned_limit(LimitRules::DEFAULT)
    ///     .build()?;
    /// assert_eq!(stock.status().ramp, None);
    /// # Ok::<(), evenkeel::Problems>(())
    /// ```
    #[must_use]
    pub const fn learned_limit(mut self, rules: LimitRules) -> Self {
        self.draft.learn = Some(rules);
        self
    }

    /// Begins no more attempts while this many, 1 to 1 000 000, ran into their limit and may still be worked on: a timeout
    /// ends the wait, and most servers finish what they began. Each counts for one timeout more.
    ///
    /// With a [`learned_limit`](Self::learned_limit) such attempts count against that too.
    #[must_use]
    pub const fn abandoned(mut self, most: u32) -> Self {
        self.draft.abandoned = Some(most);
        self
    }

    /// Lets up to `length` calls, 1 to 100 000, wait for a permit, each for `longest_wait` at most, 1 ms to 1 min, and
    /// never past its own deadline. Without this a call that finds no permit is refused at once.
    ///
    /// Those who wait hold nothing. They are let in by how much they matter, and among equals by when they came; one
    /// whose time has run out is never sent. An open breaker, the ramp or a hold refuses them without waiting.
    ///
    /// ```
    /// # use evenkeel::Engine;
    /// # use std::time::Duration;
    /// let stock = Engine::system()
    ///     .dependency("stock")
    ///     .concurrency(20)
    ///     .queue(64, Duration::from_millis(50))
    ///     .build()?;
    /// assert_eq!(stock.status().waiting, 0);
    /// # Ok::<(), evenkeel::Problems>(())
    /// ```
    #[must_use]
    pub const fn queue(mut self, length: u32, longest_wait: Duration) -> Self {
        self.draft.queue = Some(QueueRules { length, longest_wait });
        self
    }

    /// Asks once more after an outage, by these rules: only where the work was handed in as repeatable, see
    /// [`Read::call_repeatable`](crate::Read::call_repeatable).
    ///
    /// ```
    /// # use evenkeel::{Class, Engine, RetryRules};
    /// # use std::{sync::atomic::{AtomicU32, Ordering}, time::Duration};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::system();
    /// let rules = RetryRules { pause: Duration::from_millis(1), ..RetryRules::DEFAULT };
    /// let stock = engine.dependency("stock").retry(rules).build()?;
    /// let guard = engine.read::<u32>("stock").from(&stock).classify(|_: &()| Class::OUTAGE).build()?;
    ///
    /// let answer = guard
    ///     .call_repeatable((), "42", {
    ///         let asked = AtomicU32::new(0);
    ///         move |_| std::future::ready(if asked.fetch_add(1, Ordering::Relaxed) == 0 { Err(()) } else { Ok(3) })
    ///     })
    ///     .await;
    /// assert_eq!(*answer.expect("the second attempt answers"), 3);
    /// assert_eq!((stock.attempts_total(), stock.retries().made), (2, 1));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn retry(mut self, rules: RetryRules) -> Self {
        self.draft.retry = Some(rules);
        self
    }
}
