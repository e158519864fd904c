//! Decides which calls share one attempt: those for the same key while one is under way.
//! It exists so that a hundred callers who want the same thing cost their dependency one call.
//! It refuses to share what may not be shared, to make anyone wait past their own deadline, and to let a hung
//! attempt hold up callers who come after its lease.

use std::{
    collections::HashMap,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use evenkeel_core::{Class, Criticality, Mono, Now, Refusal};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{key::Key, purge::Concerns, tail::Tail};

/// What a flight came to, for all who wait for it.
#[derive(Debug)]
pub(crate) enum Landing<T, E> {
    /// A value. Only who started the flight may have one that is not shareable.
    Value {
        value: T,
        began: Now,
        kept: bool,
        shareable: bool,
        /// Set where the ending of the starter's call depends on how the work ends.
        tail: Option<Arc<Tail>>,
    },
    /// An error, or no answer in time.
    Error {
        class: Class,
        error: Option<E>,
        probe: bool,
    },
    /// It was not admitted.
    Refused(Refusal),
}

/// A place among those who wait for a flight. Whoever leaves drops it.
#[derive(Debug)]
pub(crate) struct Waiter<T, E> {
    landing: watch::Receiver<Option<Arc<Landing<T, E>>>>,
    marks: Arc<Marks>,
}

/// What all who have to do with a flight know of it.
#[derive(Debug, Default)]
struct Marks {
    /// Its attempt was admitted; until then it is one call's own, and ends when that leaves.
    begun: AtomicBool,
    /// Somebody has left who wants the result kept.
    goes_on: AtomicBool,
}

type Sender<T, E> = watch::Sender<Option<Arc<Landing<T, E>>>>;

/// The flights of one guard.
#[derive(Debug)]
pub(crate) struct Flights<T, E> {
    table: Mutex<Table<T, E>>,
    numbers: AtomicU64,
}

#[derive(Debug)]
struct Table<T, E> {
    under_way: HashMap<Key, Entry<T, E>>,
    /// Keys whose results turned out not to be shareable, until when nobody waits for one.
    apart: HashMap<Key, Mono>,
    /// Keys whose last shared attempt failed, until when nobody asks again.
    cooling: HashMap<Key, Mono>,
}

#[derive(Debug)]
struct Entry<T, E> {
    number: u64,
    lease_ends: Mono,
    /// How much it matters to who started it.
    criticality: Criticality,
    sender: Arc<Sender<T, E>>,
    marks: Arc<Marks>,
}

impl<T, E> Entry<T, E> {
    /// Tells whether a call that matters this much does well to wait for it. Until it begins it waits for a permit by the
    /// importance of its starter, and may be refused by that.
    fn suits(&self, criticality: Criticality) -> bool {
        self.criticality >= criticality || self.marks.begun.load(Ordering::Acquire)
    }

    /// Tells whether callers wait for it. The lease counts from the beginning of the attempt: whoever still waits for a
    /// permit is not hung.
    fn is_awaited(&self, now: Mono) -> bool {
        now < self.lease_ends || !self.marks.begun.load(Ordering::Acquire)
    }
}

/// Beyond this many flights at once, calls go alone.
const UNDER_WAY_MAX: usize = 10_000;
/// Beyond this many remembered keys, none is added until some have run out.
const APART_MAX: usize = 10_000;
/// Beyond this many keys that cool down, none is added until some have run out: those are asked for at once.
const COOLING_MAX: usize = 10_000;
/// How long a key whose result was not shareable is not waited for.
const APART_FOR: Duration = Duration::from_secs(10);
/// The lease of a flight that nothing else limits.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// What a call that may share does.
#[derive(Debug)]
pub(crate) enum Part<T, E> {
    /// Waits for a flight under way.
    Join(Waiter<T, E>),
    /// Starts one.
    Lead(Flight<T, E>),
    /// Goes by itself.
    Alone,
}

/// What becomes of a flight that no caller has asked for.
#[derive(Debug)]
pub(crate) enum Lead<T, E> {
    /// It has begun.
    Begun(Flight<T, E>),
    /// There is one already.
    UnderWay,
    /// There are too many.
    Full,
}

impl<T, E> Flights<T, E> {
    pub(crate) fn new() -> Self {
        let table = Table {
            under_way: HashMap::new(),
            apart: HashMap::new(),
            cooling: HashMap::new(),
        };
        Self {
            table: Mutex::new(table),
            numbers: AtomicU64::new(0),
        }
    }

    /// Joins the flight for `key`, or starts one that may take until `lease_ends`. Of flights that wait for a permit later
    /// callers find the one that matters most: there is one for each criticality at most.
    pub(crate) fn part(
        self: &Arc<Self>,
        key: &Key,
        now: Mono,
        lease_ends: Mono,
        criticality: Criticality,
    ) -> Part<T, E> {
        let mut table = self.table.lock();
        if let Some(until) = table.apart.get(key) {
            if now < *until {
                return Part::Alone;
            }
            table.apart.remove(key);
        }
        if let Some(entry) = table.under_way.get(key)
            && entry.is_awaited(now)
            && entry.suits(criticality)
        {
            return Part::Join(Waiter {
                landing: entry.sender.subscribe(),
                marks: Arc::clone(&entry.marks),
            });
        }
        if table.under_way.len() >= UNDER_WAY_MAX {
            return Part::Alone;
        }
        Part::Lead(self.enter(&mut table, key, lease_ends, criticality))
    }

    /// Starts a flight for `key` that no caller has asked for, which may take until `lease_ends`.
    pub(crate) fn lead(self: &Arc<Self>, key: &Key, now: Mono, lease_ends: Mono) -> Lead<T, E> {
        let mut table = self.table.lock();
        if table
            .under_way
            .get(key)
            .is_some_and(|entry| entry.is_awaited(now))
        {
            return Lead::UnderWay;
        }
        if table.under_way.len() >= UNDER_WAY_MAX {
            return Lead::Full;
        }
        // It begins at once, so nobody asks how much it matters.
        Lead::Begun(self.enter(&mut table, key, lease_ends, Criticality::default()))
    }

    /// Tells whether a flight for `key` is under way that has not outlived its lease.
    pub(crate) fn is_under_way(&self, key: &Key, now: Mono) -> bool {
        let table = self.table.lock();
        table
            .under_way
            .get(key)
            .is_some_and(|entry| entry.is_awaited(now))
    }

    fn enter(
        self: &Arc<Self>,
        table: &mut Table<T, E>,
        key: &Key,
        lease_ends: Mono,
        criticality: Criticality,
    ) -> Flight<T, E> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let sender = Arc::new(watch::Sender::new(None));
        let marks = Arc::new(Marks::default());
        table.under_way.insert(
            key.clone(),
            Entry {
                number,
                lease_ends,
                criticality,
                sender: Arc::clone(&sender),
                marks: Arc::clone(&marks),
            },
        );
        Flight {
            flights: Arc::clone(self),
            key: key.clone(),
            number,
            lease_ends,
            sender,
            marks,
        }
    }

    /// Lets later callers for `key` start anew. Those who wait already get what they wait for.
    pub(crate) fn detach(&self, key: &Key) {
        self.table.lock().under_way.remove(key);
    }

    /// The same, for every key that is concerned.
    pub(crate) fn detach_all(&self, concerns: &Concerns) {
        self.table.lock().under_way.retain(|key, _| !concerns.whole(key));
    }

    /// Remembers that results for `key` are not shareable.
    fn keep_apart(&self, key: &Key, now: Mono) {
        let mut table = self.table.lock();
        if table.apart.len() >= APART_MAX {
            table.apart.retain(|_, until| now < *until);
        }
        if table.apart.len() < APART_MAX {
            table.apart.insert(key.clone(), now.after(APART_FOR));
        }
    }

    /// Has nobody ask for `key` before `until`.
    pub(crate) fn cool(&self, key: &Key, until: Mono, now: Mono) {
        let mut table = self.table.lock();
        if table.cooling.len() >= COOLING_MAX {
            table.cooling.retain(|_, until| now < *until);
        }
        if table.cooling.len() < COOLING_MAX {
            table.cooling.insert(key.clone(), until);
        }
    }

    /// Returns until when nobody asks for `key`, if that is still to come.
    pub(crate) fn cooling(&self, key: &Key, now: Mono) -> Option<Mono> {
        let mut table = self.table.lock();
        let until = *table.cooling.get(key)?;
        if now < until {
            return Some(until);
        }
        table.cooling.remove(key);
        None
    }

    /// Takes the flight out of the table, unless somebody waits and `even_if_awaited` is false.
    fn take_out(&self, key: &Key, number: u64, even_if_awaited: bool) -> bool {
        let mut table = self.table.lock();
        match table.under_way.get(key) {
            Some(entry) if entry.number == number => {
                let may_go = even_if_awaited || entry.sender.receiver_count() == 0;
                if may_go {
                    table.under_way.remove(key);
                }
                may_go
            }
            Some(_) | None => true,
        }
    }

    /// Returns the sizes of both tables, for tests and metrics.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let table = self.table.lock();
        (table.under_way.len(), table.apart.len())
    }
}

