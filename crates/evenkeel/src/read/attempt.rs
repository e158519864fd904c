//! Decides how one attempt is made and what its result means: limit, class, verdict, snapshot.
//! It exists once, for calls, for probes in the background and for flights, so that they cannot differ.
//! It refuses to decide what the caller gets; that is the call's.

use std::pin::pin;

use evenkeel_core::{Class, Outage};

use crate::{
    key::Key,
    read::shared::Inner,
    ticket::{Call, Permit, Ticket},
    until::{Outcome, until},
};
use evenkeel_core::Now;

/// What an attempt brought.
#[derive(Debug)]
pub(crate) enum Attempted<T, E> {
    /// A value; it has been kept if it is to be.
    Value { value: T, began: Now },
    /// An error, or nothing in time (then there is no error).
    Error {
        class: Class,
        error: Option<E>,
        probe: bool,
    },
}

impl<T: Clone, E> Inner<T, E> {
    /// Makes the attempt that `ticket` admits.
    pub(crate) async fn attempt<'d, F, Fut>(
        &self,
        key: Option<&Key>,
        ticket: &mut Ticket<'d>,
        work: F,
    ) -> Attempted<T, E>
    where
        F: FnOnce(Call<'d>, Option<Permit<'d>>) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let (began, limit, probe) = (ticket.began, ticket.limit, ticket.is_probe());
        let (call, permit) = ticket.parts();
        let clock = &self.dependency.0.engine.shared().clock;
        let outcome = {
            let work = pin!(work(call, permit));
            until(clock, limit.at(), work).await
        };
        let at_once = matches!(outcome, Outcome::AtOnce(_));
        match outcome {
            Outcome::AtOnce(Ok(value)) | Outcome::Later(Ok(value)) => {
                let class = self.class_of(&value);
                let now = if at_once || !ticket.wants_time() {
                    began.mono
                } else {
                    self.now().mono
                };
                ticket.settle(class, true, now);
                self.keep(key, &value, class, began);
                Attempted::Value { value, began }
            }
            Outcome::AtOnce(Err(error)) | Outcome::Later(Err(error)) => {
                let class = (self.classify)(&error);
                ticket.settle(class, true, self.now().mono);
                if let (Class::Gone, Some(key)) = (class, key) {
                    self.memory.remove(key, began.mono);
                }
                Attempted::Error {
                    class,
                    error: Some(error),
                    probe,
                }
            }
            Outcome::OutOfTime => {
                let class = Class::Outage(Outage::TimedOut);
                ticket.settle(class, limit.blames_the_dependency(), self.now().mono);
                Attempted::Error {
                    class,
                    error: None,
                    probe,
                }
            }
        }
    }
}
