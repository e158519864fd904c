//! Decides whether a contract makes sense, turning a draft into a checked one.
//! It exists so that the engine only ever runs contracts that were checked whole, and reports all that is wrong.
//! It refuses to fill in a ladder: what a contract may serve is only ever what it lists.

use alloc::{string::String, vec::Vec};
use core::time::Duration;

use crate::{
    breaker::BreakerRules,
    class::{Class, Row, Table, Verdict},
    codes,
    criticality::Criticality,
    ladder::{Ladder, RungRule},
    limit::LimitRules,
    problem::Problems,
    queue::QueueRules,
    ramp::RampRules,
    refresh::RefreshRules,
    retry::RetryRules,
};

/// What local refusals (no permit, open breaker) lead to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenBusy {
    /// The ladder, as for an outage.
    #[default]
    Ladder,
    /// A refusal, although a rung could answer.
    Refuse,
}

/// What somebody wrote about a dependency. Nothing is on unless set.
#[derive(Clone, Debug, Default)]
pub struct DependencyDraft {
    /// Its name: 1 to 64 characters of `A-Z a-z 0-9 - _ . /`.
    pub name: String,
    /// The longest span of one attempt: 1 ms to 1 h.
    pub timeout: Option<Duration>,
    /// The most attempts in flight: 1 to 1 000 000.
    pub concurrency: Option<u32>,
    /// When to stop asking.
    pub breaker: Option<BreakerRules>,
    /// How traffic comes back after the breaker has closed; without it, all at once.
    pub ramp: Option<RampRules>,
    /// How to learn what it can bear; without it, only a declared `concurrency` limits.
    pub learn: Option<LimitRules>,
    /// Whether and how often it is asked once more after a failure; without it, never.
    pub retry: Option<RetryRules>,
    /// The most attempts that ran into their limit and may still be worked on: 1 to 1 000 000. Each counts for one
    /// timeout more; at the cap no attempt is begun. Without it they count only where a limit is learned.
    pub abandoned: Option<u32>,
    /// How many calls may wait for a permit, and how long; without it none waits.
    pub queue: Option<QueueRules>,
    /// Rows of the classification table that differ from the default one, one for each class at most.
    pub rows: Vec<(Class, Row)>,
}

/// A checked contract with a dependency.
#[derive(Clone, Debug)]
pub struct DependencyContract {
    name: String,
    timeout: Option<Duration>,
    concurrency: Option<u32>,
    breaker: Option<BreakerRules>,
    ramp: Option<RampRules>,
    learn: Option<LimitRules>,
    retry: Option<RetryRules>,
    queue: Option<QueueRules>,
    abandoned: Option<u32>,
    table: Table,
}

const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(3600);

impl DependencyDraft {
    /// Checks the draft.
    ///
    /// # Errors
    /// Every problem found.
    pub fn check(self) -> Result<DependencyContract, Problems> {
        let mut problems = Problems::default();
        check_name("name", &self.name, &mut problems);
        if let Some(timeout) = self.timeout {
            problems.span(&["timeout"], timeout, SHORTEST, LONGEST);
        }
        if let Some(concurrency) = self.concurrency {
            problems.range(&["concurrency"], u64::from(concurrency), 1, 1_000_000);
        }
        let breaker = self.breaker.map(|rules| {
            rules.check("breaker", &mut problems);
            if let (Some(slow), Some(timeout)) = (rules.slow, self.timeout)
                && slow.after >= timeout
            {
                problems.coded(
                    codes::TIMES_CONFLICT,
                    "breaker.slow_after",
                    &alloc::format!("{:?}, not shorter than the timeout of {timeout:?}", slow.after),
                    "less than `timeout`: what takes longer than that has failed already",
                    "lower it, or raise `timeout`",
                );
            }
            if let (Some(lease), Some(timeout)) = (rules.lease, self.timeout)
                && lease < timeout
            {
                problems.coded(
                    codes::TIMES_CONFLICT,
                    "breaker.lease",
                    &alloc::format!("{lease:?}, shorter than the timeout of {timeout:?}"),
                    "`timeout` or longer",
                    "remove it: it is the timeout then, and no answer in time comes too late to close",
                );
            }
            BreakerRules {
                lease: rules.lease.or(self.timeout),
                ..rules
            }
        });
        if let Some(ramp) = &self.ramp {
            ramp.check("ramp", &mut problems);
            if self.breaker.is_none() {
                problems.coded(
                    codes::NO_EFFECT,
                    "ramp",
                    "no breaker",
                    "a ramp where there is a breaker, which it follows when that closes",
                    "declare `breaker`, or remove it",
                );
            }
        }
        if let Some(learn) = self.learn {
            learn.check("learned_limit", &mut problems);
        }
        if let Some(retry) = self.retry {
            retry.check("retry", &mut problems);
        }
        if let Some(queue) = self.queue {
            queue.check("queue", &mut problems);
        }
        if let Some(abandoned) = self.abandoned {
            problems.range(&["abandoned"], u64::from(abandoned), 1, 1_000_000);
        }
        let mut table = Table::default();
        for (index, (class, row)) in self.rows.iter().copied().enumerate() {
            let word = class.as_str();
            if self
                .rows
                .iter()
                .take(index)
                .any(|(earlier, _)| earlier.as_str() == word)
            {
                problems.add(
                    "classification",
                    &alloc::format!("a second row for `{word}`"),
                    "one row for each class; every kind of outage reads the same",
                    "remove one",
                );
            }
            if class.as_str() == Class::OUTAGE.as_str() && row.breaker == Verdict::Success {
                problems.add(
                    "classification",
                    "outages that count as successes",
                    "failure or neutral: a success closes the breaker",
                    "make it neutral",
                );
            }
            if Table::is_fixed(class) {
                problems.add(
                    "classification",
                    &alloc::format!("a row for `{word}`"),
                    "rows for outage, refusal, gone, busy",
                    "remove it: this row is the same for every dependency",
                );
            }
            table.set(class, row);
        }
        let Self {
            name,
            timeout,
            concurrency,
            ramp,
            learn,
            retry,
            queue,
            abandoned,
            ..
        } = self;
        problems.or(DependencyContract {
            name,
            timeout,
            concurrency,
            breaker,
            ramp,
            learn,
            retry,
            queue,
            abandoned,
            table,
        })
    }
}

