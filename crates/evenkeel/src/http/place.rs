//! Decides what becomes of the copies of one URI: which one answers a request, which ones a new answer supersedes.
//! It exists as a value that is never changed, so that whoever reads it needs no lock.
//! It refuses more than [`COPIES_MAX`] copies, and to let an older load take the place of a newer one.

use std::sync::Arc;

use evenkeel_core::Mono;
use http::HeaderMap;
use smallvec::SmallVec;

use crate::behind::Pin;

use super::{
    budget::{Charge, Taken},
    shelved::Shelved,
};

/// The most copies of one URI; a further one takes the place of the one received first.
pub const COPIES_MAX: usize = 32;

/// The copies of one URI.
#[derive(Debug)]
pub(super) struct Place {
    /// The whole key, beside what is read with it: the index holds only its hash.
    key: Box<[u8]>,
    copies: SmallVec<[Arc<Shelved>; 1]>,
    /// What its scope is charged for it.
    charge: Option<Box<Charge>>,
    /// It is about to be used, where it was fetched for that.
    pin: Option<Pin>,
}

/// What a place costs beside its key and copies: index entry, counters, this.
const OVERHEAD: usize = 96;
/// What a copy costs beside itself: counters, and what the allocator keeps for its blocks.
const PER_COPY: usize = 88;

impl Place {
    pub(super) fn new(key: &[u8]) -> Self {
        Self {
            key: key.into(),
            copies: SmallVec::new(),
            charge: None,
            pin: None,
        }
    }

    /// Returns a place with these copies; beyond [`COPIES_MAX`] they are left out.
    pub(super) fn with_all(key: &[u8], copies: &[Arc<Shelved>]) -> Self {
        Self {
            copies: copies.iter().take(COPIES_MAX).cloned().collect(),
            ..Self::new(key)
        }
    }

    /// Holds it for as long as the pin says.
    pub(super) fn pinned(self, pin: Option<Pin>) -> Self {
        Self { pin, ..self }
    }

    pub(super) const fn pin(&self) -> Option<&Pin> {
        self.pin.as_ref()
    }

    /// Returns a place with the same copies, which nobody is charged for yet.
    fn next(&self) -> Self {
        Self {
            key: self.key.clone(),
            copies: self.copies.clone(),
            charge: None,
            pin: None,
        }
    }

    /// Charges a scope for it for as long as it is held.
    pub(super) fn charged(mut self, taken: Option<&Arc<Taken>>) -> Self {
        let bytes = self.bytes();
        self.charge = taken.map(|taken| Box::new(taken.charge(bytes)));
        self
    }

    /// Charges whoever was charged for the place whose stead it takes.
    pub(super) fn charged_as(mut self, before: &Self) -> Self {
        let bytes = self.bytes();
        self.charge = before.charge.as_ref().map(|charge| Box::new(charge.again(bytes)));
        self
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(super) fn is_of(&self, key: &[u8]) -> bool {
        *self.key == *key
    }

    pub(super) fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    pub(super) fn copies(&self) -> &[Arc<Shelved>] {
        &self.copies
    }

    /// Returns the copy that answers a request, as far as `Vary` goes (rule C14): the most recent that has one, else
    /// the most recent.
    pub(super) fn select(&self, request: &HeaderMap) -> Option<&Arc<Shelved>> {
        self.copies
            .iter()
            .filter(|copy| copy.fits(request))
            .max_by_key(|copy| (copy.variant().is_some(), copy.received, copy.began))
    }

    /// Returns the place with this copy in it, made for `request`; `None` if a newer load has been here.
    ///
    /// What answered the same request until now is superseded, however its variant is described.
    pub(super) fn with(&self, copy: Arc<Shelved>, request: &HeaderMap) -> Option<Self> {
        let mut place = self.without(request, copy.began)?;
        if place.copies.len() >= COPIES_MAX
            && let Some((oldest, _)) = place
                .copies
                .iter()
                .enumerate()
                .min_by_key(|(_, copy)| (copy.received, copy.began))
        {
            place.copies.remove(oldest);
        }
        place.copies.push(copy);
        Some(place)
    }

    /// Returns the place without what answered `request` until now; `None` if that was loaded by a newer attempt
    /// than the one that began at `began`.
    pub(super) fn without(&self, request: &HeaderMap, began: Mono) -> Option<Self> {
        let newer = |copy: &Arc<Shelved>| copy.fits(request) && copy.began > began;
        if self.copies.iter().any(newer) {
            return None;
        }
        let mut place = self.next();
        place.copies.retain(|copy| !copy.fits(request));
        Some(place)
    }

    /// Returns the place with one copy in the stead of another; `None` if that is no longer here.
    pub(super) fn with_instead(&self, old: &Arc<Shelved>, new: Option<Arc<Shelved>>) -> Option<Self> {
        let at = self.copies.iter().position(|copy| Arc::ptr_eq(copy, old))?;
        let mut place = self.next();
        match new {
            Some(new) => place.copies[at] = new,
            None => drop(place.copies.remove(at)),
        }
        Some(place)
    }

    /// Returns the place with every copy retired softly that was loaded by an attempt that began up to `at`.
    pub(super) fn expired(&self, at: Mono) -> Self {
        let mut place = self.next();
        for copy in &mut place.copies {
            if copy.began <= at {
                *copy = Arc::new(copy.expired());
            }
        }
        place
    }

    /// Returns the place without the copies loaded by attempts that began up to `at`.
    pub(super) fn after(&self, at: Mono) -> Self {
        let mut place = self.next();
        place.copies.retain(|copy| copy.began > at);
        place
    }

    /// Returns the bytes that it takes.
    pub(super) fn bytes(&self) -> u64 {
        let spilled = if self.copies.spilled() {
            self.copies.capacity() * size_of::<Arc<Shelved>>()
        } else {
            0
        };
        let copies: usize = self.copies.iter().map(|copy| copy.bytes() + PER_COPY).sum();
        (size_of::<Self>() + OVERHEAD + self.key.len() + spilled + copies) as u64
    }
}
