//! Decides what `evenkeel check` says about a contract file.
//! It exists so that every problem is seen before anything runs, by the same code that would run it.
//! It refuses to open sockets: a check disturbs nothing.

use std::{path::Path, process::ExitCode};

use evenkeel::Engine;

use super::{FAILED, UNUSABLE, complain, print};
use crate::{
    config::{self, Contract, Diagnostics, Loaded, NotLoaded},
    proxy::{App, Limits},
};

/// How a contract is checked, and what is printed.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    /// For programs.
    pub(super) json: bool,
    /// Warnings are problems.
    pub(super) strict: bool,
}

pub(super) fn run(path: &Path, how: How) -> ExitCode {
    let loaded = match read(path) {
        Ok(loaded) if how.strict && loaded.diagnostics.warnings() > 0 => {
            Err(NotLoaded::Problems(loaded.diagnostics.clone()))
        }
        other => other,
    };
    match loaded {
        Ok(loaded) if how.json => {
            print(&format!("{:#}", loaded.diagnostics.json()));
            ExitCode::SUCCESS
        }
        Ok(loaded) => {
            warn(&loaded.diagnostics);
            print(&format!("{}: {}", path.display(), summary(&loaded)));
            ExitCode::SUCCESS
        }
        Err(NotLoaded::Unreadable(why)) => {
            complain(&why);
            ExitCode::from(UNUSABLE)
        }
        Err(NotLoaded::Problems(diagnostics)) => {
            let diagnostics = if how.strict {
                diagnostics.strict()
            } else {
                diagnostics
            };
            if how.json {
                print(&format!("{:#}", diagnostics.json()));
            } else {
                complain(&diagnostics.to_string());
            }
            ExitCode::from(FAILED)
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
pub(super) fn read(path: &Path) -> Result<Loaded, NotLoaded> {
    let mut loaded = config::load(path)?;
    if let Err(problems) = App::build(&loaded.contract, &Engine::system(), Limits::default(), 1) {
        loaded.diagnostics.absorb(&problems, &loaded.places);
        return Err(NotLoaded::Problems(loaded.diagnostics));
    }
    Ok(loaded)
}

/// Reads a contract to serve it; what is wrong with it, and what it warns of, is printed.
pub(super) fn load(path: &Path) -> Result<Contract, NotLoaded> {
    let loaded = read(path).inspect_err(|not| match not {
        NotLoaded::Unreadable(why) => complain(why),
        NotLoaded::Problems(diagnostics) => complain(&diagnostics.to_string()),
    })?;
    warn(&loaded.diagnostics);
    Ok(loaded.contract)
}
