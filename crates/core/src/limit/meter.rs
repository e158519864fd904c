//! Decides whether a call fits under the limit of the moment, and notes what came of it.
//! It exists as one lock-free type because every call touches it; whoever judges its notes sets its limit.
//! It refuses to judge: it counts, it compares with lines that were drawn for it, and no more.

use core::time::Duration;

use crate::{
    limit::linger::Linger,
    reason::Reason,
    sync::{AtomicI64, AtomicU32, AtomicU64, Ordering},
    time::Mono,
};

/// No limit.
pub(crate) const NO_LIMIT: u32 = u32::MAX;
/// The whole of something, in parts per million.
pub(crate) const WHOLE: u32 = 1_000_000;
/// "Not by itself", as an instant.
const NEVER: i64 = i64::MAX;

/// How an attempt came in: when, and as the how-manieth in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) began: Mono,
    pub(crate) in_flight: u32,
}

/// What an attempt came to, as far as load is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The dependency answered, whatever it said.
    Answer,
    /// It failed.
    Failure,
    /// It did not answer in time; its work may go on. `blame` says whether that is its failure.
    TimedOut { blame: bool },
    /// Nothing can be learned from it.
    Nothing,
}

/// Calls, and the sum of their latencies, in one word.
#[derive(Debug)]
struct Latencies(AtomicU64);

const SUM_BITS: u32 = 44;
/// More than this are not counted until somebody has looked: half of what fits.
const CALLS_MAX: u64 = 1 << (63 - SUM_BITS);
/// Latencies are counted in microseconds, at most this long: so that `CALLS_MAX` of them fit.
const MICROS_MAX: u64 = 1 << (2 * SUM_BITS - 63);

impl Latencies {
    fn add(&self, micros: u64) {
        if self.0.load(Ordering::Relaxed) >> SUM_BITS < CALLS_MAX {
            self.0
                .fetch_add((1 << SUM_BITS) | micros.min(MICROS_MAX - 1), Ordering::Relaxed);
        }
    }

    const fn of(word: u64) -> Sum {
        Sum {
            calls: word >> SUM_BITS,
            micros: word & ((1 << SUM_BITS) - 1),
        }
    }
}

/// A number of calls and their latencies added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) calls: u64,
    micros: u64,
}

impl Sum {
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            micros: self.micros + other.micros,
        }
    }

    /// Returns the mean in microseconds, one at least; `None` without calls.
    pub(crate) fn mean(self) -> Option<u64> {
        self.micros.checked_div(self.calls).map(|mean| mean.max(1))
    }
}

/// What was noted since somebody looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// Answers to calls that came in while little was in flight.
    pub(crate) low: Sum,
    /// The other answers.
    pub(crate) high: Sum,
    /// Answers later than the line for slow ones.
    pub(crate) slow: u32,
    pub(crate) failures: u32,
    /// Callers who left before they had waited in vain.
    pub(crate) left: u32,
    /// Calls for which there was no room.
    pub(crate) refused: u32,
    /// The most in flight.
    pub(crate) peak: u32,
    /// The most in flight that still got a good answer.
    pub(crate) proven: u32,
}

impl Notes {
    pub(crate) const fn answers(&self) -> Sum {
        self.low.and(self.high)
    }
}

/// The lines by which a latency is told good or slow, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    /// Up to here it is as good as ever.
    pub(crate) good: u64,
    /// From here on it is slow.
    pub(crate) slow: u64,
    /// Who leaves after this long has waited in vain.
    pub(crate) patience: u64,
    /// Calls that come in as this one or earlier meet a dependency that is little used.
    pub(crate) low: u32,
}

impl Lines {
    /// Lines that nothing passes.
    pub(crate) const NONE: Self = Self {
        good: u64::MAX,
        slow: u64::MAX,
        patience: u64::MAX,
        low: NO_LIMIT,
    };
}

/// The counters and the limit of one dependency.
#[derive(Debug)]
pub(crate) struct Meter {
    in_flight: AtomicU32,
    limit: AtomicU32,
    share: AtomicU32,
    offered: AtomicU64,
    linger: Linger,
    /// Calls that began earlier tell nothing about the limit of now.
    since: AtomicI64,
    /// When somebody is to look next; `NEVER` while somebody does.
    due: AtomicI64,
    /// When who is kept out by the ramp may try again.
    back_at: AtomicI64,
    /// Whether there is something to tell that nobody has fetched.
    news: AtomicU32,
    good: AtomicU64,
    slow_from: AtomicU64,
    patience: AtomicU64,
    low_to: AtomicU32,
    low: Latencies,
    high: Latencies,
    slow: AtomicU32,
    failures: AtomicU32,
    left: AtomicU32,
    refused: AtomicU32,
    peak: AtomicU32,
    proven: AtomicU32,
}

