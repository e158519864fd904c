//! Operations of every kind in any order, drawn from a seed: what has to hold after each of them, whatever the rules, and
//! that in the end there is a way back.
//!
//! Each run draws fresh seeds and prints them; the last one printed is the one that failed.
//! `EVENKEEL_SEED=7 cargo test -p evenkeel-core --test random_operations` repeats one,
//! `EVENKEEL_HISTORIES=10000` draws more.
#![cfg(not(loom))]
#![allow(clippy::panic, reason = "what breaks a test fails it")]

use core::{cell::RefCell, time::Duration};
use std::{collections::BTreeMap, hash::BuildHasher as _, sync::Arc};

use evenkeel_core::{
    Advice, Asker, BreakerRules, Bulkhead, Carried, Changes, Class, Criticality, Dependency, DependencyDraft,
    Exclusive, Failed, Lane, LimitRules, Mono, NoRetry, OpenFor, Outage, Over, Pass, QueueRules, RampRules,
    Ratio, Retry, RetryRules, Rng, Row, SlowRatio, State, Steering, Transition, Verdict,
};

/// How many histories are drawn where nobody says, and how long each is.
const HISTORIES: u64 = 1000;
const STEPS: u32 = 400;
const MS: Duration = Duration::from_millis(1);
const CLASSES: [Class; 10] = [
    Class::Answer,
    Class::Answer,
    Class::OUTAGE,
    Class::Outage(Outage::TimedOut),
    Class::Outage(Outage::ErrorAnswer),
    Class::Refusal,
    Class::Busy,
    Class::Fault,
    Class::Local,
    Class::Cancelled,
];

struct Alone<T>(RefCell<T>);

impl<T> Exclusive<T> for Alone<T> {
    fn guard(value: T) -> Self {
        Self(RefCell::new(value))
    }

    fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.0.borrow_mut())
    }
}

/// What is drawn next, and whether these are bad times.
struct Draws(Rng, bool);

impl Draws {
    fn below(&mut self, of: u64) -> u64 {
        self.0.next_u64() % of
    }

    fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).expect("an index")]
    }

    fn count(&mut self, from: u32, to: u32) -> u32 {
        from + u32::try_from(self.below(u64::from(to - from + 1))).expect("it is small")
    }

    fn millis(&mut self, from: u32, to: u32) -> Duration {
        MS * self.count(from, to)
    }

    fn maybe<T>(&mut self, one_in: u64, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.one_in(one_in).then(|| value(self))
    }

    /// What an attempt came to: in bad times mostly nothing good, else mostly an answer.
    fn class(&mut self) -> Class {
        match (self.below(4), self.1) {
            (0 | 1, true) => Class::OUTAGE,
            (0 | 1, false) => Class::Answer,
            _ => self.of(&CLASSES),
        }
    }

    fn over(&mut self) -> (Over, u32) {
        let min_calls = self.count(1, 6);
        let over = if self.one_in(2) {
            Over::Time(self.millis(100, 5000))
        } else {
            Over::Calls(min_calls + self.count(0, 10))
        };
        (over, min_calls)
    }

    fn breaker(&mut self) -> BreakerRules {
        let ratio = self.maybe(2, |draws| {
            let (window, min_calls) = draws.over();
            Ratio {
                failures_ppm: draws.count(1, 1_000_000),
                window,
                min_calls,
            }
        });
        let slow = self.maybe(3, |draws| {
            let (window, min_calls) = draws.over();
            SlowRatio {
                after: draws.millis(1, 500),
                slow_ppm: draws.count(1, 1_000_000),
                window,
                min_calls,
            }
        });
        let first = self.millis(1, 2000);
        BreakerRules {
            consecutive: self.maybe(2, |draws| draws.count(1, 5)),
            ratio,
            slow,
            open_for: if self.one_in(10) {
                OpenFor::Manual
            } else {
                OpenFor::Timed {
                    first,
                    longest: first + self.millis(0, 5000),
                    jitter_ppm: self.count(0, 500_000),
                }
            },
            probes: self.count(1, 3),
            close_after: self.count(1, 4),
            lease: self.maybe(3, |draws| draws.millis(1, 5000)),
        }
    }

    /// Draws until the rules do not contradict each other.
    fn draft(&mut self) -> DependencyDraft {
        loop {
            let draft = DependencyDraft {
                name: "d".into(),
                timeout: self.maybe(2, |draws| draws.millis(10, 3000)),
                concurrency: self.maybe(2, |draws| draws.count(1, 8)),
                breaker: (!self.one_in(6)).then(|| self.breaker()),
                ramp: self.maybe(2, |draws| RampRules {
                    hold: draws.millis(10, 200),
                    calls: draws.count(1, 5),
                    failures_ppm: draws.of(&[0, 100_000, 500_000]),
                    ..RampRules::default()
                }),
                learn: self.maybe(2, |draws| LimitRules {
                    cold: draws.count(1, 20),
                    ..LimitRules::DEFAULT
                }),
                retry: self.maybe(2, |draws| RetryRules {
                    attempts: draws.count(2, 5),
                    budget_ppm: draws.of(&[0, 1, 100_000, 1_000_000]),
                    floor: draws.count(1, 2),
                    ..RetryRules::DEFAULT
                }),
                abandoned: self.maybe(4, |draws| draws.count(1, 5)),
                queue: self.maybe(4, |draws| QueueRules {
                    length: draws.count(1, 5),
                    longest_wait: draws.millis(1, 1000),
                }),
                rows: self
                    .maybe(4, |draws| {
                        let breaker = draws.of(&[Verdict::Failure, Verdict::Neutral]);
                        let row = Row {
                            breaker,
                            lower_rung: true,
                        };
                        (draws.of(&[Class::Refusal, Class::Busy]), row)
                    })
                    .into_iter()
                    .collect(),
            };
            if draft.clone().check().is_ok() {
                return draft;
            }
        }
    }
}

