//! Decides what does not fit together across the tables of a contract: what nobody uses, and whose deadline comes
//! before whose timeout.
//! It exists because such a mistake is in no single table, and shows only in the incident that it spoils.
//! It refuses to guess: where a route names nobody, or somebody who is not there, nothing is called unused.

use std::time::Duration;

use toml::{Spanned, de::DeValue};

use super::{
    lints,
    reader::Reader,
    route::{Route, name_of},
    units,
};

/// What the routes of a contract say about their dependencies, as far as it can be read.
#[derive(Debug, Default)]
pub(super) struct Askers(Vec<Asker>);

/// A route, as far as it concerns its dependency.
#[derive(Debug)]
pub(super) struct Asker {
    index: usize,
    name: Option<String>,
    from: Option<String>,
    /// Those that its ladder names.
    alternates: Vec<String>,
    pub(super) deadline: Duration,
}

impl Asker {
    /// Returns how problems name the route: by its place, and by its name where it has one.
    pub(super) fn label(&self) -> String {
        self.name.as_ref().map_or_else(
            || format!("routes[{}]", self.index),
            |name| format!("routes[{}] \"{}\"", self.index, name.escape_debug()),
        )
    }
}

impl Askers {
    /// Reads them; what is wrong with a route is told where routes are read.
    pub(super) fn of(
        routes: Option<&Spanned<DeValue<'_>>>,
        authorities: Option<&Spanned<DeValue<'_>>>,
    ) -> Self {
        let list = routes.and_then(|routes| routes.get_ref().as_array());
        let read = |(index, route): (usize, &Spanned<DeValue<'_>>)| {
            let text = |key: &str| text_of(route, key);
            Asker {
                index,
                name: name_of(route).map(str::to_owned),
                from: text("from"),
                alternates: alternates(route),
                deadline: text("deadline")
                    .and_then(|text| units::duration(&text).ok())
                    .unwrap_or(Route::DEADLINE),
            }
        };
        let list: Vec<_> = list.into_iter().flatten().enumerate().collect();
        let mut askers: Vec<Asker> = list.iter().copied().map(read).collect();
        // A route that is protected asks the dependency of its authority too, within the same deadline.
        for (index, route) in list {
            if let Some(name) = text_of(route, "authorize") {
                let authority = tables(authorities)
                    .into_iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, value)| value);
                let own = authority.and_then(|value| text_of(value, "deadline"));
                let route = read((index, route));
                askers.push(Asker {
                    from: authority.and_then(|value| text_of(value, "from")),
                    deadline: own
                        .and_then(|text| units::duration(&text).ok())
                        .map_or(route.deadline, |own| own.min(route.deadline)),
                    ..route
                });
            }
        }
        Self(askers)
    }

    /// Returns the route with the shortest deadline of those that ask this dependency.
    pub(super) fn most_pressed(&self, dependency: &str) -> Option<&Asker> {
        self.0
            .iter()
            .filter(|asker| asker.from.as_deref() == Some(dependency))
            .min_by_key(|asker| asker.deadline)
    }

    /// Adds a problem for each dependency that no route asks.
    pub(super) fn refuse_unused(&self, reader: &mut Reader<'_>, dependencies: Option<&Spanned<DeValue<'_>>>) {
        let names = tables(dependencies);
        let is_known = |named: &String| names.iter().any(|(name, _)| named == name);
        let all_known = |asker: &Asker| {
            asker.from.as_ref().is_some_and(is_known) && asker.alternates.iter().all(is_known)
        };
        if !self.0.iter().all(all_known) {
            return;
        }
        for (name, value) in &names {
            let is_alternate = self.0.iter().any(|asker| asker.alternates.contains(name));
            if self.most_pressed(name).is_none() && !is_alternate {
                reader.lint(
                    lints::UNUSED,
                    &format!("dependencies.{name}"),
                    value.span(),
                    "asked by no route",
                    "dependencies that a route names in `from`, or as an alternate: others would have no effect",
                    &format!("add `from = \"{name}\"` to the route that should ask it, or remove it"),
                );
            }
        }
    }
}

/// Adds a problem for each resource that no dependency uses.
pub(super) fn refuse_unused_resources(
    reader: &mut Reader<'_>,
    resources: Option<&Spanned<DeValue<'_>>>,
    dependencies: Option<&Spanned<DeValue<'_>>>,
) {
    let names = tables(resources);
    let used: Vec<&str> = tables(dependencies)
        .iter()
        .filter_map(|(_, value)| value.get_ref().as_table()?.get("uses")?.get_ref().as_array())
        .flatten()
        .filter_map(|used| used.get_ref().as_str())
        .collect();
    let is_known = |used: &&str| names.iter().any(|(name, _)| name == *used);
    if !used.iter().all(is_known) {
        return;
    }
    for (name, value) in &names {
        if !used.contains(&name.as_str()) {
            reader.lint(
                lints::UNUSED,
                &format!("resources.{name}"),
                value.span(),
                "used by no dependency",
                "resources that a dependency names in `uses`: others would have no effect",
                &format!("add `uses = [\"{name}\"]` to the dependencies that draw on it, or remove it"),
            );
        }
    }
}

/// Returns the text under a key of a table.
fn text_of(table: &Spanned<DeValue<'_>>, key: &str) -> Option<String> {
    let value = table.get_ref().as_table()?.get(key)?;
    value.get_ref().as_str().map(str::to_owned)
}

/// Returns the dependencies that the ladder of a route names, as far as it can be read.
fn alternates(route: &Spanned<DeValue<'_>>) -> Vec<String> {
    let ladder = route.get_ref().as_table().and_then(|route| route.get("ladder"));
    ladder
        .and_then(|ladder| ladder.get_ref().as_array())
        .into_iter()
        .flatten()
        .filter_map(|rung| rung.get_ref().as_table()?.get("alternate")?.get_ref().as_str())
        .map(str::to_owned)
        .collect()
}

/// Returns what stands in a table of named things.
fn tables<'t>(value: Option<&'t Spanned<DeValue<'t>>>) -> Vec<(String, &'t Spanned<DeValue<'t>>)> {
    value
        .and_then(|value| value.get_ref().as_table())
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.get_ref().clone().into_owned(), value))
        .collect()
}
