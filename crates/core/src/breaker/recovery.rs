//! Decides how a tripped breaker comes back: how long it stays open, who may probe, and what a probe proves.
//! It exists apart from [`Gate`] because it changes rarely and several things at once; the driver keeps it
//! behind its lock and every method changes the gate with it.
//! It refuses to wait: an expired lease is noticed by whoever asks next.

use core::time::Duration;

use alloc::vec::Vec;

use crate::{
    breaker::{
        BreakerRules, OpenFor,
        gate::{Gate, State, Trip, TripRule},
    },
    class::{Class, Verdict},
    dependency::CarriedOpening,
    rng::Rng,
    time::Mono,
};

/// A change of state, returned to the driver for its log and counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The state left.
    pub from: State,
    /// The state entered.
    pub to: State,
    /// When.
    pub at: Mono,
    /// Why.
    pub cause: Cause,
    /// Which rule was broken, for [`Cause::Tripped`].
    pub rule: Option<TripRule>,
    /// What the attempt brought whose result led to it, for [`Cause::Tripped`], [`Cause::ProbeFailed`] and
    /// [`Cause::Proven`]. Filled in by [`crate::Dependency`], which knows the result.
    pub class: Option<Class>,
}

/// What one step changed, in the order in which it happened: a person who probes after a lease has ended reopens the
/// breaker and opens it half.
pub type Changes = [Option<Transition>; 2];

/// Why a breaker changed its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Failures in a row, or too large a share of them.
    Tripped,
    /// A probe was let through.
    Probing,
    /// Enough probes in a row succeeded.
    Proven,
    /// A probe failed.
    ProbeFailed,
    /// A probe took so long that its answer would prove nothing.
    ProbeSlow,
    /// A probe gave no verdict within its lease.
    LeaseExpired,
    /// The ramp after closing found that the dependency is not back.
    RampFailed,
    /// An operator's reset.
    Reset,
}

impl Cause {
    /// Every word.
    pub const ALL: [Self; 8] = [
        Self::Tripped,
        Self::Probing,
        Self::Proven,
        Self::ProbeFailed,
        Self::ProbeSlow,
        Self::LeaseExpired,
        Self::RampFailed,
        Self::Reset,
    ];

    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tripped => "tripped",
            Self::Probing => "probing",
            Self::Proven => "proven",
            Self::ProbeFailed => "probe-failed",
            Self::ProbeSlow => "probe-slow",
            Self::LeaseExpired => "lease-expired",
            Self::RampFailed => "ramp-failed",
            Self::Reset => "reset",
        }
    }
}

/// The right to make one trial call while the breaker is half-open. Give it back with [`Recovery::settle`];
/// if that never happens, its lease ends it.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Probe {
    /// Never given twice, and its lease ends with the state that granted it: a late one finds no lease.
    number: u64,
}

/// Who asks for a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// An ordinary call, or a timer: may probe only when the open period is over.
    Traffic,
    /// A person: may probe at once, and is the only one who may when the breaker opens for [`OpenFor::Manual`].
    Person,
}

#[derive(Debug)]
struct Lease {
    number: u64,
    until: Mono,
    /// What the beginning of its answer says, while the rest is still on its way.
    head: Option<Verdict>,
}

/// The slow part of a breaker, in use only while it is not closed.
#[derive(Debug)]
pub struct Recovery {
    rules: BreakerRules,
    rng: Rng,
    /// Openings in a row without a proven recovery between them.
    openings: u32,
    /// Whether closing is only the start of a ramp, and the recovery proven by its end.
    ramped: bool,
    /// Successful probes in a row.
    proofs: u32,
    /// Probes in flight; at most `rules.probes`.
    leases: Vec<Lease>,
    issued: u64,
    changed_at: Mono,
}

impl Recovery {
    /// Makes the recovery part of a closed breaker, whose rules must have passed [`BreakerRules::check`]. `seed` draws the jitter of its open periods.
    #[must_use]
    pub fn new(rules: BreakerRules, seed: u64) -> Self {
        Self {
            rules,
            rng: Rng::new(seed),
            openings: 0,
            ramped: false,
            proofs: 0,
            leases: Vec::new(),
            issued: 0,
            changed_at: Mono::ORIGIN,
        }
    }

    /// Takes a recovery for proven only when [`Recovery::proven`] says so, not when the breaker closes: a
    /// dependency that falls over again in its ramp is left alone for longer each time.
    #[must_use]
    pub const fn ramped(mut self) -> Self {
        self.ramped = true;
        self
    }

    /// Forgets the openings: all traffic is back.
    pub const fn proven(&mut self) {
        self.openings = 0;
    }

