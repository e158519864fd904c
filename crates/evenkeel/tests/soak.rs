//! A long day in virtual time: a hundred thousand calls of every kind, with faults, cancellations, holds and
//! resets, drawn from a seed. Every answer is checked, and in the end nothing is left over.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::{
    panic,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use evenkeel::{
    Dependency, Ending, Engine, Hold, HoldMode, ManualClock, Memory, Mono, Permit, Read, Reason, Refreshed,
    Resource, Rung, default, stale,
};
use support::{Fail, MS, Origin, SECOND, engine, wall};
use tokio::{runtime::Handle, task::JoinHandle};

const CALLS: u64 = 100_000;
const SEED: u64 = 20_251_129;
const FRESH: Duration = Duration::from_millis(40);
const SOFT: Duration = Duration::from_millis(60);
const WINDOW: Duration = Duration::from_millis(40);
const STALE: Duration = Duration::from_millis(400);
const PERMITS: u32 = 8;
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

struct Stage {
    clock: ManualClock,
    engine: Engine,
    dependency: Dependency,
    database: Resource,
    guards: [Guard; 2],
    spare: Dependency,
    origin: Origin,
    /// How many answers flow.
    flowing: Arc<AtomicU32>,
    numbers: Numbers,
    calls: Vec<JoinHandle<()>>,
    started: [u64; 2],
}

