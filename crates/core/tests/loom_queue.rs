//! Every interleaving of one who joins a queue and one who gives a permit back, by loom's model checker.
//!
//! `RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p evenkeel-core --release --test loom_queue`
#![cfg(loom)]

use evenkeel_core::{Bulkhead, Waiting};
use loom::{sync::Arc, thread};

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
