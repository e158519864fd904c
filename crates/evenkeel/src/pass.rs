//! Decides what a Pass guard offers: calls that are only forwarded, under the permits, breaker and holds of their
//! dependency.
//! It exists as a type of its own, so that a write can never get a rung, a second attempt or somebody else's answer:
//! there is no method to ask for one.
//! It refuses to time the work: only the work knows when its request has been handed over and the wait begins.

use std::fmt;

use evenkeel_core::{Class, Criticality, Problems};

use crate::{
    answer::{Answer, Unanswered},
    counts::Counts,
    dependency::Dependency,
    hold::Hold,
    read::{Classified, Classifier, Read, ReadBuilder, Unclassified},
    ticket::{Call, Permit},
};

/// A guard around calls that are only forwarded: writes, uploads, whatever nothing may stand in for. Clones share
/// everything.
///
/// Admission is that of its dependency: breaker, permits, resources, holds. A call that is refused never reaches it,
/// and a call that failed is not made again. There is no ladder, no snapshot and no joining.
///
/// ```
/// use evenkeel::{Class, Ending, Engine, Reason};
/// use std::io;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::system();
/// let shop = engine
///     .dependency("shop")
///     .breaker(|breaker| breaker.consecutive(1))
///     .build()?;
/// let orders = engine.pass::<u16>("orders", &shop).classify(|_: &io::Error| Class::OUTAGE).build()?;
///
/// let placed = orders.call(|_call, _permit| async { Ok(201) }).await?;
/// assert_eq!(*placed, 201);
/// let failed = orders.call(|_call, _permit| async { Err(io::ErrorKind::ConnectionReset.into()) }).await;
/// assert_eq!(failed.unwrap_err().reason, Some(Reason::DependencyFailed));
///
/// // The breaker is open now, and nothing is sent.
/// let refused = orders.call(|_call, _permit| async { Ok(201) }).await.unwrap_err();
/// assert_eq!((refused.ending, refused.reason), (Ending::Refused, Some(Reason::BreakerOpen)));
/// # Ok(()) }
/// ```
pub struct Pass<T, E>(Read<T, E>);

impl<T, E> Clone for Pass<T, E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T, E> fmt::Debug for Pass<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass")
            .field("name", &self.0.name())
            .finish_non_exhaustive()
    }
}

/// A Pass guard, being written.
#[must_use = "a guard does nothing until it is built"]
pub struct PassBuilder<T, C = Unclassified>(ReadBuilder<T, C>);

impl<T, C: fmt::Debug> fmt::Debug for PassBuilder<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PassBuilder").field(&self.0).finish()
    }
}

impl<T> PassBuilder<T> {
    /// Makes a builder of one that has a name and a dependency, and nothing else.
    pub(crate) fn new(bare: ReadBuilder<T>) -> Self {
        // Exact, so that no hold can choose among rungs that are not there.
        Self(bare.exact().untimed())
    }

    /// Classifies the dependency's errors, as [`ReadBuilder::classify`] does. Required, and fixes the error type.
    pub fn classify<E>(
        self,
        class: impl Fn(&E) -> Class + Send + Sync + 'static,
    ) -> PassBuilder<T, Classifier<E>> {
        PassBuilder(self.0.classify(class))
    }
}

impl<T, C> PassBuilder<T, C> {
    /// Says what a value means where it is not a plain success, such as a 404 or a 429: the breaker learns it, and
    /// the caller is given the value all the same.
    pub fn class_of(self, class: impl Fn(&T) -> Class + Send + Sync + 'static) -> Self {
        Self(self.0.class_of(class))
    }

    /// Says how much its calls matter where permits are scarce, see [`ReadBuilder::criticality`].
    pub fn criticality(self, criticality: Criticality) -> Self {
        Self(self.0.criticality(criticality))
    }

    /// Goes on with the counters and the hold of a guard of the same name, see [`ReadBuilder::succeeds`].
    pub fn succeeds<E>(self, before: &Pass<T, E>) -> Self {
        Self(self.0.succeeds(&before.0))
    }

    /// Checks the guard.
    ///
    /// # Errors
    /// When the name is none, or the dependency is one of another engine.
    pub fn build<E>(self) -> Result<Pass<T, E>, Problems>
    where
        T: Clone + Send + Sync + 'static,
        C: Classified<E>,
        E: Send + Sync + 'static,
    {
        self.0.build().map(Pass)
    }
}

impl<T, E> Pass<T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Makes one call, and at most one attempt.
    ///
    /// Neither a deadline nor the dependency's timeout ends it: the wait for an answer begins when the request has been
    /// handed over, and how long that takes may be the caller's doing, as with an upload. The work keeps the time, and
    /// says by its error whose fault it was that it ran out.
    ///
    /// The permit is the work's, as with [`Read::call_work`]: kept in the result it stays in use as long as that lives,
    /// and only then the attempt has its verdict and the call its ending. A caller who leaves ends the work; the call is
    /// then [`Ending::Abandoned`](crate::Ending::Abandoned), and the dependency is not blamed.
    ///
    /// # Errors
    /// [`Unanswered`], when the call was refused or failed.
    pub fn call<F, Fut>(&self, work: F) -> impl Future<Output = Result<Answer<T, E>, Unanswered<E>>>
    where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.0.call_alone((), [], None, work)
    }

    /// Makes one call like [`Pass::call`], for work in which the caller takes time of its own, such as an upload: how
    /// long it takes is no latency of the dependency, so ramp and learned limit do not measure it, and a caller who
    /// leaves late has not waited in vain.
    ///
    /// # Errors
    /// As [`Pass::call`].
    pub fn call_slow<F, Fut>(&self, work: F) -> impl Future<Output = Result<Answer<T, E>, Unanswered<E>>>
    where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.0.call_slow((), work)
    }

    /// Returns a handle on the same guard whose calls matter this much, see [`Read::with_criticality`].
    #[must_use]
    pub fn with_criticality(&self, criticality: Criticality) -> Self {
        Self(self.0.with_criticality(criticality))
    }

    /// Forces a mode on this guard: forced-open, forced-off or forced-closed. See [`Read::hold`].
    ///
    /// # Errors
    /// When author or reason are missing, or the mode chooses among rungs: there are none.
    pub fn hold(&self, hold: Hold) -> Result<(), Problems> {
        self.0.hold(hold)
    }

    /// Takes the hold off and returns it.
    pub fn release(&self, by: &str) -> Option<Hold> {
        self.0.release(by)
    }

    /// Returns the hold in force on this guard, if there is one.
    #[must_use]
    pub fn held(&self) -> Option<Hold> {
        self.0.held()
    }
}

impl<T, E> Pass<T, E> {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Returns the dependency that it asks.
    #[must_use]
    pub fn dependency(&self) -> &Dependency {
        self.0.dependency()
    }

    /// Returns how much its calls matter.
    #[must_use]
    pub const fn criticality(&self) -> Criticality {
        self.0.criticality()
    }

    /// Counts a call that was not begun because its protect step could not be decided, see
    /// [`Read::count_unprotected`].
    pub fn count_unprotected(&self) {
        self.0.count_unprotected();
    }

    /// Returns what its calls came to.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.0.counts()
    }
}
