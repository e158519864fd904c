//! Decides who waits for a permit, for how long, and whose turn it is when one may be free.
//! It exists so that a short burst costs a short wait, and a long one an early refusal.
//! It refuses to hold anything for those who wait: whoever is called asks for admission like everybody else.
//!
//! A driver keeps the queue under exclusive access and lets a call through it in these steps:
//!
//! 1. A call that is refused for want of a permit, or finds others of its kind [ahead](Queue::is_ahead_of), [joins](Queue::join).
//! 2. If it is [next](Queue::is_next) it asks for admission at once: a permit may have come free before it joined.
//! 3. Else, and if that fails, it waits until it is called, or its place expires.
//! 4. Whoever gives a permit back and [sees](Waiting::sees) that somebody waits [calls](Queue::call) one.
//! 5. Whoever is called is [up](Queue::up): it asks for admission and waits on if there is none.
//! 6. Whoever [leaves](Queue::leave), let in or not, calls another.
//!
//! When nobody is to be let in for a while, by an open breaker or a hold, all are [called](Queue::call_all) and learn it
//! from their admission.

use alloc::{collections::VecDeque, vec::Vec};
use core::time::Duration;

use crate::{
    criticality::Criticality,
    problem::Problems,
    sync::{AtomicU32, Ordering, fence},
    time::Mono,
};

/// The bounds of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRules {
    /// The most calls that wait at once: 1 to 100 000.
    pub length: u32,
    /// The longest that one of them waits: 1 ms to 1 min. The call's own deadline may end the wait before.
    pub longest_wait: Duration,
}

impl QueueRules {
    /// Adds every problem of these rules to `problems`, each placed under `place`.
    pub fn check(&self, place: &str, problems: &mut Problems) {
        problems.range(&[place, "length"], u64::from(self.length), 1, 100_000);
        problems.span(
            &[place, "wait"],
            self.longest_wait,
            Duration::from_millis(1),
            Duration::from_secs(60),
        );
    }
}

/// Calls that wait for a permit, each with what its driver needs to wake it.
///
/// ```
/// use evenkeel_core::{Criticality, Mono, Queue, QueueRules};
/// use core::time::Duration;
/// let rules = QueueRules { length: 2, longest_wait: Duration::from_millis(50) };
/// let mut queue = Queue::new(rules);
/// let now = Mono::ORIGIN;
/// let first = queue.join(Criticality::Sheddable, now, None, "first").expect("there is room");
/// let second = queue.join(Criticality::Critical, now, None, "second").expect("there is room");
/// assert_eq!(queue.call(now), Some(&"second"), "what matters more, then who came first");
/// ```
#[derive(Debug)]
pub struct Queue<T> {
    rules: QueueRules,
    /// Those who wait, in the order in which they came, by how much they matter.
    lines: [VecDeque<Waiter<T>>; Criticality::ALL.len()],
    joined: u64,
}

#[derive(Debug)]
struct Waiter<T> {
    number: u64,
    expires: Mono,
    called: bool,
    token: T,
}

/// A place in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    criticality: Criticality,
    number: u64,
    expires: Mono,
}

impl Place {
    /// Returns when the wait ends in vain.
    #[must_use]
    pub const fn expires(&self) -> Mono {
        self.expires
    }
}

/// A call that has joined.
#[derive(Debug, PartialEq, Eq)]
pub struct Joined<T> {
    /// Its place.
    pub place: Place,
    /// Whoever mattered less and had to give up its place for it.
    pub instead_of: Option<T>,
}

impl<T> Queue<T> {
    /// Makes an empty queue.
    #[must_use]
    pub fn new(rules: QueueRules) -> Self {
        Self {
            rules,
            lines: core::array::from_fn(|_| VecDeque::new()),
            joined: 0,
        }
    }

    /// Waits by other rules from now on. Whoever waits keeps its place and its time, also where it is one too many now.
    pub const fn set_rules(&mut self, rules: QueueRules) {
        self.rules = rules;
    }

