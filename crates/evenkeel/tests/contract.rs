//! Contracts: every setting does something, and everything wrong is told at once.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

mod support;

use std::{collections::BTreeSet, fmt::Write as _, time::Duration};

use evenkeel::{
    Advice, BreakerBuilder, Class, Criticality, DependencyBuilder, Engine, Exercised, Hold, HoldMode, Keep,
    LimitRules, ManualClock, Memory, Over, Problem, RampRules, Read, ReadBuilder, RetryRules, Row, Rung,
    Terms, Verdict, WhenBusy, default, stale,
};
use support::{Fail, MS, Origin, SECOND, engine, settle, wall};

type Builder = ReadBuilder<u32, evenkeel::Classifier<Fail>>;
type Change = fn(&Engine, Builder) -> Builder;

/// Lives through a day of everything that can happen to a guard, and writes it down.
async fn day(clock: &ManualClock, guard: &Read<u32, Fail>) -> String {
    let mut diary = String::new();
    let origin = Origin::default();
    let mut note = |what: &str, seen: &dyn std::fmt::Debug| {
        let dependency = guard.dependency().status();
        let memory = (guard.memory().count(), guard.memory().bytes());
        writeln!(diary, "{what}: {seen:?} {dependency:?} {memory:?}").unwrap();
    };
    for (what, says) in [
        ("a success", Ok(5)),
        ("an outage", Err(Fail::Down)),
        ("a busy answer", Err(Fail::Busy)),
        ("a success after it", Ok(6)),
        ("another outage", Err(Fail::Down)),
    ] {
        let end = guard.call((), "k", |_| origin.clone().ask_now(says)).await;
        note(what, &(end, guard.dependency().hushed_until()));
    }
    let repeated = tokio::spawn({
        let (guard, origin) = (guard.clone(), origin.clone());
        let work = move |_| origin.clone().ask_now(Err(Fail::Down));
        async move { guard.call_repeatable((), "again", work).await }
    });
    settle().await;
    clock.advance(60 * SECOND);
    note(
        "one that may be repeated",
        &(repeated.await, guard.dependency().retries()),
    );
    note("how much it matters", &guard.criticality());
    clock.advance(30 * SECOND);
    let slow = tokio::spawn({
        let (guard, origin) = (guard.clone(), origin.clone());
        async move { guard.call((), "k", |_| origin.ask(Ok(7))).await }
    });
    settle().await;
    note("a slow call starts", &origin.asked());
    clock.advance(900 * MS);
    settle().await;
    note("0.9 seconds later", &slow.is_finished());
    origin.open();
    note("it ends", &slow.await);
    let together: Vec<_> = (0..4)
        .map(|number| {
            let (guard, origin) = (guard.clone(), origin.clone());
            tokio::spawn(async move { guard.call_owned((), "k", move |_| origin.ask(Ok(number))).await })
        })
        .collect();
    settle().await;
    note("four at once", &origin.inside());
    clock.advance(200 * MS);
    settle().await;
    note("0.2 seconds later", &origin.inside());
    for round in 0..4 {
        origin.open();
        settle().await;
        note("their gate opens", &(round, origin.inside()));
    }
    for call in together {
        note("one of the four", &call.await);
    }
    for (what, says) in [
        ("an outage alone", Err(Fail::Down)),
        ("a success at once after it", Ok(8)),
    ] {
        let origin = origin.clone();
        let end = guard.call_owned((), "k", move |_| origin.ask_now(says)).await;
        note(what, &end);
    }
    let hold = Hold {
        mode: HoldMode::StaleOnly,
        by: "ana".into(),
        why: "a test".into(),
        lasts: None,
    };
    note("a hold", &guard.hold(hold).is_ok());
    note(
        "exercises",
        &Exercised::ALL.map(|end| guard.counts().exercises(Rung::Default, end)),
    );
    diary
}

async fn day_of(change: impl FnOnce(&Engine, Builder) -> Builder) -> String {
    let (clock, engine) = engine();
    let guard = change(&engine, engine.read::<u32>("g").classify(Fail::class))
        .build()
        .unwrap();
    day(&clock, &guard).await
}

