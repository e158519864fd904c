//! Every interleaving of a few threads at one breaker gate, by loom's model checker.
//!
//! `RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p evenkeel-core --release --test loom_gate`
#![cfg(loom)]

use core::time::Duration;

use evenkeel_core::{
    Admission, Asker, BreakerRules, Gate, Generation, Lane, Mono, OpenFor, Over, Ratio, Recovery, State,
    Trip, Verdict,
};
use loom::{sync::Arc, thread};

const NOW: Mono = Mono::ORIGIN;

/// Tries every interleaving with at most three switches away from a thread that could go on: enough for every
/// race of two steps against one, and an end within seconds.
fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 10_000;
    builder.check(run);
}

/// Opens for one millisecond, without jitter.
fn rules(consecutive: Option<u32>, ratio: Option<Ratio>) -> BreakerRules {
    BreakerRules {
        consecutive,
        ratio,
        open_for: OpenFor::Timed {
            first: Duration::from_millis(1),
            longest: Duration::from_millis(1),
            jitter_ppm: 0,
        },
        ..BreakerRules::NONE
    }
}

/// Trips when every one of the last `min_calls` calls failed.
fn last(min_calls: u32) -> Option<Ratio> {
    Some(Ratio {
        failures_ppm: 1_000_000,
        window: Over::Calls(min_calls),
        min_calls,
    })
}

/// Trips when every one of `min_calls` calls failed.
fn all_of(min_calls: u32) -> Option<Ratio> {
    Some(Ratio {
        failures_ppm: 1_000_000,
        window: Over::Time(Duration::from_secs(10)),
        min_calls,
    })
}

fn admitted(gate: &Gate, now: Mono) -> Generation {
    let generation = gate.observe();
    assert!(matches!(gate.admit(now), Admission::Admitted(_)));
    generation.expect("a closed gate has a generation to report under")
}

/// Runs `work` on threads of their own, one per lane given, and returns what they brought.
fn at_once<T: 'static>(gate: &Arc<Gate>, work: Vec<Box<dyn FnOnce(&Gate) -> T>>) -> Vec<T> {
    let threads: Vec<_> = work
        .into_iter()
        .map(|work| {
            let gate = Arc::clone(gate);
            thread::spawn(move || work(&gate))
        })
        .collect();
    threads
        .into_iter()
        .map(|thread| thread.join().expect("no thread of the model breaks"))
        .collect()
}

fn fail(lane: usize, generation: Generation) -> Box<dyn FnOnce(&Gate) -> Option<Trip>> {
    Box::new(move |gate| gate.failed(Lane::new(lane), NOW, generation))
}

fn succeed(lane: usize, generation: Generation) -> Box<dyn FnOnce(&Gate) -> Option<Trip>> {
    Box::new(move |gate| {
        gate.succeeded(Lane::new(lane), NOW, generation);
        None
    })
}

fn trips(results: Vec<Option<Trip>>) -> Vec<Trip> {
    results.into_iter().flatten().collect()
}

/// Trips the gate, lets its open period pass and closes it again with one good probe. Returns when.
fn recover(gate: &Gate, trip: Trip) -> Mono {
    let mut recovery = Recovery::new(rules(Some(1), None), 7);
    assert!(recovery.tripped(gate, trip, NOW).is_some());
    let later = NOW.after(Duration::from_millis(1));
    let (probe, _) = recovery.probe(gate, later, Asker::Traffic);
    let probe = probe.expect("the open period is over");
    assert!(recovery.settle(gate, probe, Verdict::Success, later).is_some());
    later
}

#[test]
fn exactly_one_of_three_concurrent_failures_trips() {
    model(|| {
        let gate = Arc::new(Gate::new(&rules(Some(2), None)));
        let generation = admitted(&gate, NOW);
        let trips = trips(at_once(
            &gate,
            (0..3).map(|lane| fail(lane, generation)).collect(),
        ));
        assert_eq!(trips.len(), 1);
        assert_eq!(gate.state(), State::Open);
    });
}

#[test]
fn exactly_one_of_two_concurrent_failures_trips_by_share() {
    model(|| {
        let gate = Arc::new(Gate::new(&rules(None, all_of(2))));
        let generation = admitted(&gate, NOW);
        let trips = trips(at_once(&gate, vec![fail(0, generation), fail(1, generation)]));
        assert_eq!(trips.len(), 1, "each failure overlooked the other");
        assert_eq!(gate.state(), State::Open);
    });
}

