//! Decides how a call whose attempt failed makes another: the pause, the second admission, the next attempt.
//! It exists as one loop around the one way of making an attempt, for calls and for flights alike.
//! It refuses to repeat work that was not handed in as repeatable, or that still goes on.

use std::{pin::Pin, sync::Arc};

use evenkeel_core::{Advice, Class, Criticality, Deadline, Failed, Mono, NoRetry, Retry};

use crate::{
    dependency,
    key::Key,
    lent::Lent,
    read::{attempt::Attempted, shared::Inner},
    ticket::{Call, Permit, Ticket},
};

/// What an attempt comes to, of any work.
pub(crate) type Working<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;
/// Work that can be done again; a further attempt is rare, so it may cost an allocation.
pub(crate) type Repeat<T, E> =
    Arc<dyn Fn(Call<'static>, Option<Permit<'static>>) -> Working<T, E> + Send + Sync>;

/// What further attempts of a call need to know.
pub(crate) struct Retries<T, E> {
    pub(crate) work: Repeat<T, E>,
    /// The end of each attempt, beside the timeout.
    pub(crate) deadline: Deadline,
    /// The moment by which a further attempt has to begin.
    pub(crate) ends: Option<Mono>,
    pub(crate) criticality: Criticality,
}

/// A retry that was paid for. Who leaves before it is made has its cost back.
struct Paid {
    dependency: Arc<dependency::Inner>,
    retry: Option<Retry>,
}

impl Paid {
    /// Pays for another attempt, if this dependency grants one.
    fn grant(
        dependency: Arc<dependency::Inner>,
        failed: Failed,
        made: u32,
        ends: Option<Mono>,
        now: Mono,
    ) -> Option<Self> {
        match dependency.seat.retry(failed, made, ends, now) {
            Ok(retry) => Some(Self {
                dependency,
                retry: Some(retry),
            }),
            Err(why) => {
                if why == NoRetry::NoBudget {
                    dependency.tally.retries.denied();
                }
                None
            }
        }
    }
}

impl Drop for Paid {
    fn drop(&mut self) {
        if let Some(retry) = self.retry.take() {
            let now = self.dependency.engine.now().mono;
            self.dependency.seat.give_back(retry, now);
        }
    }
}