impl DependencyContract {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the longest span of one attempt.
    #[must_use]
    pub const fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Returns the most attempts in flight.
    #[must_use]
    pub const fn concurrency(&self) -> Option<u32> {
        self.concurrency
    }

    /// Returns the breaker's rules, the lease filled in.
    #[must_use]
    pub const fn breaker(&self) -> Option<&BreakerRules> {
        self.breaker.as_ref()
    }

    /// Returns the rules of the ramp after closing.
    #[must_use]
    pub const fn ramp(&self) -> Option<&RampRules> {
        self.ramp.as_ref()
    }

    /// Returns the rules of the learned limit.
    #[must_use]
    pub const fn learn(&self) -> Option<&LimitRules> {
        self.learn.as_ref()
    }

    /// Returns the rules of retries.
    #[must_use]
    pub const fn retry(&self) -> Option<&RetryRules> {
        self.retry.as_ref()
    }

    /// Returns the most attempts that were given up and may still be worked on.
    #[must_use]
    pub const fn abandoned(&self) -> Option<u32> {
        self.abandoned
    }

    /// Returns how long work that was given up counts against that cap.
    pub(crate) fn abandoned_for(&self) -> Duration {
        let own = self.learn.and_then(|rules| rules.linger);
        own.or(self.timeout).unwrap_or(LimitRules::LINGER)
    }

    /// Returns the bounds of the queue for permits.
    #[must_use]
    pub const fn queue(&self) -> Option<&QueueRules> {
        self.queue.as_ref()
    }

    /// Returns how long an attempt that ran into its limit still counts as in flight: only where a limit is learned.
    #[must_use]
    pub fn linger(&self) -> Duration {
        self.learn.map_or(Duration::ZERO, |rules| {
            rules.linger.or(self.timeout).unwrap_or(LimitRules::LINGER)
        })
    }

    /// Returns the classification table in force.
    #[must_use]
    pub const fn table(&self) -> &Table {
        &self.table
    }
}

/// What somebody wrote about a Read: data that may be reduced. Nothing is on unless set.
#[derive(Clone, Debug, Default)]
pub struct ReadDraft {
    /// Its name: 1 to 64 characters of `A-Z a-z 0-9 - _ . /`.
    pub name: String,
    /// The longest span of a whole call: 1 ms to 1 h.
    pub deadline: Option<Duration>,
    /// How long an answer counts as fresh and is served without a call: 1 ms to 365 days.
    pub fresh_for: Option<Duration>,
    /// The rungs below live, in order.
    pub ladder: Vec<RungRule>,
    /// Nothing but an answer asked for this call.
    pub exact: bool,
    /// What local refusals lead to.
    pub when_busy: WhenBusy,
    /// Whether concurrent calls for one key may share one attempt.
    pub coalesce: bool,
    /// How much its calls matter where permits are scarce, unless a call says otherwise.
    pub criticality: Criticality,
    /// What copies may do before anybody is asked, beside `fresh_for`.
    pub refresh: RefreshRules,
}

/// A checked Read contract.
#[derive(Clone, Debug)]
pub struct ReadContract {
    name: String,
    deadline: Option<Duration>,
    fresh_for: Option<Duration>,
    ladder: Ladder,
    exact: bool,
    when_busy: WhenBusy,
    coalesce: bool,
    criticality: Criticality,
    refresh: RefreshRules,
}

