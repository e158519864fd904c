//! Who is let in when permits are scarce and calls do not matter equally.

use core::{cell::RefCell, time::Duration};

use evenkeel_core::{
    Asker, BreakerRules, Class, Criticality, Dependency, DependencyDraft, Exclusive, Lane, Mono, QueueRules,
    Reason, Refusal, Steering,
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

type Seat = Dependency<Alone<Steering>>;

const LOW: Criticality = Criticality::Sheddable;
const HIGH: Criticality = Criticality::Critical;

fn seat(draft: DependencyDraft) -> Seat {
    let draft = DependencyDraft {
        name: "d".into(),
        ..draft
    };
    Dependency::new(draft.check().expect("the draft is valid"), Vec::new(), 1)
}

fn limited(permits: u32) -> Seat {
    seat(DependencyDraft {
        concurrency: Some(permits),
        ..DependencyDraft::default()
    })
}

fn at(seconds: u64) -> Mono {
    Mono::ORIGIN.after(Duration::from_secs(seconds))
}

fn admit(seat: &Seat, criticality: Criticality, now: Mono) -> Result<(), Reason> {
    let (pass, _) = seat.admit_as(criticality, now, Asker::Traffic, false);
    pass.map(|_pass| ())
        .map_err(|Refusal { reason, .. }: Refusal| reason)
}

#[test]
fn r12_one_permit_is_kept_for_a_higher_call_that_has_come_and_it_finds_it() {
    let seat = limited(4);
    assert_eq!(admit(&seat, LOW, at(0)), Ok(()));
    assert_eq!(admit(&seat, HIGH, at(0)), Ok(()));
    assert_eq!(admit(&seat, LOW, at(0)), Ok(()));
    assert_eq!(admit(&seat, LOW, at(0)), Err(Reason::Shed));
    assert_eq!(admit(&seat, HIGH, at(0)), Ok(()));
    assert_eq!(
        [LOW, HIGH].map(|one| admit(&seat, one, at(0))),
        [Err(Reason::AtCapacity); 2]
    );
    assert_eq!(seat.in_flight(), Some(4));
}

#[test]
fn what_nobody_comes_for_is_everybodys_ten_seconds_later() {
    let seat = limited(2);
    for criticality in [LOW, HIGH] {
        assert_eq!(admit(&seat, criticality, at(0)), Ok(()));
        seat.release();
    }
    assert_eq!(admit(&seat, LOW, at(1)), Ok(()));
    assert_eq!(admit(&seat, LOW, at(1)), Err(Reason::Shed));
    assert_eq!(admit(&seat, LOW, at(11)), Ok(()));
}

#[test]
fn where_all_calls_matter_equally_every_permit_is_theirs() {
    for criticality in Criticality::ALL {
        let seat = limited(3);
        for _ in 0..3 {
            assert_eq!(admit(&seat, criticality, at(0)), Ok(()));
        }
        assert_eq!(admit(&seat, criticality, at(0)), Err(Reason::AtCapacity));
    }
}

#[test]
fn nothing_is_kept_where_nothing_is_limited_and_nobody_is_shed() {
    let seat = seat(DependencyDraft::default());
    for _ in 0..100 {
        assert_eq!(admit(&seat, HIGH, at(0)), Ok(()));
        assert_eq!(admit(&seat, LOW, at(0)), Ok(()));
    }
}

#[test]
fn where_calls_can_wait_only_a_wait_in_vain_keeps_a_permit() {
    let seat = seat(DependencyDraft {
        concurrency: Some(2),
        queue: Some(QueueRules {
            length: 10,
            longest_wait: Duration::from_millis(50),
        }),
        ..DependencyDraft::default()
    });
    assert_eq!(admit(&seat, LOW, at(0)), Ok(()));
    assert_eq!(admit(&seat, LOW, at(0)), Ok(()));
    assert_eq!(admit(&seat, HIGH, at(0)), Err(Reason::AtCapacity));
    seat.release();
    assert_eq!(
        admit(&seat, LOW, at(0)),
        Ok(()),
        "the higher one is next in the queue"
    );
    seat.waited_in_vain(HIGH, at(0));
    seat.release();
    assert_eq!(admit(&seat, LOW, at(0)), Err(Reason::Shed));
    assert_eq!(admit(&seat, HIGH, at(0)), Ok(()));
}

#[test]
fn e07_a_probe_of_a_low_call_takes_the_permit_that_is_kept_for_higher_ones() {
    let seat = seat(DependencyDraft {
        concurrency: Some(2),
        breaker: Some(BreakerRules {
            consecutive: Some(1),
            ..BreakerRules::NONE
        }),
        ..DependencyDraft::default()
    });
    assert_eq!(admit(&seat, LOW, at(0)), Ok(()));
    let (pass, _) = seat.admit_as(HIGH, at(0), Asker::Traffic, false);
    seat.settle(pass.expect("closed"), Class::OUTAGE, true, Lane::new(0), at(0));
    seat.release();
    let (probe, _) = seat.admit_as(LOW, at(5), Asker::Traffic, false);
    assert!(probe.expect("a probe is nobody's").is_probe());
}

#[test]
fn e29_work_that_was_given_up_counts_against_a_cap_and_a_probe_is_let_in_all_the_same() {
    let seat = seat(DependencyDraft {
        timeout: Some(Duration::from_secs(1)),
        abandoned: Some(1),
        breaker: Some(BreakerRules {
            consecutive: Some(2),
            ..BreakerRules::NONE
        }),
        ..DependencyDraft::default()
    });
    let time_out = |now| {
        let (pass, _) = seat.admit_as(HIGH, now, Asker::Traffic, false);
        let class = Class::Outage(evenkeel_core::Outage::TimedOut);
        seat.settle(pass.expect("it is let in"), class, true, Lane::new(0), now);
        seat.release();
    };
    time_out(at(1));
    assert_eq!(
        (seat.lingering(at(1)), admit(&seat, HIGH, at(1))),
        (1, Err(Reason::AtCapacity))
    );
    assert_eq!(admit(&seat, HIGH, at(3)), Ok(()));
    seat.release();
    time_out(at(3));
    // Two in a row have opened the breaker; the probe is due while the second still counts.
    let (probe, _) = seat.admit_as(
        HIGH,
        Mono::ORIGIN.after(Duration::from_millis(3900)),
        Asker::Traffic,
        false,
    );
    assert!(probe.expect("a probe is let in").is_probe());
}

#[test]
fn while_the_breaker_only_observes_nobody_is_shed() {
    let seat = limited(2);
    assert_eq!(admit(&seat, LOW, at(0)), Ok(()));
    assert_eq!(admit(&seat, HIGH, at(0)), Ok(()));
    seat.release();
    assert_eq!(admit(&seat, LOW, at(0)), Err(Reason::Shed));
    let (pass, _) = seat.admit_as(LOW, at(0), Asker::Traffic, true);
    assert!(pass.is_ok());
}
