//! Decides how it is counted whether a route has something to stand in with: of each call, what the store had for it when
//! it came.
//! It exists because a ladder without snapshots is a promise that nobody can keep, and a healthy route does not show it.
//! It refuses to guess: a call is counted by the word that the stale rung itself would say.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use evenkeel::{Mono, Skipped};
use parking_lot::Mutex;

/// What a store can have for a call.
pub(crate) const WORDS: [(&str, Option<Skipped>); 6] = [
    ("servable", None),
    (Skipped::NoSnapshot.as_str(), Some(Skipped::NoSnapshot)),
    (Skipped::TooOld.as_str(), Some(Skipped::TooOld)),
    (Skipped::FutureDated.as_str(), Some(Skipped::FutureDated)),
    (Skipped::UnknownAge.as_str(), Some(Skipped::UnknownAge)),
    (Skipped::Forbidden.as_str(), Some(Skipped::Forbidden)),
];

/// The window of [`Coverage::recent`].
const WINDOW: Duration = Duration::from_secs(300);
/// It is cut into so many parts.
const PARTS: u32 = 10;

/// What the store had for the calls of one route.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    counts: [AtomicU64; WORDS.len()],
    recent: Mutex<Recent>,
}

/// Totals at the beginnings of the latest parts of the window, the oldest first.
#[derive(Debug, Default)]
struct Recent {
    marks: std::collections::VecDeque<(Mono, u64, u64)>,
}

impl Coverage {
    /// Counts a call: servable, or why not.
    pub(crate) fn note(&self, found: Result<Duration, Skipped>) {
        let word = found.err();
        // Any other word would be one that the stale rung does not say.
        let index = WORDS.iter().position(|(_, known)| *known == word).unwrap_or(1);
        if let Some(count) = self.counts.get(index) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns how many calls found this, for each of [`WORDS`].
    pub(crate) fn counts(&self) -> [u64; WORDS.len()] {
        self.counts.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// Moves the window on. `more` are servable calls that are counted elsewhere. Called every few seconds or less.
    pub(crate) fn tick(&self, now: Mono, more: u64) {
        let (servable, all) = self.totals(more);
        let mut recent = self.recent.lock();
        let step = WINDOW / PARTS;
        if recent.marks.back().is_some_and(|(at, ..)| now.since(*at) < step) {
            return;
        }
        // What was counted before the first mark has been counted since the start.
        let (servable, all) = if recent.marks.is_empty() {
            (0, 0)
        } else {
            (servable, all)
        };
        recent.marks.push_back((now, servable, all));
        // The part that has begun is the last one of the window.
        while recent.marks.len() > PARTS as usize {
            recent.marks.pop_front();
        }
    }

    /// Returns the share of the calls of the last five minutes or so for which something could have stood in, in parts
    /// per million; `None` if there were none.
    pub(crate) fn recent(&self, more: u64) -> Option<u32> {
        let (servable, all) = self.totals(more);
        let first = self.recent.lock().marks.front().copied();
        let (_, servable_then, all_then) = first.unwrap_or((Mono::ORIGIN, 0, 0));
        let (servable, all) = (
            servable.saturating_sub(servable_then),
            all.saturating_sub(all_then),
        );
        let share = u128::from(servable) * 1_000_000;
        u32::try_from(share.checked_div(u128::from(all))?).ok()
    }

    fn totals(&self, more: u64) -> (u64, u64) {
        let counts = self.counts();
        (counts[0] + more, counts.iter().sum::<u64>() + more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono::ORIGIN.after(Duration::from_secs(seconds))
    }

    #[test]
    fn every_word_of_the_stale_rung_has_its_own_place() {
        let coverage = Coverage::default();
        coverage.note(Ok(Duration::ZERO));
        for (_, why) in WORDS {
            if let Some(why) = why {
                coverage.note(Err(why));
            }
        }
        assert_eq!(coverage.counts(), [1; 6]);
    }

    #[test]
    fn the_share_is_of_the_last_minutes_and_not_of_all_time() {
        let coverage = Coverage::default();
        assert_eq!(coverage.recent(0), None, "no call, no share");
        for second in 0..600 {
            coverage.tick(at(second), 0);
            coverage.note(if second < 300 {
                Err(Skipped::NoSnapshot)
            } else {
                Ok(Duration::ZERO)
            });
        }
        assert_eq!(coverage.recent(0), Some(1_000_000));
        for second in 600..1000 {
            coverage.tick(at(second), 0);
        }
        assert_eq!(coverage.recent(0), None, "nobody came for five minutes");
        assert!(coverage.recent.lock().marks.len() <= PARTS as usize);
    }

    #[test]
    fn calls_that_are_counted_elsewhere_are_servable() {
        let coverage = Coverage::default();
        coverage.note(Err(Skipped::TooOld));
        assert_eq!(coverage.recent(3), Some(750_000));
    }
}
