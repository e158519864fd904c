//! The ramp as a driver sees it: its steps in order, when to come back, and what a reload keeps of it.
#![cfg(not(loom))]

use core::{cell::RefCell, time::Duration};

use evenkeel_core::{
    Asker, BreakerRules, Carried, Class, Dependency, DependencyDraft, Exclusive, Lane, LimitRules, Mono,
    OpenFor, Pass, RampRules, RampStep, Reason, State, Steering,
};
use proptest::prelude::*;

struct OneThread<T>(RefCell<T>);

impl<T> Exclusive<T> for OneThread<T> {
    fn guard(value: T) -> Self {
        Self(RefCell::new(value))
    }

    fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.0.borrow_mut())
    }
}

fn draft() -> DependencyDraft {
    DependencyDraft {
        name: "d".into(),
        timeout: Some(Duration::from_secs(1)),
        breaker: Some(BreakerRules {
            consecutive: Some(3),
            open_for: OpenFor::Timed {
                first: Duration::from_millis(100),
                longest: Duration::from_millis(400),
                jitter_ppm: 0,
            },
            ..BreakerRules::NONE
        }),
        ramp: Some(RampRules {
            stages: vec![25, 50, 100],
            ..RampRules::default()
        }),
        ..DependencyDraft::default()
    }
}

fn dependency(draft: DependencyDraft) -> Dependency<OneThread<Steering>> {
    Dependency::new(draft.check().expect("the draft is valid"), Vec::new(), 1)
}

fn lane() -> Lane {
    Lane::new(0)
}

/// A dependency and the time.
struct Bench {
    dependency: Dependency<OneThread<Steering>>,
    now: Mono,
}

impl Bench {
    fn new(draft: DependencyDraft) -> Self {
        Self {
            dependency: dependency(draft),
            now: Mono::ORIGIN.after(Duration::from_secs(10)),
        }
    }

    fn pass_time(&mut self, millis: u64) {
        self.now = self.now.after(Duration::from_millis(millis));
    }

    fn admit(&self) -> Option<Pass> {
        self.dependency.admit(self.now, Asker::Traffic, false).0.ok()
    }

    /// One call that takes so long, if it is let in.
    fn call(&mut self, class: Class, millis: u64) -> bool {
        let Some(pass) = self.admit() else { return false };
        self.pass_time(millis);
        self.dependency.release();
        self.dependency.settle(pass, class, true, lane(), self.now);
        true
    }

    /// Calls until so many were let in.
    fn calls(&mut self, let_in: u32, class: Class, millis: u64) {
        let mut done = 0;
        for _ in 0..1000 {
            if done < let_in {
                done += u32::from(self.call(class, millis));
            }
        }
        assert_eq!(done, let_in, "so many were never let in");
    }

    /// Opens, and closes again by a probe.
    fn back(draft: DependencyDraft) -> Self {
        let mut bench = Self::new(draft);
        bench.calls(40, Class::Answer, 20);
        bench.trip_and_prove();
        bench
    }

    fn trip_and_prove(&mut self) {
        self.calls(3, Class::OUTAGE, 1);
        assert_eq!(self.dependency.state(), Some(State::Open));
        self.pass_time(500);
        assert!(self.call(Class::Answer, 20), "the probe");
    }

    fn steps(&self) -> Vec<(RampStep, u32)> {
        let events = self.dependency.ramp_events().into_iter();
        events.map(|event| (event.step, event.stage.index)).collect()
    }
}

#[test]
fn every_stage_tells_its_beginning_and_the_last_one_its_end() {
    let mut bench = Bench::back(draft());
    assert_eq!(bench.steps(), [(RampStep::Begun, 0)]);
    assert_eq!(bench.steps(), [], "each is told once");
    bench.calls(6, Class::Answer, 20);
    bench.pass_time(30);
    bench.calls(1, Class::Answer, 20);
    assert_eq!(bench.steps(), [(RampStep::Promoted, 1)]);
    bench.calls(10, Class::Answer, 20);
    assert_eq!(bench.steps(), [(RampStep::Ended, 1)]);
    assert_eq!(bench.dependency.ramp(), None);
}

#[test]
fn failures_roll_back_and_then_reopen() {
    let mut bench = Bench::back(draft());
    bench.calls(6, Class::Answer, 20);
    bench.pass_time(30);
    bench.calls(1, Class::Answer, 20);
    bench.steps();
    // Never three in a row, so that the breaker itself sees nothing wrong.
    let mut steps = Vec::new();
    for class in [Class::OUTAGE, Class::OUTAGE, Class::Answer]
        .into_iter()
        .cycle()
        .take(60)
    {
        if bench.dependency.state() == Some(State::Closed) {
            bench.call(class, 1);
            bench.pass_time(10);
            steps.extend(bench.steps());
        }
    }
    assert_eq!(steps[..1], [(RampStep::RolledBack, 0)]);
    assert_eq!(steps.last(), Some(&(RampStep::Reopened, 0)));
    assert_eq!(bench.dependency.state(), Some(State::Open));
}

#[test]
fn a_stage_is_judged_by_the_latency_of_before_where_no_limit_is_learned_too() {
    let mut bench = Bench::back(draft());
    bench.steps();
    // Twice as long as nineteen of twenty took, and more.
    bench.calls(12, Class::Answer, 150);
    assert!(bench.steps().contains(&(RampStep::Held, 0)));
    assert_eq!(bench.dependency.learned_limit(), None);
}