#[test]
fn a_success_among_failures_ends_the_run_wherever_it_falls() {
    model(|| {
        // One failure came before; two more and a success race. Three in a row trip.
        let gate = Arc::new(Gate::new(&rules(Some(3), None)));
        let generation = admitted(&gate, NOW);
        assert!(gate.failed(Lane::new(0), NOW, generation).is_none());
        let tripped = trips(at_once(
            &gate,
            vec![fail(0, generation), fail(1, generation), succeed(0, generation)],
        ))
        .len();
        if tripped == 1 {
            assert_eq!(gate.state(), State::Open, "the success came last");
            return;
        }
        // The success came first, between or last: two, one or no failures stand after it, never three.
        assert_eq!(tripped, 0);
        assert_eq!(gate.state(), State::Closed);
        let more = (1..=3)
            .find(|_| gate.failed(Lane::new(0), NOW, generation).is_some())
            .expect("three failures in a row trip");
        assert!(more == 1 || more == 2, "{more} more failures were needed");
    });
}

#[test]
fn a_success_that_was_reported_before_the_failures_is_never_lost() {
    model(|| {
        let gate = Arc::new(Gate::new(&rules(Some(2), None)));
        let generation = admitted(&gate, NOW);
        assert!(gate.failed(Lane::new(0), NOW, generation).is_none());
        let both: Box<dyn FnOnce(&Gate) -> Option<Trip>> = Box::new(move |gate| {
            gate.succeeded(Lane::new(0), NOW, generation);
            gate.failed(Lane::new(0), NOW, generation)
        });
        let tripped = trips(at_once(&gate, vec![both, succeed(1, generation)])).len();
        assert_eq!(tripped, 0, "one failure after a success is not two in a row");
        assert_eq!(gate.state(), State::Closed);
    });
}

#[test]
fn no_share_trips_while_calls_and_failures_are_being_counted() {
    model(|| {
        // A failure follows a success in the same lane: at no instant were all calls failures.
        let gate = Arc::new(Gate::new(&rules(None, all_of(1))));
        let generation = admitted(&gate, NOW);
        gate.succeeded(Lane::new(0), NOW, generation);
        let trips = trips(at_once(&gate, vec![fail(0, generation), fail(1, generation)]));
        assert_eq!(trips.len(), 0, "two of three is less than all");
        assert_eq!(gate.state(), State::Closed);
    });
}

#[test]
fn e10_a_late_failure_of_an_older_generation_changes_nothing() {
    model(|| {
        let gate = Arc::new(Gate::new(&rules(None, all_of(2))));
        let generation = admitted(&gate, NOW);
        assert!(gate.failed(Lane::new(0), NOW, generation).is_none());
        let recovered: Box<dyn FnOnce(&Gate) -> Option<Trip>> = Box::new(move |gate| {
            if let Some(trip) = gate.failed(Lane::new(0), NOW, generation) {
                recover(gate, trip);
            }
            None
        });
        let late: Box<dyn FnOnce(&Gate) -> Option<Trip>> =
            Box::new(move |gate| gate.failed(Lane::new(1), NOW, generation));
        let trips = trips(at_once(&gate, vec![recovered, late]));
        if trips.is_empty() {
            // The late one lost the race: the gate has recovered, and one failure is again one of one.
            assert_eq!(gate.state(), State::Closed);
            let fresh = admitted(&gate, NOW);
            assert_ne!(fresh, generation);
            assert!(
                gate.failed(Lane::new(0), NOW, fresh).is_none(),
                "a failure from before the recovery was counted after it"
            );
        }
    });
}

#[test]
fn e11_a_late_success_of_an_older_generation_changes_nothing() {
    model(|| {
        let gate = Arc::new(Gate::new(&rules(Some(2), None)));
        let old = admitted(&gate, NOW);
        assert!(gate.failed(Lane::new(0), NOW, old).is_none());
        let late = succeed(1, old);
        let recovered: Box<dyn FnOnce(&Gate) -> Option<Trip>> = Box::new(move |gate| {
            let Some(trip) = gate.failed(Lane::new(0), NOW, old) else {
                return None; // the success came first
            };
            let now = recover(gate, trip);
            let fresh = admitted(gate, now);
            assert!(gate.failed(Lane::new(0), now, fresh).is_none());
            gate.failed(Lane::new(0), now, fresh)
        });
        let recovered = at_once(&gate, vec![recovered, late]);
        let tripped_again = recovered.into_iter().flatten().count();
        match gate.state() {
            State::Open => assert_eq!(tripped_again, 1),
            State::Closed => assert_eq!(tripped_again, 0, "the success came first"),
            State::HalfOpen => unreachable!("no probe is in flight"),
        }
    });
}

#[test]
fn a_share_never_counts_more_calls_than_were_made() {
    model(|| {
        // Two calls race into one lane, so they may renew the same part; three are needed to trip.
        let gate = Arc::new(Gate::new(&rules(None, all_of(3))));
        let generation = admitted(&gate, NOW);
        let trips = trips(at_once(&gate, vec![fail(0, generation), fail(0, generation)]));
        assert_eq!(trips.len(), 0, "two calls were counted as three");
        assert!(
            gate.failed(Lane::new(0), NOW, generation).is_some(),
            "a call was lost"
        );
    });
}

