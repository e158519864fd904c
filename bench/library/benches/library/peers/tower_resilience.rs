//! Decides how tower-resilience's stack is measured: fallback around breaker around bulkhead around time limit.
//! It exists because it is the one library that offers all of that for any asynchronous call: rows 9 and 10.
//! It refuses to build layers per call; a stack is built once and cloned per thread or task.

use std::{error::Error, hint::black_box, time::Duration};

use evenkeel_bench_library::{Case, Tasks, block_on};
use tower::{Layer as _, Service, ServiceExt as _, service_fn, util::MapErr};
use tower_resilience::{
    bulkhead::BulkheadLayer, circuitbreaker::CircuitBreakerLayer, fallback::FallbackLayer,
    timelimiter::TimeLimiterLayer,
};

use crate::work::{Down, down, up};

/// Everything, closed.
pub(crate) const STACK: &str = "tower-resilience 0.13 stack";
/// The same by 64 tasks.
pub(crate) const STACK_TASKS: &str = "tower-resilience 0.13 stack, shared";
/// The same without the time limit, by 64 tasks.
pub(crate) const UNTIMED_STACK_TASKS: &str = "the same without its time limit";
/// Open: the fallback value answers.
pub(crate) const STACK_OPEN: &str = "tower-resilience 0.13 stack, open";
/// The breaker alone, closed.
pub(crate) const BREAKER: &str = "tower-resilience 0.13 breaker";

/// What every stack here looks like from outside.
trait Stack:
    Service<u64, Response = u64, Error: std::fmt::Debug, Future: Send> + Clone + Send + Sync + 'static
{
}

impl<S> Stack for S where
    S: Service<u64, Response = u64, Error: std::fmt::Debug, Future: Send> + Clone + Send + Sync + 'static
{
}

fn breaker(window: usize) -> Result<CircuitBreakerLayer, Box<dyn Error>> {
    let breaker = CircuitBreakerLayer::builder()
        .failure_rate_threshold(0.5)
        .sliding_window_size(window)
        .wait_duration_in_open(Duration::from_secs(3_600));
    Ok(breaker.build()?)
}

fn stack(window: usize, work: fn(u64) -> Result<u64, Down>) -> Result<impl Stack, Box<dyn Error>> {
    let limited = TimeLimiterLayer::builder()
        .timeout_duration(Duration::from_secs(5))
        .build()
        .layer(service_fn(move |call| async move { work(call) }));
    let permitted = BulkheadLayer::builder()
        .max_concurrent_calls(1_000)
        .build()?
        .layer(limited);
    let guarded = MapErr::new(breaker(window)?.layer(permitted), |_| Down);
    Ok(FallbackLayer::<u64, u64, Down>::value(7).layer(guarded))
}

fn untimed_stack() -> Result<impl Stack, Box<dyn Error>> {
    let permitted = BulkheadLayer::builder()
        .max_concurrent_calls(1_000)
        .build()?
        .layer(service_fn(|call| async move { up(call) }));
    let guarded = MapErr::new(breaker(100)?.layer(permitted), |_| Down);
    Ok(FallbackLayer::<u64, u64, Down>::value(7).layer(guarded))
}

pub(crate) fn cases(tasks: &Tasks) -> Result<Vec<Case>, Box<dyn Error>> {
    let open = stack(2, down)?;
    block_on(make_calls(open.clone(), 20));
    Ok(vec![
        one(STACK, stack(100, up)?),
        one(STACK_OPEN, open),
        one(
            BREAKER,
            breaker(100)?.layer(service_fn(|call| async move { up(call) })),
        ),
        many(STACK_TASKS, stack(100, up)?, tasks),
        many(UNTIMED_STACK_TASKS, untimed_stack()?, tasks),
    ])
}

fn one(name: &'static str, stack: impl Stack) -> Case {
    Case::new(name, move |_, calls| block_on(make_calls(stack.clone(), calls)))
}

fn many(name: &'static str, stack: impl Stack, tasks: &Tasks) -> Case {
    let tasks = tasks.clone();
    Case::new(name, move |_, calls| {
        tasks.run(calls, |share| {
            let mut stack = stack.clone();
            async move {
                for number in 0..share {
                    call(&mut stack, number).await;
                    Tasks::pause(number).await;
                }
            }
        });
    })
}

async fn make_calls(mut stack: impl Stack, calls: u64) {
    for number in 0..calls {
        call(&mut stack, number).await;
    }
}

async fn call(stack: &mut impl Stack, number: u64) {
    let ready = stack.ready().await.expect("these layers are always ready");
    black_box(ready.call(number).await).expect("answered by the work or the fallback");
}