    /// Returns how often it has opened in a row without a proven recovery in between.
    #[must_use]
    pub const fn openings(&self) -> u32 {
        self.openings
    }

    /// Takes over from a predecessor: how often it had opened, and whether it is open still.
    pub(crate) fn carry(&mut self, gate: &Gate, openings: u32, open: Option<CarriedOpening>, now: Mono) {
        self.openings = openings;
        let Some(CarriedOpening { next_probe, since }) = open else {
            return;
        };
        if gate.trip().is_some() {
            self.changed_at = since;
            gate.set_next_probe(match self.rules.open_for {
                OpenFor::Manual => None,
                // Whoever waited for a person is probed by itself from now on.
                OpenFor::Timed { .. } => next_probe.or(Some(now)),
            });
        }
    }

    /// Goes on by other rules. Who is open stays open until the probe that was due, or as long as the new rules allow at most;
    /// leases that are out stay as they are.
    pub(crate) fn succeed(&mut self, gate: &Gate, rules: BreakerRules, ramped: bool, now: Mono) {
        let before = self.rules.open_for;
        (self.rules, self.ramped) = (rules, ramped);
        if gate.state() != State::Open || before == rules.open_for {
            return;
        }
        gate.set_next_probe(match rules.open_for {
            OpenFor::Manual => None,
            // Whoever waited for a person is probed by itself from now on.
            OpenFor::Timed { longest, .. } => Some(gate.next_probe().unwrap_or(now).min(now.after(longest))),
        });
    }

    /// Opens a closed breaker whose ramp failed. Returns nothing if it is not closed.
    pub fn ramp_failed(&mut self, gate: &Gate, now: Mono) -> Option<Transition> {
        let trip = gate.trip()?;
        self.tripped(gate, trip, now).map(|transition| {
            let cause = Cause::RampFailed;
            Transition { cause, ..transition }
        })
    }

    /// Returns when the breaker last changed its state.
    #[must_use]
    pub const fn changed_at(&self) -> Mono {
        self.changed_at
    }

