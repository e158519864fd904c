//! Decides how a call is driven whose caller keeps copies itself, such as an HTTP cache with many copies for one key.
//! It exists so that such a caller has the same breaker, permits, deadline, holds, ladder and counters as any other.
//! It refuses to look into such copies: it asks for one when a rung wants it, and judges it by its facts alone.

use std::{fmt, sync::Arc};

use evenkeel_core::{Asker, Facts, Now, Step, Wall};

use super::{
    Read, Usable,
    again::{Repeat, Working},
    running::Running,
};
use crate::{
    answer::{Answer, Unanswered},
    key::{self, Key, Scope},
    ticket::{Call, Permit},
};

/// A copy that the caller keeps.
#[derive(Clone, Debug)]
pub struct Held<T> {
    /// What is answered with.
    pub value: T,
    /// When it was observed, and what forbids or limits its use at this moment.
    pub facts: Facts,
    /// When it was observed by the wall clock, for display.
    pub observed_wall: Option<Wall>,
}

/// When a copy is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the dependency is asked: its lifetime and window say what it may do.
    BeforeAsking,
    /// After it could not be asked, or asking has failed: the copy is for the stale rung.
    AfterFailure,
}

/// Brings the caller's copy, at the time of the decision.
pub type Bring<'b, T> = &'b (dyn Fn(Moment, Now) -> Option<Held<T>> + Send + Sync);

/// With whom a call shares an attempt. The key it writes says everything that tells whose data is meant.
pub enum Together<'b> {
    /// With others of the same key.
    Shared(&'b (dyn Fn() -> Vec<u8> + Send + Sync)),
    /// With nobody: its result is this caller's own. A refresh for its key may be under way all the same.
    Alone(&'b (dyn Fn() -> Vec<u8> + Send + Sync)),
}

impl fmt::Debug for Together<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shared(_) => "Shared",
            Self::Alone(_) => "Alone",
        })
    }
}

impl<T, E, S> Read<T, E, S>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: Scope,
{
    /// Makes one call like [`Read::call_repeatable_work`](Self::call_repeatable_work) for a caller who keeps copies
    /// itself: the guard's own store is neither read nor written.
    ///
    /// The contract still says what may be served. It needs
    /// [`own_lifetimes`](crate::ReadBuilder::own_lifetimes) for copies that are to be served without asking, and a
    /// stale rung for those that stand in; the facts that `bring` gives narrow both.
    ///
    /// `scope` and `asked_for` are what an [alternate](crate::ReadBuilder::alternate) is told; they are no part of the
    /// key that `together` writes.
    ///
    /// # Errors
    /// As [`Read::call`].
    pub async fn call_held<F, Fut>(
        &self,
        scope: S,
        asked_for: impl AsRef<[u8]>,
        bring: Bring<'_, T>,
        together: Together<'_>,
        usable: Usable<'_, T>,
        work: F,
    ) -> Result<Answer<T, E>, Unanswered<E>>
    where
        F: Fn(Call<'static>, Option<Permit<'static>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        if let Err(misuse) = key::check(&scope) {
            return Err(self.inner.misused(misuse));
        }
        let key;
        let spare = self.alternate.as_deref();
        let ask = spare.map(|spare| spare.work(&scope, asked_for.as_ref()));
        let (mut running, first) =
            Running::begin(&self.inner, None, usable, Asker::Traffic, self.criticality);
        running.arrived(self.arrived);
        running.ends_by(self.ends);
        running.spare = spare.zip(ask.as_ref()).map(|(spare, ask)| spare.for_call(ask));
        running.bring = Some(bring);
        running.may_outlive = true;
        let step = running.start(first);
        if !matches!(step, Step::Admit | Step::Refresh) {
            return running.conclude(step).await;
        }
        // Only who asks needs a key.
        let (write, may_join) = match together {
            Together::Shared(write) => (write, true),
            Together::Alone(write) => (write, false),
        };
        key = Key::from_vec(write());
        running.key = Some(&key);
        let work = Arc::new(work);
        if self.inner.dependency.contract().retry().is_some() {
            let work = Arc::clone(&work);
            let again = move |call, permit| -> Working<T, E> { Box::pin(work(call, permit)) };
            running.again = Some(Arc::new(again) as Repeat<T, E>);
        }
        running
            .go_on(step, may_join, move |call, permit| work(call, permit))
            .await
    }
}
