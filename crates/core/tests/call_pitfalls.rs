//! How existing systems got blame, ages and fallbacks wrong, as far as the pure rules can show it: one test per
//! pitfall, named after its id and after what holds here.
#![cfg(not(loom))]

use core::time::Duration;

use evenkeel_core::{
    Class, Deadline, Facts, HoldMode, Keep, Limit, Mono, Now, Outage, ReadCall, ReadContract, ReadDraft,
    Reason, Rung, RungRule, Skipped, Step, Table, Verdict, Wall, WhenBusy, replaces,
};

const NS: Duration = Duration::from_nanos(1);
const S: Duration = Duration::from_secs(1);
const MAX_AGE: Duration = Duration::from_secs(60);

#[test]
fn e18_e19_a_caller_who_leaves_is_neither_a_failure_nor_a_success() {
    let row = Table::default().row(Class::Cancelled);
    assert_eq!(row.breaker, Verdict::Neutral);
    assert!(!row.lower_rung, "nobody is there to be answered");
    assert!(Table::is_fixed(Class::Cancelled));
}

#[test]
fn e21_a_callers_short_deadline_is_not_blamed_on_the_dependency() {
    let start = Mono::ORIGIN;
    let blamed = [S - NS, S, S + NS].map(|span| {
        let deadline = Deadline::fix(start, Some(span));
        deadline.attempt(start, Some(S)).blames_the_dependency()
    });
    assert_eq!(blamed, [false, true, true]);
}

fn contract(ladder: &[RungRule]) -> ReadContract {
    let draft = ReadDraft {
        name: "stock".into(),
        ladder: ladder.to_vec(),
        ..ReadDraft::default()
    };
    draft.check().expect("a sound draft")
}

const BOTH: [RungRule; 2] = [RungRule::Stale { max_age: MAX_AGE }, RungRule::Default];

/// One call whose attempt ends in `class` and which finds `snapshot`, with the call itself to be asked.
fn call(
    contract: &ReadContract,
    class: Class,
    snapshot: Option<Facts>,
    now: Mono,
) -> (Step, Vec<(Rung, Skipped)>, Option<Reason>) {
    let table = Table::default();
    let (mut call, first) = ReadCall::begin(contract, &table, Some(S), None, now);
    assert_eq!(first, Step::Admit);
    assert!(matches!(call.admitted(now), Step::Attempt(Limit::Timeout(_))));
    let mut step = call.attempted(class, false);
    if step == Step::Look {
        step = call.found(snapshot, now);
    }
    (step, call.skips().iter().collect(), call.reason())
}

fn observed(at: Mono) -> Facts {
    Facts {
        observed: Some(at),
        ..Facts::default()
    }
}

#[test]
fn e24_an_error_that_no_classifier_knows_is_shown_as_a_fault() {
    let (step, _, reason) = call(&contract(&BOTH), Class::Fault, None, Mono::ORIGIN);
    assert_eq!((step, reason), (Step::Fail, Some(Reason::Fault)));
}

#[test]
fn e37_e38_neither_failed_refreshes_nor_reads_make_data_younger() {
    let contract = contract(&BOTH[..1]);
    let facts = observed(Mono::ORIGIN);
    for seconds in 0..=60 {
        let age = seconds * S;
        let (step, ..) = call(&contract, Class::OUTAGE, Some(facts), Mono::ORIGIN.after(age));
        assert_eq!(step, Step::Serve(Rung::Stale, Some(age)));
    }
    let past = Mono::ORIGIN.after(MAX_AGE + NS);
    let (step, skips, _) = call(&contract, Class::OUTAGE, Some(facts), past);
    assert_eq!(
        (step, skips),
        (Step::Refuse, vec![(Rung::Stale, Skipped::TooOld)])
    );
}

#[test]
fn e39_a_copy_carries_its_time_and_its_own_limit_to_another_machine() {
    let wall = |secs: i64| Wall::from_nanos(secs * 1_000_000_000);
    let at = |secs: i64| Mono::from_nanos(secs * 1_000_000_000);
    let here = Now {
        mono: at(500),
        wall: wall(10_000),
    };
    let there = Now {
        mono: at(7),
        wall: wall(10_000),
    };
    let facts = Facts {
        own_limit: Some(40 * S),
        ..observed(at(470))
    };
    let dated = here.wall_of(at(470));
    let copied = Facts {
        observed: Some(there.mono_of(dated)),
        ..facts
    };
    assert_eq!(
        copied.stale(MAX_AGE, there.mono),
        Ok(30 * S),
        "older than that machine's clock"
    );
    assert_eq!(copied.stale(MAX_AGE, there.mono.after(10 * S)), Ok(40 * S));
    assert_eq!(
        copied.stale(MAX_AGE, there.mono.after(10 * S + NS)),
        Err(Skipped::TooOld)
    );
}

#[test]
fn e42_e59_old_data_never_hides_a_real_answer_and_one_table_says_so_to_everybody() {
    let now = Mono::ORIGIN;
    for class in Class::ALL {
        let (step, ..) = call(&contract(&BOTH), class, Some(observed(now)), now);
        let used_the_ladder = matches!(step, Step::Serve(Rung::Stale | Rung::Default, _));
        assert_eq!(
            used_the_ladder,
            Table::default().row(class).lower_rung,
            "{class:?}"
        );
        let expected = matches!(class, Class::Outage(_) | Class::Local);
        assert_eq!(used_the_ladder, expected, "{class:?}");
    }
}

