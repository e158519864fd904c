//! Decides how a Read contract says in code what copies may do before anybody is asked.
//! It exists apart from the rest of the builder because all of it is about copies and their refreshes.
//! It refuses nothing by itself; what contradicts the rest is told when the guard is built.

use std::time::Duration;

use evenkeel_core::{DependencyContract, Problems, ReadContract};

use crate::read::ReadBuilder;

impl<T, C, S> ReadBuilder<T, C, S> {
    /// Serves a copy that is past its lifetime by at most this at once, as stale, while one refresh for its key runs: 1 ms
    /// to 365 days. Goes together with [`fresh_for`](Self::fresh_for) (or [`own_lifetimes`](Self::own_lifetimes)) and a
    /// stale rung, whose limit holds here too.
    ///
    /// The refresh belongs to the runtime: its caller may leave at once. It is admitted like any attempt, as the probe
    /// when one is due, and is limited by the timeout (else the deadline, else 30 s). Where it fails, the copy and its
    /// window stay as they are, and the next caller tries again. Only work that owns what it needs can be left alone:
    /// [`Read::call`](crate::Read::call) asks by itself, unless a refresh is under way.
    ///
    /// ```
    /// # use evenkeel::{Class, Engine, ManualClock, Reason, Rung, stale};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let guard = Engine::new(clock.clone(), 7)
    ///     .read::<u32>("stock")
    ///     .classify(|_: &std::fmt::Error| Class::OUTAGE)
    ///     .fresh_for(Duration::from_secs(10))
    ///     .stale_while_revalidate(Duration::from_secs(30))
    ///     .ladder([stale(Duration::from_secs(3600))])
    ///     .build()?;
    /// guard.call_owned((), "42", |_| async { Ok(3) }).await?;
    /// clock.advance(Duration::from_secs(11));
    ///
    /// let old = guard.call_owned((), "42", |_| async { Ok(4) }).await?;
    /// assert_eq!((*old, old.rung, old.reason), (3, Rung::Stale, Some(Reason::Revalidating)));
    /// tokio::task::yield_now().await; // the refresh runs
    /// let new = guard.call_owned((), "42", |_| async { Ok(5) }).await?;
    /// assert_eq!((*new, new.rung), (4, Rung::Fresh));
    /// # Ok(()) }
    /// ```
    pub fn stale_while_revalidate(mut self, window: Duration) -> Self {
        self.draft.refresh.stale_while_revalidate = Some(window);
        self
    }

    /// Answers a call that has taken this long from a copy that the stale rung may serve, with
    /// [`Reason::Slow`](crate::Reason::Slow): 1 ms to 1 h, shorter than timeout and deadline, of which one has to be
    /// declared. Without such a copy the call waits on.
    ///
    /// A call that still waits for a permit then leaves the queue, with
    /// [`Reason::QueueExpired`](crate::Reason::QueueExpired): nothing was asked for it. Else the attempt goes on until its own limit, keeps its permit as long as it lasts, and its answer becomes the snapshot.
    /// Only work that owns what it needs can go on: [`Read::call`](crate::Read::call) waits.
    ///
    /// ```
    /// # use evenkeel::{Class, Engine, ManualClock, Reason, Rung, stale};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let guard = Engine::new(clock.clone(), 7)
    ///     .read::<u32>("stock")
    ///     .timeout(Duration::from_secs(2))
    ///     .soft_timeout(Duration::from_millis(200))
    ///     .classify(|_: &std::fmt::Error| Class::OUTAGE)
    ///     .ladder([stale(Duration::from_secs(60))])
    ///     .build()?;
    /// guard.call_owned((), "42", |_| async { Ok(3) }).await?;
    ///
    /// let slow = clock.sleep(Duration::from_secs(1));
    /// let call = tokio::spawn({
    ///     let guard = guard.clone();
    ///     async move { guard.call_owned((), "42", |_| async { slow.await; Ok(4) }).await }
    /// });
    /// tokio::task::yield_now().await; // it waits
    /// clock.advance(Duration::from_millis(200));
    /// let old = call.await??;
    /// assert_eq!((*old, old.rung, old.reason), (3, Rung::Stale, Some(Reason::Slow)));
    /// # Ok(()) }
    /// ```
    pub fn soft_timeout(mut self, soft: Duration) -> Self {
        self.draft.refresh.soft_timeout = Some(soft);
        self
    }

