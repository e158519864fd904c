//! Every interleaving of a few threads at a retry budget, by loom's model checker.
//!
//! `RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p evenkeel-core --release --test loom_retry`
#![cfg(loom)]

use core::time::Duration;

use evenkeel_core::{
    Advice, Asker, Class, Dependency, DependencyDraft, Exclusive, Failed, Mono, NoRetry, RetryRules, Steering,
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

const NOW: Mono = Mono::ORIGIN;
const DOWN: Failed = Failed {
    class: Class::OUTAGE,
    advice: Advice::Whenever,
};

fn dependency(budget_ppm: u32, floor: u32) -> Arc<Dependency<Locked<Steering>>> {
    let draft = DependencyDraft {
        name: "d".into(),
        retry: Some(RetryRules {
            budget_ppm,
            floor,
            ..RetryRules::DEFAULT
        }),
        ..DependencyDraft::default()
    };
    Arc::new(Dependency::new(draft.check().expect("valid"), Vec::new(), 1))
}

/// Asks for a retry on two threads at once, and returns how many were granted.
fn two_at_once(dependency: &Arc<Dependency<Locked<Steering>>>) -> usize {
    let running: Vec<_> = (0..2)
        .map(|_| {
            let dependency = Arc::clone(dependency);
            thread::spawn(move || match dependency.retry(DOWN, 1, None, NOW) {
                Ok(retry) => {
                    assert!(retry.at() >= NOW);
                    true
                }
                Err(why) => {
                    assert_eq!(why, NoRetry::NoBudget);
                    false
                }
            })
        })
        .collect();
    running
        .into_iter()
        .map(|thread| thread.join().expect("no thread of the model breaks"))
        .filter(|granted| *granted)
        .count()
}

#[test]
fn e67_the_last_free_retry_goes_to_one_of_two() {
    loom::model(|| assert_eq!(two_at_once(&dependency(0, 1)), 1));
}

#[test]
fn e67_the_last_earned_retry_goes_to_one_of_two() {
    loom::model(|| {
        let dependency = dependency(1_000_000, 0);
        assert!(dependency.admit(NOW, Asker::Traffic, false).0.is_ok());
        assert_eq!(two_at_once(&dependency), 1);
    });
}

#[test]
fn e68_what_is_given_back_and_what_is_earned_meanwhile_are_both_there_afterwards() {
    loom::model(|| {
        let dependency = dependency(1_000_000, 0);
        assert!(dependency.admit(NOW, Asker::Traffic, false).0.is_ok());
        let granted = dependency.retry(DOWN, 1, None, NOW).expect("one was earned");
        let other = Arc::clone(&dependency);
        let calls = thread::spawn(move || assert!(other.admit(NOW, Asker::Traffic, false).0.is_ok()));
        dependency.give_back(granted, NOW.after(Duration::from_nanos(1)));
        calls.join().expect("no thread of the model breaks");
        let granted = (0..3).filter(|_| dependency.retry(DOWN, 1, None, NOW).is_ok());
        assert_eq!(granted.count(), 2);
    });
}