impl Meter {
    /// Makes an idle meter that admits everything and takes nothing for slow.
    pub(crate) fn new(linger: Duration) -> Self {
        Self {
            in_flight: AtomicU32::new(0),
            limit: AtomicU32::new(NO_LIMIT),
            share: AtomicU32::new(WHOLE),
            offered: AtomicU64::new(0),
            linger: Linger::new(linger),
            since: AtomicI64::new(i64::MIN),
            due: AtomicI64::new(i64::MIN),
            back_at: AtomicI64::new(NEVER),
            news: AtomicU32::new(0),
            good: AtomicU64::new(u64::MAX),
            slow_from: AtomicU64::new(u64::MAX),
            patience: AtomicU64::new(u64::MAX),
            low_to: AtomicU32::new(NO_LIMIT),
            low: Latencies(AtomicU64::new(0)),
            high: Latencies(AtomicU64::new(0)),
            slow: AtomicU32::new(0),
            failures: AtomicU32::new(0),
            left: AtomicU32::new(0),
            refused: AtomicU32::new(0),
            peak: AtomicU32::new(0),
            proven: AtomicU32::new(0),
        }
    }

    /// Takes a place if there is one. Whoever gets in calls [`Meter::leave`] when the work has ended.
    pub(crate) fn enter(&self, now: Mono) -> Result<Entry, Reason> {
        let share = self.share.load(Ordering::Relaxed);
        if share < WHOLE && !self.is_picked(share) {
            return Err(Reason::Ramping);
        }
        let limit = self.limit.load(Ordering::Relaxed);
        let room = if limit == NO_LIMIT {
            limit
        } else {
            limit.saturating_sub(self.linger.count(now))
        };
        let mut seen = self.in_flight.load(Ordering::Relaxed);
        loop {
            if seen >= room {
                self.refused.fetch_add(1, Ordering::Relaxed);
                return Err(if share < WHOLE {
                    Reason::Ramping
                } else {
                    Reason::AtCapacity
                });
            }
            match self
                .in_flight
                .compare_exchange_weak(seen, seen + 1, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return Ok(self.entered(now, seen + 1)),
                Err(other) => seen = other,
            }
        }
    }

    /// Takes a place whatever the limit: a probe's is reserved, and a breaker that only observes refuses nothing.
    pub(crate) fn enter_reserved(&self, now: Mono) -> Entry {
        let before = self.in_flight.fetch_add(1, Ordering::Acquire);
        self.entered(now, before.saturating_add(1))
    }

