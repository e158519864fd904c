//! Decides how answers from snapshots are measured: fresh, stale after an attempt, stale without one.
//! It exists for rows 11 and 12: a stale answer should cost what a fresh one costs.
//! It refuses hot keys for fresh hits; see [`Data`].

use std::{
    error::Error,
    hint::black_box,
    time::{Duration, SystemTime},
};

use evenkeel::{Class, Engine, Read, ReadBuilder, Reason, Rung, stale};
use evenkeel_bench_library::{Case, block_on};

use crate::{
    data::{Data, Value},
    work::{Down, down},
};

/// Inside its lifetime; nobody is asked.
pub(crate) const FRESH: &str = "fresh hit";
/// The dependency is asked each time and fails.
pub(crate) const STALE_AFTER_FAILURE: &str = "stale hit, each call fails";
/// The breaker is open, so nobody is asked.
pub(crate) const STALE_WHILE_OPEN: &str = "stale hit, breaker open";

const HOUR: Duration = Duration::from_secs(3_600);

type Guard = Read<Value, Down>;

fn guard(
    data: &Data,
    rules: impl FnOnce(ReadBuilder<Value>) -> ReadBuilder<Value>,
) -> Result<Guard, Box<dyn Error>> {
    let guard = rules(Engine::system().read("hits"))
        .classify(|_: &Down| Class::OUTAGE)
        .build()?;
    for key in data.keys() {
        guard.seed((), key, data.value.clone(), Some(SystemTime::now()))?;
    }
    Ok(guard)
}

pub(crate) fn cases() -> Result<Vec<Case>, Box<dyn Error>> {
    let data = Data::new();
    let fresh = guard(&data, |read| read.fresh_for(HOUR))?;
    let failing = guard(&data, |read| read.ladder([stale(HOUR)]))?;
    let open = guard(&data, |read| {
        read.ladder([stale(HOUR)])
            .breaker(|breaker| breaker.consecutive(1).open_until_probed())
    })?;
    let tripped = block_on(open.call((), data.key(0), |_| async { down(0) }));
    assert_eq!(tripped.expect("answered").rung, Rung::Stale);
    Ok(vec![
        fresh_hit(fresh, data.clone()),
        stale_hit(
            STALE_AFTER_FAILURE,
            failing,
            Reason::DependencyFailed,
            data.clone(),
        ),
        stale_hit(STALE_WHILE_OPEN, open, Reason::BreakerOpen, data),
    ])
}

fn fresh_hit(guard: Guard, data: Data) -> Case {
    Case::new(FRESH, move |_, calls| {
        block_on(async {
            for call in 0..calls {
                let answer = guard
                    .call((), data.key(call), |_| async move { down(call) })
                    .await;
                assert_eq!(black_box(answer).expect("answered").rung, Rung::Fresh);
            }
        });
    })
}

fn stale_hit(name: &'static str, guard: Guard, reason: Reason, data: Data) -> Case {
    Case::new(name, move |_, calls| {
        block_on(async {
            for call in 0..calls {
                let answer = guard
                    .call((), data.stale_key(call), |_| async move { down(call) })
                    .await;
                assert_eq!(black_box(answer).expect("answered").reason, Some(reason));
            }
        });
    })
}
