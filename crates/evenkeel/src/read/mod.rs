//! Decides what a Read guard offers: calls, probes, seeds, holds and counters.
//! It exists as the face of the library: data that may be reduced, by a contract, with every answer labelled.
//! It refuses to serve anything that the contract does not list.

mod again;
mod alternate;
mod apart;
mod attempt;
mod build_refresh;
mod builder;
mod draws;
mod exercise;
mod finish;
mod held;
mod look;
mod missing;
mod owned;
mod refresh;
mod repeat;
mod running;
mod seat;
mod shared;
mod slow;
mod succession;
mod terms;

use std::{fmt, marker::PhantomData, pin::pin, sync::Arc, time::SystemTime};

use evenkeel_core::{Asker, Criticality, Mono, Problems, ReadContract, Reason, Refusal, Step};

pub use alternate::AlternateBuilder;
pub use builder::{Classified, Classifier, LadderRung, ReadBuilder, Unclassified, default, stale};
pub use held::{Bring, Held, Moment, Together};
pub use terms::Terms;

use crate::{
    answer::{Answer, Unanswered},
    clock::wall_nanos,
    counts::Counts,
    dependency::Dependency,
    event::EventKind,
    hold::Hold,
    key::{self, EmptyScopePart, Key, Scope},
    lent::Lent,
    memory::{Entry, FUTURE, Memory, Put},
    parked::park,
    purge::Concerns,
    ticket::{Call, Permit},
};
use again::Repeat;
use alternate::Alternate;
use running::Running;
use shared::Inner;

/// A guard around calls that read data which may be reduced. Clones share everything.
///
/// `T` is the data, `E` the error of the dependency, `S` the scope: whose data it is. All three stand in the type, so
/// that a program can hold its guards in a struct of its own:
///
/// ```
/// use evenkeel::{Answer, Engine, Problems, Read, Unanswered, classify, stale};
/// use std::{io, time::Duration};
///
/// #[derive(Clone)] // clones share breaker, permits, snapshots and counters
/// struct Shop {
///     stock: Read<u32, io::Error, (&'static str,)>,
/// }
///
/// impl Shop {
///     fn new(engine: &Engine) -> Result<Self, Problems> {
///         let stock = engine
///             .read("stock")
///             .scope()
///             .timeout(Duration::from_millis(250))
///             .classify(classify::io)
///             .ladder([stale(Duration::from_secs(60))])
///             .build()?;
///         Ok(Self { stock })
///     }
///
///     async fn stock(&self, tenant: &'static str, item: &str) -> Result<Answer<u32, io::Error>, Unanswered<io::Error>> {
///         self.stock.call((tenant,), item, |_| ask(item)).await
///     }
/// }
///
/// async fn ask(item: &str) -> io::Result<u32> {
///     // in earnest, a client of your own
/// #   if item == "42" { Ok(3) } else { Err(io::ErrorKind::ConnectionRefused.into()) }
/// }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let shop = Shop::new(&Engine::system())?;
/// assert_eq!(*shop.stock("acme", "42").await?, 3);
/// # Ok(()) }
/// ```
pub struct Read<T, E, S = ()> {
    inner: Arc<Inner<T, E>>,
    /// How much the calls of this handle matter.
    criticality: Criticality,
    /// When its calls arrived, where that was before they are made.
    arrived: Option<Mono>,
    /// When its calls end at the latest, beside their deadline.
    ends: Option<Mono>,
    alternate: Option<Arc<Alternate<T, E, S>>>,
    scope: PhantomData<fn(S)>,
}

impl<T, E, S> Clone for Read<T, E, S> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            criticality: self.criticality,
            arrived: self.arrived,
            ends: self.ends,
            alternate: self.alternate.clone(),
            scope: PhantomData,
        }
    }
}

impl<T, E, S> fmt::Debug for Read<T, E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Read")
            .field("contract", &self.inner.contract)
            .finish_non_exhaustive()
    }
}

/// What became of a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeded {
    /// It is the snapshot now.
    Kept,
    /// What is held was observed later, or has a known time where this one has none.
    Superseded,
    /// It is larger than the store takes.
    TooBig,
}

