//! Decides where the time comes from: the system's clocks, or one that a test moves by hand.
//! It exists so that an engine is given its time when it is made, and every rule can be tested to the nanosecond.
//! It refuses to be a global: two engines may live by two clocks.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use evenkeel_core::{Mono, Now, Wall};
use parking_lot::Mutex;

/// The source of time of an engine. Clones tell the same time.
#[derive(Clone, Debug)]
pub struct Clock(Kind);

#[derive(Clone, Debug)]
enum Kind {
    System(Arc<SystemClock>),
    Manual(ManualClock),
}

impl Clock {
    /// The system's clocks: boot time, which counts suspend and never steps, and the wall clock for display.
    #[must_use]
    pub fn system() -> Self {
        Self(Kind::System(Arc::new(SystemClock::new())))
    }

    /// Reads the clock.
    #[must_use]
    pub fn now(&self) -> Now {
        match &self.0 {
            Kind::System(clock) => clock.now(),
            Kind::Manual(clock) => clock.now(),
        }
    }

    /// Waits until the clock shows `at`. Ready at once if it does already.
    pub(crate) async fn sleep_until(&self, at: Mono) {
        match &self.0 {
            Kind::System(clock) => {
                // The runtime's timer stands still in suspend and ours does not, so look again after waking.
                loop {
                    let remaining = at.since(clock.now().mono);
                    if remaining.is_zero() {
                        return;
                    }
                    // Work that always finds something to do, such as a peer that never stops sending, uses up the
                    // task's whole budget each time; a timer that drew on the same budget would never be looked at.
                    tokio::task::unconstrained(tokio::time::sleep(remaining)).await;
                }
            }
            Kind::Manual(clock) => {
                ManualSleep {
                    clock: clock.clone(),
                    at,
                    ticket: None,
                }
                .await;
            }
        }
    }
}

impl From<ManualClock> for Clock {
    fn from(clock: ManualClock) -> Self {
        Self(Kind::Manual(clock))
    }
}

#[derive(Debug)]
struct SystemClock {
    wall_minus_mono: AtomicI64,
    compare_at: AtomicI64,
}

/// The wall clock is only shown, so it is compared with boot time this often and derived in between: the
/// healthy path then reads one clock per call.
const COMPARE_EVERY_NANOS: i64 = 1_000_000_000;

impl SystemClock {
    fn new() -> Self {
        let clock = Self {
            wall_minus_mono: AtomicI64::new(0),
            compare_at: AtomicI64::new(i64::MIN),
        };
        clock.compare(boot_nanos());
        clock
    }

    fn now(&self) -> Now {
        let mono = boot_nanos();
        if mono >= self.compare_at.load(Ordering::Relaxed) {
            self.compare(mono);
        }
        let wall = mono.saturating_add(self.wall_minus_mono.load(Ordering::Relaxed));
        Now {
            mono: Mono::from_nanos(mono),
            wall: Wall::from_nanos(wall),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "this is where the wall clock is read")]
    fn compare(&self, mono: i64) {
        self.wall_minus_mono.store(
            wall_nanos(SystemTime::now()).saturating_sub(mono),
            Ordering::Relaxed,
        );
        self.compare_at
            .store(mono.saturating_add(COMPARE_EVERY_NANOS), Ordering::Relaxed);
    }
}

#[expect(clippy::disallowed_methods, reason = "this is where boot time is read")]
fn boot_nanos() -> i64 {
    let read = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    // A machine that has been up for 292 years may wrap around.
    read.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(read.tv_nsec)
}

/// Converts a system time to nanoseconds since the epoch, saturating 292 years away on either side.
pub(crate) fn wall_nanos(time: SystemTime) -> i64 {
    let nanos = |span: Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => nanos(since),
        Err(before) => -nanos(before.duration()),
    }
}

/// A clock that stands still until it is moved: for tests, yours included.
///
/// It starts at 2001-09-09T01:46:40Z. Whoever waits for a time is woken when the clock reaches it.
///
/// ```
/// use evenkeel::{Engine, ManualClock};
/// use std::time::Duration;
/// let clock = ManualClock::new();
/// let engine = Engine::new(clock.clone(), 7);
/// let before = engine.now().mono;
/// clock.advance(Duration::from_secs(5));
/// assert_eq!(engine.now().mono.since(before), Duration::from_secs(5));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<Mutex<Manual>>);

#[derive(Debug)]
struct Manual {
    now: Now,
    next_ticket: u64,
    /// One entry per waiting future; a future takes its entry away when it is dropped.
    sleepers: Vec<(u64, Mono, Waker)>,
}

impl Default for Manual {
    fn default() -> Self {
        let now = Now {
            mono: Mono::ORIGIN.after(DAY),
            wall: Wall::from_nanos(1_000_000_000_000_000_000),
        };
        Self {
            now,
            next_ticket: 0,
            sleepers: Vec::new(),
        }
    }
}

/// A manual clock starts a day after its origin, so that "an hour ago" is a time like any other.
const DAY: Duration = Duration::from_secs(86_400);

impl ManualClock {
    /// Makes a clock that stands still.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the clock.
    #[must_use]
    pub fn now(&self) -> Now {
        self.0.lock().now
    }

