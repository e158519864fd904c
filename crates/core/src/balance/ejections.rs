//! Decides which addresses are left out, until when, and when too few would be left to leave any out.
//! It exists apart from the choice of an address, because only results that change something come here.
//! It refuses to empty the set: when too many are marked, all are used, and that is said.

use alloc::{collections::VecDeque, vec::Vec};
use core::time::Duration;

use crate::{balance::rules::EjectRules, rng::Rng, time::Mono};

/// The most changes that wait to be fetched; the oldest go first.
const NEWS_MAX: usize = 256;

/// A change that people are told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BalanceEvent {
    /// An address failed too often and is left out.
    Ejected {
        /// Its place in the list of addresses.
        index: usize,
        /// For how long.
        lasts: Duration,
    },
    /// An address is used again: its time is over, or it has answered although it was marked.
    Returned {
        /// Its place in the list of addresses.
        index: usize,
        /// It has answered.
        proven: bool,
    },
    /// Too many are marked: all addresses are used, the marked ones too.
    Overridden {
        /// How many are marked.
        marked: u32,
        /// How many may be left out.
        most: u32,
    },
    /// Few enough are marked again, and those are left out.
    InForce {
        /// How many are marked.
        marked: u32,
    },
}

/// What is remembered of the addresses of one dependency.
#[derive(Debug)]
pub struct Ejections {
    rules: EjectRules,
    addresses: Vec<Memory>,
    marked: u64,
    overrides: bool,
    rng: Rng,
    news: VecDeque<(Mono, BalanceEvent)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    until: Option<Mono>,
    /// How often in a row it was marked.
    times: u32,
    /// How long it was marked for the last time, and since when it is used again.
    last: Duration,
    returned: Option<Mono>,
}

impl Ejections {
    pub(super) fn new(rules: EjectRules, addresses: usize, seed: u64) -> Self {
        Self {
            rules,
            addresses: alloc::vec![Memory::default(); addresses],
            marked: 0,
            overrides: false,
            rng: Rng::new(seed),
            news: VecDeque::new(),
        }
    }

    /// Returns the marked addresses, a bit for each.
    pub(super) const fn marked(&self) -> u64 {
        self.marked
    }

    /// Tells whether all are used because too many are marked.
    pub(super) const fn overrides(&self) -> bool {
        self.overrides
    }

    pub(super) fn until(&self, index: usize) -> Option<Mono> {
        self.addresses.get(index)?.until
    }

    /// Marks an address that has failed too often; `false` if it is marked already.
    pub(super) fn eject(&mut self, index: usize, now: Mono) -> bool {
        let rules = self.rules;
        let Some(memory) = self.addresses.get_mut(index) else {
            return false;
        };
        if memory.until.is_some() {
            return false;
        }
        // Who has done without for as long as it was left out begins anew.
        if memory.returned.is_some_and(|at| now.since(at) >= memory.last) {
            memory.times = 0;
        }
        let span = rules
            .first
            .saturating_mul(1_u32.checked_shl(memory.times).unwrap_or(u32::MAX))
            .min(rules.longest);
        let lasts = self.rng.jitter(span, rules.jitter_ppm);
        // One more doubling than a duration has bits changes nothing.
        memory.times = (memory.times + 1).min(31);
        memory.last = lasts;
        memory.until = Some(now.after(lasts));
        self.marked |= 1 << index;
        self.tell(now, BalanceEvent::Ejected { index, lasts });
        self.weigh(now);
        true
    }

    /// Uses those again whose time is over, and returns them, a bit for each.
    pub(super) fn expire(&mut self, now: Mono) -> u64 {
        let mut over = 0;
        for index in 0..self.addresses.len() {
            if let Some(until) = self.until(index).filter(|until| *until <= now) {
                over |= 1 << index;
                // Whoever looks late finds it as it would have been.
                self.give_back(index, false, until, now);
            }
        }
        over
    }

    /// Uses an address again that has answered although it is marked; `false` if it is not.
    pub(super) fn proven(&mut self, index: usize, now: Mono) -> bool {
        let is_marked = self.until(index).is_some();
        if is_marked {
            self.give_back(index, true, now, now);
        }
        is_marked
    }

    fn give_back(&mut self, index: usize, proven: bool, since: Mono, now: Mono) {
        if let Some(memory) = self.addresses.get_mut(index) {
            memory.until = None;
            memory.returned = Some(since);
        }
        self.marked &= !(1 << index);
        self.tell(now, BalanceEvent::Returned { index, proven });
        self.weigh(now);
    }

    /// Finds out whether too many are marked.
    fn weigh(&mut self, now: Mono) {
        let marked = self.marked.count_ones();
        let most = self
            .rules
            .most(u32::try_from(self.addresses.len()).unwrap_or(u32::MAX));
        let overrides = marked > most;
        if overrides != self.overrides {
            self.overrides = overrides;
            self.tell(
                now,
                if overrides {
                    BalanceEvent::Overridden { marked, most }
                } else {
                    BalanceEvent::InForce { marked }
                },
            );
        }
    }

    fn tell(&mut self, now: Mono, event: BalanceEvent) {
        if self.news.len() >= NEWS_MAX {
            self.news.pop_front();
        }
        self.news.push_back((now, event));
    }

    pub(super) fn take_news(&mut self) -> Vec<(Mono, BalanceEvent)> {
        self.news.drain(..).collect()
    }
}
