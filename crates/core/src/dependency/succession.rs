//! Decides how a dependency goes on by another contract: with the same permits, breaker, ramp, limit, budget and queue.
//! It exists because a contract that is loaded anew must neither let everybody in at once nor forget who is in flight.
//! It refuses to change anything before it is asked to: a successor may be made and thrown away.

use alloc::{sync::Arc, vec::Vec};

use super::{Dependency, Exclusive, is_metered};
use crate::{
    abandoned::Abandoned, breaker::Gate, bulkhead::Bulkhead, contract::DependencyContract,
    limit::meter::Meter, steering::Steering, time::Mono,
};

impl<L: Exclusive<Steering>> Dependency<L> {
    /// Makes a dependency by another contract that shares with this one whatever both have: state and generation of the
    /// breaker, permits in use, where the ramp stands, what is learned, what retries may cost, abandoned work.
    ///
    /// The new rules hold for the shared parts once the successor [takes over](Self::take_over). Passes of this one are
    /// settled and released here, as ever. What the one has and the other has not begins anew: a concurrency that was not
    /// declared before counts the attempts from then on.
    #[must_use]
    pub fn successor(&self, contract: DependencyContract, resources: Vec<Arc<Bulkhead>>) -> Self {
        let gate = contract.breaker().map(|rules| match &self.gate {
            Some(gate) => gate.succeeded_by(rules),
            None => Gate::new(rules),
        });
        let meter = is_metered(&contract).then(|| match &self.meter {
            Some(meter) => Arc::clone(meter),
            None => Arc::new(Meter::new(contract.linger())),
        });
        let bulkhead = contract.concurrency().map(|permits| match &self.bulkhead {
            Some(bulkhead) => Arc::clone(bulkhead),
            None => Arc::new(Bulkhead::new(permits)),
        });
        let abandoned = contract.abandoned().map(|most| match &self.abandoned {
            Some(abandoned) => abandoned.succeeded_by(most),
            None => Abandoned::new(most, contract.abandoned_for()),
        });
        Self {
            gate,
            meter,
            steering: Arc::clone(&self.steering),
            bulkhead,
            resources,
            again: self.again.succeeded_by(contract.retry().copied()),
            priorities: Arc::clone(&self.priorities),
            abandoned,
            contract,
        }
    }

    /// Tells whether one is a successor of the other.
    #[must_use]
    pub fn shares_state_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.steering, &other.steering)
    }

    /// Has the rules of this contract hold from `now` on, for those too who ask a predecessor.
    ///
    /// A lower concurrency lets nobody in until fewer are in flight. Who is open stays open until the probe that was due, or
    /// as long as the new rules allow at most; a ramp goes on with the largest stage of the new rules that is no larger than
    /// the one before. `seed` draws the jitter of what was not there before.
    pub fn take_over(&self, seed: u64, now: Mono) {
        if let (Some(bulkhead), Some(permits)) = (&self.bulkhead, self.contract.concurrency()) {
            bulkhead.set_limit(permits);
        }
        if let Some(abandoned) = &self.abandoned {
            abandoned.set_span(self.contract.abandoned_for(), now);
        }
        let (gate, meter) = (self.gate.as_ref(), self.meter.as_ref());
        self.steering
            .with(|steering| steering.succeed(&self.contract, gate, meter, seed, now));
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