impl<T, E> Inner<T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Makes an attempt, and further ones where its work may be repeated and the dependency grants them.
    pub(super) async fn attempts<F, Fut>(
        self: &Arc<Self>,
        key: Option<&Key>,
        ticket: &mut Ticket<'static>,
        retries: Option<&Retries<T, E>>,
        work: F,
    ) -> Attempted<T, E>
    where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let (first, goes_on) = self.attempt_and_finish(key, ticket, work).await;
        // What goes on may yet bring the answer; to ask once more beside it would be twice the load.
        match retries.filter(|_| !goes_on && self.may_be_followed(&first)) {
            // Boxed: what few calls need is not to be carried by all.
            Some(retries) => Box::pin(self.again(key, ticket, first, retries)).await,
            None => first,
        }
    }

    /// Tells whether another attempt could follow at all: most have brought an answer.
    fn may_be_followed(&self, attempted: &Attempted<T, E>) -> bool {
        match attempted {
            Attempted::Value { value, .. } => self.class_of(value) != Class::Answer,
            Attempted::Error { .. } => true,
            Attempted::Untimed => false,
        }
    }

    /// Makes further attempts after one that came to `attempted` under `ticket`, for as long as the dependency grants
    /// them, and returns what the last one came to. Where none is granted that is `attempted` itself.
    async fn again(
        self: &Arc<Self>,
        key: Option<&Key>,
        ticket: &mut Ticket<'static>,
        mut attempted: Attempted<T, E>,
        retries: &Retries<T, E>,
    ) -> Attempted<T, E> {
        // Bounded by the contract's attempts: the dependency grants no more.
        for made in 1_u32.. {
            let Some(next) = self.next(ticket, &attempted, retries, made).await else {
                break;
            };
            *ticket = next;
            let work = |call, permit| (retries.work)(call, permit);
            // What the attempt before brought is of no use any more, and must hold nothing while the next one runs.
            drop(attempted);
            attempted = self.attempt(key, ticket, work).await;
        }
        attempted
    }

    /// Waits for the next attempt and has it admitted; `None` if there is none.
    async fn next(
        self: &Arc<Self>,
        ticket: &Ticket<'static>,
        attempted: &Attempted<T, E>,
        retries: &Retries<T, E>,
        made: u32,
    ) -> Option<Ticket<'static>> {
        let failed = self.failed(ticket, attempted)?;
        let newest = || match dependency::Inner::newest(Lent::Shared(Arc::clone(&self.dependency.0))) {
            Lent::Shared(newest) => newest,
            Lent::Borrowed(_) => Arc::clone(&self.dependency.0),
        };
        let mut dependency = newest();
        // Ends with the attempts of the contract, or the time of the call: a source that takes over in the pause is asked, and
        // paid, in the place of the one before.
        let mut paid = loop {
            let paid = Paid::grant(dependency, failed, made, retries.ends, self.now().mono)?;
            let at = paid.retry.as_ref().map_or(Mono::END, Retry::at);
            paid.dependency.engine.shared().clock.sleep_until(at).await.ok()?;
            if paid.dependency.is_newest() {
                break paid;
            }
            dependency = newest();
        };
        let dependency = Arc::clone(&paid.dependency);
        let now = self.now();
        let hold = self.look(now.mono).map(|(mode, _)| mode);
        if hold.is_some_and(|mode| !mode.lets_ask()) {
            return None;
        }
        let observes = hold.is_some();
        dependency.overtakes(retries.criticality, observes).ok()?;
        let retry = paid.retry.take()?;
        let next = Lent::Shared(Arc::clone(&dependency));
        let mut next =
            dependency::Inner::admit_again(next, retries.criticality, retry, now, observes).ok()?;
        dependency.tally.retries.made();
        next.limit = retries
            .deadline
            .attempt(now.mono, dependency.seat.contract().timeout());
        next.may_outlive = ticket.may_outlive;
        Some(next)
    }

    /// Says what failed, if it is over and no probe: a probe's result is for the breaker.
    fn failed(&self, ticket: &Ticket<'static>, attempted: &Attempted<T, E>) -> Option<Failed> {
        if ticket.was_probe || ticket.goes_on() {
            return None;
        }
        match attempted {
            Attempted::Value { value, .. } => Some(Failed {
                class: self.class_of(value),
                advice: self.advice_of_value(value),
            }),
            Attempted::Error { class, error, .. } => Some(Failed {
                class: *class,
                advice: error
                    .as_ref()
                    .map_or(Advice::Whenever, |error| self.advice_of_error(error)),
            }),
            Attempted::Untimed => None,
        }
    }

    fn advice_of_value(&self, value: &T) -> Advice {
        self.advice_of
            .as_ref()
            .map_or(Advice::Whenever, |advice| advice(value))
    }

    fn advice_of_error(&self, error: &E) -> Advice {
        self.advice
            .as_ref()
            .map_or(Advice::Whenever, |advice| advice(error))
    }

    /// Has a busy dependency left alone, by what came with a value.
    pub(super) fn heed_value(&self, ticket: &Ticket<'_>, class: Class, value: &T, now: Mono) {
        if class == Class::Busy {
            ticket.heed(class, self.advice_of_value(value), now);
        }
    }

    /// Has a busy dependency left alone, by what came with an error.
    pub(super) fn heed_error(&self, ticket: &Ticket<'_>, class: Class, error: &E, now: Mono) {
        if class == Class::Busy {
            ticket.heed(class, self.advice_of_error(error), now);
        }
    }
}
