//! Retries stay within their budget, and losing every copy sends no more to the source than it is allowed.

use std::time::Duration;

use evenkeel_core::{Criticality, DependencyDraft, QueueRules, ReadDraft, RetryRules};
use evenkeel_sim::{
    Arrivals, Change, Mode, Node, Setup, Slowdown, SourceModel, Tally, Workload, cached_read,
    recovery::{Case, Figures, Kind, Trouble},
    run, shipped_dependency, shipped_read,
};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);
const SEEDS: std::ops::Range<u64> = 0..20;

const RETRIES: RetryRules = RetryRules {
    attempts: 3,
    ..RetryRules::DEFAULT
};

fn setup(rate: u32, mode: Mode) -> Setup {
    Setup {
        source: SourceModel {
            capacity: 50,
            latency: MS * 20,
            slowdown: Slowdown::Linear,
            finishes_abandoned: true,
            keeps_hung: false,
        },
        workload: Workload {
            arrivals: Arrivals::Random(rate),
            keys: 1,
            patience: None,
            retries: 0,
            pause: MS * 50,
        },
        script: vec![
            (SECOND * 10, Change::Mode(mode)),
            (SECOND * 40, Change::Mode(Mode::Up)),
        ],
        ends: SECOND * 50,
        current: SECOND * 6,
    }
}

/// A dependency that nothing but its budget spares.
fn unguarded(retry: Option<RetryRules>) -> DependencyDraft {
    DependencyDraft {
        breaker: None,
        ramp: None,
        learn: None,
        retry,
        ..shipped_dependency()
    }
}

fn run_with(setup: &Setup, dependency: DependencyDraft, seed: u64) -> Tally {
    let node = Node::new(shipped_read(), dependency, seed).expect("the contract is valid");
    run(setup, &[node], seed)
}

#[test]
fn r02_under_total_failure_the_source_is_asked_at_most_a_tenth_more_and_the_free_ones() {
    for seed in SEEDS {
        for mode in [Mode::Refuse, Mode::Partial(1_000_000)] {
            let tally = run_with(&setup(200, mode), unguarded(Some(RETRIES)), seed);
            // From two seconds after it began, when what the calm has saved is nearly spent.
            let outage = tally.sum(SECOND * 12, SECOND * 40);
            let calls = outage.requests + 200;
            let bound = calls + calls / 10 + 3 * 29;
            assert!(
                outage.asked <= bound,
                "{seed} {mode:?}: {} of {bound}",
                outage.asked
            );
            let whole = tally.sum(Duration::ZERO, SECOND * 50);
            let bound = whole.requests + whole.requests / 10 + 3 * 51;
            assert!(
                whole.asked <= bound,
                "{seed} {mode:?}: {} of {bound}",
                whole.asked
            );
        }
    }
}

#[test]
fn where_one_call_in_fifty_fails_by_chance_retries_make_it_one_in_a_thousand() {
    for seed in SEEDS {
        let chance = setup(200, Mode::Partial(20_000));
        let failed = |retry| {
            let sum = run_with(&chance, unguarded(retry), seed).sum(SECOND * 10, SECOND * 40);
            (sum.requests - sum.answered) * 1000 / sum.requests
        };
        assert!(failed(None) >= 10, "{seed}");
        assert!(failed(Some(RETRIES)) <= 1, "{seed}: {}", failed(Some(RETRIES)));
    }
}

/// Clients that ask again by themselves, a breaker, a ramp, a learned limit, and retries beside: still no collapse.
#[test]
fn retries_do_not_undo_the_recovery() {
    for seed in SEEDS {
        for kind in [Kind::Cached, Kind::Uncached] {
            let case = Case {
                kind,
                capacity: 20,
                slowdown: Slowdown::Quadratic,
                retrying: true,
                trouble: Trouble::None,
                even: false,
            };
            let dependency = DependencyDraft {
                retry: Some(RETRIES),
                ..shipped_dependency()
            };
            let figures = Figures::of(&case.run_as(dependency, seed).expect("the contract is valid"));
            let back = figures.back.expect("it comes back");
            assert!(back <= SECOND * 4, "{seed} {kind:?}: {figures:?}");
            assert!(figures.peak <= 40, "{seed} {kind:?}: {figures:?}");
        }
    }
}

#[test]
fn r08_losing_every_copy_at_peak_sends_no_more_to_the_source_than_its_limit() {
    for seed in SEEDS {
        let mut lost = setup(2000, Mode::Up);
        lost.workload.keys = 1000;
        lost.script = vec![(SECOND * 10, Change::LoseSnapshots)];
        lost.ends = SECOND * 30;
        let dependency = DependencyDraft {
            concurrency: Some(50),
            retry: Some(RETRIES),
            ..unguarded(None)
        };
        let node = Node::new(cached_read(SECOND * 4), dependency, seed).expect("the contract is valid");
        let tally = run(&lost, &[node], seed);
        let after = tally.sum(SECOND * 10, SECOND * 30);
        assert!(after.peak <= 50, "{seed}: {}", after.peak);
        let late = tally.sum(SECOND * 12, SECOND * 30);
        assert!(
            late.current_permille() >= 900,
            "{seed}: {}",
            late.current_permille()
        );
    }
}

