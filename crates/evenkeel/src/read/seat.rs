//! Decides how a call comes by its permit: at once, or after a wait in the dependency's queue.
//! It exists apart from the call so that whoever finds a permit free passes nothing of it.
//! It refuses to wait for a probe, past the time of the call's own attempts, or while nobody is let in.

use std::{pin::pin, sync::Arc};

use evenkeel_core::{HoldMode, Reason, Refusal};

use crate::{
    dependency,
    lent::Lent,
    line::Line,
    parked::park,
    read::running::Running,
    ticket::Ticket,
    until::{Outcome, until},
};

impl<T, E> Running<'_, T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Asks for admission of one attempt. Where the dependency has a queue, a call that finds no permit waits there.
    pub(super) async fn seat<'d>(
        &mut self,
        dependency: Lent<'d, dependency::Inner>,
    ) -> Result<Ticket<'d>, Refusal> {
        let line = match &dependency.line {
            Some(line) if self.may_queue() => Arc::clone(line),
            Some(_) | None => return self.admit(dependency),
        };
        let lets_in = dependency.seat.lets_traffic_in();
        if !lets_in || !line.is_ahead_of(self.criticality) {
            match self.admit(dependency.again()) {
                Err(refusal) if lets_in && is_worth_waiting(&refusal) => {}
                seated => return seated,
            }
        }
        // Boxed: a wait is rare, and its state is not to be carried by every call.
        Box::pin(self.queued(&line, dependency)).await
    }

    async fn queued<'d>(
        &mut self,
        line: &Arc<Line>,
        dependency: Lent<'d, dependency::Inner>,
    ) -> Result<Ticket<'d>, Refusal> {
        // What is kept free for the alternate is not for waiting.
        let ends = self.call.attempts_until().at();
        let joined = line.join(self.criticality, self.now.mono, ends);
        let Some(waiter) = joined else {
            return Err(refused(Reason::AtCapacity));
        };
        // A permit may have come free before it joined, and then nobody has called.
        let mut may_try = waiter.is_next();
        // Ends at the place's expiry: each turn is a call, and each call somebody's leaving.
        loop {
            if may_try {
                match self.admit(dependency.again()) {
                    Err(refusal) if is_worth_waiting(&refusal) => {}
                    seated => return seated,
                }
            }
            let clock = &self.guard.dependency.0.engine.shared().clock;
            let waited = {
                let called = pin!(waiter.called());
                let waiting = pin!(until(clock, Some(waiter.expires()), called));
                park(&mut self.parked, waiting).await
            };
            self.now = self.guard.now();
            match waited {
                Outcome::AtOnce(()) | Outcome::Later(()) => {}
                Outcome::OutOfTime => return Err(self.expired(&dependency)),
                Outcome::NoTimer => {
                    self.is_untimed = true;
                    return Err(refused(Reason::AtCapacity));
                }
            }
            if self.now.mono >= waiter.expires() {
                return Err(self.expired(&dependency));
            }
            if !waiter.is_up() {
                return Err(refused(Reason::Shed));
            }
            if let Some((mode, until)) = self.guard.look(self.now.mono)
                && mode != HoldMode::ForcedClosed
            {
                return Err(Refusal {
                    reason: Reason::Held,
                    retry_at: Some(until),
                });
            }
            may_try = true;
        }
    }

    fn expired(&self, dependency: &dependency::Inner) -> Refusal {
        dependency.seat.waited_in_vain(self.criticality, self.now.mono);
        refused(Reason::QueueExpired)
    }
}

/// Tells whether a permit that comes free would let the call in.
const fn is_worth_waiting(refusal: &Refusal) -> bool {
    matches!(refusal.reason, Reason::AtCapacity | Reason::Shed)
}

const fn refused(reason: Reason) -> Refusal {
    Refusal {
        reason,
        retry_at: None,
    }
}