#[test]
fn exactly_one_of_two_concurrent_failures_trips_by_a_ring() {
    model(|| {
        let gate = Arc::new(Gate::new(&rules(None, last(2))));
        let generation = admitted(&gate, NOW);
        let trips = trips(at_once(&gate, vec![fail(0, generation), fail(1, generation)]));
        assert_eq!(trips.len(), 1, "each failure overlooked the other");
        assert_eq!(gate.state(), State::Open);
    });
}

#[test]
fn e25_a_ring_that_several_calls_go_round_at_once_counts_what_it_holds() {
    model(|| {
        // Three verdicts race for two places that hold a failure and a success.
        let gate = Arc::new(Gate::new(&rules(None, last(2))));
        let generation = admitted(&gate, NOW);
        assert!(gate.failed(Lane::new(0), NOW, generation).is_none());
        gate.succeeded(Lane::new(0), NOW, generation);
        let good = vec![succeed(0, generation), succeed(1, generation)];
        assert_eq!(trips(at_once(&gate, good)).len(), 0);
        assert!(
            gate.failed(Lane::new(0), NOW, generation).is_none(),
            "a failure that has left the ring was counted"
        );
        assert!(
            gate.failed(Lane::new(0), NOW, generation).is_some(),
            "a failure in the ring was lost"
        );
    });
}

#[test]
fn e10_a_late_failure_of_an_older_generation_is_not_in_the_ring() {
    model(|| {
        let gate = Arc::new(Gate::new(&rules(None, last(2))));
        let generation = admitted(&gate, NOW);
        assert!(gate.failed(Lane::new(0), NOW, generation).is_none());
        let recovered: Box<dyn FnOnce(&Gate) -> Option<Trip>> = Box::new(move |gate| {
            if let Some(trip) = gate.failed(Lane::new(0), NOW, generation) {
                recover(gate, trip);
            }
            None
        });
        let trips = trips(at_once(&gate, vec![recovered, fail(1, generation)]));
        if trips.is_empty() && gate.state() == State::Closed {
            let fresh = admitted(&gate, NOW);
            assert!(
                fresh == generation || gate.failed(Lane::new(0), NOW, fresh).is_none(),
                "a failure from before the recovery was counted after it"
            );
        }
    });
}

/// Calls by the rules of before and by those of now fail at the same gate.
#[test]
fn a_gate_and_its_successor_trip_once_together() {
    model(|| {
        let old = Arc::new(Gate::new(&rules(Some(3), None)));
        let new = Arc::new(old.succeeded_by(&rules(Some(2), None)));
        let (before, now) = (admitted(&old, NOW), admitted(&new, NOW));
        let other = Arc::clone(&new);
        let late = thread::spawn(move || other.failed(Lane::new(1), NOW, now));
        let first = old.failed(Lane::new(0), NOW, before);
        let second = late.join().expect("no thread of the model breaks");
        let trips = [&first, &second]
            .into_iter()
            .filter(|trip| trip.is_some())
            .count();
        // Whichever comes second finds one before it: two are enough for the new rules, and not for the old ones.
        let is_open = new.state() == State::Open;
        assert_eq!((trips == 1, old.state()), (is_open, new.state()));
        assert_eq!(is_open, second.is_some(), "only the new rules can have opened it");
    });
}

/// The window of the successor begins while a failure opens the gate that both share.
#[test]
fn a_successor_that_begins_while_the_gate_opens_counts_once_it_has_closed() {
    model(|| {
        let old = Arc::new(Gate::new(&rules(Some(1), None)));
        let new = old.succeeded_by(&rules(None, last(2)));
        let generation = admitted(&old, NOW);
        let failing = Arc::clone(&old);
        let tripped = thread::spawn(move || failing.failed(Lane::new(0), NOW, generation));
        new.follow();
        let trip = tripped
            .join()
            .expect("no thread of the model breaks")
            .expect("one failure is enough");
        let mut recovery = Recovery::new(rules(None, last(2)), 1);
        assert!(recovery.tripped(&new, trip, NOW).is_some());
        let due = NOW.after(Duration::from_millis(1));
        let (probe, _) = recovery.probe(&new, due, Asker::Traffic);
        let probe = probe.expect("it is due");
        assert!(recovery.settle(&new, probe, Verdict::Success, due).is_some());
        let generation = admitted(&old, due);
        assert!(new.failed(Lane::new(0), due, generation).is_none());
        assert!(new.failed(Lane::new(0), due, generation).is_some(), "two of two");
    });
}
