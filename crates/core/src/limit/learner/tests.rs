//! The learner against rounds of made-up answers: what each kind of round does to the limit.

use super::*;
use crate::limit::meter::{Entry, Told};
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);

/// A meter, its learner, and time.
struct Bench {
    meter: Meter,
    learner: Learner,
    now: Mono,
}

impl Bench {
    fn new() -> Self {
        Self::seeded(1)
    }

    fn seeded(seed: u64) -> Self {
        let meter = Meter::new(Duration::ZERO);
        let learner = Learner::new(LimitRules::DEFAULT, Some(MS * 1000), seed, &meter);
        Self {
            meter,
            learner,
            now: Mono::ORIGIN.after(MS * 1000),
        }
    }

    /// One round: ten answers after `millis`, as the `in_flight`th, and `refused` that found no place.
    fn round(&mut self, in_flight: u32, millis: u32, refused: u32) -> Option<u32> {
        let entry = Entry {
            began: self.now,
            in_flight,
        };
        let entered = self.meter.in_flight();
        while self.meter.in_flight() < in_flight {
            self.meter.enter_reserved(self.now);
        }
        for _ in 0..refused {
            assert!(self.meter.enter(self.now).is_err(), "there was room");
        }
        self.now = self.now.after(MS * millis);
        for _ in 0..10 {
            self.meter.note(entry, Told::Answer, self.now);
        }
        while self.meter.in_flight() > entered {
            self.meter.leave();
        }
        self.look();
        self.learner.limit()
    }

    fn look(&mut self) {
        self.now = self.now.after(MS * 60);
        self.learner.look(&self.meter, self.now);
    }

    /// Warm, with a baseline of 20 ms and twenty borne.
    fn healthy() -> Self {
        Self::healthy_with(1)
    }

    fn healthy_with(seed: u64) -> Self {
        let mut bench = Self::seeded(seed);
        for in_flight in [5, 10, 20, 2, 20] {
            assert_eq!(
                bench.round(in_flight, 20, 0),
                None,
                "healthy traffic is not limited"
            );
        }
        bench
    }
}

#[test]
fn a_cold_process_starts_with_a_limit_that_grows_by_half_and_goes_when_it_is_not_reached() {
    let mut bench = Bench::new();
    assert_eq!(bench.learner.limit(), Some(10));
    assert_eq!(bench.round(10, 20, 3), Some(15));
    assert_eq!(bench.round(15, 20, 3), Some(23));
    assert_eq!(bench.round(18, 20, 0), None);
}

#[test]
fn a_first_sign_of_overload_brings_a_limit_of_what_was_borne() {
    let mut bench = Bench::healthy();
    assert_eq!(bench.round(60, 25, 0), None, "a little slower is no sign");
    assert_eq!(Bench::healthy().round(60, 90, 0), Some(30));
    assert_eq!(
        Bench::healthy().round(15, 90, 0),
        None,
        "slow without load is not overload"
    );
}

#[test]
fn a_fast_source_whose_answers_wait_for_a_processor_is_not_overloaded() {
    let fast = || {
        let mut bench = Bench::new();
        for in_flight in [5, 10, 20, 2, 20] {
            bench.round(in_flight, 1, 0);
        }
        assert_eq!(bench.learner.baseline, Some(1000));
        bench
    };
    assert_eq!(
        fast().round(64, 9, 0),
        None,
        "nine times as long, and nobody noticed"
    );
    assert_eq!(fast().round(64, 15, 0), None);
    assert_eq!(
        fast().round(64, 40, 0),
        Some(32),
        "this is more than a wait for a processor"
    );
}

/// So many in flight, the last answer now, and a look after so long.
fn silent(in_flight: u32, millis: u32) -> Bench {
    let mut bench = Bench::healthy();
    bench.learner.look(&bench.meter, bench.now);
    for _ in 0..in_flight {
        bench.meter.enter_reserved(bench.now);
    }
    bench.learner.look(&bench.meter, bench.now.after(MS * millis));
    bench
}

#[test]
fn a_source_that_falls_silent_is_held_to_what_it_bore_or_half_of_what_it_has() {
    assert_eq!(silent(40, 25).learner.limit(), Some(20));
    assert_eq!(silent(21, 25).learner.limit(), Some(20));
    assert_eq!(silent(90, 25).learner.limit(), Some(45));
}

