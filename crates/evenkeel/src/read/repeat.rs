//! Decides how work is called that may be repeated: a closure that makes the same request each time it is run.
//! It exists because only the type can say it: a closure that runs once cannot be retried, whatever a contract says.
//! It refuses to know what is repeatable; the caller says so by calling this.

use std::sync::Arc;

use super::{
    Manner, Read, Usable,
    again::{Repeat, Working},
};
use crate::{
    answer::{Answer, Unanswered},
    key::Scope,
    ticket::{Call, Permit},
};

impl<T, E, S> Read<T, E, S>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: Scope,
{
    /// Makes one call like [`Read::call_owned`], by work that may be repeated without harm: it is run once for each
    /// attempt, and after an outage it is run again if the dependency's [`RetryRules`](crate::RetryRules) grant it.
    ///
    /// Each attempt is admitted and judged by itself. A pause that would not end before the deadline is not begun, and
    /// an open breaker ends the attempts; what the last attempt came to then stands. Nothing is held in a pause.
    ///
    /// # Errors
    /// As [`Read::call`].
    pub async fn call_repeatable<F, Fut>(
        &self,
        scope: S,
        key: impl AsRef<[u8]>,
        work: F,
    ) -> Result<Answer<T, E>, Unanswered<E>>
    where
        F: Fn(Call<'static>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let work = move |call, permit| {
            let working = work(call);
            async move {
                let result = working.await;
                drop(permit);
                result
            }
        };
        self.repeated(scope, key, None, Manner::Own, work).await
    }

    /// Makes one call like [`Read::call_work`], by work that may be repeated without harm; see
    /// [`Read::call_repeatable`]. A result whose work still goes on is never followed by another attempt.
    ///
    /// # Errors
    /// As [`Read::call`].
    pub fn call_repeatable_work<F, Fut>(
        &self,
        scope: S,
        key: impl AsRef<[u8]>,
        usable: Usable<'_, T>,
        work: F,
    ) -> impl Future<Output = Result<Answer<T, E>, Unanswered<E>>>
    where
        F: Fn(Call<'static>, Option<Permit<'static>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.repeated(scope, key, usable, Manner::Outlives, work)
    }

    /// Makes one call like [`Read::call_alone`], by work that may be repeated without harm; see
    /// [`Read::call_repeatable_work`].
    ///
    /// # Errors
    /// As [`Read::call`].
    pub fn call_repeatable_alone<F, Fut>(
        &self,
        scope: S,
        key: impl AsRef<[u8]>,
        usable: Usable<'_, T>,
        work: F,
    ) -> impl Future<Output = Result<Answer<T, E>, Unanswered<E>>>
    where
        F: Fn(Call<'static>, Option<Permit<'static>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.repeated(scope, key, usable, Manner::Alone, work)
    }

    fn repeated<F, Fut>(
        &self,
        scope: S,
        key: impl AsRef<[u8]>,
        usable: Usable<'_, T>,
        manner: Manner,
        work: F,
    ) -> impl Future<Output = Result<Answer<T, E>, Unanswered<E>>>
    where
        F: Fn(Call<'static>, Option<Permit<'static>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let work = Arc::new(work);
        let may_repeat = self.inner.dependency.contract().retry().is_some();
        let again = may_repeat.then(|| {
            let work = Arc::clone(&work);
            let again = move |call, permit| -> Working<T, E> { Box::pin(work(call, permit)) };
            Arc::new(again) as Repeat<T, E>
        });
        self.worked(scope, key, usable, manner, again, move |call, permit| {
            work(call, permit)
        })
    }
}
