//! Decides how one attempt is made and what its result means: limit, class, verdict, snapshot.
//! It exists once, for calls, for probes in the background and for flights, so that they cannot differ.
//! It refuses to decide what the caller gets; that is the call's.

use std::{pin::pin, sync::Arc};

use evenkeel_core::{Class, Limit, Mono, Now, Outage};

use crate::{
    key::Key,
    parked::park,
    read::shared::{Inner, Kept},
    tail::{Superseded, Tail, WorkEnd},
    ticket::{Call, Permit, Ticket},
    until::{Outcome, until, until_past},
};

/// What an attempt brought.
#[derive(Debug)]
pub(crate) enum Attempted<T, E> {
    /// A value, and whether it is the snapshot now.
    Value {
        value: T,
        began: Now,
        kept: bool,
        /// Set where the ending of the call depends on how the work ends.
        tail: Option<Arc<Tail>>,
    },
    /// An error, or nothing in time (then there is no error).
    Error {
        class: Class,
        error: Option<E>,
        /// A probe that failed by the dependency's doing, where the class is a failure at all.
        probe: bool,
    },
    /// Nothing: it had to wait, and no timer could have ended it at its limit.
    Untimed,
}

impl<T, E> Inner<T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Makes the attempt that `ticket` admits.
    pub(crate) async fn attempt<'d, F, Fut>(
        self: &Arc<Self>,
        key: Option<&Key>,
        ticket: &mut Ticket<'d>,
        work: F,
    ) -> Attempted<T, E>
    where
        F: FnOnce(Call<'d>, Option<Permit<'d>>) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let (began, limit, probe) = (ticket.began, ticket.limit, ticket.is_probe());
        let (call, permit) = ticket.start();
        let clock = &self.dependency.0.engine.shared().clock;
        // In a block of its own: whatever comes of the work, its future and its permit end here.
        let outcome = {
            let work = pin!(work(call, permit));
            match ticket.slow_at() {
                None => park(&mut ticket.parked, pin!(until(clock, limit.at(), work))).await,
                Some(slow_at) => {
                    let (parked, mut crossing) = ticket.waiting();
                    let waiting = until_past(clock, slow_at, move || crossing.cross(), limit.at(), work);
                    park(parked, pin!(waiting)).await
                }
            }
        };
        let at_once = matches!(outcome, Outcome::AtOnce(_));
        match outcome {
            Outcome::AtOnce(Ok(value)) | Outcome::Later(Ok(value)) => {
                let class = self.class_of(&value);
                self.heed_value(ticket, class, &value, began.mono);
                if let Some(tail) = ticket.tail().cloned()
                    && (tail.ended() != Some(WorkEnd::Well))
                {
                    let kept = self.handed_on(key, ticket, &tail, &value, class);
                    return Attempted::Value {
                        value,
                        began,
                        kept,
                        tail: Some(tail),
                    };
                }
                // Only what may open the breaker, or is counted by time, has to know when it ended.
                let now = if at_once || (class == Class::Answer && !ticket.wants_time()) {
                    began.mono
                } else {
                    self.now().mono
                };
                ticket.settle(class, true, now);
                let kept = self.keep(key, &value, class, began);
                if let (Kept::Supersedes(at), Some(key)) = (kept, key) {
                    self.memory.retire(key, at);
                }
                Attempted::Value {
                    value,
                    began,
                    kept: kept == Kept::Yes,
                    tail: None,
                }
            }
            Outcome::AtOnce(Err(error)) | Outcome::Later(Err(error)) => {
                let class = (self.classify)(&error);
                let now = self.now().mono;
                let blame = !is_the_callers(class, limit, now);
                self.heed_error(ticket, class, &error, now);
                ticket.settle(class, blame, now);
                if let (Class::Gone, Some(key)) = (class, key) {
                    self.memory.retire(key, began.mono);
                }
                Attempted::Error {
                    class,
                    error: Some(error),
                    probe: probe && blame,
                }
            }
            Outcome::NoTimer => {
                // The caller's doing: a bug that is shown, and none of the dependency's.
                ticket.settle(Class::Fault, false, self.now().mono);
                Attempted::Untimed
            }
            Outcome::OutOfTime => {
                let class = Class::Outage(Outage::TimedOut);
                let blame = limit.blames_the_dependency();
                ticket.settle(class, blame, self.now().mono);
                Attempted::Error {
                    class,
                    error: None,
                    probe: probe && blame,
                }
            }
        }
    }

    /// Deals with a value whose work goes on, or has ended otherwise than well. `true` if it is the snapshot now.
    fn handed_on(
        self: &Arc<Self>,
        key: Option<&Key>,
        ticket: &mut Ticket<'_>,
        tail: &Tail,
        value: &T,
        class: Class,
    ) -> bool {
        let now = self.now().mono;
        match tail.ended() {
            // What nobody will follow to its end is judged by its head.
            Some(WorkEnd::Abandoned) if ticket.apart => {
                ticket.settle(class, true, now);
                false
            }
            Some(end @ (WorkEnd::Cut | WorkEnd::Abandoned)) => {
                ticket.settle(end.class(class), true, now);
                false
            }
            Some(WorkEnd::Well) | None => {
                let kept = self.keep(key, value, class, ticket.began);
                let superseded = kept.supersedes().zip(key);
                if ticket.apart {
                    ticket.settle(class, true, now);
                } else {
                    let superseded = superseded.map(|(at, key)| {
                        Box::new(Superseded {
                            guard: Arc::clone(self) as _,
                            key: key.clone(),
                            at,
                        })
                    });
                    ticket.owe(tail, class, superseded);
                }
                kept == Kept::Yes
            }
        }
    }
}

/// Tells whether the dependency's client ran out of time because it was handed the caller's short deadline.
fn is_the_callers(class: Class, limit: Limit, now: Mono) -> bool {
    class == Class::Outage(Outage::TimedOut)
        && !limit.blames_the_dependency()
        && limit.at().is_some_and(|at| now >= at)
}
