//! Decides which of a dependency's addresses the next attempt goes to, and what its result says about that address.
//! It exists below the breaker: a dependency with one dead address of three is not a dead dependency.
//! It refuses to leave an attempt without an address, and to read anything into results that come late.

mod ejections;
mod rules;

use alloc::{boxed::Box, vec::Vec};

pub use self::{
    ejections::{BalanceEvent, Ejections},
    rules::{EjectRules, Spread},
};
use crate::{
    dependency::Exclusive,
    sync::{AtomicU32, AtomicU64, Ordering},
    time::Mono,
};

/// The addresses of one dependency. `L` is the driver's way to exclusive access; it is needed only while an address is
/// marked, or becomes so.
///
/// ```
/// # use core::cell::RefCell;
/// # use evenkeel_core::{Balance, EjectRules, Exclusive, Mono, Spread};
/// # struct Alone<T>(RefCell<T>);
/// # impl<T> Exclusive<T> for Alone<T> {
/// #     fn guard(value: T) -> Self { Self(RefCell::new(value)) }
/// #     fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R { change(&mut self.0.borrow_mut()) }
/// # }
/// let rules = EjectRules { consecutive: 1, ..EjectRules::DEFAULT };
/// let balance = Balance::<Alone<_>>::new(Spread::RoundRobin, Some(rules), 2, 42);
/// let now = Mono::ORIGIN;
/// let first = balance.choose(now, 0, 0);
/// balance.told(first, true, now);
/// balance.left(first);
/// // It failed, and is left out from now on.
/// assert!((0..10).all(|draw| balance.choose(now, 0, draw).index() != first.index()));
/// ```
#[derive(Debug)]
pub struct Balance<L> {
    spread: Spread,
    consecutive: u32,
    addresses: Box<[Address]>,
    turn: AtomicU32,
    /// The marked addresses, a bit for each; read before anything is locked.
    marked: AtomicU64,
    overridden: AtomicU64,
    ejections: Option<L>,
}

#[derive(Debug)]
struct Address {
    in_flight: AtomicU32,
    /// Failures in a row.
    failures: AtomicU32,
    /// How often it was marked or used again. A result counts only in the era in which its attempt began.
    era: AtomicU32,
}

/// The address of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it counts as in flight until `left` is told"]
pub struct Chosen {
    index: usize,
    era: u32,
    overridden: bool,
}

impl Chosen {
    /// Returns its place in the list of addresses.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index
    }

    /// Tells whether the address is marked, and was chosen because too few others are left.
    #[must_use]
    pub const fn is_overridden(self) -> bool {
        self.overridden
    }
}

/// What one address looks like at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressStatus {
    /// Attempts in flight.
    pub in_flight: u32,
    /// Failures in a row.
    pub failures: u32,
    /// Until when it is marked; `None` while it is not.
    pub ejected_until: Option<Mono>,
}

/// What all addresses look like at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalanceStatus {
    /// Each of them, in order.
    pub addresses: Vec<AddressStatus>,
    /// Too many are marked, and all are used.
    pub overrides: bool,
}

impl<L> Balance<L> {
    /// The most addresses of one dependency.
    pub const ADDRESSES_MAX: usize = 64;
}

impl<L: Exclusive<Ejections>> Balance<L> {
    /// Prepares 1 to [`Balance::ADDRESSES_MAX`] addresses; more are not used, fewer are one. The rules must have passed
    /// [`EjectRules::check`]. `seed` draws how long addresses are left out.
    #[must_use]
    pub fn new(spread: Spread, rules: Option<EjectRules>, addresses: usize, seed: u64) -> Self {
        let count = addresses.clamp(1, Self::ADDRESSES_MAX);
        Self {
            spread,
            consecutive: rules.map_or(u32::MAX, |rules| rules.consecutive),
            addresses: (0..count)
                .map(|_| Address {
                    in_flight: AtomicU32::new(0),
                    failures: AtomicU32::new(0),
                    era: AtomicU32::new(0),
                })
                .collect(),
            turn: AtomicU32::new(0),
            marked: AtomicU64::new(0),
            overridden: AtomicU64::new(0),
            ejections: rules.map(|rules| L::guard(Ejections::new(rules, count, seed))),
        }
    }

    /// Chooses the address of an attempt that begins at `now` and counts it in flight. `tried` has a bit for each address
    /// that was asked for the same call before: another is taken while there is one. `draw` is a random number.
    pub fn choose(&self, now: Mono, tried: u64, draw: u64) -> Chosen {
        let all = u64::MAX >> (64 - self.addresses.len());
        let (marked, overrides) = match (self.marked.load(Ordering::Relaxed), &self.ejections) {
            (0, _) | (_, None) => (0, false),
            (_, Some(ejections)) => ejections.with(|ejections| {
                self.expire(ejections, now);
                (ejections.marked(), ejections.overrides())
            }),
        };
        let in_use = if overrides { all } else { all & !marked };
        // Another address first; of those that are left out only where every other one was tried.
        let candidates = [in_use & !tried, in_use, all]
            .into_iter()
            .find(|candidates| *candidates != 0)
            .unwrap_or(all);
        let index = self.pick(candidates, draw);
        let overridden = marked & (1 << index) != 0;
        if overridden {
            self.overridden.fetch_add(1, Ordering::Relaxed);
        }
        let address = &self.addresses[index];
        address.in_flight.fetch_add(1, Ordering::Relaxed);
        Chosen {
            index,
            era: address.era.load(Ordering::Relaxed),
            overridden,
        }
    }

