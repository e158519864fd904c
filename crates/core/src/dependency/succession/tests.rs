//! Tests of succession: what stays, what changes at once, and that nothing changes before.

use super::*;
use crate::{
    Asker, BreakerRules, Class, DependencyDraft, Lane, LimitRules, OpenFor, Over, Pass, RampRules, Ratio,
    Reason, RetryRules, State,
    dependency::tests::OneThread,
    retry::{Advice, Failed},
};
use core::time::Duration;

type Seat = Dependency<OneThread<Steering>>;

const MS: Duration = Duration::from_millis(1);

fn at(millis: u32) -> Mono {
    Mono::ORIGIN.after(MS * millis)
}

fn breaker(rules: BreakerRules) -> DependencyDraft {
    DependencyDraft {
        name: "d".into(),
        breaker: Some(BreakerRules {
            open_for: OpenFor::Timed {
                first: MS * 1000,
                longest: MS * 1000,
                jitter_ppm: 0,
            },
            ..rules
        }),
        ..DependencyDraft::default()
    }
}

fn consecutive(failures: u32) -> DependencyDraft {
    breaker(BreakerRules {
        consecutive: Some(failures),
        ..BreakerRules::NONE
    })
}

fn first(draft: DependencyDraft) -> Seat {
    Dependency::new(draft.check().expect("the draft is valid"), Vec::new(), 1)
}

fn successor(of: &Seat, draft: DependencyDraft) -> Seat {
    of.successor(draft.check().expect("the draft is valid"), Vec::new())
}

fn follow(of: &Seat, draft: DependencyDraft, now: Mono) -> Seat {
    let next = successor(of, draft);
    next.take_over(2, now);
    next
}

fn admit(seat: &Seat, now: Mono) -> Result<Pass, Reason> {
    seat.admit(now, Asker::Traffic, false)
        .0
        .map_err(|refusal| refusal.reason)
}

fn end(seat: &Seat, pass: Pass, class: Class, now: Mono) {
    seat.settle(pass, class, true, Lane::new(0), now);
    seat.release();
}

fn ask(seat: &Seat, class: Class, now: Mono) {
    let pass = admit(seat, now).expect("it is let in");
    end(seat, pass, class, now);
}

#[test]
fn permits_of_old_calls_go_back_to_the_bulkhead_that_the_new_ones_use() {
    let with = |permits| DependencyDraft {
        concurrency: Some(permits),
        ..consecutive(5)
    };
    let old = first(with(3));
    let held: Vec<Pass> = (0..3)
        .map(|_| admit(&old, at(0)).expect("there is room"))
        .collect();
    let made = successor(&old, with(1));
    assert_eq!(
        old.bulkhead().map(Bulkhead::limit),
        Some(3),
        "nothing changes before it takes over"
    );
    made.take_over(2, at(0));
    for pass in held {
        assert_eq!(
            admit(&made, at(1)),
            Err(Reason::AtCapacity),
            "as many are in flight as before"
        );
        assert_eq!(
            admit(&old, at(1)),
            Err(Reason::AtCapacity),
            "nor by the old rules"
        );
        end(&old, pass, Class::Answer, at(1));
    }
    assert_eq!(made.in_flight(), Some(0));
    let only = admit(&made, at(2)).expect("all are back");
    assert_eq!(admit(&made, at(2)), Err(Reason::AtCapacity));
    end(&made, only, Class::Answer, at(2));
}

#[test]
fn failures_in_a_row_are_counted_on_by_the_new_rule() {
    let old = first(consecutive(5));
    ask(&old, Class::OUTAGE, at(0));
    let new = follow(&old, consecutive(2), at(1));
    assert_eq!(new.state(), Some(State::Closed));
    ask(&new, Class::OUTAGE, at(2));
    assert_eq!((new.state(), old.state()), (Some(State::Open), Some(State::Open)));
}

