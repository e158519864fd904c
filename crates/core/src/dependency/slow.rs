//! Decides when an attempt counts as slow: the moment it has taken as long as the rules say, whoever finds out.
//! It exists because a dependency that has become slow holds everything up long before anything fails, and a hung call
//! gives no result that could be judged.
//! It refuses to count an attempt twice, and to blame one that its caller gave no time.

use crate::{
    breaker::{SlowRatio, Transition},
    class::{Class, Outage},
    dependency::{Dependency, Exclusive, caused},
    lane::Lane,
    pass::{Pass, Through},
    steering::Steering,
    time::Mono,
};

impl<L> Dependency<L> {
    /// Returns when an attempt becomes slow, if it is still under way then; `None` where nothing would follow.
    ///
    /// A driver calls [`Dependency::crossed`] at that time, so that a hung call is found out although nobody else comes.
    #[must_use]
    pub fn slow_at(&self, pass: &Pass) -> Option<Mono> {
        let SlowRatio { after, .. } = self.contract.breaker()?.slow?;
        (pass.is_judged() && !pass.slow && !pass.answered).then(|| pass.began.after(after))
    }

    /// Tells whether an attempt that began then and ends now says something about how quick the dependency is.
    const fn tells_speed(class: Class) -> bool {
        match class {
            Class::Answer | Class::Refusal | Class::Gone | Class::Busy => true,
            // Somebody's patience was over, whoever's it was.
            Class::Outage(Outage::TimedOut) => false,
            Class::Outage(_) => true,
            Class::Fault | Class::Local | Class::Cancelled => false,
        }
    }
}

impl<L: Exclusive<Steering>> Dependency<L> {
    /// Counts an attempt as slow that is still under way at its [`Dependency::slow_at`]. Earlier it changes nothing.
    ///
    /// A probe has failed with it: what it may still bring comes too late to prove anything.
    pub fn crossed(&self, pass: &mut Pass, lane: Lane, now: Mono) -> Option<Transition> {
        if self.slow_at(pass)? > now {
            return None;
        }
        let gate = self.gate.as_ref()?;
        pass.slow = true;
        match pass.through {
            Through::Free => None,
            Through::Counted(generation) => {
                let trip = gate.is_slow(lane, now, generation)?;
                self.steering.with(|steering| steering.tripped(trip, now))
            }
            Through::Probe(_) => {
                let Through::Probe(probe) = core::mem::replace(&mut pass.through, Through::Free) else {
                    return None;
                };
                self.steering.with(|steering| steering.slow(probe, now))
            }
        }
    }

    /// Counts how quick an attempt was whose answer begins, or whose result comes, and names that result.
    pub(super) fn timed(&self, pass: &mut Pass, class: Class, lane: Lane, now: Mono) -> Option<Transition> {
        let slow_at = self.slow_at(pass)?;
        if slow_at <= now && class != Class::Local {
            return self
                .crossed(pass, lane, now)
                .map(|transition| caused(transition, class));
        }
        if let (Some(gate), Through::Counted(generation), true) =
            (&self.gate, &pass.through, Self::tells_speed(class))
        {
            gate.was_quick(lane, now, *generation);
        }
        None
    }
}
