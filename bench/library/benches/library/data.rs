//! Decides what the stores hold: ten thousand short keys, each with a kibibyte behind a shared pointer.
//! It exists so that every store is asked for the same keys in the same order.
//! It refuses to be a hot key: neighbouring calls ask for keys far apart.

use std::sync::Arc;

/// What is stored under a key. Cloning it copies a pointer, so that no store is charged for copying.
pub(crate) type Value = Arc<Vec<u8>>;

const KEYS: usize = 10_000;

/// Keys for which stale answers are asked; few, as in an outage that begins.
const STALE_KEYS: usize = 64;

/// Keys and the value under each of them.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    keys: Arc<[String]>,
    pub(crate) value: Value,
}

impl Data {
    pub(crate) fn new() -> Self {
        Self {
            keys: (0..KEYS).map(|number| format!("/api/item/{number}")).collect(),
            value: Arc::new(vec![7; 1024]),
        }
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(String::as_str)
    }

    /// Returns the key for a call, scattered by the golden ratio.
    pub(crate) fn key(&self, call: u64) -> &str {
        let scattered = call.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        &self.keys[usize::try_from(scattered).unwrap_or(0) % KEYS]
    }

    /// Returns the key for a call among those for stale answers.
    pub(crate) fn stale_key(&self, call: u64) -> &str {
        &self.keys[usize::try_from(call).unwrap_or(0) % STALE_KEYS]
    }
}
