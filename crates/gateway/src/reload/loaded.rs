//! Decides what is known of the contract that runs: which one, since when, and how often another was wanted.
//! It exists once for the process, because contracts come and go.
//! It refuses to know what is in the contract.

use std::sync::atomic::{AtomicU64, Ordering};

use evenkeel::Wall;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::{config::Loaded, proxy::Fnv, telemetry::rfc3339};

/// What a reload counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// Another contract took over.
    Reloaded,
    /// Nothing had changed.
    Unchanged,
    /// The contract was not taken.
    Refused,
}

impl Reload {
    /// Every word.
    pub const ALL: [Self; 3] = [Self::Reloaded, Self::Unchanged, Self::Refused];

    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reloaded => "reloaded",
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
        }
    }
}

/// What is known of the contract that runs.
#[derive(Debug, Default)]
pub struct Reloads {
    counts: [AtomicU64; Reload::ALL.len()],
    now: Mutex<Now>,
}

#[derive(Clone, Debug, Default)]
struct Now {
    hash: String,
    since: Option<Wall>,
    instead_of: Option<String>,
    refused: Option<(Wall, String, usize)>,
}

impl Reloads {
    /// Counts what a reload came to.
    pub(crate) fn count(&self, reload: Reload) {
        self.counts[reload as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how often a reload came to this.
    #[must_use]
    pub fn counted(&self, reload: Reload) -> u64 {
        self.counts[reload as usize].load(Ordering::Relaxed)
    }

    /// Notes that this contract runs from now on.
    pub(crate) fn note_loaded(&self, loaded: &Loaded, now: Wall) {
        let mut running = self.now.lock();
        running.hash = hash(loaded);
        running.since = Some(now);
        running.instead_of = None;
        running.refused = None;
    }

    /// Notes that the contract that runs is the last good one, and why.
    pub(crate) fn note_fallback(&self, why: &str) {
        self.now.lock().instead_of = Some(why.to_owned());
    }

    /// Notes that a contract was not taken: where its first problem is, and how many there are. What stands there is not
    /// kept, because everybody on the machine may look here.
    pub(crate) fn note_refused(&self, at: &str, problems: usize, now: Wall) {
        self.now.lock().refused = Some((now, at.to_owned(), problems));
    }

    /// Returns a word for the text of the contract that runs, the same for the same text; empty where it came from no file.
    #[must_use]
    pub fn hash(&self) -> String {
        self.now.lock().hash.clone()
    }

    /// Returns since when it runs; `None` where it came from no file.
    #[must_use]
    pub fn since(&self) -> Option<Wall> {
        self.now.lock().since
    }

    /// Returns why the contract that runs is the last good one and not the one that is there now; `None` if it is that.
    #[must_use]
    pub fn fallback(&self) -> Option<String> {
        self.now.lock().instead_of.clone()
    }
}

impl Reloads {
    /// Writes it for people and programs.
    pub(crate) fn json(&self) -> Value {
        let Now {
            hash,
            since,
            instead_of,
            refused,
        } = self.now.lock().clone();
        let counts = Reload::ALL.map(|reload| (reload.as_str().to_owned(), self.counted(reload).into()));
        json!({
            "hash": hash,
            "loaded": since.map(rfc3339),
            "is_last_good": instead_of.is_some(),
            "instead_of": instead_of,
            "refused": refused.map(|(time, at, problems)| json!({
                "time": rfc3339(time),
                "at": at,
                "problems": problems,
            })),
            "reloads": Value::Object(Map::from_iter(counts)),
        })
    }
}

/// Hashes the text of a contract, with that of the files it includes. What values come from is not part of it: some are secret.
pub(crate) fn hash(loaded: &Loaded) -> String {
    let mut hash = Fnv::default();
    for (_, text) in loaded.diagnostics.sources().files() {
        hash.add(text);
        hash.add("\0");
    }
    format!("{:016x}", hash.0)
}
