//! Decides the words for the kinds of mistakes that the engine finds in a contract.
//! It exists so that tools and people can name a kind of mistake, look it up, and see that a change brought none back.
//! It refuses words that change: a code, once published, keeps its meaning.

/// A value that is none of those allowed, and of no other kind here.
pub const BAD_VALUE: &str = "bad-value";
/// A number or a span outside its range.
pub const OUT_OF_RANGE: &str = "out-of-range";
/// A setting that could have no effect beside the others.
pub const NO_EFFECT: &str = "no-effect";
/// Two spans of which one keeps the other from ever ending.
pub const TIMES_CONFLICT: &str = "times-conflict";
/// Old or made up data beside the promise to serve none.
pub const EXACT_WITH_OLD_DATA: &str = "exact-with-old-data";
/// A rung that the ladder has already.
pub const RUNG_TWICE: &str = "rung-twice";
/// A rung behind the default, which always answers.
pub const DEFAULT_NOT_LAST: &str = "default-not-last";
