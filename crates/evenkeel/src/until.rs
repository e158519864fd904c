//! Decides how an attempt meets its limit: the work is polled first, and a timer is only made once it waits.
//! It exists because work that is ready at once is the cheapest there is and should stay so.
//! It refuses to hide when time ran out: the caller learns it then and there, and drops the work.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::Poll,
};

use evenkeel_core::Mono;

use crate::clock::Clock;

/// What came of the work.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome<R> {
    /// Ready when first looked at: no time has passed.
    AtOnce(R),
    /// Ready later.
    Later(R),
    /// The limit came first.
    OutOfTime,
}

/// Runs `work` until it is done or the clock shows `limit`. Work that is done at the limit has won.
///
/// Takes the work pinned, because what is handed on by value is stored once more at every step. When time is
/// up the caller drops it.
pub(crate) async fn until<F: Future>(
    clock: &Clock,
    limit: Option<Mono>,
    mut work: Pin<&mut F>,
) -> Outcome<F::Output> {
    let first = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
    if let Poll::Ready(result) = first {
        return Outcome::AtOnce(result);
    }
    let Some(limit) = limit else {
        return Outcome::Later(work.await);
    };
    let mut timer = pin!(clock.sleep_until(limit));
    poll_fn(|context| {
        if let Poll::Ready(result) = work.as_mut().poll(context) {
            return Poll::Ready(Outcome::Later(result));
        }
        timer.as_mut().poll(context).map(|()| Outcome::OutOfTime)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use std::time::Duration;

    #[tokio::test]
    async fn work_that_is_ready_needs_no_timer() {
        let manual = ManualClock::new();
        let clock = Clock::from(manual.clone());
        let outcome = until(&clock, Some(Mono::ORIGIN), pin!(async { 1 })).await;
        assert_eq!(outcome, Outcome::AtOnce(1));
        assert_eq!(manual.sleepers(), 0);
    }

    #[tokio::test]
    async fn work_past_its_limit_is_dropped_at_once() {
        struct Flag(std::sync::Arc<std::sync::atomic::AtomicBool>);
        impl Drop for Flag {
            fn drop(&mut self) {
                self.0.store(true, std::sync::atomic::Ordering::SeqCst);
            }
        }
        let manual = ManualClock::new();
        let clock = Clock::from(manual.clone());
        let dropped = std::sync::Arc::default();
        let flag = Flag(std::sync::Arc::clone(&dropped));
        let limit = clock.now().mono.after(Duration::from_secs(1));
        let waiting = tokio::spawn(async move {
            let work = pin!(async move {
                let _flag = flag;
                std::future::pending::<()>().await;
            });
            until(&clock, Some(limit), work).await
        });
        while manual.sleepers() == 0 {
            tokio::task::yield_now().await;
        }
        manual.advance(Duration::from_secs(1));
        assert_eq!(waiting.await.unwrap(), Outcome::OutOfTime);
        assert!(dropped.load(std::sync::atomic::Ordering::SeqCst));
    }
}
