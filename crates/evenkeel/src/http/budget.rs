//! Decides how much of a shelf one scope may take, and which of its own answers go when it takes more.
//! It exists so that one tenant who stores much cannot push out what all others have.
//! It refuses to touch what belongs to somebody else: beyond its share a scope makes room from its own, oldest first.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;

/// The shares of a shelf, by the hash of the scope.
#[derive(Debug)]
pub(super) struct Budgets {
    /// The most bytes of one scope.
    most: AtomicU64,
    scopes: Mutex<HashMap<u64, Arc<Taken>>>,
}

/// What one scope has taken.
#[derive(Debug, Default)]
pub(super) struct Taken {
    bytes: AtomicU64,
    /// How many places it is charged for.
    places: AtomicUsize,
    /// Its places by their hashes, in the order in which they came. Some may be gone already.
    order: Mutex<VecDeque<u64>>,
}

/// The bytes of one place, counted for its scope for as long as it is held.
#[derive(Debug)]
pub(super) struct Charge {
    taken: Arc<Taken>,
    bytes: u64,
}

impl Charge {
    /// Charges the same scope for the place that takes the stead of this one.
    pub(super) fn again(&self, bytes: u64) -> Self {
        self.taken.charge(bytes)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.taken.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.taken.places.fetch_sub(1, Ordering::Relaxed);
    }
}

/// From so many scopes on, those that hold nothing are looked for and forgotten.
const SWEEP_FROM: usize = 1024;

impl Budgets {
    pub(super) fn new(most: u64) -> Self {
        Self {
            most: AtomicU64::new(most),
            scopes: Mutex::default(),
        }
    }

    /// Gives each scope another share.
    pub(super) fn set_most(&self, most: u64) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Returns the account of a scope.
    pub(super) fn of(&self, scope: u64) -> Arc<Taken> {
        let mut scopes = self.scopes.lock();
        if scopes.len() >= SWEEP_FROM && scopes.len().is_power_of_two() {
            // Whoever is about to be charged has a hand on it, as each charge has.
            scopes.retain(|_, taken| Arc::strong_count(taken) > 1);
        }
        Arc::clone(scopes.entry(scope).or_default())
    }

    /// Takes away the oldest places of a scope until it is within its share. `remove` takes one away by its hash.
    pub(super) fn make_room(&self, taken: &Taken, mut remove: impl FnMut(u64)) {
        while taken.bytes.load(Ordering::Relaxed) > self.most.load(Ordering::Relaxed) {
            // The lock is not held while a place is removed: that takes another one.
            let Some(oldest) = taken.order.lock().pop_front() else {
                return;
            };
            remove(oldest);
        }
    }
}

impl Taken {
    /// Counts a place of so many bytes for as long as the charge is held.
    pub(super) fn charge(self: &Arc<Self>, bytes: u64) -> Charge {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.places.fetch_add(1, Ordering::Relaxed);
        Charge {
            taken: Arc::clone(self),
            bytes,
        }
    }

    /// Notes that a place has come in. `is_there` tells which of those noted before still are, when many are not.
    pub(super) fn note(&self, place: u64, is_there: impl Fn(u64) -> bool) {
        let live = self.places.load(Ordering::Relaxed);
        let mut order = self.order.lock();
        order.push_back(place);
        if order.len() <= live.saturating_mul(2).saturating_add(64) {
            return;
        }
        let all = std::mem::take(&mut *order);
        // The lock is not held while others are asked.
        drop(order);
        let kept: VecDeque<u64> = all.into_iter().filter(|place| is_there(*place)).collect();
        let mut order = self.order.lock();
        let newer = std::mem::replace(&mut *order, kept);
        order.extend(newer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_of_a_scope_is_bounded_by_what_it_holds_itself() {
        let taken = Arc::new(Taken::default());
        let _held = taken.charge(1);
        for place in 0..10_000 {
            taken.note(place, |place| place == 0);
            assert!(taken.order.lock().len() <= 2 + 64, "{place}");
        }
        assert_eq!(taken.order.lock().front(), Some(&0));
    }

    #[test]
    fn an_account_in_use_is_never_forgotten_and_others_are() {
        let budgets = Budgets::new(10);
        let kept = budgets.of(0);
        for scope in 1..100_000 {
            drop(budgets.of(scope));
        }
        assert!(Arc::ptr_eq(&kept, &budgets.of(0)));
        assert!(budgets.scopes.lock().len() <= SWEEP_FROM + 1);
    }
}