    /// Counts a result: whether it was a failure of the address. A result that says nothing is not told.
    pub fn told(&self, chosen: Chosen, failed: bool, now: Mono) {
        let (Some(address), Some(ejections)) = (self.addresses.get(chosen.index), &self.ejections) else {
            return;
        };
        if address.era.load(Ordering::Relaxed) != chosen.era {
            return;
        }
        let is_marked = self.marked.load(Ordering::Relaxed) & (1 << chosen.index) != 0;
        match (failed, is_marked) {
            // It was asked because too few were left, and nothing has become better.
            (true, true) => {}
            (true, false) => {
                let failures = address.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
                if failures >= self.consecutive {
                    ejections.with(|ejections| {
                        if ejections.eject(chosen.index, now) {
                            address.era.fetch_add(1, Ordering::Relaxed);
                            self.marked.store(ejections.marked(), Ordering::Relaxed);
                        }
                    });
                }
            }
            (false, true) => ejections.with(|ejections| {
                if ejections.proven(chosen.index, now) {
                    address.failures.store(0, Ordering::Relaxed);
                    address.era.fetch_add(1, Ordering::Relaxed);
                    self.marked.store(ejections.marked(), Ordering::Relaxed);
                }
            }),
            // The usual result writes nothing.
            (false, false) => {
                if address.failures.load(Ordering::Relaxed) != 0 {
                    address.failures.store(0, Ordering::Relaxed);
                }
            }
        }
    }

    /// Tells that an attempt is no longer in flight.
    pub fn left(&self, chosen: Chosen) {
        if let Some(address) = self.addresses.get(chosen.index) {
            address.in_flight.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Looks at every address; those whose time is over are used again.
    #[must_use]
    pub fn status(&self, now: Mono) -> BalanceStatus {
        let untils = |ejections: &mut Ejections| {
            self.expire(ejections, now);
            let untils: Vec<Option<Mono>> = (0..self.addresses.len())
                .map(|index| ejections.until(index))
                .collect();
            (untils, ejections.overrides())
        };
        let (untils, overrides) = self
            .ejections
            .as_ref()
            .map_or_else(|| (Vec::new(), false), |ejections| ejections.with(untils));
        let addresses = self
            .addresses
            .iter()
            .enumerate()
            .map(|(index, address)| AddressStatus {
                in_flight: address.in_flight.load(Ordering::Relaxed),
                failures: address.failures.load(Ordering::Relaxed),
                ejected_until: untils.get(index).copied().flatten(),
            });
        BalanceStatus {
            addresses: addresses.collect(),
            overrides,
        }
    }

    /// Returns what has changed since the last time, in order. Of more than 256 changes the oldest are forgotten.
    #[must_use]
    pub fn take_news(&self) -> Vec<(Mono, BalanceEvent)> {
        self.ejections
            .as_ref()
            .map_or_else(Vec::new, |ejections| ejections.with(Ejections::take_news))
    }

    /// Returns how many attempts went to a marked address because too few others were left.
    #[must_use]
    pub fn overridden(&self) -> u64 {
        self.overridden.load(Ordering::Relaxed)
    }

    fn expire(&self, ejections: &mut Ejections, now: Mono) {
        let over = ejections.expire(now);
        if over == 0 {
            return;
        }
        for (index, address) in self.addresses.iter().enumerate() {
            if over & (1 << index) != 0 {
                // On trial: the first failure marks it again.
                address
                    .failures
                    .store(self.consecutive.saturating_sub(1), Ordering::Relaxed);
                address.era.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.marked.store(ejections.marked(), Ordering::Relaxed);
    }

    fn pick(&self, candidates: u64, draw: u64) -> usize {
        let count = candidates.count_ones();
        let load = |index: usize| {
            self.addresses
                .get(index)
                .map_or(u32::MAX, |address| address.in_flight.load(Ordering::Relaxed))
        };
        match self.spread {
            Spread::RoundRobin => {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed);
                nth(candidates, turn % count)
            }
            Spread::LeastLoaded => {
                // Of equals another one each time.
                let turn = self.turn.fetch_add(1, Ordering::Relaxed);
                (0..count)
                    .map(|step| nth(candidates, turn.wrapping_add(step) % count))
                    .min_by_key(|index| load(*index))
                    .unwrap_or(0)
            }
            Spread::PowerOfTwo => {
                let (high, low) = (draw >> 32, draw & u64::from(u32::MAX));
                let first = scaled(high, count);
                let one = nth(candidates, first);
                if count == 1 {
                    return one;
                }
                // Drawn of the others, so that the two are never the same.
                let two = nth(candidates, (first + 1 + scaled(low, count - 1)) % count);
                if load(two) < load(one) { two } else { one }
            }
        }
    }
}

/// Scales 32 random bits to a number below `count`.
fn scaled(bits: u64, count: u32) -> u32 {
    let scaled = (bits * u64::from(count)) >> 32;
    u32::try_from(scaled).unwrap_or(0)
}

/// Returns the place of the `n`th bit that is set, counted from zero.
fn nth(mut bits: u64, n: u32) -> usize {
    for _ in 0..n {
        bits &= bits.wrapping_sub(1);
    }
    bits.trailing_zeros().min(63) as usize
}