    /// Notes a call that was turned away although there was room: it is kept for calls that matter more.
    pub(crate) fn turned_away(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    fn entered(&self, now: Mono, in_flight: u32) -> Entry {
        raise(&self.peak, in_flight);
        Entry {
            began: now,
            in_flight,
        }
    }

    /// Gives a place back.
    pub(crate) fn leave(&self) {
        let before = self.in_flight.fetch_sub(1, Ordering::Release);
        debug_assert!(before > 0, "a place was given back that nobody had");
    }

    /// Notes what came of an attempt. Late ones, which began under another limit, only linger.
    pub(crate) fn note(&self, entry: Entry, told: Told, now: Mono) {
        if matches!(told, Told::TimedOut { .. }) {
            self.linger.add(now);
        }
        if !self.is_current(entry) {
            return;
        }
        match told {
            Told::Answer => {
                let waited = micros(now.since(entry.began));
                let little = entry.in_flight <= self.low_to.load(Ordering::Relaxed);
                if little { &self.low } else { &self.high }.add(waited);
                if waited <= self.good.load(Ordering::Relaxed) {
                    raise(&self.proven, entry.in_flight);
                }
                if waited > self.slow_from.load(Ordering::Relaxed) {
                    self.slow.fetch_add(1, Ordering::Relaxed);
                }
            }
            Told::Failure | Told::TimedOut { blame: true } => {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
            Told::Nothing => {
                self.left.fetch_add(1, Ordering::Relaxed);
            }
            Told::TimedOut { blame: false } => {}
        }
    }

    /// Tells whether an attempt began under the limit of now.
    pub(crate) fn is_current(&self, entry: Entry) -> bool {
        entry.began.as_nanos() >= self.since.load(Ordering::Acquire)
    }

    /// Tells whether a caller who leaves at `now` has waited in vain.
    pub(crate) fn was_in_vain(&self, entry: Entry, now: Mono) -> bool {
        micros(now.since(entry.began)) >= self.patience.load(Ordering::Relaxed)
    }

    /// Gives the duty to look to one caller, when it is due. That one calls [`Meter::look_again`].
    pub(crate) fn claim(&self, now: Mono) -> bool {
        let due = self.due.load(Ordering::Acquire);
        due <= now.as_nanos()
            && self
                .due
                .compare_exchange(due, NEVER, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }

    /// Sets when somebody is to look next.
    pub(crate) fn look_again(&self, at: Mono) {
        self.due.store(at.as_nanos().min(NEVER - 1), Ordering::Release);
    }

    /// Returns the notes and leaves them as they are.
    pub(crate) fn notes(&self) -> Notes {
        Notes {
            low: Latencies::of(self.low.0.load(Ordering::Relaxed)),
            high: Latencies::of(self.high.0.load(Ordering::Relaxed)),
            slow: self.slow.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            left: self.left.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            peak: self.peak.load(Ordering::Relaxed),
            proven: self.proven.load(Ordering::Relaxed),
        }
    }

    /// Starts a new page.
    pub(crate) fn wipe(&self) {
        for sum in [&self.low, &self.high] {
            sum.0.store(0, Ordering::Relaxed);
        }
        for count in [
            &self.slow,
            &self.failures,
            &self.left,
            &self.refused,
            &self.proven,
        ] {
            count.store(0, Ordering::Relaxed);
        }
        self.peak.store(self.in_flight(), Ordering::Relaxed);
    }

    /// Sets the limit and the share of the calls that are let in at all. Calls that began before `now` tell nothing about it.
    pub(crate) fn set(&self, limit: u32, share: u32, now: Mono) {
        self.limit.store(limit, Ordering::Relaxed);
        self.share.store(share, Ordering::Relaxed);
        self.offered.store(0, Ordering::Relaxed);
        self.since.store(now.as_nanos(), Ordering::Release);
        self.wipe();
    }

    /// Sets when who is kept out by the ramp may try again.
    pub(crate) fn set_back_at(&self, at: Option<Mono>) {
        self.back_at
            .store(at.map_or(NEVER, Mono::as_nanos), Ordering::Relaxed);
    }

    /// Returns when a call that was refused for this may try again, if that is known.
    pub(crate) fn back_at(&self, reason: Reason) -> Option<Mono> {
        let at = self.back_at.load(Ordering::Relaxed);
        (reason == Reason::Ramping && at != NEVER).then(|| Mono::from_nanos(at))
    }

    /// Says that there is something to tell, or no more.
    pub(crate) fn set_news(&self, is_there: bool) {
        self.news.store(u32::from(is_there), Ordering::Release);
    }

    /// Tells whether there is something to tell: one load.
    pub(crate) fn has_news(&self) -> bool {
        self.news.load(Ordering::Acquire) != 0
    }

    /// Draws the lines.
    pub(crate) fn draw(&self, lines: Lines) {
        self.good.store(lines.good, Ordering::Relaxed);
        self.slow_from.store(lines.slow, Ordering::Relaxed);
        self.patience.store(lines.patience, Ordering::Relaxed);
        self.low_to.store(lines.low, Ordering::Relaxed);
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// See [`Linger::set_span`].
    pub(crate) fn set_linger(&self, span: Duration, now: Mono) {
        self.linger.set_span(span, now);
    }

    pub(crate) fn lingering(&self, now: Mono) -> u32 {
        self.linger.count(now)
    }

    /// Returns the limit of the moment; `None` if there is none.
    pub(crate) fn limit(&self) -> Option<u32> {
        let limit = self.limit.load(Ordering::Relaxed);
        (limit != NO_LIMIT).then_some(limit)
    }

    /// Spreads the share evenly over the calls that are offered; the first one is let in.
    fn is_picked(&self, share: u32) -> bool {
        let before = self.offered.fetch_add(1, Ordering::Relaxed);
        let let_in = |offered: u64| (u128::from(offered) * u128::from(share)).div_ceil(u128::from(WHOLE));
        let_in(before.saturating_add(1)) > let_in(before)
    }
}

/// Raises a maximum, writing only when it is one.
fn raise(maximum: &AtomicU32, value: u32) {
    if value > maximum.load(Ordering::Relaxed) {
        maximum.fetch_max(value, Ordering::Relaxed);
    }
}

pub(crate) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(loom)))]
mod tests;
