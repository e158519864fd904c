//! Decides under which key a snapshot stands in a store, by what it can be purged there, and whether it may be there at
//! all. It exists because both kinds of snapshots write their keys alike and must not meet.
//! It refuses to write down what is one caller's own: what leaves the process is only what was for everybody.

use evenkeel::{KeyParts, Mono};
use evenkeel_core::store::{Body, Marks, Order, Record, Stamp};
use evenkeel_http::facts::StoredFacts;

use super::super::{data, purging};

/// Which of the two stores in memory a snapshot belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The snapshots of routes that always ask.
    Plain,
    /// The shelf.
    Shelved,
}

impl Kind {
    const fn byte(self) -> u8 {
        match self {
            Self::Plain => b'p',
            Self::Shelved => b's',
        }
    }
}

/// Tells whether an answer is one caller's own. Such copies are for memory alone.
pub(super) const fn is_private(facts: &StoredFacts) -> bool {
    let said = &facts.directives;
    let shared = said.public || said.s_maxage.is_some() || said.must_revalidate;
    said.private || (facts.authorization && !shared)
}

/// Writes the key for a store.
pub(super) fn key(kind: Kind, key: &[u8]) -> Vec<u8> {
    [&[kind.byte()], key].concat()
}

/// Returns the key that memory knows.
pub(super) fn key_of(kind: Kind, key: &[u8]) -> Option<&[u8]> {
    let (first, rest) = key.split_first()?;
    (*first == kind.byte()).then_some(rest)
}

/// Reads what a key says: scheme and authority come first in its scope.
pub(super) fn of(kind: Kind, whole: &[u8]) -> Option<(Vec<u8>, Marks)> {
    let parts = KeyParts::of(whole)?;
    let [scheme, authority, rest @ ..] = parts.scope.as_slice() else {
        return None;
    };
    let mut scope = Vec::new();
    for part in rest {
        scope.extend_from_slice(&(part.len() as u64).to_be_bytes());
        scope.extend_from_slice(part.as_bytes());
    }
    let marks = Marks {
        route: data::route_of(parts.guard).to_owned(),
        uri: format!("{scheme}://{authority}{}", String::from_utf8_lossy(parts.key)),
        scope,
        tags: Vec::new(),
    };
    Some((key(kind, whole), marks))
}

/// Returns the tags that an answer has.
pub(super) fn tags(text: &str) -> Vec<String> {
    purging::each_tag(text)
        .take(TAGS_MAX)
        .map(str::to_owned)
        .collect()
}

/// More tags of one answer are not written; such an answer is purged by its URI.
const TAGS_MAX: usize = 256;

/// Makes a record whose order and times are still to be said.
pub(super) fn record(key: Vec<u8>, marks: Marks, facts: Vec<u8>, body: Body) -> Record {
    Record {
        key,
        marks,
        order: Order {
            turn: 0,
            started: None::<Mono>,
        },
        stamp: Stamp::default(),
        soft: false,
        facts,
        body,
    }
}