    /// Starts the first open period. The gate is open since the trip was handed out; this sets its end.
    ///
    /// Changes nothing when a person has probed or reset the breaker before the lock was reached.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a token is spent by handing it over"
    )]
    pub fn tripped(&mut self, gate: &Gate, trip: Trip, now: Mono) -> Option<Transition> {
        let Trip { generation, rule } = trip;
        if gate.generation() != generation {
            return None;
        }
        self.openings = self.openings.saturating_add(1);
        gate.set_next_probe(self.open_until(now));
        let tripped = self.changed(State::Closed, State::Open, now, Cause::Tripped);
        Some(Transition { rule, ..tripped })
    }

    /// Grants a probe if one may start at `now`, opening the gate half.
    ///
    /// The second value is what this changed.
    ///
    /// # Errors
    /// When the next probe may start; inside, `None` if only a person can say. A breaker that has closed in the
    /// meantime needs no probe and gives `None` too: ask [`Gate::admit`] again.
    pub fn probe(&mut self, gate: &Gate, now: Mono, asker: Asker) -> (Result<Probe, Option<Mono>>, Changes) {
        let expired = self.expire(gate, now);
        let may_start = match gate.state() {
            State::Closed => false,
            State::Open | State::HalfOpen => match asker {
                Asker::Person => true,
                Asker::Traffic => gate.next_probe().is_some_and(|at| at <= now),
            },
        };
        if !may_start || self.leases.len() >= self.rules.probes as usize {
            return (Err(gate.next_probe()), [expired, None]);
        }
        let opened_half = (gate.state() == State::Open).then(|| {
            gate.turn(State::HalfOpen, None);
            self.changed(State::Open, State::HalfOpen, now, Cause::Probing)
        });
        self.issued += 1;
        self.leases.push(Lease {
            number: self.issued,
            until: now.after(self.rules.lease.unwrap_or(BreakerRules::LEASE)),
            head: None,
        });
        self.set_half_open_wait(gate, now);
        (Ok(Probe { number: self.issued }), [expired, opened_half])
    }

    /// Notes what the beginning of a probe's answer says, while the rest is still on its way: if it still is when
    /// the lease ends, that is the probe's verdict. A failure is none that waits: hand it to [`Recovery::settle`].
    pub fn answered(&mut self, probe: &Probe, head: Verdict) {
        for lease in &mut self.leases {
            if lease.number == probe.number {
                lease.head = Some(head);
            }
        }
    }

    /// Takes a probe back with its verdict. A neutral one proves nothing and only frees the place.
    ///
    /// A probe of an earlier generation changes nothing. After its lease a probe proves nothing either: a
    /// success is too late to close, while a failure is still told as [`Cause::ProbeFailed`].
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a token is spent by handing it over"
    )]
    pub fn settle(&mut self, gate: &Gate, probe: Probe, verdict: Verdict, now: Mono) -> Option<Transition> {
        let held = |lease: &Lease| lease.number == probe.number;
        // A probe that ran into its timeout has outlived its lease by the same instant: it failed.
        if verdict == Verdict::Failure && self.leases.iter().any(held) {
            return Some(self.reopen(gate, now, Cause::ProbeFailed));
        }
        if let Some(expired) = self.expire(gate, now) {
            return Some(expired);
        }
        let place = self.leases.iter().position(held)?;
        self.leases.swap_remove(place);
        if verdict == Verdict::Success {
            self.proofs += 1;
            if self.proofs >= self.rules.close_after {
                return Some(self.close(gate, now, Cause::Proven));
            }
        }
        self.set_half_open_wait(gate, now);
        None
    }

    /// Takes a probe back that is slow, which is a failure as long as it has a lease.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a token is spent by handing it over"
    )]
    pub fn slow(&mut self, gate: &Gate, probe: Probe, now: Mono) -> Option<Transition> {
        if self.leases.iter().any(|lease| lease.number == probe.number) {
            return Some(self.reopen(gate, now, Cause::ProbeSlow));
        }
        self.expire(gate, now)
    }

    /// Closes the breaker by an operator's word. Returns nothing when it was closed already.
    pub fn reset(&mut self, gate: &Gate, now: Mono) -> Option<Transition> {
        (gate.state() != State::Closed).then(|| self.close(gate, now, Cause::Reset))
    }

    /// Ends the leases that are over. A probe that has brought nothing by then failed, and the breaker reopens; one
    /// whose answer has begun, see [`Recovery::answered`], is judged by that.
    ///
    /// Every other method does this first; a driver with a timer may call it when [`Gate::next_probe`] is due.
    pub fn expire(&mut self, gate: &Gate, now: Mono) -> Option<Transition> {
        let is_over = |lease: &Lease| lease.until <= now;
        if gate.state() != State::HalfOpen || !self.leases.iter().any(is_over) {
            return None;
        }
        if self
            .leases
            .iter()
            .any(|lease| is_over(lease) && matches!(lease.head, None | Some(Verdict::Failure)))
        {
            return Some(self.reopen(gate, now, Cause::LeaseExpired));
        }
        for lease in self.leases.extract_if(.., |lease| is_over(lease)) {
            if lease.head == Some(Verdict::Success) {
                self.proofs += 1;
            }
        }
        if self.proofs >= self.rules.close_after {
            return Some(self.close(gate, now, Cause::Proven));
        }
        self.set_half_open_wait(gate, now);
        None
    }

    fn reopen(&mut self, gate: &Gate, now: Mono, cause: Cause) -> Transition {
        self.leases.clear();
        self.proofs = 0;
        self.openings = self.openings.saturating_add(1);
        gate.turn(State::Open, self.open_until(now));
        self.changed(State::HalfOpen, State::Open, now, cause)
    }

    fn close(&mut self, gate: &Gate, now: Mono, cause: Cause) -> Transition {
        let from = gate.state();
        self.leases.clear();
        self.proofs = 0;
        if !self.ramped || cause == Cause::Reset {
            self.openings = 0;
        }
        gate.turn(State::Closed, None);
        self.changed(from, State::Closed, now, cause)
    }

    /// While half-open, traffic may ask again at once if a place is free, else when the first lease ends.
    /// Under [`OpenFor::Manual`] traffic never probes, but a lease still ends.
    fn set_half_open_wait(&self, gate: &Gate, now: Mono) {
        let first_lease_end = self.leases.iter().map(|lease| lease.until).min();
        let place_is_free = self.leases.len() < self.rules.probes as usize;
        gate.set_next_probe(match self.rules.open_for {
            OpenFor::Timed { .. } if place_is_free => Some(now),
            OpenFor::Timed { .. } | OpenFor::Manual => first_lease_end,
        });
    }

    fn open_until(&mut self, now: Mono) -> Option<Mono> {
        match self.rules.open_for {
            OpenFor::Manual => None,
            OpenFor::Timed {
                first,
                longest,
                jitter_ppm,
            } => {
                let doublings = self.openings.saturating_sub(1).min(30);
                let span: Duration = first.saturating_mul(1 << doublings).min(longest);
                Some(now.after(self.rng.jitter(span, jitter_ppm)))
            }
        }
    }

    fn changed(&mut self, from: State, to: State, at: Mono, cause: Cause) -> Transition {
        self.changed_at = at;
        Transition {
            from,
            to,
            at,
            cause,
            rule: None,
            class: None,
        }
    }
}
