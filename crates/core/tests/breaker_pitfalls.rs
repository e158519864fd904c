//! How existing breakers and permits got it wrong, as far as the pure rules can show it: one test per pitfall,
//! named after its id and after what holds here.
#![cfg(not(loom))]

use core::time::Duration;

use evenkeel_core::{
    Admission, Asker, BreakerRules, Bulkhead, Cause, Class, DependencyDraft, Gate, Generation, Lane, Mono,
    OpenFor, Over, Probe, Ratio, Recovery, State, Table, Transition, Verdict,
};

const MS: Duration = Duration::from_millis(1);
const NS: Duration = Duration::from_nanos(1);
const S: Duration = Duration::from_secs(1);
const LANE: Lane = Lane::new(0);

/// A breaker and its clock. Opens for two seconds after three failures in a row, unless told otherwise.
struct Rig {
    gate: Gate,
    recovery: Recovery,
    now: Mono,
}

const RULES: BreakerRules = BreakerRules {
    consecutive: Some(3),
    open_for: OpenFor::Timed {
        first: Duration::from_secs(2),
        longest: Duration::from_secs(2),
        jitter_ppm: 0,
    },
    ..BreakerRules::NONE
};

impl Rig {
    fn new(rules: BreakerRules) -> Self {
        Self {
            gate: Gate::new(&rules),
            recovery: Recovery::new(rules, 1),
            now: Mono::from_nanos(1_000_000_000_000),
        }
    }

    /// A breaker that has just tripped.
    fn open(rules: BreakerRules) -> Self {
        let mut rig = Self::new(rules);
        while rig.gate.state() == State::Closed {
            rig.fail();
        }
        rig
    }

    /// A breaker whose open period is over.
    fn due(rules: BreakerRules) -> Self {
        let mut rig = Self::open(rules);
        rig.pass(2 * S);
        rig
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now.after(span);
    }

    fn admitted(&self) -> Generation {
        self.gate.observe().expect("the breaker is closed")
    }

    fn fail(&mut self) {
        let generation = self.admitted();
        self.fail_as(generation);
    }

    fn fail_as(&mut self, generation: Generation) {
        if let Some(trip) = self.gate.failed(LANE, self.now, generation) {
            let told = self.recovery.tripped(&self.gate, trip, self.now);
            assert_eq!(told.map(|seen| seen.cause), Some(Cause::Tripped));
        }
    }

    fn probe(&mut self) -> Option<Probe> {
        self.recovery.probe(&self.gate, self.now, Asker::Traffic).0.ok()
    }

    fn must_probe(&mut self) -> Probe {
        self.probe().expect("a probe may start")
    }

    fn settle(&mut self, probe: Probe, verdict: Verdict) -> Option<Transition> {
        self.recovery.settle(&self.gate, probe, verdict, self.now)
    }

    fn is_refused(&self) -> bool {
        matches!(self.gate.admit(self.now), Admission::Refused { .. })
    }
}

fn probes(probes: u32) -> BreakerRules {
    BreakerRules { probes, ..RULES }
}

#[test]
fn e01_in_half_open_exactly_the_permitted_number_passes() {
    for permitted in [1, 2, 3] {
        let mut rig = Rig::due(probes(permitted));
        let granted = (0..500).filter(|_| rig.probe().is_some()).count();
        assert_eq!(granted, permitted as usize);
        assert!(rig.is_refused(), "ordinary calls stay refused");
        // A person may probe before it is due, but not beside those who do already.
        let (by_hand, _) = rig.recovery.probe(&rig.gate, rig.now, Asker::Person);
        assert!(by_hand.is_err(), "{permitted} are in flight");
    }
}

#[test]
fn e02_probes_in_flight_are_counted_not_completed_ones() {
    let mut rig = Rig::due(BreakerRules {
        close_after: 3,
        ..probes(1)
    });
    for _ in 0..2 {
        let probe = rig.must_probe();
        assert!(rig.probe().is_none(), "one is in flight");
        assert_eq!(rig.settle(probe, Verdict::Success), None);
    }
    assert_eq!(rig.gate.state(), State::HalfOpen);
}

