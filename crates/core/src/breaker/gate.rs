//! Decides whether a call may pass the breaker, and counts results while it is closed.
//! It exists as one lock-free type because every call of every driver goes through it: the closed path is one
//! load to enter and one load to leave.
//! It refuses to decide how an open breaker recovers; that is [`super::Recovery`]'s, behind the driver's lock.

use alloc::sync::Arc;

use crate::{
    breaker::{BreakerRules, share::Share},
    lane::Lane,
    sync::{AtomicI64, AtomicU64, Ordering, fence},
    time::Mono,
};

/// The state of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Traffic flows.
    Closed,
    /// Calls are refused.
    Open,
    /// Only probes pass.
    HalfOpen,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Closed, Self::Open, Self::HalfOpen];

    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        }
    }
}

/// Numbers the states that a breaker has been in. A result counts only in the generation that admitted it, so
/// a late one changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation(u64);

/// The breaker's answer to a call that wants to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Closed: go on, and report the result under this generation.
    Admitted(Generation),
    /// Open, or half-open with every probe in flight.
    Refused {
        /// When the next probe may start; `None` if only a person can say.
        next_probe: Option<Mono>,
    },
    /// The time for a probe has come: ask [`super::Recovery::probe`].
    MayProbe,
}

/// A failure that opened the breaker. Exactly one caller gets it, and must hand it to
/// [`super::Recovery::tripped`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Trip {
    pub(super) generation: Generation,
    /// `None` where the ramp found the dependency failing, not a count.
    pub(super) rule: Option<TripRule>,
}

/// Which rule of a breaker a failure broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TripRule {
    /// As many failures in a row as are allowed; also where the share was reached with the same failure.
    Consecutive,
    /// The share of failures among enough calls.
    FailureRatio,
    /// The share of slow calls among enough calls.
    SlowRatio,
}

impl TripRule {
    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Consecutive => "consecutive",
            Self::FailureRatio => "failure-ratio",
            Self::SlowRatio => "slow-ratio",
        }
    }
}

/// State, generation and failures in a row, packed into one word so that they change in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word(u64);

const STATE_BITS: u32 = 2;
const RUN_BITS: u32 = 24;
const RUN_ONE: u64 = 1 << STATE_BITS;
const RUN_MASK: u64 = ((1 << RUN_BITS) - 1) << STATE_BITS;
/// The longest run that fits; beyond what the rules allow, but an unchecked number must not spill over.
const RUN_LIMIT: u64 = RUN_MASK >> STATE_BITS;
const GENERATION_SHIFT: u32 = STATE_BITS + RUN_BITS;

impl Word {
    const fn new(state: State, generation: u64) -> Self {
        let state = match state {
            State::Closed => 0,
            State::Open => 1,
            State::HalfOpen => 2,
        };
        Self((generation << GENERATION_SHIFT) | state)
    }

    const fn state(self) -> State {
        match self.0 & ((1 << STATE_BITS) - 1) {
            0 => State::Closed,
            1 => State::Open,
            _ => State::HalfOpen,
        }
    }

    const fn generation(self) -> Generation {
        Generation(self.0 >> GENERATION_SHIFT)
    }

    /// Failures in a row.
    const fn run(self) -> u64 {
        (self.0 & RUN_MASK) >> STATE_BITS
    }

    const fn is_closed_in(self, generation: Generation) -> bool {
        matches!(self.state(), State::Closed) && self.generation().0 == generation.0
    }

    /// The same state and generation with no failures in a row.
    const fn rested(self) -> Self {
        Self(self.0 & !RUN_MASK)
    }

    /// The next generation, in `state`.
    const fn next(self, state: State) -> Self {
        Self::new(state, self.generation().0 + 1)
    }
}

/// "Never by itself", as an instant.
const NEVER: i64 = i64::MAX;

/// The part of a breaker that calls touch: the same type in production and in virtual time.
#[derive(Clone, Debug)]
pub struct Gate {
    consecutive: Option<u64>,
    failures: Option<Share>,
    slow: Option<Share>,
    position: Arc<Position>,
}

/// Where a gate stands. Gates by older and newer rules share it.
///
/// Kept on cache lines of its own: while closed it is only read.
#[repr(align(128))]
#[derive(Debug)]
struct Position {
    word: AtomicU64,
    next_probe: AtomicI64,
}

impl Gate {
    /// Makes a closed gate. The rules must have passed [`BreakerRules::check`].
    #[must_use]
    pub fn new(rules: &BreakerRules) -> Self {
        Self {
            consecutive: rules.consecutive.map(|limit| u64::from(limit).min(RUN_LIMIT)),
            failures: rules
                .ratio
                .map(|ratio| Share::new(ratio.failures_ppm, ratio.window, ratio.min_calls)),
            slow: rules
                .slow
                .map(|slow| Share::new(slow.slow_ppm, slow.window, slow.min_calls)),
            position: Arc::new(Position {
                word: AtomicU64::new(Word::new(State::Closed, 0).0),
                next_probe: AtomicI64::new(NEVER),
            }),
        }
    }

