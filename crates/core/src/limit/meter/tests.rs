//! The meter against plain counting: who fits, what is noted, and who looks.

use super::*;
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);

fn at(millis: u32) -> Mono {
    Mono::ORIGIN.after(MS * millis)
}

fn meter() -> Meter {
    Meter::new(MS * 1000)
}

#[test]
fn e67_the_limit_is_admitted_and_one_more_is_not() {
    let meter = meter();
    meter.set(2, WHOLE, at(0));
    let seen = [(); 3].map(|()| meter.enter(at(1)).map(|entry| entry.in_flight));
    assert_eq!(seen, [Ok(1), Ok(2), Err(Reason::AtCapacity)]);
    assert_eq!(
        meter.enter_reserved(at(1)).in_flight,
        3,
        "a probe's place is its own"
    );
    assert_eq!((meter.notes().refused, meter.notes().peak), (1, 3));
}

#[test]
fn a_share_of_a_twentieth_lets_the_first_of_every_twenty_in() {
    let meter = meter();
    meter.set(NO_LIMIT, WHOLE / 20, at(0));
    let let_in: alloc::vec::Vec<bool> = (0..60).map(|_| meter.enter(at(1)).is_ok()).collect();
    let places: alloc::vec::Vec<usize> = (0..60).filter(|index| let_in[*index]).collect();
    assert_eq!(places, [0, 20, 40]);
}

#[test]
fn what_lingers_takes_places_until_it_has_lingered_long_enough() {
    let meter = meter();
    meter.set(2, WHOLE, at(0));
    let entry = meter.enter(at(1)).expect("there is room");
    meter.note(entry, Told::TimedOut { blame: true }, at(1001));
    meter.leave();
    assert!(meter.enter(at(1002)).is_ok());
    assert_eq!(meter.enter(at(1002)), Err(Reason::AtCapacity));
    assert!(meter.enter(at(2300)).is_ok());
}

#[test]
fn e65_results_of_calls_that_began_under_another_limit_are_not_noted() {
    let meter = meter();
    let old = meter.enter(at(0)).expect("there is no limit");
    meter.set(5, WHOLE, at(10));
    for told in [Told::Answer, Told::Failure, Told::TimedOut { blame: true }] {
        meter.note(old, told, at(20));
    }
    let Notes {
        low,
        high,
        failures,
        proven,
        ..
    } = meter.notes();
    assert_eq!((low.calls, high.calls, failures, proven), (0, 0, 0, 0));
}

#[test]
fn only_one_of_those_who_come_when_it_is_due_looks() {
    let meter = meter();
    assert!(meter.claim(at(1)));
    assert!(!meter.claim(at(1)), "somebody is looking");
    meter.look_again(at(50));
    assert_eq!(
        [49, 50, 50].map(|millis| meter.claim(at(millis))),
        [false, true, false]
    );
}

#[test]
fn a_page_that_is_full_takes_no_more_calls_and_no_sum_spills_over() {
    let latencies = Latencies(AtomicU64::new((CALLS_MAX - 1) << SUM_BITS));
    for _ in 0..3 {
        latencies.add(u64::MAX);
    }
    let sum = Latencies::of(latencies.0.load(Ordering::Relaxed));
    assert_eq!((sum.calls, sum.micros), (CALLS_MAX, MICROS_MAX - 1));
    assert!(u128::from(CALLS_MAX) * u128::from(MICROS_MAX) <= 1 << SUM_BITS);
}

proptest! {
    #[test]
    fn places_in_use_equal_a_plain_counter(
        limit in 0_u32..6,
        moves in proptest::collection::vec(0_u8..4, 0..80),
    ) {
        let meter = meter();
        meter.set(limit, WHOLE, at(0));
        let mut model = 0;
        for step in moves {
            match step {
                0 | 1 => {
                    prop_assert_eq!(meter.enter(at(1)).is_ok(), model < limit);
                    model = model.max(limit.min(model + 1));
                }
                2 => {
                    meter.enter_reserved(at(1));
                    model += 1;
                }
                _ if model > 0 => {
                    meter.leave();
                    model -= 1;
                }
                _ => {}
            }
            prop_assert_eq!(meter.in_flight(), model);
        }
    }
}
