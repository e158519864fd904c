//! Decides why something that is dropped ended: while it waited its caller left, while it ran it broke.
//! It exists because a thread that is panicking does not say whose panic it is: a call that waits may be dropped
//! by the panic of a neighbour.
//! It refuses to catch panics; they go where they would have gone.

use std::{future::poll_fn, pin::Pin};

/// Runs `work`, keeping `parked` true exactly while it waits. It is pinned by its owner: a future that is handed
/// on by value is held twice.
pub(crate) fn park<F: Future>(parked: &mut bool, mut work: Pin<&mut F>) -> impl Future<Output = F::Output> {
    poll_fn(move |context| {
        *parked = false;
        let polled = work.as_mut().poll(context);
        *parked = polled.is_pending();
        polled
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn it_is_parked_between_polls_and_not_after_the_last() {
        let mut parked = false;
        let mut polls = 0;
        let work = poll_fn(|_| {
            polls += 1;
            if polls < 2 { Poll::Pending } else { Poll::Ready(()) }
        });
        {
            let work = pin!(work);
            let mut waiting = pin!(park(&mut parked, work));
            let mut context = Context::from_waker(Waker::noop());
            assert!(waiting.as_mut().poll(&mut context).is_pending());
        }
        assert!(parked);
        {
            let work = pin!(std::future::ready(()));
            let mut waiting = pin!(park(&mut parked, work));
            assert!(
                waiting
                    .as_mut()
                    .poll(&mut Context::from_waker(Waker::noop()))
                    .is_ready()
            );
        }
        assert!(!parked);
    }

    #[test]
    fn it_is_not_parked_when_the_work_panics() {
        let mut parked = true;
        let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let work = pin!(async { panic!("broken") });
            let mut waiting = pin!(park(&mut parked, work));
            let _polled = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }));
        assert!(broken.is_err());
        assert!(!parked);
    }
}
