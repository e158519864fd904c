//! Every interleaving of one who joins a queue and one who gives a permit back, by loom's model checker.
//!
//! `RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p evenkeel-core --release --test loom_queue`
#![cfg(loom)]

use evenkeel_core::{
    Asker, Bulkhead, Criticality, Dependency, DependencyDraft, Exclusive, Mono, Reason, Steering, Waiting,
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

#[test]
fn e27_no_call_waits_beside_a_free_permit() {
    loom::model(|| {
        let bulkhead = Arc::new(Bulkhead::new(1));
        let waiting = Arc::new(Waiting::new());
        assert!(bulkhead.acquire());
        let joins = {
            let (bulkhead, waiting) = (Arc::clone(&bulkhead), Arc::clone(&waiting));
            thread::spawn(move || {
                waiting.join();
                bulkhead.acquire()
            })
        };
        bulkhead.release();
        let called = waiting.sees();
        let let_in = joins.join().expect("no thread of the model breaks");
        assert!(
            let_in || called,
            "a permit is free, somebody waits, and nobody knows of both"
        );
        assert_eq!(waiting.count(), 1);
    });
}

#[test]
fn who_has_left_is_not_seen() {
    loom::model(|| {
        let waiting = Arc::new(Waiting::new());
        let other = Arc::clone(&waiting);
        let leaves = thread::spawn(move || {
            other.join();
            other.leave();
        });
        waiting.sees();
        leaves.join().expect("no thread of the model breaks");
        assert!(!waiting.sees());
    });
}

/// What is kept for higher calls is a margin, but the limit itself is exact, whoever comes at once.
#[test]
fn e67_calls_of_two_kinds_at_once_never_pass_the_limit_and_the_higher_one_is_never_shed() {
    loom::model(|| {
        let draft = DependencyDraft {
            name: "d".into(),
            concurrency: Some(2),
            ..DependencyDraft::default()
        };
        let dependency = Arc::new(Dependency::<Locked<Steering>>::new(
            draft.check().expect("valid"),
            Vec::new(),
            1,
        ));
        let admit = |dependency: &Dependency<Locked<Steering>>, criticality| {
            let (pass, _) = dependency.admit_as(criticality, Mono::ORIGIN, Asker::Traffic, false);
            pass.map(|_pass| ()).map_err(|refusal| refusal.reason)
        };
        assert!(admit(&dependency, Criticality::Sheddable).is_ok());
        let lower = Arc::clone(&dependency);
        let lower = thread::spawn(move || admit(&lower, Criticality::Sheddable));
        let higher = admit(&dependency, Criticality::Critical);
        let lower = lower.join().expect("no thread of the model breaks");
        assert_eq!(
            [higher, lower].iter().filter(|end| end.is_ok()).count(),
            1,
            "{higher:?} {lower:?}"
        );
        assert_ne!(higher, Err(Reason::Shed));
        assert_eq!(dependency.in_flight(), Some(2));
    });
}