#[test]
fn neither_a_baseline_and_a_quarter_of_silence_nor_what_was_borne_is_passed_for_nothing() {
    assert_eq!(silent(40, 24).learner.limit(), None, "not that long");
    assert_eq!(silent(20, 500).learner.limit(), None, "it bore that much");
}

#[test]
fn callers_who_leave_early_make_no_silence() {
    let mut bench = silent(40, 10);
    let entry = Entry {
        began: bench.now,
        in_flight: 1,
    };
    for millis in [20, 40, 60, 80] {
        let now = bench.now.after(MS * millis);
        bench.meter.note(entry, Told::Nothing, now);
        bench.learner.look(&bench.meter, now);
        assert_eq!(bench.learner.limit(), None, "{millis}");
    }
}

#[test]
fn a_page_that_is_turned_in_a_silence_is_no_answer() {
    let mut bench = silent(40, 10);
    let entry = Entry {
        began: bench.now,
        in_flight: 1,
    };
    for _ in 0..10 {
        bench.meter.note(entry, Told::Answer, bench.now.after(MS * 20));
    }
    // The answers are seen at 30 ms, the round ends at 70, and nothing came in between.
    for (millis, limit) in [(30, None), (54, None), (70, None), (80, Some(20))] {
        bench.learner.look(&bench.meter, bench.now.after(MS * millis));
        assert_eq!(bench.learner.limit(), limit, "{millis}");
    }
}

#[test]
fn the_rounds_of_a_cold_process_take_no_longer_than_its_answers() {
    let mut bench = Bench::new();
    let entry = Entry {
        began: bench.now,
        in_flight: 10,
    };
    for _ in 0..3 {
        assert!(bench.meter.enter_reserved(bench.now).in_flight > 0);
    }
    for _ in 0..8 {
        bench.meter.note(entry, Told::Answer, bench.now.after(MS * 4));
    }
    bench.meter.set(3, WHOLE, bench.now);
    assert!(bench.meter.enter(bench.now).is_err(), "somebody found no place");
    for _ in 0..8 {
        bench.meter.note(entry, Told::Answer, bench.now.after(MS * 4));
    }
    bench.learner.look(&bench.meter, bench.now.after(MS * 10));
    assert_eq!(bench.learner.limit(), Some(15));
}

#[test]
fn a_limit_that_is_too_high_is_cut_by_as_much_but_never_by_more_than_half() {
    let mut bench = Bench::healthy();
    assert_eq!(bench.round(60, 90, 0), Some(30));
    assert_eq!(bench.round(30, 30, 1), Some(20));
    assert_eq!(bench.round(20, 900, 1), Some(10));
}

#[test]
fn growth_beyond_what_was_borne_starts_small_and_never_passes_a_quarter() {
    let mut bench = Bench::healthy();
    bench.round(60, 90, 0);
    let mut limits = alloc::vec![bench.round(30, 30, 1).unwrap_or(0)];
    for _ in 0..4 {
        let limit = bench.learner.limit().unwrap_or(0);
        limits.push(bench.round(limit, 20, 1).unwrap_or(0));
    }
    assert_eq!(limits, [20, 21, 23, 28, 35]);
}

#[test]
fn r13_idle_traffic_never_inflates_a_limit() {
    let mut bench = Bench::healthy();
    let limit = bench.round(60, 90, 0);
    for _ in 0..50 {
        assert_eq!(bench.round(3, 20, 0), limit);
    }
}

#[test]
fn r15_one_bad_round_never_cuts_to_nothing() {
    let mut bench = Bench::healthy();
    for _ in 0..30 {
        let in_flight = bench.learner.limit().unwrap_or(60);
        bench.round(in_flight, 1000, 0);
        assert!(bench.learner.limit().is_none_or(|limit| limit >= 1));
    }
}