const ONE_AT_FIRST: LimitRules = LimitRules {
    cold: 1,
    ..LimitRules::DEFAULT
};

/// Each setting of a guard: what has to be there for it to matter, and the setting itself.
const SETTINGS: &[(&str, Change, Change)] = &[
    ("timeout", |_, b| b, |_, b| b.timeout(500 * MS)),
    ("concurrency", |_, b| b, |_, b| b.concurrency(2)),
    ("breaker", |_, b| b, |_, b| b.breaker(|b| b.consecutive(1))),
    (
        "ramp",
        |_, b| b.breaker(|b| b.consecutive(1)),
        |_, b| b.breaker(|b| b.consecutive(1)).ramp([50, 100]),
    ),
    (
        "ramp_rules",
        |_, b| b.breaker(|b| b.consecutive(1)),
        |_, b| b.breaker(|b| b.consecutive(1)).ramp_rules(RampRules::default()),
    ),
    ("learned_limit", |_, b| b, |_, b| b.learned_limit(ONE_AT_FIRST)),
    ("retry", |_, b| b, |_, b| b.retry(RetryRules::DEFAULT)),
    (
        "queue",
        |_, b| b.concurrency(1),
        |_, b| b.concurrency(1).queue(4, 60 * SECOND),
    ),
    (
        "abandoned",
        |_, b| b.timeout(500 * MS),
        |_, b| b.timeout(500 * MS).abandoned(1),
    ),
    (
        "criticality",
        |_, b| b,
        |_, b| b.criticality(Criticality::Sheddable),
    ),
    (
        "advice",
        |_, b| b,
        |_, b| b.advice(|_| Advice::After(20 * SECOND)),
    ),
    (
        "advice_of",
        |_, b| b.class_of(|_| Class::Busy),
        |_, b| b.advice_of(|_| Advice::After(20 * SECOND)),
    ),
    (
        "uses",
        |_, b| b,
        |engine, b| b.uses(&engine.resource("r", 2).unwrap()),
    ),
    (
        "row",
        |_, b| b.ladder([default(|| 1)]),
        |_, b| {
            b.row(
                Class::Busy,
                Row {
                    breaker: Verdict::Neutral,
                    lower_rung: true,
                },
            )
        },
    ),
    (
        "from",
        |_, b| b,
        |engine, b| b.from(&engine.dependency("d").concurrency(2).build().unwrap()),
    ),
    ("deadline", |_, b| b, |_, b| b.deadline(500 * MS)),
    ("fresh_for", |_, b| b, |_, b| b.fresh_for(SECOND)),
    ("ladder", |_, b| b, |_, b| b.ladder([default(|| 1)])),
    ("exact", |_, b| b, |_, b| b.exact()),
    (
        "when_busy",
        |_, b| b.concurrency(1).ladder([default(|| 1)]),
        |_, b| b.when_busy(WhenBusy::Refuse),
    ),
    (
        "keep_if",
        |_, b| b.ladder([stale(60 * SECOND)]),
        |_, b| b.keep_if(|value| *value == 5),
    ),
    (
        "terms",
        |_, b| b.ladder([stale(60 * SECOND)]),
        |_, b| {
            b.terms(|_| Terms {
                keep: Keep::Remove,
                ..Terms::default()
            })
        },
    ),
    (
        "class_of",
        |_, b| b.ladder([stale(60 * SECOND)]),
        |_, b| b.class_of(|_| Class::Gone),
    ),
    (
        "memory",
        |_, b| b.ladder([stale(60 * SECOND)]),
        |_, b| b.memory(&Memory::new(0)),
    ),
    (
        "weigh",
        |_, b| b.ladder([stale(60 * SECOND)]),
        |_, b| b.weigh(|_| 1000),
    ),
    ("coalesce", |_, b| b, |_, b| b.coalesce()),
    ("share_if", |_, b| b.coalesce(), |_, b| b.share_if(|_| false)),
    (
        "stale_while_revalidate",
        |_, b| b.fresh_for(500 * MS).ladder([stale(60 * SECOND)]),
        |_, b| b.stale_while_revalidate(SECOND),
    ),
    (
        "own_lifetimes",
        |_, b| {
            b.ladder([stale(60 * SECOND)]).terms(|_| Terms {
                lifetime: Some(SECOND),
                ..Terms::default()
            })
        },
        |_, b| b.own_lifetimes(),
    ),
    (
        "refresh_ahead",
        |_, b| b.fresh_for(SECOND),
        |_, b| b.refresh_ahead(),
    ),
    ("jitter", |_, b| b.fresh_for(SECOND), |_, b| b.jitter(500_000)),
    (
        "exercise",
        |_, b| b.concurrency(1).ladder([default(|| 1)]),
        |_, b| b.exercise(1_000_000, |_, _, _| true),
    ),
    ("cool_down", |_, b| b.coalesce(), |_, b| b.cool_down(SECOND)),
    (
        "finish_within",
        |_, b| b.concurrency(8).timeout(100 * MS).ladder([stale(60 * SECOND)]),
        |_, b| b.finish_within(SECOND),
    ),
    (
        "soft_timeout",
        |_, b| b.timeout(2 * SECOND).ladder([stale(60 * SECOND)]),
        |_, b| b.soft_timeout(100 * MS),
    ),
];

