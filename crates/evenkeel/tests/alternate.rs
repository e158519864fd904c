//! The alternate rung: another dependency, asked once inside its own budget when the first could not answer.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use evenkeel::{
    AlternateBuilder, Class, Classifier, Dependency, Ending, Engine, Hold, HoldMode, ManualClock, Permit,
    Read, ReadBuilder, Reason, Rung, Skipped, State, default, stale,
};
use parking_lot::Mutex;
use support::{End, Fail, MS, NS, Origin, SECOND, engine, poll, settle, wall};
use tokio::runtime::Handle;

type Builder = ReadBuilder<u32, Classifier<Fail>>;

/// A guard, its spare, and what the spare says.
struct Stage {
    clock: ManualClock,
    engine: Engine,
    spare: Dependency,
    says: Arc<Mutex<Result<u32, Fail>>>,
    asked: Arc<AtomicU32>,
}

impl Stage {
    fn new() -> Self {
        let (clock, engine) = engine();
        let spare = engine
            .dependency("spare")
            .timeout(300 * MS)
            .concurrency(1)
            .breaker(|b| b.consecutive(1).open_for(SECOND, SECOND).jitter(0))
            .build()
            .unwrap();
        Self {
            clock,
            engine,
            spare,
            says: Arc::new(Mutex::new(Ok(2))),
            asked: Arc::default(),
        }
    }

    fn guard(&self, change: impl FnOnce(Builder) -> Builder, below: bool) -> Read<u32, Fail> {
        let builder = change(self.engine.read::<u32>("g").classify(Fail::class));
        let builder = self.on(builder);
        if below {
            builder.ladder([default(|| 0)])
        } else {
            builder
        }
        .build()
        .unwrap()
    }

    fn on(&self, builder: Builder) -> AlternateBuilder<u32, Fail> {
        let (says, asked) = (self.says.clone(), self.asked.clone());
        builder.alternate(&self.spare, move |(), key, _call| {
            assert_eq!(key, b"k");
            asked.fetch_add(1, Ordering::SeqCst);
            let says = *says.lock();
            async move { says }
        })
    }

    fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }
}

async fn fail(guard: &Read<u32, Fail>, how: Fail) -> End<u32> {
    guard.call((), "k", |_| async move { Err(how) }).await
}

#[tokio::test]
async fn e61_the_alternate_answers_by_its_own_name_and_is_counted_apart() {
    let stage = Stage::new();
    let guard = stage.guard(|b| b, true);
    let answer = fail(&guard, Fail::Down).await.unwrap();
    assert_eq!(
        (answer.value, answer.rung, answer.age, answer.reason),
        (
            2,
            Rung::Alternate,
            Some(Duration::ZERO),
            Some(Reason::DependencyFailed)
        )
    );
    assert_eq!((answer.cause, answer.alternate_cause), (Some(Fail::Down), None));
    assert!(!answer.kept && answer.skipped.is_empty() && answer.observed.is_some());
    let counts = guard.counts();
    assert_eq!(
        counts.get(Ending::Answered(Rung::Alternate), Some(Reason::DependencyFailed)),
        1
    );
    assert_eq!(counts.total(Ending::Answered(Rung::Live)), 0);
    assert_eq!(stage.spare.attempts(Class::Answer), 1);
    assert_eq!(guard.dependency().attempts(Class::Answer), 0);
}

#[tokio::test]
async fn nobody_asks_the_alternate_while_a_rung_above_can_answer() {
    let stage = Stage::new();
    let guard = stage.guard(|b| b.ladder([stale(60 * SECOND)]), true);
    guard.call((), "k", |_| async { Ok(1) }).await.unwrap();
    assert_eq!(fail(&guard, Fail::Down).await.unwrap().rung, Rung::Stale);
    assert_eq!(stage.asked(), 0);
    stage.clock.advance(60 * SECOND + NS);
    let answer = fail(&guard, Fail::Down).await.unwrap();
    assert_eq!(
        (answer.rung, answer.skipped.why(Rung::Stale)),
        (Rung::Alternate, Some(Skipped::TooOld))
    );
}