    /// Refreshes copies before their lifetime ends, by chance: the nearer the end and the longer the attempt took that
    /// brought the copy, the likelier a hit starts the refresh (XFetch). The hit itself is served fresh at once. Goes
    /// together with [`fresh_for`](Self::fresh_for) or [`own_lifetimes`](Self::own_lifetimes); one refresh per key at a
    /// time, by work that owns what it needs, as with [`stale_while_revalidate`](Self::stale_while_revalidate).
    pub fn refresh_ahead(mut self) -> Self {
        self.draft.refresh.refresh_ahead = true;
        self
    }

    /// Shortens the lifetime of each copy by up to this many parts per million, evenly drawn, so that copies which came
    /// together do not run out together: 0 to 500 000, without this 0.
    pub fn jitter(mut self, ppm: u32) -> Self {
        self.draft.refresh.jitter_ppm = ppm;
        self
    }

    /// Has nobody ask for a key for this long after a shared attempt for it, or a refresh, has ended in an outage: 1 ms to
    /// 1 h, without this not at all. Calls then take the ladder with [`Reason::CoolDown`](crate::Reason::CoolDown), or as
    /// [`when_busy`](Self::when_busy) says. Goes together with [`coalesce`](crate::ReadBuilder::coalesce) or something that
    /// refreshes. At most 10 000 keys cool down at once; others are asked for at once.
    ///
    /// A person's [`probe`](crate::Read::probe) and [`call_alone`](crate::Read::call_alone) ask all the same.
    pub fn cool_down(mut self, span: Duration) -> Self {
        self.draft.refresh.cool_down = Some(span);
        self
    }

    /// Lets work that runs into the timeout (or deadline) go on for up to this long, in the background, and keeps the answer
    /// that it brings: 1 ms to 1 h. Without this it is dropped where it stands.
    ///
    /// To its caller and to the breaker the attempt has timed out either way. Its permit stays in use until the work has
    /// ended, so what goes on counts against [`concurrency`](Self::concurrency) (or the learned limit), of which one has
    /// to be declared: at that cap new calls are refused. It is not retried. Only work that owns what it needs can go on;
    /// what a caller drops who leaves before the limit is dropped. [`Counts::refreshes`](crate::Counts::refreshes) says
    /// what came of it.
    pub fn finish_within(mut self, span: Duration) -> Self {
        self.draft.refresh.finish_within = Some(span);
        self
    }

    /// Looks for a copy before asking, although no [`fresh_for`](Self::fresh_for) is declared: the data brings its own
    /// lifetimes, by [`Terms::lifetime`](crate::Terms::lifetime), as HTTP responses do. A copy that brings none asks.
    pub fn own_lifetimes(mut self) -> Self {
        self.draft.refresh.own_lifetimes = true;
        self
    }
}

/// Adds a problem for each setting that only shows as one beside the contract with the dependency.
pub(super) fn check_beside(read: &ReadContract, dependency: &DependencyContract, problems: &mut Problems) {
    let is_capped = dependency.concurrency().is_some() || dependency.learn().is_some();
    let is_timed = dependency.timeout().is_some() || read.deadline().is_some();
    if read.finish_within().is_some() && !(is_capped && is_timed) {
        problems.add(
            "read.finish_within",
            "set without a limit that ends attempts, or without one of how many there are",
            "beside a timeout or deadline, and `concurrency` or a learned limit",
            "declare them: what goes on counts as in flight, and has to have a cap",
        );
    }
    let Some(soft) = read.soft_timeout() else { return };
    match dependency.timeout() {
        Some(timeout) if timeout <= soft => problems.add(
            "read.soft_timeout",
            &format!("{soft:?}, and the timeout ends the attempt after {timeout:?}"),
            "shorter than the timeout",
            "lower it, or raise the timeout: as it stands it would never end a wait",
        ),
        None if read.deadline().is_none() => problems.add(
            "read.soft_timeout",
            "set without a timeout or deadline",
            "beside a timeout, or a deadline",
            "declare `timeout`: an attempt that nobody waits for has to end some time",
        ),
        Some(_) | None => {}
    }
}
