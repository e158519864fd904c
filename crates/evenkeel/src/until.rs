//! Decides how an attempt meets its limit: the work is polled first, and a timer is only made once it waits.
//! It exists because work that is ready at once is the cheapest there is and should stay so.
//! It refuses to hide when time ran out: the caller learns it, and the work is dropped then and there.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::Poll,
};

use evenkeel_core::Mono;

use crate::clock::{Clock, NoTimer};

/// What came of the work.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome<R> {
    /// Ready when first looked at: no time has passed.
    AtOnce(R),
    /// Ready later.
    Later(R),
    /// The limit came first; the work is dropped.
    OutOfTime,
    /// It had to wait, and nothing could have ended it at its limit; it is dropped.
    NoTimer,
}

/// Runs `work` until it is done or the clock shows `limit`. Work that is done at the limit has won.
///
/// The work is pinned by its owner: a future that is handed on by value is held twice.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn moves its arguments once more, and that move stalls"
)]
pub(crate) fn until<F: Future>(
    clock: &Clock,
    limit: Option<Mono>,
    mut work: Pin<&mut F>,
) -> impl Future<Output = Outcome<F::Output>> {
    async move {
        let mut timer = pin!(None);
        let mut waited = false;
        poll_fn(|context| {
            if let Poll::Ready(result) = work.as_mut().poll(context) {
                return Poll::Ready(if waited {
                    Outcome::Later(result)
                } else {
                    Outcome::AtOnce(result)
                });
            }
            waited = true;
            let Some(limit) = limit else { return Poll::Pending };
            if timer.is_none() {
                timer.set(Some(clock.sleep_until(limit)));
            }
            timer.as_mut().as_pin_mut().map_or(Poll::Pending, |timer| {
                timer.poll(context).map(|slept| match slept {
                    Ok(()) => Outcome::OutOfTime,
                    Err(NoTimer) => Outcome::NoTimer,
                })
            })
        })
        .await
    }
}

/// The same, with one look in between: where the work is not done at `mark`, which is before the limit, `passed` is
/// called once and the work goes on. Where no timer could wake for the mark, nobody looks.
pub(crate) async fn until_past<F: Future>(
    clock: &Clock,
    mark: Mono,
    passed: impl FnOnce(),
    limit: Option<Mono>,
    mut work: Pin<&mut F>,
) -> Outcome<F::Output> {
    match until(clock, Some(mark), work.as_mut()).await {
        outcome @ (Outcome::AtOnce(_) | Outcome::Later(_)) => return outcome,
        Outcome::OutOfTime => passed(),
        Outcome::NoTimer => {}
    }
    match until(clock, limit, work).await {
        Outcome::AtOnce(result) => Outcome::Later(result),
        outcome @ (Outcome::Later(_) | Outcome::OutOfTime | Outcome::NoTimer) => outcome,
    }
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
    async fn work_that_waits_is_not_polled_before_it_is_woken() {
        for limit in [None, Some(Mono::END)] {
            let clock = Clock::from(ManualClock::new());
            let mut polls = 0;
            let work = poll_fn(|_| {
                polls += 1;
                Poll::<()>::Pending
            });
            {
                let work = pin!(work);
                let mut waiting = pin!(until(&clock, limit, work));
                let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                assert!(waiting.as_mut().poll(&mut context).is_pending());
            }
            assert_eq!(polls, 1);
        }
    }

    /// The one timer here that is real: the runtime's budget has no other.
    #[tokio::test]
    async fn work_that_never_runs_dry_is_ended_by_its_limit_all_the_same() {
        let clock = Clock::system();
        let limit = clock.now().mono.after(Duration::from_millis(1));
        let work = pin!(async {
            loop {
                tokio::task::coop::consume_budget().await;
            }
        });
        let waiting = until::<_>(&clock, Some(limit), work);
        let ended = tokio::time::timeout(Duration::from_secs(20), waiting).await;
        assert_eq!(ended, Ok(Outcome::<()>::OutOfTime));
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
