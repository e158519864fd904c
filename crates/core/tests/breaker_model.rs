//! Gate and recovery against a plain model: lists and counters, no atomics, nothing packed.
//!
//! Random rules and random histories; after every step both must agree on everything a driver can see.
#![cfg(not(loom))]

use core::time::Duration;

use evenkeel_core::{
    Admission, Asker, BreakerRules, Cause, Gate, Generation, Lane, Mono, OpenFor, Over, Probe, Ratio,
    Recovery, SlowRatio, State, Transition, Trip, Verdict,
};
use proptest::prelude::*;

/// What a breaker is, said as plainly as possible.
struct Model {
    rules: BreakerRules,
    state: State,
    /// Goes up by one with every change of state.
    generation: u32,
    /// Results of the present closed period: when, and whether it failed.
    results: Vec<(Mono, bool)>,
    /// Calls of the present closed period whose speed is known: when, and whether it was slow.
    speeds: Vec<(Mono, bool)>,
    next_probe: Option<Mono>,
    openings: u32,
    proofs: u32,
    /// Probes in flight: number and end of lease.
    probes: Vec<(usize, Mono)>,
}

impl Model {
    fn turn(&mut self, state: State) {
        self.state = state;
        self.generation += 1;
        self.probes.clear();
    }

    /// Returns whether the result tripped the breaker.
    fn result(&mut self, generation: u32, failed: bool, now: Mono) -> bool {
        if generation != self.generation {
            return false;
        }
        self.results.push((now, failed));
        let run = self
            .results
            .iter()
            .rev()
            .take_while(|(_, failed)| *failed)
            .count();
        let too_many = self.rules.consecutive.is_some_and(|limit| run >= limit as usize);
        let too_large_a_share = self.rules.ratio.is_some_and(|ratio| {
            reaches(
                &self.results,
                ratio.window,
                ratio.failures_ppm,
                ratio.min_calls,
                now,
            )
        });
        self.trips(failed && (too_many || too_large_a_share))
    }

    /// Returns whether the speed of a call tripped the breaker.
    fn speed(&mut self, generation: u32, slow: bool, now: Mono) -> bool {
        let Some(rules) = self.rules.slow.filter(|_| generation == self.generation) else {
            return false;
        };
        self.speeds.push((now, slow));
        let too_large = reaches(&self.speeds, rules.window, rules.slow_ppm, rules.min_calls, now);
        self.trips(slow && too_large)
    }

    fn trips(&mut self, trips: bool) -> bool {
        if trips {
            self.turn(State::Open);
            self.next_probe = None; // until the trip is handed in
        }
        trips
    }

    fn start_open_period(&mut self, now: Mono) {
        self.proofs = 0;
        self.next_probe = match self.rules.open_for {
            OpenFor::Manual => None,
            OpenFor::Timed { first, longest, .. } => {
                Some(now.after((first * 2_u32.pow(self.openings - 1)).min(longest)))
            }
        };
    }

    fn reopen(&mut self, now: Mono) {
        self.turn(State::Open);
        self.openings += 1;
        self.start_open_period(now);
    }

    fn close(&mut self) {
        self.turn(State::Closed);
        self.results.clear();
        self.speeds.clear();
        self.proofs = 0;
        self.openings = 0;
        self.next_probe = None;
    }

    fn expire(&mut self, now: Mono) -> Option<Cause> {
        let overdue = self.probes.iter().any(|(_, until)| *until <= now);
        overdue.then(|| {
            self.reopen(now);
            Cause::LeaseExpired
        })
    }

    fn probe(&mut self, number: usize, asker: Asker, now: Mono) -> (bool, Vec<Cause>) {
        let mut causes = Vec::from_iter(self.expire(now));
        let due = asker == Asker::Person || self.next_probe.is_some_and(|at| at <= now);
        let granted = self.state != State::Closed && due && self.probes.len() < self.rules.probes as usize;
        if granted {
            if self.state == State::Open {
                self.turn(State::HalfOpen);
                causes.push(Cause::Probing);
            }
            let lease = self.rules.lease.unwrap_or(BreakerRules::LEASE);
            self.probes.push((number, now.after(lease)));
            self.wait_half_open(now);
        }
        (granted, causes)
    }

