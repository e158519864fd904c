//! Decides how a whole guard is measured: default, breaker, permits, timeout and deadline around a call.
//! It exists for rows 9 and 10: what a healthy call pays for all of them, and what an answer costs once it is open.
//! It refuses to leave a policy out because it costs something.

use std::{error::Error, hint::black_box, sync::Arc, time::Duration};

use evenkeel::{Class, Engine, Problems, Read, Reason, Rung, default};
use evenkeel_bench_library::{Case, Tasks, block_on};

use crate::work::{Down, down, up};

/// Every policy, closed.
pub(crate) const CLOSED: &str = "whole guard";
/// The same, by work that owns what it needs.
pub(crate) const CLOSED_OWNED: &str = "whole guard, owned work";
/// The same by 64 tasks.
pub(crate) const CLOSED_TASKS: &str = "whole guard, shared";
/// Open until somebody probes: the default answers.
pub(crate) const OPEN: &str = "whole guard, open: default";

type Guard = Read<u64, Down>;

fn guard(opens_after: u32) -> Result<Guard, Problems> {
    Engine::system()
        .read("stack")
        .classify(|_: &Down| Class::OUTAGE)
        .timeout(Duration::from_secs(5))
        .deadline(Duration::from_secs(10))
        .concurrency(1_000)
        .breaker(|breaker| {
            breaker
                .consecutive(opens_after)
                .failure_ratio(500_000, Duration::from_secs(10), 20)
                .open_until_probed()
        })
        .ladder([default(|| 7)])
        .build()
}

pub(crate) fn cases(tasks: &Tasks) -> Result<Vec<Case>, Box<dyn Error>> {
    Ok(vec![
        closed(guard(5)?),
        closed_owned(guard(5)?),
        closed_tasks(guard(5)?, tasks),
        open(guard(1)?),
    ])
}

fn closed(guard: Guard) -> Case {
    Case::new(CLOSED, move |_, calls| {
        block_on(async {
            for call in 0..calls {
                let answer = guard.call((), "", |_| async move { up(call) }).await;
                assert_eq!(black_box(answer).expect("answered").rung, Rung::Live);
            }
        });
    })
}

fn closed_owned(guard: Guard) -> Case {
    Case::new(CLOSED_OWNED, move |_, calls| {
        block_on(async {
            for call in 0..calls {
                let answer = guard.call_owned((), "", move |_| async move { up(call) }).await;
                assert_eq!(black_box(answer).expect("answered").rung, Rung::Live);
            }
        });
    })
}

fn closed_tasks(guard: Guard, tasks: &Tasks) -> Case {
    let (guard, tasks) = (Arc::new(guard), tasks.clone());
    Case::new(CLOSED_TASKS, move |_, calls| {
        tasks.run(calls, |share| {
            let guard = Arc::clone(&guard);
            async move {
                for call in 0..share {
                    let answer = guard.call((), "", |_| async move { up(call) }).await;
                    assert_eq!(black_box(answer).expect("answered").rung, Rung::Live);
                    Tasks::pause(call).await;
                }
            }
        });
    })
}

fn open(guard: Guard) -> Case {
    let tripped = block_on(guard.call((), "", |_| async { down(0) }));
    assert_eq!(tripped.expect("answered").reason, Some(Reason::DependencyFailed));
    Case::new(OPEN, move |_, calls| {
        block_on(async {
            for call in 0..calls {
                let answer = guard.call((), "", |_| async move { up(call) }).await;
                assert_eq!(
                    black_box(answer).expect("answered").reason,
                    Some(Reason::BreakerOpen)
                );
            }
        });
    })
}
