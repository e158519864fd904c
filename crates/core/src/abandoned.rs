//! Decides when so much work has been given up that no more may be begun.
//! It exists because a timeout ends the wait and not the work: a dependency that hangs would be given new work for ever.
//! It refuses to guess which work has ended: each piece counts for its span, and then no more.

use core::time::Duration;

use alloc::sync::Arc;

use crate::{limit::linger::Linger, time::Mono};

/// A cap on attempts that ran into their limit and may still be worked on.
#[derive(Debug)]
pub(crate) struct Abandoned {
    most: u32,
    linger: Arc<Linger>,
}

impl Abandoned {
    /// Counts each piece for `span`.
    pub(crate) fn new(most: u32, span: Duration) -> Self {
        Self {
            most,
            linger: Arc::new(Linger::new(span)),
        }
    }

    /// Counts on with another cap.
    pub(crate) fn succeeded_by(&self, most: u32) -> Self {
        Self {
            most,
            linger: Arc::clone(&self.linger),
        }
    }

    /// See [`Linger::set_span`].
    pub(crate) fn set_span(&self, span: Duration, now: Mono) {
        self.linger.set_span(span, now);
    }

    /// Counts an attempt that ran into its limit at `now`.
    pub(crate) fn add(&self, now: Mono) {
        self.linger.add(now);
    }

    /// Returns how many count at `now`.
    pub(crate) fn count(&self, now: Mono) -> u32 {
        self.linger.count(now)
    }

    /// Tells whether no more work may be begun.
    pub(crate) fn is_full(&self, now: Mono) -> bool {
        self.count(now) >= self.most
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn e29_at_the_cap_no_more_is_begun_until_one_has_counted_for_its_span() {
        let second = Duration::from_secs(1);
        let abandoned = Abandoned::new(2, second);
        let at = |millis| Mono::ORIGIN.after(Duration::from_millis(millis));
        abandoned.add(at(10));
        assert!(!abandoned.is_full(at(10)));
        abandoned.add(at(600));
        assert_eq!(
            [600, 1_010, 1_300].map(|millis| abandoned.is_full(at(millis))),
            [true, true, false]
        );
    }
}