impl ReadDraft {
    /// Checks the draft.
    ///
    /// # Errors
    /// Every problem found.
    ///
    /// ```
    /// use evenkeel_core::{ReadDraft, RungRule};
    /// use std::time::Duration;
    /// let problems = ReadDraft {
    ///     name: "price".into(),
    ///     exact: true,
    ///     deadline: Some(Duration::ZERO),
    ///     ladder: vec![RungRule::Stale { max_age: Duration::from_secs(60) }],
    ///     ..ReadDraft::default()
    /// }
    /// .check()
    /// .unwrap_err();
    /// assert_eq!(problems.list().len(), 2);
    /// ```
    pub fn check(self) -> Result<ReadContract, Problems> {
        let mut problems = Problems::default();
        check_name("name", &self.name, &mut problems);
        if let Some(deadline) = self.deadline {
            problems.span(&["deadline"], deadline, SHORTEST, LONGEST);
        }
        let ladder = Ladder::new(self.ladder);
        ladder.check(self.exact, self.deadline, &mut problems);
        if let Some(fresh_for) = self.fresh_for {
            problems.span(&["fresh_for"], fresh_for, SHORTEST, Ladder::MAX_AGE_LIMIT);
            if let Some(max_age) = ladder.max_age()
                && max_age < fresh_for
            {
                problems.coded(
                    codes::TIMES_CONFLICT,
                    "fresh_for",
                    &alloc::format!("{fresh_for:?}, longer than the stale rung's {max_age:?}"),
                    "at most the age limit of the stale rung",
                    "lower it, or raise the stale rung: as it stands that rung would never answer",
                );
            }
        }
        self.refresh
            .check(self.fresh_for, self.deadline, &ladder, self.exact, &mut problems);
        let shares = self.coalesce
            || self.refresh.own_lifetimes
            || self.refresh.refresh_ahead
            || self.refresh.stale_while_revalidate.is_some();
        if self.refresh.cool_down.is_some() && !shares {
            problems.coded(
                codes::NO_EFFECT,
                "cool_down",
                "set on a contract without shared attempts and refreshes",
                "beside `coalesce`, or what refreshes copies",
                "add it, or remove this: only their failures are remembered",
            );
        }
        for (on, setting) in [
            (self.fresh_for.is_some(), "fresh_for"),
            (self.coalesce, "coalesce"),
        ] {
            if on && self.exact {
                problems.coded(
                    codes::EXACT_WITH_OLD_DATA,
                    setting,
                    "set together with `exact`",
                    "nothing but an answer asked for this call",
                    "remove it, or `exact`",
                );
            }
        }
        let Self {
            name,
            deadline,
            fresh_for,
            exact,
            when_busy,
            coalesce,
            criticality,
            refresh,
            ..
        } = self;
        problems.or(ReadContract {
            name,
            deadline,
            fresh_for,
            ladder,
            exact,
            when_busy,
            coalesce,
            criticality,
            refresh,
        })
    }
}

impl ReadContract {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the longest span of a whole call.
    #[must_use]
    pub const fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    /// Returns how long an answer counts as fresh.
    #[must_use]
    pub const fn fresh_for(&self) -> Option<Duration> {
        self.fresh_for
    }

    /// Returns the rungs below live.
    #[must_use]
    pub const fn ladder(&self) -> &Ladder {
        &self.ladder
    }

    /// Tells whether nothing but an answer asked for this call will do.
    #[must_use]
    pub const fn exact(&self) -> bool {
        self.exact
    }

    /// Returns what local refusals lead to.
    #[must_use]
    pub const fn when_busy(&self) -> WhenBusy {
        self.when_busy
    }

    /// Tells whether concurrent calls for one key may share one attempt.
    #[must_use]
    pub const fn coalesce(&self) -> bool {
        self.coalesce
    }

    /// Returns how much its calls matter, unless a call says otherwise.
    #[must_use]
    pub const fn criticality(&self) -> Criticality {
        self.criticality
    }

    /// Returns what copies may do before anybody is asked, beside [`ReadContract::fresh_for`].
    #[must_use]
    pub const fn refresh(&self) -> &RefreshRules {
        &self.refresh
    }

    /// Tells whether good answers are kept: only where a rung could serve them.
    #[must_use]
    pub fn keeps_snapshots(&self) -> bool {
        self.looks_first() || self.ladder.max_age().is_some()
    }
}

/// Adds a problem unless `name` is a name as every contract, dependency and resource has one.
///
/// Names become metric labels and header members, so they keep to characters that need no quoting there: 1 to 64
/// of `A-Z a-z 0-9 - _ . /`.
pub fn check_name(place: &str, name: &str, problems: &mut Problems) {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
        problems.add(
            place,
            &alloc::format!("{name:?}"),
            "1 to 64 characters of A-Z a-z 0-9 - _ . /",
            "choose a short plain name, such as `recommendations`",
        );
    }
}

#[cfg(test)]
mod tests;