/// Settings that change the type of the contract, which a list of one type cannot hold. They have tests below.
const TYPED: &[&str] = &["classify", "scope"];

#[tokio::test]
async fn every_setting_of_a_guard_makes_a_difference() {
    for (name, before, setting) in SETTINGS {
        let without = day_of(before).await;
        assert_eq!(
            without,
            day_of(before).await,
            "the day is the same when {name} is"
        );
        let with = day_of(|engine, builder| setting(engine, before(engine, builder))).await;
        assert_ne!(without, with, "{name} changes nothing");
    }
}

#[tokio::test]
async fn the_classifier_makes_a_difference() {
    let (clock, engine) = engine();
    let strict = engine
        .read::<u32>("g")
        .classify(|_: &Fail| Class::Fault)
        .build()
        .unwrap();
    assert_ne!(day(&clock, &strict).await, day_of(|_, b| b).await);
}

#[tokio::test]
async fn the_scope_makes_a_difference() {
    let (clock, engine) = engine();
    let guard = engine
        .read::<u32>("g")
        .scope::<(&str,)>()
        .classify(Fail::class)
        .ladder([stale(SECOND)])
        .build()
        .unwrap();
    guard.seed(("acme",), "k", 1, Some(wall(&clock))).unwrap();
    let other = guard.call(("other",), "k", |_| async { Err(Fail::Down) }).await;
    let own = guard.call(("acme",), "k", |_| async { Err(Fail::Down) }).await;
    assert_eq!((other.is_ok(), own.is_ok()), (false, true));
}

type DependencyChange = fn(&Engine, DependencyBuilder) -> DependencyBuilder;

const OF_DEPENDENCIES: &[(&str, DependencyChange)] = &[
    ("timeout", |_, b| b.timeout(500 * MS)),
    ("concurrency", |_, b| b.concurrency(2)),
    ("breaker", |_, b| b.breaker(|b| b.consecutive(1))),
    ("ramp", |_, b| b.breaker(|b| b.consecutive(1)).ramp([50, 100])),
    ("ramp_rules", |_, b| {
        b.breaker(|b| b.consecutive(1)).ramp_rules(RampRules::default())
    }),
    ("learned_limit", |_, b| b.learned_limit(ONE_AT_FIRST)),
    ("retry", |_, b| b.retry(RetryRules::DEFAULT)),
    ("queue", |_, b| b.concurrency(1).queue(4, 60 * SECOND)),
    ("abandoned", |_, b| b.timeout(500 * MS).abandoned(1)),
    ("uses", |engine, b| b.uses(&engine.resource("r", 2).unwrap())),
    ("row", |_, b| {
        b.row(
            Class::Refusal,
            Row {
                breaker: Verdict::Failure,
                lower_rung: false,
            },
        )
    }),
];

