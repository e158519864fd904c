//! Decides which snapshots are kept in memory: the last good answer per key, bounded by bytes.
//! It exists so that serving old data touches nothing that can be down.
//! It refuses to grow past its bound, and to replace newer data by older.

mod restoring;

use std::{
    fmt,
    hash::{BuildHasher, Hasher},
    marker::PhantomData,
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use evenkeel_core::{Facts, Mono, Wall, replaces, store::Order};
use foldhash::fast::RandomState;
use quick_cache::{
    Lifecycle, OptionsBuilder, Weighter,
    sync::{Cache, EntryAction, EntryResult},
};
use smallvec::SmallVec;

use crate::{
    behind::{Behind, Beyond, Pin, Pins, is_pinned},
    key::Key,
    purge::{Concerns, KeyParts, Purge, Purged},
    retired::Retired,
};

/// The last good answer for one key.
pub(crate) struct Snapshot<T> {
    /// The whole key, beside what is read with it: the index holds only its hash. Usual ones fit in here.
    key: SmallVec<[u8; 36]>,
    pub(crate) value: T,
    /// When the attempt that produced it began.
    pub(crate) observed: Option<Mono>,
    /// The same by the wall clock of that moment, for display.
    pub(crate) observed_wall: Option<Wall>,
    pub(crate) own_limit: Option<Duration>,
    pub(crate) stale_forbidden: bool,
    /// How long it counts as fresh, where that is its own.
    lifetime: Option<Duration>,
    /// Its own window beyond that.
    revalidate: Option<Duration>,
    /// How long its attempt took, where refreshes go by that.
    cost: Option<Duration>,
    bytes: u64,
    /// It is about to be used, where it was fetched for that.
    pin: Option<Pin>,
    /// It was purged softly: not fresh any more, whatever its lifetime says.
    expired: AtomicBool,
}

impl<T> Snapshot<T> {
    pub(crate) fn facts(&self, usable: bool) -> Facts {
        let expired = self.expired.load(Ordering::Relaxed).then_some(Duration::ZERO);
        Facts {
            observed: self.observed,
            own_limit: self.own_limit,
            forbidden: !usable,
            stale_forbidden: self.stale_forbidden,
            lifetime: expired.or(self.lifetime),
            revalidate: expired.or(self.revalidate),
            cost: self.cost,
        }
    }

    /// What decides between two copies: the time, where there is one to go by.
    fn rank(&self) -> Option<Mono> {
        self.observed.filter(|at| *at < FUTURE)
    }
}

/// The time of what came in dated ahead of the clock. Waiting does not make it true: it stays ahead for good,
/// and anything with a time that can be true replaces it.
pub(crate) const FUTURE: Mono = Mono::END;

/// A store for snapshots, bounded by bytes. Clones share it; several guards with the same value type may too.
///
/// The bound covers values (by the guard's `weigh`), keys and an estimate of the bookkeeping. When it is full,
/// what was not read lately goes first.
///
/// A snapshot belongs to the name of its guard: guards of one name that share a store share their snapshots.
pub struct Memory<T>(Arc<Shared<T>>);

struct Shared<T> {
    /// By the hash of the key. Two keys with one hash take turns, because each is compared in full; the hash has
    /// a seed of its own in each store, so that nobody can look for such keys outside.
    cache: Cache<u64, Arc<Snapshot<T>>, ByBytes, AlreadyHashed, CountEvictions<T>>,
    hashes: RandomState,
    retired: Retired,
    behind: Beyond<dyn Behind<T>>,
    pins: Pins,
    evicted: Arc<AtomicU64>,
}

/// Counts what goes for want of room.
struct CountEvictions<T>(Arc<AtomicU64>, PhantomData<fn(T)>);

impl<T> Clone for CountEvictions<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0), PhantomData)
    }
}

impl<T> Lifecycle<u64, Arc<Snapshot<T>>> for CountEvictions<T> {
    /// What was evicted, so that it is dropped after the lock is left. An insertion that evicts several is rare.
    type RequestState = SmallVec<[Arc<Snapshot<T>>; 2]>;

    fn is_pinned(&self, _hash: &u64, snapshot: &Arc<Snapshot<T>>) -> bool {
        is_pinned(snapshot.pin.as_ref())
    }

    fn on_evict(&self, state: &mut Self::RequestState, _hash: u64, snapshot: Arc<Snapshot<T>>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        state.push(snapshot);
    }
}

impl<T> Clone for Memory<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Memory<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("bytes", &self.0.cache.weight())
            .field("limit", &self.0.cache.capacity())
            .finish()
    }
}

