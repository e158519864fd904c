//! Decides what we promise: for each row of the table, what must hold and what we want, as ratios.
//! It exists as data beside the names of the subjects, so that a goal cannot speak of something else.
//! It refuses absolute times; they are another machine's.

use evenkeel_bench_library::{
    Comparison,
    Measure::{Allocations, ManyTasks, OneThread, TwoThreads},
    at_least, at_most, compare,
};

use crate::{
    ours::{gate, hits, stack},
    peers::{amalgam_cache, breakers, caches, tower_resilience},
};

/// Returns every line of the table, in order.
pub(crate) fn lines() -> Vec<Comparison> {
    [
        closed_breaker(),
        closed_stack(),
        open_stack(),
        fresh_hit(),
        stale_hit(),
    ]
    .concat()
}

fn closed_breaker() -> Vec<Comparison> {
    use breakers::{FAILSAFE_DEFAULT, FAILSAFE_IN_A_ROW, RECLOSER};
    use gate::{DEFAULT_RULES, DEFAULT_RULES_AND_CLOCK, IN_A_ROW};
    let mut lines = Vec::new();
    for ours in [IN_A_ROW, DEFAULT_RULES] {
        lines.push(compare(
            8,
            OneThread,
            (ours, RECLOSER),
            at_most(1.0),
            at_most(0.6),
        ));
        lines.push(compare(
            8,
            TwoThreads,
            (ours, FAILSAFE_IN_A_ROW),
            at_least(1.0),
            at_least(2.0),
        ));
        lines.push(compare(
            8,
            Allocations,
            (ours, RECLOSER),
            at_most(0.0),
            at_most(0.0),
        ));
    }
    // Without goals: most of it is the clock, which recloser does without and failsafe's default does not.
    for peer in [RECLOSER, FAILSAFE_DEFAULT, tower_resilience::BREAKER] {
        lines.push(compare(8, OneThread, (DEFAULT_RULES_AND_CLOCK, peer), None, None));
        lines.push(compare(
            8,
            TwoThreads,
            (DEFAULT_RULES_AND_CLOCK, peer),
            None,
            None,
        ));
    }
    lines
}

fn closed_stack() -> Vec<Comparison> {
    use stack::{CLOSED, CLOSED_OWNED, CLOSED_TASKS};
    use tower_resilience::{STACK, STACK_TASKS, UNTIMED_STACK_TASKS};
    vec![
        compare(9, OneThread, (CLOSED, STACK), at_most(0.25), at_most(0.12)),
        compare(9, OneThread, (CLOSED_OWNED, STACK), at_most(0.25), at_most(0.12)),
        compare(9, TwoThreads, (CLOSED, STACK), None, None),
        compare(
            9,
            ManyTasks,
            (CLOSED_TASKS, STACK_TASKS),
            at_least(5.0),
            at_least(10.0),
        ),
        compare(
            9,
            ManyTasks,
            (CLOSED_TASKS, UNTIMED_STACK_TASKS),
            at_least(5.0),
            at_least(10.0),
        ),
        compare(9, Allocations, (CLOSED, STACK), at_most(1.0), at_most(0.0)),
        compare(9, Allocations, (CLOSED_OWNED, STACK), at_most(1.0), at_most(0.0)),
    ]
}

fn open_stack() -> Vec<Comparison> {
    use breakers::{FAILSAFE_OPEN, RECLOSER_OPEN};
    use stack::OPEN;
    use tower_resilience::STACK_OPEN;
    vec![
        compare(10, OneThread, (OPEN, STACK_OPEN), at_most(0.2), None),
        compare(10, OneThread, (OPEN, RECLOSER_OPEN), None, at_most(1.1)),
        compare(10, OneThread, (OPEN, FAILSAFE_OPEN), None, None),
        compare(10, TwoThreads, (OPEN, STACK_OPEN), None, None),
        compare(10, Allocations, (OPEN, STACK_OPEN), at_most(0.0), at_most(0.0)),
    ]
}

fn fresh_hit() -> Vec<Comparison> {
    use amalgam_cache::FRESH_LOOK;
    use caches::{MOKA, QUICK_CACHE};
    use hits::FRESH;
    vec![
        compare(
            11,
            OneThread,
            (FRESH, amalgam_cache::FRESH),
            at_most(0.6),
            at_most(0.3),
        ),
        compare(11, OneThread, (FRESH, FRESH_LOOK), None, None),
        compare(11, OneThread, (FRESH, MOKA), None, None),
        compare(11, OneThread, (FRESH, QUICK_CACHE), None, None),
        compare(11, TwoThreads, (FRESH, amalgam_cache::FRESH), None, None),
        compare(11, TwoThreads, (FRESH, QUICK_CACHE), None, None),
        compare(
            11,
            Allocations,
            (FRESH, amalgam_cache::FRESH),
            at_most(0.0),
            at_most(0.0),
        ),
    ]
}

fn stale_hit() -> Vec<Comparison> {
    use amalgam_cache::{STALE_AFTER_FAILURE, STALE_WHILE_THROTTLED};
    use hits::FRESH;
    vec![
        compare(
            12,
            OneThread,
            (hits::STALE_AFTER_FAILURE, STALE_AFTER_FAILURE),
            at_most(0.3),
            at_most(0.12),
        ),
        compare(
            12,
            OneThread,
            (hits::STALE_WHILE_OPEN, STALE_WHILE_THROTTLED),
            at_most(0.7),
            None,
        ),
        compare(
            12,
            OneThread,
            (hits::STALE_WHILE_OPEN, FRESH),
            None,
            at_most(1.15),
        ),
        compare(
            12,
            TwoThreads,
            (hits::STALE_WHILE_OPEN, STALE_WHILE_THROTTLED),
            None,
            None,
        ),
        compare(
            12,
            Allocations,
            (hits::STALE_AFTER_FAILURE, STALE_AFTER_FAILURE),
            at_most(4.0),
            None,
        ),
        compare(
            12,
            Allocations,
            (hits::STALE_WHILE_OPEN, STALE_WHILE_THROTTLED),
            at_most(0.0),
            at_most(0.0),
        ),
    ]
}
