//! Overload without an outage, healthy load that must not be touched, and many nodes at once.

use std::{collections::BTreeMap, time::Duration};

use evenkeel_core::{Mono, State};
use evenkeel_sim::{
    Arrivals, Change, Mode, Node, Seen, Setup, Slowdown, SourceModel, Tally, Workload, cached_read, run,
    shipped_dependency, shipped_read,
};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn setup(capacity: u32, arrivals: Arrivals, seconds: u32) -> Setup {
    Setup {
        source: SourceModel {
            capacity,
            latency: MS * 20,
            slowdown: Slowdown::Quadratic,
            finishes_abandoned: true,
            keeps_hung: false,
        },
        workload: Workload {
            arrivals,
            keys: 1,
            patience: None,
            retries: 0,
            pause: MS * 50,
        },
        script: Vec::new(),
        ends: SECOND * seconds,
        current: SECOND * 6,
    }
}

/// The same with clients that leave after a second and ask three times more.
fn retrying(mut setup: Setup) -> Setup {
    setup.workload.patience = Some(SECOND);
    setup.workload.retries = 3;
    setup
}

fn nodes(count: u64, cached: bool) -> Vec<Node> {
    let read = || {
        if cached {
            cached_read(SECOND * 4)
        } else {
            shipped_read()
        }
    };
    (0..count)
        .map(|seed| Node::new(read(), shipped_dependency(), seed).expect("what ships is valid"))
        .collect()
}

fn live(setup: &Setup, seed: u64) -> Tally {
    run(setup, &nodes(1, false), seed)
}

#[test]
fn a_source_good_for_500_gets_500_though_it_had_10_a_moment_ago() {
    let calm = Arrivals::Closed(10, MS * 5);
    let mut setup = setup(500, calm, 12);
    setup.script = vec![(SECOND * 5, Change::Arrivals(Arrivals::Closed(490, MS * 5)))];
    let tally = live(&setup, 1);
    let all = tally.sum(Duration::ZERO, SECOND * 12);
    assert_eq!(all.refused, 0, "healthy traffic was throttled");
    assert!(all.peak > 400, "{all:?}");
}

#[test]
fn a_process_that_starts_cold_under_load_is_through_its_own_ramp_within_a_second() {
    let tally = live(&setup(500, Arrivals::Closed(500, MS * 5), 6), 1);
    let (first, rest) = (tally.sum(Duration::ZERO, MS * 100), tally.sum(SECOND, SECOND * 6));
    assert!(first.peak <= 40, "a cold process let everybody in: {first:?}");
    assert_eq!(rest.refused, 0, "and then throttled healthy traffic");
    assert!(rest.peak > 400, "{rest:?}");
}

#[test]
fn r09_a_metastable_trigger_is_over_within_a_minute() {
    for rate in [700, 800, 900] {
        for (seed, dip) in [(1, 6), (2, 6), (3, 1)] {
            let mut setup = retrying(setup(20, Arrivals::Random(rate), 90));
            setup.script = vec![
                (SECOND * 15, Change::Capacity(dip)),
                (SECOND * 25, Change::Capacity(20)),
            ];
            let tally = live(&setup, seed);
            let before = tally.sum(SECOND * 5, SECOND * 15).current_permille();
            let back = tally.back_after(SECOND * 25, SECOND * 90, SECOND * 5, before * 95 / 100);
            assert!(
                back.is_some_and(|back| back <= SECOND * 60),
                "{rate}/s, seed {seed}: {back:?} from {before}"
            );
        }
    }
}

#[test]
fn r14_a_source_that_is_slower_for_good_is_not_starved_for_good() {
    for (latency, capacity, within) in [(MS * 40, 20, 20), (MS * 200, 2000, 30)] {
        for seed in 0..3 {
            let mut setup = setup(capacity, Arrivals::Random(300), 90);
            setup.script = vec![(SECOND * 15, Change::Latency(latency))];
            let tally = live(&setup, seed);
            let back = tally.back_after(SECOND * 15, SECOND * 90, SECOND * 2, 950);
            assert!(
                back.is_some_and(|back| back <= SECOND * within),
                "{latency:?}, seed {seed}: {back:?}"
            );
        }
    }
}

