//! Tests of admission: all or nothing, and each result once.

use super::*;
use crate::{BreakerRules, DependencyDraft, TripRule};
use core::{cell::RefCell, time::Duration};

pub(super) struct OneThread<T>(RefCell<T>);

impl<T> Exclusive<T> for OneThread<T> {
    fn guard(value: T) -> Self {
        Self(RefCell::new(value))
    }

    fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.0.borrow_mut())
    }
}

fn dependency(permits: u32, resources: Vec<Arc<Bulkhead>>) -> Dependency<OneThread<Steering>> {
    let breaker = Some(BreakerRules {
        consecutive: Some(1),
        ..BreakerRules::NONE
    });
    let draft = DependencyDraft {
        name: "d".into(),
        concurrency: Some(permits),
        breaker,
        ..DependencyDraft::default()
    };
    Dependency::new(draft.check().expect("the draft is valid"), resources, 1)
}

const NOW: Mono = Mono::ORIGIN;

fn trip(dependency: &Dependency<OneThread<Steering>>) {
    let (pass, _) = dependency.admit(NOW, Asker::Traffic, false);
    assert!(
        dependency
            .settle(pass.expect("closed"), Class::OUTAGE, true, Lane::new(0), NOW)
            .is_some()
    );
    dependency.release();
}

#[test]
fn e07_a_probe_without_a_permit_leaves_the_breaker_open_and_nothing_taken() {
    let shared = Arc::new(Bulkhead::new(1));
    let dependency = dependency(1, alloc::vec![Arc::clone(&shared)]);
    trip(&dependency);
    let later = NOW.after(Duration::from_secs(10));
    assert!(shared.acquire());
    let (refused, changes) = dependency.admit(later, Asker::Traffic, false);
    assert_eq!(
        refused,
        Err(Refusal {
            reason: Reason::AtCapacity,
            retry_at: None
        })
    );
    assert_eq!((changes, dependency.state()), ([None; 2], Some(State::Open)));
    assert_eq!(dependency.bulkhead().map(Bulkhead::in_use), Some(0));
    shared.release();
    let (pass, changes) = dependency.admit(later, Asker::Traffic, false);
    assert!(pass.unwrap().is_probe());
    assert_eq!(
        changes.map(|change| change.map(|t| t.to)),
        [None, Some(State::HalfOpen)]
    );
}

#[test]
fn e15_work_from_before_the_opening_that_holds_every_permit_keeps_no_probe_away() {
    let dependency = dependency(2, Vec::new());
    let (stuck, _) = dependency.admit(NOW, Asker::Traffic, false);
    assert!(stuck.is_ok());
    trip(&dependency);
    let (watching, _) = dependency.admit(NOW, Asker::Traffic, true);
    assert!(watching.is_ok(), "an observing breaker lets it in");
    let later = NOW.after(Duration::from_secs(10));
    let (probe, _) = dependency.admit(later, Asker::Traffic, false);
    assert!(probe.expect("its place is reserved").is_probe());
    assert_eq!(dependency.bulkhead().map(Bulkhead::in_use), Some(3));
    dependency.release();
    assert!(
        !dependency.bulkhead().is_some_and(Bulkhead::acquire),
        "for nobody else"
    );
}

#[test]
fn a_probe_that_is_refused_gives_its_permit_back() {
    let dependency = dependency(5, Vec::new());
    trip(&dependency);
    let later = NOW.after(Duration::from_secs(10));
    let (probe, _) = dependency.admit(later, Asker::Traffic, false);
    assert!(probe.unwrap().is_probe());
    let (second, _) = dependency.admit(later, Asker::Person, false);
    assert_eq!(second.unwrap_err().reason, Reason::BreakerOpen);
    assert_eq!(dependency.bulkhead().map(Bulkhead::in_use), Some(1));
}

#[test]
fn a_change_of_state_says_what_brought_it_about() {
    let dependency = dependency(5, Vec::new());
    let told = |pass, class| dependency.settle(pass, class, true, Lane::new(0), NOW);
    let (pass, _) = dependency.admit(NOW, Asker::Traffic, false);
    let tripped = told(pass.unwrap(), Class::OUTAGE).unwrap();
    assert_eq!(
        (tripped.cause, tripped.rule, tripped.class),
        (Cause::Tripped, Some(TripRule::Consecutive), Some(Class::OUTAGE))
    );
    let later = NOW.after(Duration::from_secs(10));
    let (pass, probing) = dependency.admit(later, Asker::Traffic, false);
    let [_, probing] = probing;
    assert_eq!(probing.map(|told| (told.rule, told.class)), Some((None, None)));
    let proven = told(pass.unwrap(), Class::Answer).unwrap();
    assert_eq!(
        (proven.cause, proven.rule, proven.class),
        (Cause::Proven, None, Some(Class::Answer))
    );
}

