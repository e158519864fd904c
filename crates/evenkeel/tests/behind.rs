//! A store behind the one in memory and behind the shelf: what it is told, in which order, and what may come back.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use evenkeel::{Behind, Class, Engine, Entry, ManualClock, Memory, Mono, stale};
use evenkeel_core::store::Order;
use parking_lot::Mutex;

type Kept = (Vec<u8>, u32, Entry, Order);

/// Writes down what it is told.
#[derive(Debug, Default)]
struct Told {
    turns: AtomicU64,
    lines: Mutex<Vec<String>>,
    kept: Mutex<Vec<Kept>>,
}

impl Told {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock())
    }
}

impl Behind<u32> for Told {
    fn turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn kept(&self, key: &[u8], value: &u32, entry: &Entry, order: Order) {
        self.lines.lock().push(format!("kept {value}"));
        self.kept.lock().push((key.to_vec(), *value, *entry, order));
    }

    fn gone(&self, _key: &[u8], order: Order) {
        assert!(order.started.is_some());
        self.lines.lock().push("gone".to_owned());
    }
}

struct Setting {
    clock: ManualClock,
    memory: Memory<u32>,
    guard: evenkeel::Read<u32, (), ()>,
    told: Arc<Told>,
}

fn setting() -> Setting {
    let clock = ManualClock::new();
    let engine = Engine::new(clock.clone(), 7);
    let memory = Memory::new(4096);
    let told = Arc::new(Told::default());
    assert!(memory.write_behind(Arc::clone(&told) as _));
    assert!(!memory.write_behind(Arc::clone(&told) as _), "one, for good");
    let guard = engine
        .read::<u32>("stock")
        .classify(|(): &()| Class::OUTAGE)
        .ladder([stale(Duration::from_secs(60))])
        .memory(&memory)
        .weigh(|value| *value as usize)
        .build()
        .unwrap();
    Setting {
        clock,
        memory,
        guard,
        told,
    }
}

#[tokio::test]
async fn each_change_is_told_and_reading_is_none() {
    let Setting {
        guard, told, clock, ..
    } = setting();
    guard.call((), "a", |_| async { Ok(1) }).await.unwrap();
    guard.call((), "a", |_| async { Err(()) }).await.unwrap();
    assert_eq!(told.take(), ["kept 1"]);
    let (key, value, entry, order) = told.kept.lock().pop().unwrap();
    assert_eq!(value, 1);
    assert_eq!(evenkeel::KeyParts::of(&key).unwrap().key, b"a");
    assert_eq!(entry.observed, Some(clock.now().mono));
    assert_eq!(order.started, entry.observed);
    clock.advance(Duration::from_secs(1));
    guard.call((), "a", |_| async { Ok(2) }).await.unwrap();
    let second = told.kept.lock().pop().unwrap().3;
    assert!(second.is_after(order));
    guard.forget((), "a").unwrap();
    guard.forget((), "never seen").unwrap();
    assert_eq!(
        told.take(),
        ["kept 2", "gone", "gone"],
        "what is not here may be there"
    );
    guard.call((), "a", |_| async { Ok(4000) }).await.unwrap();
    assert_eq!(
        told.take(),
        ["gone"],
        "what is too big to keep takes the older one away"
    );
}

#[tokio::test]
async fn what_comes_back_is_served_by_its_age_and_told_to_nobody() {
    let Setting {
        guard,
        told,
        clock,
        memory,
    } = setting();
    let key = guard.missing(&(), "a").unwrap();
    let before = memory.before();
    let entry = Entry {
        observed: Some(clock.now().mono.before(Duration::from_secs(59))),
        ..Entry::default()
    };
    assert!(memory.restore(&key, 7, 4, entry, before).is_some());
    assert_eq!(guard.missing(&(), "a"), None);
    assert_eq!(told.take(), [""; 0]);
    let answer = guard.call((), "a", |_| async { Err(()) }).await.unwrap();
    assert_eq!((*answer, answer.age), (7, Some(Duration::from_secs(59))));
    clock.advance(Duration::from_secs(2));
    assert!(
        guard.call((), "a", |_| async { Err(()) }).await.is_err(),
        "too old by now"
    );
    // Undated, or dated ahead: held, and not served.
    for observed in [None, Some(Mono::END)] {
        let key = guard.missing(&(), "b").unwrap();
        assert!(
            memory
                .restore(&key, 8, 4, Entry { observed, ..entry }, memory.before())
                .is_some()
        );
        assert!(guard.call((), "b", |_| async { Err(()) }).await.is_err());
        guard.forget((), "b").unwrap();
    }
}

#[tokio::test]
async fn e46_what_comes_back_after_its_key_was_retired_is_not_kept() {
    let Setting {
        guard, clock, memory, ..
    } = setting();
    let key = guard.missing(&(), "a").unwrap();
    let before = memory.before();
    guard.forget((), "a").unwrap();
    for observed in [
        Some(clock.now().mono.before(Duration::from_secs(5))),
        None,
        Some(clock.now().mono),
    ] {
        let entry = Entry {
            observed,
            ..Entry::default()
        };
        assert!(memory.restore(&key, 7, 4, entry, before).is_none());
    }
    assert_eq!(memory.count(), 0);
    // What is asked for after that is another matter: the store behind knows of it by then.
    let entry = Entry {
        observed: Some(clock.now().mono.before(Duration::from_secs(5))),
        ..Entry::default()
    };
    assert!(memory.restore(&key, 7, 4, entry, memory.before()).is_some());
}

#[tokio::test]
async fn e47_what_comes_back_never_replaces_what_was_observed_later() {
    let Setting {
        guard, clock, memory, ..
    } = setting();
    let key = guard.missing(&(), "a").unwrap();
    guard.call((), "a", |_| async { Ok(2) }).await.unwrap();
    let entry = Entry {
        observed: Some(clock.now().mono.before(Duration::from_secs(5))),
        ..Entry::default()
    };
    assert!(memory.restore(&key, 7, 4, entry, memory.before()).is_none());
    assert_eq!(*guard.call((), "a", |_| async { Err(()) }).await.unwrap(), 2);
}

#[tokio::test]
async fn what_comes_back_into_a_full_memory_is_there_for_the_call_that_it_was_fetched_for() {
    let Setting {
        guard, clock, memory, ..
    } = setting();
    // Everything that fills it is in use.
    for _ in 0..3 {
        for key in 0..40 {
            let _kept = guard.call((), key.to_string(), |_| async { Ok(300) }).await;
        }
    }
    for key in 100..200 {
        let key = key.to_string();
        let whole = guard.missing(&(), &key).unwrap();
        let entry = Entry {
            observed: Some(clock.now().mono.before(Duration::from_secs(5))),
            ..Entry::default()
        };
        let restored = memory.restore(&whole, 7, 200, entry, memory.before());
        assert!(restored.is_some() && memory.bytes() <= memory.limit());
        assert_eq!(*guard.call((), &key, |_| async { Err(()) }).await.unwrap(), 7);
    }
    // Those that are held take a bounded part of it.
    let held: Vec<_> = (200..400)
        .filter_map(|key| {
            let whole = guard.missing(&(), key.to_string()).unwrap();
            memory.restore(&whole, 7, 200, Entry::default(), memory.before())
        })
        .collect();
    assert!(memory.bytes() <= memory.limit());
    drop(held);
}