/// A flight that its starter has to land. Dropping it unlanded tells those who wait that it vanished.
#[derive(Debug)]
pub(crate) struct Flight<T, E> {
    flights: Arc<Flights<T, E>>,
    key: Key,
    number: u64,
    lease_ends: Mono,
    sender: Arc<Sender<T, E>>,
    marks: Arc<Marks>,
}

impl<T, E> Flight<T, E> {
    /// Returns a place among those who wait.
    pub(crate) fn waiter(&self) -> Waiter<T, E> {
        Waiter {
            landing: self.sender.subscribe(),
            marks: Arc::clone(&self.marks),
        }
    }

    /// Notes that the attempt was admitted, and may take until `lease_ends`. From here on the flight is nobody's own.
    pub(crate) fn begins(&self, lease_ends: Mono) {
        // Where nobody waited for a permit it has the right lease already.
        if lease_ends != self.lease_ends
            && let Some(entry) = self.flights.table.lock().under_way.get_mut(&self.key)
            && entry.number == self.number
        {
            entry.lease_ends = lease_ends;
        }
        self.marks.begun.store(true, Ordering::Release);
    }

    /// Resolves once nobody waits any more and nobody can join any more; never if its result is wanted all the same.
    pub(crate) async fn abandoned(&self) {
        loop {
            self.sender.closed().await;
            // Whoever sets it still waited then, so this look cannot come too early.
            if self.marks.goes_on.load(Ordering::Acquire) {
                return pending().await;
            }
            if self.flights.take_out(&self.key, self.number, false) {
                return;
            }
        }
    }

