//! Decides the life of one Read call: what to do next, from its arrival to its one ending.
//! It exists so that every driver, in real and in virtual time, walks through the same steps in the same order.
//! It refuses to do anything itself: it looks nothing up, asks nobody and waits for nothing.
//!
//! A driver performs the [`Step`] it is given and reports what came of it; the report returns the next step:
//!
//! | step | the driver | reports |
//! |---|---|---|
//! | [`Step::Look`] | looks the snapshot up | [`ReadCall::found`] |
//! | [`Step::Admit`] | asks breaker, bulkhead and resources, all or nothing | [`ReadCall::admitted`], [`ReadCall::refused`] |
//! | [`Step::Attempt`] | asks the dependency, up to the limit | [`ReadCall::slow`] once, [`ReadCall::attempted`] |
//! | [`Step::Refresh`] | starts a refresh that nobody waits for, unless one is under way | [`ReadCall::refreshed`] |
//! | [`Step::Alternate`] | asks the alternate, up to [`ReadCall::alternate`] | [`ReadCall::alternate_answered`], [`ReadCall::alternate_skipped`] |
//! | [`Step::Serve`], [`Step::Refuse`], [`Step::Fail`] | ends the call | nothing |

use core::time::Duration;

use crate::{
    age::Facts,
    class::{Class, Row, Table, Verdict},
    contract::{ReadContract, WhenBusy},
    deadline::{Deadline, Limit},
    ending::Rung,
    hold::HoldMode,
    ladder::{RungRule, Skips},
    reason::{Reason, Skipped},
    refresh::{Refresh, Use},
    time::Mono,
};

/// What the driver does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Look the snapshot up.
    Look,
    /// Ask for admission.
    Admit,
    /// Ask the dependency, until the limit at most.
    Attempt(Limit),
    /// Have the copy that was found refreshed, one attempt per key at a time, admitted like any other. It belongs to no
    /// caller: this call gets the copy at once.
    Refresh,
    /// Ask the alternate, which is admitted by its own permits and breaker. Whatever the first attempt held is given back
    /// before.
    Alternate,
    /// Answer from this rung. The age is known for every rung but the default, which has none.
    Serve(Rung, Option<Duration>),
    /// Tell the caller that nobody can answer.
    Refuse,
    /// Hand on what the dependency itself said.
    Fail,
}

/// One Read call on its way.
#[derive(Debug)]
pub struct ReadCall<'c> {
    contract: &'c ReadContract,
    table: &'c Table,
    timeout: Option<Duration>,
    hold: Option<HoldMode>,
    deadline: Deadline,
    soft: Option<Mono>,
    reason: Option<Reason>,
    skips: Skips,
    /// The rung and age of a copy that is to be refreshed, until it is known what came of that.
    to_refresh: Option<(Rung, Duration)>,
    /// What a refresh ahead of its time is drawn by.
    chance: Option<u64>,
    /// The next rung of the ladder to try; `None` while the call is still above the ladder.
    rung: Option<usize>,
    /// An error of the dependency that is handed on when the ladder is exhausted.
    pass_on: bool,
}

impl<'c> ReadCall<'c> {
    /// Starts a call that arrived at `now`, and returns its first step.
    #[must_use]
    pub fn begin(
        contract: &'c ReadContract,
        table: &'c Table,
        timeout: Option<Duration>,
        hold: Option<HoldMode>,
        now: Mono,
    ) -> (Self, Step) {
        let deadline = Deadline::fix(now, contract.deadline());
        let mut call = Self {
            contract,
            table,
            timeout,
            hold,
            deadline,
            soft: contract.soft_timeout().map(|soft| now.after(soft)),
            reason: None,
            skips: Skips::default(),
            to_refresh: None,
            chance: None,
            rung: None,
            pass_on: false,
        };
        let step = match hold {
            None | Some(HoldMode::ForcedClosed | HoldMode::ForcedOpen) if contract.looks_first() => {
                Step::Look
            }
            None | Some(HoldMode::ForcedClosed) => Step::Admit,
            Some(
                HoldMode::ForcedOpen | HoldMode::ForcedOff | HoldMode::StaleOnly | HoldMode::DefaultOnly,
            ) => call.held(),
        };
        (call, step)
    }

    /// Reports what [`Step::Look`] found.
    pub fn found(&mut self, snapshot: Option<Facts>, now: Mono) -> Step {
        if self.rung.is_some() {
            return self.tried_stale(snapshot, now);
        }
        let used = snapshot.map_or(Use::Nothing, |facts| {
            self.contract.use_of(&facts, self.chance, now)
        });
        match used {
            Use::Fresh(age) => Step::Serve(Rung::Fresh, Some(age)),
            Use::WhileRefreshing(Rung::Fresh, age) if self.hold == Some(HoldMode::ForcedOpen) => {
                Step::Serve(Rung::Fresh, Some(age))
            }
            // Not being fresh is what every first call sees; it is no news unless the ladder is needed too.
            Use::WhileRefreshing(..) | Use::Nothing if self.hold == Some(HoldMode::ForcedOpen) => self.held(),
            Use::WhileRefreshing(rung, age) => {
                self.to_refresh = Some((rung, age));
                Step::Refresh
            }
            Use::Nothing => Step::Admit,
        }
    }