#[tokio::test]
async fn e48_an_alternates_answer_is_never_kept_as_the_dependencys_data() {
    let stage = Stage::new();
    let guard = stage.guard(|b| b.fresh_for(SECOND).ladder([stale(60 * SECOND)]), false);
    assert_eq!(fail(&guard, Fail::Down).await.unwrap().rung, Rung::Alternate);
    assert_eq!(guard.memory().count(), 0);
    *stage.says.lock() = Err(Fail::Gone);
    guard
        .seed((), "k", 1, Some(wall(&stage.clock) - 61 * SECOND))
        .unwrap();
    assert!(fail(&guard, Fail::Down).await.is_err());
    assert_eq!(guard.memory().count(), 1, "nor does it retire the dependency's");
}

#[tokio::test]
async fn e57_both_errors_reach_the_caller_whoever_answers_in_the_end() {
    for below in [true, false] {
        let stage = Stage::new();
        *stage.says.lock() = Err(Fail::Late);
        let guard = stage.guard(|b| b, below);
        let causes = match fail(&guard, Fail::Down).await {
            Ok(answer) => {
                assert_eq!(
                    (answer.rung, answer.reason),
                    (Rung::Default, Some(Reason::DependencyFailed))
                );
                answer.causes().copied().collect::<Vec<_>>()
            }
            Err(unanswered) => {
                assert_eq!(
                    unanswered.to_string(),
                    "refused: dependency-failed (alternate failed)"
                );
                unanswered.causes().copied().collect()
            }
        };
        assert_eq!(causes, [Fail::Down, Fail::Late]);
        assert_eq!(guard.counts().skipped(Rung::Alternate, Skipped::Failed), 1);
        assert_eq!(stage.spare.attempts(Class::OUTAGE), 1);
        assert_eq!(stage.asked(), 1, "at most one attempt");
    }
}

#[tokio::test]
async fn e42_e59_a_real_answer_of_the_dependency_is_not_hidden_by_the_alternate() {
    let stage = Stage::new();
    let guard = stage.guard(|b| b, true);
    for how in [Fail::No, Fail::Gone, Fail::Busy, Fail::Bug] {
        let failed = fail(&guard, how).await.unwrap_err();
        assert_eq!((failed.ending, failed.cause), (Ending::Failed, Some(how)));
    }
    assert_eq!(stage.asked(), 0);
}

#[tokio::test]
async fn what_the_alternate_refuses_is_no_answer() {
    let stage = Stage::new();
    let guard = stage.guard(
        |b| b.class_of(|value| if *value == 2 { Class::Gone } else { Class::Answer }),
        true,
    );
    let answer = fail(&guard, Fail::Down).await.unwrap();
    assert_eq!(
        (answer.rung, answer.skipped.why(Rung::Alternate)),
        (Rung::Default, Some(Skipped::Failed))
    );
    assert_eq!(stage.spare.attempts(Class::Gone), 1);
}

#[tokio::test]
async fn e60_the_alternates_own_permits_breaker_and_hold_keep_calls_away_each_by_its_word() {
    let stage = Stage::new();
    let guard = stage.guard(|b| b, true);
    let skipped = async |guard: &Read<u32, Fail>| {
        let answer = fail(guard, Fail::Down).await.unwrap();
        assert_eq!(answer.rung, Rung::Default);
        answer.skipped.why(Rung::Alternate)
    };
    // Its one permit is in use by somebody else.
    let origin = Origin::default();
    let other = stage
        .engine
        .read::<u32>("other")
        .from(&stage.spare)
        .classify(Fail::class)
        .build()
        .unwrap();
    let mut busy = Box::pin(other.call((), "k", |_| origin.clone().ask(Ok(1))));
    assert!(poll(busy.as_mut()).is_pending());
    assert_eq!(skipped(&guard).await, Some(Skipped::AtCapacity));
    origin.open();
    busy.await.unwrap();

    let hold = |mode| Hold {
        mode,
        by: "ana".into(),
        why: "test".into(),
        lasts: None,
    };
    stage.spare.hold(hold(HoldMode::ForcedOpen)).unwrap();
    assert_eq!(skipped(&guard).await, Some(Skipped::Held));
    stage.spare.release("ana");

    *stage.says.lock() = Err(Fail::Down);
    assert_eq!(skipped(&guard).await, Some(Skipped::Failed));
    assert_eq!(stage.spare.status().state, Some(State::Open));
    assert_eq!(skipped(&guard).await, Some(Skipped::BreakerOpen));
    assert_eq!(stage.asked(), 1);
    // A call that needs it is its probe when one is due.
    *stage.says.lock() = Ok(3);
    stage.clock.advance(SECOND);
    assert_eq!(fail(&guard, Fail::Down).await.unwrap().value, 3);
    assert_eq!(stage.spare.status().state, Some(State::Closed));
}

