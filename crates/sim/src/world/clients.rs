//! Decides how clients behave: when they ask, how long they wait, whether they ask again.
//! It exists because clients that do not give up are half of every collapse.
//! It refuses to know what a node decides; it sees answers and refusals, as clients do.

use core::time::Duration;

use evenkeel_core::{Class, Mono, ReadCall, Rng};

use super::{Call, Event, Request, World};
use crate::{setup::Arrivals, slab::Id};

impl World<'_> {
    pub(super) fn start_workload(&mut self, now: Mono) {
        match self.workload.arrivals {
            Arrivals::Even(_) | Arrivals::Random(_) => self.queue.plan(now, Event::Offer(self.epoch)),
            Arrivals::Closed(clients, think) => {
                for _ in 0..clients {
                    let first = self.rng.jitter(think / 2, 1_000_000);
                    self.queue.plan(now.after(first), Event::Want);
                }
            }
        }
    }

    pub(super) fn offer(&mut self, epoch: u32, now: Mono) {
        if epoch != self.epoch {
            return;
        }
        let pause = match self.workload.arrivals {
            Arrivals::Even(rate) => Duration::from_nanos(1_000_000_000 / u64::from(rate.max(1))),
            Arrivals::Random(rate) => exponential(&mut self.rng, rate),
            Arrivals::Closed(..) => return,
        };
        self.queue.plan(now.after(pause), Event::Offer(epoch));
        self.request(now);
    }

    pub(super) fn request(&mut self, now: Mono) {
        let key = u32::try_from(self.rng.next_u64() % u64::from(self.workload.keys.max(1))).unwrap_or(0);
        let node = self.next_node;
        self.next_node = (node + 1) % self.nodes.len();
        let request = self.requests.add(Request {
            key,
            node,
            tries_left: self.workload.retries,
            call: None,
        });
        self.ask(request, now);
    }

    /// A client sends its request, and starts to wait just before the node gets it.
    pub(super) fn ask(&mut self, id: Id, now: Mono) {
        let Some(request) = self.requests.get(id) else {
            return;
        };
        let (node, key) = (request.node, request.key);
        let seat = &self.nodes[node];
        let contract = seat.seat.contract();
        let (read, first) = ReadCall::begin(&seat.read, contract.table(), contract.timeout(), None, now);
        let slow_at = read.slow_at();
        self.begun += 1;
        let call = self.calls.add(Call {
            read,
            node,
            key,
            request: id,
            attempt: None,
            resting: None,
            place: None,
        });
        if let Some(request) = self.requests.get(id) {
            request.call = Some(call);
        }
        if let Some(patience) = self.workload.patience {
            self.queue.plan(now.after(patience), Event::Leave(id, call));
        }
        if let Some(slow_at) = slow_at {
            self.queue.plan(slow_at, Event::Slow(call));
        }
        self.drive(call, first, now);
    }

    /// A client leaves. What it waited for alone is cancelled.
    pub(super) fn leave(&mut self, request: Id, id: Id, now: Mono) {
        self.leaves_line(id);
        let Some(call) = self.calls.take(id) else { return };
        self.ended += 1;
        if let Some(resting) = call.resting {
            self.leaves_resting(resting, id, now);
        }
        if let Some(attempt) = call.attempt
            && let Some(waited) = self.attempts.get(attempt)
        {
            waited.callers.retain(|caller| *caller != id);
            if waited.callers.is_empty() && !waited.apart {
                self.end_attempt(attempt, Class::Cancelled, false, now);
            }
        }
        self.tried(request, None, now);
    }

    /// A try has ended: with an answer of this age, or without one.
    pub(super) fn tried(&mut self, id: Id, answer: Option<Duration>, now: Mono) {
        let pause = self.workload.pause;
        let Some(request) = self.requests.get(id) else {
            return;
        };
        request.call = None;
        if answer.is_none() && request.tries_left > 0 {
            request.tries_left -= 1;
            self.queue.plan(now.after(pause), Event::Ask(id));
            return;
        }
        let node = request.node;
        self.requests.take(id);
        self.tally.node(node).requests += 1;
        self.tally.node(node).answered += u64::from(answer.is_some());
        let current = answer.is_some_and(|age| age <= self.setup.current);
        let slot = self.tally.slot(now);
        slot.requests += 1;
        slot.answered += u64::from(answer.is_some());
        slot.current += u64::from(current);
        if let Arrivals::Closed(_, think) = self.workload.arrivals {
            let think = self.rng.jitter(think, 500_000);
            self.queue.plan(now.after(think), Event::Want);
        }
    }
}

/// Draws the pause to the next of independent arrivals.
fn exponential(rng: &mut Rng, rate: u32) -> Duration {
    // 53 bits are what a float holds; the half keeps the logarithm finite.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    let uniform = ((rng.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    Duration::from_secs_f64(-uniform.ln() / f64::from(rate.max(1)))
}
