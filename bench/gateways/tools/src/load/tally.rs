//! Decides how outcomes are summed up: counts by status, and how long whole answers took.
//!
//! It exists so that a script gets few figures and every request is in one of them. It refuses
//! to mix the time of answers with the time of those that never came.

use std::collections::BTreeMap;
use std::time::Duration;

use super::client::Outcome;

/// What a number of requests came to.
#[derive(Debug, Default)]
pub struct Tally {
    statuses: BTreeMap<u16, u64>,
    late: u64,
    broken: u64,
    spans: Vec<Duration>,
}

impl Tally {
    /// Adds one request that took `span`.
    pub fn add(&mut self, outcome: Outcome, span: Duration) {
        match outcome {
            Outcome::Answer { status, .. } => {
                *self.statuses.entry(status).or_default() += 1;
                self.spans.push(span);
            }
            Outcome::Late => self.late += 1,
            Outcome::Broken => self.broken += 1,
        }
    }

    /// Returns one line of JSON; times in µs, `null` without an answer.
    #[must_use]
    pub fn json(mut self) -> String {
        self.spans.sort_unstable();
        let at = |percent| match percentile(&self.spans, percent) {
            Some(span) => span.as_micros().to_string(),
            None => "null".to_owned(),
        };
        let statuses: Vec<String> = self
            .statuses
            .iter()
            .map(|(status, count)| format!("\"{status}\":{count}"))
            .collect();
        format!(
            "{{\"statuses\":{{{}}},\"late\":{},\"broken\":{},\"p50_us\":{},\"p99_us\":{},\"max_us\":{}}}",
            statuses.join(","),
            self.late,
            self.broken,
            at(50),
            at(99),
            at(100),
        )
    }
}

/// Returns the smallest of the sorted values that `percent` of them do not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Option<Duration> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_counted_once() {
        let mut tally = Tally::default();
        let answer = |status| Outcome::Answer {
            status,
            made_at: None,
        };
        tally.add(answer(200), Duration::from_micros(5));
        tally.add(answer(504), Duration::from_micros(9));
        tally.add(answer(200), Duration::from_micros(7));
        tally.add(Outcome::Late, Duration::from_secs(1));
        tally.add(Outcome::Broken, Duration::from_secs(2));
        assert_eq!(
            tally.json(),
            r#"{"statuses":{"200":2,"504":1},"late":1,"broken":1,"p50_us":7,"p99_us":9,"max_us":9}"#
        );
    }

    #[test]
    fn without_an_answer_there_is_no_time() {
        assert_eq!(
            Tally::default().json(),
            r#"{"statuses":{},"late":0,"broken":0,"p50_us":null,"p99_us":null,"max_us":null}"#
        );
    }

    #[test]
    fn a_percentile_is_a_value_that_was_seen() {
        let sorted: Vec<Duration> = (1..=150).map(Duration::from_millis).collect();
        assert_eq!(percentile(&sorted, 50), Some(Duration::from_millis(75)));
        assert_eq!(percentile(&sorted, 99), Some(Duration::from_millis(149)));
        assert_eq!(percentile(&sorted, 100), Some(Duration::from_millis(150)));
    }
}
