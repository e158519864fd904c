//! Decides what lives as long as the process, whatever contract it runs by: clock, log, stores, room for bodies, counters of
//! requests that no route took.
//! It exists apart from the `App` of one contract, so that another contract takes over what is kept and what is counted.
//! It refuses to hold anything that a contract names.
//!
//! How to get at things: what runs once per process holds an `Arc<Process>`; what belongs to one contract is reached through
//! an [`App`](super::App), which holds its process as `app.process`. Whoever outlives one request (a scrape, a sweep, the
//! administration) holds the [`Current`](super::Current) and takes the app from it each time anew.

use std::{
    array,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use evenkeel::{Engine, Memory, http::Shelf};
use evenkeel_http::problem::ProblemKind;

use super::{
    buffers::Buffers, caching, labels::Labels, limits::Limits, since::Since, store::StoreSlot, whole::Reply,
};
use crate::{
    config::Contract,
    reload::Reloads,
    steering::Steering,
    telemetry::{Log, Standing},
};

/// Requests that never became a call, by what was wrong with them.
pub(crate) const MISDIRECTED: [ProblemKind; 7] = [
    ProblemKind::BadRequest,
    ProblemKind::NoSuchRoute,
    ProblemKind::MethodNotAllowed,
    ProblemKind::MethodNotImplemented,
    ProblemKind::BodyTooLarge,
    ProblemKind::NothingKept,
    ProblemKind::TimedOut,
];

/// What lives as long as the process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) engine: Engine,
    pub(crate) log: Log,
    pub(crate) memory: Memory<Reply>,
    pub(crate) shelf: Shelf,
    /// What is behind the two, once the gateway is started.
    pub(crate) store: StoreSlot,
    /// Since when copies that are somebody's may be given. As long as the copies themselves live.
    pub(super) since: Arc<Since>,
    pub(crate) buffers: Buffers,
    pub(crate) limits: Limits,
    pub(super) labels: Labels,
    pub(super) in_flight: AtomicUsize,
    /// Where the routes stand.
    pub(crate) standing: Standing,
    /// Which contract runs.
    pub(crate) reloads: Reloads,
    /// What people have decided.
    pub(crate) steering: Steering,
    stopping: AtomicBool,
    misdirected: [AtomicU64; MISDIRECTED.len()],
}

impl Process {
    /// Begins with the room that a contract gives.
    pub(crate) fn new(contract: &Contract, engine: &Engine, limits: Limits) -> Self {
        let (memory, shelf) = caching::stores(contract);
        Self {
            engine: engine.clone(),
            log: Log::to_stderr(engine),
            memory,
            shelf,
            store: StoreSlot::default(),
            since: Arc::default(),
            buffers: Buffers::new(contract.gateway.buffers),
            limits,
            labels: Labels::new(),
            in_flight: AtomicUsize::new(0),
            standing: Standing::default(),
            reloads: Reloads::default(),
            steering: Steering::default(),
            stopping: AtomicBool::new(false),
            misdirected: array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Gives its stores and buffers the room that a contract says.
    pub(super) fn make_room(&self, contract: &Contract) {
        let (memory, shelf) = caching::room(contract);
        self.memory.set_limit(memory);
        self.shelf.set_limit(shelf, contract.gateway.scope_share_ppm);
        self.buffers.set_limit(contract.gateway.buffers);
    }

    /// Returns how many requests have arrived and have no answer yet.
    pub(crate) fn requests_in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Notes that no new connections are taken.
    pub(crate) fn note_stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Tells whether no new connections are taken any more.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Counts a request that became no call.
    pub(super) fn note_misdirected(&self, kind: ProblemKind) {
        if let Some(index) = MISDIRECTED.iter().position(|known| *known == kind) {
            self.misdirected[index].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns how many requests became no call, by what was wrong.
    pub(crate) fn misdirected(&self) -> impl Iterator<Item = (ProblemKind, u64)> {
        MISDIRECTED
            .into_iter()
            .zip(&self.misdirected)
            .map(|(kind, count)| (kind, count.load(Ordering::Relaxed)))
    }
}