    fn settle(&mut self, number: usize, verdict: Verdict, now: Mono) -> Option<Cause> {
        let mine = |(of, _): &(usize, Mono)| *of == number;
        if verdict == Verdict::Failure && self.probes.iter().any(mine) {
            self.reopen(now);
            return Some(Cause::ProbeFailed);
        }
        if let Some(expired) = self.expire(now) {
            return Some(expired);
        }
        let place = self.probes.iter().position(mine)?;
        self.probes.remove(place);
        self.proofs += u32::from(verdict == Verdict::Success);
        if self.proofs == self.rules.close_after {
            self.close();
            return Some(Cause::Proven);
        }
        self.wait_half_open(now);
        None
    }

    fn wait_half_open(&mut self, now: Mono) {
        let place_is_free = self.probes.len() < self.rules.probes as usize;
        let timed = self.rules.open_for != OpenFor::Manual;
        let first_lease_end = self.probes.iter().map(|(_, until)| *until).min();
        self.next_probe = if timed && place_is_free {
            Some(now)
        } else {
            first_lease_end
        };
    }

    fn admits(&self, now: Mono) -> &'static str {
        match (self.state, self.next_probe) {
            (State::Closed, _) => "admitted",
            (State::Open | State::HalfOpen, Some(at)) if at <= now => "may probe",
            (State::Open | State::HalfOpen, _) => "refused",
        }
    }
}

/// One step of a history. Numbers choose among the calls and probes that are there, old ones included.
#[derive(Clone, Copy, Debug)]
enum Move {
    Admit,
    Succeed(usize),
    Fail(usize),
    /// A failure whose trip is handed in only when [`Move::HandIn`] comes: others may get in between.
    FailAndWait(usize),
    HandIn,
    Quick(usize),
    Slow(usize),
    Probe(Asker),
    Settle(usize, Verdict),
    Expire,
    Reset,
    /// Advance by this many nanoseconds.
    Pass(i64),
    /// Go to the next probe's time, this many nanoseconds off.
    PassToNextProbe(i64),
}

/// Tells whether enough calls are in the window, and enough of them bad.
fn reaches(calls: &[(Mono, bool)], window: Over, limit_ppm: u32, min_calls: u32, now: Mono) -> bool {
    let inside: Vec<bool> = match window {
        Over::Time(span) => {
            let part = |at: Mono| at.as_nanos() / (nanos(span) / 10);
            let recent = calls.iter().filter(|(at, _)| part(now) - part(*at) < 10);
            recent.map(|(_, bad)| *bad).collect()
        }
        Over::Calls(last) => {
            let recent = calls.iter().rev().take(last as usize);
            recent.map(|(_, bad)| *bad).collect()
        }
    };
    let bad = inside.iter().filter(|bad| **bad).count();
    inside.len() >= min_calls as usize && bad * 1_000_000 >= inside.len() * limit_ppm as usize
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).expect("spans in tests are short")
}

const MS: i64 = 1_000_000;

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let verdict = prop::sample::select(vec![Verdict::Success, Verdict::Failure, Verdict::Neutral]);
    let one = prop_oneof![
        4 => Just(Move::Admit),
        4 => (0_usize..8).prop_map(Move::Succeed),
        8 => (0_usize..8).prop_map(Move::Fail),
        1 => (0_usize..8).prop_map(Move::FailAndWait),
        2 => Just(Move::HandIn),
        2 => (0_usize..8).prop_map(Move::Quick),
        4 => (0_usize..8).prop_map(Move::Slow),
        4 => Just(Move::Probe(Asker::Traffic)),
        1 => Just(Move::Probe(Asker::Person)),
        6 => (0_usize..4, verdict).prop_map(|(which, verdict)| Move::Settle(which, verdict)),
        1 => Just(Move::Expire),
        1 => Just(Move::Reset),
        3 => prop::sample::select(vec![0, 1, MS, 99 * MS, 100 * MS, 500 * MS, 1_000 * MS]).prop_map(Move::Pass),
        4 => (-1_i64..=1).prop_map(Move::PassToNextProbe),
    ];
    prop::collection::vec(one, 1..120)
}