#[test]
fn e43_every_kind_of_outage_may_use_the_stale_rung() {
    for kind in [Outage::Failed, Outage::TimedOut, Outage::Cut, Outage::ErrorAnswer] {
        let (step, _, reason) = call(
            &contract(&BOTH),
            Class::Outage(kind),
            Some(observed(Mono::ORIGIN)),
            Mono::ORIGIN,
        );
        assert_eq!(step, Step::Serve(Rung::Stale, Some(Duration::ZERO)));
        assert_eq!(reason, Some(kind.reason()));
    }
}

#[test]
fn e44_a_future_time_is_skipped_with_its_own_word_and_the_next_rung_answers() {
    let facts = observed(Mono::ORIGIN.after(NS));
    let (step, skips, _) = call(&contract(&BOTH), Class::OUTAGE, Some(facts), Mono::ORIGIN);
    assert_eq!(step, Step::Serve(Rung::Default, None));
    assert_eq!(skips, [(Rung::Stale, Skipped::FutureDated)]);
}

#[test]
fn e45_e46_a_load_that_began_before_a_purge_does_not_replace_its_tombstone() {
    let purged = Some(Mono::ORIGIN);
    assert!(!replaces(Some(Mono::ORIGIN.before(NS)), purged));
    assert!(replaces(Some(Mono::ORIGIN.after(NS)), purged));
    assert!(!replaces(None, purged));
}

#[test]
fn e48_a_default_has_no_age_so_nothing_can_store_it_as_data() {
    let (step, ..) = call(&contract(&BOTH[1..]), Class::OUTAGE, None, Mono::ORIGIN);
    let Step::Serve(rung, age) = step else {
        unreachable!("a default always answers");
    };
    assert!(rung.is_degraded());
    let stored_nonetheless = Facts {
        observed: age.map(|age| Mono::ORIGIN.before(age)),
        ..Facts::default()
    };
    assert_eq!(
        stored_nonetheless.stale(MAX_AGE, Mono::ORIGIN),
        Err(Skipped::UnknownAge)
    );
    assert_eq!(Keep::default(), Keep::Yes, "keeping is said of live answers only");
}

#[test]
fn e49_stale_is_labelled_stale_by_every_trigger() {
    let contract = contract(&BOTH);
    let table = Table::default();
    let facts = Some(observed(Mono::ORIGIN));
    for reason in [Reason::BreakerOpen, Reason::Ramping, Reason::AtCapacity] {
        let (mut call, _) = ReadCall::begin(&contract, &table, None, None, Mono::ORIGIN);
        assert_eq!(call.refused(reason), Step::Look);
        assert_eq!(
            call.found(facts, Mono::ORIGIN),
            Step::Serve(Rung::Stale, Some(Duration::ZERO))
        );
        assert_eq!(call.reason(), Some(reason));
    }
    for hold in [HoldMode::StaleOnly, HoldMode::ForcedOpen] {
        let (mut call, first) = ReadCall::begin(&contract, &table, None, Some(hold), Mono::ORIGIN);
        assert_eq!(first, Step::Look);
        assert_eq!(
            call.found(facts, Mono::ORIGIN),
            Step::Serve(Rung::Stale, Some(Duration::ZERO))
        );
        assert_eq!(call.reason(), Some(Reason::Held));
    }
}

#[test]
fn e57_the_first_error_and_every_skipped_rung_survive_to_the_ending() {
    let (step, skips, reason) = call(
        &contract(&BOTH[..1]),
        Class::Outage(Outage::Cut),
        None,
        Mono::ORIGIN,
    );
    assert_eq!(step, Step::Refuse);
    assert_eq!(reason, Some(Reason::Cut));
    assert_eq!(skips, [(Rung::Stale, Skipped::NoSnapshot)]);
    let (step, _, reason) = call(
        &contract(&BOTH[..1]),
        Class::Outage(Outage::ErrorAnswer),
        None,
        Mono::ORIGIN,
    );
    assert_eq!(
        (step, reason),
        (Step::Fail, Some(Reason::ErrorAnswer)),
        "an answer is handed on"
    );
}

#[test]
fn e59_a_guard_further_in_that_refused_is_named_as_a_refusal_not_as_an_error_answer() {
    let (step, _, reason) = call(&contract(&BOTH[..1]), Class::Local, None, Mono::ORIGIN);
    assert_eq!((step, reason), (Step::Refuse, Some(Reason::AtCapacity)));
    let strict = ReadDraft {
        name: "stock".into(),
        ladder: BOTH.to_vec(),
        when_busy: WhenBusy::Refuse,
        ..ReadDraft::default()
    };
    let strict = strict.check().expect("a sound draft");
    let (step, ..) = call(&strict, Class::Local, Some(observed(Mono::ORIGIN)), Mono::ORIGIN);
    assert_eq!(step, Step::Refuse, "`when_busy` holds for inner refusals too");
}

#[test]
fn e59_only_a_probe_that_the_breaker_counts_as_failed_is_called_failed() {
    let contract = contract(&BOTH);
    let mut table = Table::default();
    let mut row = table.row(Class::OUTAGE);
    for (breaker, reason) in [
        (Verdict::Failure, Reason::ProbeFailed),
        (Verdict::Neutral, Reason::DependencyFailed),
    ] {
        row.breaker = breaker;
        table.set(Class::OUTAGE, row);
        let (mut call, _) = ReadCall::begin(&contract, &table, None, None, Mono::ORIGIN);
        call.admitted(Mono::ORIGIN);
        call.attempted(Class::OUTAGE, true);
        assert_eq!(call.reason(), Some(reason));
    }
}
