//! Decides what is exported of each dependency: what its attempts brought, its breaker, its room, its ramp, its budgets.
//! It exists so that the cause of what users see can be found in the same scrape.
//! It refuses to count what stood in for a failure as a success of the dependency: attempts are what it brought itself.

use std::fmt;

use evenkeel::{BreakerRules, Cause, Class, Dependency, Now, RampStep, State};

use super::{Scrape, out::Out};
use crate::telemetry::{addresses, series};

impl Scrape<'_> {
    pub(super) fn dependencies(&self, out: &mut Out<'_>) -> fmt::Result {
        let all = || self.app.dependencies.iter().map(|(dependency, _)| dependency);
        let attempts = all().flat_map(|dependency| {
            Class::ALL
                .into_iter()
                .map(move |class| (class, dependency.attempts(class)))
                // A fault takes a defect, so it is no series until there is one.
                .filter(|(class, count)| *count > 0 || !matches!(class, Class::Fault | Class::Local))
                .map(move |(class, count)| (vec![dependency.name(), class.as_str()], count))
        });
        out.write(&series::ATTEMPTS, attempts)?;
        self.waits_and_retries(out)?;
        addresses::write(&self.app, out)?;
        let state = all().flat_map(|dependency| {
            let now = dependency.status().state;
            now.into_iter().flat_map(move |now| {
                State::ALL.map(|state| (vec![dependency.name(), state.as_str()], u64::from(state == now)))
            })
        });
        out.write(&series::BREAKER_STATE, state)?;
        self.breakers(out)?;
        let limited = || all().filter_map(|one| one.status().limit.map(|limit| (one, limit)));
        let in_use = limited().map(|(one, _)| (vec![one.name()], u64::from(one.status().in_use)));
        out.write(&series::PERMITS_IN_USE, in_use)?;
        let limits = limited().map(|(one, limit)| (vec![one.name()], u64::from(limit)));
        out.write(&series::PERMITS_LIMIT, limits)?;
        self.load(out)?;
        let resources = || self.app.resources.iter();
        let in_use = resources().map(|one| (vec![one.name()], u64::from(one.in_use())));
        out.write(&series::RESOURCE_IN_USE, in_use)?;
        let limits = resources().map(|one| (vec![one.name()], u64::from(one.limit())));
        out.write(&series::RESOURCE_LIMIT, limits)?;
        let idle = self
            .app
            .dependencies
            .iter()
            .map(|(dependency, upstream)| (vec![dependency.name()], upstream.idle() as u64));
        out.write(&series::IDLE_CONNECTIONS, idle)
    }

    /// Writes what ramp and learned limit know, for the dependencies that have one.
    fn load(&self, out: &mut Out<'_>) -> fmt::Result {
        let statuses: Vec<_> = self
            .app
            .dependencies
            .iter()
            .map(|(one, _)| (one.name(), one.contract(), one.status()))
            .collect();
        let metered = || {
            statuses
                .iter()
                .filter(|(_, contract, _)| contract.ramp().is_some() || contract.learn().is_some())
        };
        let counted = statuses.iter().filter(|(_, contract, _)| {
            contract.ramp().is_some() || contract.learn().is_some() || contract.concurrency().is_some()
        });
        let in_flight = counted.map(|(name, _, status)| (vec![*name], u64::from(status.in_use)));
        out.write(&series::IN_FLIGHT, in_flight)?;
        let lingering = statuses
            .iter()
            .filter(|(_, contract, _)| contract.learn().is_some() || contract.abandoned().is_some());
        let lingering = lingering.map(|(name, _, status)| (vec![*name], u64::from(status.lingering)));
        out.write(&series::LINGERING, lingering)?;
        let caps = statuses
            .iter()
            .filter_map(|(name, contract, _)| Some((vec![*name], u64::from(contract.abandoned()?))));
        out.write(&series::ABANDONED_LIMIT, caps)?;
        let limits =
            metered().map(|(name, _, status)| (vec![*name], u64::from(status.admitted.unwrap_or(0))));
        out.write(&series::LEARNED_LIMIT, limits)?;
        let ramped = || metered().filter(|(_, contract, _)| contract.ramp().is_some());
        let stages = ramped().map(|(name, _, status)| {
            let stage = status.ramp.map_or(0, |stage| u64::from(stage.index) + 1);
            (vec![*name], stage)
        });
        out.write(&series::RAMP_STAGE, stages)?;
        let shares = ramped().map(|(name, _, status)| {
            let share = status
                .ramp
                .map_or(100, |stage| u64::from(stage.share_ppm / 10_000));
            (vec![*name], share)
        });
        out.write(&series::RAMP_SHARE, shares)?;
        let steps = self.app.dependencies.iter().map(|(one, _)| one);
        let steps = steps
            .filter(|one| one.contract().ramp().is_some())
            .flat_map(|one| {
                RampStep::ALL.map(|step| (vec![one.name(), step.as_str()], one.ramp_steps(step)))
            });
        out.write(&series::RAMP_STEPS, steps)
    }

    /// Writes who waits for a permit, and what is asked once more.
    fn waits_and_retries(&self, out: &mut Out<'_>) -> fmt::Result {
        let all = || self.app.dependencies.iter().map(|(dependency, _)| dependency);
        let queues = || all().filter_map(|one| Some((one, one.contract().queue()?.length)));
        let waiting = queues().map(|(one, _)| (vec![one.name()], u64::from(one.status().waiting)));
        out.write(&series::QUEUE_WAITING, waiting)?;
        let lengths = queues().map(|(one, length)| (vec![one.name()], u64::from(length)));
        out.write(&series::QUEUE_LIMIT, lengths)?;
        let waits = || queues().filter_map(|(one, _)| Some((one, one.waits()?)));
        let times = waits().map(|(one, (times, _))| (vec![one.name()], times));
        out.write(&series::QUEUE_WAITS, times)?;
        let spans = waits().map(|(one, (_, span))| (vec![one.name()], span.as_secs_f64()));
        out.write_real(&series::QUEUE_WAIT_SECONDS, spans)?;
        let with_retries = || all().filter(|one| one.contract().retry().is_some());
        let made = with_retries().map(|one| (vec![one.name()], one.retries().made));
        out.write(&series::RETRIES, made)?;
        let denied = with_retries().map(|one| (vec![one.name()], one.retries().denied));
        out.write(&series::RETRIES_DENIED, denied)?;
        let left = all().filter_map(|one| Some((vec![one.name()], one.retries_left()?)));
        out.write(&series::RETRIES_LEFT, left)
    }

    /// Writes how the breakers went, and when the next probe may start.
    fn breakers(&self, out: &mut Out<'_>) -> fmt::Result {
        let all = || self.app.dependencies.iter().map(|(dependency, _)| dependency);
        let with_breaker = || all().filter_map(|one| Some((one, one.contract().breaker()?)));
        let transitions = with_breaker().flat_map(|(one, rules)| {
            Cause::ALL.into_iter().flat_map(move |cause| {
                State::ALL
                    .into_iter()
                    .flat_map(move |from| State::ALL.map(move |to| (from, to)))
                    .map(move |(from, to)| (from, to, one.transitions_by(from, to, cause)))
                    .filter(move |(from, to, count)| *count > 0 || reaches(one, rules, *from, *to, cause))
                    .map(move |(from, to, count)| {
                        (
                            vec![one.name(), from.as_str(), to.as_str(), cause.as_str()],
                            count,
                        )
                    })
            })
        });
        out.write(&series::BREAKER_TRANSITIONS, transitions)?;
        let now = self.app.process.engine.now();
        let opened = with_breaker().map(|(one, _)| {
            // Rounded down: it was open no later than it is said to be.
            let at = one.status().open_since.map_or(0, |at| now.wall_of(at).as_secs());
            (vec![one.name()], u64::try_from(at).unwrap_or(0))
        });
        out.write(&series::BREAKER_OPENED, opened)?;
        let probes = with_breaker().map(|(one, _)| {
            let at = one.status().next_probe.map_or(0, |at| unix_seconds(now, at));
            (vec![one.name()], at)
        });
        out.write(&series::NEXT_PROBE, probes)
    }
}

/// Tells whether a breaker of these rules can go this way by itself. What only a person does is a series once it is done.
fn reaches(one: &Dependency, rules: &BreakerRules, from: State, to: State, cause: Cause) -> bool {
    match cause {
        Cause::Tripped => (from, to) == (State::Closed, State::Open),
        Cause::Probing => (from, to) == (State::Open, State::HalfOpen),
        Cause::Proven => (from, to) == (State::HalfOpen, State::Closed),
        Cause::ProbeFailed | Cause::LeaseExpired => (from, to) == (State::HalfOpen, State::Open),
        Cause::ProbeSlow => rules.slow.is_some() && (from, to) == (State::HalfOpen, State::Open),
        Cause::RampFailed => one.contract().ramp().is_some() && (from, to) == (State::Closed, State::Open),
        Cause::Reset => false,
    }
}

/// Returns a monotonic instant in whole seconds of Unix time, rounded up: a probe is never announced too early.
fn unix_seconds(now: Now, at: evenkeel::Mono) -> u64 {
    let wall = now.wall_of(at).as_nanos().saturating_add(999_999_999);
    u64::try_from(evenkeel::Wall::from_nanos(wall).as_secs()).unwrap_or(0)
}