#[tokio::test]
async fn e28_the_first_permit_is_given_back_before_the_alternate_is_asked() {
    let stage = Stage::new();
    let database = stage.engine.resource("db", 1).unwrap();
    let spare = stage
        .engine
        .dependency("replica")
        .uses(&database)
        .build()
        .unwrap();
    let seen = Arc::new(AtomicU32::new(9));
    let guard = stage
        .engine
        .read::<u32>("g")
        .uses(&database)
        .concurrency(1)
        .classify(Fail::class)
        .alternate(&spare, {
            let (seen, database) = (seen.clone(), database.clone());
            move |(), _key, _call| {
                seen.store(database.in_use(), Ordering::SeqCst);
                async { Ok(2) }
            }
        })
        .build()
        .unwrap();
    for owned in [false, true] {
        let end = if owned {
            guard.call_owned((), "k", |_| async { Err(Fail::Down) }).await
        } else {
            fail(&guard, Fail::Down).await
        };
        assert_eq!(end.unwrap().rung, Rung::Alternate);
        // With one permit for both, there is one in use: the alternate's.
        assert_eq!(seen.swap(9, Ordering::SeqCst), 1);
        assert_eq!((database.in_use(), guard.dependency().status().in_use), (0, 0));
    }
    // A resource that is used up is named as what it is.
    let origin = Origin::default();
    let other = stage
        .engine
        .read::<u32>("o")
        .uses(&database)
        .classify(Fail::class)
        .build()
        .unwrap();
    let mut busy = Box::pin(other.call((), "k", |_| origin.clone().ask(Ok(1))));
    assert!(poll(busy.as_mut()).is_pending());
    let refused = fail(&guard, Fail::Down).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "refused: at-capacity (alternate at-capacity)"
    );
}

#[tokio::test]
async fn case_027_time_is_kept_free_for_the_alternate_and_the_sum_stays_inside_the_deadline() {
    let stage = Stage::new();
    let guard = stage.guard(|b| b.timeout(5 * SECOND).deadline(SECOND), false);
    let origin = Origin::default();
    let call = tokio::spawn({
        let (guard, origin) = (guard.clone(), origin.clone());
        async move { guard.call((), "k", |_| origin.hang()).await }
    });
    settle().await;
    stage.clock.advance(700 * MS - NS);
    settle().await;
    assert_eq!((origin.inside(), stage.asked()), (1, 0));
    stage.clock.advance(NS);
    let answer = call.await.unwrap().unwrap();
    assert_eq!(
        (answer.rung, answer.reason),
        (Rung::Alternate, Some(Reason::TimedOut))
    );
    assert_eq!((origin.inside(), stage.asked()), (0, 1));
    // The deadline is the caller's: nobody is blamed for it.
    assert_eq!(guard.dependency().attempts(Class::OUTAGE), 1);
}

