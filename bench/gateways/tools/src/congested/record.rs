//! Decides what a congested origin remembers of its load: requests and the peak in flight, by tenths of a second.
//!
//! It exists because recovery is judged by its first second. It refuses to grow beyond a minute.

use std::time::Duration;

use tokio::time::Instant;

/// Length of one entry.
pub(super) const STEP: Duration = Duration::from_millis(100);

/// Most entries; what comes later is not recorded.
const STEPS_MAX: usize = 600;

/// Requests that arrived, and the most in flight, in each step since the start.
#[derive(Debug)]
pub(super) struct Record {
    start: Instant,
    pub(super) arrived: Vec<u32>,
    pub(super) peak: Vec<u32>,
}

impl Record {
    pub(super) fn new(start: Instant) -> Self {
        Self {
            start,
            arrived: Vec::new(),
            peak: Vec::new(),
        }
    }

    /// Adds a request that has just made the number in flight `in_flight`.
    pub(super) fn add(&mut self, now: Instant, in_flight: u32) {
        let elapsed = now.duration_since(self.start).as_millis() / STEP.as_millis();
        let Some(step) = usize::try_from(elapsed).ok().filter(|step| *step < STEPS_MAX) else {
            return;
        };
        if self.arrived.len() <= step {
            self.arrived.resize(step + 1, 0);
            self.peak.resize(step + 1, 0);
        }
        self.arrived[step] += 1;
        self.peak[step] = self.peak[step].max(in_flight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_in_the_step_they_arrive_in() {
        let start = Instant::now();
        let mut record = Record::new(start);
        for (millis, in_flight) in [(0, 1), (99, 2), (300, 7), (301, 5)] {
            record.add(start + Duration::from_millis(millis), in_flight);
        }
        assert_eq!(record.arrived, [2, 0, 0, 2]);
        assert_eq!(record.peak, [2, 0, 0, 7]);
    }

    #[test]
    fn a_record_ends_after_a_minute() {
        let start = Instant::now();
        let mut record = Record::new(start);
        record.add(start + Duration::from_secs(60), 1);
        assert_eq!(record.arrived, Vec::<u32>::new());
        record.add(start + Duration::from_millis(59_999), 1);
        assert_eq!(record.arrived.len(), STEPS_MAX);
    }
}
