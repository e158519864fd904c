//! Decides how an attempt is followed by another: the engine grants it, the pause is planned, the engine admits it.
//! It exists as the counterpart of the library's loop, so that its budget is tried under whole outages.
//! It refuses to decide whether and when; both are the engine's.

use evenkeel_core::{Advice, Class, Failed, Limit, Mono, Retry, Step};

use super::{Attempt, Event, World};
use crate::{setup::Node, slab::Id};

/// An attempt that has failed and is followed by another.
#[derive(Debug)]
pub(super) struct Resting {
    node: usize,
    key: u32,
    retry: Retry,
    made: u32,
    /// What those who wait get if the next attempt is not admitted.
    class: Class,
    callers: Vec<Id>,
    apart: bool,
    flight: bool,
}

impl World<'_> {
    /// Lets those who wait rest until the next attempt; `false` if there is none.
    pub(super) fn rests(&mut self, attempt: &Attempt, class: Class, now: Mono) -> bool {
        let Some(first) = attempt.callers.first().copied() else {
            return false;
        };
        let (node, key) = (attempt.node, attempt.key);
        let ends = self.calls.get(first).and_then(|call| call.read.deadline().at());
        let failed = Failed {
            class,
            advice: Advice::Whenever,
        };
        let granted = self.nodes[node].seat.retry(failed, attempt.made, ends, now);
        let Ok(retry) = granted else { return false };
        let at = retry.at();
        let callers = attempt.callers.clone();
        let resting = self.resting.add(Resting {
            node,
            key,
            retry,
            made: attempt.made,
            class,
            callers: callers.clone(),
            apart: attempt.apart,
            flight: attempt.flight,
        });
        for caller in callers {
            if let Some(call) = self.calls.get(caller) {
                (call.attempt, call.resting) = (None, Some(resting));
            }
        }
        if self.nodes[node].read.coalesce() {
            self.states[node].resting.insert(key, resting);
        }
        self.queue.plan(at, Event::Again(resting));
        true
    }

    /// Joins an attempt that rests, where attempts are shared.
    pub(super) fn joins_resting(&mut self, caller: Id, node: usize, key: u32) -> bool {
        let resting = self.states[node].resting.get(&key).copied();
        let Some(resting) = resting else { return false };
        let Some(waiting) = self.resting.get(resting) else {
            return false;
        };
        waiting.callers.push(caller);
        if let Some(call) = self.calls.get(caller) {
            call.resting = Some(resting);
        }
        true
    }

    /// A caller leaves in the pause.
    pub(super) fn leaves_resting(&mut self, id: Id, caller: Id, now: Mono) {
        let Some(waiting) = self.resting.get(id) else {
            return;
        };
        waiting.callers.retain(|other| *other != caller);
        if waiting.callers.is_empty() {
            self.give_up(id, now);
        }
    }

    /// The pause is over.
    pub(super) fn again(&mut self, id: Id, now: Mono) {
        let Some(resting) = self.take_resting(id) else {
            return;
        };
        let Resting {
            node,
            key,
            retry,
            made,
            class,
            callers,
            apart,
            flight,
        } = resting;
        let Node { read, seat } = &self.nodes[node];
        let criticality = read.criticality();
        let (pass, changes) = seat.admit_again(criticality, retry, now, false);
        for change in changes {
            self.changed(node, change, now);
        }
        let Ok(pass) = pass else {
            for caller in callers {
                if let Some(call) = self.calls.get(caller) {
                    let step = call.read.attempted(class, false);
                    self.drive(caller, step, now);
                }
            }
            return;
        };
        let timeout = seat.contract().timeout();
        let own = timeout.map_or(Limit::None, |timeout| Limit::Timeout(now.after(timeout)));
        let first = callers.first().and_then(|first| self.calls.get(*first));
        let limit = match first.map(|call| call.read.admitted(now)) {
            Some(Step::Attempt(limit)) if !apart => limit,
            Some(_) | None => own,
        };
        let attempt = Attempt {
            node,
            key,
            pass: Some(pass),
            began: now,
            limit,
            callers,
            apart,
            flight,
            work: self.admitted,
            made: made + 1,
        };
        self.begin_attempt(attempt, now);
    }

    fn give_up(&mut self, id: Id, now: Mono) {
        if let Some(resting) = self.take_resting(id) {
            self.nodes[resting.node].seat.give_back(resting.retry, now);
        }
    }

    fn take_resting(&mut self, id: Id) -> Option<Resting> {
        let resting = self.resting.take(id)?;
        for caller in &resting.callers {
            if let Some(call) = self.calls.get(*caller) {
                call.resting = None;
            }
        }
        let known = &mut self.states[resting.node].resting;
        if known.get(&resting.key) == Some(&id) {
            known.remove(&resting.key);
        }
        Some(resting)
    }
}