#[tokio::test]
async fn every_setting_of_a_dependency_makes_the_same_difference_as_on_a_guard_of_its_own() {
    for (name, setting) in OF_DEPENDENCIES {
        if *name == "row" {
            continue; // see the next test
        }
        let shared = day_of(|engine, b| b.from(&setting(engine, engine.dependency("g")).build().unwrap()));
        let own: Change = SETTINGS.iter().find(|(other, ..)| other == name).unwrap().2;
        let (shared, own) = (shared.await, day_of(own).await);
        assert_ne!(shared, day_of(|_, b| b).await, "{name} changes nothing");
        assert_eq!(shared, own, "{name}");
    }
}

#[tokio::test]
async fn the_row_of_a_dependency_makes_a_difference() {
    let (_, engine) = engine();
    let (_, setting) = OF_DEPENDENCIES.iter().find(|(name, _)| *name == "row").unwrap();
    let dependency = engine.dependency("d").breaker(|b| b.consecutive(1));
    let dependency = setting(&engine, dependency).build().unwrap();
    let guard = engine
        .read::<u32>("g")
        .from(&dependency)
        .classify(Fail::class)
        .build()
        .unwrap();
    drop(guard.call((), "k", |_| async { Err(Fail::No) }).await);
    assert_eq!(dependency.status().state, Some(evenkeel::State::Open));
}

type BreakerChange = fn(BreakerBuilder) -> BreakerBuilder;

const OF_BREAKERS: &[(&str, BreakerChange, BreakerChange)] = &[
    ("consecutive", |b| b.consecutive(100), |b| b.consecutive(1)),
    (
        "failure_ratio",
        |b| b.consecutive(100),
        |b| b.failure_ratio(1, SECOND, 1),
    ),
    (
        "failure_ratio_over",
        |b| b.consecutive(100),
        |b| b.failure_ratio_over(1, Over::Calls(5), 1),
    ),
    (
        "slow_ratio",
        |b| b.consecutive(100),
        |b| b.slow_ratio(MS, 1, Over::Calls(5), 1),
    ),
    (
        "open_for",
        |b| b.consecutive(1),
        |b| b.open_for(60 * SECOND, 60 * SECOND),
    ),
    ("jitter", |b| b.consecutive(1), |b| b.jitter(0)),
    (
        "open_until_probed",
        |b| b.consecutive(1),
        |b| b.open_until_probed(),
    ),
    ("probes", |b| b.consecutive(1).close_after(2), |b| b.probes(2)),
    ("close_after", |b| b.consecutive(1), |b| b.close_after(2)),
    ("lease", |b| b.consecutive(1), |b| b.lease(10 * SECOND)),
];

#[tokio::test]
async fn every_setting_of_a_breaker_makes_a_difference() {
    for (name, before, setting) in OF_BREAKERS {
        let without = day_of(|_, b| b.breaker(before)).await;
        let with = day_of(|_, b| b.breaker(|b| setting(before(b)))).await;
        assert_ne!(without, with, "{name} changes nothing");
    }
}

/// The settings that a builder has: its public functions that take it by value, but not `build`.
fn settings_of(source: &str, builder: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut inside = false;
    let mut rest = source;
    while let Some((line, after)) = rest.split_once('\n') {
        if let Some(head) = line.strip_prefix("impl") {
            inside = head.split(['<', ' ', '>']).any(|word| word == builder);
        }
        let name = line
            .strip_prefix("    pub fn ")
            .or_else(|| line.strip_prefix("    pub const fn "))
            .and_then(|name| name.split(['(', '<']).next());
        if let Some(name) = name.filter(|name| inside && *name != "build") {
            let signature = rest.split('{').next().unwrap_or_default();
            let by_value = signature.contains("self") && !signature.contains("&self");
            assert!(by_value, "{name} is neither a setting nor `build`");
            found.insert(name.to_owned());
        }
        rest = after;
    }
    found
}