#[test]
fn an_open_breaker_stays_open_until_the_probe_that_was_due() {
    let old = first(consecutive(1));
    ask(&old, Class::OUTAGE, at(0));
    let due = old.next_probe();
    let new = follow(&old, consecutive(3), at(10));
    assert_eq!((new.state(), new.next_probe()), (Some(State::Open), due));
    assert_eq!(admit(&new, at(999)), Err(Reason::BreakerOpen));
    ask(&new, Class::Answer, at(1000));
    assert_eq!(
        (new.state(), old.state()),
        (Some(State::Closed), Some(State::Closed))
    );
}

#[test]
fn who_is_open_for_longer_than_the_new_rules_allow_is_probed_when_they_say() {
    let old = first(consecutive(1));
    ask(&old, Class::OUTAGE, at(0));
    let mut short = consecutive(1);
    if let Some(rules) = &mut short.breaker {
        rules.open_for = OpenFor::Timed {
            first: MS * 100,
            longest: MS * 100,
            jitter_ppm: 0,
        };
    }
    let new = follow(&old, short, at(10));
    assert_eq!(new.next_probe(), Some(at(110)));
}

#[test]
fn a_probe_of_the_old_one_closes_the_new_one_which_counts_by_its_own_window_from_then_on() {
    let old = first(consecutive(1));
    ask(&old, Class::OUTAGE, at(0));
    let probe = admit(&old, at(1000)).expect("a probe is due");
    let by_calls = breaker(BreakerRules {
        ratio: Some(Ratio {
            failures_ppm: 500_000,
            window: Over::Calls(4),
            min_calls: 4,
        }),
        ..BreakerRules::NONE
    });
    let new = follow(&old, by_calls, at(1001));
    assert_eq!(
        admit(&new, at(1002)),
        Err(Reason::BreakerOpen),
        "the one place for a probe is taken"
    );
    end(&old, probe, Class::Answer, at(1003));
    assert_eq!(new.state(), Some(State::Closed));
    for _ in 0..4 {
        assert_eq!(new.state(), Some(State::Closed));
        ask(&new, Class::OUTAGE, at(1004));
    }
    assert_eq!(new.state(), Some(State::Open), "four of four have failed");
}

#[test]
fn a_share_of_as_many_calls_is_counted_on_and_one_of_others_anew() {
    let share = |failures_ppm, calls| {
        breaker(BreakerRules {
            ratio: Some(Ratio {
                failures_ppm,
                window: Over::Calls(calls),
                min_calls: 4,
            }),
            ..BreakerRules::NONE
        })
    };
    let old = first(share(900_000, 10));
    for class in [Class::Answer, Class::OUTAGE, Class::OUTAGE] {
        ask(&old, class, at(0));
    }
    let other_window = follow(&old, share(500_000, 20), at(1));
    ask(&other_window, Class::OUTAGE, at(1));
    assert_eq!(other_window.state(), Some(State::Closed), "one call is not four");
    let same_window = follow(&old, share(500_000, 10), at(2));
    ask(&same_window, Class::OUTAGE, at(2));
    assert_eq!(same_window.state(), Some(State::Open), "three of four");
}

fn ramped(stages: &[u8]) -> DependencyDraft {
    DependencyDraft {
        ramp: Some(RampRules {
            stages: stages.into(),
            ..RampRules::default()
        }),
        learn: Some(LimitRules::DEFAULT),
        timeout: Some(MS * 100),
        ..consecutive(1)
    }
}

/// Opens, closes by a probe, and is in its first stage at 1100.
fn in_ramp(stages: &[u8]) -> Seat {
    let seat = first(ramped(stages));
    ask(&seat, Class::OUTAGE, at(0));
    ask(&seat, Class::Answer, at(1000));
    assert_eq!(seat.ramp().map(|stage| stage.index), Some(0));
    seat
}

