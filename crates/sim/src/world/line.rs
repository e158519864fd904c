//! Decides how calls wait for a permit in virtual time: they join, are called, expire and leave by events.
//! It exists as the counterpart of the library's driver of the same queue.
//! It refuses to decide whose turn it is; that is the engine's.

use evenkeel_core::{Mono, Queue, Reason, Refusal, Step};

use super::{Event, World};
use crate::{setup::Node, slab::Id};

impl World<'_> {
    /// Makes the queue that a contract asks for.
    pub(super) fn queue_of(node: &Node) -> Option<Queue<Id>> {
        node.seat.contract().queue().copied().map(Queue::new)
    }

    /// Tells whether such a call has to wait behind others.
    pub(super) fn is_behind(&self, node: usize) -> bool {
        let criticality = self.nodes[node].read.criticality();
        let queue = self.lines[self.homes[node]].as_ref();
        queue.is_some_and(|queue| queue.is_ahead_of(criticality))
    }

    /// Lets a call wait that found no permit; `false` if there is no queue, or no place in it.
    pub(super) fn waits(&mut self, id: Id, node: usize, refusal: Refusal, now: Mono) -> bool {
        if !matches!(refusal.reason, Reason::AtCapacity | Reason::Shed) {
            return false;
        }
        let criticality = self.nodes[node].read.criticality();
        let (Some(queue), Some(call)) = (&mut self.lines[self.homes[node]], self.calls.get(id)) else {
            return false;
        };
        let ends = call.read.deadline().at();
        let Ok(joined) = queue.join(criticality, now, ends, id) else {
            return false;
        };
        call.place = Some(joined.place);
        self.queue.plan(joined.place.expires(), Event::Expired(id));
        if let Some(displaced) = joined.instead_of {
            self.turned_away(displaced, Reason::Shed, now);
        }
        true
    }

    /// A place has expired, if its call still waits.
    pub(super) fn expired(&mut self, id: Id, now: Mono) {
        let place = self.calls.get(id).and_then(|call| call.place);
        if place.is_some_and(|place| place.expires() <= now) {
            if let Some(call) = self.calls.get(id) {
                let Node { read, seat } = &self.nodes[call.node];
                seat.waited_in_vain(read.criticality(), now);
            }
            self.turned_away(id, Reason::QueueExpired, now);
        }
    }

    /// Something was given back, or a limit has moved.
    pub(super) fn freed(&mut self, node: usize, now: Mono) {
        let waiting = self.lines[self.homes[node]].as_ref();
        if waiting.is_some_and(|queue| !queue.is_empty()) {
            self.queue.plan(now, Event::Turn(node));
        }
    }

    /// Lets in whoever can be let in now.
    pub(super) fn call_next(&mut self, node: usize, now: Mono) {
        let home = self.homes[node];
        while let Some(id) = self.lines[home]
            .as_mut()
            .and_then(|queue| queue.call(now))
            .copied()
        {
            let Some(call) = self.calls.get(id) else { continue };
            let (node, key, Some(place)) = (call.node, call.key, call.place) else {
                continue;
            };
            match self.seat(id, node, key, now) {
                Err(refusal) if matches!(refusal.reason, Reason::AtCapacity | Reason::Shed) => {
                    if let Some(queue) = &mut self.lines[home] {
                        queue.up(place);
                    }
                    return;
                }
                Err(refusal) => self.turned_away(id, refusal.reason, now),
                Ok(step) => {
                    self.leaves_line(id);
                    if let Some(step) = step {
                        self.drive(id, step, now);
                    }
                }
            }
        }
    }

    /// Gives up the place of a call, if it has one.
    pub(super) fn leaves_line(&mut self, id: Id) {
        let Some(call) = self.calls.get(id) else { return };
        if let (Some(place), Some(queue)) = (call.place.take(), &mut self.lines[self.homes[call.node]]) {
            queue.leave(place);
        }
    }

    fn turned_away(&mut self, id: Id, reason: Reason, now: Mono) {
        self.leaves_line(id);
        let node = self.calls.get(id).map(|call| call.node);
        let refusal = Refusal {
            reason,
            retry_at: None,
        };
        if let Some(step) = self.refuse(id, refusal, now) {
            self.drive(id, step, now);
        }
        if let Some(node) = node {
            self.freed(node, now);
        }
    }

    /// Tells a call that it was refused.
    pub(super) fn refuse(&mut self, id: Id, refusal: Refusal, now: Mono) -> Option<Step> {
        let call = self.calls.get(id)?;
        let slot = self.tally.slot(now);
        slot.refused += 1;
        slot.no_place += u64::from(refusal.reason != Reason::BreakerOpen);
        Some(call.read.refused(refusal.reason))
    }
}
