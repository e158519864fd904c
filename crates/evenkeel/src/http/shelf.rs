//! Decides where stored answers are kept: one place for each URI, bounded by bytes, the newest load winning.
//! It exists apart from the store of snapshots because HTTP keeps several answers for one key and retires all of them
//! together.
//! It refuses to grow past its bound, and to take back what a load brings that began before its URI was retired.

use std::{
    fmt,
    hash::BuildHasher as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use evenkeel_core::Mono;
use evenkeel_http::store_rules::replaces_a_good_copy;
use foldhash::fast::RandomState;
use http::HeaderMap;
use quick_cache::{
    Lifecycle, OptionsBuilder, Weighter,
    sync::{Cache, EntryAction, EntryResult},
};

use super::{budget::Budgets, key::UriKey, place::Place, shelved::Shelved};
use crate::{
    memory::AlreadyHashed,
    purge::{Concerns, KeyParts, Purge, Purged},
    retired::Retired,
};

/// A store of HTTP answers, bounded by bytes. Clones share it.
///
/// The bound covers bodies, fields, keys and bookkeeping. When it is full, what was not read lately goes first.
///
/// ```
/// let shelf = evenkeel::http::Shelf::new(1 << 20);
/// assert_eq!((shelf.bytes(), shelf.uris()), (0, 0));
/// ```
#[derive(Clone)]
pub struct Shelf(Arc<Shared>);

struct Shared {
    /// By the hash of the key, as in the store of snapshots: keys are compared in full.
    places: Cache<u64, Arc<Place>, ByBytes, AlreadyHashed, CountEvictions>,
    hashes: RandomState,
    retired: Retired,
    evicted: Arc<AtomicU64>,
    budgets: Option<Budgets>,
}

impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shelf")
            .field("bytes", &self.bytes())
            .field("limit", &self.limit())
            .field("uris", &self.uris())
            .finish_non_exhaustive()
    }
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<u64, Arc<Place>> for ByBytes {
    fn weight(&self, _hash: &u64, place: &Arc<Place>) -> u64 {
        place.bytes()
    }
}

#[derive(Clone)]
struct CountEvictions(Arc<AtomicU64>);

impl Lifecycle<u64, Arc<Place>> for CountEvictions {
    /// What was evicted, so that it is dropped after the lock is left.
    type RequestState = Vec<Arc<Place>>;

    fn on_evict(&self, state: &mut Self::RequestState, _hash: u64, place: Arc<Place>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        state.push(place);
    }
}

/// How a URI is retired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retire {
    /// Its copies are gone.
    Hard,
    /// Its copies are no longer fresh, and still there for failures.
    Soft,
}

/// What became of a copy that was to be put on the shelf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    Kept,
    /// A newer load has been here, or the URI was retired since this one began.
    Superseded,
    /// It is an error answer, and a good copy is held.
    ErrorAnswer,
    /// It is larger than anything this shelf takes; what it supersedes is gone.
    TooBig,
}

/// What is to become of a place.
enum Change {
    Leave,
    To(Place),
}

fn share_of(bytes: u64, share_ppm: u32) -> u64 {
    let most = u128::from(bytes) * u128::from(share_ppm.min(1_000_000)) / 1_000_000;
    u64::try_from(most).unwrap_or(bytes)
}