fn rules() -> impl Strategy<Value = BreakerRules> {
    let consecutive = 1_u32..5;
    let window = prop_oneof![
        Just(Over::Time(Duration::from_secs(1))),
        (6_u32..9).prop_map(Over::Calls),
    ];
    let share = || {
        (
            prop::sample::select(vec![1, 400_000, 500_000, 1_000_000]),
            window.clone(),
            1_u32..6,
        )
    };
    let ratio = share().prop_map(|(failures_ppm, window, min_calls)| Ratio {
        failures_ppm,
        window,
        min_calls,
    });
    let slow = share().prop_map(|(slow_ppm, window, min_calls)| SlowRatio {
        after: Duration::from_millis(1),
        slow_ppm,
        window,
        min_calls,
    });
    let trips = prop_oneof![
        consecutive.clone().prop_map(|limit| (Some(limit), None, None)),
        ratio.clone().prop_map(|ratio| (None, Some(ratio), None)),
        slow.clone().prop_map(|slow| (None, None, Some(slow))),
        (consecutive, ratio, prop::option::of(slow)).prop_map(|(limit, ratio, slow)| (
            Some(limit),
            Some(ratio),
            slow
        )),
    ];
    let open_for = prop_oneof![
        1 => Just(OpenFor::Manual),
        3 => Just(OpenFor::Timed {
            first: Duration::from_millis(100),
            longest: Duration::from_millis(300),
            jitter_ppm: 0,
        }),
    ];
    let lease = prop::option::of(Just(Duration::from_millis(500)));
    (trips, open_for, 1_u32..4, 1_u32..4, lease).prop_map(
        |((consecutive, ratio, slow), open_for, probes, close_after, lease)| BreakerRules {
            consecutive,
            ratio,
            open_for,
            probes,
            close_after,
            lease,
            slow,
        },
    )
}

/// The real thing beside its model, and what a driver holds: calls, probes, perhaps a trip.
struct Pair {
    gate: Gate,
    recovery: Recovery,
    model: Model,
    now: Mono,
    calls: Vec<(Generation, u32)>,
    probes: Vec<(Probe, usize)>,
    issued: usize,
    trip: Option<(Trip, u32)>,
}

impl Pair {
    fn new(rules: BreakerRules) -> Self {
        Self {
            gate: Gate::new(&rules),
            recovery: Recovery::new(rules, 1),
            model: Model {
                rules,
                state: State::Closed,
                generation: 0,
                results: Vec::new(),
                speeds: Vec::new(),
                next_probe: None,
                openings: 0,
                proofs: 0,
                probes: Vec::new(),
            },
            now: Mono::from_nanos(12_345_678_901),
            calls: Vec::new(),
            probes: Vec::new(),
            issued: 0,
            trip: None,
        }
    }

    /// Does the move on both sides; returns the changes of state that each reported.
    fn step(&mut self, step: Move) -> (Vec<Transition>, Vec<Cause>) {
        if let Move::Probe(asker) = step {
            return self.probe(asker);
        }
        let (transition, cause) = self.small_step(step);
        (Vec::from_iter(transition), Vec::from_iter(cause))
    }

    fn probe(&mut self, asker: Asker) -> (Vec<Transition>, Vec<Cause>) {
        self.issued += 1;
        let (granted, changes) = self.recovery.probe(&self.gate, self.now, asker);
        let (model_granted, causes) = self.model.probe(self.issued, asker, self.now);
        assert_eq!(granted.is_ok(), model_granted, "whether a probe may start");
        match granted {
            Ok(probe) => self.probes.push((probe, self.issued)),
            Err(next) => assert_eq!(next, self.model.next_probe, "what a refused probe is told"),
        }
        (changes.into_iter().flatten().collect(), causes)
    }

    /// Does a move that changes the state once at most.
    fn small_step(&mut self, step: Move) -> (Option<Transition>, Option<Cause>) {
        let now = self.now;
        match step {
            Move::Admit => {
                let admission = self.gate.admit(now);
                if let Admission::Admitted(generation) = admission {
                    self.calls.push((generation, self.model.generation));
                }
                (None, None)
            }
            Move::Succeed(which) => {
                if let Some((generation, model)) = pick(&self.calls, which) {
                    self.gate.succeeded(Lane::new(which), now, generation);
                    self.model.result(model, false, now);
                }
                (None, None)
            }
            Move::Fail(which) => {
                self.fail(which);
                self.hand_in()
            }
            Move::FailAndWait(which) => {
                self.fail(which);
                (None, None)
            }
            Move::HandIn => self.hand_in(),
            Move::Quick(which) => {
                if let Some((generation, model)) = pick(&self.calls, which) {
                    self.gate.was_quick(Lane::new(which), now, generation);
                    self.model.speed(model, false, now);
                }
                (None, None)
            }
            Move::Slow(which) => {
                self.slow(which);
                self.hand_in()
            }
            Move::Probe(_) => unreachable!("it may change the state twice"),
            Move::Settle(which, verdict) => {
                if self.probes.is_empty() {
                    return (None, None);
                }
                let (probe, number) = self.probes.remove(which % self.probes.len());
                let transition = self.recovery.settle(&self.gate, probe, verdict, now);
                (transition, self.model.settle(number, verdict, now))
            }
            Move::Expire => (self.recovery.expire(&self.gate, now), self.model.expire(now)),
            Move::Reset => {
                let was_closed = self.model.state == State::Closed;
                if !was_closed {
                    self.model.close();
                }
                let cause = (!was_closed).then_some(Cause::Reset);
                (self.recovery.reset(&self.gate, now), cause)
            }
            Move::Pass(nanos) => {
                self.now = Mono::from_nanos(now.as_nanos() + nanos);
                (None, None)
            }
            Move::PassToNextProbe(nanos) => {
                if let Some(at) = self.model.next_probe {
                    self.now = now.max(Mono::from_nanos(at.as_nanos() + nanos));
                }
                (None, None)
            }
        }
    }

