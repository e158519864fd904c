//! Decides what happens next: the earliest event, and of two at one instant the one that was planned first.
//! It exists so that a run depends on its seed and on nothing else.
//! It refuses to plan anything in the past.

use std::{cmp::Ordering, collections::BinaryHeap};

use evenkeel_core::Mono;

/// Events in the order of time.
#[derive(Debug)]
pub(crate) struct Queue<E> {
    heap: BinaryHeap<Planned<E>>,
    now: Mono,
    planned: u64,
}

#[derive(Debug)]
struct Planned<E> {
    at: Mono,
    number: u64,
    event: E,
}

impl<E> Queue<E> {
    pub(crate) const fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            now: Mono::ORIGIN,
            planned: 0,
        }
    }

    /// Plans an event; one for the past happens now.
    pub(crate) fn plan(&mut self, at: Mono, event: E) {
        self.planned += 1;
        self.heap.push(Planned {
            at: at.max(self.now),
            number: self.planned,
            event,
        });
    }

    /// Moves time on to the next event that is due before `end`.
    pub(crate) fn next(&mut self, end: Mono) -> Option<(Mono, E)> {
        if self.heap.peek()?.at >= end {
            self.now = end;
            return None;
        }
        let Planned { at, event, .. } = self.heap.pop()?;
        self.now = at;
        Some((at, event))
    }
}

impl<E> Ord for Planned<E> {
    /// The heap's greatest is the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<E> PartialOrd for Planned<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Planned<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Planned<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_by_plan_and_never_before_now() {
        let at = Mono::from_nanos;
        let mut queue = Queue::new();
        for (nanos, name) in [(5, "c"), (3, "a"), (3, "b"), (9, "d")] {
            queue.plan(at(nanos), name);
        }
        let order: Vec<_> = (0..3).filter_map(|_| queue.next(at(9))).collect();
        assert_eq!(order, [(at(3), "a"), (at(3), "b"), (at(5), "c")]);
        assert_eq!(queue.next(at(9)), None);
        queue.plan(at(1), "late");
        assert_eq!(queue.next(at(10)), Some((at(9), "d")));
        assert_eq!(queue.next(at(10)), Some((at(9), "late")));
    }
}
