//! Decides how the bare breaker is measured: admit, work, report; the part of a guard that other crates sell alone.
//! It exists for row 8, with and without a clock, because failures in a row need none and a time window does.
//! It refuses the recovery part, which the closed path never touches.

use std::{hint::black_box, time::Duration};

use evenkeel::{Engine, Mono};
use evenkeel_bench_library::Case;
use evenkeel_core::{Admission, BreakerRules, Gate, Lane, Ratio};

use crate::work::{Down, up};

/// Trips after five failures in a row.
pub(crate) const IN_A_ROW: &str = "gate: in a row";
/// Trips also when half of 20 calls or more in 10 s failed; the caller knows the time.
pub(crate) const DEFAULT_RULES: &str = "gate: default rules, time given";
/// The same; the time is read for each call.
pub(crate) const DEFAULT_RULES_AND_CLOCK: &str = "gate: default rules, 1 clock read";

pub(crate) const RULES: BreakerRules = BreakerRules {
    consecutive: Some(5),
    ratio: Some(Ratio {
        failures_ppm: 500_000,
        window: evenkeel::Over::Time(Duration::from_secs(10)),
        min_calls: 20,
    }),
    ..BreakerRules::NONE
};

pub(crate) fn cases() -> Vec<Case> {
    let some_time = || Mono::from_nanos(1_000_000_000_000);
    let clock = Engine::system();
    vec![
        case(IN_A_ROW, &BreakerRules { ratio: None, ..RULES }, some_time),
        case(DEFAULT_RULES, &RULES, some_time),
        case(DEFAULT_RULES_AND_CLOCK, &RULES, move || clock.now().mono),
    ]
}

fn case(name: &'static str, rules: &BreakerRules, time: impl Fn() -> Mono + Send + Sync + 'static) -> Case {
    let gate = Gate::new(rules);
    Case::new(name, move |thread, calls| {
        let lane = Lane::new(thread);
        for call in 0..calls {
            black_box(pass(&gate, lane, black_box(time()), || up(call))).expect("closed");
        }
    })
}

/// What a caller of the gate writes.
fn pass<T>(
    gate: &Gate,
    lane: Lane,
    now: Mono,
    work: impl FnOnce() -> Result<T, Down>,
) -> Result<T, Option<Down>> {
    let generation = match gate.admit(now) {
        Admission::Admitted(generation) => generation,
        Admission::Refused { .. } | Admission::MayProbe => return Err(None),
    };
    match work() {
        Ok(value) => {
            gate.succeeded(lane, now, generation);
            Ok(value)
        }
        Err(error) => {
            let _for_the_recovery = gate.failed(lane, now, generation);
            Err(Some(error))
        }
    }
}
