//! What callers feel at the end of each lifetime, in virtual time: nothing, once copies answer for what is being asked.

use std::time::Duration;

use evenkeel_core::{DependencyDraft, ReadDraft, RefreshRules};
use evenkeel_sim::{
    Arrivals, Change, Node, Setup, Slot, Slowdown, SourceModel, Workload, cached_read, run,
    shipped_dependency,
};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// A source that takes 400 ms and clients who wait for 100 ms, from the time at which every key has been asked for.
fn with(refresh: RefreshRules) -> Slot {
    let setup = Setup {
        source: SourceModel {
            capacity: 200,
            latency: MS * 20,
            slowdown: Slowdown::Queue,
            finishes_abandoned: true,
            keeps_hung: false,
        },
        workload: Workload {
            arrivals: Arrivals::Even(500),
            keys: 100,
            patience: Some(MS * 100),
            retries: 0,
            pause: MS * 50,
        },
        script: vec![(SECOND * 3, Change::Latency(MS * 400))],
        ends: SECOND * 30,
        current: SECOND * 6,
    };
    let read = ReadDraft {
        refresh,
        ..cached_read(SECOND * 4)
    };
    // A learned limit would take the sudden latency for overload.
    let dependency = DependencyDraft {
        learn: None,
        ramp: None,
        ..shipped_dependency()
    };
    let node = Node::new(read, dependency, 7).expect("a sound draft");
    run(&setup, &[node], 7).sum(SECOND * 4, SECOND * 30)
}

#[test]
fn without_windows_callers_leave_at_the_end_of_each_lifetime() {
    assert!(with(RefreshRules::default()).answered < with(RefreshRules::default()).requests);
}

#[test]
fn in_their_window_copies_answer_everybody_and_each_key_is_asked_for_once_in_a_lifetime() {
    let slot = with(RefreshRules {
        stale_while_revalidate: Some(SECOND * 10),
        ..RefreshRules::default()
    });
    assert_eq!((slot.answered, slot.current), (slot.requests, slot.requests));
    // 100 keys, 26 s, lifetimes of 4 s: as many refreshes, and no more.
    assert!((400..=700).contains(&slot.asked), "{} asked", slot.asked);
}

#[test]
fn after_the_soft_timeout_copies_answer_everybody_and_each_key_is_asked_for_once_in_a_lifetime() {
    let slot = with(RefreshRules {
        soft_timeout: Some(MS * 50),
        ..RefreshRules::default()
    });
    assert_eq!((slot.answered, slot.current), (slot.requests, slot.requests));
    assert!((400..=700).contains(&slot.asked), "{} asked", slot.asked);
}
