//! A long day in virtual time: a hundred thousand calls of every kind, with faults, cancellations, holds and
//! resets, drawn from a seed. Every answer is checked, what the guards counted is compared with what the dependencies
//! and the clients counted themselves, and in the end nothing is left over.
//!
//! `EVENKEEL_SOAK=1000000 cargo test -p evenkeel --test soak` makes a million, `EVENKEEL_SEED=7` draws others.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::{
    panic,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use evenkeel::{
    Criticality, Dependency, Ending, Engine, Hold, HoldMode, ManualClock, Memory, Mono, Permit, Read, Reason,
    Refreshed, Resource, RetryRules, Rung, default, stale,
};
use parking_lot::Mutex;
use support::{Fail, MS, Origin, SECOND, engine, wall};
use tokio::{runtime::Handle, task::JoinHandle};

const CALLS: u64 = 100_000;
const SEED: u64 = 20_251_129;
const FRESH: Duration = Duration::from_millis(40);
const SOFT: Duration = Duration::from_millis(60);
const WINDOW: Duration = Duration::from_millis(40);
const STALE: Duration = Duration::from_millis(400);
const PERMITS: u32 = 8;
/// Guards of the first dependency; those after them are of the second.
const FIRST: usize = 2;
const BROKEN: &str = "the wrapped code breaks, as this test wants";

/// Numbers that look random and are the same in every run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Data that says whose it is and when its attempt began; what a person seeded does not know.
#[derive(Clone, Debug, PartialEq)]
struct Value {
    of: Option<(String, u8)>,
    began: Option<Mono>,
}

type Guard = Read<Value, Fail, (String,)>;

/// What the dependency does with one attempt.
#[derive(Clone, Copy, Debug)]
enum Does {
    Says(Result<(), Fail>),
    SaysAfter(Duration, Result<(), Fail>),
    Hangs,
    BreaksAfter(Duration),
    BreaksAtOnce,
}

impl Does {
    fn draw(numbers: &mut Numbers, bad: bool) -> Self {
        let failures = [
            Fail::Down,
            Fail::Late,
            Fail::No,
            Fail::Gone,
            Fail::Busy,
            Fail::Bug,
        ];
        let says = if numbers.below(100) < if bad { 80 } else { 5 } {
            let which = if bad { numbers.below(2) } else { numbers.below(6) };
            Err(failures[usize::try_from(which).unwrap()])
        } else {
            Ok(())
        };
        let span = u32::try_from(numbers.below(150)).unwrap() * MS;
        match numbers.below(400) {
            0 => Self::BreaksAtOnce,
            1 => Self::BreaksAfter(span),
            2..10 => Self::Hangs,
            10..200 => Self::SaysAfter(span, says),
            _ => Self::Says(says),
        }
    }
}

async fn attempt(does: Does, clock: ManualClock, origin: Origin, of: (String, u8)) -> Result<Value, Fail> {
    let _inside = origin.enter();
    let value = Value {
        of: Some(of),
        began: Some(clock.now().mono),
    };
    match does {
        Does::Says(says) => says.map(|()| value),
        Does::SaysAfter(span, says) => {
            clock.sleep(span).await;
            says.map(|()| value)
        }
        Does::Hangs => std::future::pending().await,
        Does::BreaksAfter(span) => {
            clock.sleep(span).await;
            panic!("{BROKEN}")
        }
        Does::BreaksAtOnce => panic!("{BROKEN}"),
    }
}

/// The rest of an answer, which flows for a while and then ends, or breaks off.
async fn flow(
    permit: Option<Permit<'static>>,
    clock: ManualClock,
    span: Duration,
    cut: bool,
    flowing: Arc<AtomicU32>,
) {
    flowing.fetch_add(1, Ordering::SeqCst);
    clock.sleep(span).await;
    match permit {
        Some(permit) if cut => permit.cut(),
        Some(_) | None => {}
    }
    flowing.fetch_sub(1, Ordering::SeqCst);
}

/// What the clients of each guard were told, by the place of the ending in [`Ending::ALL`].
#[derive(Clone, Default)]
struct Told(Arc<Mutex<[[u64; Ending::ALL.len()]; 4]>>);

