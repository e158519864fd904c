//! Decides what a running gateway is made of: a contract turned into routes, dependencies, stores and counters.
//! It exists so that everything is built, or refused with every problem, before the first connection is taken.
//! It refuses to open sockets; the server does.

use std::{net::IpAddr, sync::Arc, time::Duration};

use evenkeel::{Dependency, Engine, Problems, Resource, http::Shelf};
use evenkeel_core::BalanceStatus;
use evenkeel_http::hop::Via;

use super::{
    alternate::Alternate,
    depended,
    hints::Hints,
    identity::{Personal, Told},
    labels,
    limits::Limits,
    observing::Observing,
    passing::Passing,
    process::Process,
    protect::{AtGate, Gate},
    route::{Common, Route},
    seat::Spreading,
    served::{AllServed, Served},
    upstream::Upstream,
};
use crate::{
    config::{self, Class, Contract, Network},
    telemetry::{self, AccessLog, Blame, Outages},
};

/// A gateway without its sockets, as one contract wants it.
#[derive(Debug)]
pub struct App {
    /// What stays when another contract takes over.
    pub(crate) process: Arc<Process>,
    /// What it was built from.
    pub(crate) contract: Arc<Contract>,
    /// Where a line is written about each request; opened when the gateway starts.
    pub(crate) access: Option<AccessLog>,
    trusted: Vec<Network>,
    /// What reads.
    pub(crate) routes: Vec<Arc<Route>>,
    /// What only forwards.
    pub(crate) passes: Vec<Arc<Passing>>,
    /// What is only watched.
    pub(crate) observed: Vec<Arc<Observing>>,
    /// What is decided before either.
    pub(crate) gates: Vec<Arc<Gate>>,
    /// What no client may say.
    pub(super) personal: Personal,
    /// What else is read of requests.
    pub(crate) hints: Hints,
    pub(crate) dependencies: Vec<(Dependency, Arc<Upstream>)>,
    pub(crate) resources: Vec<Resource>,
    pub(super) served: Arc<AllServed>,
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
            None,
        )
    }

    /// Builds everything that a contract names, in a process. What the app before has in common with it is shared, and
    /// changes only when this one [takes over](super::succession).
    ///
    /// # Errors
    /// Every problem that the engine finds, placed as in the file.
    pub(crate) fn within(
        process: &Arc<Process>,
        contract: &Contract,
        workers: usize,
        before: Option<&Self>,
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
        let resources = depended::resources(contract, engine, before, &mut problems);
        let dependencies =
            depended::dependencies(contract, engine, &resources, workers, before, &mut problems);
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
            let parts = Parts {
                route,
                told,
                dependency,
                upstream,
                alternate,
                gate,
            };
            let known = before.and_then(|before| before.served(&route.name));
            let same = known.filter(|known| known.stays(&parts, before));
            match same.map_or_else(|| serve(parts, known, &common), |known| Ok(known.clone())) {
                Ok(built) => {
                    served.add(&route.pattern, built);
                }
                Err(found) => problems.absorb(&format!("routes[{index}]"), unwrapped(&found)),
            }
        }
        problems.or(Self {
            process: Arc::clone(process),
            contract: Arc::new(contract.clone()),
            access: None,
            trusted: contract.gateway.trusted_peers.clone(),
            routes: served.list.iter().filter_map(|one| one.reads.clone()).collect(),
            passes: served.list.iter().filter_map(|one| one.passes.clone()).collect(),
            observed: served
                .list
                .iter()
                .filter_map(|one| one.observes.clone())
                .collect(),
            gates: served.list.iter().filter_map(|one| one.gate.clone()).collect(),
            personal: Personal::of(contract),
            hints: Hints::new(
                &contract.gateway.hints,
                process.engine.draw_seed(),
                before.map(|before| &before.hints),
            ),
            served: Arc::new(served),
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

/// What a route is made of.
pub(super) struct Parts<'a> {
    pub(super) route: &'a config::Route,
    pub(super) told: Told,
    pub(super) dependency: &'a Dependency,
    pub(super) upstream: &'a Arc<Upstream>,
    pub(super) alternate: Option<Alternate>,
    pub(super) gate: Option<AtGate<'a>>,
}

/// Builds both sides of a route, as far as it has them.
fn serve(parts: Parts<'_>, before: Option<&Served>, common: &Common) -> Result<Served, Problems> {
    let Parts {
        route,
        told,
        dependency,
        upstream,
        alternate,
        gate,
    } = parts;
    let asked = (dependency, upstream);
    let gated = before.and_then(|before| before.gate.as_deref());
    let gate = gate
        .map(|at| Gate::build(route, at, gated, common).map(Arc::new))
        .transpose()?;
    if route.observe_only {
        let watched = before.and_then(|before| before.observes.as_deref());
        let forwarded = before.and_then(|before| before.passes.as_deref());
        let (forward, observing) = Observing::build((route, told), asked, (watched, forwarded), common)?;
        return Ok(Served {
            reads: None,
            passes: Some(Arc::new(forward)),
            observes: Some(Arc::new(observing)),
            conditions: route.conditions.clone(),
            // Watching opens nothing.
            gate,
        });
    }
    let reads = match route.class {
        Class::Read => {
            let before = before.and_then(|before| before.reads.as_deref());
            Some(Arc::new(Route::build(
                route, asked, alternate, before, common, told,
            )?))
        }
        Class::Pass => None,
    };
    let forwarded = before.and_then(|before| before.passes.as_deref());
    // What was forwarded while it was only watched is not what this came to.
    let forwarded = forwarded.filter(|before| !before.is_quiet);
    let passes = route
        .passes()
        .then(|| Passing::build(route, dependency, upstream, forwarded, common))
        .transpose()?;
    Ok(Served {
        reads,
        passes: passes.map(Arc::new),
        observes: None,
        conditions: route.conditions.clone(),
        gate,
    })
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