/// The index is given hashes, which need no hashing.
#[derive(Clone, Default)]
pub(crate) struct AlreadyHashed;

/// Hands a number on as its own hash.
#[derive(Default)]
pub(crate) struct AsItIs(u64);

impl BuildHasher for AlreadyHashed {
    type Hasher = AsItIs;

    fn build_hasher(&self) -> AsItIs {
        AsItIs::default()
    }
}

impl Hasher for AsItIs {
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        // Nothing but whole hashes comes here; anything else still makes a number, if not a good one.
        self.0 = bytes
            .iter()
            .fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Clone)]
struct ByBytes;

impl<T> Weighter<u64, Arc<Snapshot<T>>> for ByBytes {
    fn weight(&self, _hash: &u64, snapshot: &Arc<Snapshot<T>>) -> u64 {
        snapshot.bytes
    }
}

/// What a store behind is told: a copy, and the turn that was drawn while its key was held.
type Told<T> = (Arc<Snapshot<T>>, u64);

/// What became of an attempt to keep something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    Kept,
    /// What is held was observed later.
    Superseded,
    /// It is larger than anything this store takes; what was held is gone, because it is superseded.
    TooBig,
}

/// What a snapshot costs beside its value and key: index entry, counters, the snapshot's own fields.
const OVERHEAD: u64 = 256;

impl<T> Default for Memory<T> {
    /// Makes an empty store of [`Memory::BYTES_DEFAULT`].
    fn default() -> Self {
        Self::new(Self::BYTES_DEFAULT)
    }
}

impl<T> Memory<T> {
    /// What a guard that keeps snapshots uses when it is given no store.
    pub const BYTES_DEFAULT: u64 = 64 << 20;