    /// Moves the clock on in one step and wakes whoever waited for the time passed, in no particular order: they
    /// all see the new time. Move it in smaller steps where the order matters.
    pub fn advance(&self, span: Duration) {
        let mut clock = self.0.lock();
        let Now { mono, wall } = clock.now;
        let wall = Mono::from_nanos(wall.as_nanos()).after(span);
        clock.now = Now {
            mono: mono.after(span),
            wall: Wall::from_nanos(wall.as_nanos()),
        };
        let now = clock.now.mono;
        let (due, waiting) = std::mem::take(&mut clock.sleepers)
            .into_iter()
            .partition(|(_, at, _)| *at <= now);
        clock.sleepers = waiting;
        drop(clock); // wake outside the lock
        let due: Vec<(u64, Mono, Waker)> = due;
        for (_, _, waker) in due {
            waker.wake();
        }
    }

    /// Waits until the clock has been moved on by `span`: for dependencies of a test that take their time.
    ///
    /// Zero is ready at once. It is not `async`, so that the time runs from the call and not from the first poll.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use evenkeel::{Class, Engine, ManualClock, Reason};
    /// use std::time::Duration;
    /// let clock = ManualClock::new();
    /// let engine = Engine::new(clock.clone(), 7);
    /// let guard = engine.read::<u32>("slow").timeout(Duration::from_millis(250))
    ///     .classify(|_: &()| Class::OUTAGE).build().unwrap();
    /// let call = tokio::spawn({
    ///     let clock = clock.clone();
    ///     async move {
    ///         guard.call((), "k", |_| async move { clock.sleep(Duration::from_secs(9)).await; Ok(1) }).await
    ///     }
    /// });
    /// tokio::task::yield_now().await; // the call starts and waits
    /// clock.advance(Duration::from_millis(250));
    /// assert_eq!(call.await.unwrap().unwrap_err().reason, Some(Reason::TimedOut));
    /// # }
    /// ```
    pub fn sleep(&self, span: Duration) -> impl Future<Output = ()> + Send + use<> {
        ManualSleep {
            clock: self.clone(),
            at: self.now().mono.after(span),
            ticket: None,
        }
    }

    /// Sets the wall clock without any time passing, as an administrator or a time server does.
    pub fn set_wall(&self, wall: SystemTime) {
        self.0.lock().now.wall = Wall::from_nanos(wall_nanos(wall));
    }

    /// Returns how many futures wait for a time.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.0.lock().sleepers.len()
    }
}

struct ManualSleep {
    clock: ManualClock,
    at: Mono,
    ticket: Option<u64>,
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let mut clock = this.clock.0.lock();
        if clock.now.mono >= this.at {
            return Poll::Ready(());
        }
        let ticket = *this.ticket.get_or_insert(clock.next_ticket);
        clock.next_ticket = clock.next_ticket.max(ticket + 1);
        let earlier = clock.sleepers.iter().position(|(other, ..)| *other == ticket);
        let earlier = earlier.map(|place| clock.sleepers.swap_remove(place));
        clock.sleepers.push((ticket, this.at, context.waker().clone()));
        // A waker is somebody else's code: what its drop does must not find this lock taken.
        drop(clock);
        drop(earlier);
        Poll::Pending
    }
}

impl Drop for ManualSleep {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let mut clock = self.clock.0.lock();
            let place = clock.sleepers.iter().position(|(other, ..)| *other == ticket);
            let entry = place.map(|place| clock.sleepers.swap_remove(place));
            drop(clock);
            drop(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "compares with the clock itself")]
    fn the_system_clock_agrees_with_the_wall_and_never_goes_back() {
        let clock = Clock::system();
        let first = clock.now();
        let off = (first.wall.as_nanos() - wall_nanos(SystemTime::now())).abs();
        assert!(off < 60 * 1_000_000_000, "wall time is {off} ns off");
        assert!(clock.now().mono >= first.mono);
    }

    #[tokio::test]
    async fn a_sleeper_wakes_at_its_time_and_not_a_nanosecond_before() {
        let manual = ManualClock::new();
        let clock = Clock::from(manual.clone());
        let at = clock.now().mono.after(Duration::from_secs(1));
        let sleeper = tokio::spawn(async move { clock.sleep_until(at).await });
        while manual.sleepers() == 0 {
            tokio::task::yield_now().await;
        }
        manual.advance(Duration::from_secs(1) - Duration::from_nanos(1));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        manual.advance(Duration::from_nanos(1));
        sleeper.await.unwrap();
        assert_eq!(manual.sleepers(), 0);
    }

    #[tokio::test]
    async fn a_sleeper_that_leaves_leaves_nothing_behind() {
        let manual = ManualClock::new();
        let clock = Clock::from(manual.clone());
        let at = clock.now().mono.after(Duration::from_secs(1));
        let sleeper = tokio::spawn(async move { clock.sleep_until(at).await });
        while manual.sleepers() == 0 {
            tokio::task::yield_now().await;
        }
        sleeper.abort();
        assert!(sleeper.await.is_err());
        assert_eq!(manual.sleepers(), 0);
    }

    #[test]
    fn times_before_1970_and_far_away_convert() {
        assert_eq!(wall_nanos(UNIX_EPOCH - Duration::from_nanos(5)), -5);
        assert_eq!(wall_nanos(UNIX_EPOCH + Duration::from_secs(2)), 2_000_000_000);
    }
}
