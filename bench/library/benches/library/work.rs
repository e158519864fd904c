//! Decides what is wrapped: the smallest call there is, so that what remains is the wrapper's own cost.
//! It exists as functions the compiler may not look into, for a wrapper around nothing would vanish.
//! It refuses to wait.

use std::{error::Error, fmt, hint::black_box};

/// The dependency could not answer.
#[derive(Clone, Debug)]
pub(crate) struct Down;

impl fmt::Display for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("down")
    }
}

impl Error for Down {}

/// A dependency that answers at once.
#[inline(never)]
pub(crate) fn up(call: u64) -> Result<u64, Down> {
    Ok(black_box(call))
}

/// A dependency that refuses at once.
#[inline(never)]
pub(crate) fn down<T>(call: u64) -> Result<T, Down> {
    black_box(call);
    Err(Down)
}
