//! Decides at which of several addresses an attempt asks, and what an address is told of what came of it.
//! It exists so that every way out of an attempt, being dropped too, counts once and gives its place back.
//! It refuses to exist where there is one address and no rule: such an upstream chooses nothing and counts nothing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use evenkeel::{Engine, Mono};
use evenkeel_core::{Balance, BalanceEvent, BalanceStatus, Chosen, Ejections, Exclusive, Rng};
use http::StatusCode;
use parking_lot::Mutex;

use super::{hints::Said, upload::Progress};
use crate::config;

/// The addresses that one request has been sent to.
#[derive(Debug, Default)]
pub(super) struct Tried {
    /// A bit for each.
    sent: AtomicU64,
    /// The body of the request, where its client may take time for it: who waits for the answer keeps the time then.
    upload: Option<Arc<Progress>>,
    /// What arrived with it.
    said: Option<Arc<Said>>,
    /// When the attempt under way ends, in nanoseconds; zero while nobody said it.
    until: AtomicI64,
}

impl Tried {
    /// Begins a request with which this arrived.
    pub(super) fn with(said: Option<&Arc<Said>>) -> Self {
        Self {
            said: said.cloned(),
            ..Self::default()
        }
    }

    /// Says that its wait is timed beside its body.
    pub(super) fn beside(self, upload: Arc<Progress>) -> Self {
        Self {
            upload: Some(upload),
            ..self
        }
    }

    /// Returns what arrived with it.
    pub(super) fn said(&self) -> Option<&Said> {
        self.said.as_deref()
    }

    /// Says when the attempt that begins now ends.
    pub(super) fn ends(&self, at: Mono) {
        self.until.store(at.as_nanos(), Ordering::Relaxed);
    }

    /// Returns when the attempt under way ends, if somebody said it.
    pub(super) fn until(&self) -> Option<Mono> {
        let nanos = self.until.load(Ordering::Relaxed);
        (nanos != 0).then(|| Mono::from_nanos(nanos))
    }
}

/// The engine's exclusive access, by a lock; it is taken only while an address is left out, or becomes so.
#[derive(Debug)]
struct Locked<T>(Mutex<T>);

impl<T> Exclusive<T> for Locked<T> {
    fn guard(value: T) -> Self {
        Self(Mutex::new(value))
    }

    fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.0.lock())
    }
}

/// What an attempt at an address came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CameTo {
    /// An answer.
    Answered,
    /// Refused, reset, unusable, too late, or one of the statuses that count as failures of the address.
    Failed,
    /// Nothing that says anything about the address: its client left before.
    Left,
}

impl CameTo {
    pub(crate) const ALL: [Self; 3] = [Self::Answered, Self::Failed, Self::Left];

    /// Returns the stable word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Failed => "failed",
            Self::Left => "left",
        }
    }
}

/// How the addresses of one upstream share its attempts.
#[derive(Debug)]
pub(crate) struct Spreading {
    balance: Balance<Locked<Ejections>>,
    engine: Engine,
    draws: AtomicU64,
    failures: Vec<StatusCode>,
    timeout: Duration,
    /// One for each address, in the order of the contract. Shared with those that asked the same address by other rules.
    counts: Box<[Arc<Counts>]>,
    /// How often the rules before this one were overridden.
    overridden_before: AtomicU64,
}

/// What attempts at one address came to, by the place in [`CameTo::ALL`].
type Counts = [AtomicU64; CameTo::ALL.len()];

/// A place at one address, for one attempt.
#[derive(Debug)]
pub(super) struct Seat {
    of: Arc<Spreading>,
    chosen: Chosen,
    began: Mono,
    upload: Option<Arc<Progress>>,
    told: bool,
}

impl Spreading {
    /// Prepares it; `None` where there is nothing to choose and nothing to leave out.
    pub(super) fn new(dependency: &config::Dependency, engine: &Engine) -> Option<Arc<Self>> {
        let count = dependency.upstreams.len();
        let spread = &dependency.spread;
        if count < 2 && spread.eject.is_none() {
            return None;
        }
        Some(Arc::new(Self {
            balance: Balance::new(spread.balance, spread.eject, count, engine.draw_seed()),
            engine: engine.clone(),
            draws: AtomicU64::new(engine.draw_seed()),
            failures: spread.failures.clone(),
            timeout: dependency.timeout,
            counts: (0..count).map(|_| Arc::default()).collect(),
            overridden_before: AtomicU64::new(0),
        }))
    }