    /// Makes an empty store that holds at most `bytes`. A store of a few hundred bytes holds nothing.
    ///
    /// Stores above 8 MiB are split into up to eight parts, each with its share of the bytes, so that threads
    /// rarely meet; the largest item is nine tenths of a part.
    ///
    /// ```
    /// let memory = evenkeel::Memory::<String>::new(1 << 20);
    /// assert_eq!((memory.bytes(), memory.count()), (0, 0));
    /// ```
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let parts = usize::try_from((bytes >> 23).clamp(1, 8)).unwrap_or(1);
        // The index starts small and grows with what is kept.
        let options = OptionsBuilder::new()
            .shards(parts)
            .weight_capacity(bytes)
            .estimated_items_capacity(
                usize::try_from(bytes / 4096)
                    .unwrap_or(usize::MAX)
                    .clamp(16, 1 << 14),
            )
            .build();
        let options = options.expect("capacities are set");
        let evicted = Arc::new(AtomicU64::new(0));
        let counting = CountEvictions(Arc::clone(&evicted), PhantomData);
        Self(Arc::new(Shared {
            cache: Cache::with_options(options, ByBytes, AlreadyHashed, counting),
            hashes: RandomState::default(),
            retired: Retired::default(),
            behind: Beyond::default(),
            pins: Pins::default(),
            evicted,
        }))
    }

    /// Returns the bytes in use, never more than the bound.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.cache.weight()
    }

    /// Returns the bound in bytes.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.0.cache.capacity()
    }

    /// Sets another bound. What is beyond it goes at once, the least used first.
    ///
    /// ```
    /// let memory = evenkeel::Memory::<String>::new(1 << 20);
    /// memory.set_limit(1 << 21);
    /// assert_eq!(memory.limit(), 1 << 21);
    /// ```
    pub fn set_limit(&self, bytes: u64) {
        if bytes != self.limit() {
            self.0.cache.set_capacity(bytes);
        }
    }

    /// Returns how many snapshots are kept.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.cache.len()
    }

    /// Returns how many snapshots went for want of room.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.0.evicted.load(Ordering::Relaxed)
    }

    /// The largest item taken, with key and bookkeeping: nine tenths of a part, so that it can never be the
    /// only one and leave at once.
    fn largest(&self) -> u64 {
        self.0.cache.shard_capacity() / 10 * 9
    }

    #[inline]
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Snapshot<T>>> {
        self.0
            .cache
            .get(&self.hash(key))
            .filter(|held| held.key.as_slice() == key.as_slice())
    }

    fn hash(&self, key: &Key) -> u64 {
        self.0.hashes.hash_one(key.as_slice())
    }

    /// Takes away what was observed under `key` up to `at`, also what a load that is under way may yet bring.
    pub(crate) fn retire(&self, key: &Key, at: Mono) {
        self.retire_here(key, at);
        if let Some(behind) = self.0.behind.get() {
            // What is not here may be there. Until it is told it may give that back, so it is looked for once more.
            let turn = behind.turn();
            let started = Some(at);
            behind.gone(key, Order { turn, started });
            self.retire_here(key, at);
        }
    }

    fn retire_here(&self, key: &Key, at: Mono) {
        // The note comes first: a load that keeps its result in between then finds it.
        self.0.retired.note(key, at);
        drop(self.0.cache.remove_if(&self.hash(key), |held| {
            held.key.as_slice() == key.as_slice() && replaces(Some(at), held.rank())
        }));
    }

    /// Keeps what a load brought, unless something observed later is held or the key was retired since it began.
    pub(crate) fn keep(&self, key: &Key, value: T, value_bytes: usize, entry: Entry) -> Put {
        let Some(observed) = entry.observed else {
            return self.put(key, value, value_bytes, entry);
        };
        if self.0.retired.covers(key, observed) {
            return Put::Superseded;
        }
        let put = self.put(key, value, value_bytes, entry);
        match put {
            Put::Kept if self.0.retired.covers(key, observed) => {
                self.retire(key, observed);
                Put::Superseded
            }
            Put::TooBig => {
                self.0.retired.note(key, observed);
                put
            }
            Put::Kept | Put::Superseded => put,
        }
    }

    /// Keeps `entry` unless something observed later is held, and tells the store behind.
    pub(crate) fn put(&self, key: &Key, value: T, value_bytes: usize, entry: Entry) -> Put {
        let behind = self.0.behind.get();
        let (put, told) = self.put_quietly(key, (value, value_bytes), entry, None, behind);
        if let (Some(behind), Some((snapshot, turn))) = (behind, told) {
            let started = snapshot.rank();
            match put {
                Put::Kept => behind.kept(key, &snapshot.value, &entry, Order { turn, started }),
                Put::TooBig => behind.gone(key, Order { turn, started }),
                Put::Superseded => {}
            }
        }
        put
    }

    /// Keeps `entry` unless something observed later is held. One step per key: two loads cannot mix. Where there is a store
    /// behind, also returns what it is told: the copy, and the turn that was drawn while the key was held.
    fn put_quietly(
        &self,
        key: &Key,
        (value, value_bytes): (T, usize),
        entry: Entry,
        pin: Option<Pin>,
        behind: Option<&dyn Behind<T>>,
    ) -> (Put, Option<Told<T>>) {
        let bytes = (value_bytes as u64)
            .saturating_add(key.len() as u64)
            .saturating_add(OVERHEAD);
        let Entry {
            observed,
            observed_wall,
            own_limit,
            stale_forbidden,
            lifetime,
            revalidate,
            cost,
        } = entry;
        let snapshot = Arc::new(Snapshot {
            key: SmallVec::from_slice(key),
            value,
            observed,
            observed_wall,
            own_limit,
            stale_forbidden,
            lifetime,
            revalidate,
            cost,
            bytes,
            pin,
            expired: AtomicBool::new(false),
        });
        let too_big = bytes > self.largest();
        // The old value is dropped after the store's lock is left: its drop is somebody else's code.
        let mut replaced = None;
        let mut turn = None;
        let held = self.0.cache.entry(&self.hash(key), None, |_, held| {
            if held.key.as_slice() == key.as_slice() && !replaces(snapshot.rank(), held.rank()) {
                EntryAction::Retain(Put::Superseded)
            } else if too_big {
                turn = behind.map(Behind::turn);
                EntryAction::Remove
            } else {
                turn = behind.map(Behind::turn);
                replaced = Some(mem::replace(held, Arc::clone(&snapshot)));
                EntryAction::Retain(Put::Kept)
            }
        });
        let grew = replaced.is_some_and(|replaced| bytes > replaced.bytes);
        if grew && self.bytes() > self.limit() {
            // A copy that grows in its place pushes nothing out by itself; this does.
            self.0.cache.set_capacity(self.limit());
        }
        let put = match held {
            EntryResult::Retained(put) => put,
            EntryResult::Vacant(_) if too_big => {
                turn = behind.map(Behind::turn);
                Put::TooBig
            }
            EntryResult::Vacant(place) => {
                turn = behind.map(Behind::turn);
                // An error hands the value back when the key was removed meanwhile: then it is not kept.
                drop(place.insert(Arc::clone(&snapshot)));
                Put::Kept
            }
            EntryResult::Removed(..) | EntryResult::Replaced(..) | EntryResult::Timeout => Put::TooBig,
        };
        (put, turn.map(|turn| (snapshot, turn)))
    }
}

