//! Decides what is exported at a scrape: every series, from the engine's own counters.
//! It exists as a collector, so that nothing is counted twice and the way of a request touches no registry.
//! It refuses to leave a reachable series out because it is still zero: alerts need the zero.

use std::{fmt, sync::Arc};

use evenkeel::{
    Class, Counts, Dependency, Ending, Now, RampStep, Reason, Refreshed, Rung, Skipped, State, WhenBusy,
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, prometheus_text},
    metrics::{MetricType, exemplar::Exemplar},
    registry::Registry,
};

use super::series::{self, Kind, Series};
use crate::proxy::{App, Connections, Validated, Why};

/// Exports the series of one gateway.
pub(crate) struct Metrics(Registry);

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    pub(crate) fn new(app: &Arc<App>, connections: &Connections) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Scrape {
            app: Arc::clone(app),
            connections: connections.clone(),
        }));
        Self(registry)
    }

    /// Writes every series in the text format of Prometheus.
    pub(crate) fn text(&self) -> String {
        let mut text = String::with_capacity(16 << 10);
        // Writing to a `String` cannot fail.
        prometheus_text::encode(&mut text, &self.0).unwrap_or_default();
        text
    }
}

#[derive(Debug)]
struct Scrape {
    app: Arc<App>,
    connections: Connections,
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Out(encoder);
        self.calls(&mut out)?;
        self.passes(&mut out)?;
        super::protection::write(&self.app, &mut out)?;
        self.dependencies(&mut out)?;
        self.gateway(&mut out)
    }
}

impl Scrape {
    fn calls(&self, out: &mut Out<'_>) -> fmt::Result {
        let routes: Vec<(&str, Counts, Reach)> = self
            .app
            .routes
            .iter()
            .map(|route| (&*route.name, route.guard.counts(), Reach::of(route, &self.app)))
            .collect();
        let calls = routes.iter().flat_map(|(route, counts, reach)| {
            Ending::ALL
                .into_iter()
                .flat_map(move |ending| reasons().map(move |reason| (ending, reason)))
                .map(move |(ending, reason)| (ending, reason, counts.get(ending, reason)))
                .filter(move |(ending, reason, count)| *count > 0 || reach.reaches(*ending, *reason))
                .map(move |(ending, reason, count)| {
                    let rung = ending.rung().map_or("none", Rung::as_str);
                    let reason = reason.map_or("none", Reason::as_str);
                    (vec![*route, ending.as_str(), rung, reason], count)
                })
        });
        out.write(&series::CALLS, calls)?;
        let skipped = routes.iter().flat_map(|(route, counts, reach)| {
            Rung::ALL
                .into_iter()
                .flat_map(|rung| Skipped::ALL.into_iter().map(move |why| (rung, why)))
                .map(move |(rung, why)| (rung, why, counts.skipped(rung, why)))
                .filter(move |(rung, why, count)| *count > 0 || reach.skips(*rung, *why))
                .map(move |(rung, why, count)| (vec![*route, rung.as_str(), why.as_str()], count))
        });
        out.write(&series::SKIPPED, skipped)?;
        let not_kept = self
            .app
            .routes
            .iter()
            .zip(&routes)
            .flat_map(|(route, (name, counts, reach))| {
                // Two of the words are said by the store of snapshots as well as by the shelf.
                let by_the_store = |why| {
                    [
                        (Why::TooBig, evenkeel::NotKept::TooBig),
                        (Why::Superseded, evenkeel::NotKept::Superseded),
                    ]
                    .into_iter()
                    .find(|(own, _)| *own == why)
                    .map_or(0, |(_, theirs)| counts.not_kept(theirs))
                };
                Why::all()
                    .map(move |why| (why.as_str(), route.not_kept(why) + by_the_store(why)))
                    .filter(move |(_, count)| *count > 0 || reach.keeps)
                    .map(move |(why, count)| (vec![*name, why], count))
            });
        out.write(&series::NOT_KEPT, not_kept)?;
        let joined = routes
            .iter()
            .map(|(route, counts, _)| (vec![*route], counts.joined()));
        out.write(&series::JOINED, joined)?;
        let refreshes = routes.iter().flat_map(|(route, counts, reach)| {
            Refreshed::ALL
                .into_iter()
                .map(|end| (vec![*route, end.as_str()], counts.refreshes(end)))
                .filter(|(_, count)| *count > 0 || reach.revalidates)
        });
        out.write(&series::REFRESHES, refreshes)?;
        let validations = self.app.routes.iter().filter(|route| route.cache.is_some());
        let validations = validations.flat_map(|route| {
            Validated::ALL.map(|result| (vec![&*route.name, result.as_str()], route.validations(result)))
        });
        out.write(&series::VALIDATIONS, validations)
    }

