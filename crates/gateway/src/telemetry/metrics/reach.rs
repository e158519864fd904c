//! Decides what the calls of a route can come to, by its contract.
//! It exists so that a series is there from the start where a call can reach it: alerts need the zero.
//! It refuses to promise series of what cannot happen: they would never be anything but zero.

use evenkeel::{Class, Criticality, Dependency, Ending, Reason, Rung, Skipped, WhenBusy};

use crate::proxy::{App, Passing, Route};

/// What the calls of a route can come to, by its contract.
#[derive(Clone, Copy, Debug)]
pub(in crate::telemetry) struct Reach {
    pub(super) keeps: bool,
    has_alternate: bool,
    has_default: bool,
    has_breaker: bool,
    has_ramp: bool,
    is_limited: bool,
    has_queue: bool,
    /// Others that ask its dependency can matter more.
    may_be_shed: bool,
    refuses_when_busy: bool,
    has_soft_timeout: bool,
    cools_down: bool,
    pub(super) revalidates: bool,
    has_fresh: bool,
    /// A 429 uses the ladder.
    busy_leads_down: bool,
    is_protected: bool,
}

impl Reach {
    pub(super) fn of(route: &Route, app: &App) -> Self {
        let contract = route.guard.contract();
        let ladder = contract.ladder();
        let may_be_shed = may_be_shed(app, route.guard.dependency(), route.guard.criticality());
        Self {
            keeps: contract.keeps_snapshots(),
            has_alternate: ladder.has_alternate(),
            has_default: ladder.has_default(),
            refuses_when_busy: contract.when_busy() == WhenBusy::Refuse,
            cools_down: contract.refresh().cool_down.is_some(),
            has_soft_timeout: contract.soft_timeout().is_some(),
            revalidates: contract.refreshes(),
            may_be_shed,
            has_fresh: contract.looks_first(),
            is_protected: app.protect_counts(&route.name).is_some(),
            ..Self::without_rungs(route.guard.dependency())
        }
    }

    /// What requests can come to that are only forwarded.
    pub(super) fn of_pass(passing: &Passing, app: &App) -> Self {
        Self {
            may_be_shed: may_be_shed(app, passing.guard.dependency(), passing.guard.criticality()),
            is_protected: app.protect_counts(&passing.name).is_some(),
            ..Self::without_rungs(passing.guard.dependency())
        }
    }

    /// What is left where nothing can stand in.
    pub(in crate::telemetry) fn without_rungs(dependency: &Dependency) -> Self {
        Self {
            keeps: false,
            has_alternate: false,
            has_default: false,
            has_breaker: dependency.contract().breaker().is_some(),
            has_ramp: dependency.contract().ramp().is_some(),
            is_limited: dependency.is_limited(),
            has_queue: dependency.contract().queue().is_some(),
            may_be_shed: false,
            refuses_when_busy: false,
            has_soft_timeout: false,
            cools_down: false,
            revalidates: false,
            has_fresh: false,
            busy_leads_down: dependency.contract().table().row(Class::Busy).lower_rung,
            is_protected: false,
        }
    }