#[tokio::test]
async fn an_alternate_that_hangs_ends_at_its_own_timeout_and_the_ladder_goes_on() {
    let stage = Stage::new();
    let origin = Origin::default();
    let guard = stage
        .engine
        .read::<u32>("g")
        .deadline(SECOND)
        .classify(Fail::class)
        .alternate(&stage.spare, {
            let origin = origin.clone();
            move |(), _key, _call| origin.clone().hang()
        })
        .ladder([default(|| 0)])
        .build()
        .unwrap();
    let call = tokio::spawn({
        let guard = guard.clone();
        async move { fail(&guard, Fail::Down).await }
    });
    settle().await;
    stage.clock.advance(300 * MS - NS);
    settle().await;
    assert!(!call.is_finished());
    stage.clock.advance(NS);
    let answer = call.await.unwrap().unwrap();
    assert_eq!(
        (answer.rung, answer.reason),
        (Rung::Default, Some(Reason::DependencyFailed))
    );
    assert_eq!(stage.spare.attempts(Class::OUTAGE), 1);
    assert_eq!((origin.inside(), stage.spare.status().in_use), (0, 0));
}

#[tokio::test]
async fn who_leaves_while_the_alternate_is_asked_leaves_nothing_behind_and_blames_nobody() {
    for polls in 1..4 {
        let stage = Stage::new();
        let origin = Origin::default();
        let guard = stage
            .engine
            .read::<u32>("g")
            .classify(Fail::class)
            .alternate(&stage.spare, {
                let origin = origin.clone();
                move |(), _key, _call| origin.clone().ask(Ok(2))
            })
            .build()
            .unwrap();
        let mut call = Box::pin(fail(&guard, Fail::Down));
        for _ in 0..polls {
            assert!(poll(call.as_mut()).is_pending());
        }
        assert_eq!((origin.inside(), stage.spare.status().in_use), (1, 1));
        drop(call);
        assert_eq!((origin.inside(), stage.spare.status().in_use), (0, 0));
        assert_eq!(guard.counts().total(Ending::Abandoned), 1);
        assert_eq!(guard.counts().calls(), 1);
        assert_eq!(stage.spare.attempts(Class::Cancelled), 1);
        assert_eq!(stage.spare.status().state, Some(State::Closed));
        assert_eq!(
            (
                stage.clock.sleepers(),
                Handle::current().metrics().num_alive_tasks()
            ),
            (0, 0)
        );
    }
}

#[tokio::test]
async fn an_alternate_whose_code_breaks_breaks_its_call_and_is_its_failure() {
    let stage = Stage::new();
    let guard = stage
        .engine
        .read::<u32>("g")
        .classify(Fail::class)
        .alternate(&stage.spare, |(), _key, _call| async {
            panic!("the wrapped code breaks, as this test wants")
        })
        .build()
        .unwrap();
    let broken = tokio::spawn({
        let guard = guard.clone();
        async move { fail(&guard, Fail::Down).await }
    });
    assert!(broken.await.unwrap_err().is_panic());
    assert_eq!(guard.counts().get(Ending::Failed, Some(Reason::Fault)), 1);
    assert_eq!(
        (stage.spare.status().in_use, stage.spare.attempts(Class::Fault)),
        (0, 1)
    );
    assert_eq!(stage.spare.status().state, Some(State::Open));
}

#[tokio::test]
async fn every_kind_of_miss_leads_to_the_alternate() {
    let stage = Stage::new();
    let guard = stage.guard(|b| b.coalesce().breaker(|b| b.consecutive(1)), false);
    let owned = async |guard: &Read<u32, Fail>| {
        let end = guard
            .call_owned((), "k", |_| async { Err(Fail::Down) })
            .await
            .unwrap();
        (end.rung, end.reason)
    };
    assert_eq!(
        owned(&guard).await,
        (Rung::Alternate, Some(Reason::DependencyFailed))
    );
    assert_eq!(owned(&guard).await, (Rung::Alternate, Some(Reason::BreakerOpen)));
    guard
        .hold(Hold {
            mode: HoldMode::ForcedOpen,
            by: "ana".into(),
            why: "test".into(),
            lasts: None,
        })
        .unwrap();
    assert_eq!(owned(&guard).await, (Rung::Alternate, Some(Reason::Held)));
    assert_eq!(fail(&guard, Fail::Down).await.unwrap().rung, Rung::Alternate);
    assert_eq!(stage.asked(), 4);
}

