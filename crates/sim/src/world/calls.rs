//! Decides how a call and its attempt are driven: the engine's steps are performed, its admission asked, its verdict given.
//! It exists as the counterpart of the library's driver, event by event instead of await by await.
//! It refuses to decide any step itself.

use core::time::Duration;

use evenkeel_core::{
    Asker, Class, Facts, Lane, Limit, Mono, Outage, Reason, Refresh, Refusal, Rung, Skipped, Step,
};

use super::{Attempt, Event, LANE, World};
use crate::{
    setup::Node,
    slab::Id,
    source::{Taken, Work},
};

impl World<'_> {
    /// Performs the steps of a call until it waits or ends.
    pub(super) fn drive(&mut self, id: Id, mut step: Step, now: Mono) {
        loop {
            let Some(call) = self.calls.get(id) else { return };
            let (node, key) = (call.node, call.key);
            step = match step {
                Step::Look => call
                    .read
                    .found(self.states[node].snapshots.get(&key).copied(), now),
                Step::Admit => match self.admit(id, node, key, now) {
                    Some(step) => step,
                    None => return,
                },
                Step::Attempt(_) => return,
                // Nodes here have one source.
                Step::Alternate => call.read.alternate_skipped(Skipped::Failed),
                Step::Refresh => self.refresh(id, node, key, now),
                Step::Serve(rung, age) => {
                    let age = age.or_else(|| (rung == Rung::Default).then_some(Duration::MAX));
                    return self.end(id, age, now);
                }
                Step::Refuse | Step::Fail => return self.end(id, None, now),
            };
        }
    }

    /// Asks the engine to admit a call; `None` when it now waits for an attempt.
    pub(super) fn admit(&mut self, id: Id, node: usize, key: u32, now: Mono) -> Option<Step> {
        let Node { read, seat } = &self.nodes[node];
        if read.coalesce()
            && let Some(attempt) = self.states[node].flights.get(&key).copied()
            && let Some(flight) = self.attempts.get(attempt)
        {
            flight.callers.push(id);
            self.calls.get(id)?.attempt = Some(attempt);
            return None;
        }
        if self.joins_resting(id, node, key) {
            return None;
        }
        let lets_in = seat.lets_traffic_in();
        let behind = Refusal {
            reason: Reason::AtCapacity,
            retry_at: None,
        };
        let seated = if lets_in && self.is_behind(node) {
            Err(behind)
        } else {
            self.seat(id, node, key, now)
        };
        match seated {
            Ok(step) => step,
            Err(refusal) if lets_in && self.waits(id, node, refusal, now) => None,
            Err(refusal) => self.refuse(id, refusal, now),
        }
    }

    /// Has a call admitted and its attempt begun; a step if it does not wait for that.
    pub(super) fn seat(&mut self, id: Id, node: usize, key: u32, now: Mono) -> Result<Option<Step>, Refusal> {
        let Node { read, seat } = &self.nodes[node];
        let (pass, changes) = seat.admit_as(read.criticality(), now, Asker::Traffic, false);
        for change in changes {
            self.changed(node, change, now);
        }
        let pass = pass?;
        let Some(call) = self.calls.get(id) else {
            return Ok(None);
        };
        let snapshot = self.states[node].snapshots.get(&key).copied();
        // Nobody waits for a probe who has something to serve.
        let in_background = pass.is_probe() && call.read.has_servable_rung(snapshot, now);
        let own = seat
            .contract()
            .timeout()
            .map_or(Limit::None, |timeout| Limit::Timeout(now.after(timeout)));
        let limit = match call.read.admitted(now) {
            Step::Attempt(limit) if !in_background && !read.coalesce() => limit,
            Step::Attempt(_)
            | Step::Look
            | Step::Admit
            | Step::Refresh
            | Step::Alternate
            | Step::Serve(..)
            | Step::Refuse
            | Step::Fail => own,
        };
        let step = in_background.then(|| call.read.refused(Reason::BreakerOpen));
        self.begin_attempt(
            Attempt {
                node,
                key,
                pass: Some(pass),
                began: now,
                limit,
                callers: if in_background { Vec::new() } else { vec![id] },
                apart: in_background || read.coalesce(),
                flight: read.coalesce(),
                work: self.admitted,
                made: 1,
            },
            now,
        );
        Ok(step)
    }

    /// Has the copy for a key refreshed, unless that is under way.
    fn refresh(&mut self, id: Id, node: usize, key: u32, now: Mono) -> Step {
        let refresh = if self.states[node].flights.contains_key(&key) {
            Refresh::UnderWay
        } else {
            let (pass, changes) = self.nodes[node].seat.admit(now, Asker::Traffic, false);
            for change in changes {
                self.changed(node, change, now);
            }
            match pass {
                Err(refusal) => Refresh::Refused(refusal.reason),
                Ok(pass) => {
                    let timeout = self.nodes[node].seat.contract().timeout();
                    let limit = timeout.map_or(Limit::None, |timeout| Limit::Timeout(now.after(timeout)));
                    self.begin_attempt(
                        Attempt {
                            node,
                            key,
                            pass: Some(pass),
                            began: now,
                            limit,
                            callers: Vec::new(),
                            apart: true,
                            flight: true,
                            work: self.admitted,
                            made: 1,
                        },
                        now,
                    );
                    Refresh::UnderWay
                }
            }
        };
        self.calls
            .get(id)
            .map_or(Step::Refuse, |call| call.read.refreshed(refresh))
    }

    pub(super) fn begin_attempt(&mut self, attempt: Attempt, now: Mono) {
        let (node, key, work, limit) = (attempt.node, attempt.key, attempt.work, attempt.limit);
        let (callers, is_flight) = (attempt.callers.clone(), attempt.flight);
        let slow_at = attempt
            .pass
            .as_ref()
            .and_then(|pass| self.nodes[node].seat.slow_at(pass));
        self.admitted += 1;
        self.states[self.homes[node]].attempts += 1;
        let id = self.attempts.add(attempt);
        for caller in callers {
            if let Some(call) = self.calls.get(caller) {
                call.attempt = Some(id);
            }
        }
        if is_flight {
            self.states[node].flights.insert(key, id);
        }
        self.tally.slot(now).asked += 1;
        if let Some(at) = limit.at() {
            self.queue.plan(at, Event::TimeOut(id));
        }
        if let Some(at) = slow_at {
            self.queue.plan(at, Event::Crossed(id));
        }
        match self.source.ask(work, now) {
            Taken::Refused => self.end_attempt(id, Class::OUTAGE, true, now),
            Taken::Until(at, well) => {
                self.works.insert(work, Some(id));
                self.queue.plan(at, Event::Done(work, well));
            }
            Taken::Hung => {
                self.works.insert(work, Some(id));
            }
        }
    }

    /// Ends a call whose attempt is slow by its copy, if that can answer. The attempt goes on.
    pub(super) fn slow(&mut self, id: Id, now: Mono) {
        let Some(call) = self.calls.get(id) else { return };
        let Some(attempt) = call.attempt else { return };
        let snapshot = self.states[call.node].snapshots.get(&call.key).copied();
        let Some(step) = call.read.slow(snapshot, now) else {
            return;
        };
        call.attempt = None;
        if let Some(attempt) = self.attempts.get(attempt) {
            attempt.callers.retain(|caller| *caller != id);
            attempt.apart = true;
        }
        self.drive(id, step, now);
    }

    /// Tells the engine that an attempt is slow that has no result yet.
    pub(super) fn crossed(&mut self, id: Id, now: Mono) {
        let Some(attempt) = self.attempts.get(id) else {
            return;
        };
        if let Some(pass) = &mut attempt.pass {
            let node = attempt.node;
            let transition = self.nodes[node].seat.crossed(pass, Lane::new(LANE), now);
            self.changed(node, transition, now);
        }
    }

    pub(super) fn time_out(&mut self, id: Id, now: Mono) {
        if let Some(attempt) = self.attempts.get(id) {
            let blame = attempt.limit.blames_the_dependency();
            self.end_attempt(id, Class::Outage(Outage::TimedOut), blame, now);
        }
    }

    pub(super) fn done(&mut self, work: Work, well: bool, now: Mono) {
        let Some(attempt) = self.works.remove(&work) else {
            return;
        };
        self.source.finished();
        if let Some(attempt) = attempt {
            let class = if well {
                Class::Answer
            } else {
                Class::of_status(503)
            };
            self.end_attempt(attempt, class, true, now);
        }
    }

    /// Ends an attempt with its verdict, and then the calls that wait for it.
    pub(super) fn end_attempt(&mut self, id: Id, class: Class, blame: bool, now: Mono) {
        let Some(mut attempt) = self.attempts.take(id) else {
            return;
        };
        let Some(pass) = attempt.pass.take() else { return };
        let (node, key, began, work) = (attempt.node, attempt.key, attempt.began, attempt.work);
        let probe = pass.is_probe();
        let seat = &self.nodes[node].seat;
        seat.release();
        let transition = seat.settle(pass, class, blame, Lane::new(LANE), now);
        self.changed(node, transition, now);
        let home = &mut self.states[self.homes[node]];
        home.attempts -= 1;
        assert_eq!(
            seat.in_flight().unwrap_or(home.attempts),
            home.attempts,
            "permits in use are not attempts in flight"
        );
        self.freed(node, now);
        let state = &mut self.states[node];
        if state.flights.get(&key) == Some(&id) {
            state.flights.remove(&key);
        }
        if class == Class::Answer && self.nodes[node].read.keeps_snapshots() {
            state.snapshots.insert(
                key,
                Facts {
                    observed: Some(began),
                    ..Facts::default()
                },
            );
        }
        self.abandon(work);
        if !probe && self.rests(&attempt, class, now) {
            return;
        }
        for caller in attempt.callers {
            if let Some(call) = self.calls.get(caller) {
                let step = call.read.attempted(class, probe);
                self.drive(caller, step, now);
            }
        }
    }

    /// Nobody waits for this work any more, if it is still going on.
    pub(super) fn abandon(&mut self, work: Work) {
        if !self.works.contains_key(&work) {
            return;
        }
        if self.source.drops(work) {
            self.works.remove(&work);
            self.source.finished();
        } else {
            self.works.insert(work, None);
        }
    }

    pub(super) fn end(&mut self, id: Id, answer: Option<Duration>, now: Mono) {
        if let Some(call) = self.calls.take(id) {
            self.ended += 1;
            self.tried(call.request, answer, now);
        }
    }
}
