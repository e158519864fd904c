//! Decides whether something kept is older than the removal of its key.
//! It exists because a load that began before a removal may end after it, and must not bring the old data back.
//! It refuses to grow: the marks of the oldest removals go first.

use std::{
    collections::{HashMap, VecDeque},
    sync::atomic::{AtomicUsize, Ordering},
};

use evenkeel_core::{Mono, replaces};
use parking_lot::Mutex;

use crate::key::Key;

/// Marks of removals, newer than every copy that was under way.
#[derive(Debug, Default)]
pub(crate) struct Retired {
    /// Read before the lock is taken: usually there are none.
    count: AtomicUsize,
    marks: Mutex<Marks>,
}

#[derive(Debug, Default)]
struct Marks {
    at: HashMap<Key, Mono>,
    order: VecDeque<Key>,
}

/// More removals than this are remembered only by the newest; no load is under way for longer than that takes.
const MARKS_MAX: usize = 4096;

impl Retired {
    /// Notes that what was observed before `at` is no longer to be kept under `key`.
    pub(crate) fn mark(&self, key: &Key, at: Mono) {
        let mut marks = self.marks.lock();
        match marks.at.get_mut(key) {
            Some(noted) => *noted = at.max(*noted),
            None => {
                if marks.order.len() >= MARKS_MAX
                    && let Some(oldest) = marks.order.pop_front()
                {
                    marks.at.remove(&oldest);
                }
                marks.order.push_back(key.clone());
                marks.at.insert(key.clone(), at);
            }
        }
        self.count.store(marks.at.len(), Ordering::Release);
    }

    /// Tells whether a copy observed at `observed` came too late.
    pub(crate) fn outdates(&self, key: &Key, observed: Option<Mono>) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let marks = self.marks.lock();
        marks.at.get(key).is_some_and(|at| !replaces(observed, Some(*at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::from_slice(name.as_bytes())
    }

    #[test]
    fn e46_what_began_before_the_removal_came_too_late_and_what_began_after_did_not() {
        let retired = Retired::default();
        let at = |nanos| Some(Mono::from_nanos(nanos));
        assert!(!retired.outdates(&key("k"), at(1)));
        retired.mark(&key("k"), Mono::from_nanos(10));
        retired.mark(&key("k"), Mono::from_nanos(5));
        assert!(retired.outdates(&key("k"), at(9)));
        assert!(retired.outdates(&key("k"), None));
        assert!(!retired.outdates(&key("k"), at(10)));
        assert!(!retired.outdates(&key("other"), at(9)));
    }

    #[test]
    fn the_marks_are_bounded_and_the_newest_stay() {
        let retired = Retired::default();
        for number in 0..=MARKS_MAX {
            retired.mark(&key(&number.to_string()), Mono::from_nanos(10));
        }
        assert_eq!(retired.count.load(Ordering::Relaxed), MARKS_MAX);
        assert!(!retired.outdates(&key("0"), Some(Mono::ORIGIN)));
        assert!(retired.outdates(&key("1"), Some(Mono::ORIGIN)));
    }
}