#[test]
fn no_setting_is_missing_from_the_lists_above() {
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    let read = concat!(
        include_str!("../src/read/builder.rs"),
        include_str!("../src/read/build_refresh.rs"),
        include_str!("../src/read/exercise.rs"),
    );
    let dependency = concat!(
        include_str!("../src/dependency.rs"),
        include_str!("../src/dependency/load.rs"),
    );
    let listed: Vec<_> = SETTINGS
        .iter()
        .map(|(name, ..)| *name)
        .chain(TYPED.iter().copied())
        .collect();
    assert_eq!(settings_of(read, "ReadBuilder"), names(&listed));
    let listed: Vec<_> = OF_DEPENDENCIES.iter().map(|(name, _)| *name).collect();
    assert_eq!(settings_of(dependency, "DependencyBuilder"), names(&listed));
    let listed: Vec<_> = OF_BREAKERS.iter().map(|(name, ..)| *name).collect();
    let breaker = include_str!("../src/breaker.rs");
    assert_eq!(settings_of(breaker, "BreakerBuilder"), names(&listed));
}

/// Checks how a problem is told: nothing empty, lower case, no full stop.
fn assert_well_told(problem: &Problem) {
    let Problem {
        place,
        seen,
        allowed,
        mend,
        ..
    } = problem;
    for text in [place, seen, allowed, mend] {
        assert!(!text.is_empty() && !text.ends_with('.'), "{problem}");
        // Names of types and ranges of letters may stand in it; a sentence may not.
        assert!(!text.starts_with(char::is_uppercase), "{problem}");
    }
}

fn places(problems: &evenkeel::Problems) -> Vec<&str> {
    problems.list().iter().map(|problem| &*problem.place).collect()
}

#[test]
fn everything_wrong_with_a_guard_is_told_at_once_and_each_thing_once() {
    let (_, engine) = engine();
    let database = engine.resource("db", 1).unwrap();
    let problems = engine
        .read::<u32>("not a name")
        .timeout(Duration::ZERO)
        .concurrency(0)
        .breaker(|b| {
            b.failure_ratio(0, Duration::ZERO, 0)
                .open_for(2 * SECOND, SECOND)
                .jitter(500_001)
                .probes(0)
                .close_after(0)
                .lease(Duration::ZERO)
        })
        .uses(&database)
        .uses(&database)
        .row(
            Class::Fault,
            Row {
                breaker: Verdict::Neutral,
                lower_rung: true,
            },
        )
        .classify(Fail::class)
        .deadline(Duration::from_secs(3601))
        .fresh_for(Duration::ZERO)
        .ladder([default(|| 1), stale(Duration::ZERO), default(|| 2)])
        .exact()
        .coalesce()
        .build()
        .unwrap_err();
    problems.list().iter().for_each(assert_well_told);
    let mut told = places(&problems);
    told.sort_unstable();
    let mut expected = [
        "read.name",
        "read.deadline",
        "read.fresh_for",
        "read.fresh_for",
        "read.coalesce",
        "read.ladder[0]",
        "read.ladder[0]",
        "read.ladder[1]",
        "read.ladder[1].stale",
        "read.ladder[2]",
        "read.ladder[2]",
        "dependency.timeout",
        "dependency.concurrency",
        "dependency.breaker.failure_ratio (parts per million)",
        "dependency.breaker.window",
        "dependency.breaker.min_calls",
        "dependency.breaker.open_for_max",
        "dependency.breaker.jitter (parts per million)",
        "dependency.breaker.probes",
        "dependency.breaker.close_after",
        "dependency.breaker.lease",
        "dependency.classification",
        "dependency.uses[1]",
    ];
    expected.sort_unstable();
    assert_eq!(told, expected, "\n{problems}\n");
}

