//! How recovering dependencies were kept from coming back elsewhere: gates that wait for each other, and crowds that
//! come back in step. The names are those of the pitfalls.
#![cfg(not(loom))]

use core::{cell::RefCell, time::Duration};
use std::collections::BTreeSet;

use evenkeel_core::{
    Asker, BreakerRules, Class, Dependency, DependencyDraft, Exclusive, Gate, Lane, LimitRules, Mono,
    OpenFor, RampRules, Reason, Recovery, State, Steering,
};

struct Alone<T>(RefCell<T>);

impl<T> Exclusive<T> for Alone<T> {
    fn guard(value: T) -> Self {
        Self(RefCell::new(value))
    }

    fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.0.borrow_mut())
    }
}

const LANE: Lane = Lane::new(0);
const S: Duration = Duration::from_secs(1);
const RULES: BreakerRules = BreakerRules {
    consecutive: Some(1),
    open_for: OpenFor::Timed {
        first: S,
        longest: S,
        jitter_ppm: 200_000,
    },
    ..BreakerRules::NONE
};

/// The learned limit is full of work that never ends, and nothing but a probe can show that the dependency is back.
#[test]
fn e15_a_probe_passes_the_limit_that_waits_for_it_and_one_owner_says_what_is_open() {
    let draft = DependencyDraft {
        name: "d".into(),
        breaker: Some(RULES),
        ramp: Some(RampRules::default()),
        learn: Some(LimitRules::DEFAULT),
        timeout: Some(10 * S),
        ..DependencyDraft::default()
    };
    let dependency = Dependency::<Alone<Steering>>::new(draft.check().expect("a sound draft"), Vec::new(), 1);
    let now = Mono::ORIGIN.after(S);
    let admit = |now| dependency.admit(now, Asker::Traffic, false).0;
    let mut hung = Vec::new();
    let refused = loop {
        match admit(now) {
            Ok(pass) => hung.push(pass),
            Err(refusal) => break refusal.reason,
        }
        assert!(hung.len() <= LimitRules::DEFAULT.cold as usize);
    };
    assert_eq!(refused, Reason::AtCapacity);
    let failed = hung.pop().expect("some are in flight");
    dependency.settle(failed, Class::OUTAGE, true, LANE, now);
    assert_eq!(dependency.state(), Some(State::Open));

    // Nothing of the work has ended: by the limit alone nobody would ever get in again.
    let due = dependency.next_probe().expect("a way back");
    let probe = admit(due).expect("a probe is not held up by what waits for it");
    assert!(probe.is_probe());
    assert_eq!(
        admit(due).expect_err("ordinary calls are").reason,
        Reason::BreakerOpen
    );
    dependency.settle(probe, Class::Answer, true, LANE, due);
    dependency.release();
    assert_eq!(dependency.state(), Some(State::Closed));
}

#[test]
fn e16_the_open_periods_of_many_nodes_end_apart() {
    let now = Mono::ORIGIN.after(S);
    let ends: BTreeSet<Duration> = (0..1000)
        .map(|seed| {
            let (gate, mut recovery) = (Gate::new(&RULES), Recovery::new(RULES, seed));
            let generation = gate.observe().expect("closed");
            let trip = gate.failed(LANE, now, generation).expect("one failure trips");
            recovery.tripped(&gate, trip, now);
            gate.next_probe().expect("a way back").since(now)
        })
        .collect();
    assert!(ends.len() > 990, "{} moments for a thousand nodes", ends.len());
    assert!(ends.first() >= Some(&(S * 4 / 5)) && ends.last() <= Some(&(S * 6 / 5)));
    // They use the whole of the spread, not a corner of it.
    assert!(ends.first() < Some(&(S * 82 / 100)) && ends.last() > Some(&(S * 118 / 100)));
}
