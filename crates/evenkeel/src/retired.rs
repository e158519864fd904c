//! Decides whether a load that ends now began before its key was retired, and so may not be kept any more.
//! It exists because taking a copy away is not enough: a load that was under way would bring it back.
//! It refuses to forget a retirement by running out of room: it then takes every key for retired at that time.

use std::{
    collections::{HashMap, VecDeque},
    sync::atomic::{AtomicI64, Ordering},
};

use evenkeel_core::Mono;
use parking_lot::Mutex;

use crate::{key::Key, purge::Concerns};

/// When keys were retired last.
#[derive(Debug)]
pub(crate) struct Retired {
    /// The latest of all, so that a load that began after it, as nearly all do, need not look closer.
    latest: AtomicI64,
    keys: Mutex<Keys>,
}

#[derive(Debug)]
struct Keys {
    /// When each was retired, and as which of all.
    times: HashMap<Key, (Mono, u64)>,
    /// In the order in which they came in.
    order: VecDeque<Key>,
    /// What was retired by a rule, in the order in which it was.
    rules: VecDeque<Rule>,
    /// Every key counts as retired at this time.
    floor: Mono,
    /// How many retirements there were.
    count: u64,
    /// The latest of those that are no longer told apart.
    forgotten: u64,
}

/// What was retired by a rule: when, and as which of all retirements.
#[derive(Debug)]
struct Rule {
    concerns: Concerns,
    at: Mono,
    number: u64,
}

/// This many keys are remembered one by one.
const KEYS_MAX: usize = 2048;
/// This many rules are remembered: each is asked by loads that began before the latest retirement. When there are more the
/// oldest goes, and every key counts as retired at its time.
const RULES_MAX: usize = 64;
/// When there are more, this many of the oldest go at once: each time, every other key counts as retired anew, and loads
/// of before and after are no longer taken together.
const KEYS_LEAVE: usize = KEYS_MAX / 2;

const NEVER: Mono = Mono::from_nanos(i64::MIN);

impl Default for Retired {
    fn default() -> Self {
        Self {
            latest: AtomicI64::new(NEVER.as_nanos()),
            keys: Mutex::new(Keys {
                times: HashMap::new(),
                order: VecDeque::new(),
                rules: VecDeque::new(),
                floor: NEVER,
                count: 0,
                forgotten: 0,
            }),
        }
    }
}

impl Retired {
    /// Notes that what was observed under `key` before `at` is void.
    pub(crate) fn note(&self, key: &Key, at: Mono) {
        let mut keys = self.keys.lock();
        let keys = &mut *keys;
        keys.count += 1;
        if let Some((time, number)) = keys.times.get_mut(key) {
            *time = at.max(*time);
            *number = keys.count;
        } else {
            keys.times.insert(key.clone(), (at, keys.count));
            keys.order.push_back(key.clone());
        }
        if keys.order.len() > KEYS_MAX {
            for key in keys.order.drain(..KEYS_LEAVE) {
                if let Some((time, number)) = keys.times.remove(&key) {
                    keys.floor = keys.floor.max(time);
                    keys.forgotten = keys.forgotten.max(number);
                }
            }
        }
        self.latest.fetch_max(at.as_nanos(), Ordering::AcqRel);
    }

    /// Notes that what was observed before `at` is void under every key that is concerned.
    pub(crate) fn note_all(&self, concerns: Concerns, at: Mono) {
        let mut keys = self.keys.lock();
        keys.count += 1;
        let number = keys.count;
        keys.rules.push_back(Rule { concerns, at, number });
        if keys.rules.len() > RULES_MAX
            && let Some(oldest) = keys.rules.pop_front()
        {
            keys.floor = keys.floor.max(oldest.at);
            keys.forgotten = keys.forgotten.max(oldest.number);
        }
        self.latest.fetch_max(at.as_nanos(), Ordering::AcqRel);
    }

    /// Returns when a key was retired last, or a later time if that is no longer known: it tells loads of before from
    /// loads of after.
    #[cfg(any(test, feature = "http"))]
    pub(crate) fn last(&self, key: &Key) -> Mono {
        if self.latest.load(Ordering::Acquire) == NEVER.as_nanos() {
            return NEVER;
        }
        let keys = self.keys.lock();
        let by_rule = keys.rules.iter().filter(|rule| rule.concerns.whole(key));
        let by_rule = by_rule.map(|rule| rule.at).max();
        let own = keys.times.get(key).map(|(at, _)| *at);
        [own, by_rule].into_iter().flatten().fold(keys.floor, Mono::max)
    }

    /// Returns how many retirements there were: what comes later can be asked for with [`Self::since`].
    pub(crate) fn count(&self) -> u64 {
        self.keys.lock().count
    }

    /// Tells whether a key was retired since there were so many retirements, or may have been.
    pub(crate) fn since(&self, key: &Key, count: u64) -> bool {
        let keys = self.keys.lock();
        let mut rules = keys.rules.iter();
        keys.forgotten > count
            || keys.times.get(key).is_some_and(|(_, number)| *number > count)
            || rules.any(|rule| rule.number > count && rule.concerns.whole(key))
    }

