//! Decides which of a few parallel counters a thread uses.
//! It exists so that threads which count at the same time do not fight over one cache line.
//! It refuses to know about threads: the driver hands each of them a lane.

/// One of a fixed number of parallel counters. Any mapping of threads to lanes is correct; one lane per thread
/// is fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane(usize);

impl Lane {
    /// How many lanes there are. Loom, which tries every interleaving, gets by with two.
    pub const COUNT: usize = if cfg!(loom) { 2 } else { 8 };

    /// Maps any number, such as a thread's, to a lane.
    #[must_use]
    pub const fn new(number: usize) -> Self {
        Self(number % Self::COUNT)
    }

    /// Returns the index of the lane, below [`Lane::COUNT`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0
    }
}
