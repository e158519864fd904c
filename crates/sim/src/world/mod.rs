//! Decides the course of one run: it drives the engine's own calls and seats, event by event, in virtual time.
//! It exists so that hours of outages pass in seconds, with the code that runs in production and any seed.
//! It refuses to admit, to count failures or to judge: every such decision is the engine's.

use std::collections::BTreeMap;

use evenkeel_core::{Class, Facts, Limit, Mono, Outage, Pass, Place, ReadCall, Rng, Stage, Transition};

use crate::{
    queue::Queue,
    setup::{Change, Node, Setup, Workload},
    slab::{Id, Slab},
    source::{Source, Work},
    tally::{Seen, Tally},
};

mod again;
mod calls;
mod clients;
mod line;

/// What is planned.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The next request of an open workload, if it is still of this kind.
    Offer(u32),
    /// A client asks: for the first time, or again.
    Ask(Id),
    /// The client's patience is over, if it still waits for this call.
    Leave(Id, Id),
    /// The call's soft timeout is over, if it still waits.
    Slow(Id),
    /// The attempt has come to its limit.
    TimeOut(Id),
    /// The attempt has become slow.
    Crossed(Id),
    /// The source is done with this work; well, or not.
    Done(Work, bool),
    /// The pause before a further attempt is over.
    Again(Id),
    /// The wait of a call for a permit ends in vain, if it still waits.
    Expired(Id),
    /// Somebody who waits for a permit at this node may have a turn.
    Turn(usize),
    /// What the script says next.
    Script(usize),
    /// A client of a closed workload wants something.
    Want,
}

/// A request of a client, through all its tries.
#[derive(Debug)]
struct Request {
    key: u32,
    node: usize,
    tries_left: u32,
    call: Option<Id>,
}

/// A call through a node.
#[derive(Debug)]
struct Call<'n> {
    read: ReadCall<'n>,
    node: usize,
    key: u32,
    request: Id,
    attempt: Option<Id>,
    /// The failed attempt whose next one it waits for.
    resting: Option<Id>,
    /// Its place in the queue for a permit.
    place: Option<Place>,
}

/// An attempt at the source.
#[derive(Debug)]
struct Attempt {
    node: usize,
    key: u32,
    /// Taken when the verdict is given.
    pass: Option<Pass>,
    began: Mono,
    limit: Limit,
    /// Who waits for it.
    callers: Vec<Id>,
    /// It belongs to nobody who waits: a flight, or a probe in the background.
    apart: bool,
    /// It is the one for its key.
    flight: bool,
    work: Work,
    /// As the how-manieth for its callers.
    made: u32,
}

/// What a node has besides its contracts.
#[derive(Debug, Default)]
struct State {
    snapshots: BTreeMap<u32, Facts>,
    flights: BTreeMap<u32, Id>,
    resting: BTreeMap<u32, Id>,
    attempts: u32,
    stage: Option<Stage>,
}

/// One run on its way.
#[derive(Debug)]
pub(crate) struct World<'n> {
    setup: &'n Setup,
    nodes: &'n [Node],
    states: Vec<State>,
    source: Source,
    workload: Workload,
    /// How often the workload has changed.
    epoch: u32,
    /// For each node the first that has the same seat.
    homes: Vec<usize>,
    /// Those who wait for a permit, at the homes.
    lines: Vec<Option<evenkeel_core::Queue<Id>>>,
    queue: Queue<Event>,
    requests: Slab<Request>,
    calls: Slab<Call<'n>>,
    attempts: Slab<Attempt>,
    resting: Slab<again::Resting>,
    works: BTreeMap<Work, Option<Id>>,
    begun: u64,
    ended: u64,
    admitted: u64,
    next_node: usize,
    rng: Rng,
    tally: Tally,
}

/// Runs a setup from its beginning to its end.
///
/// # Panics
/// If an invariant does not hold: permits in use are attempts in flight, every call ends once, and the source is
/// asked exactly as often as somebody was admitted.
#[must_use]
pub fn run(setup: &Setup, nodes: &[Node], seed: u64) -> Tally {
    let mut world = World::new(setup, nodes, seed);
    let end = Mono::ORIGIN.after(setup.ends);
    while let Some((now, event)) = world.queue.next(end) {
        world.step(event, now);
    }
    world.tally
}

