//! Decides how attempts are made that belong to no caller: those of flights, and probes in the background.
//! It exists apart from the calls because any caller may leave without them.
//! It refuses to fly on when nobody waits, and to probe without an end.

use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll};

use evenkeel_core::Class;
use tokio::runtime::Handle;

use crate::{
    flight::{Flight, Landing},
    key::Key,
    read::{again::Retries, attempt::Attempted, shared::Inner},
    ticket::{Call, Permit, Ticket},
};

impl<T, E> Inner<T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Makes the attempt of a flight and lands it, unless everybody leaves first.
    pub(super) async fn fly<F, Fut>(
        self: &Arc<Self>,
        key: Option<&Key>,
        mut ticket: Ticket<'static>,
        flight: Flight<T, E>,
        retries: Option<&Retries<T, E>>,
        work: F,
    ) where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let attempted = {
            let mut attempt = pin!(self.attempts(key, &mut ticket, retries, work));
            let mut abandoned = pin!(flight.abandoned());
            poll_fn(|context| match attempt.as_mut().poll(context) {
                Poll::Ready(attempted) => Poll::Ready(Some(attempted)),
                Poll::Pending => abandoned.as_mut().poll(context).map(|()| None),
            })
            .await
        };
        if let Some(attempted) = attempted {
            let cool_down = self.contract.refresh().cool_down;
            flight.land(self.landing_of(attempted, true), cool_down, self.now().mono);
        }
    }

    /// Turns what an attempt brought into what those get who wait for it. `owed` is false where no call's ending depends
    /// on how the work ends.
    pub(super) fn landing_of(&self, attempted: Attempted<T, E>, owed: bool) -> Landing<T, E> {
        match attempted {
            Attempted::Value {
                value,
                began,
                kept,
                tail,
            } => {
                let shareable = self.class_of(&value) == Class::Answer
                    && self.share_if.as_ref().is_none_or(|share_if| share_if(&value));
                Landing::Value {
                    value,
                    began,
                    kept,
                    shareable,
                    tail: tail.filter(|_| owed),
                }
            }
            Attempted::Error { class, error, probe } => Landing::Error { class, error, probe },
            // A flight is a task of a runtime, which has a timer; without one it could not have begun to wait.
            Attempted::Untimed => Landing::Error {
                class: Class::Fault,
                error: None,
                probe: false,
            },
        }
    }

    /// Starts a probe that nobody waits for.
    pub(super) fn probe_apart<F, Fut>(
        self: &Arc<Self>,
        runtime: &Handle,
        key: Option<Key>,
        mut ticket: Ticket<'static>,
        work: F,
    ) where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        // The probe is the dependency's, not a caller's: it has the dependency's own limit.
        ticket.limit = self.dependency.0.probe_limit(ticket.began.mono);
        ticket.apart = true;
        let guard = Arc::clone(self);
        runtime.spawn(async move {
            drop(guard.attempt(key.as_ref(), &mut ticket, work).await);
        });
    }
}
