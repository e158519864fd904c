//! Tests of slow calls: when one counts, whom it is blamed on, and that it counts once.

use super::*;
use crate::{BreakerRules, DependencyDraft, Over, Ratio, SlowRatio, TripRule, dependency::tests::OneThread};
use core::time::Duration;

const NOW: Mono = Mono::ORIGIN;

fn lane() -> Lane {
    Lane::new(0)
}

fn at(millis: u32) -> Mono {
    NOW.after(Duration::from_millis(1) * millis)
}

fn with_breaker(breaker: BreakerRules) -> Dependency<OneThread<Steering>> {
    let draft = DependencyDraft {
        name: "d".into(),
        timeout: Some(Duration::from_secs(1)),
        breaker: Some(breaker),
        ..DependencyDraft::default()
    };
    Dependency::new(draft.check().expect("the draft is valid"), Vec::new(), 1)
}

/// Two calls of 100 ms or more open it, where there are no others.
fn dependency(window: Over) -> Dependency<OneThread<Steering>> {
    with_breaker(BreakerRules {
        slow: Some(SlowRatio {
            after: Duration::from_millis(100),
            slow_ppm: 1_000_000,
            window,
            min_calls: 2,
        }),
        ..BreakerRules::NONE
    })
}

fn by_time() -> Dependency<OneThread<Steering>> {
    dependency(Over::Time(Duration::from_secs(10)))
}

fn admit(dependency: &Dependency<OneThread<Steering>>, now: Mono) -> Pass {
    dependency
        .admit(now, Asker::Traffic, false)
        .0
        .expect("it is admitted")
}

/// One call that begins now and comes to this.
fn call(
    dependency: &Dependency<OneThread<Steering>>,
    class: Class,
    blame: bool,
    millis: u32,
) -> Option<Transition> {
    dependency.settle(admit(dependency, NOW), class, blame, lane(), at(millis))
}

#[test]
fn a_call_is_slow_at_the_threshold_and_not_a_nanosecond_before() {
    let dependency = by_time();
    let mut pass = admit(&dependency, NOW);
    assert_eq!(dependency.slow_at(&pass), Some(at(100)));
    let before = at(100).before(Duration::from_nanos(1));
    assert_eq!(dependency.crossed(&mut pass, lane(), before), None);
    assert_eq!(dependency.slow_at(&pass), Some(at(100)), "it was not counted");
    assert_eq!(dependency.crossed(&mut pass, lane(), at(100)), None);
    assert_eq!(dependency.slow_at(&pass), None, "it was");
    let opened = call(&dependency, Class::Answer, true, 100).expect("the second");
    assert_eq!(
        (opened.to, opened.rule, opened.class),
        (State::Open, Some(TripRule::SlowRatio), Some(Class::Answer))
    );
}

#[test]
fn calls_that_hang_open_it_before_any_of_them_has_a_result() {
    let dependency = by_time();
    let mut hung = [admit(&dependency, NOW), admit(&dependency, at(7))];
    assert_eq!(dependency.crossed(&mut hung[0], lane(), at(100)), None);
    let opened = dependency
        .crossed(&mut hung[1], lane(), at(107))
        .expect("the second");
    assert_eq!((opened.at, opened.class), (at(107), None));
}

#[test]
fn a_call_that_was_counted_while_it_hung_is_not_counted_again_when_it_ends() {
    let dependency = by_time();
    let mut hung = admit(&dependency, NOW);
    dependency.crossed(&mut hung, lane(), at(100));
    assert_eq!(dependency.crossed(&mut hung, lane(), at(200)), None);
    assert_eq!(
        dependency.settle(hung, Class::OUTAGE, true, lane(), at(300)),
        None
    );
    assert_eq!(dependency.state(), Some(State::Closed));
}

#[test]
fn e20_a_caller_who_leaves_after_the_threshold_leaves_a_slow_call_and_before_it_nothing() {
    let dependency = by_time();
    for _ in 0..5 {
        assert_eq!(call(&dependency, Class::Cancelled, false, 99), None);
    }
    assert_eq!(
        call(&dependency, Class::Cancelled, false, 100),
        None,
        "one of one is slow"
    );
    let opened = call(&dependency, Class::Cancelled, false, 100).expect("two of two");
    assert_eq!(opened.rule, Some(TripRule::SlowRatio));
}

#[test]
fn e21_a_deadline_before_the_threshold_counts_neither_way() {
    let dependency = by_time();
    let timed_out = Class::Outage(Outage::TimedOut);
    for _ in 0..5 {
        assert_eq!(call(&dependency, timed_out, false, 99), None);
    }
    assert_eq!(
        call(&dependency, timed_out, false, 100),
        None,
        "one of one is slow"
    );
    assert!(call(&dependency, timed_out, false, 100).is_some(), "two of two");
}

