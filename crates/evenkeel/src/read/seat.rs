//! Decides how a call comes by its permit: at once, or after a wait in the dependency's queue.
//! It exists apart from the call so that whoever finds a permit free passes nothing of it.
//! It refuses to wait for a probe, past the time of the call's own attempts, or while nobody is let in.

use std::{pin::pin, sync::Arc};

use evenkeel_core::{HoldMode, Mono, Reason, Refusal};

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
        let dependency = dependency::Inner::newest(dependency);
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
        Box::pin(self.queued(line, dependency)).await
    }

    async fn queued<'d>(
        &mut self,
        mut line: Arc<Line>,
        mut dependency: Lent<'d, dependency::Inner>,
    ) -> Result<Ticket<'d>, Refusal> {
        // What is kept free for the alternate is not for waiting.
        let mut ends = self.call.attempts_until().at();
        // Ends with the first place's time: another source that takes over gives no more of it.
        loop {
            let waited = self.wait_in(&line, &dependency, ends).await;
            let until = match waited {
                Ok(ticket) => return Ok(ticket),
                Err(Unseated::Refused(refusal)) => return Err(refusal),
                Err(Unseated::Moved { until }) => until,
            };
            ends = Some(until);
            dependency = dependency::Inner::newest(dependency);
            match self.admit(dependency.again()) {
                Err(refusal) if is_worth_waiting(&refusal) => {}
                seated => return seated,
            }
            line = match &dependency.line {
                Some(line) => Arc::clone(line),
                None => return Err(refused(Reason::AtCapacity)),
            };
        }
    }

    async fn wait_in<'d>(
        &mut self,
        line: &Arc<Line>,
        dependency: &Lent<'d, dependency::Inner>,
        ends: Option<Mono>,
    ) -> Result<Ticket<'d>, Unseated> {
        let joined = line.join(self.criticality, self.now.mono, ends);
        let Some(waiter) = joined else {
            return Err(refused(Reason::AtCapacity).into());
        };
        // A permit may have come free before it joined, and then nobody has called.
        let mut may_try = waiter.is_next();
        // Ends at the place's expiry: each turn is a call, and each call somebody's leaving.
        loop {
            if may_try {
                match self.admit(dependency.again()) {
                    Err(refusal) if is_worth_waiting(&refusal) => {}
                    Err(refusal) => return Err(refusal.into()),
                    Ok(ticket) => return Ok(ticket),
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
                Outcome::OutOfTime => return Err(self.expired(dependency).into()),
                Outcome::NoTimer => {
                    self.is_untimed = true;
                    return Err(refused(Reason::AtCapacity).into());
                }
            }
            if self.now.mono >= waiter.expires() {
                return Err(self.expired(dependency).into());
            }
            if !waiter.is_up() {
                return Err(refused(Reason::Shed).into());
            }
            if let Some((mode, until)) = self.guard.look(self.now.mono)
                && mode != HoldMode::ForcedClosed
            {
                let held = Refusal {
                    reason: Reason::Held,
                    retry_at: Some(until),
                };
                return Err(held.into());
            }
            if dependency::Inner::newest(dependency.again())
                .line
                .as_ref()
                .is_none_or(|now| !Arc::ptr_eq(now, line))
            {
                return Err(Unseated::Moved {
                    until: waiter.expires(),
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

/// Why a call that has waited has no permit.
enum Unseated {
    Refused(Refusal),
    /// Another source has taken over, where others wait, or nobody.
    Moved {
        /// When its wait ends.
        until: Mono,
    },
}

impl From<Refusal> for Unseated {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
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
