//! Decides whether too large a share of the calls was bad, whatever bad means: failed, or slow.
//! It exists so that both shares are counted by one piece of code, over a window of time or of calls.
//! It refuses to decide by fewer calls than the rules name.

use alloc::sync::Arc;

use crate::{
    breaker::{
        ring::Ring,
        rules::Over,
        window::{Total, Window},
    },
    lane::Lane,
    time::Mono,
};

/// A share with its limit.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    limit_ppm: u64,
    min_calls: u64,
    over: Over,
    sample: Arc<Sample>,
}

/// The calls of which it is a share.
#[derive(Debug)]
enum Sample {
    Time(Window),
    Calls(Ring),
}

impl Share {
    pub(crate) fn new(limit_ppm: u32, over: Over, min_calls: u32) -> Self {
        Self {
            limit_ppm: u64::from(limit_ppm),
            min_calls: u64::from(min_calls),
            over,
            sample: Arc::new(match over {
                Over::Time(span) => Sample::Time(Window::new(span)),
                Over::Calls(calls) => Sample::Calls(Ring::new(calls)),
            }),
        }
    }

    /// Makes one by other rules. It goes on with the same calls if it looks at as many as before.
    pub(crate) fn succeeded_by(&self, limit_ppm: u32, over: Over, min_calls: u32) -> Self {
        if over != self.over {
            return Self::new(limit_ppm, over, min_calls);
        }
        Self {
            limit_ppm: u64::from(limit_ppm),
            min_calls: u64::from(min_calls),
            over,
            sample: Arc::clone(&self.sample),
        }
    }

    /// Counts a call of a generation. A window of calls does not look at the time.
    pub(crate) fn add(&self, lane: Lane, now: Mono, generation: u64, is_bad: bool) {
        match &*self.sample {
            Sample::Time(window) => window.add(lane, now, generation, is_bad),
            Sample::Calls(ring) => ring.add(generation, is_bad),
        }
    }

    /// Tells whether the limit is reached: a fixed number of loads, whatever the traffic.
    pub(crate) fn is_reached(&self, now: Mono, generation: u64) -> bool {
        let Total { calls, failures } = match &*self.sample {
            Sample::Time(window) => window.total(now, generation),
            Sample::Calls(ring) => ring.total(generation),
        };
        calls >= self.min_calls
            && u128::from(failures) * 1_000_000 >= u128::from(calls) * u128::from(self.limit_ppm)
    }

    /// Forgets everything, before the first call of a generation.
    pub(crate) fn begin(&self, generation: u64) {
        match &*self.sample {
            Sample::Time(window) => window.clear(),
            Sample::Calls(ring) => ring.begin(generation),
        }
    }

    /// Counts for this generation from now on, unless it does so already.
    pub(crate) fn follow(&self, generation: u64) {
        match &*self.sample {
            Sample::Calls(ring) if !ring.is_of(generation) => ring.begin(generation),
            // A window of time holds whatever generation comes.
            Sample::Calls(_) | Sample::Time(_) => {}
        }
    }

    /// Tells whether a call has to say when it ended.
    pub(crate) const fn is_over_time(&self) -> bool {
        matches!(self.over, Over::Time(_))
    }
}
