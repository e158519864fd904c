//! Decides how one call is driven: it performs the steps of the engine's call and reports back, until it ends.
//! It exists as a value that is dropped with the call, so that a caller who leaves is counted, whenever that is.
//! It refuses to end twice, and to end uncounted.

use std::{sync::Arc, time::Duration};

use evenkeel_core::{
    Asker, Class, Criticality, Ending, Facts, HoldMode, Mono, Now, ReadCall, Reason, Refusal, Rung, Skipped,
    Step, Wall,
};

use crate::{
    answer::{Answer, Misuse, Unanswered},
    dependency,
    key::Key,
    lent::Lent,
    memory::Snapshot,
    read::{
        Usable,
        again::{Repeat, Retries},
        alternate::Spare,
        attempt::Attempted,
        held::{Bring, Held, Moment},
        seat::Unseated,
        shared::Inner,
    },
    tail::{Answered, Tail},
    ticket::Ticket,
};

pub(crate) type End<T, E> = Result<Answer<T, E>, Unanswered<E>>;
/// The end of a call, or the step by which its ladder goes on.
pub(crate) type Next<T, E> = Result<End<T, E>, Step>;

/// What was looked up last.
enum Found<T> {
    Kept(Arc<Snapshot<T>>),
    Brought(T, Option<Wall>),
}

/// A call that has not ended.
pub(crate) struct Running<'c, T, E> {
    pub(super) guard: &'c Arc<Inner<T, E>>,
    pub(super) call: ReadCall<'c>,
    /// Only calls that look something up, keep something or join somebody have a key.
    pub(super) key: Option<&'c Key>,
    pub(super) usable: Usable<'c, T>,
    /// Brings the caller's own copy, in place of the store of snapshots.
    pub(super) bring: Option<Bring<'c, T>>,
    asker: Asker,
    pub(super) criticality: Criticality,
    /// The time of the latest decision.
    pub(super) now: Now,
    pub(super) observes: bool,
    /// Whether the work may keep its permit beyond its result.
    pub(super) may_outlive: bool,
    /// Whether how long the work takes says nothing about the dependency.
    pub(super) is_slow: bool,
    /// The work once more, where it may be repeated.
    pub(super) again: Option<Repeat<T, E>>,
    found: Option<Found<T>>,
    pub(super) retry_at: Option<Mono>,
    pub(super) cause: Option<E>,
    /// The alternate, until it is asked.
    pub(super) spare: Option<Spare<'c, T, E>>,
    /// The error of the alternate.
    pub(super) alternate_cause: Option<E>,
    /// Whether the call waits; see [`crate::parked`].
    pub(super) parked: bool,
    /// Nothing could have ended it in time.
    pub(super) is_untimed: bool,
    counted: bool,
}

