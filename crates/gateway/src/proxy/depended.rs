//! Decides how what a contract names as called becomes dependencies and resources of the library.
//! It exists apart from the app because what is there before has to be gone on with, piece by piece.
//! It refuses to change what is there: that is done when the whole app takes over.

use std::sync::Arc;

use evenkeel::{BreakerBuilder, Dependency, Engine, Problems, Resource};
use evenkeel_core::{BreakerRules, OpenFor};

use super::{app::App, health, upstream::Upstream};
use crate::config::{Breaker, Contract};

/// Makes the resources of a contract. One that was there before is the same, until the app takes over with its own capacity.
pub(super) fn resources(
    contract: &Contract,
    engine: &Engine,
    before: Option<&App>,
    problems: &mut Problems,
) -> Vec<Resource> {
    let mut built = Vec::new();
    for resource in &contract.resources {
        let known = before.and_then(|before| before.resource(&resource.name));
        if let Some(known) = known {
            built.push(known.clone());
            continue;
        }
        match engine.resource(&resource.name, resource.concurrency) {
            Ok(resource) => built.push(resource),
            Err(found) => problems.absorb("resources", found),
        }
    }
    built
}

/// Makes the dependencies of a contract: the same that was there before where nothing has changed, its successor where it is
/// at the same addresses, else a new one that has the name and what belongs to that.
pub(super) fn dependencies(
    contract: &Contract,
    engine: &Engine,
    resources: &[Resource],
    workers: usize,
    before: Option<&App>,
    problems: &mut Problems,
) -> Vec<(Dependency, Arc<Upstream>)> {
    let mut built = Vec::new();
    for dependency in &contract.dependencies {
        let known = before.and_then(|before| before.known(&dependency.name));
        if let Some((known, handle, upstream)) = known
            && known == dependency
        {
            built.push((handle.clone(), Arc::clone(upstream)));
            continue;
        }
        let mut builder = engine.dependency(&dependency.name).timeout(dependency.timeout);
        let upstream = match known {
            Some((known, handle, upstream)) if known.upstreams == dependency.upstreams => {
                builder = builder.succeeds(handle);
                upstream.succeeded_by(known, dependency, engine)
            }
            Some((_, handle, upstream)) => {
                builder = builder.replaces(handle);
                upstream.replaced_by(dependency, engine, workers)
            }
            None => Upstream::new(dependency, engine, workers),
        };
        // What is only watched is asked nothing that clients do not ask.
        let mut askers = contract
            .routes
            .iter()
            .filter(|route| route.from == dependency.name);
        let is_watched = askers.all(|route| route.observe_only);
        if let Some(health) = dependency.probe.as_ref().filter(|_| !is_watched) {
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
