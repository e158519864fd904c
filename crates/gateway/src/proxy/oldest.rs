//! Decides what is known of the age of the copies that a route gives in place of live answers.
//! It exists because an operator asks how long it can go on: the oldest copy that is being given is the first to go.
//! It refuses to cost anything while the dependency is well, and to know one copy from another.

use std::{
    sync::atomic::{AtomicI64, AtomicUsize, Ordering},
    time::Duration,
};

use evenkeel::{Mono, Wall};

/// The copies that were given lately: for the half minute under way and the one before.
#[derive(Debug)]
pub(crate) struct Oldest {
    halves: [Half; 2],
    now: AtomicUsize,
    turned: AtomicI64,
}

#[derive(Debug)]
struct Half {
    observed: AtomicI64,
    ends: AtomicI64,
}

const NONE: i64 = i64::MAX;
const HALF: Duration = Duration::from_secs(30);

impl Half {
    const fn empty() -> Self {
        Self {
            observed: AtomicI64::new(NONE),
            ends: AtomicI64::new(NONE),
        }
    }
}

impl Default for Oldest {
    fn default() -> Self {
        Self {
            halves: [Half::empty(), Half::empty()],
            now: AtomicUsize::new(0),
            turned: AtomicI64::new(i64::MIN),
        }
    }
}

impl Oldest {
    /// Notes that a copy observed then is given, which may be given for as long as `limit` from there.
    pub(super) fn note(&self, observed: Wall, limit: Duration) {
        let half = &self.halves[self.now.load(Ordering::Relaxed) & 1];
        let observed = observed.as_nanos();
        // Most are not the oldest, and reading does not take the line from other threads.
        if observed < half.observed.load(Ordering::Relaxed) {
            half.observed.fetch_min(observed, Ordering::Relaxed);
        }
        let ends = observed.saturating_add(i64::try_from(limit.as_nanos()).unwrap_or(NONE));
        if ends < half.ends.load(Ordering::Relaxed) {
            half.ends.fetch_min(ends, Ordering::Relaxed);
        }
    }

    /// Forgets what was given more than a minute ago. To be called once a second or so.
    pub(super) fn turn(&self, now: Mono) {
        let turned = Mono::from_nanos(self.turned.load(Ordering::Relaxed));
        if now.since(turned) < HALF {
            return;
        }
        self.turned.store(now.as_nanos(), Ordering::Relaxed);
        let next = (self.now.load(Ordering::Relaxed) + 1) & 1;
        self.halves[next].observed.store(NONE, Ordering::Relaxed);
        self.halves[next].ends.store(NONE, Ordering::Relaxed);
        self.now.store(next, Ordering::Relaxed);
    }

    /// Returns when the oldest copy was observed that was given lately, and when the first of them reaches its limit.
    pub(crate) fn read(&self) -> (Option<Wall>, Option<Wall>) {
        let least = |of: fn(&Half) -> &AtomicI64| {
            let least = self
                .halves
                .iter()
                .map(|half| of(half).load(Ordering::Relaxed))
                .min();
            least.filter(|nanos| *nanos != NONE).map(Wall::from_nanos)
        };
        (least(|half| &half.observed), least(|half| &half.ends))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_the_last_minute_is_known_and_what_went_before_is_not() {
        let oldest = Oldest::default();
        let wall = |seconds: i64| Wall::from_nanos(seconds * 1_000_000_000);
        let at = |seconds| Mono::ORIGIN.after(Duration::from_secs(seconds));
        oldest.turn(at(0));
        assert_eq!(oldest.read(), (None, None));
        oldest.note(wall(100), Duration::from_secs(60));
        oldest.note(wall(90), Duration::MAX);
        oldest.note(wall(120), Duration::from_secs(10));
        assert_eq!(oldest.read(), (Some(wall(90)), Some(wall(130))));
        oldest.turn(at(29));
        oldest.turn(at(30));
        oldest.note(wall(110), Duration::MAX);
        assert_eq!(oldest.read(), (Some(wall(90)), Some(wall(130))));
        oldest.turn(at(60));
        assert_eq!(oldest.read(), (Some(wall(110)), None));
    }
}