impl Told {
    fn note(&self, guard: usize, ending: Ending) {
        let place = Ending::ALL.iter().position(|one| *one == ending).unwrap();
        self.0.lock()[guard][place] += 1;
    }

    fn get(&self, guard: usize, ending: Ending) -> u64 {
        let place = Ending::ALL.iter().position(|one| *one == ending).unwrap();
        self.0.lock()[guard][place]
    }
}

struct Stage {
    clock: ManualClock,
    engine: Engine,
    dependencies: [Dependency; 2],
    database: Resource,
    guards: [Guard; 4],
    spare: Dependency,
    spare_asked: Arc<AtomicU64>,
    origins: [Origin; 2],
    told: Told,
    /// How many answers flow.
    flowing: Arc<AtomicU32>,
    numbers: Numbers,
    calls: Vec<(usize, JoinHandle<()>)>,
    started: [u64; 4],
}

impl Stage {
    fn new(seed: u64) -> Self {
        let (clock, engine) = engine();
        let database = engine.resource("db", PERMITS).unwrap();
        let dependency = engine
            .dependency("catalog")
            .timeout(100 * MS)
            .concurrency(PERMITS)
            .uses(&database)
            .breaker(|b| b.consecutive(5).failure_ratio(500_000, SECOND, 20))
            .build()
            .unwrap();
        let prices = engine
            .dependency("prices")
            .timeout(80 * MS)
            .concurrency(4)
            .abandoned(6)
            .queue(6, 40 * MS)
            .retry(RetryRules {
                attempts: 3,
                budget_ppm: 20_000,
                floor: 1,
                pause: 5 * MS,
                pause_max: 20 * MS,
                ..RetryRules::DEFAULT
            })
            .uses(&database)
            .breaker(|b| b.consecutive(6))
            .ramp([20, 100])
            .build()
            .unwrap();
        let spare = engine
            .dependency("spare")
            .timeout(20 * MS)
            .concurrency(2)
            .breaker(|b| b.consecutive(5))
            .build()
            .unwrap();
        let memory = Memory::new(16 << 10);
        let spare_asked = Arc::new(AtomicU64::new(0));
        let start_from = |name: &str, dependency: &Dependency| {
            engine
                .read::<Value>(name)
                .scope::<(String,)>()
                .from(dependency)
                .deadline(130 * MS)
                .classify(Fail::class)
        };
        let start = |name: &str| start_from(name, &dependency).memory(&memory);
        let guards = [
            start("plain")
                .soft_timeout(SOFT)
                .ladder([stale(STALE)])
                .alternate(&spare, {
                    let (clock, turns) = (clock.clone(), AtomicU32::new(0));
                    let asked = Arc::clone(&spare_asked);
                    move |(tenant,), key, _call| {
                        asked.fetch_add(1, Ordering::SeqCst);
                        let turn = turns.fetch_add(1, Ordering::SeqCst);
                        let (clock, of) = (clock.clone(), (tenant.clone(), key[0]));
                        async move {
                            if turn % 4 == 1 {
                                clock.sleep(10 * MS).await;
                            }
                            let began = Some(clock.now().mono);
                            if turn % 4 == 0 {
                                Err(Fail::Down)
                            } else {
                                Ok(Value { of: Some(of), began })
                            }
                        }
                    }
                })
                .ladder([default(|| Value {
                    of: None,
                    began: None,
                })])
                .build()
                .unwrap(),
            start("shared")
                .coalesce()
                .share_if(|value| value.of.as_ref().is_some_and(|(_, key)| *key != 3))
                .fresh_for(FRESH)
                .stale_while_revalidate(WINDOW)
                .refresh_ahead()
                .cool_down(5 * MS)
                .ladder([stale(STALE)])
                .build()
                .unwrap(),
            start_from("sheddable", &prices)
                .criticality(Criticality::Sheddable)
                .ladder([default(|| Value {
                    of: None,
                    began: None,
                })])
                .build()
                .unwrap(),
            start_from("important", &prices)
                .criticality(Criticality::CriticalPlus)
                .build()
                .unwrap(),
        ];
        Self {
            clock,
            engine,
            dependencies: [dependency, prices],
            database,
            guards,
            spare,
            spare_asked,
            origins: [Origin::default(), Origin::default()],
            told: Told::default(),
            flowing: Arc::default(),
            numbers: Numbers(seed),
            calls: Vec::new(),
            started: [0; 4],
        }
    }