impl Shelf {
    /// Makes an empty shelf that holds at most `bytes`.
    ///
    /// Shelves above 8 MiB are split into up to eight parts, each with its share of the bytes, so that threads rarely
    /// meet; the largest place is nine tenths of a part.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self::made(bytes, None)
    }

    /// Makes an empty shelf that holds at most `bytes`, and of one scope at most `share_ppm` millionths of that. It
    /// concerns keys [with a budget](UriKey::with_budget); beyond its share a scope makes room from its own, oldest first.
    #[must_use]
    pub fn with_shares(bytes: u64, share_ppm: u32) -> Self {
        Self::made(bytes, Some(Budgets::new(share_of(bytes, share_ppm))))
    }

    /// Sets another bound, and another share for each scope. What is beyond it goes at once, the least used first; a scope
    /// that has more than its share makes room when it next takes some.
    pub fn set_limit(&self, bytes: u64, share_ppm: u32) {
        if let Some(budgets) = &self.0.budgets {
            budgets.set_most(share_of(bytes, share_ppm));
        }
        if bytes != self.limit() {
            self.0.places.set_capacity(bytes);
        }
    }

    fn made(bytes: u64, budgets: Option<Budgets>) -> Self {
        let parts = usize::try_from((bytes >> 23).clamp(1, 8)).unwrap_or(1);
        let expected = usize::try_from(bytes / 4096).unwrap_or(usize::MAX);
        let options = OptionsBuilder::new()
            .shards(parts)
            .weight_capacity(bytes)
            .estimated_items_capacity(expected.clamp(16, 1 << 14))
            .build()
            .expect("capacities are set");
        let evicted = Arc::new(AtomicU64::new(0));
        let counting = CountEvictions(Arc::clone(&evicted));
        Self(Arc::new(Shared {
            places: Cache::with_options(options, ByBytes, AlreadyHashed, counting),
            hashes: RandomState::default(),
            retired: Retired::default(),
            evicted,
            budgets,
        }))
    }

    /// Returns the bytes in use, never more than the bound.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.places.weight()
    }

    /// Returns the bound in bytes.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.0.places.capacity()
    }

    /// Returns of how many URIs there are copies.
    #[must_use]
    pub fn uris(&self) -> usize {
        self.0.places.len()
    }

    /// Returns how many URIs were evicted for want of room.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.0.evicted.load(Ordering::Relaxed)
    }

    /// Retires every copy of a URI that an attempt loaded which began up to `at`, and what one that began before may
    /// yet bring.
    pub fn retire(&self, key: &UriKey, how: Retire, at: Mono) {
        // The note comes first: a load that keeps its result in between then finds it.
        self.0.retired.note(key.bytes(), at);
        self.change(key, |place| match how {
            Retire::Hard => Change::To(place.after(at)),
            Retire::Soft => Change::To(place.expired(at)),
        });
    }

    /// Shows every copy with its key, one URI after the other, in no order; see [`Memory::each`](crate::Memory::each).
    pub fn each(&self, mut show: impl FnMut(&KeyParts<'_>, &Arc<Shelved>)) {
        for (_, place) in self.0.places.iter() {
            if let Some(parts) = KeyParts::of(place.key()) {
                place.copies().iter().for_each(|copy| show(&parts, copy));
            }
        }
    }

    /// Purges every copy of the URIs that are concerned where `also` holds of one of them, and what loads that are under
    /// way may yet bring for such URIs: what attempts loaded that began up to `at`; see
    /// [`Memory::purge`](crate::Memory::purge).
    pub fn purge(
        &self,
        how: Purge,
        at: Mono,
        concerns: &Concerns,
        also: impl Fn(&Shelved) -> bool,
    ) -> Purged {
        // The note comes first: a load that keeps its result in between then finds it.
        self.0.retired.note_all(concerns.clone(), at);
        let mut purged = Purged::default();
        for (hash, found) in self.0.places.iter() {
            purged.looked_at += 1;
            let is_older = found.copies().iter().any(|copy| copy.began <= at);
            if !is_older || !concerns.whole(found.key()) || !found.copies().iter().any(|copy| also(copy)) {
                continue;
            }
            purged.purged += 1;
            // What goes is dropped after the store's lock is left.
            let mut gone = None;
            drop(self.0.places.entry(&hash, None, |_, held| {
                if !held.is_of(found.key()) {
                    return EntryAction::Retain(());
                }
                let left = match how {
                    Purge::Hard => held.after(at),
                    Purge::Soft => held.expired(at),
                };
                if left.is_empty() {
                    return EntryAction::Remove;
                }
                let left = left.charged_as(held);
                gone = Some(std::mem::replace(held, Arc::new(left)));
                EntryAction::Retain(())
            }));
            drop(gone);
        }
        purged
    }

    /// Returns when a URI was retired last.
    pub(super) fn retired_at(&self, key: &UriKey) -> Mono {
        self.0.retired.last(key.bytes())
    }

    pub(super) fn get(&self, key: &UriKey) -> Option<Arc<Place>> {
        self.0
            .places
            .get(&self.hash(key))
            .filter(|place| place.is_of(key.bytes()))
    }

    fn hash(&self, key: &UriKey) -> u64 {
        self.0.hashes.hash_one(key.bytes().as_slice())
    }

    /// The largest place taken: nine tenths of a part, so that it can never be the only one and leave at once.
    fn largest(&self) -> u64 {
        self.0.places.shard_capacity() / 10 * 9
    }

    /// Puts a copy made for `request` on the shelf.
    pub(super) fn put(&self, key: &UriKey, copy: &Arc<Shelved>, request: &HeaderMap) -> Put {
        if self.0.retired.covers(key.bytes(), copy.began) {
            return Put::Superseded;
        }
        let mut put = Put::Superseded;
        // Asked for before: it takes a lock that is held while a place is changed.
        let largest = self.largest();
        let stands_for_nothing = !replaces_a_good_copy(copy.status());
        self.change(key, |place| {
            // Looked at here and not before: a good one may have come while this one was under way.
            if stands_for_nothing && place.select(request).is_some_and(|held| held.facts().is_good()) {
                put = Put::ErrorAnswer;
                return Change::Leave;
            }
            let Some(with) = place.with(Arc::clone(copy), request) else {
                return Change::Leave;
            };
            if with.bytes() <= largest {
                put = Put::Kept;
                return Change::To(with);
            }
            put = Put::TooBig;
            place
                .without(request, copy.began)
                .map_or(Change::Leave, Change::To)
        });
        if put == Put::Kept && self.0.retired.covers(key.bytes(), copy.began) {
            // It was retired in between; whoever retired it may not have seen this copy.
            self.replace(key, copy, None);
            return Put::Superseded;
        }
        put
    }

    /// Takes away what answered `request` until now, unless a newer attempt than that of `began` loaded it.
    pub(super) fn supersede(&self, key: &UriKey, request: &HeaderMap, began: Mono) {
        self.change(key, |place| {
            place.without(request, began).map_or(Change::Leave, Change::To)
        });
    }

    /// Puts one copy in the stead of another, if that is still here. `true` if it was.
    pub(super) fn replace(&self, key: &UriKey, old: &Arc<Shelved>, new: Option<&Arc<Shelved>>) -> bool {
        let mut found = false;
        self.change(key, |place| {
            place
                .with_instead(old, new.cloned())
                .map_or(Change::Leave, |place| {
                    found = true;
                    Change::To(place)
                })
        });
        found
    }

    /// Changes the place of a URI in one step. The place it is given may be empty.
    fn change(&self, key: &UriKey, change: impl FnOnce(&Place) -> Change) {
        let places = &self.0.places;
        let hash = self.hash(key);
        let budget = self.0.budgets.as_ref().zip(key.scope()).map(|(budgets, scope)| {
            let taken = budgets.of(self.0.hashes.hash_one(scope));
            (budgets, taken)
        });
        let taken = budget.as_ref().map(|(_, taken)| taken);
        let mut change = Some(change);
        let mut apply = |place: &Place| change.take().map_or(Change::Leave, |change| change(place));
        // What goes is dropped after the store's lock is left.
        let mut gone = None;
        let mut grew = false;
        let entry = places.entry(&hash, None, |_, held| {
            let empty = (!held.is_of(key.bytes())).then(|| Place::new(key.bytes()));
            match apply(empty.as_ref().unwrap_or(held)) {
                Change::Leave => EntryAction::Retain(()),
                Change::To(place) if place.is_empty() && empty.is_some() => EntryAction::Retain(()),
                Change::To(place) if place.is_empty() => EntryAction::Remove,
                Change::To(place) => {
                    grew = place.bytes() > held.bytes();
                    gone = Some(std::mem::replace(held, Arc::new(place.charged(taken))));
                    EntryAction::Retain(())
                }
            }
        });
        if let EntryResult::Vacant(vacant) = entry
            && let Change::To(place) = apply(&Place::new(key.bytes()))
            && !place.is_empty()
        {
            // An error hands it back when the key was removed meanwhile: then it is not kept.
            drop(vacant.insert(Arc::new(place.charged(taken))));
            if let Some(taken) = taken {
                taken.note(hash, |hash| places.contains_key(&hash));
            }
        }
        drop(gone);
        if grew && self.bytes() > self.limit() {
            // A place that grows pushes nothing out by itself; this does.
            places.set_capacity(self.limit());
        }
        if let Some((budgets, taken)) = &budget {
            budgets.make_room(taken, |oldest| {
                if places.remove(&oldest).is_some() {
                    self.0.evicted.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    }
}
