//! Decides how a call is driven whose work may outlive it: it may join others, lead them, or leave a probe running.
//! It exists because such work belongs to the guard, not to the caller who happened to bring it.
//! It refuses to let anyone wait past their own deadline, or for a probe when a rung could answer.

use std::{pin::pin, sync::Arc};

use evenkeel_core::{Class, Deadline, Mono, Outage, Reason, Refusal, Step};
use tokio::runtime::Handle;

use crate::{
    flight::{self, Flight, Landing, Part, Waiter},
    lent::Lent,
    parked::park,
    read::{
        again::Retries,
        held::Moment,
        running::{End, Next, Running},
        seat::Unseated,
    },
    ticket::{Call, Permit, Ticket},
    until::{Outcome, until},
};

impl<T, E> Running<'_, T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Drives the call with work that may outlive it.
    pub(crate) async fn owned<F, Fut>(&mut self, first: Step, may_join: bool, work: F) -> End<T, E>
    where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let step = self.start(first);
        self.go_on(step, may_join, work).await
    }

    /// Goes on after the first look: answers, leaves a refresh to the runtime, or asks.
    pub(crate) async fn go_on<F, Fut>(&mut self, step: Step, may_join: bool, work: F) -> End<T, E>
    where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let work = match step {
            Step::Admit => work,
            // What is one caller's own renews nothing for the others.
            Step::Refresh if !may_join => match self.leave_refresh_to_others() {
                Some(end) => return end,
                None => work,
            },
            Step::Refresh => match self.refresh_apart(work) {
                Ok(end) => return end,
                Err(work) => work,
            },
            end @ Step::Serve(..) => return self.finish(end),
            rest @ (Step::Look | Step::Attempt(_) | Step::Alternate | Step::Refuse | Step::Fail) => {
                return self.conclude(rest).await;
            }
        };
        match self.asked(may_join, work).await {
            Ok(end) => end,
            Err(rest) => self.conclude(rest).await,
        }
    }

    /// Asks the dependency: by itself, or together with others.
    async fn asked<F, Fut>(&mut self, may_join: bool, work: F) -> Next<T, E>
    where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        if let Some(until) = self.cooling().filter(|_| may_join) {
            return Err(self.refused(Refusal {
                reason: Reason::CoolDown,
                retry_at: Some(until),
            }));
        }
        let guard = self.guard;
        // A flight that breaks is replaced once. A second one that breaks is a fault for all who waited: were each to ask
        // by itself then, whatever broke both would meet them all at once.
        let flights = guard.flights.as_ref().filter(|_| may_join);
        if let (Some(flights), Some(key), Ok(runtime)) = (flights, self.key, Handle::try_current()) {
            let mut is_last = false;
            // Ends at the call's own deadline, if not before: each further turn is the leaving of somebody else.
            loop {
                match flights.part(key, self.now.mono, self.lease_end(), self.criticality) {
                    Part::Alone => break,
                    Part::Lead(flight) => return self.lead(&runtime, flight, work).await,
                    Part::Join(waiter) => {
                        guard.counters.joined();
                        match self.wait(waiter).await {
                            Waited::Ended(step) => return Err(step),
                            Waited::Landed(landing) => match &*landing {
                                Landing::Value { value, shareable, .. }
                                    if !shareable || !self.may_have(value) =>
                                {
                                    // What may not be handed over may have been kept meanwhile, for this caller too.
                                    if self.bring.is_some()
                                        && let step @ Step::Serve(..) = self.look_up()
                                    {
                                        return Err(step);
                                    }
                                    break;
                                }
                                Landing::Value { .. } | Landing::Error { .. } | Landing::Refused(_) => {
                                    return self.landed(&landing, true);
                                }
                            },
                            Waited::Vanished if is_last => return Err(self.broken()),
                            Waited::Vanished => is_last = true,
                            // Somebody else takes the place of one who left before it could ask.
                            Waited::Left => {}
                        }
                    }
                }
            }
        }
        match self.seat(Lent::Shared(Arc::clone(&guard.dependency.0))).await {
            Err(why) => Err(self.unseated(why)),
            Ok(mut ticket) => match self.in_background(&ticket) {
                Some(runtime) => {
                    guard.probe_apart(&runtime, self.kept_under().cloned(), ticket, work);
                    Err(self.refused(NOT_WAITED_FOR))
                }
                None => {
                    let retries = self.retries();
                    if let Some((runtime, slow_at)) = self.patience() {
                        return self.until_slow(&runtime, slow_at, ticket, retries, work).await;
                    }
                    let attempted = {
                        let (key, parked) = self.parts();
                        let attempts = guard.attempts(key, &mut ticket, retries.as_ref(), work);
                        park(parked, pin!(attempts)).await
                    };
                    self.attempted(attempted)
                }
            },
        }
    }

    /// Returns where to run the attempt if it is a probe that nobody should wait for, because a rung can answer.
    fn in_background(&mut self, ticket: &Ticket<'_>) -> Option<Handle> {
        if !ticket.is_probe() {
            return None;
        }
        let facts = self.look(Moment::AfterFailure);
        Handle::try_current()
            .ok()
            .filter(|_| self.call.has_servable_rung(facts, self.now.mono))
    }

    /// Starts a flight, which belongs to nobody who waits for it, and waits for it too.
    async fn lead<F, Fut>(&mut self, runtime: &Handle, flight: Flight<T, E>, work: F) -> Next<T, E>
    where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let seated = self
            .seat(Lent::Shared(Arc::clone(&self.guard.dependency.0)))
            .await;
        let mut ticket = match seated {
            Ok(ticket) => ticket,
            Err(Unseated::Refused(refusal)) => {
                flight.land(Landing::Refused(refusal), None, self.now.mono);
                return Err(self.refused(refusal));
            }
            // This call's own copy or hold: somebody else takes its place, as if it had left.
            Err(Unseated::Ended(step)) => return Err(step),
        };
        if let Some(runtime) = self.in_background(&ticket) {
            flight.land(Landing::Refused(NOT_WAITED_FOR), None, self.now.mono);
            self.guard
                .probe_apart(&runtime, self.kept_under().cloned(), ticket, work);
            return Err(self.refused(NOT_WAITED_FOR));
        }
        let dependency = &self.guard.dependency.0;
        ticket.limit = if ticket.is_probe() {
            dependency.probe_limit(self.now.mono)
        } else {
            self.guard.flight_limit(self.now.mono)
        };
        let waiter = flight.waiter();
        flight.begins(self.lease_end());
        let (guard, key) = (Arc::clone(self.guard), self.kept_under().cloned());
        // A flight's attempts end by the timeout alone, for later callers may wait longer than this one; where there is none,
        // a further one ends with the lease.
        let ends = self.lease_end();
        let lasts = match dependency.seat.contract().timeout() {
            Some(_) => None,
            None => Some(ends.since(self.now.mono)),
        };
        let deadline = Deadline::fix(self.now.mono, lasts);
        let retries = self.retries().map(|retries| Retries {
            deadline,
            ends: retries.ends.or(Some(ends)),
            ..retries
        });
        runtime.spawn(async move {
            guard
                .fly(key.as_ref(), ticket, flight, retries.as_ref(), work)
                .await;
        });
        match self.wait(waiter).await {
            Waited::Ended(step) => Err(step),
            Waited::Landed(landing) => self.landed(&landing, false),
            // The work broke: its panic ended the flight, and there is nothing to share.
            Waited::Vanished | Waited::Left => Err(self.broken()),
        }
    }

    /// Goes on with a call whose attempt broke in another task.
    fn broken(&mut self) -> Step {
        self.call.attempted(Class::Fault, false)
    }

    /// Waits for a flight until this call's own deadline, or until it is slow and a copy can answer.
    async fn wait(&mut self, mut waiter: Waiter<T, E>) -> Waited<T, E> {
        let clock = &self.guard.dependency.0.engine.shared().clock;
        let deadline = self.call.attempts_until().at();
        let slow_at = self.call.slow_at();
        let soft = slow_at.map(|at| (Some(at), true));
        for (limit, is_soft) in soft.into_iter().chain([(deadline, false)]) {
            let waited = {
                let landing = pin!(waiter.landing());
                let waiting = pin!(until(clock, limit, landing));
                park(&mut self.parked, waiting).await
            };
            self.now = self.guard.now();
            match waited {
                Outcome::AtOnce(Some(landing)) | Outcome::Later(Some(landing)) => {
                    return Waited::Landed(landing);
                }
                Outcome::AtOnce(None) | Outcome::Later(None) if waiter.has_begun() => {
                    return Waited::Vanished;
                }
                Outcome::AtOnce(None) | Outcome::Later(None) => return Waited::Left,
                Outcome::NoTimer => {
                    self.is_untimed = true;
                    return Waited::Ended(self.call.attempted(Class::Fault, false));
                }
                Outcome::OutOfTime => {
                    if is_soft && let Some(step) = self.slow() {
                        waiter.leave_it_flying();
                        return Waited::Ended(step);
                    }
                }
            }
        }
        Waited::Ended(self.call.attempted(Class::Outage(Outage::TimedOut), false))
    }

    /// Ends this call by what a flight brought, as if it had asked by itself; `joined` if it was another's.
    fn landed(&mut self, landing: &Landing<T, E>, joined: bool) -> Next<T, E> {
        match landing {
            // Only the starter's call may depend on how the work ends: what others share is whole.
            Landing::Value {
                value,
                began,
                kept,
                tail,
                ..
            } => {
                let tail = tail.clone().filter(|_| !joined);
                Ok(self.live(value.clone(), *began, *kept, joined, tail))
            }
            Landing::Refused(refusal) => Err(self.refused(*refusal)),
            Landing::Error { class, error, probe } => {
                let copied = error
                    .as_ref()
                    .zip(self.guard.copy_error)
                    .map(|(error, copy)| copy(error));
                Err(self.failed(*class, copied, *probe))
            }
        }
    }

    /// Returns when later callers stop waiting for a flight that starts now.
    fn lease_end(&self) -> Mono {
        let own = self.guard.dependency.0.own_limit(self.now.mono);
        own.at()
            .or_else(|| self.call.deadline().at())
            .unwrap_or_else(|| self.now.mono.after(flight::LEASE))
    }
}

/// What a call gets whose attempt goes on as a probe in the background: a rung answers for the open breaker.
const NOT_WAITED_FOR: Refusal = Refusal {
    reason: Reason::BreakerOpen,
    retry_at: None,
};

/// What waiting for a flight came to.
enum Waited<T, E> {
    /// This call's own time ran out first.
    Ended(Step),
    Landed(Arc<Landing<T, E>>),
    /// The flight ended without a result.
    Vanished,
    /// Whoever was to begin it has left before it was admitted.
    Left,
}