/// One attempt: its verdict is open while there is a pass, and it is in flight while `held`.
struct Work {
    pass: Option<Pass>,
    held: bool,
    /// The end of its lease, if it is a probe that counts.
    lease: Option<Mono>,
}

/// What was seen. A history in which something never happens has not tested it.
#[derive(Debug, Default)]
struct Seen {
    causes: BTreeMap<&'static str, u64>,
    refusals: BTreeMap<&'static str, u64>,
    ramps: u64,
    limits: u64,
    retries: u64,
    denied: u64,
}

/// A dependency, and what is expected of it.
struct Model {
    seat: Dependency<Alone<Steering>>,
    works: Vec<Work>,
    retries: Vec<Retry>,
    state: Option<State>,
    /// Its open period is that of a predecessor, by the rules of that one.
    is_carried: bool,
    seen: Seen,
    admitted: u64,
    granted: u64,
}

impl Model {
    fn new(draws: &mut Draws, resource: &Arc<Bulkhead>, carried: Option<Carried>, now: Mono) -> Self {
        let contract = draws.draft().check().expect("it was checked");
        let seat = Dependency::new(contract, vec![Arc::clone(resource)], draws.0.next_u64());
        if let Some(carried) = carried {
            seat.import(carried, now);
        }
        Self {
            state: seat.state(),
            seat,
            works: Vec::new(),
            retries: Vec::new(),
            is_carried: carried.is_some(),
            seen: Seen::default(),
            admitted: 0,
            granted: 0,
        }
    }

    fn rules(&self) -> Option<&BreakerRules> {
        self.seat.contract().breaker()
    }

    /// Every change starts where the one before has led.
    fn changed(&mut self, change: Option<Transition>) {
        let Some(Transition { from, to, cause, .. }) = change else {
            return;
        };
        *self.seen.causes.entry(cause.as_str()).or_default() += 1;
        assert_eq!(Some(from), self.state, "{change:?}");
        assert_ne!(from, to, "{change:?}");
        self.state = Some(to);
        self.is_carried = false;
        if to != State::HalfOpen {
            for work in &mut self.works {
                work.lease = None;
            }
        }
    }

