//! Decides what a running gateway is made of: a contract turned into routes, dependencies, stores and counters.
//! It exists so that everything is built, or refused with every problem, before the first connection is taken.
//! It refuses to open sockets; the server does.

use std::{net::IpAddr, sync::Arc, time::Duration};

use evenkeel::{BreakerBuilder, Dependency, Engine, Problems, Resource, http::Shelf};
use evenkeel_core::{BalanceStatus, BreakerRules, OpenFor};
use evenkeel_http::hop::Via;

use super::{
    alternate::Alternate,
    health,
    identity::{Personal, Told},
    labels,
    limits::Limits,
    passing::Passing,
    process::Process,
    protect::{AtGate, Gate},
    route::{Common, Route},
    seat::Spreading,
    served::{AllServed, Served},
    upstream::Upstream,
};
use crate::{
    config::{self, Breaker, Class, Contract, Network},
    telemetry::{self, AccessLog, Blame, Outages},
};

/// A gateway without its sockets, as one contract wants it.
#[derive(Debug)]
pub struct App {
    /// What stays when another contract takes over.
    pub(crate) process: Arc<Process>,
    /// Where a line is written about each request; opened when the gateway starts.
    pub(crate) access: Option<AccessLog>,
    trusted: Vec<Network>,
    /// What reads.
    pub(crate) routes: Vec<Arc<Route>>,
    /// What only forwards.
    pub(crate) passes: Vec<Arc<Passing>>,
    /// What is decided before either.
    pub(crate) gates: Vec<Arc<Gate>>,
    /// What no client may say.
    pub(super) personal: Personal,
    pub(crate) dependencies: Vec<(Dependency, Arc<Upstream>)>,
    pub(crate) resources: Vec<Resource>,
    pub(super) served: AllServed,
}

impl App {
    /// Builds everything that a contract names, in a process of its own.
    ///
    /// # Errors
    /// Every problem that the engine finds, placed as in the file.
    pub fn build(
        contract: &Contract,
        engine: &Engine,
        limits: Limits,
        workers: usize,
    ) -> Result<Self, Problems> {
        Self::within(
            &Arc::new(Process::new(contract, engine, limits)),
            contract,
            workers,
        )
    }

    /// Builds everything that a contract names, in a process.
    ///
    /// # Errors
    /// Every problem that the engine finds, placed as in the file.
    pub(crate) fn within(
        process: &Arc<Process>,
        contract: &Contract,
        workers: usize,
    ) -> Result<Self, Problems> {
        process.store.keep_out(contract);
        let engine = &process.engine;
        let mut problems = Problems::default();
        let via = Via::new(labels::NAME).map_err(|error| {
            let mut problems = Problems::default();
            problems.add("gateway", &error.to_string(), "a token", "rename it");
            problems
        })?;
        let common = Common {
            engine: engine.clone(),
            memory: process.memory.clone(),
            shelf: process.shelf.clone(),
            buffers: process.buffers.clone(),
            limits: process.limits,
            via,
            since: Arc::clone(&process.since),
        };
        let resources = resources(contract, engine, &mut problems);
        let dependencies = dependencies(contract, engine, &resources, workers, &mut problems);
        let mut served = AllServed::default();
        for (index, route) in contract.routes.iter().enumerate() {
            // A route whose dependency has problems is not built: those are told, and are enough.
            let Some((dependency, upstream)) = dependencies
                .iter()
                .find(|(dependency, _)| dependency.name() == route.from)
            else {
                continue;
            };
            let named = |name: &str| {
                dependencies
                    .iter()
                    .find(|(dependency, _)| dependency.name() == name)
            };
            let alternate = match route.alternate().map(|alternate| named(&alternate.name)) {
                None => None,
                Some(Some((dependency, upstream))) => Some(Alternate {
                    dependency: dependency.clone(),
                    upstream: Arc::clone(upstream),
                }),
                Some(None) => continue,
            };
            let Ok(gate) = Gate::of(contract, route, &dependencies) else {
                continue;
            };
            let told = Told::of(contract, route);
            match serve((route, told), (dependency, upstream), alternate, gate, &common) {
                Ok(built) => {
                    let number = served.list.len();
                    served.router.add(&route.pattern, route.conditions.rank(), number);
                    served.list.push(built);
                }
                Err(found) => problems.absorb(&format!("routes[{index}]"), unwrapped(&found)),
            }
        }
        problems.or(Self {
            process: Arc::clone(process),
            access: None,
            trusted: contract.gateway.trusted_peers.clone(),
            routes: served.list.iter().filter_map(|one| one.reads.clone()).collect(),
            passes: served.list.iter().filter_map(|one| one.passes.clone()).collect(),
            gates: served.list.iter().filter_map(|one| one.gate.clone()).collect(),
            personal: Personal::of(contract),
            served,
            dependencies,
            resources,
        })
    }

