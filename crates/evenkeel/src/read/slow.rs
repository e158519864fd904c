//! Decides what a call does whose attempt is slow: a copy answers in its place, and the attempt goes on.
//! It exists so that nobody waits for a dependency that is late while there is data to be had.
//! It refuses to stop the attempt, to free its permit before it has ended, and to leave without an answer.

use std::{pin::pin, sync::Arc};

use evenkeel_core::{Limit, Mono, Step};
use tokio::runtime::Handle;

use crate::{
    parked::park,
    read::{
        again::Retries,
        held::Moment,
        running::{Next, Running},
        shared::Inner,
    },
    ticket::{Call, Permit, Ticket},
    until::{Outcome, until},
};

impl<T, E> Running<'_, T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Returns when the call stops waiting if a copy can answer, and where its attempt can go on without it.
    pub(super) fn patience(&self) -> Option<(Handle, Mono)> {
        let slow_at = self.call.slow_at()?;
        Handle::try_current().ok().map(|runtime| (runtime, slow_at))
    }

    /// Makes an attempt that goes on without the call if it is slow and a copy can answer.
    pub(super) async fn until_slow<F, Fut>(
        &mut self,
        runtime: &Handle,
        slow_at: Mono,
        mut ticket: Ticket<'static>,
        retries: Option<Retries<T, E>>,
        work: F,
    ) -> Next<T, E>
    where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let clock = &self.guard.dependency.0.engine.shared().clock;
        let (guard, key) = (Arc::clone(self.guard), self.kept_under().cloned());
        // In a box, so that it can be handed to the runtime in the middle of its wait.
        let mut attempt = Box::pin(async move {
            guard
                .attempts(key.as_ref(), &mut ticket, retries.as_ref(), work)
                .await
        });
        let early = {
            let waiting = pin!(until(clock, Some(slow_at), attempt.as_mut()));
            park(&mut self.parked, waiting).await
        };
        let attempted = match early {
            Outcome::AtOnce(attempted) | Outcome::Later(attempted) => attempted,
            // Nobody can wake for the soft timeout, so it is not known to be slow; its own limit is its own to keep.
            Outcome::NoTimer => park(&mut self.parked, attempt.as_mut()).await,
            Outcome::OutOfTime => {
                self.now = self.guard.now();
                if let Some(step) = self.slow() {
                    drop(runtime.spawn(async move { drop(attempt.await) }));
                    return Err(step);
                }
                park(&mut self.parked, attempt.as_mut()).await
            }
        };
        self.attempted(attempted)
    }

    /// Returns the step that ends the call if a copy can answer in place of its attempt.
    pub(super) fn slow(&mut self) -> Option<Step> {
        let facts = self.look(Moment::AfterFailure);
        self.call.slow(facts, self.now.mono)
    }
}

impl<T, E> Inner<T, E> {
    /// Returns when a flight that starts at `now` ends. One that may go on although nobody waits has an end in any case.
    pub(super) fn flight_limit(&self, now: Mono) -> Limit {
        if self.contract.soft_timeout().is_some() {
            self.refresh_limit(now)
        } else {
            self.dependency.0.own_limit(now)
        }
    }
}