#[test]
fn e03_nobody_slips_in_between_open_and_half_open() {
    let mut rig = Rig::due(RULES);
    assert_eq!(rig.gate.admit(rig.now), Admission::MayProbe);
    assert_eq!(rig.gate.state(), State::Open, "asking is not yet passing");
    let _probe = rig.must_probe();
    assert_eq!(rig.gate.state(), State::HalfOpen);
    assert!(rig.is_refused());
}

#[test]
fn e04_e05_a_probe_without_verdict_frees_its_place_and_decides_nothing() {
    for class in [
        Class::Refusal,
        Class::Busy,
        Class::Fault,
        Class::Cancelled,
        Class::Local,
    ] {
        let mut rig = Rig::due(RULES);
        let probe = rig.must_probe();
        assert!(rig.probe().is_none());
        assert_eq!(
            rig.settle(probe, Table::default().row(class).breaker),
            None,
            "{class:?}"
        );
        assert_eq!(rig.gate.state(), State::HalfOpen);
        assert_eq!(rig.gate.admit(rig.now), Admission::MayProbe);
        let next = rig.must_probe();
        assert!(rig.settle(next, Verdict::Success).is_some());
        assert_eq!(rig.gate.state(), State::Closed);
    }
}

#[test]
fn e06_a_probe_that_never_settles_counts_as_failed_when_its_lease_ends() {
    let mut rig = Rig::due(RULES);
    let hung = rig.must_probe();
    let until = rig.now.after(BreakerRules::LEASE);
    assert_eq!(rig.gate.next_probe(), Some(until));
    assert_eq!(rig.recovery.expire(&rig.gate, until.before(NS)), None);
    assert_eq!(rig.gate.state(), State::HalfOpen);
    let told = rig.recovery.expire(&rig.gate, until).map(|seen| seen.cause);
    assert_eq!(told, Some(Cause::LeaseExpired));
    assert_eq!(rig.gate.next_probe(), Some(until.after(2 * S)));
    rig.now = until.after(NS);
    assert_eq!(
        rig.settle(hung, Verdict::Success),
        None,
        "its success comes too late"
    );
    assert_eq!(rig.gate.state(), State::Open);
}

#[test]
fn e06_a_success_counts_until_the_lease_ends_and_not_at_its_end() {
    let ends = [
        BreakerRules::LEASE - NS,
        BreakerRules::LEASE,
        BreakerRules::LEASE + NS,
    ];
    let causes = ends.map(|after| {
        let mut rig = Rig::due(RULES);
        let probe = rig.must_probe();
        rig.pass(after);
        rig.settle(probe, Verdict::Success).map(|seen| seen.cause)
    });
    assert_eq!(
        causes,
        [
            Some(Cause::Proven),
            Some(Cause::LeaseExpired),
            Some(Cause::LeaseExpired)
        ]
    );
}

#[test]
fn e06_a_probe_that_ran_into_its_timeout_is_told_as_failed_not_as_lost() {
    let mut rig = Rig::due(BreakerRules {
        lease: Some(S),
        ..RULES
    });
    let probe = rig.must_probe();
    rig.pass(S);
    let told = rig.settle(probe, Verdict::Failure).map(|seen| seen.cause);
    assert_eq!(told, Some(Cause::ProbeFailed));
}