    /// Returns the engine that everything runs on.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.process.engine
    }

    /// Returns the counters of what the route of this name only forwards.
    #[must_use]
    pub fn pass_counts(&self, route: &str) -> Option<evenkeel::Counts> {
        let passing = self.passes.iter().find(|known| *known.name == *route)?;
        Some(passing.guard.counts())
    }

    /// Returns the counters of the reads of the route of this name.
    #[must_use]
    pub fn counts(&self, route: &str) -> Option<evenkeel::Counts> {
        let route = self.routes.iter().find(|known| *known.name == *route)?;
        Some(route.guard.counts())
    }

    /// Returns what the decisions about requests of the route of this name came to.
    #[must_use]
    pub fn protect_counts(&self, route: &str) -> Option<evenkeel::ProtectCounts> {
        let gate = self.gates.iter().find(|known| *known.route == *route)?;
        Some(gate.guard.counts())
    }

    /// Returns the dependency of this name.
    #[must_use]
    pub fn dependency(&self, name: &str) -> Option<Dependency> {
        self.dependencies
            .iter()
            .map(|(dependency, _)| dependency)
            .find(|dependency| dependency.name() == name)
            .cloned()
    }

    /// Returns the dependency that a route asks.
    pub(crate) fn asks(&self, route: &str) -> Option<String> {
        let reads = self.routes.iter().find(|one| &*one.name == route);
        let passes = self.passes.iter().find(|one| &*one.name == route);
        let dependency = reads
            .map(|one| one.guard.dependency())
            .or_else(|| passes.map(|one| one.guard.dependency()));
        dependency.map(|one| one.name().to_owned())
    }

    /// Returns what can be held, as it is named.
    pub(crate) fn target_names(&self) -> Vec<String> {
        let routes = self.route_names().into_iter().map(|name| format!("route {name}"));
        let dependencies = self
            .dependencies
            .iter()
            .map(|(one, _)| format!("dependency {}", one.name()));
        routes.chain(dependencies).collect()
    }

    /// Returns the names of all routes, in the order of the contract.
    pub(crate) fn route_names(&self) -> Vec<String> {
        let named = self.served.list.iter().filter_map(Served::name);
        named.map(|name| name.to_string()).collect()
    }

    /// Returns how many connections to this dependency are idle.
    #[must_use]
    pub fn idle_connections(&self, name: &str) -> usize {
        self.dependencies
            .iter()
            .find(|(dependency, _)| dependency.name() == name)
            .map_or(0, |(_, upstream)| upstream.idle())
    }

    /// Returns the snapshots in use: how many, and their bytes.
    #[must_use]
    pub fn snapshots(&self) -> (usize, u64) {
        (self.process.memory.count(), self.process.memory.bytes())
    }

    /// Returns the shelf of the routes that cache.
    #[must_use]
    pub fn shelf(&self) -> &Shelf {
        &self.process.shelf
    }

    /// Returns how many attempts of the route of this name are shared right now, and how many keys are remembered as
    /// not shareable.
    #[must_use]
    pub fn flights(&self, route: &str) -> Option<(usize, usize)> {
        let route = self.routes.iter().find(|known| *known.name == *route)?;
        Some(route.guard.flights())
    }

    /// Returns the bytes of bodies that are being held back.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.process.buffers.used()
    }

    /// Writes what has happened since the last time to the log.
    pub(crate) fn log_events(&self, outages: &mut Outages) {
        for event in self.process.engine.drain_events() {
            if let Some(line) = outages.line(&event, |name, class| self.blame(name, class)) {
                self.process.log.line(&line);
            }
        }
        if let Some(store) = self.process.store.get() {
            store.log_events(&self.process.log);
        }
        let now = self.process.engine.now();
        for (route, turn) in self.process.standing.turned() {
            self.process.log.line(&telemetry::told(&route, &turn, now));
        }
        for (dependency, upstream) in &self.dependencies {
            for (at, event) in upstream.spreading().map(Spreading::take_news).unwrap_or_default() {
                let line =
                    telemetry::address_line(dependency.name(), upstream.labels(), now.wall_of(at), event);
                self.process.log.line(&line);
            }
        }
    }

    /// Returns what the addresses of this dependency look like, in the order of the contract; `None` where there is one
    /// and no rule to leave it out.
    #[must_use]
    pub fn addresses(&self, name: &str) -> Option<BalanceStatus> {
        let (_, upstream) = self.dependencies.iter().find(|(known, _)| known.name() == name)?;
        upstream.spreading().map(Spreading::status)
    }

    fn blame(&self, name: &str, class: Option<evenkeel::Class>) -> Blame {
        self.dependencies
            .iter()
            .find(|(dependency, _)| dependency.name() == name)
            .map_or_else(Blame::default, |(_, upstream)| upstream.blame(class))
    }

    /// Waits until every line about requests so far is written, for as long as `at_most`.
    pub(crate) fn flush_access(&self, at_most: Duration) {
        if let Some(access) = &self.access {
            access.flush(at_most);
        }
    }

    /// Looks where every route stands. Called every [`crate::telemetry::LOOK_EVERY`].
    pub(crate) fn look(&self) {
        let routes: Vec<_> = self.served.list.iter().filter_map(Served::counts).collect();
        let now = self.process.engine.now().mono;
        self.routes.iter().for_each(|route| route.oldest.turn(now));
        self.process.standing.look(now, &routes);
    }

    /// Looks after idle connections and windows of counters. Called every [`super::upstream::SWEEP_EVERY`].
    pub(crate) fn sweep(&self) {
        for (_, upstream) in &self.dependencies {
            upstream.sweep();
        }
        for route in &self.routes {
            route.tick();
        }
    }

    /// Tells whether the word of this peer about its clients counts.
    pub(super) fn trusts(&self, peer: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(peer))
    }

    /// Returns how many requests have arrived and have no answer yet.
    #[must_use]
    pub fn requests_in_flight(&self) -> usize {
        self.process.requests_in_flight()
    }
}

