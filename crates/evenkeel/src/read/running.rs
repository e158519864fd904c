//! Decides how one call is driven: it performs the steps of the engine's call and reports back, until it ends.
//! It exists as a value that is dropped with the call, so that a caller who leaves is counted, whenever that is.
//! It refuses to end twice, and to end uncounted.

use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};

use evenkeel_core::{Asker, Class, Ending, Facts, Mono, Now, Outage, ReadCall, Reason, Rung, Step, Wall};
use tokio::runtime::Handle;

use crate::{
    answer::{Answer, Unanswered},
    dependency::{self, Refusal},
    flight::{self, Flight, Landing, Part, Waiter, landing},
    key::{self, EmptyScopePart, Key, Scope},
    lent::Lent,
    memory::Snapshot,
    read::{Usable, attempt::Attempted, observes, shared::Inner},
    ticket::{Call, Permit, Ticket},
    until::{Outcome, until},
};

pub(crate) type End<T, E> = Result<Answer<T, E>, Unanswered<E>>;

/// Where a call stops on its way.
pub(crate) enum Halt<T, E> {
    /// It wants to ask the dependency.
    Admit,
    /// It has ended.
    Ended(End<T, E>),
}

/// A call that has not ended.
pub(crate) struct Running<'c, T, E> {
    guard: &'c Arc<Inner<T, E>>,
    call: ReadCall<'c>,
    first: Step,
    /// Only calls that look something up, keep something or join somebody have a key.
    key: Option<Key>,
    usable: Usable<'c, T>,
    asker: Asker,
    /// The time of the latest decision.
    now: Now,
    observes: bool,
    snapshot: Option<Arc<Snapshot<T>>>,
    retry_at: Option<Mono>,
    cause: Option<E>,
    counted: bool,
}