    /// Goes on with what `before` has counted for the addresses that both have; each is given by its name, in the order of
    /// the contract. To be called before anything is counted.
    pub(super) fn counts_on<'a>(
        mut self: Arc<Self>,
        names: impl Iterator<Item = &'a str>,
        before: &Self,
        names_before: &[&str],
    ) -> Arc<Self> {
        if let Some(new) = Arc::get_mut(&mut self) {
            for (own, name) in new.counts.iter_mut().zip(names) {
                let mut known = names_before.iter().zip(&before.counts);
                if let Some((_, counts)) = known.find(|(known, _)| **known == name) {
                    *own = Arc::clone(counts);
                }
            }
        }
        self
    }

    /// Goes on with how often the rules of `before` were overridden, as it chooses no more from now on.
    pub(super) fn takes_over(&self, before: &Self) {
        self.overridden_before
            .store(before.overridden(), Ordering::Relaxed);
    }

    /// Takes a place for an attempt that begins now, at an address that this request was not sent to yet where there is
    /// one; not at one of `unreached`. `None` if those are all.
    pub(super) fn seat(self: &Arc<Self>, tried: &Tried, unreached: u64) -> Option<Seat> {
        let count = self.counts.len();
        if unreached.count_ones() as usize >= count {
            return None;
        }
        let draw = Rng::new(self.draws.fetch_add(Rng::STEP, Ordering::Relaxed)).next_u64();
        let began = self.engine.now().mono;
        let before = tried.sent.load(Ordering::Relaxed);
        let chosen = self.balance.choose(began, before | unreached, draw);
        let bit = 1_u64 << chosen.index();
        if unreached & bit != 0 {
            self.balance.left(chosen);
            return None;
        }
        tried.sent.fetch_or(bit, Ordering::Relaxed);
        Some(Seat {
            of: Arc::clone(self),
            chosen,
            began,
            upload: tried.upload.clone(),
            told: false,
        })
    }

    /// Returns what all addresses look like now.
    pub(crate) fn status(&self) -> BalanceStatus {
        self.balance.status(self.engine.now().mono)
    }

    /// Returns what has changed since the last time.
    pub(crate) fn take_news(&self) -> Vec<(Mono, BalanceEvent)> {
        // What is over is told also while nobody asks.
        drop(self.status());
        self.balance.take_news()
    }

    /// Returns how many attempts went to an address that is left out, because too few others were left.
    pub(crate) fn overridden(&self) -> u64 {
        let before = self.overridden_before.load(Ordering::Relaxed);
        before.saturating_add(self.balance.overridden())
    }

    /// Returns how many attempts at an address came to this.
    pub(crate) fn count(&self, index: usize, came_to: CameTo) -> u64 {
        self.counter(index, came_to)
            .map_or(0, |count| count.load(Ordering::Relaxed))
    }

    fn counter(&self, index: usize, came_to: CameTo) -> Option<&AtomicU64> {
        let place = CameTo::ALL.iter().position(|known| *known == came_to)?;
        self.counts.get(index)?.get(place)
    }
}

impl Seat {
    /// Returns the place of its address in the list.
    pub(super) const fn index(&self) -> usize {
        self.chosen.index()
    }

    /// Says what came, once; later words are not heard.
    pub(super) fn came_to(&mut self, came_to: CameTo) {
        if self.told {
            return;
        }
        self.told = true;
        if let Some(count) = self.of.counter(self.chosen.index(), came_to) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if came_to != CameTo::Left {
            let now = self.of.engine.now().mono;
            self.of.balance.told(self.chosen, came_to == CameTo::Failed, now);
        }
    }

    /// Says that the head of an answer came. A good one is not told before all of the answer has come.
    pub(super) fn answers(&mut self, status: StatusCode) {
        if self.of.failures.contains(&status) {
            self.came_to(CameTo::Failed);
        }
    }
}

impl Drop for Seat {
    /// Whoever goes without a word was dropped: by its client, which says nothing about the address, or because the
    /// dependency's own time was over. The choice is made a little after the attempt began, so nearly all of it counts.
    fn drop(&mut self) {
        if !self.told {
            let in_vain = match &self.upload {
                Some(upload) => upload.is_late(),
                None => {
                    let waited = self.of.engine.now().mono.since(self.began);
                    waited >= self.of.timeout - self.of.timeout / 16
                }
            };
            self.came_to(if in_vain { CameTo::Failed } else { CameTo::Left });
        }
        self.of.balance.left(self.chosen);
    }
}
