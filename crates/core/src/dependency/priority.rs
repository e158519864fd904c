//! Decides which calls go without when the permits that are left are kept for others.
//! It exists apart from the admission so that where all calls matter equally it is one load beside it.
//! It refuses before anything is taken: who is shed has cost nothing.

use super::Dependency;
use crate::{
    criticality::Criticality,
    pass::{Pass, Refusal, Through},
    reason::Reason,
    time::Mono,
};

impl<L> Dependency<L> {
    /// Lets a call in if there is room for one that matters this much. What is reserved is for anybody.
    pub(super) fn enter_as(
        &self,
        criticality: Criticality,
        through: Through,
        reserved: bool,
        now: Mono,
    ) -> Result<Pass, Refusal> {
        if !reserved
            && self
                .abandoned
                .as_ref()
                .is_some_and(|abandoned| abandoned.is_full(now))
        {
            return Err(Refusal {
                reason: Reason::AtCapacity,
                retry_at: None,
            });
        }
        let several = self.priorities.several(criticality);
        let Some(limit) = self.permits(now).filter(|_| several && !reserved) else {
            return self.enter(through, reserved, now);
        };
        let in_flight = self.in_flight().unwrap_or(0);
        let room = self.priorities.room(criticality, limit, now);
        // Two at once may both see the last place of the room: what is kept is a margin, the limit itself is exact.
        if (room..limit).contains(&in_flight) {
            if let Some(meter) = &self.meter {
                meter.turned_away();
            }
            return Err(Refusal {
                reason: Reason::Shed,
                retry_at: None,
            });
        }
        let can_wait = self.contract.queue().is_some();
        let entered = self.enter(through, false, now);
        match &entered {
            Ok(_) => self
                .priorities
                .let_in(criticality, in_flight.saturating_add(1), limit, can_wait, now),
            Err(_) if !can_wait => self.priorities.refused(criticality, now),
            // Its driver tells whether it has waited in vain.
            Err(_) => {}
        }
        entered
    }

    /// Notes that such a call has waited in the queue until its place expired: more permits are then kept for its kind.
    pub fn waited_in_vain(&self, criticality: Criticality, now: Mono) {
        if self.priorities.several(criticality) {
            self.priorities.refused(criticality, now);
        }
    }

    /// Returns how many attempts may be in flight now, by what is declared and what is learned.
    fn permits(&self, now: Mono) -> Option<u32> {
        let declared = self.bulkhead().map(crate::bulkhead::Bulkhead::limit);
        let metered = self.meter.as_ref().and_then(|meter| {
            let limit = meter.limit()?;
            Some(limit.saturating_sub(meter.lingering(now)))
        });
        match (declared, metered) {
            (Some(declared), Some(metered)) => Some(declared.min(metered)),
            (one, other) => one.or(other),
        }
    }
}