#[test]
fn cutting_that_does_not_help_teaches_that_the_source_is_slower() {
    let mut bench = Bench::healthy();
    bench.round(60, 90, 0);
    let mut limits = alloc::vec::Vec::new();
    for _ in 0..4 {
        let limit = bench.learner.limit().unwrap_or(0);
        limits.push(bench.round(limit, 40, 1).unwrap_or(0));
    }
    assert_eq!(limits, [15, 7, 3, 20], "the last one has believed it");
    bench.round(20, 40, 0);
    let baseline = bench.learner.baseline.unwrap_or(0);
    assert!((39_900..=40_000).contains(&baseline), "{baseline}");
}

#[test]
fn what_is_noted_in_an_outage_teaches_nothing() {
    let mut bench = Bench::healthy();
    bench.learner.freeze(&bench.meter, bench.now);
    assert_eq!(bench.learner.ceiling(), 20);
    bench.learner.resume(None, &bench.meter, bench.now);
    assert_eq!(bench.learner.baseline, Some(20_000));
}

#[test]
fn busy_takes_a_tenth_and_is_a_first_sign_too() {
    let mut bench = Bench::healthy();
    for _ in 0..29 {
        bench.meter.enter_reserved(bench.now);
    }
    bench.learner.busy(&bench.meter, bench.now);
    assert_eq!(bench.learner.limit(), Some(27));
    bench.learner.busy(&bench.meter, bench.now);
    assert_eq!(bench.learner.limit(), Some(24));
}

/// Rounds at the limit without a pause, or with one call in each that came in while little was in flight, for so long as nothing is measured; tells how long
/// that was, and the limit while it is measured. `None` if nothing is measured within a minute.
fn first_dip(seed: u64, with_pauses: bool) -> Option<(Duration, u32, Bench)> {
    let mut bench = Bench::healthy_with(seed);
    assert_eq!(bench.round(60, 90, 0), Some(30));
    let began = bench.now;
    while bench.now.since(began) < Duration::from_secs(60) {
        if with_pauses {
            let entry = Entry {
                began: bench.now,
                in_flight: 5,
            };
            bench.meter.note(entry, Told::Answer, bench.now.after(MS * 20));
        }
        assert_eq!(
            bench.round(30, 23, 1),
            Some(30),
            "a little slower than usual moves nothing"
        );
        let limit = bench.meter.limit().unwrap_or(NO_LIMIT);
        if limit < 30 {
            return Some((bench.now.since(began), limit, bench));
        }
    }
    None
}

#[test]
fn e66_measuring_takes_one_round_at_half_the_limit_and_nodes_do_it_apart() {
    let mut moments = alloc::vec::Vec::new();
    for seed in 0..20 {
        let (moment, limit, mut bench) =
            first_dip(seed, false).expect("without pauses it has to be measured");
        assert_eq!(limit, 15, "half of it, not the floor");
        moments.push(moment);
        assert_eq!(
            (bench.round(15, 20, 1), bench.meter.limit()),
            (Some(30), Some(30))
        );
    }
    moments.sort();
    let (first, last) = (moments[0], moments[moments.len() - 1]);
    assert!(
        first >= DIP_EVERY / 2 && last - first > DIP_EVERY / 2,
        "{moments:?}"
    );
    moments.dedup();
    assert!(moments.len() > 10, "{moments:?}");
}

#[test]
fn e66_who_is_measured_in_its_pauses_drops_nothing() {
    for seed in 0..5 {
        assert!(first_dip(seed, true).is_none());
    }
}

proptest! {
    #[test]
    fn a_limit_moves_within_its_bounds_whatever_is_seen(
        rounds in proptest::collection::vec((1_u32..80, 1_u32..2000, any::<bool>()), 1..80),
    ) {
        let mut bench = Bench::healthy();
        let mut before = bench.learner.limit();
        for (in_flight, millis, crowded) in rounds {
            let full = before.is_some() && crowded;
            let in_flight = before.filter(|_| full).unwrap_or(in_flight);
            let after = bench.round(in_flight, millis, u32::from(full));
            if let (Some(before), Some(after)) = (before, after) {
                prop_assert!(after >= before / 2 && after >= 1, "{before} to {after}");
                let ceiling = bench.learner.ceiling();
                prop_assert!(after <= (before + before / 4 + 1).max(ceiling), "{before} to {after}");
            }
            prop_assert!(before.is_none() || after.is_some(), "a limit once learned stays");
            before = after;
        }
    }
}