#[test]
fn e06_a_probe_whose_body_still_flows_when_its_lease_ends_is_judged_by_its_head() {
    let lease = BreakerRules::LEASE;
    // Until the lease ends nothing is decided, so that a body that breaks off early reopens.
    let mut rig = Rig::due(RULES);
    let probe = rig.must_probe();
    rig.recovery.answered(&probe, Verdict::Success);
    rig.pass(lease - NS);
    assert_eq!(rig.recovery.expire(&rig.gate, rig.now), None);
    let cut = rig.settle(probe, Verdict::Failure).map(|seen| seen.cause);
    assert_eq!((cut, rig.gate.state()), (Some(Cause::ProbeFailed), State::Open));

    // At its end a good head closes, for whoever asks next; what the body comes to then changes nothing.
    let mut rig = Rig::due(RULES);
    let probe = rig.must_probe();
    rig.recovery.answered(&probe, Verdict::Success);
    rig.pass(lease);
    assert_eq!(rig.gate.admit(rig.now), Admission::MayProbe);
    let (granted, told) = rig.recovery.probe(&rig.gate, rig.now, Asker::Traffic);
    assert_eq!(
        (granted, told.map(|seen| seen.map(|seen| seen.cause))),
        (Err(None), [Some(Cause::Proven), None])
    );
    assert_eq!(rig.settle(probe, Verdict::Failure), None);
    assert_eq!(rig.gate.state(), State::Closed);

    // A head that says neither frees the place.
    let mut rig = Rig::due(RULES);
    let probe = rig.must_probe();
    rig.recovery.answered(&probe, Verdict::Neutral);
    rig.pass(lease);
    assert_eq!(rig.recovery.expire(&rig.gate, rig.now), None);
    assert_eq!(rig.gate.admit(rig.now), Admission::MayProbe);
    assert_eq!(rig.settle(probe, Verdict::Success), None, "its lease is over");
    assert_eq!(rig.gate.state(), State::HalfOpen);
}

#[test]
fn e06_one_probe_without_a_head_reopens_whatever_the_others_have_begun() {
    let mut rig = Rig::due(BreakerRules {
        close_after: 2,
        ..probes(2)
    });
    let begun = rig.must_probe();
    let hung = rig.must_probe();
    rig.recovery.answered(&begun, Verdict::Success);
    rig.pass(BreakerRules::LEASE);
    let told = rig.recovery.expire(&rig.gate, rig.now).map(|seen| seen.cause);
    assert_eq!(told, Some(Cause::LeaseExpired));
    assert_eq!(rig.settle(hung, Verdict::Success), None);
    assert_eq!(rig.settle(begun, Verdict::Success), None);
    assert_eq!(rig.gate.state(), State::Open);
}

#[test]
fn e07_a_probe_that_a_later_gate_refuses_gives_its_place_back() {
    let mut rig = Rig::due(RULES);
    let full = Bulkhead::new(0);
    let probe = rig.must_probe();
    assert!(!full.acquire());
    assert_eq!(rig.settle(probe, Verdict::Neutral), None);
    assert_eq!(
        rig.gate.admit(rig.now),
        Admission::MayProbe,
        "the next caller may probe at once"
    );
}

/// Ten calls in ten seconds, half of them failures.
const BY_SHARE: BreakerRules = BreakerRules {
    consecutive: None,
    ratio: Some(Ratio {
        failures_ppm: 500_000,
        window: Over::Time(Duration::from_secs(10)),
        min_calls: 10,
    }),
    ..RULES
};

#[test]
fn e08_case_012_the_minimum_volume_does_not_apply_to_probes() {
    let mut rig = Rig::open(BY_SHARE);
    rig.pass(15 * S);
    let failing = rig.must_probe();
    assert!(rig.settle(failing, Verdict::Failure).is_some());
    assert_eq!(rig.gate.state(), State::Open);
    rig.pass(3 * S);
    let good = rig.must_probe();
    assert!(rig.settle(good, Verdict::Success).is_some());
    assert_eq!(rig.gate.state(), State::Closed);
}

#[test]
fn e09_probe_successes_do_not_expire_with_the_window() {
    let mut rig = Rig::due(BreakerRules {
        close_after: 3,
        ..BY_SHARE
    });
    for _ in 0..3 {
        let probe = rig.must_probe();
        rig.settle(probe, Verdict::Success);
        rig.pass(3600 * S);
    }
    assert_eq!(rig.gate.state(), State::Closed);
}

#[test]
fn e10_e11_a_straggler_from_before_the_trip_decides_nothing() {
    let mut rig = Rig::new(RULES);
    let old = rig.admitted();
    for _ in 0..3 {
        rig.fail();
    }
    rig.gate.succeeded(LANE, rig.now, old);
    assert_eq!(rig.gate.state(), State::Open, "a late success does not close");
    rig.pass(2 * S);
    let probe = rig.must_probe();
    rig.gate.succeeded(LANE, rig.now, old);
    rig.fail_as(old);
    assert_eq!(rig.gate.state(), State::HalfOpen);
    rig.settle(probe, Verdict::Success);
    for _ in 0..10 {
        rig.fail_as(old);
    }
    assert_eq!(rig.gate.state(), State::Closed, "late failures do not open");
}

