//! Decides how the circuit breakers recloser and failsafe are measured: closed, and refusing.
//! It exists because they are the lightest that a user can pick, and the leaders of row 8.
//! It refuses their asynchronous forms where the synchronous one is faster.

use std::{hint::black_box, time::Duration};

use evenkeel_bench_library::Case;
use failsafe::{CircuitBreaker as _, Config, backoff, failure_policy::consecutive_failures};
use recloser::Recloser;

use crate::work::{down, up};

/// Trips by the share of failures among the last 100 calls; reads no clock while closed.
pub(crate) const RECLOSER: &str = "recloser 1.4";
/// Refusing.
pub(crate) const RECLOSER_OPEN: &str = "recloser 1.4, open";
/// Trips after five failures in a row.
pub(crate) const FAILSAFE_IN_A_ROW: &str = "failsafe 1.3, in a row";
/// Its default: failures in a row, or the success rate over 30 s.
pub(crate) const FAILSAFE_DEFAULT: &str = "failsafe 1.3, default";
/// Refusing.
pub(crate) const FAILSAFE_OPEN: &str = "failsafe 1.3, open";

const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        recloser_closed(),
        recloser_open(),
        failsafe_in_a_row(),
        failsafe_default(),
        failsafe_open(),
    ]
}

fn recloser_closed() -> Case {
    let breaker = Recloser::custom()
        .error_rate(0.5)
        .closed_len(100)
        .half_open_len(10)
        .open_wait(HOUR)
        .build();
    Case::new(RECLOSER, move |_, calls| {
        for call in 0..calls {
            black_box(breaker.call(|| up(call))).expect("closed");
        }
    })
}

fn recloser_open() -> Case {
    let breaker = Recloser::custom()
        .error_rate(0.5)
        .closed_len(1)
        .half_open_len(1)
        .open_wait(HOUR)
        .build();
    for call in 0..10 {
        drop(breaker.call(|| down::<u64>(call)));
    }
    Case::new(RECLOSER_OPEN, move |_, calls| {
        for call in 0..calls {
            black_box(breaker.call(|| up(call))).expect_err("open");
        }
    })
}

fn failsafe_in_a_row() -> Case {
    let breaker = Config::new()
        .failure_policy(consecutive_failures(5, backoff::constant(HOUR)))
        .build();
    Case::new(FAILSAFE_IN_A_ROW, move |_, calls| {
        for call in 0..calls {
            black_box(breaker.call(|| up(call))).expect("closed");
        }
    })
}

fn failsafe_default() -> Case {
    let breaker = Config::new().build();
    Case::new(FAILSAFE_DEFAULT, move |_, calls| {
        for call in 0..calls {
            black_box(breaker.call(|| up(call))).expect("closed");
        }
    })
}

fn failsafe_open() -> Case {
    let breaker = Config::new()
        .failure_policy(consecutive_failures(1, backoff::constant(HOUR)))
        .build();
    drop(breaker.call(|| down::<u64>(0)));
    Case::new(FAILSAFE_OPEN, move |_, calls| {
        for call in 0..calls {
            black_box(breaker.call(|| up(call))).expect_err("open");
        }
    })
}