impl Stage {
    fn new() -> Self {
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
        let spare = engine
            .dependency("spare")
            .timeout(20 * MS)
            .concurrency(2)
            .breaker(|b| b.consecutive(5))
            .build()
            .unwrap();
        let memory = Memory::new(16 << 10);
        let start = |name: &str| {
            engine
                .read::<Value>(name)
                .scope::<(String,)>()
                .from(&dependency)
                .deadline(130 * MS)
                .classify(Fail::class)
                .memory(&memory)
        };
        let guards = [
            start("plain")
                .soft_timeout(SOFT)
                .ladder([stale(STALE)])
                .alternate(&spare, {
                    let (clock, turns) = (clock.clone(), AtomicU32::new(0));
                    move |(tenant,), key, _call| {
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
        ];
        Self {
            clock,
            engine,
            dependency,
            database,
            guards,
            spare,
            origin: Origin::default(),
            flowing: Arc::default(),
            numbers: Numbers(SEED),
            calls: Vec::new(),
            started: [0, 0],
        }
    }

    /// Starts a call of any kind in a task that checks its own answer.
    fn call(&mut self, bad: bool) {
        let numbers = &mut self.numbers;
        let which = usize::from(numbers.one_in(2));
        self.started[which] += 1;
        let (guard, clock, origin) = (
            self.guards[which].clone(),
            self.clock.clone(),
            self.origin.clone(),
        );
        let scope = format!("tenant-{}", numbers.below(3));
        let key = u8::try_from(numbers.below(6)).unwrap();
        let does = Does::draw(numbers, bad);
        let kind = numbers.below(20);
        let flows = u32::try_from(numbers.below(40)).unwrap() * MS;
        let cut = numbers.one_in(4);
        let flowing = Arc::clone(&self.flowing);
        self.calls.push(tokio::spawn(async move {
            let of = (scope.clone(), key);
            let work = {
                let (clock, of) = (clock.clone(), of.clone());
                move || attempt(does, clock, origin, of)
            };
            let end = match kind {
                0 => guard.probe((scope,), [key], |_| work()).await,
                1..8 => guard.call((scope,), [key], |_| work()).await,
                8..14 => guard.call_owned((scope,), [key], |_| work()).await,
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
        }));
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
            4 => self.dependency.reset("ana", "soak"),
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
        let status = self.dependency.status();
        assert_eq!(
            status.in_use,
            self.origin.inside() + self.flowing.load(Ordering::SeqCst)
        );
        assert_eq!(self.database.in_use(), status.in_use);
        assert!(status.in_use <= PERMITS);
        assert!(self.guards[0].memory().bytes() <= self.guards[0].memory().limit());
    }
}

#[tokio::test]
async fn a_hundred_thousand_calls_end_once_each_and_leave_nothing_behind() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if info.payload_as_str() != Some(BROKEN) {
            usual(info);
        }
    }));
    let mut stage = Stage::new();
    let (mut broken, mut aborted) = (0_u64, 0_u64);
    for step in 0..CALLS {
        // Bad times come and go.
        stage.call(step / 3000 % 4 == 3);
        stage.settle().await;
        if stage.numbers.one_in(200) {
            stage.meddle();
        }
        if stage.numbers.one_in(5) {
            let which = stage.numbers.below(stage.calls.len() as u64);
            stage.calls[usize::try_from(which).unwrap()].abort();
        }
        if stage.numbers.one_in(3) {
            let span = u32::try_from(stage.numbers.below(20)).unwrap();
            stage.clock.advance(span * MS);
        }
        if step % 64 == 0 {
            drop(stage.engine.drain_events());
            for call in std::mem::take(&mut stage.calls) {
                if !call.is_finished() {
                    stage.calls.push(call);
                    continue;
                }
                match call.await {
                    Ok(()) => {}
                    Err(error) if error.is_cancelled() => aborted += 1,
                    Err(error) => {
                        let panic = error.into_panic();
                        let text = panic.downcast_ref::<String>().map(String::as_str);
                        assert_eq!(text, Some(BROKEN), "seed {SEED}, about step {step}");
                        broken += 1;
                    }
                }
            }
        }
    }
    for guard in &stage.guards {
        guard.release("ana");
    }
    for _ in 0..400 {
        stage.clock.advance(10 * MS);
        stage.settle().await;
    }
    for call in std::mem::take(&mut stage.calls) {
        match call.await {
            Err(error) if error.is_panic() => broken += 1,
            Err(_) => aborted += 1,
            Ok(()) => {}
        }
    }
    assert_eq!(stage.origin.inside(), 0);
    let status = stage.dependency.status();
    assert_eq!((status.in_use, stage.database.in_use()), (0, 0));
    assert_eq!(stage.spare.status().in_use, 0);
    assert_eq!(stage.clock.sleepers(), 0);
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
    assert_eq!(stage.guards[1].flights().0, 0);
    assert_eq!(stage.dependency.attempts_total(), stage.origin.asked());
    let counts = [stage.guards[0].counts(), stage.guards[1].counts()];
    for (counts, started) in counts.iter().zip(stage.started) {
        assert_eq!(counts.calls(), started);
    }
    let total = |ending| counts[0].total(ending) + counts[1].total(ending);
    assert_eq!(total(Ending::Abandoned), aborted);
    let faults = |counts: &evenkeel::Counts| counts.get(Ending::Failed, Some(Reason::Fault));
    assert!(faults(&counts[0]) + faults(&counts[1]) >= broken);
    // A soak in which something never happened has not tested it.
    for ending in Ending::ALL {
        assert!(total(ending) > 100, "{ending:?}: {}", total(ending));
    }
    for reason in Reason::ALL {
        let seen: u64 = Ending::ALL
            .into_iter()
            .map(|ending| counts[0].get(ending, Some(reason)) + counts[1].get(ending, Some(reason)))
            .sum();
        let never = matches!(
            reason,
            Reason::Cut | Reason::ErrorAnswer | Reason::Ramping | Reason::QueueExpired | Reason::Shed
        );
        assert_eq!(seen > 0, !never, "{reason}: {seen}");
    }
    for end in [
        Refreshed::Kept,
        Refreshed::NotKept,
        Refreshed::Failed,
        Refreshed::Refused,
    ] {
        assert!(
            counts[1].refreshes(end) > 10,
            "{end:?}: {}",
            counts[1].refreshes(end)
        );
    }
    assert!(counts[1].joined() > 100 && broken > 10 && aborted > 100);
    for state in [
        evenkeel::State::Open,
        evenkeel::State::HalfOpen,
        evenkeel::State::Closed,
    ] {
        assert!(stage.dependency.transitions(state) > 10, "{state:?}");
    }
}
