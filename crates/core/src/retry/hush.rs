//! Decides until when a dependency that asked for it is left alone by work that nobody waits for.
//! It exists because a 429 is about the one who asks: whoever goes on asking makes it last.
//! It refuses to hold up calls: a caller who waits may always ask once.

use core::time::Duration;

use crate::{
    sync::{AtomicI64, Ordering},
    time::Mono,
};

/// The moment up to which retries and refreshes leave a dependency alone. It only ever moves on.
#[derive(Debug)]
pub(crate) struct Hush(AtomicI64);

impl Hush {
    pub(crate) fn new() -> Self {
        Self(AtomicI64::new(i64::MIN))
    }

    /// Leaves it alone for `span` from `now` on, or for longer if that was said before.
    pub(crate) fn keep(&self, span: Duration, now: Mono) {
        self.0.fetch_max(now.after(span).as_nanos(), Ordering::Relaxed);
    }

    /// Returns until when it is to be left alone, if that is still to come.
    pub(crate) fn until(&self, now: Mono) -> Option<Mono> {
        let until = Mono::from_nanos(self.0.load(Ordering::Relaxed));
        (until > now).then_some(until)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_that_was_asked_for_holds_and_ends_at_its_end() {
        let (hush, second) = (Hush::new(), Duration::from_secs(1));
        let now = Mono::ORIGIN;
        assert_eq!(hush.until(now), None);
        hush.keep(second * 5, now);
        hush.keep(second, now.after(second));
        let end = now.after(second * 5);
        assert_eq!(hush.until(end.before(Duration::from_nanos(1))), Some(end));
        assert_eq!(hush.until(end), None);
    }
}
