//! Decides where a probe finds its place: beside the permits of the dependency, and among those of resources.
//! It exists because work from before the opening may hold every permit for as long as it likes (E15): a stream, a hang.
//! It refuses to overdraw a resource, which others live on: a probe waits for a permit there like everybody.

use crate::{
    bulkhead::{Bulkhead, acquire_all},
    dependency::Dependency,
    limit::meter::{Entry, Meter},
    pass::Refusal,
    reason::Reason,
    time::Mono,
};

impl<L> Dependency<L> {
    /// Takes what a probe needs, or nothing: of the dependency's own permits one of those in use or one beyond them, as
    /// many beyond as there may be probes.
    pub(super) fn enter_as_probe(&self, now: Mono) -> Result<Option<Entry>, Refusal> {
        let beyond = self.contract.breaker().map_or(0, |rules| rules.probes);
        let own = self.bulkhead();
        let is_in = own.is_none_or(|bulkhead| bulkhead.acquire_beyond(beyond));
        if is_in && acquire_all(self.resources.iter().map(|resource| &**resource)).is_ok() {
            return Ok(self
                .meter
                .as_deref()
                .map(|meter| Meter::enter_reserved(meter, now)));
        }
        if let (true, Some(bulkhead)) = (is_in, own) {
            Bulkhead::release(bulkhead);
        }
        Err(Refusal {
            reason: Reason::AtCapacity,
            retry_at: None,
        })
    }
}
