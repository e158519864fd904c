//! Prints the recovery table: a source that nobody wrote a number down for, after a hang of ten seconds.
//!
//! `cargo run --release -p evenkeel-sim --example recovery [seeds] [even|random] [longest open period in ms]`

#![expect(clippy::print_stdout, reason = "a table is what it is for")]

use std::time::Duration;

use evenkeel_core::{BreakerRules, OpenFor, Problems};
use evenkeel_sim::{
    Slowdown,
    recovery::{Case, Figures, Kind, Trouble},
    shipped_dependency,
};

fn main() -> Result<(), Problems> {
    let mut words = std::env::args().skip(1);
    let seeds: u64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(20);
    let even = words.next().is_some_and(|word| word == "even");
    let longest = words.next().and_then(|word| word.parse().ok());
    println!(
        "{:<9}{:>4}  {:<10}{:<9}{:<11}{:>7}{:>7} | {:>8}{:>6}{:>6} | {:>6} | {:>7}",
        "kind",
        "cap",
        "slowdown",
        "clients",
        "trouble",
        "before",
        "outage",
        "back s",
        "worst",
        "never",
        "peak",
        "s 5-9"
    );
    for (kind, retrying) in [
        (Kind::Cached, false),
        (Kind::Uncached, false),
        (Kind::Uncached, true),
    ] {
        for trouble in [
            Trouble::None,
            Trouble::HalfLost,
            Trouble::SlowWarmUp,
            Trouble::KeepsHung,
        ] {
            for capacity in [3, 20, 300] {
                for slowdown in [Slowdown::Linear, Slowdown::Quadratic] {
                    let case = Case {
                        kind,
                        capacity,
                        slowdown,
                        retrying,
                        trouble,
                        even,
                    };
                    row(
                        &case,
                        if capacity == 300 { seeds.div_ceil(5) } else { seeds },
                        longest,
                    )?;
                }
            }
        }
    }
    println!(
        "\nbefore, outage, s 5-9: least share of current (outage: of any) answers, in thousandths; back: median and"
    );
    println!(
        "worst time to 95 % current for good; peak: most in flight from the return on, over the capacity."
    );
    Ok(())
}

fn row(case: &Case, seeds: u64, longest: Option<u64>) -> Result<(), Problems> {
    let mut dependency = shipped_dependency();
    if let (Some(millis), Some(breaker)) = (longest, &mut dependency.breaker) {
        breaker.open_for = OpenFor::Timed {
            first: BreakerRules::OPEN_FOR_FIRST.min(Duration::from_millis(millis)),
            longest: Duration::from_millis(millis),
            jitter_ppm: BreakerRules::JITTER_PPM,
        };
    }
    let mut figures = Vec::new();
    for seed in 0..seeds {
        figures.push(Figures::of(&case.run_as(dependency.clone(), seed)?));
    }
    let mut backs: Vec<Duration> = figures.iter().filter_map(|f| f.back).collect();
    backs.sort();
    let seconds = |span: Option<&Duration>| {
        span.map_or_else(|| "-".into(), |span| format!("{:.1}", span.as_secs_f64()))
    };
    let peak = figures.iter().map(|f| f.peak).max().unwrap_or(0);
    println!(
        "{:<9}{:>4}  {:<10}{:<9}{:<11}{:>7}{:>7} | {:>8}{:>6}{:>6} | {:>6.2} | {:>7}",
        format!("{:?}", case.kind),
        case.capacity,
        format!("{:?}", case.slowdown),
        if case.retrying { "retrying" } else { "open" },
        format!("{:?}", case.trouble),
        figures.iter().map(|f| f.before).min().unwrap_or(0),
        figures.iter().map(|f| f.served).min().unwrap_or(0),
        seconds(backs.get(backs.len() / 2)),
        seconds(backs.last()),
        figures.len() - backs.len(),
        f64::from(peak) / f64::from(case.capacity),
        figures.iter().map(|f| f.late).min().unwrap_or(0),
    );
    Ok(())
}