    /// Starts a call of any kind in a task that checks its own answer.
    fn call(&mut self, bad: bool) {
        let numbers = &mut self.numbers;
        let which = [0, 0, 1, 1, 1, 1, 2, 3][usize::try_from(numbers.below(8)).unwrap()];
        self.started[which] += 1;
        let (guard, clock, origin) = (
            self.guards[which].clone(),
            self.clock.clone(),
            self.origins[which / FIRST].clone(),
        );
        let told = self.told.clone();
        let scope = format!("tenant-{}", numbers.below(3));
        let key = u8::try_from(numbers.below(6)).unwrap();
        let does = [(); 3].map(|()| Does::draw(numbers, bad));
        let kind = numbers.below(20);
        let flows = u32::try_from(numbers.below(40)).unwrap() * MS;
        let cut = numbers.one_in(4);
        let flowing = Arc::clone(&self.flowing);
        let call = tokio::spawn(async move {
            let of = (scope.clone(), key);
            let work = {
                let (clock, of) = (clock.clone(), of.clone());
                let turn = AtomicUsize::new(0);
                move || {
                    let does = does[turn.fetch_add(1, Ordering::SeqCst).min(2)];
                    attempt(does, clock.clone(), origin.clone(), of.clone())
                }
            };
            let end = match kind {
                _ if which >= FIRST && kind < 15 => {
                    guard.call_repeatable((scope,), [key], move |_| work()).await
                }
                0 => guard.probe((scope,), [key], |_| work()).await,
                1..8 => guard.call((scope,), [key], |_| work()).await,
                8..14 => guard.call_owned((scope,), [key], move |_| work()).await,
                _ => {
                    let usable = |value: &Value| value.began.is_some();
                    let clock_of_flow = clock.clone();
                    guard
                        .call_work((scope,), [key], Some(&usable), move |_, permit| async move {
                            let result = work().await;
                            if kind < 17 {
                                drop(permit);
                            } else {
                                tokio::spawn(flow(permit, clock_of_flow, flows, cut, flowing));
                            }
                            result
                        })
                        .await
                }
            };
            let now = clock.now().mono;
            told.note(
                which,
                match &end {
                    Ok(answer) => Ending::Answered(answer.rung),
                    Err(unanswered) => unanswered.ending,
                },
            );
            match end {
                Ok(answer) => {
                    if answer.rung == Rung::Default {
                        assert_eq!((&answer.value.of, answer.age), (&None, None));
                        return;
                    }
                    // Nobody ever gets somebody else's, nor anything younger than it is.
                    assert_eq!(answer.value.of.as_ref(), Some(&of));
                    let age = answer.age.unwrap();
                    match (answer.rung, answer.value.began) {
                        (Rung::Live | Rung::Alternate, _) => assert_eq!(age, Duration::ZERO),
                        (_, Some(began)) => assert_eq!(age, now.since(began)),
                        (_, None) => assert!(kind < 14, "a seed was given to who may not have one"),
                    }
                    match answer.rung {
                        Rung::Fresh => assert!(age < FRESH && answer.reason.is_none()),
                        Rung::Stale if answer.reason == Some(Reason::Revalidating) => {
                            assert!((FRESH..=FRESH + WINDOW).contains(&age));
                        }
                        Rung::Stale => assert!(age <= STALE && answer.reason.is_some()),
                        Rung::Alternate => assert!(answer.reason.is_some() && !answer.kept),
                        Rung::Live | Rung::Default => {}
                    }
                }
                Err(unanswered) => {
                    assert!(unanswered.misuse.is_none());
                    assert!(unanswered.ending == Ending::Refused || unanswered.ending == Ending::Failed);
                }
            }
        });
        self.calls.push((which, call));
    }