/// Tells whether a value that is held may be given to this caller. See [`Read::call_work`].
pub type Usable<'u, T> = Option<&'u (dyn Fn(&T) -> bool + Send + Sync)>;

impl<T, E, S> Read<T, E, S>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: Scope,
{
    /// Makes one call: asks the dependency by `work`, at most once, or answers from the ladder.
    ///
    /// `work` may borrow and need not be `Send`; it is dropped where it stands when its time is up or the caller
    /// leaves. A call of this kind never joins another; when the breaker is due for a probe, or a copy for a refresh that
    /// nobody else has begun, this call makes it and waits for it; see [`Read::call_owned`] for the other kind.
    ///
    /// `key` says what is asked for, within this guard and scope; any bytes, also none.
    ///
    /// With the system's clock a timeout or deadline needs tokio's timer. A call outside a tokio runtime that has to
    /// wait under such a limit fails with [`Misuse::NoTimer`](crate::Misuse::NoTimer): it could hang for good. In a
    /// runtime that was built without its timer tokio panics; build it with `enable_time` or `enable_all`.
    ///
    /// # Errors
    /// [`Unanswered`], when no rung could answer or the dependency's own error is passed on.
    pub async fn call<'a, F, Fut>(
        &'a self,
        scope: S,
        key: impl AsRef<[u8]>,
        work: F,
    ) -> Result<Answer<T, E>, Unanswered<E>>
    where
        F: FnOnce(Call<'a>) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        self.borrowed(&scope, key.as_ref(), Asker::Traffic, work).await
    }

    /// Makes one attempt as a person's probe, whatever the open period says; with the breaker closed it is an
    /// ordinary call. A success closes the breaker and replaces the snapshot; a failure leaves it open.
    ///
    /// It asks even if a fresh copy is at hand, but not beyond the number of probes that may run at once. Under a
    /// hold that keeps the dependency from being asked there is no probe either; under forced-closed it is an
    /// ordinary call.
    ///
    /// # Errors
    /// As [`Read::call`].
    pub async fn probe<'a, F, Fut>(
        &'a self,
        scope: S,
        key: impl AsRef<[u8]>,
        work: F,
    ) -> Result<Answer<T, E>, Unanswered<E>>
    where
        F: FnOnce(Call<'a>) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        self.borrowed(&scope, key.as_ref(), Asker::Person, work).await
    }

    async fn borrowed<'a, F, Fut>(
        &'a self,
        scope: &S,
        key: &[u8],
        asker: Asker,
        work: F,
    ) -> Result<Answer<T, E>, Unanswered<E>>
    where
        F: FnOnce(Call<'a>) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let mut place = Key::new();
        let asked_for = key;
        let key = match self.inner.key_of(&mut place, scope, asked_for) {
            Ok(key) => key,
            Err(misuse) => return Err(self.inner.misused(misuse)),
        };
        let spare = self.alternate.as_deref();
        let ask = spare.map(|spare| spare.work(scope, asked_for));
        let (mut running, first) = Running::begin(&self.inner, key, None, asker, self.criticality);
        running.arrived(self.arrived);
        running.ends_by(self.ends);
        running.spare = spare.zip(ask.as_ref()).map(|(spare, ask)| spare.for_call(ask));
        match running.start(first) {
            Step::Admit => {}
            Step::Refresh => {
                if let Some(end) = running.leave_refresh_to_others() {
                    return end;
                }
            }
            end @ Step::Serve(..) => return running.finish(end),
            rest @ (Step::Look | Step::Attempt(_) | Step::Alternate | Step::Refuse | Step::Fail) => {
                return running.conclude(rest).await;
            }
        }
        if let Some(until) = running.cooling().filter(|_| asker == Asker::Traffic) {
            let rest = running.refused(Refusal {
                reason: Reason::CoolDown,
                retry_at: Some(until),
            });
            return running.conclude(rest).await;
        }
        let next = match running.seat(Lent::Borrowed(&self.inner.dependency.0)).await {
            Err(why) => Err(running.unseated(why)),
            Ok(mut ticket) => {
                let attempted = {
                    let (key, parked) = running.parts();
                    let work = |call, permit| async move {
                        let result = work(call).await;
                        drop(permit);
                        result
                    };
                    park(parked, pin!(self.inner.attempt(key, &mut ticket, work))).await
                };
                running.attempted(attempted)
            }
        };
        match next {
            Ok(end) => end,
            Err(rest) => running.conclude(rest).await,
        }
    }

    /// Makes one call by work that owns what it needs, so that it can go on without its caller: a due probe then
    /// runs in the background while a servable rung answers, so do refreshes, and with `coalesce` calls for one key
    /// share it.
    ///
    /// Must be called within a tokio runtime for that; elsewhere it is an ordinary call.
    ///
    /// # Errors
    /// As [`Read::call`].
    pub async fn call_owned<F, Fut>(
        &self,
        scope: S,
        key: impl AsRef<[u8]>,
        work: F,
    ) -> Result<Answer<T, E>, Unanswered<E>>
    where
        F: FnOnce(Call<'static>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let work = |call, permit| async move {
            let result = work(call).await;
            drop(permit);
            result
        };
        self.worked(scope, key, None, Manner::Own, None, work).await
    }

    /// Makes one call like [`Read::call_owned`], for work that outlives its result, such as a streamed body.
    ///
    /// The permit is the work's: dropping it says that the work has ended, and putting it into the result keeps
    /// it in use for as long as that lives. A result that holds its permit must not be kept (see
    /// [`ReadBuilder::terms`]) nor shared (see [`ReadBuilder::share_if`]), or the copy holds it too.
    ///
    /// While the permit lives the attempt has no verdict and the call no ending, and a snapshot that the result
    /// supersedes stays: all that is told when the permit goes, see [`Permit`]. A result that is a failure already is
    /// told at once. A probe whose work goes on when its lease ends is judged by its result; and so is one in the
    /// background, whose result nobody follows.
    ///
    /// `usable` says whether a value that was not made for this caller may be given to it: where it says no a
    /// snapshot is skipped as forbidden, and a shared result is not shared with this caller, which asks by itself.
    /// A caller who is known beforehand to share nothing calls [`Read::call_alone`].
    ///
    /// # Errors
    /// As [`Read::call`].
    pub fn call_work<F, Fut>(
        &self,
        scope: S,
        key: impl AsRef<[u8]>,
        usable: Usable<'_, T>,
        work: F,
    ) -> impl Future<Output = Result<Answer<T, E>, Unanswered<E>>>
    where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.worked(scope, key, usable, Manner::Outlives, None, work)
    }

    /// Makes one call like [`Read::call_work`], for work whose result is for this caller alone, such as an answer to
    /// somebody's credentials: it joins no attempt under way, and nobody joins it; nor is a copy refreshed by it.
    ///
    /// With [`coalesce`](ReadBuilder::coalesce) every other call waits for the attempt under way before it learns that
    /// it may not have the result, and one result that may not be shared makes the next calls for its key go alone.
    ///
    /// # Errors
    /// As [`Read::call`].
    pub fn call_alone<F, Fut>(
        &self,
        scope: S,
        key: impl AsRef<[u8]>,
        usable: Usable<'_, T>,
        work: F,
    ) -> impl Future<Output = Result<Answer<T, E>, Unanswered<E>>>
    where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.worked(scope, key, usable, Manner::Alone, None, work)
    }

    /// The same, for work in which its caller takes time of its own.
    pub(crate) fn call_slow<F, Fut>(
        &self,
        scope: S,
        work: F,
    ) -> impl Future<Output = Result<Answer<T, E>, Unanswered<E>>>
    where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.worked(scope, [], None, Manner::Slow, None, work)
    }

    async fn worked<F, Fut>(
        &self,
        scope: S,
        key: impl AsRef<[u8]>,
        usable: Usable<'_, T>,
        manner: Manner,
        again: Option<Repeat<T, E>>,
        work: F,
    ) -> Result<Answer<T, E>, Unanswered<E>>
    where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let mut place = Key::new();
        let asked_for = key.as_ref();
        let key = match self.inner.key_of(&mut place, &scope, asked_for) {
            Ok(key) => key,
            Err(misuse) => return Err(self.inner.misused(misuse)),
        };
        let spare = self.alternate.as_deref();
        let ask = spare.map(|spare| spare.work(&scope, asked_for));
        let (mut running, first) = Running::begin(&self.inner, key, usable, Asker::Traffic, self.criticality);
        running.arrived(self.arrived);
        running.ends_by(self.ends);
        running.spare = spare.zip(ask.as_ref()).map(|(spare, ask)| spare.for_call(ask));
        running.may_outlive = matches!(manner, Manner::Outlives | Manner::Alone | Manner::Slow);
        running.is_slow = matches!(manner, Manner::Slow);
        let may_join = matches!(manner, Manner::Own | Manner::Outlives);
        running.again = again;
        running.owned(first, may_join, work).await
    }

    /// Puts a snapshot in by hand, with the time at which it was observed. Without a time, or with one ahead of the
    /// wall clock, it is held but never served. What is held and was observed later stays.
    ///
    /// # Errors
    /// When a part of the scope is empty.
    #[expect(clippy::needless_pass_by_value, reason = "scopes are given as in a call")]
    pub fn seed(
        &self,
        scope: S,
        key: impl AsRef<[u8]>,
        value: T,
        observed: Option<SystemTime>,
    ) -> Result<Seeded, EmptyScopePart> {
        let key = key::write(&self.inner.key, &scope, key.as_ref())?;
        let observed_wall = observed.map(|time| evenkeel_core::Wall::from_nanos(wall_nanos(time)));
        let now = self.inner.dependency.0.engine.now();
        let ahead = |at: Mono| if at > now.mono { FUTURE } else { at };
        let entry = Entry {
            observed: observed_wall.map(|wall| ahead(now.mono_of(wall))),
            observed_wall,
            ..Entry::default()
        };
        let bytes = (self.inner.weigh)(&value);
        Ok(match self.inner.memory.put(&key, value, bytes, entry) {
            Put::Kept => Seeded::Kept,
            Put::Superseded => Seeded::Superseded,
            Put::TooBig => Seeded::TooBig,
        })
    }

    /// Takes the snapshot for this key away, for good: a call that began earlier does not bring it back, and
    /// later calls do not join one that is under way. Those who wait for it still get its answer.
    ///
    /// # Errors
    /// When a part of the scope is empty.
    #[expect(clippy::needless_pass_by_value, reason = "scopes are given as in a call")]
    pub fn forget(&self, scope: S, key: impl AsRef<[u8]>) -> Result<(), EmptyScopePart> {
        let key = key::write(&self.inner.key, &scope, key.as_ref())?;
        let now = self.inner.dependency.0.engine.now().mono;
        self.inner.memory.retire(&key, now);
        if let Some(flights) = &self.inner.flights {
            flights.detach(&key);
        }
        Ok(())
    }

    /// Has calls for the keys that are concerned not join an attempt that is under way: what it brings was asked for
    /// before a [purge](Memory::purge). Those who wait for it still get its answer.
    pub fn detach(&self, concerns: &Concerns) {
        if let Some(flights) = &self.inner.flights {
            flights.detach_all(concerns);
        }
    }

    /// Forces a mode on this guard, replacing any other hold on it. To steer every guard of one dependency, use
    /// [`Dependency::hold`]; where both are held the stricter mode is in force.
    ///
    /// # Errors
    /// When author or reason are missing, or an `exact` guard would be made to serve old or default data.
    pub fn hold(&self, hold: Hold) -> Result<(), Problems> {
        let mut problems = hold.check().err().unwrap_or_default();
        if !hold.mode.suits(&self.inner.contract) {
            problems.add(
                "mode",
                &format!("{} on a guard that is exact", hold.mode.as_str()),
                "forced-open, forced-off, forced-closed",
                "choose one of these",
            );
        }
        problems.or(())?;
        let Hold { mode, by, why, lasts } = hold.clone();
        self.inner
            .hold
            .put(hold, self.inner.dependency.0.engine.now().mono);
        self.inner.tell(EventKind::Held { mode, by, why, lasts });
        self.inner.dependency.0.call_all();
        Ok(())
    }

    /// Takes the hold off and returns it.
    pub fn release(&self, by: &str) -> Option<Hold> {
        let hold = self.inner.hold.take()?;
        self.inner.tell(EventKind::Released {
            mode: hold.mode,
            by: Some(by.to_owned()),
        });
        Some(hold)
    }

    /// Returns the hold in force on this guard, if there is one. One on its dependency is [`Dependency::held`].
    #[must_use]
    pub fn held(&self) -> Option<Hold> {
        self.inner.held(self.inner.dependency.0.engine.now().mono)?;
        self.inner.hold.current()
    }
}

