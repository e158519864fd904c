//! Every interleaving of a few threads at bulkheads, by loom's model checker.
//!
//! `RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p evenkeel-core --release --test loom_bulkhead`
#![cfg(loom)]

use evenkeel_core::{Bulkhead, acquire_all};
use loom::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};

/// Runs `work` on `threads` threads and returns what each brought.
fn at_once<T: 'static>(threads: usize, work: impl Fn(usize) -> T + Clone + 'static) -> Vec<T> {
    let running: Vec<_> = (0..threads)
        .map(|number| {
            let work = work.clone();
            thread::spawn(move || work(number))
        })
        .collect();
    running
        .into_iter()
        .map(|thread| thread.join().expect("no thread of the model breaks"))
        .collect()
}

#[test]
fn e67_no_more_permits_than_the_limit_at_any_instant() {
    loom::model(|| {
        let bulkhead = Arc::new(Bulkhead::new(1));
        let inside = Arc::new(AtomicU32::new(0));
        let held = (Arc::clone(&bulkhead), Arc::clone(&inside));
        at_once(2, move |_| {
            let (bulkhead, inside) = &held;
            if bulkhead.acquire() {
                assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "two inside at once");
                inside.fetch_sub(1, Ordering::Relaxed);
                bulkhead.release();
            }
        });
        assert_eq!(bulkhead.in_use(), 0);
    });
}

#[test]
fn as_many_callers_as_permits_are_never_refused() {
    loom::model(|| {
        let bulkhead = Arc::new(Bulkhead::new(2));
        let held = Arc::clone(&bulkhead);
        let granted = at_once(2, move |_| held.acquire());
        assert_eq!(granted, [true, true]);
        assert_eq!(bulkhead.in_use(), 2);
        assert!(!bulkhead.acquire());
    });
}

#[test]
fn of_three_callers_exactly_the_limit_gets_in_when_nobody_leaves() {
    loom::model(|| {
        let bulkhead = Arc::new(Bulkhead::new(2));
        let held = Arc::clone(&bulkhead);
        let granted = at_once(3, move |_| held.acquire());
        assert_eq!(granted.into_iter().filter(|granted| *granted).count(), 2);
        assert_eq!(bulkhead.in_use(), 2);
    });
}

#[test]
fn what_one_holder_did_is_seen_by_the_next() {
    loom::model(|| {
        let bulkhead = Arc::new(Bulkhead::new(1));
        let written = Arc::new(AtomicU32::new(0));
        assert!(bulkhead.acquire());
        let held = (Arc::clone(&bulkhead), Arc::clone(&written));
        let holder = thread::spawn(move || {
            held.1.store(1, Ordering::Relaxed);
            held.0.release();
        });
        if bulkhead.acquire() {
            assert_eq!(written.load(Ordering::Relaxed), 1);
        }
        holder.join().expect("no thread of the model breaks");
    });
}

#[test]
fn all_or_nothing_in_opposite_orders_neither_leaks_nor_refuses_for_good() {
    loom::model(|| {
        let pair = Arc::new([Bulkhead::new(1), Bulkhead::new(1)]);
        let held = Arc::clone(&pair);
        let granted = at_once(2, move |number| {
            let [a, b] = &*held;
            let order = if number == 0 { [a, b] } else { [b, a] };
            let granted = acquire_all(order.into_iter()).is_ok();
            if granted {
                assert_eq!((a.in_use(), b.in_use()), (1, 1), "the holder of both holds both");
                a.release();
                b.release();
            }
            granted
        });
        drop(granted); // both may be refused while they cross; neither stays refused
        let [a, b] = &*pair;
        assert_eq!((a.in_use(), b.in_use()), (0, 0), "a permit leaked");
        assert_eq!(acquire_all([a, b].into_iter()), Ok(()));
    });
}

#[test]
fn a_caller_who_is_alone_at_its_bulkheads_is_not_refused_by_a_stranger() {
    loom::model(|| {
        let three = Arc::new([Bulkhead::new(1), Bulkhead::new(1), Bulkhead::new(2)]);
        let held = Arc::clone(&three);
        // The third is shared and has room for both.
        let granted = at_once(2, move |number| {
            acquire_all([&held[number], &held[2]].into_iter())
        });
        assert_eq!(granted, [Ok(()), Ok(())]);
    });
}

/// A limit is lowered while callers come: whoever got in before stays, and nobody comes in beside too many.
#[test]
fn a_limit_that_is_lowered_lets_nobody_in_beside_as_many_as_it_allows() {
    loom::model(|| {
        let bulkhead = Arc::new(Bulkhead::new(2));
        let other = Arc::clone(&bulkhead);
        let lowering = thread::spawn(move || other.set_limit(1));
        let granted = [bulkhead.acquire(), bulkhead.acquire()];
        lowering.join().expect("no thread of the model breaks");
        assert!(granted[0], "one is allowed by either limit");
        assert!(!bulkhead.acquire(), "one or two are in, and one is the limit");
        for _ in granted.into_iter().filter(|granted| *granted) {
            bulkhead.release();
        }
        assert_eq!(bulkhead.in_use(), 0);
        assert!(bulkhead.acquire() && !bulkhead.acquire());
    });
}