    /// What people do, now and then.
    fn meddle(&mut self) {
        let guard = self.guards[usize::from(self.numbers.one_in(2))].clone();
        let scope = (format!("tenant-{}", self.numbers.below(3)),);
        let key = u8::try_from(self.numbers.below(6)).unwrap();
        match self.numbers.below(8) {
            0 | 1 => {
                let mode = HoldMode::ALL[usize::try_from(self.numbers.below(5)).unwrap()];
                let lasts = self.numbers.one_in(2).then(|| 50 * MS);
                guard
                    .hold(Hold {
                        mode,
                        by: "ana".into(),
                        why: "soak".into(),
                        lasts,
                    })
                    .unwrap();
            }
            2 | 3 => drop(guard.release("ana")),
            4 => self.dependencies[usize::from(self.numbers.one_in(2))].reset("ana", "soak"),
            5 => guard.forget(scope, [key]).unwrap(),
            6 => {
                let stated = wall(&self.clock) - u32::try_from(self.numbers.below(500)).unwrap() * MS;
                let value = Value {
                    of: Some((scope.0.clone(), key)),
                    began: None,
                };
                guard
                    .seed(scope, [key], value, self.numbers.one_in(4).then_some(stated))
                    .unwrap();
            }
            _ => {
                let step = u32::try_from(self.numbers.below(7200)).unwrap() * SECOND;
                let wall = wall(&self.clock);
                self.clock.set_wall(if self.numbers.one_in(2) {
                    wall + step
                } else {
                    wall - step
                });
            }
        }
    }

    /// Lets all tasks go on, and checks what must hold whenever they all wait.
    async fn settle(&self) {
        for _ in 0..12 {
            tokio::task::yield_now().await;
        }
        let in_use = [0, 1].map(|index: usize| self.dependencies[index].status().in_use);
        let inside = [0, 1].map(|index: usize| self.origins[index].inside());
        let flowing = self.flowing.load(Ordering::SeqCst);
        assert_eq!(in_use.iter().sum::<u32>(), inside.iter().sum::<u32>() + flowing);
        assert!(in_use[0] >= inside[0] && in_use[1] >= inside[1]);
        assert_eq!(self.database.in_use(), in_use[0] + in_use[1]);
        // A probe has a reserve beyond the permits of its own dependency, but none of the resource.
        assert!(in_use[0] + in_use[1] <= PERMITS && in_use[1] <= 5);
        assert!(self.guards[0].memory().bytes() <= self.guards[0].memory().limit());
    }
}

/// Returns a number that the environment gives, or the usual one.
#[expect(
    clippy::disallowed_methods,
    reason = "a test has no other arguments; the library reads none"
)]
fn given(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |word| {
        let number = word.parse();
        number.unwrap_or_else(|_| panic!("{name} is `{word}`; it has to be a number"))
    })
}

#[tokio::test]
async fn a_hundred_thousand_calls_end_once_each_as_everybody_counted_and_leave_nothing_behind() {
    let (seed, all) = (given("EVENKEEL_SEED", SEED), given("EVENKEEL_SOAK", CALLS));
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if info.payload_as_str() != Some(BROKEN) {
            usual(info);
        }
    }));
    let mut stage = Stage::new(seed);
    let (mut broken, mut aborted) = ([0_u64; 4], [0_u64; 4]);
    for step in 0..all {
        // Bad times come and go.
        stage.call(step / 3000 % 4 == 3);
        stage.settle().await;
        if stage.numbers.one_in(200) {
            stage.meddle();
        }
        if stage.numbers.one_in(5) {
            let which = stage.numbers.below(stage.calls.len() as u64);
            stage.calls[usize::try_from(which).unwrap()].1.abort();
        }
        if stage.numbers.one_in(3) {
            let span = u32::try_from(stage.numbers.below(20)).unwrap();
            stage.clock.advance(span * MS);
        }
        if step % 64 == 0 {
            drop(stage.engine.drain_events());
            for (which, call) in std::mem::take(&mut stage.calls) {
                if !call.is_finished() {
                    stage.calls.push((which, call));
                    continue;
                }
                match call.await {
                    Ok(()) => {}
                    Err(error) if error.is_cancelled() => aborted[which] += 1,
                    Err(error) => {
                        let panic = error.into_panic();
                        let text = panic.downcast_ref::<String>().map(String::as_str);
                        assert_eq!(text, Some(BROKEN), "seed {seed}, about step {step}");
                        broken[which] += 1;
                    }
                }
            }
        }
    }
    stage.guards.iter().for_each(|guard| drop(guard.release("ana")));
    for _ in 0..400 {
        stage.clock.advance(10 * MS);
        stage.settle().await;
    }
    for (which, call) in std::mem::take(&mut stage.calls) {
        match call.await {
            Err(error) if error.is_panic() => broken[which] += 1,
            Err(_) => aborted[which] += 1,
            Ok(()) => {}
        }
    }
    stage.left_nothing();
    stage.counted_the_same(&broken, &aborted);
    stage.saw_everything();
    assert!(broken.iter().sum::<u64>() > 10 && aborted.iter().all(|count| *count > 100));
}

