//! Decides what a store behind a shelf is told, and in which parts a stored answer is handed to it and taken back.
//! It exists so that a store can write answers in a form of its own, and a shelf never gives one that it could not have
//! stored itself. It refuses to let times be made up: an answer comes back with what the store says of its age.

use std::sync::Arc;

use bytes::Bytes;
use evenkeel_core::{Mono, Wall};
use evenkeel_http::{dates::HttpDate, stored::StoredCopy, vary::Variant};
use http::HeaderMap;

use super::{facts::Facts, head::Head, key::UriKey, shelved::Shelved};

/// A store behind a [`Shelf`](super::Shelf). It is called where answers are stored, so it hands things over and returns.
pub trait BehindShelf: Send + Sync {
    /// Draws the next turn: a number that grows with each call. It is drawn while the place of a URI is held.
    fn turn(&self) -> u64;

    /// Is told which copies a URI has now, all of them. `takes_away`: one that it had is no more, so that what was there
    /// before must not be given again.
    fn kept(&self, key: &UriKey, copies: &[Arc<Shelved>], takes_away: bool, turn: u64);

    /// Is told that a URI has no copies any more.
    fn gone(&self, key: &UriKey, turn: u64);
}

/// The parts of a stored answer.
#[derive(Clone, Debug)]
pub struct ShelvedParts {
    /// Status, directives, lifetime, validators.
    pub facts: StoredCopy,
    /// The fields it is given with.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// Which requests it fits; `None` if all.
    pub variant: Option<Variant>,
    /// When it was received, by the wall clock.
    pub received: HttpDate,
    /// When the attempt that brought it began.
    pub began: Mono,
    /// When its data was observed; [`Mono::END`] if that lies ahead.
    pub observed: Mono,
    /// The same, by the wall clock of that time.
    pub observed_wall: Wall,
}

impl Shelved {
    /// Takes an answer apart. The body is shared.
    #[must_use]
    pub fn to_parts(&self) -> ShelvedParts {
        ShelvedParts {
            facts: self.facts(),
            headers: self.headers(0),
            body: self.body().clone(),
            variant: self.variant().cloned(),
            received: self.received,
            began: self.began,
            observed: self.observed(),
            observed_wall: self.observed_wall(),
        }
    }

    /// Puts an answer together that was taken apart.
    #[must_use]
    pub fn of_parts(parts: ShelvedParts) -> Self {
        Self::put_together(
            (Facts::of(&parts.facts), Head::of(&parts.headers), parts.body),
            parts.variant.map(Box::new),
            (parts.received, parts.began),
            (parts.observed, parts.observed_wall),
        )
    }
}