    fn entered(
        &mut self,
        pass: Result<Pass, evenkeel_core::Refusal>,
        changes: Changes,
        observes: bool,
        now: Mono,
    ) {
        for change in changes {
            self.changed(change);
        }
        let pass = match pass {
            Ok(pass) => pass,
            Err(refusal) => {
                *self.seen.refusals.entry(refusal.reason.as_str()).or_default() += 1;
                return;
            }
        };
        if self.state.is_some_and(|state| state != State::Closed) && !observes {
            assert!(
                pass.is_probe(),
                "an ordinary call was let in while {:?}",
                self.state
            );
        }
        let lease = self.rules().filter(|_| pass.is_probe()).map(|rules| {
            let lease = rules.lease.or_else(|| self.seat.contract().timeout());
            now.after(lease.unwrap_or(BreakerRules::LEASE))
        });
        self.admitted += 1;
        self.works.push(Work {
            pass: Some(pass),
            held: true,
            lease,
        });
    }

    fn admit(&mut self, draws: &mut Draws, now: Mono) {
        let asker = if draws.one_in(20) {
            Asker::Person
        } else {
            Asker::Traffic
        };
        let (observes, criticality) = (draws.one_in(20), draws.of(&Criticality::ALL));
        let (pass, changes) = self.seat.admit_as(criticality, now, asker, observes);
        self.entered(pass, changes, observes, now);
    }

    fn step(&mut self, draws: &mut Draws, now: Mono) {
        let lane = Lane::new(usize::try_from(draws.below(8)).expect("small"));
        let chosen = (!self.works.is_empty())
            .then(|| usize::try_from(draws.below(self.works.len() as u64)).expect("an index"));
        match (draws.below(100), chosen) {
            (0..35, _) => self.admit(draws, now),
            (35..60, Some(index)) => {
                let class = draws.class();
                if let Some(pass) = self.works[index].pass.take() {
                    self.works[index].lease = None;
                    let told = self.seat.settle(pass, class, !draws.one_in(5), lane, now);
                    self.changed(told);
                }
            }
            (60..64, Some(index)) => {
                if let Some(pass) = &mut self.works[index].pass {
                    let (_waits, told) = self.seat.answered(pass, draws.class(), lane, now);
                    self.changed(told);
                }
            }
            (64..68, Some(index)) => {
                if let Some(pass) = &mut self.works[index].pass {
                    let told = self.seat.crossed(pass, lane, now);
                    self.changed(told);
                }
            }
            (68..70, Some(index)) => {
                if let Some(pass) = self.works[index].pass.take() {
                    self.works[index].lease = None;
                    let told = self.seat.broke(pass, lane, now);
                    self.changed(told);
                }
            }
            // Nobody will ever say what became of it. If it is a probe its lease has to end it.
            (70, Some(index)) => drop(self.works[index].pass.take()),
            (71..88, Some(index)) => {
                if std::mem::take(&mut self.works[index].held) {
                    self.seat.release();
                }
                if self.works[index].pass.is_none() && self.works[index].lease.is_none() {
                    self.works.swap_remove(index);
                }
            }
            (88..92, _) => {
                let failed = Failed {
                    class: draws.of(&[Class::OUTAGE, Class::OUTAGE, Class::Busy, Class::Fault]),
                    advice: draws.of(&[Advice::Whenever, Advice::Never, Advice::After(MS * 700)]),
                };
                let made = draws.count(1, 3);
                let ends = draws.maybe(2, |draws| now.after(draws.millis(0, 500)));
                match self.seat.retry(failed, made, ends, now) {
                    Ok(retry) => {
                        assert!(retry.at() >= now && ends.is_none_or(|ends| retry.at() < ends));
                        self.granted += 1;
                        self.retries.push(retry);
                    }
                    Err(NoRetry::NoBudget) => self.seen.denied += 1,
                    Err(_) => {}
                }
            }
            (92..96, _) => {
                let Some(retry) = self.retries.pop() else { return };
                if draws.one_in(2) {
                    self.seat.give_back(retry, now);
                } else {
                    let (pass, changes) = self.seat.admit_again(Criticality::default(), retry, now, false);
                    self.entered(pass, changes, false, now);
                }
            }
            (96, _) => self
                .seat
                .heed(draws.of(&CLASSES), Advice::After(draws.millis(0, 9000)), now),
            (97, _) => self.seat.waited_in_vain(draws.of(&Criticality::ALL), now),
            (98, _) => assert!(self.seat.ramp_events().len() <= 32),
            (99, _) if draws.one_in(4) => {
                let told = self.seat.reset(now);
                self.changed(told);
            }
            (99, _) | (_, None) | (100.., _) => {}
        }
    }