#[test]
fn an_observing_breaker_lets_pass_and_still_learns() {
    let dependency = dependency(5, Vec::new());
    let (pass, _) = dependency.admit(NOW, Asker::Traffic, true);
    let transition = dependency.settle(pass.unwrap(), Class::OUTAGE, true, Lane::new(0), NOW);
    assert_eq!(transition.map(|t| t.to), Some(State::Open));
    let (pass, _) = dependency.admit(NOW, Asker::Traffic, true);
    assert_eq!(pass.map(|pass| pass.through), Ok(Through::Free));
}

#[test]
fn load_is_measured_when_an_answer_begins_whoever_takes_how_long_for_the_rest() {
    use crate::limit::{LimitRules, meter::Lines};
    let draft = DependencyDraft {
        name: "d".into(),
        learn: Some(LimitRules::DEFAULT),
        ..DependencyDraft::default()
    };
    let dependency: Dependency<OneThread<Steering>> =
        Dependency::new(draft.check().expect("the draft is valid"), Vec::new(), 1);
    let (head, end) = (
        NOW.after(Duration::from_millis(1)),
        NOW.after(Duration::from_secs(9)),
    );
    let told = [Class::Answer, Class::Cancelled, Class::Outage(Outage::Cut)].map(|class| {
        let mut pass = dependency.admit(NOW, Asker::Traffic, false).0.unwrap();
        let meter = dependency.meter.as_ref().unwrap();
        meter.wipe();
        meter.look_again(Mono::END);
        meter.draw(Lines {
            patience: 5000,
            ..Lines::NONE
        });
        let waits = dependency.answered(&mut pass, Class::Answer, Lane::new(0), head);
        assert_eq!(waits, (true, None));
        assert_eq!(dependency.settle(pass, class, true, Lane::new(0), end), None);
        dependency.release();
        let notes = meter.notes();
        (notes.answers().calls, notes.answers().mean(), notes.failures)
    });
    let millisecond = Some(1000);
    assert_eq!(
        told,
        [(1, millisecond, 0), (1, millisecond, 0), (1, millisecond, 1)]
    );
}

#[test]
fn time_that_a_caller_takes_is_no_latency_and_no_wait_in_vain() {
    use crate::limit::{LimitRules, meter::Lines};
    let draft = DependencyDraft {
        name: "d".into(),
        learn: Some(LimitRules::DEFAULT),
        ..DependencyDraft::default()
    };
    let dependency: Dependency<OneThread<Steering>> =
        Dependency::new(draft.check().expect("the draft is valid"), Vec::new(), 1);
    let late = NOW.after(Duration::from_secs(9));
    let told = [Class::Answer, Class::Cancelled, Class::OUTAGE].map(|class| {
        [false, true].map(|disregarded| {
            let mut pass = dependency.admit(NOW, Asker::Traffic, false).0.unwrap();
            let meter = dependency.meter.as_ref().unwrap();
            meter.wipe();
            meter.look_again(Mono::END);
            meter.draw(Lines {
                patience: 5000,
                ..Lines::NONE
            });
            if disregarded {
                pass.disregard_time();
            }
            assert_eq!(dependency.settle(pass, class, true, Lane::new(0), late), None);
            dependency.release();
            let notes = meter.notes();
            (notes.answers().calls, notes.failures)
        })
    });
    assert_eq!(told, [[(1, 0), (0, 0)], [(0, 1), (0, 0)], [(0, 1), (0, 1)]]);
}

#[test]
fn e21_a_failure_without_blame_neither_trips_nor_fails_a_probe() {
    let dependency = dependency(5, Vec::new());
    let (pass, _) = dependency.admit(NOW, Asker::Traffic, false);
    let told = dependency.settle(pass.expect("closed"), Class::OUTAGE, false, Lane::new(0), NOW);
    assert_eq!((told, dependency.state()), (None, Some(State::Closed)));

    trip(&dependency);
    let later = NOW.after(Duration::from_secs(10));
    let (probe, _) = dependency.admit(later, Asker::Traffic, false);
    let told = dependency.settle(probe.expect("due"), Class::OUTAGE, false, Lane::new(0), later);
    assert_eq!((told, dependency.state()), (None, Some(State::HalfOpen)));
}

#[test]
fn e34_code_that_broke_counts_as_a_failure() {
    let dependency = dependency(5, Vec::new());
    let (pass, _) = dependency.admit(NOW, Asker::Traffic, false);
    let told = dependency.broke(pass.expect("closed"), Lane::new(0), NOW);
    assert_eq!(told.map(|told| told.to), Some(State::Open));
}
