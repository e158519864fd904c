//! Decides what an answer is while the engine holds it: whole, streamed, or the declared constant.
//! It exists so that a kept answer is compact, immutable and shared, and its cost in bytes is known.
//! It refuses to hold a stream: that belongs to one caller and is handed over beside the engine.

use std::{mem, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use evenkeel::{Advice, Class, Keep, Mono, Terms, http::Shelved};
use evenkeel_http::{facts::StoredFacts, vary::Variant};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::config::DefaultAnswer;

/// What a guard of the gateway answers with.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A complete answer of the dependency.
    Whole(Arc<Whole>),
    /// An answer whose body is on its way, and what becomes of the old snapshot; the caller that asked has been
    /// handed it.
    Streamed(StatusCode, Class, Keep, Advice),
    /// A copy of the shelf, and how this call came by it.
    Cached(Arc<Shelved>, How),
    /// The constant that the contract declares.
    Default(Arc<DefaultAnswer>),
}

/// How a call came by a copy of the shelf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// It was there.
    Held,
    /// It was made of the answer of the dependency, and may be on the shelf now.
    Fetched {
        /// It is.
        stored: bool,
    },
    /// The dependency said that it still holds.
    Validated {
        /// It is on the shelf as it is now.
        stored: bool,
    },
}

/// A complete answer of a dependency, and what it said about being kept.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) status: StatusCode,
    /// What it means to the one who asks.
    pub(crate) class: Class,
    /// Without hop-by-hop fields. Empty when the caller has been handed the original fields instead.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) terms: Terms,
    /// How long the origin says that it is fresh.
    pub(crate) lifetime: Option<Duration>,
    /// What has to hold for a request to be given it; `None` if it may not be kept nor shared at all.
    pub(crate) shared: Option<Shared>,
    /// The tags that it can be purged by, as its origin wrote them.
    pub(crate) tags: Option<Box<str>>,
    /// When the attempt began that brought it, where that matters beyond its age.
    pub(crate) began: Option<Mono>,
}

/// For which requests a shared copy may be used.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) facts: StoredFacts,
    pub(crate) variant: Variant,
}

impl Reply {
    /// Returns the class of an answer; error answers that count as outages never get this far.
    pub(crate) fn class(&self) -> Class {
        match self {
            Self::Whole(whole) => whole.class,
            Self::Streamed(_, class, ..) => *class,
            Self::Cached(copy, _) => Class::of_status(copy.status().as_u16()),
            Self::Default(_) => Class::Answer,
        }
    }

    /// Returns the status of what the dependency has answered.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Whole(whole) => Some(whole.status),
            Self::Streamed(status, ..) => Some(*status),
            Self::Cached(copy, _) => Some(copy.status()),
            Self::Default(_) => None,
        }
    }

    /// Returns on which terms it may be kept. What is streamed cannot be kept.
    pub(crate) fn terms(&self) -> Terms {
        match self {
            Self::Whole(whole) => whole.terms,
            Self::Streamed(_, _, keep, _) => Terms {
                keep: *keep,
                ..Terms::default()
            },
            // Told for the count of refreshes alone: the shelf has it already.
            Self::Cached(_, How::Fetched { stored: true } | How::Validated { stored: true }) => {
                Terms::default()
            }
            Self::Cached(..) | Self::Default(_) => Terms {
                keep: Keep::Leave,
                ..Terms::default()
            },
        }
    }

    /// Tells whether several callers may have it.
    pub(crate) fn is_shareable(&self) -> bool {
        match self {
            Self::Whole(whole) => whole.may_be_reused_at_once(),
            // Whether the one who waited may have it is asked again for each.
            Self::Cached(copy, _) => copy.may_be_fresh(),
            Self::Streamed(..) | Self::Default(_) => false,
        }
    }

    /// Returns the bytes that it takes in the store.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Whole(whole) => whole.weight(),
            Self::Cached(..) | Self::Streamed(..) | Self::Default(_) => mem::size_of::<Self>(),
        }
    }
}

/// What one header field costs beside its text: its place in the map and in the map's index.
const FIELD_OVERHEAD: usize = 110;

impl Whole {
    /// Tells whether it may be used for another request without asking again (rule C30). One that states no lifetime may:
    /// whoever waited for it asked while it was on its way.
    fn may_be_reused_at_once(&self) -> bool {
        let must_ask = |shared: &Shared| shared.facts.directives.no_cache;
        self.shared.as_ref().is_some_and(|shared| !must_ask(shared)) && self.lifetime != Some(Duration::ZERO)
    }

    fn weight(&self) -> usize {
        let fields: usize = self
            .headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + FIELD_OVERHEAD)
            .sum();
        let variant = self
            .shared
            .as_ref()
            .map_or(0, |shared| shared.variant.key().len());
        let tags = self.tags.as_ref().map_or(0, |tags| tags.len());
        mem::size_of::<Self>() + fields + variant + tags + self.body.len()
    }
}

/// Copies fields into memory of their own size.
///
/// Fields as they are received share the buffer of their connection, which is many times larger; a store that
/// kept them would hold more bytes than it counts.
pub(super) fn compact(headers: &HeaderMap) -> HeaderMap {
    let text: usize = headers.values().map(HeaderValue::len).sum();
    let mut block = BytesMut::with_capacity(text);
    for value in headers.values() {
        block.extend_from_slice(value.as_bytes());
    }
    let mut block = block.freeze();
    // The names are hashed already: a clone whose values are replaced costs less than a new map.
    let mut copy = headers.clone();
    for value in copy.values_mut() {
        // What was a field value before is one after copying.
        if let Ok(own) = HeaderValue::from_maybe_shared(block.split_to(value.len())) {
            *value = own;
        }
    }
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compact_copy_has_the_same_fields_in_the_same_order() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("vary", "a"),
            ("link", "<1>"),
            ("x-empty", ""),
            ("link", "<2>"),
            ("x", "\u{e4}"),
        ] {
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let copy = compact(&headers);
        assert_eq!(copy, headers);
        let lines =
            |headers: &HeaderMap| -> Vec<String> { headers.keys().map(ToString::to_string).collect() };
        assert_eq!(lines(&copy), lines(&headers));
    }
}