    /// Hands the result to all who wait. Later callers start anew.
    pub(crate) fn land(self, landing: Landing<T, E>, cool_down: Option<Duration>, now: Mono) {
        if let (
            Landing::Error {
                class: Class::Outage(_),
                ..
            },
            Some(span),
        ) = (&landing, cool_down)
        {
            self.flights.cool(&self.key, now.after(span), now);
        }
        if let Landing::Value { shareable: false, .. } = landing {
            self.flights.keep_apart(&self.key, now);
        }
        self.flights.take_out(&self.key, self.number, true);
        self.sender.send_replace(Some(Arc::new(landing)));
    }
}

impl<T, E> Drop for Flight<T, E> {
    fn drop(&mut self) {
        self.flights.take_out(&self.key, self.number, true);
    }
}

impl<T, E> Waiter<T, E> {
    /// Waits for the landing; `None` when the flight vanished.
    pub(crate) async fn landing(&mut self) -> Option<Arc<Landing<T, E>>> {
        let landed = self.landing.wait_for(Option::is_some).await.ok()?;
        landed.clone()
    }

    /// Tells whether the attempt was admitted.
    pub(crate) fn has_begun(&self) -> bool {
        self.marks.begun.load(Ordering::Acquire)
    }

    /// Leaves, and has the flight go on although nobody may wait for it.
    pub(crate) fn leave_it_flying(self) {
        self.marks.goes_on.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::from_slice(name.as_bytes())
    }

    fn value(shareable: bool) -> Landing<u32, ()> {
        let now = crate::ManualClock::new().now();
        Landing::Value {
            value: 7,
            began: now,
            kept: false,
            shareable,
            tail: None,
        }
    }

    const NOW: Mono = Mono::ORIGIN;
    const PLAIN: Criticality = Criticality::Critical;

    fn lead(flights: &Arc<Flights<u32, ()>>, name: &str) -> Flight<u32, ()> {
        match flights.part(&key(name), NOW, NOW.after(LEASE), PLAIN) {
            Part::Lead(flight) => flight,
            other @ (Part::Join(_) | Part::Alone) => panic!("expected to lead, got {other:?}"),
        }
    }

    #[tokio::test]
    async fn the_second_caller_joins_and_both_get_the_landing() {
        let flights = Arc::new(Flights::new());
        let flight = lead(&flights, "k");
        let Part::Join(mut waiter) = flights.part(&key("k"), NOW, NOW.after(LEASE), PLAIN) else {
            panic!("not joined")
        };
        flight.land(value(true), None, NOW);
        assert!(matches!(
            *waiter.landing().await.unwrap(),
            Landing::Value { value: 7, .. }
        ));
        assert_eq!(flights.sizes(), (0, 0));
    }