#[test]
fn a_ramp_goes_on_with_the_largest_stage_that_is_no_larger() {
    for (stages, index, percent) in [
        (&[30, 100][..], 0, 30),
        (&[10, 20, 60, 100], 1, 20),
        (&[50, 100], 0, 50),
    ] {
        let old = in_ramp(&[30, 100]);
        let new = follow(&old, ramped(stages), at(1010));
        let stage = new.ramp().expect("it goes on");
        assert_eq!(
            (stage.index, stage.share_ppm),
            (index, percent * 10_000),
            "{stages:?}"
        );
    }
}

#[test]
fn where_no_ramp_is_declared_any_more_all_are_let_in() {
    let old = in_ramp(&[5, 100]);
    let new = follow(
        &old,
        DependencyDraft {
            ramp: None,
            ..ramped(&[100])
        },
        at(1010),
    );
    assert_eq!(new.ramp(), None);
    for _ in 0..5 {
        ask(&new, Class::Answer, at(1011));
    }
}

#[test]
fn a_breaker_that_is_not_declared_any_more_holds_nobody_up() {
    for draft in [ramped(&[5, 100]), consecutive(1)] {
        let old = first(draft);
        ask(&old, Class::OUTAGE, at(0));
        let new = follow(
            &old,
            DependencyDraft {
                name: "d".into(),
                ..DependencyDraft::default()
            },
            at(1),
        );
        assert_eq!(new.state(), None);
        ask(&new, Class::OUTAGE, at(2));
        // And one that is declared again begins closed.
        let again = follow(&new, ramped(&[5, 100]), at(3));
        assert_eq!(again.state(), Some(State::Closed));
        ask(&again, Class::Answer, at(4));
    }
}

#[test]
fn what_is_learned_stays_and_limits_nobody_where_nothing_is_to_be_learned() {
    let old = first(ramped(&[5, 100]));
    let cold = old.learned_limit();
    assert_eq!(cold, Some(LimitRules::DEFAULT.cold));
    let mut higher = ramped(&[5, 100]);
    higher.learn = Some(LimitRules {
        floor: 20,
        cold: 20,
        linger: None,
    });
    let new = follow(&old, higher, at(1));
    assert_eq!(new.learned_limit(), Some(20), "never below the floor");
    let off = follow(
        &new,
        DependencyDraft {
            learn: None,
            ..ramped(&[5, 100])
        },
        at(2),
    );
    assert_eq!((off.learned_limit(), off.limit()), (None, None));
    let on = follow(&off, ramped(&[5, 100]), at(3));
    assert_eq!(on.learned_limit(), cold, "nothing was answered yet");
}

#[test]
fn what_retries_have_cost_is_not_given_out_again() {
    let with = |floor| DependencyDraft {
        retry: Some(RetryRules {
            floor,
            budget_ppm: 0,
            ..RetryRules::DEFAULT
        }),
        ..consecutive(100)
    };
    let failed = Failed {
        class: Class::OUTAGE,
        advice: Advice::Whenever,
    };
    let old = first(with(2));
    let grants = |seat: &Seat| {
        (0..10)
            .filter(|_| seat.retry(failed, 1, None, at(10)).is_ok())
            .count()
    };
    assert_eq!(grants(&old), 2);
    let new = follow(&old, with(3), at(10));
    assert_eq!(grants(&new), 1, "two of three are spent");
}

#[test]
fn abandoned_work_counts_on_under_another_cap() {
    let with = |most| DependencyDraft {
        abandoned: Some(most),
        timeout: Some(MS * 100),
        ..consecutive(100)
    };
    let old = first(with(5));
    let timed_out = Class::Outage(crate::Outage::TimedOut);
    ask(&old, timed_out, at(1));
    ask(&old, timed_out, at(1));
    let new = follow(&old, with(2), at(2));
    assert_eq!(admit(&new, at(2)), Err(Reason::AtCapacity));
    assert!(admit(&new, at(300)).is_ok());
}