/// Each thread has a lane; here there is one.
const LANE: usize = 0;

impl<'n> World<'n> {
    fn new(setup: &'n Setup, nodes: &'n [Node], seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut world = Self {
            setup,
            nodes,
            states: nodes.iter().map(|_| State::default()).collect(),
            source: Source::new(setup.source, Rng::new(rng.next_u64())),
            workload: setup.workload,
            epoch: 0,
            homes: nodes
                .iter()
                .map(|node| nodes.iter().take_while(|other| !node.is_beside(other)).count())
                .collect(),
            lines: nodes.iter().map(Self::queue_of).collect(),
            queue: Queue::new(),
            requests: Slab::new(),
            calls: Slab::new(),
            attempts: Slab::new(),
            resting: Slab::new(),
            works: BTreeMap::new(),
            begun: 0,
            ended: 0,
            admitted: 0,
            next_node: 0,
            rng,
            tally: Tally::default(),
        };
        for (index, (after, _)) in setup.script.iter().enumerate() {
            world.queue.plan(Mono::ORIGIN.after(*after), Event::Script(index));
        }
        world.start_workload(Mono::ORIGIN);
        world
    }

    fn step(&mut self, event: Event, now: Mono) {
        match event {
            Event::Offer(epoch) => self.offer(epoch, now),
            Event::Want => self.request(now),
            Event::Ask(request) => self.ask(request, now),
            Event::Leave(request, call) => self.leave(request, call, now),
            Event::Slow(call) => self.slow(call, now),
            Event::TimeOut(attempt) => self.time_out(attempt, now),
            Event::Crossed(attempt) => self.crossed(attempt, now),
            Event::Done(work, well) => self.done(work, well, now),
            Event::Again(resting) => self.again(resting, now),
            Event::Turn(node) => self.call_next(node, now),
            Event::Expired(call) => self.expired(call, now),
            Event::Script(index) => self.script(index, now),
        }
        assert_eq!(
            self.begun - self.ended,
            self.calls.len() as u64,
            "a call ended twice, or not at all"
        );
        assert_eq!(
            self.source.asked(),
            self.admitted,
            "the source was asked by somebody who was not admitted"
        );
        let in_flight = self.source.in_flight();
        let slot = self.tally.slot(now);
        slot.peak = slot.peak.max(in_flight);
    }

    fn script(&mut self, index: usize, now: Mono) {
        match self.setup.script[index].1 {
            Change::Mode(mode) => {
                for (work, goes_on) in self.source.change(mode, now) {
                    match (goes_on, self.works.get(&work).copied()) {
                        (Some(at), _) => self.queue.plan(at, Event::Done(work, true)),
                        (None, attempt) => {
                            self.works.remove(&work);
                            if let Some(Some(attempt)) = attempt {
                                self.end_attempt(attempt, Class::Outage(Outage::Cut), true, now);
                            }
                        }
                    }
                }
            }
            Change::Capacity(capacity) => self.source.set_capacity(capacity),
            Change::Latency(latency) => self.source.set_latency(latency),
            Change::WarmUp(takes, starts_ppm) => self.source.warm_up(now, takes, starts_ppm),
            Change::LoseSnapshots => self.states.iter_mut().for_each(|state| state.snapshots.clear()),
            Change::Arrivals(arrivals) => {
                self.workload.arrivals = arrivals;
                self.epoch += 1;
                self.start_workload(now);
            }
        }
    }

    fn changed(&mut self, node: usize, transition: Option<Transition>, now: Mono) {
        if let Some(transition) = transition {
            self.tally.change(now, node, Seen::Breaker(transition));
            self.freed(node, now);
        }
        let stage = self.nodes[node].seat.ramp();
        if stage != self.states[node].stage {
            self.states[node].stage = stage;
            self.tally.change(now, node, Seen::Ramp(stage));
        }
    }
}