    fn passes(&self, out: &mut Out<'_>) -> fmt::Result {
        let passes = self.app.passes.iter().flat_map(|passing| {
            let counts = passing.guard.counts();
            let reach = Reach {
                is_protected: self.app.protect_counts(&passing.name).is_some(),
                ..Reach::without_rungs(passing.guard.dependency())
            };
            Ending::ALL
                .into_iter()
                .filter(|ending| ending.rung().is_none_or(|rung| rung == Rung::Live))
                .flat_map(|ending| reasons().map(move |reason| (ending, reason)))
                .map(move |(ending, reason)| (ending, reason, counts.get(ending, reason)))
                .filter(move |(ending, reason, count)| *count > 0 || reach.reaches(*ending, *reason))
                .map(|(ending, reason, count)| {
                    let reason = reason.map_or("none", Reason::as_str);
                    (vec![&*passing.name, ending.as_str(), reason], count)
                })
        });
        out.write(&series::PASSES, passes)
    }

    fn dependencies(&self, out: &mut Out<'_>) -> fmt::Result {
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
        let queues = || all().filter_map(|one| Some((one, one.contract().queue()?.length)));
        let waiting = queues().map(|(one, _)| (vec![one.name()], u64::from(one.status().waiting)));
        out.write(&series::QUEUE_WAITING, waiting)?;
        let lengths = queues().map(|(one, length)| (vec![one.name()], u64::from(length)));
        out.write(&series::QUEUE_LIMIT, lengths)?;
        let with_retries = || all().filter(|one| one.contract().retry().is_some());
        let made = with_retries().map(|one| (vec![one.name()], one.retries().made));
        out.write(&series::RETRIES, made)?;
        let denied = with_retries().map(|one| (vec![one.name()], one.retries().denied));
        out.write(&series::RETRIES_DENIED, denied)?;
        let states = [State::Closed, State::Open, State::HalfOpen];
        let state = all().flat_map(|dependency| {
            let now = dependency.status().state;
            now.into_iter().flat_map(move |now| {
                states.map(|state| (vec![dependency.name(), state.as_str()], u64::from(state == now)))
            })
        });
        out.write(&series::BREAKER_STATE, state)?;
        let with_breaker = || all().filter(|dependency| dependency.status().state.is_some());
        let transitions = with_breaker().flat_map(|dependency| {
            states.map(|state| {
                (
                    vec![dependency.name(), state.as_str()],
                    dependency.transitions(state),
                )
            })
        });
        out.write(&series::BREAKER_TRANSITIONS, transitions)?;
        let now = self.app.engine.now();
        let probes = with_breaker().map(|dependency| {
            let at = dependency
                .status()
                .next_probe
                .map_or(0, |at| unix_seconds(now, at));
            (vec![dependency.name()], at)
        });
        out.write(&series::NEXT_PROBE, probes)?;
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
        let learning = metered().filter(|(_, contract, _)| contract.learn().is_some());
        let lingering = learning.map(|(name, _, status)| (vec![*name], u64::from(status.lingering)));
        out.write(&series::LINGERING, lingering)?;
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

    fn gateway(&self, out: &mut Out<'_>) -> fmt::Result {
        let app = &self.app;
        let one = |value: u64| std::iter::once((Vec::new(), value));
        out.write(&series::SNAPSHOTS, one(app.memory.count() as u64))?;
        out.write(&series::SNAPSHOT_BYTES, one(app.memory.bytes()))?;
        out.write(&series::SNAPSHOT_BYTES_LIMIT, one(app.memory.limit()))?;
        out.write(&series::SHELF_URIS, one(app.shelf.uris() as u64))?;
        out.write(&series::SHELF_BYTES, one(app.shelf.bytes()))?;
        out.write(&series::SHELF_BYTES_LIMIT, one(app.shelf.limit()))?;
        out.write(&series::SHELF_EVICTIONS, one(app.shelf.evicted()))?;
        out.write(&series::BUFFERED_BYTES, one(app.buffers.used() as u64))?;
        out.write(&series::REQUESTS_IN_FLIGHT, one(app.requests_in_flight() as u64))?;
        out.write(&series::CLIENT_CONNECTIONS, one(self.connections.count() as u64))?;
        let misdirected = app.misdirected().map(|(kind, count)| (vec![kind.word()], count));
        out.write(&series::MISDIRECTED, misdirected)?;
        out.write(&series::EVENTS_LOST, one(app.engine.events_lost()))?;
        out.write(&series::LOG_LINES_LOST, one(app.log.lost()))?;
        let lost = app.access.as_ref().map(|access| (Vec::new(), access.lost()));
        out.write(&series::ACCESS_LINES_LOST, lost.into_iter())?;
        let version = std::iter::once((vec![env!("CARGO_PKG_VERSION")], 1));
        out.write(&series::BUILD_INFO, version)
    }
}

/// Yields every reason, and none.
fn reasons() -> impl Iterator<Item = Option<Reason>> {
    std::iter::once(None).chain(Reason::ALL.into_iter().map(Some))
}

/// Returns a monotonic instant in whole seconds of Unix time, rounded up: a probe is never announced too early.
fn unix_seconds(now: Now, at: evenkeel::Mono) -> u64 {
    let wall = now.wall_of(at).as_nanos().saturating_add(999_999_999);
    u64::try_from(evenkeel::Wall::from_nanos(wall).as_secs()).unwrap_or(0)
}

/// What the calls of a route can come to, by its contract.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    keeps: bool,
    has_alternate: bool,
    has_default: bool,
    has_breaker: bool,
    has_ramp: bool,
    is_limited: bool,
    has_queue: bool,
    /// Another route of its dependency matters more.
    may_be_shed: bool,
    refuses_when_busy: bool,
    has_soft_timeout: bool,
    cools_down: bool,
    revalidates: bool,
    has_fresh: bool,
    is_protected: bool,
}