impl Stage {
    /// Permits, queues, flights, sleepers and tasks are back to none.
    fn left_nothing(&self) {
        for (dependency, origin) in self.dependencies.iter().zip(&self.origins) {
            let status = dependency.status();
            assert_eq!((status.in_use, status.waiting, origin.inside()), (0, 0, 0));
        }
        assert_eq!((self.database.in_use(), self.spare.status().in_use), (0, 0));
        assert_eq!(self.clock.sleepers(), 0);
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
        assert!(self.guards.iter().all(|guard| guard.flights().0 == 0));
    }

    /// What was counted inside is what the dependencies, and the clients, counted outside.
    fn counted_the_same(&self, broken: &[u64; 4], aborted: &[u64; 4]) {
        for (dependency, origin) in self.dependencies.iter().zip(&self.origins) {
            assert_eq!(
                dependency.attempts_total(),
                origin.asked(),
                "{}",
                dependency.name()
            );
        }
        assert_eq!(
            self.spare.attempts_total(),
            self.spare_asked.load(Ordering::SeqCst)
        );
        for (which, guard) in self.guards.iter().enumerate() {
            let counts = guard.counts();
            assert_eq!(counts.calls(), self.started[which], "{}", guard.name());
            for ending in Ending::ALL {
                let counted = counts.total(ending);
                let told = self.told.get(which, ending);
                let expected = match ending {
                    Ending::Abandoned => aborted[which],
                    Ending::Failed => told + broken[which],
                    // Whose answer broke off later had it as live before.
                    Ending::Answered(Rung::Live) => told - counts.total(Ending::Cut),
                    Ending::Cut => counted,
                    Ending::Answered(_) | Ending::Refused => told,
                };
                assert_eq!(counted, expected, "{}: {ending:?}", guard.name());
            }
            assert!(counts.get(Ending::Failed, Some(Reason::Fault)) >= broken[which]);
        }
    }

    /// A soak in which something never happened has not tested it.
    fn saw_everything(&self) {
        let counts: Vec<_> = self.guards.iter().map(Read::counts).collect();
        for ending in Ending::ALL {
            let total: u64 = counts.iter().map(|counts| counts.total(ending)).sum();
            assert!(total > 100, "{ending:?}: {total}");
        }
        for reason in Reason::ALL {
            let seen: u64 = Ending::ALL
                .into_iter()
                .flat_map(|ending| counts.iter().map(move |counts| counts.get(ending, Some(reason))))
                .sum();
            // A permit that ends early says so without a reason, these sources say no such class, and no call has a protect step.
            let never = matches!(
                reason,
                Reason::Cut | Reason::ErrorAnswer | Reason::ProtectionUnavailable
            );
            assert_eq!(seen > 0, !never, "{reason}: {seen}");
        }
        for end in [
            Refreshed::Kept,
            Refreshed::NotKept,
            Refreshed::Failed,
            Refreshed::Refused,
        ] {
            let count = counts[1].refreshes(end);
            assert!(count > 10, "{end:?}: {count}");
        }
        assert!(counts[1].joined() > 100);
        let retries = self.dependencies[1].retries();
        assert!(retries.made > 100 && retries.denied > 10, "{retries:?}");
        for state in [
            evenkeel::State::Open,
            evenkeel::State::HalfOpen,
            evenkeel::State::Closed,
        ] {
            for dependency in &self.dependencies {
                assert!(dependency.transitions(state) > 10, "{state:?}");
            }
        }
    }
}
