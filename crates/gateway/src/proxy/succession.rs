//! Decides how the app of one contract takes the place of another: all at once, with everything that both share.
//! It exists because a reload is a change of rules, not a restart: who is in flight, what is known and what was counted stay.
//! It refuses to begin before the whole new app is there, and then it cannot fail.

use std::sync::Arc;

use evenkeel::{Dependency, Resource};
use serde_json::{Map, Value, json};

use super::{
    app::{App, Parts},
    served::Served,
    upstream::Upstream,
};
use crate::config;

/// What a change of contract has changed, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Routes that were not there before.
    pub routes_added: Vec<String>,
    /// Routes that are not there any more.
    pub routes_removed: Vec<String>,
    /// Routes that say something else than before, or whose dependency does.
    pub routes_changed: Vec<String>,
    /// Dependencies that were not there before.
    pub dependencies_added: Vec<String>,
    /// Dependencies that are not there any more.
    pub dependencies_removed: Vec<String>,
    /// Dependencies at the same addresses that go on by other rules, with their state.
    pub dependencies_carried: Vec<String>,
    /// Dependencies that are somewhere else now, and begin anew.
    pub dependencies_reset: Vec<String>,
    /// Routes whose hold the new contract forbids.
    pub holds_dropped: Vec<String>,
}

impl Changes {
    /// Yields each list with its name, in the order of the log.
    pub fn lists(&self) -> [(&'static str, &[String]); 8] {
        [
            ("routes-added", &self.routes_added),
            ("routes-removed", &self.routes_removed),
            ("routes-changed", &self.routes_changed),
            ("dependencies-added", &self.dependencies_added),
            ("dependencies-removed", &self.dependencies_removed),
            ("dependencies-carried", &self.dependencies_carried),
            ("dependencies-reset", &self.dependencies_reset),
            ("holds-dropped", &self.holds_dropped),
        ]
    }

    /// Writes them as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let members = self
            .lists()
            .map(|(name, list)| (name.replace('-', "_"), json!(list)));
        Value::Object(Map::from_iter(members))
    }
}

impl App {
    /// Takes the place of the app before: the rules of this one hold from now on, for what both share and for those who still
    /// wait by the other.
    pub(crate) fn take_over(&self, before: &Self) -> Changes {
        let process = &self.process;
        for (resource, declared) in self.resources.iter().zip(&self.contract.resources) {
            // The contract was checked: it is in range.
            drop(resource.set_limit(declared.concurrency));
        }
        process.make_room(&self.contract);
        for (dependency, upstream) in &self.dependencies {
            if let Some((_, known, old)) = before.known(dependency.name())
                && !known.is(dependency)
            {
                // First, so that whoever is let in by the new one finds its addresses.
                Upstream::hand_over(old, upstream);
                dependency.take_over(known);
            }
        }
        for route in &self.routes {
            if let Some(old) = before.routes.iter().find(|old| old.name == route.name) {
                old.hand_over(route);
            }
        }
        self.changes(before)
    }

    /// Compares both.
    fn changes(&self, before: &Self) -> Changes {
        let (new, old) = (&self.contract, &before.contract);
        let mut changes = Changes::default();
        for route in &new.routes {
            let name = &route.name;
            let Some(known) = before.served(name) else {
                changes.routes_added.push(name.clone());
                continue;
            };
            let served = self.served(name);
            if served.is_some_and(|served| !served.is(known)) {
                changes.routes_changed.push(name.clone());
            }
            if known.is_held() && served.is_some_and(|served| !served.is_held()) {
                changes.holds_dropped.push(name.clone());
            }
        }
        let gone = old
            .routes
            .iter()
            .filter(|route| self.served(&route.name).is_none());
        changes.routes_removed = gone.map(|route| route.name.clone()).collect();
        for dependency in &new.dependencies {
            let list = match old
                .dependencies
                .iter()
                .find(|known| known.name == dependency.name)
            {
                None => &mut changes.dependencies_added,
                Some(known) if known == dependency => continue,
                Some(known) if known.upstreams == dependency.upstreams => &mut changes.dependencies_carried,
                Some(_) => &mut changes.dependencies_reset,
            };
            list.push(dependency.name.clone());
        }
        let gone = old.dependencies.iter().filter(|known| {
            new.dependencies
                .iter()
                .all(|dependency| dependency.name != known.name)
        });
        changes.dependencies_removed = gone.map(|known| known.name.clone()).collect();
        changes
    }

    /// Returns the route of this name.
    pub(super) fn served(&self, name: &str) -> Option<&Served> {
        self.served
            .list
            .iter()
            .find(|served| served.name().is_some_and(|known| **known == *name))
    }

    /// Returns the resource of this name.
    pub(super) fn resource(&self, name: &str) -> Option<&Resource> {
        self.resources.iter().find(|resource| resource.name() == name)
    }

    /// Returns the dependency of this name, with what the contract says about it.
    pub(super) fn known(&self, name: &str) -> Option<(&config::Dependency, &Dependency, &Arc<Upstream>)> {
        let declared = self
            .contract
            .dependencies
            .iter()
            .find(|known| known.name == name)?;
        let (dependency, upstream) = self.dependencies.iter().find(|(known, _)| known.name() == name)?;
        Some((declared, dependency, upstream))
    }

    /// Returns what the contract says about the route of this name.
    fn declared(&self, name: &str) -> Option<&config::Route> {
        self.contract.routes.iter().find(|route| route.name == name)
    }
}

impl Served {
    /// Tells whether it can go on as it is: the contract says the same of it, and whom it asks is the same.
    pub(super) fn stays(&self, parts: &Parts<'_>, before: Option<&App>) -> bool {
        let Some(before) = before else { return false };
        let is_same = |dependency: &Dependency| {
            let known = before.known(dependency.name());
            known.is_some_and(|(_, known, _)| known.is(dependency))
        };
        let same_gate = parts.gate.is_none_or(|(authority, dependency, _)| {
            before.contract.authorities.contains(authority) && is_same(dependency)
        });
        let watched = self.observes.as_ref().and_then(|watched| watched.reads.as_ref());
        let mut told = self.reads.iter().chain(watched).map(|route| &route.told);
        let same_told = told.all(|told| *told == parts.told);
        let same_alternate = parts
            .alternate
            .as_ref()
            .is_none_or(|one| is_same(&one.dependency));
        same_gate
            && same_told
            && same_alternate
            && before.declared(&parts.route.name) == Some(parts.route)
            && is_same(parts.dependency)
    }

    fn is_held(&self) -> bool {
        self.reads
            .as_ref()
            .is_some_and(|route| route.guard.held().is_some())
            || self
                .passes
                .as_ref()
                .is_some_and(|passing| passing.guard.held().is_some())
    }

    fn is(&self, other: &Self) -> bool {
        same(self.reads.as_ref(), other.reads.as_ref())
            && same(self.passes.as_ref(), other.passes.as_ref())
            && same(self.gate.as_ref(), other.gate.as_ref())
            && same(self.observes.as_ref(), other.observes.as_ref())
    }
}

/// Tells whether both are there and the same object, or both are not there.
fn same<T>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    one.map(Arc::as_ptr) == other.map(Arc::as_ptr)
}