    /// Makes a gate by other rules that stands where this one stands, from now on: state, generation and failures in a row
    /// are one for both. Shares are counted on where they are shares of as many calls as before.
    #[must_use]
    pub fn succeeded_by(&self, rules: &BreakerRules) -> Self {
        let share = |known: &Option<Share>, limit, over, min| match known {
            Some(known) => known.succeeded_by(limit, over, min),
            None => Share::new(limit, over, min),
        };
        Self {
            consecutive: rules.consecutive.map(|limit| u64::from(limit).min(RUN_LIMIT)),
            failures: rules
                .ratio
                .map(|ratio| share(&self.failures, ratio.failures_ppm, ratio.window, ratio.min_calls)),
            slow: rules
                .slow
                .map(|slow| share(&self.slow, slow.slow_ppm, slow.window, slow.min_calls)),
            position: Arc::clone(&self.position),
        }
    }

    /// Has every share counted for the generation of now. Under the driver's lock, before anybody is let in by these rules.
    pub fn follow(&self) {
        let generation = self.generation().0;
        for share in self.failures.iter().chain(&self.slow) {
            share.follow(generation);
        }
    }

    /// Answers a call that wants to pass at `now`. One load while closed; `now` is then not looked at.
    #[must_use]
    pub fn admit(&self, now: Mono) -> Admission {
        let word = self.word();
        match word.state() {
            State::Closed => Admission::Admitted(word.generation()),
            State::Open | State::HalfOpen => {
                let next_probe = self.position.next_probe.load(Ordering::Acquire);
                if next_probe == NEVER {
                    Admission::Refused { next_probe: None }
                } else if now.as_nanos() < next_probe {
                    Admission::Refused {
                        next_probe: Some(Mono::from_nanos(next_probe)),
                    }
                } else {
                    Admission::MayProbe
                }
            }
        }
    }

    /// Returns the generation to report under if the breaker is closed, whatever a hold says about admission.
    #[must_use]
    pub fn observe(&self) -> Option<Generation> {
        let word = self.word();
        matches!(word.state(), State::Closed).then(|| word.generation())
    }

    /// Counts a success of `generation`. One load where failures are not counted by time and none came before.
    pub fn succeeded(&self, lane: Lane, now: Mono, generation: Generation) {
        let mut word = self.word();
        loop {
            if !word.is_closed_in(generation) {
                return;
            }
            if word.run() == 0 {
                break;
            }
            match self.swap(word, word.rested()) {
                Ok(()) => break,
                Err(seen) => word = seen,
            }
        }
        if let Some(failures) = &self.failures {
            failures.add(lane, now, generation.0, false);
        }
    }

    /// Counts a call of `generation` that was not slow, whatever else it was.
    pub fn was_quick(&self, lane: Lane, now: Mono, generation: Generation) {
        if let Some(slow) = &self.slow
            && self.word().is_closed_in(generation)
        {
            slow.add(lane, now, generation.0, false);
        }
    }

    /// Counts a call of `generation` that is slow, at most once, and opens the breaker if that is the one too many.
    pub fn is_slow(&self, lane: Lane, now: Mono, generation: Generation) -> Option<Trip> {
        let slow = self.slow.as_ref()?;
        if !self.word().is_closed_in(generation) {
            return None;
        }
        slow.add(lane, now, generation.0, true);
        // Of two at once, each counted in its own lane, one at least must see the other.
        fence(Ordering::SeqCst);
        if !slow.is_reached(now, generation.0) {
            return None;
        }
        self.open(Some(generation), Some(TripRule::SlowRatio))
    }

    /// Counts a failure of `generation` and opens the breaker if that is the one too many.
    ///
    /// Of many failures at once exactly one gets the [`Trip`].
    pub fn failed(&self, lane: Lane, now: Mono, generation: Generation) -> Option<Trip> {
        let mut word = self.word();
        if !word.is_closed_in(generation) {
            return None;
        }
        if let Some(failures) = &self.failures {
            failures.add(lane, now, generation.0, true);
            // Of two failures at once, each counted in its own lane, one at least must see the other.
            fence(Ordering::SeqCst);
        }
        let too_large_a_share = self
            .failures
            .as_ref()
            .is_some_and(|failures| failures.is_reached(now, generation.0));
        loop {
            let broken = if self.consecutive.is_some_and(|limit| word.run() + 1 >= limit) {
                Some(TripRule::Consecutive)
            } else {
                too_large_a_share.then_some(TripRule::FailureRatio)
            };
            let next = match broken {
                Some(_) => word.next(State::Open),
                None if self.consecutive.is_some() => Word(word.0 + RUN_ONE),
                None => return None,
            };
            match self.swap(word, next) {
                Ok(()) => {
                    let generation = next.generation();
                    return broken.map(|_| Trip {
                        generation,
                        rule: broken,
                    });
                }
                Err(seen) if seen.is_closed_in(generation) => word = seen,
                Err(_) => return None,
            }
        }
    }