impl Reach {
    fn of(route: &crate::proxy::Route, app: &App) -> Self {
        let contract = route.guard.contract();
        let ladder = contract.ladder();
        let may_be_shed = app.routes.iter().any(|other| {
            other.guard.dependency().name() == route.guard.dependency().name()
                && other.guard.criticality() > route.guard.criticality()
        });
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

    /// What is left where nothing can stand in.
    pub(super) fn without_rungs(dependency: &Dependency) -> Self {
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
            is_protected: false,
        }
    }

    pub(super) fn reaches(&self, ending: Ending, reason: Option<Reason>) -> bool {
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
            Reason::Busy | Reason::Fault | Reason::Held => false,
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
                Ending::Refused => !(self.has_default && has_ladder) && reason != Reason::ErrorAnswer,
                Ending::Failed => {
                    !self.has_default && matches!(reason, Reason::ErrorAnswer | Reason::ProbeFailed)
                }
                Ending::Answered(Rung::Live | Rung::Fresh) | Ending::Abandoned | Ending::Cut => false,
            }
    }

    const fn skips(&self, rung: Rung, why: Skipped) -> bool {
        self.keeps
            && matches!(rung, Rung::Stale)
            && matches!(why, Skipped::NoSnapshot | Skipped::TooOld | Skipped::Forbidden)
    }
}

/// Writes series after series.
pub(super) struct Out<'e>(DescriptorEncoder<'e>);

impl Out<'_> {
    pub(super) fn write<'v>(
        &mut self,
        series: &Series,
        values: impl Iterator<Item = (Vec<&'v str>, u64)>,
    ) -> fmt::Result {
        let kind = match series.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
        };
        let mut encoder = self.0.encode_descriptor(series.name, series.help, None, kind)?;
        for (labels, value) in values {
            let labels: Vec<(&str, &str)> = series.labels.iter().copied().zip(labels).collect();
            let mut one = encoder.encode_family(&labels)?;
            match series.kind {
                Kind::Counter => one.encode_counter(&value, None::<&Exemplar<Vec<(&str, &str)>, f64>>)?,
                Kind::Gauge => one.encode_gauge(&value)?,
            }
        }
        Ok(())
    }
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
