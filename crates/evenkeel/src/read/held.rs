//! Decides how a call is driven whose caller keeps copies itself, such as an HTTP cache with many copies for one key.
//! It exists so that such a caller has the same breaker, permits, deadline, holds, ladder and counters as any other.
//! It refuses to look into such copies: it asks for one when a rung wants it, and judges it by its facts alone.

use evenkeel_core::{Asker, Facts, Now, Wall};

use super::{Read, Usable, running::Running};
use crate::{
    answer::{Answer, Unanswered},
    key::{Key, Scope},
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
    /// Before the dependency is asked: a copy that is not forbidden now is served as fresh.
    BeforeAsking,
    /// After it could not be asked, or asking has failed: the copy is for the stale rung.
    AfterFailure,
}

/// Brings the caller's copy, at the time of the decision.
pub type Bring<'b, T> = &'b (dyn Fn(Moment, Now) -> Option<Held<T>> + Send + Sync);

/// Writes the key under which a call may share an attempt with others; `None` if its result is nobody else's.
pub type Together<'b> = Option<&'b (dyn Fn() -> Vec<u8> + Send + Sync)>;

impl<T, E, S> Read<T, E, S>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: Scope,
{
    /// Makes one call like [`Read::call_work`] for a caller who keeps copies itself: the guard's own store is neither
    /// read nor written.
    ///
    /// The contract still says what may be served. It needs [`fresh_for`](crate::ReadBuilder::fresh_for) for copies
    /// that are to be served without asking, and a stale rung for those that stand in; the facts that `bring` gives
    /// narrow both. `together` has to write everything that says whose data is meant, since no scope is given here.
    ///
    /// # Errors
    /// As [`Read::call`].
    pub async fn call_held<F, Fut>(
        &self,
        bring: Bring<'_, T>,
        together: Together<'_>,
        usable: Usable<'_, T>,
        work: F,
    ) -> Result<Answer<T, E>, Unanswered<E>>
    where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let shared;
        let (mut running, first) = Running::begin(&self.inner, None, usable, Asker::Traffic);
        running.bring = Some(bring);
        running.may_outlive = true;
        if let Some(end) = running.start(first) {
            return end;
        }
        // Only who asks needs a key.
        if let Some(write) = together {
            shared = Key::from_vec(write());
            running.key = Some(&shared);
        }
        running.ask(together.is_some(), work).await
    }
}