    /// Opens a closed gate, whatever was counted. `None` if it is not closed, or a failure was quicker.
    pub(super) fn trip(&self) -> Option<Trip> {
        self.open(None, None)
    }

    /// Opens a gate that is closed, in this generation if one is named.
    fn open(&self, generation: Option<Generation>, rule: Option<TripRule>) -> Option<Trip> {
        let mut word = self.word();
        while word.state() == State::Closed && generation.is_none_or(|of| word.is_closed_in(of)) {
            let next = word.next(State::Open);
            match self.swap(word, next) {
                Ok(()) => {
                    return Some(Trip {
                        generation: next.generation(),
                        rule,
                    });
                }
                Err(seen) => word = seen,
            }
        }
        None
    }

    /// Tells whether results are counted by time, so that a success has to know when it is.
    #[must_use]
    pub const fn counts_by_time(&self) -> bool {
        let failures = match &self.failures {
            Some(failures) => failures.is_over_time(),
            None => false,
        };
        failures || self.slow.is_some()
    }

    /// Returns the present state.
    #[must_use]
    pub fn state(&self) -> State {
        self.word().state()
    }

    /// Returns when the next probe may start: `None` while closed, and when only a person can say.
    #[must_use]
    pub fn next_probe(&self) -> Option<Mono> {
        let at = self.position.next_probe.load(Ordering::Acquire);
        (at != NEVER && self.state() != State::Closed).then(|| Mono::from_nanos(at))
    }

    pub(super) fn generation(&self) -> Generation {
        self.word().generation()
    }

    /// Goes over to the next generation in `state`. Only the holder of the driver's lock calls this, and never
    /// from closed, so there is nobody to race with but late results, which compare generations.
    pub(super) fn turn(&self, state: State, next_probe: Option<Mono>) {
        let next = self.word().next(state);
        if state == State::Closed {
            for share in self.failures.iter().chain(&self.slow) {
                share.begin(next.generation().0);
            }
        }
        self.set_next_probe(next_probe);
        self.position.word.store(next.0, Ordering::Release);
    }

    pub(super) fn set_next_probe(&self, next_probe: Option<Mono>) {
        self.position
            .next_probe
            .store(next_probe.map_or(NEVER, Mono::as_nanos), Ordering::Release);
    }

    fn word(&self) -> Word {
        Word(self.position.word.load(Ordering::Acquire))
    }

    fn swap(&self, from: Word, to: Word) -> Result<(), Word> {
        self.position
            .word
            .compare_exchange_weak(from.0, to.0, Ordering::AcqRel, Ordering::Acquire)
            .map(|_| ())
            .map_err(Word)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_trip_names_the_rule_that_was_broken() {
        let ratio = Some(crate::Ratio {
            failures_ppm: 500_000,
            window: crate::Over::Time(core::time::Duration::from_secs(10)),
            min_calls: 4,
        });
        for (consecutive, rule) in [
            (None, TripRule::FailureRatio),
            (Some(5), TripRule::FailureRatio),
            (Some(4), TripRule::Consecutive),
        ] {
            let gate = Gate::new(&BreakerRules {
                consecutive,
                ratio,
                ..BreakerRules::NONE
            });
            let fail = || gate.failed(Lane::new(0), Mono::ORIGIN, Generation(0));
            for _ in 0..3 {
                assert_eq!(fail(), None);
            }
            assert_eq!(fail().map(|trip| trip.rule), Some(Some(rule)), "{consecutive:?}");
        }
    }

    #[test]
    fn a_run_at_its_limit_trips_instead_of_spilling_into_the_generation() {
        let gate = Gate::new(&BreakerRules {
            consecutive: Some(u32::MAX),
            ..BreakerRules::NONE
        });
        let generation = gate.generation();
        gate.position
            .word
            .store((RUN_LIMIT - 2) << STATE_BITS, Ordering::Relaxed);
        assert_eq!(gate.failed(Lane::new(0), Mono::ORIGIN, generation), None);
        assert_eq!(gate.generation(), generation);
        let trip = gate.failed(Lane::new(0), Mono::ORIGIN, generation);
        assert_eq!(
            trip,
            Some(Trip {
                generation: Generation(1),
                rule: Some(TripRule::Consecutive)
            })
        );
    }
}