#[test]
fn who_is_kept_out_is_told_when_all_can_be_back() {
    let bench = Bench::back(draft());
    let closed = bench.now;
    assert!(bench.admit().is_some(), "the first of four");
    let refused = bench
        .dependency
        .admit(bench.now, Asker::Traffic, false)
        .0
        .expect_err("the second of four");
    assert_eq!(refused.reason, Reason::Ramping);
    // Two stages of 100 ms each are left.
    assert_eq!(refused.retry_at, Some(closed.after(Duration::from_millis(200))));
}

#[test]
fn nobody_who_does_not_fetch_the_steps_makes_them_pile_up() {
    let mut bench = Bench::new(draft());
    for _ in 0..50 {
        bench.trip_and_prove();
        bench.pass_time(2000);
        for _ in 0..4 {
            bench.call(Class::Answer, 1);
            bench.pass_time(800);
        }
    }
    let steps = bench.steps();
    assert_eq!(steps.len(), 32);
    assert_eq!(steps.last(), Some(&(RampStep::Ended, 1)), "the newest stay");
}

/// The successor of a dependency, by the same contract or another.
fn successor(bench: &Bench, draft: DependencyDraft) -> Bench {
    let new = dependency(draft);
    new.import(bench.dependency.export(), bench.now);
    Bench {
        dependency: new,
        now: bench.now,
    }
}

#[test]
fn an_open_breaker_stays_open_over_a_reload_until_the_probe_that_was_due() {
    let mut bench = Bench::new(draft());
    bench.calls(3, Class::OUTAGE, 1);
    let mut new = successor(&bench, draft());
    assert_eq!(new.dependency.state(), Some(State::Open));
    assert_eq!(new.dependency.next_probe(), bench.dependency.next_probe());
    assert!(new.admit().is_none());
    new.pass_time(100);
    assert!(new.call(Class::Answer, 20));
    assert_eq!(new.dependency.state(), Some(State::Closed));
    assert_eq!(new.steps(), [(RampStep::Begun, 0)]);
}

#[test]
fn a_probe_in_flight_is_not_carried_and_the_next_one_waits_for_the_end_of_its_lease() {
    let mut bench = Bench::new(draft());
    bench.calls(3, Class::OUTAGE, 1);
    bench.pass_time(100);
    assert!(bench.admit().is_some_and(|pass| pass.is_probe()));
    let new = successor(&bench, draft());
    assert_eq!(new.dependency.state(), Some(State::Open));
    let lease_end = bench.now.after(Duration::from_secs(1));
    assert_eq!(new.dependency.next_probe(), Some(lease_end));
}

#[test]
fn a_ramp_goes_on_over_a_reload_with_a_stage_that_is_no_larger() {
    let mut bench = Bench::back(draft());
    bench.calls(6, Class::Answer, 20);
    bench.pass_time(30);
    bench.calls(1, Class::Answer, 20);
    assert_eq!(bench.dependency.ramp().map(|stage| stage.index), Some(1));
    let with = |stages: &[u8]| {
        let stages = stages.into();
        let mut draft = draft();
        draft.ramp = Some(RampRules {
            stages,
            ..RampRules::default()
        });
        let new = successor(&bench, draft);
        new.dependency.ramp().map(|stage| stage.share_ppm / 10_000)
    };
    assert_eq!(with(&[25, 50, 100]), Some(50));
    assert_eq!(with(&[10, 40, 60, 100]), Some(40));
    assert_eq!(with(&[60, 100]), Some(60), "the first one at least");
}

#[test]
fn what_was_open_and_has_no_breaker_any_more_is_asked() {
    let mut bench = Bench::new(draft());
    bench.calls(3, Class::OUTAGE, 1);
    let without = DependencyDraft {
        breaker: None,
        ramp: None,
        ..draft()
    };
    let new = successor(&bench, without);
    assert!(new.admit().is_some());
}

#[test]
fn a_learned_limit_and_what_it_is_compared_with_survive_a_reload() {
    let learning = || DependencyDraft {
        learn: Some(LimitRules::DEFAULT),
        ..draft()
    };
    let mut bench = Bench::new(learning());
    bench.calls(60, Class::Answer, 20);
    for _ in 0..3 {
        bench.call(Class::Busy, 1);
    }
    let limit = bench.dependency.learned_limit();
    assert!(limit.is_some());
    let new = successor(&bench, learning());
    assert_eq!(new.dependency.learned_limit(), limit);
    assert_eq!(
        new.dependency.export().load.and_then(|load| load.baseline),
        Some(20_000)
    );
}

proptest! {
    #[test]
    fn what_is_exported_and_imported_is_exported_the_same(
        learns in any::<bool>(),
        moves in proptest::collection::vec((0_u8..4, 1_u64..300), 0..80),
    ) {
        let with = || DependencyDraft {
            learn: learns.then_some(LimitRules::DEFAULT),
            ..draft()
        };
        let mut bench = Bench::new(with());
        for (kind, millis) in moves {
            match kind {
                0 => bench.pass_time(millis),
                1 => { bench.call(Class::OUTAGE, millis); }
                _ => { bench.call(Class::Answer, millis); }
            }
        }
        let carried = bench.dependency.export();
        let new = successor(&bench, with());
        let known = |carried: Carried| Carried {
            // What is not known yet is as the successor starts.
            load: carried.load.filter(|load| load.baseline.is_some()),
            ..carried
        };
        prop_assert_eq!(known(new.dependency.export()), known(carried));
    }
}