    /// Tells whether data observed under `key` at `observed` is void.
    pub(crate) fn covers(&self, key: &Key, observed: Mono) -> bool {
        if observed.as_nanos() >= self.latest.load(Ordering::Acquire) {
            return false;
        }
        let keys = self.keys.lock();
        let mut rules = keys.rules.iter();
        observed < keys.floor
            || keys.times.get(key).is_some_and(|(at, _)| observed < *at)
            || rules.any(|rule| observed < rule.at && rule.concerns.whole(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: i64) -> Key {
        Key::from_slice(&number.to_be_bytes())
    }

    #[test]
    fn a_retirement_divides_the_loads_of_its_key_and_none_is_forgotten() {
        let retired = Retired::default();
        assert_eq!(retired.last(&key(1)), NEVER);
        retired.note(&key(1), Mono::from_nanos(5));
        assert_eq!(retired.last(&key(1)), Mono::from_nanos(5));
        assert_eq!(retired.last(&key(2)), NEVER);
        for number in 2..5_000 {
            retired.note(&key(number), Mono::from_nanos(6));
        }
        assert!(retired.last(&key(1)) >= Mono::from_nanos(5));
    }

    #[test]
    fn what_was_retired_since_a_moment_is_known_and_no_retirement_is_overlooked() {
        let retired = Retired::default();
        retired.note(&key(1), Mono::from_nanos(5));
        let before = retired.count();
        assert!(!retired.since(&key(1), before));
        retired.note(&key(2), Mono::from_nanos(5));
        assert!(retired.since(&key(2), before) && !retired.since(&key(1), before));
        for number in 3..5_000 {
            retired.note(&key(number), Mono::from_nanos(6));
        }
        assert!(retired.since(&key(2), before));
        let now = retired.count();
        assert!((1..5_000).all(|number| !retired.since(&key(number), now)));
    }

    #[test]
    fn g02_writes_elsewhere_seldom_part_the_loads_of_a_key() {
        let retired = Retired::default();
        let mut parted = 0;
        let mut before = retired.last(&key(-1));
        for number in 0..10_000 {
            retired.note(&key(number), Mono::from_nanos(number));
            assert!(retired.keys.lock().times.len() <= KEYS_MAX);
            let now = retired.last(&key(-1));
            parted += usize::from(now != before);
            before = now;
        }
        assert!((1..=10_000 / KEYS_LEAVE).contains(&parted), "{parted}");
    }

    #[test]
    fn e46_a_rule_voids_what_it_concerns_and_nothing_else_and_rules_are_bounded() {
        let retired = Retired::default();
        let named = |guard: &str| crate::key::write(&crate::key::of_guard(guard), &(), b"k").unwrap();
        let only = |guard: &'static str| Concerns::keys(move |key| key.guard == guard);
        retired.note_all(only("a"), Mono::from_nanos(10));
        assert!(retired.covers(&named("a"), Mono::from_nanos(9)));
        assert!(!retired.covers(&named("a"), Mono::from_nanos(10)));
        assert!(!retired.covers(&named("b"), Mono::from_nanos(9)));
        assert_eq!(retired.last(&named("a")), Mono::from_nanos(10));
        assert_eq!(retired.last(&named("b")), NEVER);
        for nanos in 0..1_000 {
            retired.note_all(only("c"), Mono::from_nanos(100 + nanos));
        }
        assert_eq!(retired.keys.lock().rules.len(), RULES_MAX);
        assert!(
            retired.covers(&named("a"), Mono::from_nanos(9)),
            "it was pushed out and still holds"
        );
    }

    #[test]
    fn what_was_observed_before_the_retirement_is_void_and_from_then_on_it_is_not() {
        let retired = Retired::default();
        assert!(!retired.covers(&key(1), NEVER));
        retired.note(&key(1), Mono::from_nanos(10));
        retired.note(&key(1), Mono::from_nanos(5));
        assert!(retired.covers(&key(1), Mono::from_nanos(9)));
        assert!(!retired.covers(&key(1), Mono::from_nanos(10)));
        assert!(!retired.covers(&key(2), Mono::from_nanos(9)));
    }

    #[test]
    fn a_retirement_pushed_out_still_voids_what_is_older_and_the_table_stays_bounded() {
        let retired = Retired::default();
        let last = i64::try_from(KEYS_MAX).unwrap();
        for number in 0..=last {
            retired.note(&key(number), Mono::from_nanos(100 + number));
        }
        assert_eq!(retired.keys.lock().times.len(), KEYS_MAX + 1 - KEYS_LEAVE);
        assert!(retired.covers(&key(0), Mono::from_nanos(99)));
        let floor = 99 + i64::try_from(KEYS_LEAVE).unwrap();
        assert!(retired.covers(&key(0), Mono::from_nanos(floor - 1)));
        assert!(!retired.covers(&key(0), Mono::from_nanos(floor)));
        assert!(retired.covers(&key(-1), Mono::from_nanos(99)));
        assert!(retired.covers(&key(last), Mono::from_nanos(99 + last)));
    }
}