/// Builds both sides of a route, as far as it has them.
fn serve(
    (route, told): (&config::Route, Told),
    (dependency, upstream): (&Dependency, &Arc<Upstream>),
    alternate: Option<Alternate>,
    gate: Option<AtGate<'_>>,
    common: &Common,
) -> Result<Served, Problems> {
    let reads = match route.class {
        Class::Read => Some(Arc::new(Route::build(
            route,
            (dependency, upstream),
            alternate,
            common,
            told,
        )?)),
        Class::Pass => None,
    };
    let passes = route
        .passes()
        .then(|| Passing::build(route, dependency, upstream, common))
        .transpose()?;
    Ok(Served {
        reads,
        passes: passes.map(Arc::new),
        conditions: route.conditions.clone(),
        gate: gate
            .map(|(authority, dependency, upstream)| {
                Gate::build(route, authority, dependency, upstream, common).map(Arc::new)
            })
            .transpose()?,
    })
}

fn resources(contract: &Contract, engine: &Engine, problems: &mut Problems) -> Vec<Resource> {
    let mut built = Vec::new();
    for resource in &contract.resources {
        match engine.resource(&resource.name, resource.concurrency) {
            Ok(resource) => built.push(resource),
            Err(found) => problems.absorb("resources", found),
        }
    }
    built
}

fn dependencies(
    contract: &Contract,
    engine: &Engine,
    resources: &[Resource],
    workers: usize,
    problems: &mut Problems,
) -> Vec<(Dependency, Arc<Upstream>)> {
    let mut built = Vec::new();
    for dependency in &contract.dependencies {
        let upstream = Upstream::new(dependency, engine, workers);
        let mut builder = engine.dependency(&dependency.name).timeout(dependency.timeout);
        if let Some(health) = &dependency.probe {
            builder = builder.probe_with(health::probe(dependency, health, &upstream));
        }
        if let Some(permits) = dependency.concurrency {
            builder = builder.concurrency(permits);
        }
        if let Breaker::On(rules) = &dependency.breaker {
            builder = builder.breaker(|breaker| with_rules(breaker, rules));
        }
        if let Some(rules) = &dependency.ramp {
            builder = builder.ramp_rules(rules.clone());
        }
        if let Some(most) = dependency.abandoned {
            builder = builder.abandoned(most);
        }
        if let Some(rules) = dependency.queue {
            builder = builder.queue(rules.length, rules.longest_wait);
        }
        if let Some(rules) = dependency.retry {
            builder = builder.retry(rules);
        }
        if let Some(rules) = dependency.learned_limit {
            builder = builder.learned_limit(rules);
        }
        for (class, row) in &dependency.classify.rows {
            builder = builder.row(*class, *row);
        }
        for resource in resources {
            if dependency.uses.iter().any(|used| used == resource.name()) {
                builder = builder.uses(resource);
            }
        }
        match builder.build() {
            Ok(handle) => built.push((handle, upstream)),
            Err(found) => problems.absorb(&format!("dependencies.{}", dependency.name), found),
        }
    }
    built
}

/// Writes checked rules in the words of the library.
fn with_rules(mut breaker: BreakerBuilder, rules: &BreakerRules) -> BreakerBuilder {
    if let Some(failures) = rules.consecutive {
        breaker = breaker.consecutive(failures);
    }
    if let Some(ratio) = rules.ratio {
        breaker = breaker.failure_ratio_over(ratio.failures_ppm, ratio.window, ratio.min_calls);
    }
    if let Some(slow) = rules.slow {
        breaker = breaker.slow_ratio(slow.after, slow.slow_ppm, slow.window, slow.min_calls);
    }
    breaker = match rules.open_for {
        OpenFor::Manual => breaker.open_until_probed(),
        OpenFor::Timed {
            first,
            longest,
            jitter_ppm,
        } => breaker.open_for(first, longest).jitter(jitter_ppm),
    };
    if let Some(lease) = rules.lease {
        breaker = breaker.lease(lease);
    }
    breaker.probes(rules.probes).close_after(rules.close_after)
}

/// The engine places the problems of a guard under `read`; in a contract file they stand in the route itself.
fn unwrapped(found: &Problems) -> Problems {
    let mut problems = Problems::default();
    for problem in found.list() {
        let place = problem.place.strip_prefix("read.").unwrap_or(&problem.place);
        problems.add(place, &problem.seen, &problem.allowed, &problem.mend);
    }
    problems
}