    pub(in crate::telemetry) fn reaches(&self, ending: Ending, reason: Option<Reason>) -> bool {
        let Some(reason) = reason else {
            return match ending {
                Ending::Answered(Rung::Live) | Ending::Abandoned | Ending::Cut => true,
                Ending::Answered(Rung::Fresh) => self.has_fresh,
                Ending::Answered(Rung::Stale | Rung::Alternate | Rung::Default)
                | Ending::Refused
                | Ending::Failed => false,
            };
        };
        let possible = match reason {
            Reason::DependencyFailed | Reason::TimedOut | Reason::Cut | Reason::ErrorAnswer => true,
            Reason::BreakerOpen | Reason::ProbeFailed => self.has_breaker,
            Reason::Ramping => self.has_ramp,
            Reason::AtCapacity => self.is_limited,
            Reason::QueueExpired => self.has_queue,
            Reason::Shed => self.is_limited && self.may_be_shed,
            Reason::CoolDown => self.cools_down,
            Reason::Slow => self.has_soft_timeout,
            Reason::Revalidating => self.revalidates,
            Reason::ProtectionUnavailable => return self.is_protected && ending == Ending::Refused,
            Reason::Busy => self.busy_leads_down,
            Reason::Fault | Reason::Held => false,
        };
        if matches!(reason, Reason::Slow | Reason::Revalidating) {
            return possible && ending == Ending::Answered(Rung::Stale);
        }
        let has_ladder = !self.refuses_when_busy || reason.was_attempted();
        possible
            && match ending {
                Ending::Answered(Rung::Stale) => self.keeps && has_ladder,
                Ending::Answered(Rung::Alternate) => self.has_alternate && has_ladder,
                Ending::Answered(Rung::Default) => self.has_default && has_ladder,
                Ending::Refused => {
                    !(self.has_default && has_ladder || matches!(reason, Reason::ErrorAnswer | Reason::Busy))
                }
                Ending::Failed => {
                    !self.has_default
                        && matches!(reason, Reason::ErrorAnswer | Reason::Busy | Reason::ProbeFailed)
                }
                Ending::Answered(Rung::Live | Rung::Fresh) | Ending::Abandoned | Ending::Cut => false,
            }
    }

    pub(super) const fn skips(&self, rung: Rung, why: Skipped) -> bool {
        match rung {
            Rung::Stale => {
                self.keeps && matches!(why, Skipped::NoSnapshot | Skipped::TooOld | Skipped::Forbidden)
            }
            Rung::Alternate => {
                self.has_alternate
                    && matches!(
                        why,
                        Skipped::AtCapacity | Skipped::BreakerOpen | Skipped::NoTime | Skipped::Failed
                    )
            }
            Rung::Live | Rung::Fresh | Rung::Default => false,
        }
    }
}

/// Tells whether others can matter more than calls of this importance: other routes of the dependency by the contract, or
/// calls of the same route where peers say how much each matters.
fn may_be_shed(app: &App, dependency: &Dependency, criticality: Criticality) -> bool {
    let reads = app
        .routes
        .iter()
        .map(|one| (one.guard.dependency(), one.guard.criticality()));
    let passes = app
        .passes
        .iter()
        .map(|one| (one.guard.dependency(), one.guard.criticality()));
    app.contract.gateway.hints.criticality_from.is_some()
        || reads
            .chain(passes)
            .any(|(asked, matters)| asked.name() == dependency.name() && matters > criticality)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_that_refuses_when_busy_has_refusals_from_the_start_and_no_busy_stand_ins() {
        let mut reach = Reach {
            keeps: true,
            has_alternate: false,
            has_default: true,
            has_breaker: true,
            has_ramp: false,
            is_limited: true,
            has_queue: false,
            may_be_shed: false,
            refuses_when_busy: true,
            has_soft_timeout: false,
            cools_down: false,
            revalidates: false,
            has_fresh: false,
            busy_leads_down: false,
            is_protected: false,
        };
        let reached = |reach: &Reach, reason| {
            [
                Ending::Answered(Rung::Stale),
                Ending::Answered(Rung::Default),
                Ending::Refused,
            ]
            .map(|ending| reach.reaches(ending, Some(reason)))
        };
        for reason in [Reason::BreakerOpen, Reason::AtCapacity] {
            assert_eq!(reached(&reach, reason), [false, false, true], "{reason}");
        }
        for reason in [Reason::TimedOut, Reason::ProbeFailed] {
            assert_eq!(reached(&reach, reason), [true, true, false], "{reason}");
        }
        reach.refuses_when_busy = false;
        assert_eq!(reached(&reach, Reason::AtCapacity), [true, true, false]);
    }
}
