//! Decides whether a snapshot that comes late may still be written, or was taken away since it began.
//! It exists because a removal would be undone by a load that began before it and ends after it.
//! It refuses to forget by running out of room: what it can no longer tell apart counts as taken away.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use evenkeel_core::store::{Marks, Order, Purge};

/// What was taken away since the store was opened. What was written before that is earlier than all of it, and on the
/// disk nothing can come late, so this needs no place there.
#[derive(Debug, Default)]
pub(super) struct Tombs {
    keys: HashMap<Arc<[u8]>, Order>,
    /// In the order in which they came in.
    came: VecDeque<Arc<[u8]>>,
    purges: VecDeque<(Purge, Order)>,
    /// Everything up to here counts as taken away.
    floor: Option<Order>,
    /// How many there were in all.
    pub(super) count: u64,
}

/// This many keys are remembered one by one.
const KEYS_MAX: usize = 2048;
/// When there are more, so many go at once.
const KEYS_LEAVE: usize = KEYS_MAX / 2;
/// This many purges are remembered one by one.
const PURGES_MAX: usize = 256;

impl Tombs {
    /// Notes that a key was taken away.
    pub(super) fn note_key(&mut self, key: &Arc<[u8]>, order: Order) {
        self.count += 1;
        if let Some(held) = self.keys.get_mut(key) {
            *held = latest(*held, order);
            return;
        }
        self.keys.insert(Arc::clone(key), order);
        self.came.push_back(Arc::clone(key));
        if self.came.len() > KEYS_MAX {
            for key in self.came.drain(..KEYS_LEAVE) {
                let order = self.keys.remove(&key);
                self.floor = raised(self.floor, order);
            }
        }
    }

    /// Notes a purge.
    pub(super) fn note_purge(&mut self, purge: Purge, order: Order) {
        self.count += 1;
        self.purges.push_back((purge, order));
        if self.purges.len() > PURGES_MAX {
            let oldest = self.purges.pop_front().map(|(_, order)| order);
            self.floor = raised(self.floor, oldest);
        }
    }

    /// Tells whether a snapshot was taken away since it began.
    pub(super) fn cover(&self, key: &[u8], marks: &Marks, order: Order) -> bool {
        self.floor.is_some_and(|floor| floor.covers(order))
            || self.keys.get(key).is_some_and(|tomb| tomb.covers(order))
            || self
                .purges
                .iter()
                .any(|(purge, tomb)| tomb.covers(order) && purge.concerns(marks))
    }

    /// Tells whether anything that concerns a key is noted, or was once and is no longer told apart.
    pub(super) fn mention(&self, key: &[u8], marks: &Marks) -> bool {
        self.floor.is_some()
            || self.keys.contains_key(key)
            || self.purges.iter().any(|(purge, _)| purge.concerns(marks))
    }
}

fn latest(one: Order, other: Order) -> Order {
    Order {
        turn: one.turn.max(other.turn),
        started: one.started.max(other.started),
    }
}

fn raised(floor: Option<Order>, by: Option<Order>) -> Option<Order> {
    match (floor, by) {
        (Some(floor), Some(by)) => Some(latest(floor, by)),
        (floor, by) => floor.or(by),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_core::Mono;

    fn order(turn: u64) -> Order {
        Order {
            turn,
            started: Some(Mono::from_nanos(i64::try_from(turn).unwrap())),
        }
    }

    #[test]
    fn e46_no_removal_is_forgotten_however_many_there_are_and_the_list_is_bounded() {
        let mut tombs = Tombs::default();
        for turn in 0..10_000_u64 {
            let key: Arc<[u8]> = turn.to_be_bytes().into();
            tombs.note_key(&key, order(turn));
            tombs.note_purge(Purge::Tag(turn.to_string()), order(turn));
            assert!(tombs.keys.len() <= KEYS_MAX && tombs.purges.len() <= PURGES_MAX);
        }
        for turn in 0..10_000_u64 {
            assert!(
                tombs.cover(&turn.to_be_bytes(), &Marks::default(), order(turn)),
                "{turn}"
            );
        }
        assert!(!tombs.cover(b"other", &Marks::default(), order(9_999)));
    }
}