#[test]
fn e10_counts_do_not_come_back_when_generation_numbers_come_round() {
    let mut rig = Rig::new(BreakerRules {
        consecutive: None,
        ratio: Some(Ratio {
            failures_ppm: 1_000_000,
            window: Over::Time(Duration::from_secs(10)),
            min_calls: 2,
        }),
        ..RULES
    });
    let first = rig.admitted();
    assert!(rig.gate.failed(Lane::new(1), rig.now, first).is_none());
    rig.fail();
    // A trip and a reset are two generations; the window tells 256 apart.
    for _ in 0..127 {
        assert!(rig.recovery.reset(&rig.gate, rig.now).is_some());
        rig.fail();
        rig.fail();
    }
    assert!(rig.recovery.reset(&rig.gate, rig.now).is_some());
    rig.fail();
    assert_eq!(rig.gate.state(), State::Closed, "one failure is not two");
}

#[test]
fn e12_a_probe_of_an_earlier_half_open_gives_no_place_and_no_proof() {
    let mut rig = Rig::due(probes(2));
    let (failing, late) = (rig.must_probe(), rig.must_probe());
    rig.settle(failing, Verdict::Failure);
    rig.pass(2 * S);
    let _held = [rig.must_probe(), rig.must_probe()];
    assert_eq!(rig.settle(late, Verdict::Success), None);
    assert_eq!(rig.gate.state(), State::HalfOpen);
    assert!(rig.probe().is_none(), "no third place appeared");
}

#[test]
fn e13_the_end_of_the_open_period_is_data_and_needs_no_timer() {
    let mut rig = Rig::new(RULES);
    let old = rig.admitted();
    for _ in 0..3 {
        rig.fail();
    }
    let due = rig.now.after(2 * S);
    rig.pass(S);
    rig.fail_as(old); // a second failure after the opening moves nothing
    assert_eq!(rig.gate.next_probe(), Some(due));
    let asked = [due.before(NS), due, due.after(NS)].map(|now| rig.gate.admit(now));
    let refused = Admission::Refused {
        next_probe: Some(due),
    };
    assert_eq!(asked, [refused, Admission::MayProbe, Admission::MayProbe]);
    rig.now = due.before(NS);
    assert!(rig.probe().is_none());
    rig.now = due;
    assert!(rig.probe().is_some());
}

#[test]
fn e14_every_opening_but_a_manual_one_names_its_next_probe() {
    let mut rig = Rig::due(RULES);
    for _ in 0..100 {
        let probe = rig.must_probe();
        rig.settle(probe, Verdict::Failure);
        let next = rig.gate.next_probe().expect("a way back");
        assert_eq!(next.since(rig.now), 2 * S);
        rig.now = next;
    }
}

#[test]
fn e14_a_manual_breaker_waits_for_a_person_and_then_recovers() {
    let mut rig = Rig::due(BreakerRules {
        open_for: OpenFor::Manual,
        ..RULES
    });
    assert_eq!(rig.gate.next_probe(), None);
    assert!(rig.probe().is_none());
    let (probe, _) = rig.recovery.probe(&rig.gate, rig.now, Asker::Person);
    let told = rig.settle(probe.expect("a person may"), Verdict::Success);
    assert_eq!(told.map(|seen| seen.cause), Some(Cause::Proven));
}

#[test]
fn a_person_who_probes_before_the_trip_is_handed_in_still_needs_every_proof() {
    let mut rig = Rig::due(BreakerRules {
        close_after: 2,
        consecutive: Some(1),
        ..RULES
    });
    for _ in 0..2 {
        let probe = rig.must_probe();
        rig.settle(probe, Verdict::Success);
    }
    let generation = rig.admitted();
    let trip = rig
        .gate
        .failed(LANE, rig.now, generation)
        .expect("one failure trips");
    for proven in [false, true] {
        let (probe, _) = rig.recovery.probe(&rig.gate, rig.now, Asker::Person);
        let told = rig.settle(probe.expect("a person may"), Verdict::Success);
        assert_eq!(told.is_some(), proven);
    }
    assert_eq!(
        rig.recovery.tripped(&rig.gate, trip, rig.now),
        None,
        "too late to open it again"
    );
    assert_eq!(rig.gate.state(), State::Closed);
}