    #[tokio::test]
    async fn a_flight_that_vanishes_is_told_to_those_who_wait_and_leaves_the_table() {
        let flights = Arc::new(Flights::new());
        let flight = lead(&flights, "k");
        let mut waiter = flight.waiter();
        drop(flight);
        assert!(waiter.landing().await.is_none());
        drop(lead(&flights, "k"));
        assert_eq!(flights.sizes(), (0, 0));
    }

    #[test]
    fn e30_a_hung_flight_holds_up_nobody_who_comes_after_its_lease() {
        let flights = Arc::new(Flights::<u32, ()>::new());
        let hung = lead(&flights, "k");
        let end = NOW.after(LEASE);
        hung.begins(end);
        assert!(matches!(
            flights.part(&key("k"), end.before(Duration::from_nanos(1)), end, PLAIN),
            Part::Join(_)
        ));
        let Part::Lead(second) = flights.part(&key("k"), end, end.after(LEASE), PLAIN) else {
            panic!("held up")
        };
        drop(hung); // must not take the second one out of the table
        assert!(matches!(
            flights.part(&key("k"), end, end.after(LEASE), PLAIN),
            Part::Join(_)
        ));
        drop(second);
        assert_eq!(flights.sizes(), (0, 0));
    }

    #[test]
    fn g03_a_key_whose_result_was_not_shareable_is_not_waited_for_for_a_while() {
        let flights = Arc::new(Flights::new());
        lead(&flights, "k").land(value(false), None, NOW);
        let until = NOW.after(APART_FOR);
        assert!(matches!(
            flights.part(&key("k"), until.before(Duration::from_nanos(1)), until, PLAIN),
            Part::Alone
        ));
        assert!(matches!(
            flights.part(&key("k"), until, until.after(LEASE), PLAIN),
            Part::Lead(_)
        ));
    }

    #[test]
    fn g02_a_key_cools_down_after_a_failed_flight_and_the_table_of_such_keys_is_bounded() {
        let flights = Arc::new(Flights::new());
        let failed = || Landing::<u32, ()>::Error {
            class: Class::OUTAGE,
            error: None,
            probe: false,
        };
        let second = Duration::from_secs(1);
        lead(&flights, "k").land(failed(), Some(second), NOW);
        let end = NOW.after(second);
        assert_eq!(
            flights.cooling(&key("k"), end.before(Duration::from_nanos(1))),
            Some(end)
        );
        assert_eq!(flights.cooling(&key("k"), end), None);
        lead(&flights, "k").land(failed(), None, NOW);
        assert_eq!(flights.cooling(&key("k"), NOW), None);
        for n in 0..=COOLING_MAX {
            lead(&flights, &format!("k{n}")).land(failed(), Some(second), NOW);
        }
        let last = key(&format!("k{COOLING_MAX}"));
        assert_eq!(flights.table.lock().cooling.len(), COOLING_MAX);
        assert_eq!(flights.cooling(&last, NOW), None);
        lead(&flights, &format!("k{COOLING_MAX}")).land(failed(), Some(second), end);
        assert!(
            flights.cooling(&last, end).is_some(),
            "what has run out makes room"
        );
    }

    #[tokio::test]
    async fn a_flight_is_abandoned_only_when_nobody_waits() {
        let flights = Arc::new(Flights::new());
        let flight = lead(&flights, "k");
        let waiter = flight.waiter();
        let pending = std::future::poll_fn(|context| {
            let abandoned = std::pin::pin!(flight.abandoned());
            std::task::Poll::Ready(abandoned.poll(context).is_pending())
        });
        assert!(pending.await);
        drop(waiter);
        flight.abandoned().await;
        assert_eq!(flights.sizes(), (0, 0));
    }

    #[test]
    fn the_tables_are_bounded() {
        let flights = Arc::new(Flights::<u32, ()>::new());
        let under_way: Vec<_> = (0..UNDER_WAY_MAX)
            .map(|n| lead(&flights, &format!("k{n}")))
            .collect();
        assert!(matches!(flights.part(&key("more"), NOW, NOW, PLAIN), Part::Alone));
        drop(under_way);
        for n in 0..=APART_MAX {
            lead(&flights, &format!("k{n}")).land(value(false), None, NOW);
        }
        assert_eq!(flights.sizes(), (0, APART_MAX));
    }
}