    /// Returns how many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.iter().map(VecDeque::len).sum()
    }

    /// Tells whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.iter().all(VecDeque::is_empty)
    }

    /// Tells whether somebody waits who matters as much as such a call, or more: it may not overtake them.
    #[must_use]
    pub fn is_ahead_of(&self, criticality: Criticality) -> bool {
        self.lines
            .iter()
            .skip(criticality.index())
            .any(|line| !line.is_empty())
    }

    /// Takes a place for a call that comes at `now` and ends at `ends`. In a full queue the youngest of those who matter
    /// least gives up its place for a call that matters more.
    ///
    /// # Errors
    /// The token, if there is no place, or no time to wait.
    pub fn join(
        &mut self,
        criticality: Criticality,
        now: Mono,
        ends: Option<Mono>,
        token: T,
    ) -> Result<Joined<T>, T> {
        let latest = now.after(self.rules.longest_wait);
        let expires = ends.map_or(latest, |ends| ends.min(latest));
        if expires <= now {
            return Err(token);
        }
        let is_full = self.len() >= self.rules.length as usize;
        let instead_of = if is_full {
            let below = self.lines.iter_mut().take(criticality.index());
            let youngest = below.filter_map(VecDeque::pop_back).map(|waiter| waiter.token);
            match { youngest }.next() {
                Some(token) => Some(token),
                None => return Err(token),
            }
        } else {
            None
        };
        self.joined += 1;
        let place = Place {
            criticality,
            number: self.joined,
            expires,
        };
        self.lines[criticality.index()].push_back(Waiter {
            number: place.number,
            expires,
            called: false,
            token,
        });
        Ok(Joined { place, instead_of })
    }

    /// Tells whether nobody waits who would be called before this place.
    #[must_use]
    pub fn is_next(&self, place: Place) -> bool {
        let above = self.lines.iter().skip(place.criticality.index() + 1);
        above.into_iter().all(VecDeque::is_empty)
            && self.lines[place.criticality.index()]
                .front()
                .is_some_and(|waiter| waiter.number == place.number)
    }

    /// Calls the one whose turn it is: of those whose places have not expired and who are not called yet, the one who
    /// matters most, and of equals the one who came first.
    pub fn call(&mut self, now: Mono) -> Option<&T> {
        let waiter = self
            .lines
            .iter_mut()
            .rev()
            .flatten()
            .find(|waiter| !waiter.called && now < waiter.expires)?;
        waiter.called = true;
        Some(&waiter.token)
    }

    /// Calls everybody who is not called yet.
    pub fn call_all(&mut self) -> Vec<&T> {
        let all = self.lines.iter_mut().rev().flatten();
        all.filter(|waiter| !waiter.called)
            .map(|waiter| {
                waiter.called = true;
                &waiter.token
            })
            .collect()
    }

    /// Takes note that the one at this place has heard the call and asks for admission; from now on it can be called
    /// anew. `false` if it has had to give up its place.
    pub fn up(&mut self, place: Place) -> bool {
        self.waiter(place).is_some_and(|waiter| {
            waiter.called = false;
            true
        })
    }

    /// Gives up a place.
    pub fn leave(&mut self, place: Place) {
        let line = &mut self.lines[place.criticality.index()];
        if let Ok(index) = line.binary_search_by_key(&place.number, |waiter| waiter.number) {
            line.remove(index);
        }
    }

    fn waiter(&mut self, place: Place) -> Option<&mut Waiter<T>> {
        let line = &mut self.lines[place.criticality.index()];
        let index = line
            .binary_search_by_key(&place.number, |waiter| waiter.number)
            .ok()?;
        line.get_mut(index)
    }
}

/// How many wait, for those who must not take the queue's lock to learn that nobody does.
///
/// Whoever joins does so here first and then asks for admission once more; whoever gives a permit back does that first
/// and then looks here. So at least one of the two sees the other, and no call waits beside a free permit.
#[derive(Debug)]
pub struct Waiting(AtomicU32);

impl Default for Waiting {
    fn default() -> Self {
        Self::new()
    }
}

impl Waiting {
    /// Nobody waits.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Somebody waits from now on.
    pub fn join(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// One who waited does not any more.
    pub fn leave(&self) {
        let before = self.0.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(before > 0, "somebody left who had not joined");
    }

    /// Tells whoever has just given something back whether somebody waits for it.
    pub fn sees(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::SeqCst) > 0
    }

    /// Returns how many wait.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);
    const RULES: QueueRules = QueueRules {
        length: 3,
        longest_wait: Duration::from_millis(50),
    };
    const PLAIN: Criticality = Criticality::Critical;

    fn at(millis: u32) -> Mono {
        Mono::ORIGIN.after(MS * millis)
    }

    fn join(queue: &mut Queue<u32>, criticality: Criticality, now: u32, token: u32) -> Place {
        queue
            .join(criticality, at(now), None, token)
            .expect("there is room")
            .place
    }

    #[test]
    fn the_length_is_let_in_and_one_more_is_not() {
        let mut queue = Queue::new(RULES);
        for token in 0..3 {
            join(&mut queue, PLAIN, 0, token);
        }
        assert_eq!(queue.join(PLAIN, at(0), None, 3), Err(3));
        assert_eq!((queue.len(), queue.is_empty()), (3, false));
    }

    #[test]
    fn case_029_each_place_expires_at_its_own_time_whoever_comes_later() {
        let mut queue = Queue::new(RULES);
        let first = queue.join(PLAIN, at(0), Some(at(20)), 1).expect("room").place;
        let second = queue.join(PLAIN, at(15), Some(at(500)), 2).expect("room").place;
        assert_eq!((first.expires(), second.expires()), (at(20), at(65)));
        assert_eq!(
            queue.join(PLAIN, at(20), Some(at(20)), 3),
            Err(3),
            "no time to wait"
        );
    }

    #[test]
    fn one_whose_place_has_expired_is_never_called() {
        let mut queue = Queue::new(RULES);
        join(&mut queue, PLAIN, 0, 1);
        join(&mut queue, PLAIN, 1, 2);
        assert_eq!(queue.call(at(50)), Some(&2));
        assert_eq!(queue.call(at(50)), None);
    }