/// Routes at one dependency, each with as many requests as the others.
fn routes(criticalities: &[Criticality], dependency: DependencyDraft, seed: u64) -> Vec<Node> {
    let read = |criticality| ReadDraft {
        criticality,
        ..shipped_read()
    };
    let first = Node::new(read(criticalities[0]), dependency, seed).expect("the contract is valid");
    let others: Vec<Node> = criticalities[1..]
        .iter()
        .map(|criticality| first.beside(read(*criticality)).expect("the contract is valid"))
        .collect();
    let mut nodes = vec![first];
    nodes.extend(others);
    nodes
}

/// One critical route and twelve sheddable ones.
fn flood() -> Vec<Criticality> {
    let mut all = vec![Criticality::Critical];
    all.resize(13, Criticality::Sheddable);
    all
}

/// A source good for 50 at once and 2500 a second, asked for almost three times as much.
fn flooded() -> Setup {
    let mut setup = setup(7000, Mode::Up);
    setup.source.slowdown = Slowdown::Queue;
    setup.ends = SECOND * 20;
    setup.script = Vec::new();
    setup
}

const QUEUE: QueueRules = QueueRules {
    length: 64,
    longest_wait: Duration::from_millis(50),
};

#[test]
fn r12_a_twelvefold_flood_of_sheddable_calls_leaves_critical_ones_their_answers() {
    for seed in 0..6 {
        for queue in [None, Some(QUEUE)] {
            let dependency = DependencyDraft {
                concurrency: Some(50),
                queue,
                ..unguarded(None)
            };
            let tally = run(&flooded(), &routes(&flood(), dependency, seed), seed);
            let critical = tally.of_node(0);
            assert!(
                critical.answered_permille() >= 990,
                "{seed} {queue:?}: {}",
                critical.answered_permille()
            );
            // What is left goes to the others: all in all the source is kept as busy as it can be.
            let all = tally.sum(SECOND, SECOND * 20);
            assert!(
                all.answered >= 2500 * 19 * 8 / 10,
                "{seed} {queue:?}: {}",
                all.answered
            );
            assert!(all.peak <= 50, "{seed} {queue:?}: {}", all.peak);
        }
    }
}

#[test]
fn r12_where_all_calls_matter_equally_none_is_kept_out_and_without_an_order_the_critical_ones_suffer() {
    let dependency = || DependencyDraft {
        concurrency: Some(50),
        ..unguarded(None)
    };
    let alike = vec![Criticality::Critical; 13];
    let tally = run(&flooded(), &routes(&alike, dependency(), 1), 1);
    let shares: Vec<u64> = (0..13)
        .map(|node| tally.of_node(node).answered_permille())
        .collect();
    assert!(
        shares.iter().all(|share| (300..450).contains(share)),
        "{shares:?}"
    );
}

#[test]
fn a_short_burst_waits_where_there_is_a_queue_instead_of_being_refused() {
    for seed in SEEDS {
        let mut burst = setup(600, Mode::Up);
        burst.script = Vec::new();
        burst.ends = SECOND * 10;
        burst.source.slowdown = Slowdown::Queue;
        let answered = |queue| {
            let dependency = DependencyDraft {
                concurrency: Some(15),
                queue,
                ..unguarded(None)
            };
            run_with(&burst, dependency, seed)
                .sum(Duration::ZERO, SECOND * 10)
                .answered_permille()
        };
        assert!(answered(None) < 950, "{seed}: {}", answered(None));
        assert!(answered(Some(QUEUE)) >= 999, "{seed}: {}", answered(Some(QUEUE)));
    }
}

/// A queue beside everything else that ships does not undo the recovery.
#[test]
fn a_queue_does_not_undo_the_recovery() {
    for seed in SEEDS {
        let case = Case {
            kind: Kind::Uncached,
            capacity: 20,
            slowdown: Slowdown::Quadratic,
            retrying: true,
            trouble: Trouble::None,
            even: false,
        };
        let dependency = DependencyDraft {
            queue: Some(QUEUE),
            ..shipped_dependency()
        };
        let figures = Figures::of(&case.run_as(dependency, seed).expect("the contract is valid"));
        assert!(
            figures.back.is_some_and(|back| back <= SECOND * 4),
            "{seed}: {figures:?}"
        );
        assert!(figures.peak <= 40, "{seed}: {figures:?}");
    }
}

/// The same where nobody wrote a capacity down: the limit is learned, and the order holds under it. What is lost more is
/// lost while the limit itself moves, the cold start included.
#[test]
fn r12_the_order_holds_under_a_learned_limit() {
    for seed in 0..6 {
        for slowdown in [Slowdown::Linear, Slowdown::Quadratic] {
            let mut setup = flooded();
            setup.source.slowdown = slowdown;
            let tally = run(&setup, &routes(&flood(), shipped_dependency(), seed), seed);
            let (critical, other) = (tally.of_node(0), tally.of_node(1));
            assert!(
                critical.answered_permille() >= 985,
                "{seed} {slowdown:?}: {}",
                critical.answered_permille()
            );
            assert!(
                other.answered_permille() >= 100,
                "{seed} {slowdown:?}: {}",
                other.answered_permille()
            );
        }
    }
}