impl<'c, T, E> Running<'c, T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Starts the call's one clock and fixes its deadline.
    // Inlined, like the steps that end a call: it is then made where it stays, instead of copied there.
    #[inline(always)]
    pub(crate) fn begin(
        guard: &'c Arc<Inner<T, E>>,
        key: Option<&'c Key>,
        usable: Usable<'c, T>,
        asker: Asker,
        criticality: Criticality,
    ) -> (Self, Step) {
        let now = guard.now();
        let (hold, retry_at) = match guard.look(now.mono) {
            None => (None, None),
            // Only a hold that keeps calls away is a reason to come back when it ends.
            Some((mode, until)) => (
                Some(mode),
                (until < Mono::END && !mode.lets_ask()).then_some(until),
            ),
        };
        let contract = guard.dependency.0.seat.contract();
        let (mut call, mut first) = ReadCall::begin(
            &guard.contract,
            contract.table(),
            contract.timeout().filter(|_| !guard.untimed),
            hold,
            now.mono,
        );
        let observes = hold.is_some_and(HoldMode::lets_ask);
        let may_ask = hold.is_none() || observes;
        if asker == Asker::Person && may_ask && first == Step::Look {
            // A person who probes wants the dependency asked, however fresh what is kept may be.
            first = call.found(None, now.mono);
        }
        let running = Self {
            guard,
            call,
            key,
            usable,
            bring: None,
            asker,
            criticality,
            now,
            observes,
            may_outlive: false,
            is_slow: false,
            again: None,
            found: None,
            retry_at,
            cause: None,
            spare: None,
            alternate_cause: None,
            parked: false,
            is_untimed: false,
            counted: false,
        };
        (running, first)
    }

    /// Counts the deadline from an earlier arrival.
    pub(super) fn arrived(&mut self, at: Option<Mono>) {
        if let Some(at) = at {
            self.call.arrived(at);
        }
    }

    /// Ends the call by this time at the latest.
    pub(super) fn ends_by(&mut self, at: Option<Mono>) {
        if let Some(at) = at {
            self.call.ends_by(at);
        }
    }

    /// Returns what an attempt needs of the call, and the mark to be kept while the call waits for it.
    pub(crate) const fn parts(&mut self) -> (Option<&'c Key>, &mut bool) {
        (self.kept_under(), &mut self.parked)
    }

    /// Returns the key under which a result may be kept. Who brings a copy keeps what comes as well.
    pub(super) const fn kept_under(&self) -> Option<&'c Key> {
        if self.bring.is_some() { None } else { self.key }
    }

    /// Asks for admission of one attempt, and fixes its limit.
    #[inline(always)]
    pub(crate) fn admit<'d>(
        &mut self,
        dependency: Lent<'d, dependency::Inner>,
    ) -> Result<Ticket<'d>, Refusal> {
        let mut ticket =
            dependency::Inner::admit(dependency, self.criticality, self.now, self.asker, self.observes)?;
        if let Step::Attempt(limit) = self.call.admitted(ticket.began.mono) {
            ticket.limit = limit;
        }
        ticket.may_outlive = self.may_outlive;
        if self.is_slow {
            ticket.disregard_time();
        }
        Ok(ticket)
    }

    /// Tells whether the call may wait for a permit: a person who probes is told at once.
    pub(super) fn may_queue(&self) -> bool {
        self.asker == Asker::Traffic
    }

    /// Returns what further attempts of this call need, where its work may be repeated.
    pub(super) fn retries(&mut self) -> Option<Retries<T, E>> {
        let work = self.again.take()?;
        let deadline = self.call.attempts_until();
        Some(Retries {
            work,
            deadline,
            ends: deadline.at(),
            criticality: self.criticality,
        })
    }

    /// Takes the first look, if one is to be taken, and returns what comes next: an admission, a refresh, or the end.
    pub(crate) fn start(&mut self, first: Step) -> Step {
        let step = match first {
            Step::Look => self.look_up(),
            Step::Admit
            | Step::Attempt(_)
            | Step::Refresh
            | Step::Alternate
            | Step::Serve(..)
            | Step::Refuse
            | Step::Fail => first,
        };
        // Whom nobody waits for any more is not sent on; what is kept may still answer.
        if step == Step::Admit && self.call.deadline().at().is_some_and(|end| end <= self.now.mono) {
            return self.refused(Refusal {
                reason: Reason::TimedOut,
                retry_at: None,
            });
        }
        step
    }

    /// Goes on with a call that got no permit.
    pub(crate) fn unseated(&mut self, why: Unseated) -> Step {
        match why {
            Unseated::Refused(refusal) => self.refused(refusal),
            Unseated::Ended(step) => step,
        }
    }

    /// Goes on with a call that was refused admission: by the ladder, or not at all.
    pub(crate) fn refused(&mut self, refusal: Refusal) -> Step {
        self.retry_at = refusal.retry_at;
        self.call.refused(refusal.reason)
    }

    /// Ends a call whose attempt brought a value, or goes on with it.
    #[inline(always)]
    pub(crate) fn attempted(&mut self, attempted: Attempted<T, E>) -> Next<T, E> {
        match attempted {
            Attempted::Value {
                value,
                began,
                kept,
                tail,
            } => Ok(self.live(value, began, kept, false, tail)),
            Attempted::Error { class, error, probe } => Err(self.failed(class, error, probe)),
            Attempted::Untimed => {
                self.is_untimed = true;
                Err(self.failed(Class::Fault, None, false))
            }
        }
    }

    /// Goes on with a call whose attempt brought no value: by the ladder, or not at all.
    pub(crate) fn failed(&mut self, class: Class, error: Option<E>, probe: bool) -> Step {
        self.now = self.guard.now();
        self.cause = error;
        // An error that a classifier calls an answer is the dependency's own; there is no value in it.
        let class = if class == Class::Answer {
            Class::Refusal
        } else {
            class
        };
        self.call.attempted(class, probe)
    }

    /// Ends a call that has nobody left to ask. Calls itself at most once for each rung of the ladder: a step
    /// that is handed on costs less than one that is kept and replaced.
    pub(super) fn finish(&mut self, step: Step) -> End<T, E> {
        match step {
            Step::Look => {
                let next = self.look_up();
                self.finish(next)
            }
            Step::Serve(rung, age) => self.serve(rung, age),
            // It was asked before, where this call could ask it.
            Step::Alternate => {
                let next = self.call.alternate_skipped(Skipped::Failed);
                self.finish(next)
            }
            Step::Fail => Err(self.unanswered(Ending::Failed)),
            // An attempt follows an admission and nothing else, and whoever was admitted does not come here.
            Step::Refuse | Step::Admit | Step::Attempt(_) | Step::Refresh => {
                Err(self.unanswered(Ending::Refused))
            }
        }
    }

    pub(super) fn look_up(&mut self) -> Step {
        let moment = if self.call.reason().is_some() {
            Moment::AfterFailure
        } else {
            Moment::BeforeAsking
        };
        let facts = self.look(moment);
        if let Some(chance) = self.guard.chance(facts) {
            self.call.draw(chance);
        }
        self.call.found(facts, self.now.mono)
    }

    pub(super) fn look(&mut self, moment: Moment) -> Option<Facts> {
        if let Some(bring) = self.bring {
            let Held {
                value,
                facts,
                observed_wall,
            } = bring(moment, self.now)?;
            self.found = Some(Found::Brought(value, observed_wall));
            return Some(facts);
        }
        let snapshot = self.guard.memory.get(self.key?)?;
        let usable = self.may_have(&snapshot.value);
        let facts = snapshot.facts(usable);
        self.found = Some(Found::Kept(snapshot));
        Some(facts)
    }

    /// Tells whether this caller may be given a value that was not made for it.
    pub(super) fn may_have(&self, value: &T) -> bool {
        self.usable.is_none_or(|usable| usable(value))
    }

    /// Answers with what the attempt brought. Where `tail` is set, the ending is counted when the work has ended.
    #[inline(always)]
    pub(super) fn live(
        &mut self,
        value: T,
        began: Now,
        kept: bool,
        joined: bool,
        tail: Option<Arc<Tail>>,
    ) -> End<T, E> {
        if self.guard.exercise.is_some() && !joined && tail.is_none() {
            self.exercise(&value);
        }
        let answer = self.answered(Rung::Live, value, began, tail);
        answer.map(|answer| Answer {
            joined,
            kept,
            ..answer
        })
    }

    /// Answers with what was asked for this call, of the dependency or of the alternate.
    #[inline(always)]
    pub(super) fn answered(
        &mut self,
        rung: Rung,
        value: T,
        began: Now,
        tail: Option<Arc<Tail>>,
    ) -> End<T, E> {
        let reason = if rung == Rung::Live {
            None
        } else {
            self.call.reason()
        };
        match tail {
            None => self.count(Ending::Answered(rung), reason),
            Some(tail) => {
                self.counted = true;
                self.count_skips();
                tail.answers(Answered {
                    guard: Arc::clone(self.guard) as _,
                    rung,
                    reason,
                });
            }
        }
        Ok(Answer {
            value,
            rung,
            age: Some(Duration::ZERO),
            observed: Some(began.wall),
            reason,
            skipped: self.call.skips(),
            cause: self.cause.take(),
            alternate_cause: None,
            joined: false,
            kept: false,
        })
    }

    /// Answers from a rung below live, or refuses if the rung has nothing to give.
    #[inline(always)]
    fn serve(&mut self, rung: Rung, age: Option<Duration>) -> End<T, E> {
        let found: Option<(T, Option<Wall>)> = match rung {
            Rung::Fresh | Rung::Stale => self.found.take().map(|found| match found {
                Found::Kept(snapshot) => (snapshot.value.clone(), snapshot.observed_wall),
                Found::Brought(value, observed_wall) => (value, observed_wall),
            }),
            Rung::Default => self.guard.default.as_ref().map(|default| (default(), None)),
            Rung::Live | Rung::Alternate => None,
        };
        let Some((value, observed)) = found else {
            return Err(self.unanswered(Ending::Refused));
        };
        let reason = self.call.reason();
        self.count(Ending::Answered(rung), reason);
        let (skipped, cause) = (self.call.skips(), self.cause.take());
        let alternate_cause = self.alternate_cause.take();
        Ok(Answer {
            value,
            rung,
            age,
            observed,
            reason,
            skipped,
            cause,
            alternate_cause,
            joined: false,
            kept: false,
        })
    }

    fn unanswered(&mut self, ending: Ending) -> Unanswered<E> {
        let reason = self.call.reason();
        self.count(ending, reason);
        if reason == Some(Reason::ProbeFailed) {
            self.retry_at = self.guard.dependency.0.seat.next_probe();
        }
        Unanswered {
            ending,
            reason,
            skipped: self.call.skips(),
            retry_after: self.retry_at.map(|at| at.since(self.now.mono)),
            cause: self.cause.take(),
            alternate_cause: self.alternate_cause.take(),
            misuse: self.is_untimed.then_some(Misuse::NoTimer),
        }
    }

    fn count(&mut self, ending: Ending, reason: Option<Reason>) {
        self.counted = true;
        self.guard.counters.ended(ending, reason);
        self.count_skips();
    }

    fn count_skips(&self) {
        for (rung, why) in self.call.skips().iter() {
            self.guard.counters.skipped(rung, why);
        }
    }
}

impl<T, E> Drop for Running<'_, T, E> {
    /// The caller left, or the wrapped code broke.
    fn drop(&mut self) {
        if self.counted {
            return;
        }
        if self.parked {
            self.guard.counters.ended(Ending::Abandoned, None);
        } else {
            self.guard.counters.ended(Ending::Failed, Some(Reason::Fault));
        }
    }
}
