//! Decides what is remembered of a breaker: how often it changed its state, from which to which and why, and since when
//! it is not closed.
//! It exists because an outage is told by its beginning and its causes, and the breaker itself knows only its present.
//! It refuses to decide by it: nothing that admits a call reads this.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use evenkeel_core::{Cause, Mono, State, Transition};

const CELLS: usize = Cause::ALL.len() * State::ALL.len() * State::ALL.len();
/// No time: the breaker is closed.
const CLOSED: i64 = i64::MIN;

/// The history of one breaker.
#[derive(Debug)]
pub(super) struct History {
    changes: [AtomicU64; CELLS],
    open_since: AtomicI64,
}

impl Default for History {
    fn default() -> Self {
        Self {
            changes: std::array::from_fn(|_| AtomicU64::new(0)),
            open_since: AtomicI64::new(CLOSED),
        }
    }
}

const fn cell(from: State, to: State, cause: Cause) -> usize {
    (cause as usize * State::ALL.len() + from as usize) * State::ALL.len() + to as usize
}

impl History {
    /// Counts a change. An outage begins when the breaker leaves the closed state, and ends when it is back in it.
    pub(super) fn note(&self, change: &Transition) {
        if let Some(count) = self.changes.get(cell(change.from, change.to, change.cause)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if change.to == State::Closed {
            self.open_since.store(CLOSED, Ordering::Relaxed);
        } else if change.from == State::Closed {
            self.opened(change.at);
        }
    }

    /// Notes since when the breaker is not closed.
    pub(super) fn opened(&self, at: Mono) {
        self.open_since.store(at.as_nanos(), Ordering::Relaxed);
    }

    pub(super) fn count(&self, from: State, to: State, cause: Cause) -> u64 {
        self.changes
            .get(cell(from, to, cause))
            .map_or(0, |count| count.load(Ordering::Relaxed))
    }

    pub(super) fn open_since(&self) -> Option<Mono> {
        let nanos = self.open_since.load(Ordering::Relaxed);
        (nanos != CLOSED).then(|| Mono::from_nanos(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(second: i64, from: State, to: State, cause: Cause) -> Transition {
        Transition {
            from,
            to,
            at: Mono::from_nanos(second * 1_000_000_000),
            cause,
            rule: None,
            class: None,
        }
    }

    #[test]
    fn every_change_has_a_cell_of_its_own() {
        let history = History::default();
        let mut times = 0;
        for cause in Cause::ALL {
            for from in State::ALL {
                for to in State::ALL {
                    times += 1;
                    for _ in 0..times {
                        history.note(&change(1, from, to, cause));
                    }
                    assert_eq!(history.count(from, to, cause), times);
                }
            }
        }
        let all = history.changes.iter().map(|count| count.load(Ordering::Relaxed));
        assert_eq!(all.sum::<u64>(), (1..=CELLS as u64).sum::<u64>());
    }

    #[test]
    fn an_outage_lasts_from_the_trip_to_the_proof_however_often_it_is_probed() {
        let history = History::default();
        assert_eq!(history.open_since(), None);
        let tripped = change(7, State::Closed, State::Open, Cause::Tripped);
        for change in [
            tripped,
            change(8, State::Open, State::HalfOpen, Cause::Probing),
            change(9, State::HalfOpen, State::Open, Cause::ProbeFailed),
            change(10, State::Open, State::HalfOpen, Cause::Probing),
        ] {
            history.note(&change);
            assert_eq!(history.open_since(), Some(tripped.at));
        }
        history.note(&change(11, State::HalfOpen, State::Closed, Cause::Proven));
        assert_eq!(history.open_since(), None);
    }
}
