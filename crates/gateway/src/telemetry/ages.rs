//! Decides how the ages of old answers are counted: as shares of the limit that each was served under.
//! It exists because 50 s are harmless under a limit of an hour and the last moments under one of a minute, and an alert
//! has to know which.
//! It refuses answers that replace no failed attempt: what a refresh goes on beside is no outage.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// The upper bounds of the buckets, in thousandths of the limit. The limit itself may be served, so the last one has
/// every answer that there is.
pub(crate) const BOUNDS: [u64; 6] = [100, 250, 500, 750, 900, 1000];
const WHOLE: u64 = 1_000_000;

/// The ages of one route's old answers.
#[derive(Debug, Default)]
pub(crate) struct Ages {
    /// Each answer in the first bucket that holds it.
    buckets: [AtomicU64; BOUNDS.len()],
    /// In millionths of the limit.
    sum: AtomicU64,
}

/// The ages so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AgeCounts {
    /// The bound of each bucket, as a share, and how many answers fell between the one before and it.
    pub(crate) buckets: [(f64, u64); BOUNDS.len()],
    /// The shares added up.
    pub(crate) sum: f64,
}

impl Ages {
    /// Counts an answer of this age under this limit. A limit of nothing is reached by any age.
    pub(crate) fn note(&self, age: Duration, limit: Duration) {
        let share = age
            .as_nanos()
            .saturating_mul(u128::from(WHOLE))
            .checked_div(limit.as_nanos())
            .and_then(|share| u64::try_from(share).ok())
            .map_or(WHOLE, |share| share.min(WHOLE));
        let index = BOUNDS.iter().position(|bound| share <= bound * (WHOLE / 1000));
        if let Some(count) = index.and_then(|index| self.buckets.get(index)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add(share, Ordering::Relaxed);
    }

    /// Returns what was counted.
    #[expect(clippy::cast_precision_loss, reason = "a share is shown, not compared")]
    pub(crate) fn read(&self) -> AgeCounts {
        AgeCounts {
            buckets: std::array::from_fn(|index| {
                let count = self.buckets[index].load(Ordering::Relaxed);
                (BOUNDS[index] as f64 / 1000.0, count)
            }),
            sum: self.sum.load(Ordering::Relaxed) as f64 / WHOLE as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_stands_in_the_first_bucket_that_is_not_smaller() {
        let ages = Ages::default();
        let limit = Duration::from_secs(60);
        for seconds in [0, 6, 7, 60] {
            ages.note(Duration::from_secs(seconds), limit);
        }
        let counts = ages.read();
        assert_eq!(counts.buckets.map(|(_, count)| count), [2, 1, 0, 0, 0, 1]);
        assert!((counts.sum - (0.1 + 0.116_666 + 1.0)).abs() < 1e-6, "{counts:?}");
    }

    #[test]
    fn a_limit_of_nothing_is_used_up_by_any_age() {
        let ages = Ages::default();
        ages.note(Duration::ZERO, Duration::ZERO);
        assert_eq!(ages.read().buckets.map(|(_, count)| count), [0, 0, 0, 0, 0, 1]);
    }
}