impl<'c, T, E> Running<'c, T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Starts the call's one clock and fixes its deadline.
    pub(crate) fn begin<S: Scope>(
        guard: &'c Arc<Inner<T, E>>,
        scope: &S,
        key: &[u8],
        usable: Usable<'c, T>,
        asker: Asker,
    ) -> Result<Self, EmptyScopePart> {
        let needs_key = guard.contract.keeps_snapshots() || guard.contract.coalesce();
        let key = if needs_key {
            Some(key::write(&guard.key, scope, key)?)
        } else {
            None
        };
        let now = guard.now();
        let (hold, retry_at) = match guard.look(now.mono) {
            None => (None, None),
            Some((mode, until)) => (Some(mode), (until < Mono::END).then_some(until)),
        };
        let contract = &guard.dependency.0.contract;
        let (call, first) = ReadCall::begin(
            &guard.contract,
            contract.table(),
            contract.timeout(),
            hold,
            now.mono,
        );
        Ok(Self {
            guard,
            call,
            first,
            key,
            usable,
            asker,
            now,
            observes: observes(hold),
            snapshot: None,
            retry_at,
            cause: None,
            counted: false,
        })
    }

    pub(crate) fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    pub(crate) fn start(&mut self) -> Halt<T, E> {
        self.go_on(self.first)
    }

    /// Asks for admission of one attempt, and fixes its limit.
    pub(crate) fn admit<'d>(
        &mut self,
        dependency: Lent<'d, dependency::Inner>,
    ) -> Result<Ticket<'d>, Refusal> {
        let mut ticket = dependency::Inner::admit(dependency, self.now, self.asker, self.observes)?;
        if let Step::Attempt(limit) = self.call.admitted(ticket.began.mono) {
            ticket.limit = limit;
        }
        Ok(ticket)
    }

    /// Ends a call that was refused admission: by the ladder, or not at all.
    pub(crate) fn refused(mut self, refusal: Refusal) -> End<T, E> {
        self.retry_at = refusal.retry_at;
        let step = self.call.refused(refusal.reason);
        self.finish(step)
    }

    /// Ends a call whose attempt has ended.
    pub(crate) fn attempted(mut self, attempted: Attempted<T, E>) -> End<T, E> {
        match attempted {
            Attempted::Value { value, began } => self.live(value, began),
            Attempted::Error { class, error, probe } => {
                self.now = self.guard.now();
                self.cause = error;
                // An error that a classifier calls an answer is the dependency's own; there is no value in it.
                let class = if class == Class::Answer {
                    Class::Refusal
                } else {
                    class
                };
                let step = self.call.attempted(class, probe);
                self.finish(step)
            }
        }
    }

    /// Drives the call with work that may outlive it.
    pub(crate) async fn owned<F, Fut>(mut self, work: F) -> End<T, E>
    where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        if let Halt::Ended(end) = self.start() {
            return end;
        }
        let guard = self.guard;
        // Joining: at most twice, for a flight that vanishes is replaced once.
        if let (Some(flights), Some(key), Ok(runtime)) =
            (&guard.flights, self.key.clone(), Handle::try_current())
        {
            for _ in 0..2 {
                match flights.part(&key, self.now.mono, self.lease_end()) {
                    Part::Alone => break,
                    Part::Lead(flight) => return self.lead(&runtime, flight, work).await,
                    Part::Join(waiter) => {
                        guard.counters.joined();
                        match self.wait(waiter).await {
                            Waited::Ended(step) => return self.finish(step),
                            Waited::Landed(landing) => match &*landing {
                                Landing::Value { shareable: false, .. } => break,
                                // What may be shared may still not be for this caller: it asks for itself.
                                Landing::Value { value, .. }
                                    if !self.usable.is_none_or(|usable| usable(value)) =>
                                {
                                    break;
                                }
                                Landing::Value { value, began, .. } => {
                                    return self.live(value.clone(), *began);
                                }
                                Landing::Error { .. } | Landing::Refused(_) => {
                                    let step = self.learn(&landing);
                                    return self.finish(step);
                                }
                            },
                            Waited::Vanished => {}
                        }
                    }
                }
            }
        }
        match self.admit(Lent::Shared(Arc::clone(&guard.dependency.0))) {
            Err(refusal) => self.refused(refusal),
            Ok(ticket) => match self.in_background(ticket) {
                Ok((runtime, ticket)) => {
                    self.probe_apart(&runtime, ticket, work);
                    self.refused(Refusal {
                        reason: Reason::BreakerOpen,
                        retry_at: None,
                    })
                }
                Err(ticket) => {
                    let attempted = guard.attempt(self.key.as_ref(), ticket, work).await;
                    self.attempted(attempted)
                }
            },
        }
    }

    /// Tells whether the attempt is a probe that nobody should wait for, because a rung can answer.
    fn in_background<'d>(&mut self, ticket: Ticket<'d>) -> Result<(Handle, Ticket<'d>), Ticket<'d>> {
        if !ticket.is_probe() {
            return Err(ticket);
        }
        let facts = self.look();
        match Handle::try_current() {
            Ok(runtime) if self.call.has_servable_rung(facts, self.now.mono) => Ok((runtime, ticket)),
            Ok(_) | Err(_) => Err(ticket),
        }
    }

    fn probe_apart<F, Fut>(&self, runtime: &Handle, mut ticket: Ticket<'static>, work: F)
    where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        // The probe is the dependency's, not this caller's: it has the dependency's own limit.
        ticket.limit = self.guard.dependency.0.own_limit(self.now.mono);
        let (guard, key) = (Arc::clone(self.guard), self.key.clone());
        runtime.spawn(async move {
            drop(guard.attempt(key.as_ref(), ticket, work).await);
        });
    }

    /// Starts a flight, which belongs to nobody who waits for it, and waits for it too.
    async fn lead<F, Fut>(mut self, runtime: &Handle, flight: Flight<T, E>, work: F) -> End<T, E>
    where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let mut ticket = match self.admit(Lent::Shared(Arc::clone(&self.guard.dependency.0))) {
            Ok(ticket) => ticket,
            Err(refusal) => {
                flight.land(Landing::Refused(refusal), self.now.mono);
                return self.refused(refusal);
            }
        };
        if ticket.is_probe() {
            ticket = match self.in_background(ticket) {
                Err(ticket) => ticket,
                Ok((runtime, ticket)) => {
                    let refusal = Refusal {
                        reason: Reason::BreakerOpen,
                        retry_at: None,
                    };
                    flight.land(Landing::Refused(refusal), self.now.mono);
                    self.probe_apart(&runtime, ticket, work);
                    return self.refused(refusal);
                }
            };
        }
        ticket.limit = self.guard.dependency.0.own_limit(self.now.mono);
        let waiter = flight.waiter();
        let (guard, key) = (Arc::clone(self.guard), self.key.clone());
        runtime.spawn(async move { guard.fly(key.as_ref(), ticket, flight, work).await });
        match self.wait(waiter).await {
            Waited::Ended(step) => self.finish(step),
            Waited::Landed(landing) => match &*landing {
                Landing::Value { value, began, .. } => self.live(value.clone(), *began),
                Landing::Error { .. } | Landing::Refused(_) => {
                    let step = self.learn(&landing);
                    self.finish(step)
                }
            },
            // The work broke: its panic ended the flight, and there is nothing to share.
            Waited::Vanished => {
                let step = self.call.attempted(Class::Fault, false);
                self.finish(step)
            }
        }
    }

    /// Waits for a flight until this call's own deadline.
    async fn wait(&mut self, waiter: Waiter<T, E>) -> Waited<T, E> {
        let clock = &self.guard.dependency.0.engine.shared().clock;
        let waited = until(clock, self.call.deadline().at(), landing(waiter)).await;
        self.now = self.guard.now();
        match waited {
            Outcome::AtOnce(Some(landing)) | Outcome::Later(Some(landing)) => Waited::Landed(landing),
            Outcome::AtOnce(None) | Outcome::Later(None) => Waited::Vanished,
            Outcome::OutOfTime => Waited::Ended(self.call.attempted(Class::Outage(Outage::TimedOut), false)),
        }
    }

    /// Reports a flight's failure as this call's own.
    fn learn(&mut self, landing: &Landing<T, E>) -> Step {
        match landing {
            Landing::Refused(refusal) => {
                self.retry_at = refusal.retry_at;
                self.call.refused(refusal.reason)
            }
            Landing::Error { class, error, probe } => {
                self.cause = error
                    .as_ref()
                    .zip(self.guard.copy_error)
                    .map(|(error, copy)| copy(error));
                self.call.attempted(
                    if *class == Class::Answer {
                        Class::Refusal
                    } else {
                        *class
                    },
                    *probe,
                )
            }
            Landing::Value { .. } => Step::Serve(Rung::Live, Some(Duration::ZERO)),
        }
    }

    /// Returns when later callers stop waiting for a flight that starts now.
    fn lease_end(&self) -> Mono {
        let own = self.guard.dependency.0.own_limit(self.now.mono);
        own.at()
            .or_else(|| self.call.deadline().at())
            .unwrap_or_else(|| self.now.mono.after(flight::LEASE))
    }

    /// Performs steps that need no waiting.
    fn go_on(&mut self, mut step: Step) -> Halt<T, E> {
        loop {
            step = match step {
                Step::Look => {
                    let facts = self.look();
                    self.call.found(facts, self.now.mono)
                }
                // An attempt follows an admission and nothing else, and whoever was admitted does not come here.
                Step::Admit | Step::Attempt(_) => return Halt::Admit,
                Step::Serve(rung, age) => match self.serve(rung, age) {
                    Some(answer) => return Halt::Ended(Ok(answer)),
                    None => Step::Refuse,
                },
                Step::Refuse => return Halt::Ended(Err(self.unanswered(Ending::Refused))),
                Step::Fail => return Halt::Ended(Err(self.unanswered(Ending::Failed))),
            };
        }
    }

    /// Ends a call that has nobody left to ask.
    fn finish(mut self, step: Step) -> End<T, E> {
        match self.go_on(step) {
            Halt::Ended(end) => end,
            Halt::Admit => Err(self.unanswered(Ending::Refused)),
        }
    }

    fn look(&mut self) -> Option<Facts> {
        let key = self.key.as_ref()?;
        let snapshot = self.guard.memory.get(key)?;
        let usable = self.usable.is_none_or(|usable| usable(&snapshot.value));
        let facts = snapshot.facts(usable);
        self.snapshot = Some(snapshot);
        Some(facts)
    }

    fn live(mut self, value: T, began: Now) -> End<T, E> {
        self.count(Ending::Answered(Rung::Live), None);
        Ok(Answer {
            value,
            rung: Rung::Live,
            age: Some(Duration::ZERO),
            observed: Some(began.wall),
            reason: None,
            skipped: self.call.skips(),
            cause: None,
        })
    }

    /// Answers from a rung below live; `None` if the rung has nothing to give.
    fn serve(&mut self, rung: Rung, age: Option<Duration>) -> Option<Answer<T, E>> {
        let (value, observed): (T, Option<Wall>) = match rung {
            Rung::Fresh | Rung::Stale => {
                let snapshot = self.snapshot.take()?;
                (snapshot.value.clone(), snapshot.observed_wall)
            }
            Rung::Default => (self.guard.default.as_ref().map(|default| default())?, None),
            Rung::Live => return None,
        };
        let reason = self.call.reason();
        self.count(Ending::Answered(rung), reason);
        let (skipped, cause) = (self.call.skips(), self.cause.take());
        Some(Answer {
            value,
            rung,
            age,
            observed,
            reason,
            skipped,
            cause,
        })
    }

    fn unanswered(&mut self, ending: Ending) -> Unanswered<E> {
        let reason = self.call.reason();
        self.count(ending, reason);
        Unanswered {
            ending,
            reason,
            skipped: self.call.skips(),
            retry_after: self.retry_at.map(|at| at.since(self.now.mono)),
            cause: self.cause.take(),
            misuse: None,
        }
    }

    fn count(&mut self, ending: Ending, reason: Option<Reason>) {
        self.counted = true;
        self.guard.counters.ended(ending, reason);
        for (rung, why) in self.call.skips().iter() {
            self.guard.counters.skipped(rung, why);
        }
    }
}

