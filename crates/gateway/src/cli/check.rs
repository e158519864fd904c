//! Decides what `evenkeel check` says about a contract file.
//! It exists so that every problem is seen before anything runs, by the same code that would run it.
//! It refuses to open sockets: a check disturbs nothing.

use std::{fs, path::Path, process::ExitCode};

use evenkeel::Engine;

use super::{FAILED, UNUSABLE, complain, print};
use crate::{
    config::{self, Contract},
    proxy::{App, Limits},
};

pub(super) fn run(path: &Path) -> ExitCode {
    match load(path) {
        Ok(contract) => {
            let routes = contract.routes.len();
            let plural = if routes == 1 { "" } else { "s" };
            print(&format!("{}: no problem, {routes} route{plural}", path.display()));
            ExitCode::SUCCESS
        }
        Err(NotLoaded::Problems) => ExitCode::from(FAILED),
        Err(NotLoaded::Unreadable) => ExitCode::from(UNUSABLE),
    }
}

/// Why there is no contract. What is wrong has been printed; what it means for the verb is the verb's to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotLoaded {
    /// The file cannot be read.
    Unreadable,
    /// It has problems.
    Problems,
}

/// Reads a contract and builds everything in it once, so that the engine's own rules are checked too.
pub(super) fn load(path: &Path) -> Result<Contract, NotLoaded> {
    let text = fs::read_to_string(path).map_err(|error| {
        complain(&format!(
            "cannot read {}: {error}; name a contract, a TOML file in UTF-8",
            path.display()
        ));
        NotLoaded::Unreadable
    })?;
    let name = path.display().to_string();
    let loaded = config::parse(&name, &text).map_err(|diagnostics| {
        complain(&diagnostics.to_string());
        NotLoaded::Problems
    })?;
    let mut diagnostics = loaded.diagnostics;
    if let Err(problems) = App::build(&loaded.contract, &Engine::system(), Limits::default(), 1) {
        diagnostics.absorb(&problems, &loaded.places);
        complain(&diagnostics.to_string());
        return Err(NotLoaded::Problems);
    }
    Ok(loaded.contract)
}