    fn holds(&self, latest: Mono) {
        let held = self.works.iter().filter(|work| work.held).count();
        let held = u32::try_from(held).expect("they are few");
        assert_eq!(self.seat.state(), self.state);
        if let Some(bulkhead) = self.seat.bulkhead() {
            assert_eq!(bulkhead.in_use(), held);
            // Probes have a reserve beyond the limit.
            let reserve = self.rules().map_or(0, |rules| rules.probes);
            assert!(held <= bulkhead.limit() + reserve);
        }
        assert!(self.seat.in_flight().is_none_or(|in_flight| in_flight == held));
        assert!(self.seat.learned_limit().is_none_or(|limit| limit >= 1));
        assert!(self.seat.lingering(latest) <= u32::try_from(self.admitted).expect("they are few"));
        if let Some(stage) = self.seat.ramp() {
            assert!((1..=1_000_000).contains(&stage.share_ppm), "{stage:?}");
            assert_eq!(self.state, Some(State::Closed));
        }
        let Some(rules) = self.rules() else {
            assert_eq!((self.state, self.seat.next_probe()), (None, None));
            return;
        };
        let running = |work: &&Work| work.lease.is_some_and(|lease| latest < lease);
        let probes = self.works.iter().filter(running).count();
        assert!(probes <= rules.probes as usize, "{probes} probes");
        match (self.state, rules.open_for) {
            (Some(State::Open), OpenFor::Timed { longest, .. }) => {
                let next = self.seat.next_probe().expect("a way back");
                let is_soon = self.is_carried || next.since(latest) <= longest * 3 / 2;
                assert!(is_soon, "the next probe is at {next:?}, and it is {latest:?}");
            }
            (Some(State::HalfOpen), OpenFor::Timed { .. }) => assert!(self.seat.next_probe().is_some()),
            (Some(State::Closed), _) => assert_eq!(self.seat.next_probe(), None),
            (_, OpenFor::Manual) | (None, _) => {}
        }
    }

    /// Retries are a share of the calls and a few each second, over the whole history.
    fn retries_are_within_their_budget(&self, began: Mono, now: Mono) {
        if let Some(rules) = self.seat.contract().retry() {
            let free = u64::from(rules.floor) * (now.since(began).as_secs() + 2);
            let earned = self.admitted * u64::from(rules.budget_ppm) / 1_000_000;
            // What was given back may be granted once more.
            let net = self.granted - u64::try_from(self.retries.len()).expect("small");
            assert!(net <= 2 * (free + earned), "{net} of {free} + {earned}");
        }
    }

    /// Ends all work; nobody ever says what became of it.
    fn end(&mut self) {
        let held = self.works.drain(..).filter(|work| work.held).count();
        (0..held).for_each(|_| self.seat.release());
    }

    /// Has the dependency answer from now on: it comes back.
    fn comes_back(&mut self, mut now: Mono) {
        for round in 0.. {
            if self.state.is_none_or(|state| state == State::Closed) && self.seat.ramp().is_none() {
                break;
            }
            assert!(round < 3000, "it never comes back: {:?}", self.seat.export());
            now = match self.seat.next_probe() {
                Some(next) => now.after(MS * 20).max(next),
                None => now.after(MS * 20),
            };
            let is_manual = self
                .rules()
                .is_some_and(|rules| rules.open_for == OpenFor::Manual);
            let asker = if is_manual && self.state != Some(State::Closed) {
                Asker::Person
            } else {
                Asker::Traffic
            };
            let (pass, changes) = self.seat.admit(now, asker, false);
            for change in changes {
                self.changed(change);
            }
            if let Ok(pass) = pass {
                let told = self
                    .seat
                    .settle(pass, Class::Answer, true, Lane::new(0), now.after(MS / 2));
                self.changed(told);
                self.seat.release();
            }
        }
        assert!(self.seat.bulkhead().is_none_or(|bulkhead| bulkhead.in_use() == 0));
        assert!(self.seat.in_flight().is_none_or(|in_flight| in_flight == 0));
    }
}