#[test]
fn a_person_whose_early_probe_fails_starts_with_the_first_open_period() {
    let mut rig = Rig::due(BreakerRules {
        consecutive: Some(1),
        open_for: OpenFor::Timed {
            first: S,
            longest: 10 * S,
            jitter_ppm: 0,
        },
        ..RULES
    });
    for verdict in [Verdict::Failure, Verdict::Failure, Verdict::Success] {
        let probe = rig.must_probe();
        rig.settle(probe, verdict);
        rig.pass(10 * S);
    }
    let generation = rig.admitted();
    let trip = rig.gate.failed(LANE, rig.now, generation);
    assert!(trip.is_some(), "it is not handed in before the person probes");
    let (probe, _) = rig.recovery.probe(&rig.gate, rig.now, Asker::Person);
    rig.settle(probe.expect("a person may"), Verdict::Failure);
    assert_eq!(rig.gate.next_probe(), Some(rig.now.after(S)));
}

#[test]
fn open_periods_double_up_to_their_cap_and_start_over_after_a_recovery() {
    let mut rig = Rig::open(BreakerRules {
        open_for: OpenFor::Timed {
            first: 500 * MS,
            longest: 1800 * MS,
            jitter_ppm: 0,
        },
        ..RULES
    });
    for span in [500, 1000, 1800, 1800] {
        assert_eq!(rig.gate.next_probe(), Some(rig.now.after(span * MS)));
        rig.pass(span * MS);
        let probe = rig.must_probe();
        rig.settle(probe, Verdict::Failure);
    }
    rig.pass(1800 * MS);
    let probe = rig.must_probe();
    rig.settle(probe, Verdict::Success);
    for _ in 0..3 {
        rig.fail();
    }
    assert_eq!(rig.gate.next_probe(), Some(rig.now.after(500 * MS)));
}

#[test]
fn case_013_more_proofs_than_places_are_gathered_one_after_the_other() {
    let rules = BreakerRules {
        close_after: 10,
        ratio: BY_SHARE.ratio,
        ..probes(2)
    };
    let draft = DependencyDraft {
        name: "stock".into(),
        breaker: Some(rules),
        ..DependencyDraft::default()
    };
    assert!(draft.check().is_ok(), "it can be fulfilled, so it is no mistake");
    let mut rig = Rig::due(rules);
    let needed = (1..=20)
        .find(|_| {
            let probe = rig.must_probe();
            rig.settle(probe, Verdict::Success).is_some()
        })
        .expect("it closes within a bounded number of probes");
    assert_eq!(needed, 10, "its own count, not the minimum of the window");
    assert_eq!(rig.gate.state(), State::Closed);
}

#[test]
fn case_014_of_five_hundred_waiting_callers_one_probes() {
    let mut rig = Rig::due(RULES);
    let may = (0..500)
        .filter(|_| rig.gate.admit(rig.now) == Admission::MayProbe)
        .count();
    assert_eq!(may, 500, "all of them see that the time has come");
    assert_eq!((0..may).filter(|_| rig.probe().is_some()).count(), 1);
}

#[test]
fn e22_our_own_refusals_are_fixed_to_count_as_nothing() {
    assert_eq!(Table::default().row(Class::Local).breaker, Verdict::Neutral);
    assert!(Table::is_fixed(Class::Local));
    let mut rig = Rig::due(RULES);
    let probe = rig.must_probe();
    assert_eq!(rig.settle(probe, Verdict::Neutral), None);
    assert_eq!(rig.gate.state(), State::HalfOpen);
}

#[test]
fn e67_a_permit_is_taken_by_asking_for_it() {
    let bulkhead = Bulkhead::new(2);
    let granted = (0..500).filter(|_| bulkhead.acquire()).count();
    assert_eq!((granted, bulkhead.in_use()), (2, 2));
}
