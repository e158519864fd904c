//! Decides how a call comes by its permit: at once, or after a wait in the dependency's queue.
//! It exists apart from the call so that whoever finds a permit free passes nothing of it.
//! It refuses to wait for a probe, past the time of the call's own attempts, or while nobody is let in.

use std::{pin::pin, sync::Arc};

use evenkeel_core::{HoldMode, Mono, Reason, Refusal, Step};

use crate::{
    dependency,
    lent::Lent,
    line::{Line, Waiter},
    parked::park,
    read::{held::Moment, running::Running},
    ticket::Ticket,
    until::{Outcome, until},
};

/// Why a call goes on without a permit.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unseated {
    /// It was refused admission.
    Refused(Refusal),
    /// Something ended its wait by another step: a copy, or a hold.
    Ended(Step),
}

impl From<Refusal> for Unseated {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// What ended the wait in one queue without a permit.
enum Waited {
    Unseated(Unseated),
    /// Another source has taken over, where others wait, or nobody.
    Moved {
        /// When its wait ends.
        until: Mono,
    },
}

impl<U: Into<Unseated>> From<U> for Waited {
    fn from(why: U) -> Self {
        Self::Unseated(why.into())
    }
}

impl<T, E> Running<'_, T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Asks for admission of one attempt. Where the dependency has a queue, a call that finds no permit waits there.
    pub(super) async fn seat<'d>(
        &mut self,
        dependency: Lent<'d, dependency::Inner>,
    ) -> Result<Ticket<'d>, Unseated> {
        let dependency = dependency::Inner::newest(dependency);
        let line = match &dependency.line {
            Some(line) if self.may_queue() => Arc::clone(line),
            Some(_) | None => return Ok(self.admit(dependency)?),
        };
        // Under forced-closed the breaker keeps nobody away, so it does not decide who waits either.
        let lets_in = self.observes || dependency.seat.lets_traffic_in();
        if !lets_in || !line.is_ahead_of(self.criticality) {
            match self.admit(dependency.again()) {
                Err(refusal) if lets_in && is_worth_waiting(&refusal) => {}
                seated => return Ok(seated?),
            }
        }
        // Boxed: a wait is rare, and its state is not to be carried by every call.
        Box::pin(self.queued(line, dependency)).await
    }

    async fn queued<'d>(
        &mut self,
        mut line: Arc<Line>,
        mut dependency: Lent<'d, dependency::Inner>,
    ) -> Result<Ticket<'d>, Unseated> {
        // What is kept free for the alternate is not for waiting.
        let mut ends = self.call.attempts_until().at();
        // Ends with the first place's time: another source that takes over gives no more of it.
        loop {
            let waited = self.wait_in(&line, &dependency, ends).await;
            let until = match waited {
                Ok(ticket) => return Ok(ticket),
                Err(Waited::Unseated(why)) => return Err(why),
                Err(Waited::Moved { until }) => until,
            };
            ends = Some(until);
            dependency = dependency::Inner::newest(dependency);
            match self.admit(dependency.again()) {
                Err(refusal) if is_worth_waiting(&refusal) => {}
                seated => return Ok(seated?),
            }
            line = match &dependency.line {
                Some(line) => Arc::clone(line),
                None => return Err(refused(Reason::AtCapacity).into()),
            };
        }
    }

    async fn wait_in<'d>(
        &mut self,
        line: &Arc<Line>,
        dependency: &Lent<'d, dependency::Inner>,
        ends: Option<Mono>,
    ) -> Result<Ticket<'d>, Waited> {
        let joined = line.join(self.criticality, self.now.mono, ends);
        let Some(waiter) = joined else {
            return Err(refused(Reason::AtCapacity).into());
        };
        let mut patience = self.call.slow_at().filter(|at| *at > self.now.mono);
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
            let is_called = match self.turn(&waiter, patience).await {
                Outcome::AtOnce(()) | Outcome::Later(()) => true,
                Outcome::OutOfTime => false,
                Outcome::NoTimer => {
                    self.is_untimed = true;
                    return Err(refused(Reason::AtCapacity).into());
                }
            };
            if self.now.mono >= waiter.expires() {
                dependency.seat.waited_in_vain(self.criticality, self.now.mono);
                return Err(refused(Reason::QueueExpired).into());
            }
            if patience.is_some_and(|at| self.now.mono >= at) {
                patience = None;
                let facts = self.look(Moment::AfterFailure);
                if let Some(step) = self.call.slow_in_queue(facts, self.now.mono) {
                    return Err(Unseated::Ended(step).into());
                }
            }
            may_try = is_called;
            if !is_called {
                continue;
            }
            if !waiter.is_up() {
                return Err(refused(Reason::Shed).into());
            }
            if let Some(step) = self.held_meanwhile() {
                return Err(Unseated::Ended(step).into());
            }
            if dependency::Inner::newest(dependency.again())
                .line
                .as_ref()
                .is_none_or(|now| !Arc::ptr_eq(now, line))
            {
                return Err(Waited::Moved {
                    until: waiter.expires(),
                });
            }
        }
    }

    /// Waits until the call is called, its place expires, or a copy should be looked for.
    async fn turn(&mut self, waiter: &Waiter, patience: Option<Mono>) -> Outcome<()> {
        let ends = waiter.expires().min(patience.unwrap_or(Mono::END));
        let clock = &self.guard.dependency.0.engine.shared().clock;
        let called = pin!(waiter.called());
        let waiting = pin!(until(clock, Some(ends), called));
        let waited = park(&mut self.parked, waiting).await;
        self.now = self.guard.now();
        waited
    }

    /// Takes over the hold that is in force now; a step where it ends the call.
    fn held_meanwhile(&mut self) -> Option<Step> {
        let hold = self.guard.look(self.now.mono);
        let mode = hold.map(|(mode, _)| mode);
        self.observes = mode.is_some_and(HoldMode::lets_ask);
        let step = self.call.hold_now(mode)?;
        self.retry_at = hold.and_then(|(_, until)| (until < Mono::END).then_some(until));
        Some(step)
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
