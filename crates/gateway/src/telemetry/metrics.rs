//! Decides what is exported at a scrape: every series, from the engine's own counters.
//! It exists as a collector, so that nothing is counted twice and the way of a request touches no registry.
//! It refuses to leave a reachable series out because it is still zero: alerts need the zero.

use std::{fmt, sync::Arc};

use evenkeel::{Class, Counts, Ending, Now, RampStep, Reason, Refreshed, Rung, Skipped, State};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, prometheus_text},
    metrics::{MetricType, exemplar::Exemplar},
    registry::Registry,
};

use super::{
    exercises,
    reach::Reach,
    series::{self, Kind, Series},
};
use crate::proxy::{App, Connections, Current, Validated, Why};

/// Exports the series of one gateway.
pub(crate) struct Metrics(Registry);

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    pub(crate) fn new(current: &Arc<Current>, connections: &Connections) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Source {
            current: Arc::clone(current),
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
struct Source {
    current: Arc<Current>,
    connections: Connections,
}

impl Collector for Source {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // One app for the whole scrape: its series belong together.
        let scrape = Scrape {
            app: self.current.app(),
            connections: &self.connections,
        };
        let mut out = Out(encoder);
        scrape.calls(&mut out)?;
        scrape.passes(&mut out)?;
        scrape.dependencies(&mut out)?;
        scrape.gateway(&mut out)
    }
}

#[derive(Debug)]
struct Scrape<'a> {
    app: Arc<App>,
    connections: &'a Connections,
}

impl Scrape<'_> {
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
        out.write(&series::EXERCISES, exercises::all(&self.app))?;
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
            let reach = Reach::without_rungs(passing.guard.dependency());
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
        super::addresses::write(&self.app, out)?;
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
        let now = self.app.process.engine.now();
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
        let (app, process) = (&self.app, &self.app.process);
        let one = |value: u64| std::iter::once((Vec::new(), value));
        out.write(&series::SNAPSHOTS, one(process.memory.count() as u64))?;
        out.write(&series::SNAPSHOT_BYTES, one(process.memory.bytes()))?;
        out.write(&series::SNAPSHOT_BYTES_LIMIT, one(process.memory.limit()))?;
        out.write(&series::SHELF_URIS, one(process.shelf.uris() as u64))?;
        out.write(&series::SHELF_BYTES, one(process.shelf.bytes()))?;
        out.write(&series::SHELF_BYTES_LIMIT, one(process.shelf.limit()))?;
        out.write(&series::SHELF_EVICTIONS, one(process.shelf.evicted()))?;
        out.write(&series::BUFFERED_BYTES, one(process.buffers.used() as u64))?;
        out.write(&series::REQUESTS_IN_FLIGHT, one(app.requests_in_flight() as u64))?;
        out.write(&series::CLIENT_CONNECTIONS, one(self.connections.count() as u64))?;
        let misdirected = process
            .misdirected()
            .map(|(kind, count)| (vec![kind.word()], count));
        out.write(&series::MISDIRECTED, misdirected)?;
        out.write(&series::EVENTS_LOST, one(process.engine.events_lost()))?;
        out.write(&series::LOG_LINES_LOST, one(process.log.lost()))?;
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
