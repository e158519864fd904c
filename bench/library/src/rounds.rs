//! Decides how often each subject is measured, in which order and for how long.
//! It exists because one long run of each would compare two moods of the machine: here all take their turns, each
//! round starts elsewhere, and each figure gets about the same time.
//! It refuses to drop outliers; medians of paired ratios do not need it.

use std::{
    collections::{HashMap, HashSet},
    sync::Barrier,
    time::{Duration, Instant},
};

use crate::{allocations, case::Case, case::Tasks, comparison::Comparison, comparison::Measure, cpu};

/// What was measured for each case: one value per round, in nanoseconds per call, or the one count of allocations.
pub type Figures = HashMap<(&'static str, Measure), Vec<f64>>;

/// Measures everything that the comparisons speak of. `progress` is told which of how many rounds begins.
///
/// # Errors
/// The name in a comparison that no case has.
pub fn measure(
    cases: &[Case],
    comparisons: &[Comparison],
    rounds: usize,
    span: Duration,
    progress: impl Fn(&str),
) -> Result<Figures, String> {
    cpu::pin(0);
    let mut figures = Figures::new();
    let mut turns = Vec::new();
    for (case, measure) in wanted(cases, comparisons)? {
        progress(&format!("calibrating: {}", case.name));
        let figure = figures.entry((case.name, measure)).or_default();
        match measure {
            Measure::Allocations => figure.push(allocations_per_call(case)),
            Measure::OneThread | Measure::TwoThreads | Measure::ManyTasks => {
                turns.push((case, measure, calibrate(case, measure, span)));
            }
        }
    }
    for round in 0..rounds {
        let first = round * turns.len() / rounds;
        for index in 0..turns.len() {
            let (case, measure, calls) = turns[(first + index) % turns.len()];
            progress(&format!("round {} of {rounds}: {}", round + 1, case.name));
            let nanos = nanos_per_call(case, measure, calls);
            figures.entry((case.name, measure)).or_default().push(nanos);
        }
    }
    Ok(figures)
}

/// Lists each case with each measure once, in the order of the comparisons.
fn wanted<'c>(cases: &'c [Case], comparisons: &[Comparison]) -> Result<Vec<(&'c Case, Measure)>, String> {
    let by_name: HashMap<_, _> = cases.iter().map(|case| (case.name, case)).collect();
    let mut seen = HashSet::new();
    let mut wanted = Vec::new();
    for comparison in comparisons {
        for name in [comparison.ours, comparison.peer] {
            let case = by_name
                .get(name)
                .ok_or_else(|| format!("{name}: no case has this name"))?;
            if seen.insert((name, comparison.measure)) {
                wanted.push((*case, comparison.measure));
            }
        }
    }
    Ok(wanted)
}

/// Long enough to be measured, short enough to find the number of calls quickly.
const TRIAL: Duration = Duration::from_millis(8);

/// Finds how many calls take about `span`. Contended cases find their own, far smaller number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of calls: positive, far below 2^53, and only about right"
)]
fn calibrate(case: &Case, measure: Measure, span: Duration) -> u64 {
    let mut calls = Tasks::COUNT;
    loop {
        let took = nanos_per_call(case, measure, calls) * calls as f64;
        if took >= TRIAL.as_nanos() as f64 || calls >= 1 << 32 {
            return (calls as f64 * span.as_nanos() as f64 / took) as u64 + 1;
        }
        calls *= 2;
    }
}

fn nanos_per_call(case: &Case, measure: Measure, calls: u64) -> f64 {
    match measure {
        Measure::TwoThreads => two_threads(case, calls).as_nanos() as f64 / calls as f64,
        Measure::ManyTasks => {
            let start = Instant::now();
            case.run(0, calls);
            start.elapsed().as_nanos() as f64 / calls as f64
        }
        Measure::OneThread | Measure::Allocations => {
            let start = cpu::thread_nanos();
            case.run(0, calls);
            (cpu::thread_nanos() - start) / calls as f64
        }
    }
}

/// Splits the calls between two threads, one on each CPU, and returns the wall time from the first start to the
/// last end: waiting for each other is part of the cost.
fn two_threads(case: &Case, calls: u64) -> Duration {
    let start_line = Barrier::new(2);
    let run = |thread: usize| {
        cpu::pin(thread);
        start_line.wait();
        let start = Instant::now();
        case.run(thread, calls.div_ceil(2));
        (start, Instant::now())
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run(1));
        // Not on the main thread: each of both then starts from the same state.
        let one = scope.spawn(|| run(0));
        let spans = [one, other].map(|thread| thread.join().expect("a measured call does not panic"));
        let (first, last) = (spans[0].0.min(spans[1].0), spans[0].1.max(spans[1].1));
        last - first
    })
}

/// Counts by difference, so that what a loop itself allocates, such as a runtime, falls out.
fn allocations_per_call(case: &Case) -> f64 {
    const FEW: u64 = 1_000;
    const MORE: u64 = 11_000;
    let count = |calls| {
        let before = allocations::taken();
        case.run(0, calls);
        (allocations::taken() - before) as f64
    };
    count(FEW); // whatever is made once is made now
    let few = count(FEW);
    (count(MORE) - few) / (MORE - FEW) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::compare;
    use std::hint::black_box;

    fn boxing() -> Case {
        Case::new("boxing", |_, calls| {
            drop(black_box(vec![0_u8; 100]));
            for call in 0..calls {
                drop(black_box(Box::new(call)));
            }
        })
    }

    #[test]
    fn allocations_are_counted_per_call_without_those_of_the_loop() {
        assert!((allocations_per_call(&boxing()) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn each_round_gives_each_case_one_figure_and_allocations_one_in_all() {
        let lines = [Measure::OneThread, Measure::Allocations]
            .map(|measure| compare(8, measure, ("boxing", "boxing"), None, None));
        let figures = measure(&[boxing()], &lines, 3, Duration::from_millis(1), |_| {}).unwrap();
        assert_eq!(figures[&("boxing", Measure::OneThread)].len(), 3);
        assert_eq!(figures[&("boxing", Measure::Allocations)], [1.0]);
    }

    #[test]
    fn a_name_that_no_case_has_is_an_error() {
        let line = compare(8, Measure::OneThread, ("boxing", "wrapping"), None, None);
        let error = measure(&[boxing()], &[line], 1, Duration::from_millis(1), |_| {}).unwrap_err();
        assert_eq!(error, "wrapping: no case has this name");
    }
}
