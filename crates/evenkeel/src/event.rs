//! Decides what is worth telling an operator: changes of state, each once, with who and why.
//! It exists so that events are fetched when somebody has time for them, never called back under a lock.
//! It refuses to grow: when nobody fetches, the oldest go and their number is kept.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use evenkeel_core::{HoldMode, RampEvent, Rung, Transition, Wall};
use parking_lot::Mutex;

use crate::counts::Exercised;

/// Something that happened to a guard or a dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, by the wall clock.
    pub at: Wall,
    /// The name of the guard or dependency.
    pub name: Arc<str>,
    /// What.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A circuit breaker changed its state.
    Breaker(Transition),
    /// A recovery ramp went a step on, or back.
    Ramp(RampEvent),
    /// An operator put a hold on.
    Held {
        /// The forced mode.
        mode: HoldMode,
        /// Who.
        by: String,
        /// Why.
        why: String,
        /// For how long; `None` until released.
        lasts: Option<Duration>,
    },
    /// A hold was taken off.
    Released {
        /// The mode that ended.
        mode: HoldMode,
        /// Who; `None` when it expired.
        by: Option<String>,
    },
    /// A rung that was well was tried beside a live answer, and did not do: it failed, or what it brought differs.
    Exercised {
        /// The alternate or the default.
        rung: Rung,
        /// [`Exercised::Failed`] or [`Exercised::Differed`].
        came_to: Exercised,
    },
    /// An operator reset a circuit breaker.
    Reset {
        /// Who.
        by: String,
        /// Why.
        why: String,
    },
}

/// Events that nobody has fetched yet.
#[derive(Debug, Default)]
pub(crate) struct Events(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Event>,
    lost: u64,
}

/// More than this many unfetched events: the oldest goes.
const WAITING_MAX: usize = 1024;

impl Events {
    pub(crate) fn push(&self, event: Event) {
        let mut queue = self.0.lock();
        if queue.waiting.len() >= WAITING_MAX {
            queue.waiting.pop_front();
            queue.lost += 1;
        }
        queue.waiting.push_back(event);
    }

    pub(crate) fn drain(&self) -> Vec<Event> {
        self.0.lock().waiting.drain(..).collect()
    }

    pub(crate) fn lost(&self) -> u64 {
        self.0.lock().lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_events_stay_and_the_lost_are_counted() {
        let events = Events::default();
        for second in 0..=WAITING_MAX {
            let at = Wall::from_nanos(i64::try_from(second).unwrap());
            let kind = EventKind::Released {
                mode: HoldMode::ForcedOff,
                by: None,
            };
            events.push(Event {
                at,
                name: "g".into(),
                kind,
            });
        }
        let drained = events.drain();
        assert_eq!((drained.len(), events.lost()), (WAITING_MAX, 1));
        assert_eq!(drained[0].at, Wall::from_nanos(1));
        assert!(events.drain().is_empty());
    }
}