/// A copy in a store, as whoever looks through it sees it.
#[derive(Debug)]
pub struct Copied<'c, T> {
    /// The value.
    pub value: &'c T,
    /// When the attempt that produced it began, by the clock of ages; `None` where nobody knows.
    pub observed: Option<Mono>,
    /// The same by the wall clock of that time.
    pub observed_wall: Option<Wall>,
    /// The oldest that it may be by its own word.
    pub own_limit: Option<Duration>,
    /// It forbids to stand in.
    pub stale_forbidden: bool,
    /// It was purged softly.
    pub expired: bool,
    /// What it takes of the store.
    pub bytes: u64,
}

impl<T> Memory<T> {
    /// Shows every copy, one after the other, in no order. Each step takes the store's lock for a moment only, so that
    /// calls go on meanwhile; a copy that comes in while it goes on may be shown or not. What lies under a key takes as
    /// long as there are copies: call it where that may take a while.
    pub fn each(&self, mut show: impl FnMut(&KeyParts<'_>, Copied<'_, T>)) {
        for (_, held) in self.0.cache.iter() {
            if let Some(parts) = KeyParts::of(&held.key) {
                show(&parts, held.shown());
            }
        }
    }

    /// Purges the copies under the keys that are concerned, of which `also` holds, and what loads that are under way may
    /// yet bring under such keys: what was observed up to `at`. It takes as long as there are copies and no call waits for
    /// it; see [`Memory::each`].
    pub fn purge(&self, how: Purge, at: Mono, concerns: &Concerns, also: impl Fn(&T) -> bool) -> Purged {
        // The note comes first: a load that keeps its result in between then finds it.
        self.0.retired.note_all(concerns.clone(), at);
        let mut purged = Purged::default();
        for (hash, held) in self.0.cache.iter() {
            purged.looked_at += 1;
            let is_older = replaces(Some(at), held.rank());
            if !is_older || !concerns.whole(&held.key) || !also(&held.value) {
                continue;
            }
            purged.purged += 1;
            match how {
                Purge::Soft => held.expired.store(true, Ordering::Relaxed),
                // Another copy may have come in since; it stays if it was observed later.
                Purge::Hard => drop(
                    self.0
                        .cache
                        .remove_if(&hash, |now| now.key == held.key && replaces(Some(at), now.rank())),
                ),
            }
        }
        purged
    }
}

impl<T> Snapshot<T> {
    fn shown(&self) -> Copied<'_, T> {
        Copied {
            value: &self.value,
            observed: self.observed,
            observed_wall: self.observed_wall,
            own_limit: self.own_limit,
            stale_forbidden: self.stale_forbidden,
            expired: self.expired.load(Ordering::Relaxed),
            bytes: self.bytes,
        }
    }
}

