//! Decides which words there are for what became of an answer that arrived: it is stored, or it is not and why.
//! It exists apart so that callers can count and label by them.
//! It refuses to hold rules; those decide which word it is.

use std::sync::Arc;

use evenkeel_http::store_rules::NotKept;

use super::shelved::Shelved;

/// Why an answer was not put on the shelf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotShelved {
    /// A rule of HTTP.
    Http(NotKept),
    /// Nothing could ever use it: it has no lifetime and no validator, and nobody permits it on a failure.
    NoUse,
    /// It is an error answer, and a good copy is held.
    ErrorAnswer,
    /// It is larger than the shelf takes.
    TooBig,
    /// A newer load has been here, or the URI was retired since this one began.
    Superseded,
}

/// What the head of an answer means for the shelf.
#[derive(Debug)]
pub enum Head {
    /// The answer may be stored: read its body to the end, then [`HttpCache::store`](super::HttpCache::store) it.
    Storable,
    /// It may not; what it supersedes goes when [`HttpCache::supersede`](super::HttpCache::supersede) is called.
    Not(NotShelved),
}

/// What became of an answer.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The copy to answer with.
    pub copy: Arc<Shelved>,
    /// It is on the shelf now, and if not, why.
    pub stored: Result<(), NotShelved>,
}