#[test]
fn settings_that_contradict_each_other_are_told() {
    let (_, engine) = engine();
    let dependency = engine.dependency("d").build().unwrap();
    let start = || engine.read::<u32>("g").classify(Fail::class);
    for (contradiction, place) in [
        (start().exact().ladder([stale(SECOND)]), "read.ladder[0]"),
        (start().exact().ladder([default(|| 1)]), "read.ladder[0]"),
        (start().exact().fresh_for(SECOND), "read.fresh_for"),
        (start().exact().coalesce(), "read.coalesce"),
        (start().share_if(|_| true), "share_if"),
        (start().from(&dependency).timeout(SECOND), "from"),
        (start().from(&dependency).concurrency(1), "from"),
        (start().from(&dependency).breaker(|b| b.consecutive(1)), "from"),
        (
            start().from(&dependency).uses(&engine.resource("r", 1).unwrap()),
            "from",
        ),
        (
            start().from(&dependency).row(
                Class::Busy,
                Row {
                    breaker: Verdict::Neutral,
                    lower_rung: true,
                },
            ),
            "from",
        ),
        (
            start().from(&support::engine().1.dependency("d").build().unwrap()),
            "from",
        ),
        (start().keep_if(|_| true), "keep_if"),
        (start().coalesce().terms(|_| Terms::default()), "terms"),
        (start().exact().memory(&Memory::new(1 << 20)), "memory"),
        (start().ladder([default(|| 1)]).weigh(|_| 1), "weigh"),
        (
            start().fresh_for(2 * SECOND).ladder([stale(SECOND)]),
            "read.fresh_for",
        ),
        (start().breaker(|b| b), "dependency.breaker"),
        (
            start()
                .timeout(2 * SECOND)
                .breaker(|b| b.consecutive(1).lease(SECOND)),
            "dependency.breaker.lease",
        ),
    ] {
        let problems = contradiction.build().unwrap_err();
        problems.list().iter().for_each(assert_well_told);
        assert_eq!(places(&problems), [place], "\n{problems}\n");
    }
}

#[test]
fn each_limit_is_accepted_and_one_past_it_is_not() {
    let (_, engine) = engine();
    let hour = Duration::from_secs(3600);
    let year = Duration::from_secs(365 * 86_400);
    let ns = Duration::from_nanos(1);
    let ms = Duration::from_millis(1);
    let start = || engine.read::<u32>("g").classify(Fail::class);
    for (value, fits) in [(ms - ns, false), (ms, true), (hour, true), (hour + ns, false)] {
        assert_eq!(start().timeout(value).build().is_ok(), fits, "timeout {value:?}");
        assert_eq!(
            start().deadline(value).build().is_ok(),
            fits,
            "deadline {value:?}"
        );
    }
    for (value, fits) in [(ms - ns, false), (ms, true), (year, true), (year + ns, false)] {
        assert_eq!(
            start().fresh_for(value).build().is_ok(),
            fits,
            "fresh_for {value:?}"
        );
    }
    for (value, fits) in [
        (Duration::ZERO, false),
        (ns, true),
        (year, true),
        (year + ns, false),
    ] {
        assert_eq!(
            start().ladder([stale(value)]).build().is_ok(),
            fits,
            "stale {value:?}"
        );
    }
    for (value, fits) in [(0, false), (1, true), (1_000_000, true), (1_000_001, false)] {
        assert_eq!(
            start().concurrency(value).build().is_ok(),
            fits,
            "concurrency {value}"
        );
        assert_eq!(engine.resource("r", value).is_ok(), fits, "resource {value}");
    }
    for (name, fits) in [
        (String::new(), false),
        ("a".repeat(64), true),
        ("a".repeat(65), false),
        ("home/recs-2_x.y".to_owned(), true),
        ("naïve".to_owned(), false),
        ("a b".to_owned(), false),
    ] {
        assert_eq!(
            engine.read::<u32>(&name).classify(Fail::class).build().is_ok(),
            fits,
            "{name:?}"
        );
        assert_eq!(engine.dependency(&name).build().is_ok(), fits, "{name:?}");
        assert_eq!(engine.resource(&name, 1).is_ok(), fits, "{name:?}");
    }
}

#[tokio::test]
async fn the_order_of_a_breakers_settings_does_not_matter() {
    let jitter_last = day_of(|_, b| b.breaker(|b| b.consecutive(1).open_for(SECOND, SECOND).jitter(0))).await;
    let jitter_first =
        day_of(|_, b| b.breaker(|b| b.jitter(0).open_for(SECOND, SECOND).consecutive(1))).await;
    assert_eq!(jitter_last, jitter_first);
}