impl<T, E, S> Read<T, E, S> {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the checked contract.
    #[must_use]
    pub fn contract(&self) -> &ReadContract {
        &self.inner.contract
    }

    /// Returns a handle on the same guard whose calls matter this much where permits are scarce.
    ///
    /// ```
    /// # use evenkeel::{Class, Criticality, Engine};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let guard = Engine::system().read::<u32>("stock").concurrency(10).classify(|_: &std::fmt::Error| Class::OUTAGE).build()?;
    /// let prefetch = guard.with_criticality(Criticality::Sheddable);
    /// assert_eq!(*prefetch.call((), "42", |_| async { Ok(3) }).await?, 3);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn with_criticality(&self, criticality: Criticality) -> Self {
        Self {
            criticality,
            ..self.clone()
        }
    }

    /// Returns a handle on the same guard whose calls arrived at this time: what came before them, such as a protect step,
    /// has spent from their deadline too. A time ahead of the clock is as good as none.
    ///
    /// ```
    /// # use evenkeel::{Class, Engine, ManualClock, Reason};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let engine = Engine::new(clock.clone(), 7);
    /// let guard = engine
    ///     .read::<u32>("stock")
    ///     .deadline(Duration::from_secs(1))
    ///     .classify(|_: &std::fmt::Error| Class::OUTAGE)
    ///     .build()?;
    /// let arrived = engine.now().mono;
    /// clock.advance(Duration::from_millis(900)); // a protect step, say
    /// let arrived = guard.arrived_at(arrived);
    /// let left = arrived.call((), "42", |call| async move { Ok(call.remaining().as_millis() as u32) }).await?;
    /// assert_eq!(*left, 100);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn arrived_at(&self, arrived: Mono) -> Self {
        Self {
            arrived: Some(arrived),
            ..self.clone()
        }
    }

    /// Returns a handle on the same guard whose calls end by this time at the latest, because somebody in front waits no
    /// longer. They never end later than by their deadline. One whose time has passed already is not sent on; what is kept
    /// may still answer it, else it is refused with [`Reason::TimedOut`].
    #[must_use]
    pub fn ending_by(&self, at: Mono) -> Self {
        Self {
            ends: Some(at),
            ..self.clone()
        }
    }

    /// Counts a call that was not begun because its protect step could not be decided: refused, by
    /// [`Reason::ProtectionUnavailable`].
    pub fn count_unprotected(&self) {
        let reason = Some(Reason::ProtectionUnavailable);
        self.inner.counters.ended(evenkeel_core::Ending::Refused, reason);
    }

    /// Returns how much its calls matter.
    #[must_use]
    pub const fn criticality(&self) -> Criticality {
        self.criticality
    }

    /// Returns the dependency that it asks.
    #[must_use]
    pub fn dependency(&self) -> &Dependency {
        &self.inner.dependency
    }

    /// Returns the store of its snapshots.
    #[must_use]
    pub fn memory(&self) -> &Memory<T> {
        &self.inner.memory
    }

    /// Returns what its calls came to.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.inner.counters.read()
    }

    /// Returns how many attempts are being shared right now, and how many keys are remembered as not shareable.
    #[must_use]
    pub fn flights(&self) -> (usize, usize) {
        self.inner
            .flights
            .as_ref()
            .map_or((0, 0), |flights| flights.sizes())
    }
}

/// How work that owns what it needs is called.
#[derive(Clone, Copy, Debug)]
enum Manner {
    /// It is over with its result, and may be shared.
    Own,
    /// It may outlive its result, and may be shared.
    Outlives,
    /// It may outlive its result, and is one caller's own.
    Alone,
    /// The same, and how long it takes says nothing about the dependency.
    Slow,
}