/// Runs one history; a panic is what fails it.
fn history(seed: u64, seen: &mut Seen) {
    let mut draws = Draws(Rng::new(seed), false);
    let mut now = Mono::ORIGIN.after(Duration::from_secs(100));
    let began = now;
    let resource = Arc::new(Bulkhead::new(draws.count(1, 12)));
    let mut carried = None;
    for _ in 0..2 {
        let mut models = [0; 2].map(|_| Model::new(&mut draws, &resource, carried.take(), now));
        for step in 0..STEPS {
            draws.1 = step / 50 % 2 == 1;
            if draws.one_in(6) {
                let span = draws.millis(0, 300);
                now = now.after(if draws.one_in(30) { span * 600 } else { span });
            }
            // Threads read their clocks at slightly different moments.
            let seen = now.before(Duration::from_micros(draws.below(3)));
            let which = usize::from(draws.one_in(2));
            models[which].step(&mut draws, seen);
            for model in &mut models {
                model.seen.ramps += u64::from(model.seat.ramp().is_some());
                model.seen.limits += u64::from(model.seat.learned_limit().is_some());
                model.holds(now);
                model.retries_are_within_their_budget(began, now);
            }
            let held: usize = models
                .iter()
                .map(|model| model.works.iter().filter(|work| work.held).count())
                .sum();
            assert_eq!(resource.in_use() as usize, held);
            assert!(resource.in_use() <= resource.limit());
        }
        carried = Some(models[0].seat.export());
        models.iter_mut().for_each(Model::end);
        for model in &mut models {
            model.comes_back(now);
            for (cause, count) in &model.seen.causes {
                *seen.causes.entry(cause).or_default() += count;
            }
            for (reason, count) in &model.seen.refusals {
                *seen.refusals.entry(reason).or_default() += count;
            }
            seen.ramps += model.seen.ramps;
            seen.limits += model.seen.limits;
            seen.retries += model.granted;
            seen.denied += model.seen.denied;
        }
        assert_eq!(resource.in_use(), 0);
    }
}

/// Returns a number that the environment gives.
#[expect(
    clippy::disallowed_methods,
    reason = "a test has no other arguments, and what it reads decides nothing in the engine"
)]
fn given(name: &str) -> Option<u64> {
    let word = std::env::var(name).ok()?;
    Some(
        word.parse()
            .unwrap_or_else(|_| panic!("{name} is `{word}`; it has to be a number")),
    )
}

#[test]
fn whatever_is_done_in_whatever_order_counts_are_right_and_there_is_a_way_back() {
    if let Some(seed) = given("EVENKEEL_SEED") {
        history(seed, &mut Seen::default());
        return;
    }
    #[expect(
        clippy::disallowed_types,
        reason = "a fresh seed is the point; it is printed, so that the run can be repeated"
    )]
    let first = std::hash::RandomState::new().hash_one(0);
    let mut rng = Rng::new(first);
    let mut seen = Seen::default();
    for _ in 0..given("EVENKEEL_HISTORIES").unwrap_or(HISTORIES) {
        let seed = rng.next_u64();
        println!("EVENKEEL_SEED={seed}");
        history(seed, &mut seen);
    }
    println!("{seen:?}");
    // A ramp that fails before its breaker trips is too rare to be counted on.
    let causes = [
        "tripped",
        "probing",
        "proven",
        "probe-failed",
        "probe-slow",
        "lease-expired",
        "reset",
    ];
    for cause in causes {
        assert!(seen.causes.get(cause).is_some_and(|count| *count > 10), "{cause}");
    }
    for reason in ["breaker-open", "at-capacity", "ramping", "shed"] {
        assert!(
            seen.refusals.get(reason).is_some_and(|count| *count > 10),
            "{reason}"
        );
    }
    for count in [seen.ramps, seen.limits, seen.retries, seen.denied] {
        assert!(count > 10, "{seen:?}");
    }
}

#[test]
fn the_same_seed_tells_the_same_history() {
    let draft = |seed| format!("{:?}", Draws(Rng::new(seed), false).draft());
    assert_eq!(draft(7), draft(7));
    assert_ne!(draft(7), draft(8));
    let tell = |seed| {
        let mut seen = Seen::default();
        history(seed, &mut seen);
        format!("{seen:?}")
    };
    assert_eq!(tell(7), tell(7));
    assert_ne!(tell(7), tell(8));
}