#[test]
fn r13_after_a_latency_spike_the_old_rate_is_back_within_a_minute() {
    let mut setup = setup(20, Arrivals::Random(600), 60);
    setup.script = vec![
        (SECOND * 15, Change::Latency(MS * 100)),
        (SECOND * 25, Change::Latency(MS * 20)),
    ];
    let back = live(&setup, 3).back_after(SECOND * 25, SECOND * 60, SECOND, 950);
    assert!(back.is_some_and(|back| back <= SECOND * 5), "{back:?}");
}

#[test]
fn r08_the_whole_cache_lost_at_peak_costs_the_source_no_more_than_a_limit_once_learned() {
    for seed in 0..5 {
        let mut setup = setup(20, Arrivals::Random(2000), 40);
        setup.workload.keys = 1000;
        setup.script = vec![
            (SECOND * 8, Change::Mode(Mode::Hang)),
            (SECOND * 12, Change::Mode(Mode::Up)),
            (SECOND * 30, Change::LoseSnapshots),
        ];
        let nodes = nodes(1, true);
        let tally = run(&setup, &nodes, seed);
        let limit = nodes[0].learned_limit().expect("an outage is a first sign");
        let peak = tally.sum(SECOND * 30, SECOND * 32).peak;
        assert!(limit <= 32 && peak <= 32, "limit {limit}, peak {peak}");
        assert_eq!(tally.sum(SECOND * 32, SECOND * 40).current_permille(), 1000);
    }
}

#[test]
fn callers_with_less_patience_than_the_timeout_do_not_hide_a_hang() {
    let mut setup = retrying(setup(20, Arrivals::Even(100), 8));
    setup.workload.patience = Some(MS * 600);
    setup.workload.retries = 0;
    setup.script = vec![(SECOND * 3, Change::Mode(Mode::Hang))];
    let tally = live(&setup, 1);
    let opened = tally.changes.iter().find_map(|(at, _, seen)| match seen {
        Seen::Breaker(change) if change.to == State::Open => Some(at.since(Mono::ORIGIN)),
        Seen::Breaker(_) | Seen::Ramp(_) => None,
    });
    // Few of them fail in the meantime, because the silence lets few in.
    assert!(opened.is_some_and(|at| at < SECOND * 5), "{opened:?}");
}

#[test]
fn a_source_of_which_three_answers_in_ten_fail_is_still_used() {
    let mut setup = setup(20, Arrivals::Random(400), 30);
    setup.script = vec![(SECOND * 10, Change::Mode(Mode::Partial(300_000)))];
    let tally = live(&setup, 2);
    let share = tally.sum(SECOND * 10, SECOND * 30).current_permille();
    // Five in a row come by chance every few seconds: 0.3^5 is one in 400.
    assert!((200..=720).contains(&share), "{share}");
}

#[test]
fn e16_a_thousand_nodes_do_not_reopen_in_lockstep() {
    // The source comes back with a fifth and grows: case 018, twenty times as large.
    let mut setup = retrying(setup(400, Arrivals::Random(8000), 45));
    setup.script = vec![
        (SECOND * 5, Change::Mode(Mode::Hang)),
        (SECOND * 30, Change::Mode(Mode::Up)),
        (SECOND * 30, Change::WarmUp(SECOND * 8, 200_000)),
    ];
    let tally = run(&setup, &nodes(1000, false), 6);
    let mut closings: BTreeMap<u128, u32> = BTreeMap::new();
    for (at, _, seen) in &tally.changes {
        if let Seen::Breaker(change) = seen
            && change.to == State::Closed
        {
            *closings
                .entry(at.since(Mono::ORIGIN).as_millis() / 100)
                .or_default() += 1;
        }
    }
    let (all, most) = (closings.values().sum::<u32>(), closings.values().max());
    assert!(all >= 1000, "{all} nodes closed");
    assert!(most.is_some_and(|most| most * 5 <= all), "{closings:?}");
    let back = tally.back_after(SECOND * 30, SECOND * 45, SECOND, 950);
    let peak = tally.sum(SECOND * 30, SECOND * 45).peak;
    assert!(back.is_some_and(|back| back <= SECOND * 10), "{back:?}");
    assert!(peak <= 800, "{peak} in flight");
}
