//! Decides what `evenkeel check` says about a contract file.
//! It exists so that every problem is seen before anything runs, by the same code that would run it.
//! It refuses to open sockets: a check disturbs nothing.

use std::{path::Path, process::ExitCode};

use evenkeel::Engine;
use serde_json::json;

use super::{FAILED, UNUSABLE, complain, print};
use crate::{
    config::{self, Contract, Diagnostics, Loaded, NotLoaded},
    explain::{self, OfRoute},
    proxy::{App, Limits},
};

/// How a contract is checked, and what is printed.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    /// For programs.
    pub(super) json: bool,
    /// Warnings are problems.
    pub(super) strict: bool,
    /// Also what is in force, and what an outage would leave.
    pub(super) explain: bool,
}

pub(super) fn run(path: &Path, how: How) -> ExitCode {
    match checked(path, how) {
        Ok((loaded, routes)) => {
            let found = &loaded.diagnostics;
            match (how.json, routes) {
                (true, Some(routes)) => print(&format!(
                    "{:#}",
                    json!({ "found": found.json(), "routes": explain::json(&routes) })
                )),
                (true, None) => print(&format!("{:#}", found.json())),
                (false, routes) => {
                    warn(found);
                    let told = routes.map(|routes| explain::text(&routes)).unwrap_or_default();
                    print(&format!("{told}{}: {}", path.display(), summary(&loaded)));
                }
            }
            ExitCode::SUCCESS
        }
        Err(NotLoaded::Unreadable(why)) => {
            complain(&why);
            ExitCode::from(UNUSABLE)
        }
        Err(NotLoaded::Problems(found)) => {
            let found = if how.strict { found.strict() } else { found };
            if how.json {
                print(&format!("{:#}", found.json()));
            } else {
                complain(&found.to_string());
            }
            ExitCode::from(FAILED)
        }
    }
}

/// Reads a contract, and tells of its routes where that is wanted.
fn checked(path: &Path, how: How) -> Result<(Loaded, Option<Vec<OfRoute>>), NotLoaded> {
    let (mut loaded, app) = read(path)?;
    if how.strict && loaded.diagnostics.warnings() > 0 {
        return Err(NotLoaded::Problems(loaded.diagnostics));
    }
    if !how.explain {
        return Ok((loaded, None));
    }
    match explain::explain(&loaded, &app) {
        Ok(routes) => Ok((loaded, Some(routes))),
        Err(problems) => {
            loaded.diagnostics.absorb(&problems, &loaded.places);
            Err(NotLoaded::Problems(loaded.diagnostics))
        }
    }
}

/// Says how much there is of it.
fn summary(loaded: &Loaded) -> String {
    let counted = |count: usize, word: &str| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {word}{plural}")
    };
    let routes = counted(loaded.contract.routes.len(), "route");
    match loaded.diagnostics.warnings() {
        0 => format!("no problem, {routes}"),
        warnings => format!("no problem, {}, {routes}", counted(warnings, "warning")),
    }
}

fn warn(diagnostics: &Diagnostics) {
    if diagnostics.warnings() > 0 {
        complain(&diagnostics.to_string());
    }
}

/// Reads a contract and builds everything in it once, so that the engine's own rules are checked too.
fn read(path: &Path) -> Result<(Loaded, App), NotLoaded> {
    whole(config::load(path)?)
}

/// Builds everything in a contract once.
pub(super) fn whole(mut loaded: Loaded) -> Result<(Loaded, App), NotLoaded> {
    match App::build(&loaded.contract, &Engine::system(), Limits::default(), 1) {
        Ok(app) => Ok((loaded, app)),
        Err(problems) => {
            loaded.diagnostics.absorb(&problems, &loaded.places);
            Err(NotLoaded::Problems(loaded.diagnostics))
        }
    }
}

/// Reads a contract to serve it; what is wrong with it, and what it warns of, is printed.
pub(super) fn load(path: &Path) -> Result<Contract, NotLoaded> {
    loaded(path).map(|loaded| loaded.contract)
}

/// The same, with its text.
pub(super) fn loaded(path: &Path) -> Result<Loaded, NotLoaded> {
    let (loaded, _) = read(path).inspect_err(|not| match not {
        NotLoaded::Unreadable(why) => complain(why),
        NotLoaded::Problems(diagnostics) => complain(&diagnostics.to_string()),
    })?;
    warn(&loaded.diagnostics);
    Ok(loaded)
}