    fn fail(&mut self, which: usize) {
        if let Some((generation, model)) = pick(&self.calls, which) {
            let trip = self.gate.failed(Lane::new(which), self.now, generation);
            assert_eq!(
                trip.is_some(),
                self.model.result(model, true, self.now),
                "whether a failure trips"
            );
            if let Some(trip) = trip {
                self.trip = Some((trip, self.model.generation));
            }
        }
    }

    fn slow(&mut self, which: usize) {
        if let Some((generation, model)) = pick(&self.calls, which) {
            let trip = self.gate.is_slow(Lane::new(which), self.now, generation);
            let trips = self.model.speed(model, true, self.now);
            assert_eq!(trip.is_some(), trips, "whether a slow call trips");
            if let Some(trip) = trip {
                self.trip = Some((trip, self.model.generation));
            }
        }
    }

    /// Hands in the trip, if there is one; it counts only while nobody has probed or reset since.
    fn hand_in(&mut self) -> (Option<Transition>, Option<Cause>) {
        let Some((trip, generation)) = self.trip.take() else {
            return (None, None);
        };
        let counts = generation == self.model.generation;
        if counts {
            self.model.openings = 1;
            self.model.start_open_period(self.now);
        }
        let transition = self.recovery.tripped(&self.gate, trip, self.now);
        (transition, counts.then_some(Cause::Tripped))
    }

    /// Everything a driver can see.
    fn compare(&self, before: State, told: &[Transition], causes: &[Cause]) {
        let model = &self.model;
        assert_eq!(self.gate.state(), model.state, "state");
        assert_eq!(self.gate.next_probe(), model.next_probe, "next probe");
        assert_eq!(
            self.gate.observe().is_some(),
            model.state == State::Closed,
            "observe"
        );
        let admission = match self.gate.admit(self.now) {
            Admission::Admitted(_) => "admitted",
            Admission::MayProbe => "may probe",
            Admission::Refused { next_probe } => {
                assert_eq!(next_probe, model.next_probe, "what a refused call is told");
                "refused"
            }
        };
        assert_eq!(admission, model.admits(self.now), "admission");
        let told_causes: Vec<Cause> = told.iter().map(|seen| seen.cause).collect();
        assert_eq!(told_causes, causes, "reported changes");
        let mut from = before;
        for seen in told {
            if seen.cause == Cause::Tripped {
                from = State::Closed;
            }
            assert_eq!((seen.from, seen.at), (from, self.now), "{seen:?}");
            from = seen.to;
        }
        if !told.is_empty() {
            assert_eq!(from, model.state, "the reported changes lead to the state");
            assert_eq!(self.recovery.changed_at(), self.now);
        }
        let held = |number: &usize| self.probes.iter().any(|(_, mine)| mine == number);
        assert!(
            model.probes.iter().all(|(number, _)| held(number)),
            "a probe in flight is somebody's"
        );
        assert!(
            model.probes.len() <= model.rules.probes as usize,
            "probes in flight"
        );
    }
}

fn pick<T: Copy>(list: &[T], which: usize) -> Option<T> {
    list.get(which % list.len().max(1)).copied()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]
    #[test]
    fn a_breaker_does_what_its_plain_model_does(rules in rules(), moves in moves()) {
        let mut pair = Pair::new(rules);
        for step in moves {
            let before = pair.model.state;
            let (told, causes) = pair.step(step);
            pair.compare(before, &told, &causes);
        }
    }
}