/// What waiting for a flight came to.
enum Waited<T, E> {
    /// This call's own time ran out first.
    Ended(Step),
    Landed(Arc<Landing<T, E>>),
    /// The flight ended without a result.
    Vanished,
}

impl<T: Clone, E> Inner<T, E> {
    /// Makes the attempt of a flight and lands it, unless everybody leaves first.
    async fn fly<F, Fut>(&self, key: Option<&Key>, ticket: Ticket<'static>, flight: Flight<T, E>, work: F)
    where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let attempted = {
            let mut attempt = pin!(self.attempt(key, ticket, work));
            let mut abandoned = pin!(flight.abandoned());
            poll_fn(|context| match attempt.as_mut().poll(context) {
                Poll::Ready(attempted) => Poll::Ready(Some(attempted)),
                Poll::Pending => abandoned.as_mut().poll(context).map(|()| None),
            })
            .await
        };
        let landing = match attempted {
            None => return,
            Some(Attempted::Value { value, began }) => {
                let shareable = self.class_of(&value) == Class::Answer
                    && self.share_if.as_ref().is_none_or(|share_if| share_if(&value));
                Landing::Value {
                    value,
                    began,
                    shareable,
                }
            }
            Some(Attempted::Error { class, error, probe }) => Landing::Error { class, error, probe },
        };
        flight.land(landing, self.now().mono);
    }
}

impl<T, E> Drop for Running<'_, T, E> {
    /// The caller left, or the wrapped code broke.
    fn drop(&mut self) {
        if self.counted {
            return;
        }
        if std::thread::panicking() {
            self.guard.counters.ended(Ending::Failed, Some(Reason::Fault));
        } else {
            self.guard.counters.ended(Ending::Abandoned, None);
        }
    }
}
