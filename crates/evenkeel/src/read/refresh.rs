//! Decides how a copy in its window is renewed: by one attempt per key that belongs to the runtime and to no caller.
//! It exists so that whoever asks at the end of a lifetime is answered at once, and the source is asked once.
//! It refuses to let a refresh go on without an end, and to call its result anything that a caller's own would not be.

use std::sync::Arc;

use evenkeel_core::{Keep, Limit, Mono, Reason, Refresh, Step};
use tokio::runtime::Handle;

use crate::{
    counts::Refreshed,
    flight::{self, Flight, Lead},
    key::Key,
    lent::Lent,
    read::{
        attempt::Attempted,
        running::{End, Running},
        shared::Inner,
    },
    ticket::{Call, Permit, Ticket},
};

impl<T, E> Running<'_, T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Answers from the copy that is in its window and has it refreshed; hands the work back if nothing here could run
    /// it, so that the call has to ask by itself.
    pub(super) fn refresh_apart<F, Fut>(&mut self, work: F) -> Result<End<T, E>, F>
    where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let (Some(flights), Some(key), Ok(runtime)) = (&self.guard.flights, self.key, Handle::try_current())
        else {
            return self.leave_refresh_to_others().ok_or(work);
        };
        let now = self.now.mono;
        let seat = &self.guard.dependency.0.seat;
        if let Some(until) = seat.hushed_until(now).or_else(|| self.cooling()) {
            self.retry_at = Some(until);
            self.guard.counters.refreshed(Refreshed::Refused);
            let step = self.call.refreshed(Refresh::Refused(Reason::CoolDown));
            return Ok(self.finish(step));
        }
        let limit = self.guard.refresh_limit(now);
        let lease_ends = limit.at().unwrap_or_else(|| now.after(flight::LEASE));
        let refresh = match flights.lead(key, now, lease_ends) {
            Lead::UnderWay => Refresh::UnderWay,
            Lead::Full => Refresh::Refused(Reason::AtCapacity),
            Lead::Begun(flight) => {
                let dependency = Lent::Shared(Arc::clone(&self.guard.dependency.0));
                let may_ask = dependency.overtakes(self.criticality, self.observes);
                match may_ask.and_then(|()| self.admit(dependency)) {
                    // The flight goes with this: the next call tries again.
                    Err(refusal) => Refresh::Refused(refusal.reason),
                    Ok(mut ticket) => {
                        ticket.limit = if ticket.is_probe() {
                            self.guard.dependency.0.probe_limit(now)
                        } else {
                            limit
                        };
                        flight.begins(lease_ends);
                        let (guard, key) = (Arc::clone(self.guard), self.kept_under().cloned());
                        runtime.spawn(async move { guard.refresh(key, ticket, flight, work).await });
                        Refresh::UnderWay
                    }
                }
            }
        };
        if let Refresh::Refused(_) = refresh {
            self.guard.counters.refreshed(Refreshed::Refused);
        }
        let step = self.call.refreshed(refresh);
        Ok(self.finish(step))
    }

    /// Returns until when nobody asks for this key because a shared attempt for it has failed.
    pub(super) fn cooling(&self) -> Option<Mono> {
        self.guard.contract.refresh().cool_down?;
        self.guard.flights.as_ref()?.cooling(self.key?, self.now.mono)
    }

    /// Answers from the copy if it is fresh, or another call has it refreshed; `None` if this one has to ask.
    pub(super) fn leave_refresh_to_others(&mut self) -> Option<End<T, E>> {
        let (flights, key) = (self.guard.flights.as_ref()?, self.key?);
        let refresh = if flights.is_under_way(key, self.now.mono) {
            Refresh::UnderWay
        } else {
            Refresh::Impossible
        };
        match self.call.refreshed(refresh) {
            end @ Step::Serve(..) => Some(self.finish(end)),
            Step::Look
            | Step::Admit
            | Step::Attempt(_)
            | Step::Refresh
            | Step::Alternate
            | Step::Refuse
            | Step::Fail => None,
        }
    }
}

impl<T, E> Inner<T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Tells whether a value says of itself that it is kept, where its caller keeps copies.
    pub(super) fn is_kept(&self, value: &T) -> bool {
        self.terms
            .as_ref()
            .is_some_and(|terms| terms(value).keep == Keep::Yes)
    }

    /// Makes the attempt of a refresh. It flies on though nobody waits; who joins it gets its result.
    async fn refresh<F, Fut>(
        self: Arc<Self>,
        key: Option<Key>,
        mut ticket: Ticket<'static>,
        flight: Flight<T, E>,
        work: F,
    ) where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let mut end = Counted::new(&self);
        ticket.apart = true;
        let attempted = self.attempt(key.as_ref(), &mut ticket, work).await;
        end.end = match &attempted {
            Attempted::Value { value, kept, .. } if *kept || (key.is_none() && self.is_kept(value)) => {
                Refreshed::Kept
            }
            Attempted::Value { .. } => Refreshed::NotKept,
            Attempted::Error { .. } | Attempted::Untimed => Refreshed::Failed,
        };
        drop(end);
        let landing = self.landing_of(attempted, false);
        flight.land(landing, self.contract.refresh().cool_down, self.now().mono);
    }
}

impl<T, E> Inner<T, E> {
    /// Returns when a refresh that starts at `now` ends: by the dependency's timeout, else by the calls' deadline or
    /// the lease of flights, which are no failures of the dependency.
    pub(super) fn refresh_limit(&self, now: Mono) -> Limit {
        match self.dependency.0.own_limit(now) {
            own @ (Limit::Timeout(_) | Limit::Deadline(_)) => own,
            Limit::None => Limit::Deadline(now.after(self.contract.deadline().unwrap_or(flight::LEASE))),
        }
    }
}

/// Counts what a refresh came to, also when its work breaks.
pub(super) struct Counted<'g, T, E> {
    guard: &'g Inner<T, E>,
    pub(super) end: Refreshed,
}

impl<'g, T, E> Counted<'g, T, E> {
    /// Starts with the worst.
    pub(super) const fn new(guard: &'g Inner<T, E>) -> Self {
        Self {
            guard,
            end: Refreshed::Failed,
        }
    }
}

impl<T, E> Drop for Counted<'_, T, E> {
    fn drop(&mut self) {
        self.guard.counters.refreshed(self.end);
    }
}