    #[test]
    fn e27_who_left_is_not_called_but_the_next_who_lives() {
        let mut queue = Queue::new(RULES);
        let left = join(&mut queue, PLAIN, 0, 1);
        join(&mut queue, PLAIN, 0, 2);
        queue.leave(left);
        queue.leave(left);
        assert_eq!(queue.call(at(1)), Some(&2));
    }

    #[test]
    fn one_who_is_called_keeps_its_place_until_it_leaves() {
        let mut queue = Queue::new(RULES);
        let first = join(&mut queue, PLAIN, 0, 1);
        let second = join(&mut queue, PLAIN, 0, 2);
        assert_eq!(queue.call(at(1)), Some(&1));
        assert!(queue.is_next(first) && !queue.is_next(second));
        assert!(queue.is_ahead_of(PLAIN), "nobody overtakes it on its way");
        assert!(queue.up(first));
        assert_eq!(queue.call(at(2)), Some(&1), "it can be called anew");
    }

    #[test]
    fn who_matters_more_may_overtake_and_takes_the_youngest_place_of_the_lowest() {
        let mut queue = Queue::new(RULES);
        let old = join(&mut queue, Criticality::Sheddable, 0, 1);
        let young = join(&mut queue, Criticality::Sheddable, 0, 2);
        join(&mut queue, Criticality::SheddablePlus, 0, 3);
        assert!(!queue.is_ahead_of(Criticality::Critical));
        let joined = queue
            .join(Criticality::Critical, at(0), None, 4)
            .expect("it matters more");
        assert_eq!(joined.instead_of, Some(2));
        assert!(queue.is_next(joined.place));
        assert_eq!((queue.up(young), queue.up(old)), (false, true));
        assert_eq!(queue.join(Criticality::Sheddable, at(0), None, 5), Err(5));
    }

    #[test]
    fn when_nobody_is_let_in_everybody_is_called() {
        let mut queue = Queue::new(RULES);
        for token in 0..3 {
            join(&mut queue, PLAIN, 0, token);
        }
        queue.call(at(0));
        assert_eq!(queue.call_all(), [&1, &2]);
        assert_eq!(queue.call_all(), Vec::<&u32>::new());
    }

    #[derive(Clone, Copy, Debug)]
    enum Move {
        Join(Criticality),
        Leave(usize),
        Call,
        Up(usize),
        Wait(u32),
    }

    fn moves() -> impl Strategy<Value = Move> {
        prop_oneof![
            (0_usize..4).prop_map(|index| Move::Join(Criticality::ALL[index])),
            any::<usize>().prop_map(Move::Leave),
            Just(Move::Call),
            any::<usize>().prop_map(Move::Up),
            (0_u32..20).prop_map(Move::Wait),
        ]
    }

    /// One who waits, in the model: criticality, number, end, called.
    type Known = (Criticality, u32, u32, bool);

    proptest! {
        /// A plain list that is sorted each time.
        #[test]
        fn a_queue_does_what_a_sorted_list_does(moves in proptest::collection::vec(moves(), 0..200)) {
            let mut queue = Queue::new(RULES);
            let (mut model, mut places): (Vec<Known>, Vec<Place>) = (vec![], vec![]);
            let (mut now, mut number) = (0, 0);
            for step in moves {
                match step {
                    Move::Wait(millis) => now += millis,
                    Move::Join(criticality) => {
                        let joined = queue.join(criticality, at(now), None, number + 1);
                        if model.len() == 3 {
                            let worst = model.iter().copied().filter(|one| one.0 < criticality);
                            let worst = worst.min_by_key(|one| (one.0, u32::MAX - one.1));
                            let gave_up = joined.as_ref().ok().and_then(|joined| joined.instead_of);
                            prop_assert_eq!(gave_up, worst.map(|one| one.1));
                            model.retain(|one| Some(*one) != worst);
                        }
                        if let Ok(joined) = joined {
                            number += 1;
                            places.push(joined.place);
                            model.push((criticality, number, now + 50, false));
                        }
                    }
                    Move::Call => {
                        let next = model.iter_mut().filter(|one| !one.3 && now < one.2);
                        let next = next.min_by_key(|one| (core::cmp::Reverse(one.0), one.1));
                        let expected = next.map(|one| { one.3 = true; one.1 });
                        prop_assert_eq!(queue.call(at(now)).copied(), expected);
                    }
                    Move::Up(which) => if let Some(place) = places.get(which % places.len().max(1)) {
                        let known = model.iter_mut().find(|one| u64::from(one.1) == place.number);
                        let known = known.map(|one| one.3 = false);
                        prop_assert_eq!(queue.up(*place), known.is_some());
                    }
                    Move::Leave(which) => if let Some(place) = places.get(which % places.len().max(1)) {
                        queue.leave(*place);
                        model.retain(|one| u64::from(one.1) != place.number);
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
            }
        }
    }
}
