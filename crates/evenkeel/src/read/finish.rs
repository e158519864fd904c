//! Decides what becomes of work whose attempt ran into its limit: it may go on for a while and bring its answer home.
//! It exists because a caller who stops waiting proves nothing about the work, and throwing it away costs the source
//! as much as using it.
//! It refuses to free the permit of what goes on, to give it a second verdict, and to let it go on without an end.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use evenkeel_core::{Class, Mono, Now, Outage};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::{
    counts::Refreshed,
    key::Key,
    read::{again::Working, attempt::Attempted, refresh::Counted, shared::Inner},
    tail::{Tail, WorkEnd},
    ticket::{Call, Permit, Ticket},
    until::{Outcome, until},
};

/// Where the work is between two looks at it, so that it can be taken on by somebody else.
struct Slot<T, E>(Arc<Mutex<Option<Working<T, E>>>>);

impl<T, E> Future for Slot<T, E> {
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Taken out: it is somebody else's code, and not to be run under a lock.
        let Some(mut work) = self.0.lock().take() else {
            return Poll::Pending;
        };
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            *self.0.lock() = Some(work);
        }
        polled
    }
}

/// Work that goes on after its attempt has had its verdict.
struct Leftover<T, E> {
    work: Working<T, E>,
    key: Option<Key>,
    began: Now,
    ends: Mono,
    tail: Option<Arc<Tail>>,
}

impl<T, E> Inner<T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Makes an attempt; where the contract says so, its work goes on after its limit. `true` if it does.
    pub(super) async fn attempt_and_finish<F, Fut>(
        self: &Arc<Self>,
        key: Option<&Key>,
        ticket: &mut Ticket<'static>,
        work: F,
    ) -> (Attempted<T, E>, bool)
    where
        F: FnOnce(Call<'static>, Option<Permit<'static>>) -> Fut,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let (Some(span), Ok(runtime)) = (self.contract.finish_within(), Handle::try_current()) else {
            return (self.attempt(key, ticket, work).await, false);
        };
        let slot = Arc::new(Mutex::new(None));
        let inside = Arc::clone(&slot);
        let work = move |call, permit| {
            let working: Working<T, E> = Box::pin(work(call, permit));
            *inside.lock() = Some(working);
            Slot(inside)
        };
        let attempted = self.attempt(key, ticket, work).await;
        let timed_out = matches!(
            attempted,
            Attempted::Error {
                class: Class::Outage(Outage::TimedOut),
                error: None,
                ..
            }
        );
        let left = slot.lock().take().filter(|_| timed_out);
        let Some(work) = left else {
            return (attempted, false);
        };
        let leftover = Leftover {
            work,
            key: key.cloned(),
            began: ticket.began,
            ends: self.now().mono.after(span),
            tail: ticket.tail().cloned(),
        };
        let guard = Arc::clone(self);
        runtime.spawn(async move { guard.finish_late(leftover).await });
        (attempted, true)
    }

    /// Runs work to its end, or to the end of its time, and keeps what it brings.
    async fn finish_late(self: Arc<Self>, leftover: Leftover<T, E>) {
        let Leftover {
            work,
            key,
            began,
            ends,
            tail,
        } = leftover;
        let clock = &self.dependency.0.engine.shared().clock;
        let mut end = Counted::new(&self);
        let outcome = until(clock, Some(ends), pin!(work)).await;
        if let Outcome::AtOnce(result) | Outcome::Later(result) = outcome {
            let retired = match &result {
                Ok(value) => {
                    // What still flows is nobody's to follow, so it says nothing about what is kept.
                    let is_whole = tail.is_none_or(|tail| tail.ended() == Some(WorkEnd::Well));
                    let under = key.as_ref().filter(|_| is_whole);
                    let kept = self.keep(under, value, self.class_of(value), began);
                    end.end = if kept.is_yes() || (key.is_none() && self.is_kept(value)) {
                        Refreshed::Kept
                    } else {
                        Refreshed::NotKept
                    };
                    kept.supersedes()
                }
                Err(error) => ((self.classify)(error) == Class::Gone).then_some(began.mono),
            };
            if let (Some(at), Some(key)) = (retired, &key) {
                self.memory.retire(key, at);
            }
        }
        drop(end);
    }
}