#[test]
fn e22_a_refusal_by_a_guard_further_in_is_never_slow() {
    let dependency = by_time();
    for _ in 0..5 {
        assert_eq!(call(&dependency, Class::Local, false, 500), None);
    }
}

#[test]
fn whatever_a_quick_result_says_it_makes_the_share_smaller() {
    for class in [
        Class::Answer,
        Class::Refusal,
        Class::Gone,
        Class::Busy,
        Class::OUTAGE,
    ] {
        let dependency = by_time();
        call(&dependency, class, true, 99);
        for _ in 0..5 {
            assert_eq!(call(&dependency, Class::Answer, true, 100), None, "{class:?}");
        }
    }
}

#[test]
fn a_dependency_asked_once_a_minute_opens_by_calls_that_hang() {
    let calls = dependency(Over::Calls(2));
    for (minute, opens) in [(0, false), (60_000, true)] {
        let mut pass = admit(&calls, at(minute));
        let opened = calls.crossed(&mut pass, lane(), at(minute + 100));
        assert_eq!(opened.is_some(), opens, "{minute}");
        calls.settle(
            pass,
            Class::Outage(Outage::TimedOut),
            true,
            lane(),
            at(minute + 1000),
        );
    }
}

#[test]
fn a_dependency_asked_once_a_minute_opens_by_failures() {
    // Returns the failure that opens it, if one of ten does.
    let opening = |consecutive, window: Option<Over>| {
        let ratio = window.map(|window| Ratio {
            failures_ppm: 500_000,
            window,
            min_calls: 4,
        });
        let dependency = with_breaker(BreakerRules {
            consecutive,
            ratio,
            ..BreakerRules::NONE
        });
        (1..=10).find(|minute| {
            let pass = admit(&dependency, at(minute * 60_000));
            let end = at(minute * 60_000 + 9);
            dependency
                .settle(pass, Class::OUTAGE, true, lane(), end)
                .is_some()
        })
    };
    assert_eq!(opening(Some(5), None), Some(5));
    assert_eq!(opening(None, Some(Over::Calls(10))), Some(4));
    let ten_seconds = Over::Time(Duration::from_secs(10));
    assert_eq!(
        opening(None, Some(ten_seconds)),
        None,
        "it never holds four calls"
    );
}

#[test]
fn a_slow_probe_reopens_at_once_and_what_it_brings_later_closes_nothing() {
    let dependency = by_time();
    call(&dependency, Class::Answer, true, 100);
    call(&dependency, Class::Answer, true, 100);
    let mut probe = admit(&dependency, at(10_000));
    assert!(probe.is_probe());
    let slow_at = dependency.slow_at(&probe).expect("a probe may be slow");
    let reopened = dependency.crossed(&mut probe, lane(), slow_at).expect("it fails");
    assert_eq!((reopened.to, reopened.cause), (State::Open, Cause::ProbeSlow));
    assert_eq!(
        dependency.settle(probe, Class::Answer, true, lane(), at(10_150)),
        None
    );
    assert_eq!(dependency.state(), Some(State::Open));
}

#[test]
fn a_probe_that_answers_late_fails_although_nobody_looked_in_time() {
    let dependency = by_time();
    call(&dependency, Class::Answer, true, 100);
    call(&dependency, Class::Answer, true, 100);
    let probe = admit(&dependency, at(10_000));
    let reopened = dependency.settle(probe, Class::Answer, true, lane(), at(10_100));
    assert_eq!(reopened.map(|seen| seen.cause), Some(Cause::ProbeSlow));
}

#[test]
fn an_answer_is_as_slow_as_its_head_however_long_its_body_flows() {
    let dependency = by_time();
    for _ in 0..3 {
        let mut pass = admit(&dependency, NOW);
        assert_eq!(
            dependency.answered(&mut pass, Class::Answer, lane(), at(99)),
            (true, None)
        );
        assert_eq!(dependency.slow_at(&pass), None);
        assert_eq!(
            dependency.settle(pass, Class::Answer, true, lane(), at(60_000)),
            None
        );
    }
    let late_head = || {
        let mut pass = admit(&dependency, at(20_000));
        let (waits, opened) = dependency.answered(&mut pass, Class::Answer, lane(), at(20_100));
        assert!(waits);
        opened
    };
    assert_eq!(late_head(), None);
    assert_eq!(late_head().and_then(|seen| seen.rule), Some(TripRule::SlowRatio));
}
