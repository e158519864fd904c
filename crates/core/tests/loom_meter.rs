//! Every interleaving of a few threads at one metered dependency, by loom's model checker.
//!
//! `RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p evenkeel-core --release --test loom_meter`
#![cfg(loom)]

use core::time::Duration;

use evenkeel_core::{
    Asker, BreakerRules, Class, Dependency, DependencyDraft, Exclusive, Lane, LimitRules, Mono, Outage,
    RampRules, Reason, Steering,
};
use loom::{
    sync::{Arc, Mutex},
    thread,
};

struct Locked<T>(Mutex<T>);

impl<T> Exclusive<T> for Locked<T> {
    fn guard(value: T) -> Self {
        Self(Mutex::new(value))
    }

    fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.0.lock().expect("no thread of the model breaks"))
    }
}

type Seat = Dependency<Locked<Steering>>;

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 20_000;
    builder.check(run);
}

fn seat(draft: DependencyDraft) -> Arc<Seat> {
    let draft = DependencyDraft {
        name: "d".into(),
        timeout: Some(Duration::from_secs(1)),
        ..draft
    };
    Arc::new(Dependency::new(
        draft.check().expect("the draft is valid"),
        Vec::new(),
        1,
    ))
}

fn learning(cold: u32) -> Arc<Seat> {
    seat(DependencyDraft {
        learn: Some(LimitRules {
            cold,
            ..LimitRules::DEFAULT
        }),
        ..DependencyDraft::default()
    })
}

fn at_once<T: Send + 'static>(seat: &Arc<Seat>, work: fn(&Seat) -> T) -> Vec<T> {
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let seat = Arc::clone(seat);
            thread::spawn(move || work(&seat))
        })
        .collect();
    threads
        .into_iter()
        .map(|thread| thread.join().expect("no thread of the model breaks"))
        .collect()
}

const NOW: Mono = Mono::ORIGIN;

#[test]
fn e67_two_callers_never_share_the_last_place() {
    model(|| {
        let seat = learning(1);
        let seen = at_once(&seat, |seat| seat.admit(NOW, Asker::Traffic, false).0.map(|_| ()));
        assert_eq!(seen.iter().filter(|seen| seen.is_ok()).count(), 1);
        assert_eq!(seat.in_flight(), Some(1));
        let refused = seen
            .into_iter()
            .find_map(Result::err)
            .map(|refusal| refusal.reason);
        assert_eq!(refused, Some(Reason::AtCapacity));
    });
}

#[test]
fn what_came_in_goes_out_again_whoever_looks_at_the_notes() {
    model(|| {
        // A third place: for a moment the one who has just left may be seen in flight and lingering too.
        let seat = learning(3);
        at_once(&seat, |seat| {
            let (pass, _) = seat.admit(NOW, Asker::Traffic, false);
            let later = NOW.after(Duration::from_secs(2));
            seat.release();
            let pass = pass.expect("there is room for both");
            seat.settle(pass, Class::Outage(Outage::TimedOut), true, Lane::new(0), later);
        });
        assert_eq!(seat.in_flight(), Some(0));
        assert_eq!(seat.lingering(NOW.after(Duration::from_secs(2))), 2);
    });
}

#[test]
fn a_ramp_of_a_half_lets_one_of_two_in() {
    model(|| {
        let seat = seat(DependencyDraft {
            breaker: Some(BreakerRules {
                consecutive: Some(1),
                ..BreakerRules::NONE
            }),
            ramp: Some(RampRules {
                stages: vec![50, 100],
                ..RampRules::default()
            }),
            ..DependencyDraft::default()
        });
        assert!(
            seat.reset(NOW).is_none(),
            "it is closed already, and starts a ramp"
        );
        let seen = at_once(&seat, |seat| seat.admit(NOW, Asker::Traffic, false).0.map(|_| ()));
        let reasons: Vec<_> = seen
            .iter()
            .map(|seen| seen.err().map(|refusal| refusal.reason))
            .collect();
        assert_eq!(
            reasons
                .iter()
                .filter(|reason| **reason == Some(Reason::Ramping))
                .count(),
            1
        );
        assert_eq!(seat.in_flight(), Some(1));
    });
}
