//! Decides what a run is judged by: what clients got, and what the source was made to bear, tenth by tenth of a second.
//! It exists so that claims about a recovery are comparisons of numbers.
//! It refuses to know what a good number is; tests do.

use core::time::Duration;

use evenkeel_core::{Mono, Stage, Transition};

/// A tenth of a second.
pub const SLOT: Duration = Duration::from_millis(100);

/// What happened in one slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// Requests of clients that ended, retries included in one.
    pub requests: u64,
    /// Those of them that got an answer, however old.
    pub answered: u64,
    /// Those that got a current one.
    pub current: u64,
    /// Calls that evenkeel refused, or answered without asking because it may not ask.
    pub refused: u64,
    /// Of them, those for want of a place: capacity or ramp.
    pub no_place: u64,
    /// Requests that reached the source.
    pub asked: u64,
    /// The most the source had in flight at once.
    pub peak: u32,
}

/// A change at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The breaker went over.
    Breaker(Transition),
    /// The ramp is at this stage; `None` when it is over.
    Ramp(Option<Stage>),
}

/// The record of one run.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    slots: Vec<Slot>,
    /// What changed, at which node and when; at most [`Tally::CHANGES_MAX`].
    pub changes: Vec<(Mono, usize, Seen)>,
    nodes: Vec<Slot>,
}

impl Tally {
    /// More changes than this are not recorded.
    pub const CHANGES_MAX: usize = 100_000;

    pub(crate) fn slot(&mut self, now: Mono) -> &mut Slot {
        let index = index(now.since(Mono::ORIGIN));
        if self.slots.len() <= index {
            self.slots.resize(index + 1, Slot::default());
        }
        &mut self.slots[index]
    }

    pub(crate) fn node(&mut self, node: usize) -> &mut Slot {
        if self.nodes.len() <= node {
            self.nodes.resize(node + 1, Slot::default());
        }
        &mut self.nodes[node]
    }

    /// Returns how many requests ended at a node in the whole run, and how many of them were answered.
    #[must_use]
    pub fn of_node(&self, node: usize) -> Slot {
        self.nodes.get(node).copied().unwrap_or_default()
    }

    pub(crate) fn change(&mut self, now: Mono, node: usize, seen: Seen) {
        if self.changes.len() < Self::CHANGES_MAX {
            self.changes.push((now, node, seen));
        }
    }

    /// Adds up what happened from one moment to another; the peak is the highest.
    #[must_use]
    pub fn sum(&self, from: Duration, to: Duration) -> Slot {
        let (from, to) = (index(from), index(to).min(self.slots.len()));
        let mut sum = Slot::default();
        for slot in self.slots.get(from..to).unwrap_or_default() {
            sum.requests += slot.requests;
            sum.answered += slot.answered;
            sum.current += slot.current;
            sum.refused += slot.refused;
            sum.no_place += slot.no_place;
            sum.asked += slot.asked;
            sum.peak = sum.peak.max(slot.peak);
        }
        sum
    }

    /// Returns how long after `from` every window of `window` up to `to` has at least this share of current answers,
    /// in thousandths; `None` if the last one has not.
    #[must_use]
    pub fn back_after(
        &self,
        from: Duration,
        to: Duration,
        window: Duration,
        permille: u64,
    ) -> Option<Duration> {
        let mut start = to.checked_sub(window)?;
        let mut good = None;
        while start >= from {
            let sum = self.sum(start, start + window);
            if sum.current * 1000 < sum.requests * permille {
                break;
            }
            good = Some(start - from);
            start = match start.checked_sub(SLOT) {
                Some(start) => start,
                None => break,
            };
        }
        good
    }
}

impl Slot {
    /// The share of requests with a current answer, in thousandths; all of none.
    #[must_use]
    pub const fn current_permille(&self) -> u64 {
        share(self.current, self.requests)
    }

    /// The share of requests with any answer, in thousandths; all of none.
    #[must_use]
    pub const fn answered_permille(&self) -> u64 {
        share(self.answered, self.requests)
    }
}

const fn share(part: u64, whole: u64) -> u64 {
    match (part * 1000).checked_div(whole) {
        Some(share) => share,
        None => 1000,
    }
}

fn index(span: Duration) -> usize {
    usize::try_from(span.as_millis() / SLOT.as_millis()).unwrap_or(usize::MAX)
}
