//! Decides what is told of a contract beside its problems: what is in force on each route, and what an outage would leave.
//! It exists so that nobody learns in an incident what was promised, by default or in which file.
//! It refuses rules of its own: settings are those that were read, endings those that the engine comes to.

mod outage;
mod print;
mod settings;

use evenkeel::Problems;
use serde_json::{Value, json};

pub use outage::{Outcome, Outlook};
pub use settings::{Setting, Source};

use crate::{
    config::{Class, Loaded},
    proxy::App,
};

/// What is told of one route.
#[derive(Clone, Debug)]
pub struct OfRoute {
    /// Its name.
    pub name: String,
    /// What is in force on it.
    pub settings: Vec<Setting>,
    /// Who decides about its requests, and what is in force there.
    pub authority: Option<(String, Vec<Setting>)>,
    /// What is in force for the dependencies that it asks, the first one first, and that of the authority last.
    pub dependencies: Vec<OfDependency>,
    /// What would be served if each of them were gone.
    pub outlooks: Vec<Outlook>,
}

/// What is told of one dependency.
#[derive(Clone, Debug)]
pub struct OfDependency {
    /// Its name.
    pub name: String,
    /// What is in force for it.
    pub settings: Vec<Setting>,
    /// What an attempt comes to: its class, what that does to the breaker, and whether a lower rung may answer.
    pub classes: Vec<(&'static str, &'static str, bool)>,
}

/// Tells of every route of a contract, by the gateway that was built from it.
///
/// # Errors
/// What the engine finds wrong with a route; nothing, after a check.
pub fn explain(loaded: &Loaded, app: &App) -> Result<Vec<OfRoute>, Problems> {
    let routes = loaded.contract.routes.iter().enumerate();
    routes
        .map(|(index, route)| {
            let mut authorities = loaded.contract.authorities.iter();
            let authority = authorities.find(|other| Some(&other.name) == route.authorize.as_ref());
            let asked = outage::asked(route).into_iter();
            let dependencies = asked
                .chain(authority.map(|authority| authority.from.as_str()))
                .map(|name| OfDependency {
                    name: name.to_owned(),
                    settings: settings::of_dependency(loaded, name),
                    classes: outage::classes(app, name),
                })
                .collect();
            let mut outlooks = match route.class {
                Class::Read => outage::of_read(app, route)?,
                Class::Pass => outage::of_pass(route),
            };
            outlooks.extend(authority.map(|authority| outage::of_authority(&authority.from)));
            Ok(OfRoute {
                name: route.name.clone(),
                settings: settings::of_route(loaded, index),
                authority: authority.map(|authority| {
                    (
                        authority.name.clone(),
                        settings::of_authority(loaded, &authority.name),
                    )
                }),
                dependencies,
                outlooks,
            })
        })
        .collect()
}

/// Writes it for people: a screen for each route.
#[must_use]
pub fn text(routes: &[OfRoute]) -> String {
    let mut told = Vec::new();
    routes
        .iter()
        .map(|route| print::route(route, &mut told))
        .collect()
}

/// Writes it for programs; `docs/reference/check.md` says what is in it.
#[must_use]
pub fn json(routes: &[OfRoute]) -> Value {
    let settings = |settings: &[Setting]| -> Value {
        let one = |setting: &Setting| {
            let source = match &setting.source {
                Source::Written { file, line } => json!({ "file": file, "line": line }),
                Source::Default => json!("default"),
                Source::Off => json!("off"),
            };
            json!({ "key": setting.key, "value": setting.value, "source": source })
        };
        settings.iter().map(one).collect()
    };
    let class = |(class, breaker, lower): &(&str, &str, bool)| json!({ "class": class, "breaker": breaker, "lower_rung": lower });
    let outcome = |outcome: &Outcome| {
        json!({
            "with": outcome.with,
            "breaker_open": outcome.breaker_open,
            "rung": outcome.rung.map(|rung| rung.as_str()),
            "status": outcome.status,
            "reason": outcome.reason.map(|reason| reason.as_str()),
            "skipped": outcome.skipped.iter().map(|(rung, why)| json!({ "rung": rung.as_str(), "why": why.as_str() })).collect::<Vec<_>>(),
        })
    };
    let route = |route: &OfRoute| {
        json!({
            "route": route.name,
            "settings": settings(&route.settings),
            "authority": route.authority.as_ref().map(|(name, of)| json!({ "name": name, "settings": settings(of) })),
            "dependencies": route.dependencies.iter().map(|dependency| json!({
                "name": dependency.name,
                "settings": settings(&dependency.settings),
                "classes": dependency.classes.iter().map(class).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "if_gone": route.outlooks.iter().map(|outlook| json!({
                "gone": outlook.gone,
                "outcomes": outlook.outcomes.iter().map(outcome).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        })
    };
    routes.iter().map(route).collect()
}