    /// Says that the call arrived earlier than it began: its deadline and its soft timeout count from then. A later time
    /// than the beginning changes nothing. To be said before anything else.
    pub fn arrived(&mut self, at: Mono) {
        let earlier = |counted: Mono, span: Duration| counted.min(at.after(span));
        if let (Some(end), Some(span)) = (self.deadline.at(), self.contract.deadline()) {
            self.deadline = Deadline::ending(earlier(end, span));
        }
        if let (Some(soft), Some(span)) = (self.soft, self.contract.soft_timeout()) {
            self.soft = Some(earlier(soft, span));
        }
    }

    /// Says that the call ends by this time at the latest, because its caller waits no longer. It never ends later than by
    /// its contract. To be said before anything else.
    pub fn ends_by(&mut self, at: Mono) {
        let end = self.deadline.at().map_or(at, |end| end.min(at));
        self.deadline = Deadline::ending(end);
    }

    /// Gives the call a random number by which a refresh ahead of its time is drawn. Without one there is none.
    pub const fn draw(&mut self, chance: u64) {
        self.chance = Some(chance);
    }

    /// Reports what came of [`Step::Refresh`].
    ///
    /// A refresh that is refused keeps the copy from being revalidated, not from being served: it is inside its window.
    /// The reason then says what stands in the way.
    pub fn refreshed(&mut self, refresh: Refresh) -> Step {
        let Some((rung, age)) = self.to_refresh.take() else {
            return Step::Admit;
        };
        self.reason = match (rung, refresh) {
            // It is still fresh, so nothing is less than promised; and nobody waits to have it fresher.
            (Rung::Fresh, _) => None,
            (_, Refresh::UnderWay) => Some(Reason::Revalidating),
            (_, Refresh::Refused(reason)) => Some(reason),
            (_, Refresh::Impossible) => return Step::Admit,
        };
        Step::Serve(rung, Some(age))
    }

    /// Reports that [`Step::Admit`] was granted.
    pub fn admitted(&mut self, now: Mono) -> Step {
        Step::Attempt(self.attempts_until().attempt(now, self.timeout))
    }

    /// Reports that [`Step::Admit`] was refused, with the word for why. The dependency was not asked.
    pub fn refused(&mut self, reason: Reason) -> Step {
        self.reason = Some(reason);
        match self.contract.when_busy() {
            WhenBusy::Ladder => self.descend(0),
            WhenBusy::Refuse => Step::Refuse,
        }
    }

    /// Returns when to look whether a copy could answer in place of an attempt that is still under way; `None` if the call
    /// waits for it in any case. Only a driver whose attempt can go on without the call asks.
    #[must_use]
    pub const fn slow_at(&self) -> Option<Mono> {
        self.soft
    }

    /// Reports that the attempt is still under way at [`ReadCall::slow_at`], and what a look at the copy found then. A
    /// step ends the call, and the attempt goes on; without one the call waits on.
    pub fn slow(&mut self, snapshot: Option<Facts>, now: Mono) -> Option<Step> {
        let age = snapshot?.stale(self.contract.ladder().max_age()?, now).ok()?;
        self.reason = Some(Reason::Slow);
        Some(Step::Serve(Rung::Stale, Some(age)))
    }

    /// Reports that the call still waits for a permit at [`ReadCall::slow_at`], and what a look at the copy found then. A
    /// step ends the call, which was not asked for; without one it waits on.
    pub fn slow_in_queue(&mut self, snapshot: Option<Facts>, now: Mono) -> Option<Step> {
        let step = self.slow(snapshot, now)?;
        // Nothing was asked that could be slow: what did not come in time is a permit.
        self.reason = Some(Reason::QueueExpired);
        Some(step)
    }

    /// Reports the hold that is in force now for a call that has waited, `None` if there is none. A step ends the call as
    /// if it had come after the hold; without one it goes on.
    pub fn hold_now(&mut self, hold: Option<HoldMode>) -> Option<Step> {
        self.hold = hold;
        hold.is_some_and(|mode| !mode.lets_ask()).then(|| self.held())
    }

    /// Returns the limit of an attempt at the alternate that starts at `now`.
    ///
    /// # Errors
    /// The next step, where nothing is left of the deadline: the rung is then passed over.
    pub fn alternate(&mut self, now: Mono) -> Result<Limit, Step> {
        if self.deadline.remaining(now) == Some(Duration::ZERO) {
            return Err(self.alternate_skipped(Skipped::NoTime));
        }
        Ok(self
            .deadline
            .attempt(now, self.contract.ladder().alternate_timeout()))
    }

