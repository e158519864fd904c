//! Decides whether too large a share of the calls was bad, whatever bad means: failed, or slow.
//! It exists so that both shares are counted by one piece of code, over a window of time or of calls.
//! It refuses to decide by fewer calls than the rules name.

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
#[derive(Debug)]
pub(crate) struct Share {
    limit_ppm: u64,
    min_calls: u64,
    sample: Sample,
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
            sample: match over {
                Over::Time(span) => Sample::Time(Window::new(span)),
                Over::Calls(calls) => Sample::Calls(Ring::new(calls)),
            },
        }
    }

    /// Counts a call of a generation. A window of calls does not look at the time.
    pub(crate) fn add(&self, lane: Lane, now: Mono, generation: u64, is_bad: bool) {
        match &self.sample {
            Sample::Time(window) => window.add(lane, now, generation, is_bad),
            Sample::Calls(ring) => ring.add(generation, is_bad),
        }
    }

    /// Tells whether the limit is reached: a fixed number of loads, whatever the traffic.
    pub(crate) fn is_reached(&self, now: Mono, generation: u64) -> bool {
        let Total { calls, failures } = match &self.sample {
            Sample::Time(window) => window.total(now, generation),
            Sample::Calls(ring) => ring.total(generation),
        };
        calls >= self.min_calls
            && u128::from(failures) * 1_000_000 >= u128::from(calls) * u128::from(self.limit_ppm)
    }

    /// Forgets everything, before the first call of a generation.
    pub(crate) fn begin(&self, generation: u64) {
        match &self.sample {
            Sample::Time(window) => window.clear(),
            Sample::Calls(ring) => ring.begin(generation),
        }
    }

    /// Tells whether a call has to say when it ended.
    pub(crate) const fn is_over_time(&self) -> bool {
        matches!(self.sample, Sample::Time(_))
    }
}