#[tokio::test]
async fn an_exact_guard_may_have_an_alternate_and_nothing_else() {
    let stage = Stage::new();
    let guard = stage.guard(Builder::exact, false);
    assert_eq!(fail(&guard, Fail::Down).await.unwrap().rung, Rung::Alternate);
    let with_default = stage.on(stage.engine.read::<u32>("g").classify(Fail::class).exact());
    assert!(with_default.ladder([default(|| 0)]).build().is_err());
}

#[tokio::test]
async fn an_answer_of_the_alternate_that_flows_is_counted_when_it_ends() {
    for (cut, ending) in [(false, Ending::Answered(Rung::Alternate)), (true, Ending::Cut)] {
        let stage = Stage::new();
        let flows: Arc<Mutex<Option<Permit<'static>>>> = Arc::default();
        let guard = stage
            .engine
            .read::<u32>("g")
            .classify(Fail::class)
            .alternate_work(&stage.spare, {
                let flows = flows.clone();
                move |(), _key, _call, permit| {
                    *flows.lock() = permit;
                    async { Ok(2) }
                }
            })
            .build()
            .unwrap();
        assert_eq!(fail(&guard, Fail::Down).await.unwrap().rung, Rung::Alternate);
        assert_eq!((guard.counts().calls(), stage.spare.status().in_use), (0, 1));
        let permit = flows.lock().take().unwrap();
        if cut {
            permit.cut();
        } else {
            drop(permit);
        }
        assert_eq!((guard.counts().calls(), stage.spare.status().in_use), (1, 0));
        assert_eq!(guard.counts().total(ending), 1);
        let reason = (!cut).then_some(Reason::DependencyFailed);
        assert_eq!(guard.counts().get(ending, reason), 1);
    }
}

#[tokio::test]
async fn the_alternate_is_told_whose_data_is_asked_for() {
    let stage = Stage::new();
    let guard = stage
        .engine
        .read::<String>("g")
        .scope::<(&str,)>()
        .classify(Fail::class)
        .alternate(&stage.spare, |(tenant,), key, call| {
            assert_eq!(call.remaining(), 300 * MS);
            let said = format!("{tenant}/{}", String::from_utf8_lossy(key));
            async move { Ok(said) }
        })
        .build()
        .unwrap();
    let answer = guard
        .call(("acme",), "42", |_| async { Err(Fail::Down) })
        .await
        .unwrap();
    assert_eq!(answer.value, "acme/42");
}

#[test]
fn an_alternate_that_could_not_help_is_refused_with_its_place() {
    let stage = Stage::new();
    let problems = |builder: AlternateBuilder<u32, Fail>| builder.build().unwrap_err().to_string();
    let start = |engine: &Engine| engine.read::<u32>("g").classify(Fail::class);
    let ask = |(): &(), _: &[u8], _: evenkeel::Call<'static>| async { Ok(2) };
    let (_, other) = engine();
    assert_eq!(
        problems(start(&other).alternate(&stage.spare, ask)),
        "alternate: `spare`, a dependency of another engine; allowed: a dependency of the engine that this guard is of: \
         they share its clock and its events; build both from one engine, or from clones of it"
    );
    assert_eq!(
        problems(
            start(&stage.engine)
                .from(&stage.spare)
                .alternate(&stage.spare, ask)
        ),
        "alternate: `spare`, the dependency that could not answer; allowed: another dependency; choose another, or remove \
         the rung: to ask once more is a retry"
    );
    assert_eq!(
        problems(
            start(&stage.engine)
                .deadline(300 * MS)
                .alternate(&stage.spare, ask)
        ),
        "read.ladder[0].alternate: a timeout of 300ms, and the deadline ends the call after 300ms; allowed: a timeout \
         shorter than the deadline: it is kept free while the rungs above are tried; lower that timeout, or raise the \
         deadline: as it stands no time is left for the first attempt"
    );
    let untimed = stage.engine.dependency("untimed").build().unwrap();
    assert_eq!(
        problems(start(&stage.engine).deadline(SECOND).alternate(&untimed, ask)),
        "read.ladder[0].alternate: no timeout; allowed: a dependency with a timeout, beside a deadline: it says how much \
         time is kept free; declare `timeout` on the alternate dependency"
    );
}