    /// Reports that the alternate answered.
    #[must_use]
    pub const fn alternate_answered(&self) -> Step {
        Step::Serve(Rung::Alternate, Some(Duration::ZERO))
    }

    /// Reports that the alternate was not asked, or did not answer.
    pub fn alternate_skipped(&mut self, why: Skipped) -> Step {
        self.skips.note(Rung::Alternate, why);
        self.descend(self.rung.map_or(0, |rung| rung + 1))
    }

    /// Reports the class of what [`Step::Attempt`] brought, `probe` telling whether it was made as a probe and is to
    /// be blamed on the dependency: a probe that the caller's own deadline ended is late, not failed.
    ///
    /// [`Class::Local`] means that a guard further in refused: the call then goes on as if its own bulkhead had.
    pub fn attempted(&mut self, class: Class, probe: bool) -> Step {
        if class == Class::Answer {
            return Step::Serve(Rung::Live, Some(Duration::ZERO));
        }
        if class == Class::Local {
            return self.refused(Reason::AtCapacity);
        }
        let Row { breaker, lower_rung } = self.table.row(class);
        // An answer that a contract sends down the ladder although it is a refusal goes by the word for answers.
        let reason = class
            .reason()
            .or_else(|| lower_rung.then_some(Reason::ErrorAnswer));
        self.pass_on = matches!(reason, Some(Reason::ErrorAnswer | Reason::Busy));
        let probe_failed = probe && breaker == Verdict::Failure;
        self.reason = reason.map(|reason| if probe_failed { Reason::ProbeFailed } else { reason });
        if lower_rung { self.descend(0) } else { Step::Fail }
    }

    /// Tells whether a rung of the ladder could answer now, so that nobody has to wait for a probe.
    #[must_use]
    pub fn has_servable_rung(&self, snapshot: Option<Facts>, now: Mono) -> bool {
        self.contract.when_busy() == WhenBusy::Ladder
            && self.contract.ladder().rungs().iter().any(|rule| match rule {
                RungRule::Stale { max_age } => {
                    snapshot.is_some_and(|facts| facts.stale(*max_age, now).is_ok())
                }
                // It may fail, so nobody is told that it will answer.
                RungRule::Alternate { .. } => false,
                RungRule::Default => true,
            })
    }

    /// Returns the trigger that kept the call from being live, if one did.
    #[must_use]
    pub const fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// Returns the rungs that were not used.
    #[must_use]
    pub const fn skips(&self) -> Skips {
        self.skips
    }

    /// Returns the end of the whole call.
    #[must_use]
    pub const fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Returns the end of all attempts at the dependency itself: the deadline, less what is kept free for the alternate.
    #[must_use]
    pub fn attempts_until(&self) -> Deadline {
        let reserve = self.contract.ladder().alternate_timeout();
        self.deadline.less(reserve.unwrap_or(Duration::ZERO))
    }

    fn held(&mut self) -> Step {
        self.reason = Some(Reason::Held);
        if self.hold == Some(HoldMode::ForcedOff) {
            Step::Refuse
        } else {
            self.descend(0)
        }
    }

    fn tried_stale(&mut self, snapshot: Option<Facts>, now: Mono) -> Step {
        let max_age = self.contract.ladder().max_age().unwrap_or(Duration::ZERO);
        match snapshot
            .ok_or(Skipped::NoSnapshot)
            .and_then(|facts| facts.stale(max_age, now))
        {
            Ok(age) => Step::Serve(Rung::Stale, Some(age)),
            Err(why) => {
                self.skips.note(Rung::Stale, why);
                self.descend(self.rung.map_or(0, |rung| rung + 1))
            }
        }
    }

    /// Goes on with the rung at `from`, the first that no hold leaves out.
    fn descend(&mut self, from: usize) -> Step {
        for (index, rule) in self.contract.ladder().rungs().iter().enumerate().skip(from) {
            let left_out = match self.hold {
                Some(HoldMode::StaleOnly) => rule.rung() != Rung::Stale,
                Some(HoldMode::DefaultOnly) => rule.rung() != Rung::Default,
                None | Some(HoldMode::ForcedOpen | HoldMode::ForcedOff | HoldMode::ForcedClosed) => false,
            };
            if left_out {
                self.skips.note(rule.rung(), Skipped::Held);
                continue;
            }
            self.rung = Some(index);
            return match rule {
                RungRule::Stale { .. } => Step::Look,
                RungRule::Alternate { .. } => Step::Alternate,
                RungRule::Default => Step::Serve(Rung::Default, None),
            };
        }
        if self.pass_on { Step::Fail } else { Step::Refuse }
    }
}