/// What is kept beside a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// When the attempt that produced it began; [`Mono::END`] if it is dated ahead, `None` if nobody said.
    pub observed: Option<Mono>,
    /// The same by the wall clock of that time, for display.
    pub observed_wall: Option<Wall>,
    /// A limit on its age that came with it.
    pub own_limit: Option<Duration>,
    /// It forbids being served stale.
    pub stale_forbidden: bool,
    /// How long it counts as fresh, where that is its own.
    pub lifetime: Option<Duration>,
    /// Its own window beyond that.
    pub revalidate: Option<Duration>,
    /// How long its attempt took, where refreshes go by that.
    pub cost: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::from_slice(name.as_bytes())
    }

    fn at(nanos: i64) -> Entry {
        Entry {
            observed: Some(Mono::from_nanos(nanos)),
            ..Entry::default()
        }
    }

    fn held(memory: &Memory<u32>, name: &str) -> Option<u32> {
        memory.get(&key(name)).map(|snapshot| snapshot.value)
    }

    #[test]
    fn e47_the_newest_start_wins_whatever_the_order_of_arrival() {
        let memory = Memory::new(1 << 20);
        assert_eq!(memory.put(&key("k"), 2, 4, at(20)), Put::Kept);
        assert_eq!(memory.put(&key("k"), 1, 4, at(10)), Put::Superseded);
        assert_eq!(held(&memory, "k"), Some(2));
        assert_eq!(memory.put(&key("k"), 3, 4, at(20)), Put::Kept);
        assert_eq!(memory.put(&key("k"), 4, 4, Entry::default()), Put::Superseded);
        assert_eq!(held(&memory, "k"), Some(3));
    }

    #[test]
    fn e51_what_is_too_big_to_keep_takes_the_old_copy_away() {
        let memory = Memory::new(4096);
        assert_eq!(memory.put(&key("k"), 1, 4, at(10)), Put::Kept);
        assert_eq!(memory.put(&key("k"), 2, 8192, at(20)), Put::TooBig);
        assert_eq!(held(&memory, "k"), None);
        assert_eq!(memory.put(&key("new"), 2, 8192, at(20)), Put::TooBig);
        assert_eq!((memory.bytes(), memory.count()), (0, 0));
    }

    #[test]
    fn what_is_too_big_but_older_leaves_the_newer_copy_alone() {
        let memory = Memory::new(4096);
        assert_eq!(memory.put(&key("k"), 1, 4, at(10)), Put::Kept);
        assert_eq!(memory.put(&key("k"), 2, 8192, at(5)), Put::Superseded);
        assert_eq!(held(&memory, "k"), Some(1));
    }

    #[test]
    fn e46_a_load_that_began_before_its_key_was_retired_is_not_kept() {
        let memory = Memory::new(4096);
        memory.keep(&key("k"), 1, 4, at(10));
        memory.retire(&key("k"), Mono::from_nanos(20));
        assert_eq!(held(&memory, "k"), None);
        assert_eq!(memory.keep(&key("k"), 2, 4, at(19)), Put::Superseded);
        assert_eq!(held(&memory, "k"), None);
        assert_eq!(memory.keep(&key("k"), 3, 4, at(20)), Put::Kept);
        assert_eq!(held(&memory, "k"), Some(3));
    }

    #[test]
    fn e47_a_late_retirement_leaves_what_was_observed_after_it() {
        let memory = Memory::new(4096);
        memory.keep(&key("k"), 1, 4, at(20));
        memory.retire(&key("k"), Mono::from_nanos(10));
        assert_eq!(held(&memory, "k"), Some(1));
    }

    #[test]
    fn e51_an_older_load_does_not_come_back_after_one_that_was_too_big() {
        let memory = Memory::new(4096);
        assert_eq!(memory.keep(&key("k"), 1, 8192, at(20)), Put::TooBig);
        assert_eq!(memory.keep(&key("k"), 2, 4, at(19)), Put::Superseded);
    }

    #[test]
    fn e44_what_is_dated_ahead_replaces_nothing_and_is_replaced_by_anything_dated() {
        let memory = Memory::new(4096);
        let ahead = Entry {
            observed: Some(FUTURE),
            ..Entry::default()
        };
        assert_eq!(memory.put(&key("k"), 1, 4, ahead), Put::Kept);
        assert_eq!(memory.put(&key("k"), 2, 4, at(10)), Put::Kept);
        assert_eq!(memory.put(&key("k"), 3, 4, ahead), Put::Superseded);
        assert_eq!(held(&memory, "k"), Some(2));
    }

    #[test]
    fn any_bound_makes_a_store() {
        for bytes in [0, 1, 200, u64::MAX] {
            let memory = Memory::new(bytes);
            memory.put(&key("k"), 1, 4, at(10));
            assert!(memory.bytes() <= bytes);
        }
    }

    #[test]
    fn the_largest_item_that_fits_is_kept_and_one_byte_more_is_not() {
        let memory = Memory::new(1000);
        let room = 900 - 1 - usize::try_from(OVERHEAD).unwrap();
        assert_eq!(memory.put(&key("k"), 1, room + 1, at(10)), Put::TooBig);
        assert_eq!(memory.put(&key("k"), 1, room, at(10)), Put::Kept);
        assert_eq!(held(&memory, "k"), Some(1));
    }

    #[test]
    fn e54_two_keys_with_one_hash_take_turns_and_never_answer_for_each_other() {
        let memory = Memory::new(1 << 20);
        memory.put(&key("a"), 1, 4, at(20));
        let of_a = memory.get(&key("a")).unwrap();
        memory.0.cache.insert(memory.hash(&key("b")), of_a);
        assert_eq!(held(&memory, "b"), None);
        memory.retire(&key("b"), Mono::from_nanos(30));
        assert_eq!(memory.count(), 2, "what is another key's stays");
        assert_eq!(memory.put(&key("b"), 2, 4, at(10)), Put::Kept);
        assert_eq!(held(&memory, "b"), Some(2));
    }

    #[test]
    fn the_bound_in_bytes_holds_under_many_keys_and_growing_values() {
        let memory = Memory::new(64 << 10);
        for round in 0..5_usize {
            for item in 0..500_usize {
                memory.put(
                    &key(&format!("k{item}")),
                    1,
                    100 * round,
                    at(i64::try_from(round).unwrap()),
                );
                assert!(memory.bytes() <= memory.limit());
            }
        }
        assert!(memory.count() > 50);
        let gone = memory.evicted();
        assert!(
            gone >= 500 - memory.count() as u64,
            "each went for want of room: {gone}"
        );
    }
}
