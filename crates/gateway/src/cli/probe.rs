//! Decides what `evenkeel check --probe` prints: what would be kept of one answer, and why or why not.
//! It exists as the way from a low coverage to its cause: one address, asked once, as the gateway would.
//! It refuses to ask more than once, and to leave anything running.

use std::{path::Path, process::ExitCode};

use super::{FAILED, UNUSABLE, check, complain, print};
use crate::probe::{Asked, ask};

/// The arguments of a probe.
#[derive(Debug, clap::Args)]
pub(super) struct Flags {
    /// Ask for this address once, as clients ask the gateway, and say what would be kept
    #[arg(long, value_name = "URL", conflicts_with_all = ["strict", "explain"])]
    probe: Option<String>,
    /// The route that is meant to answer the probe
    #[arg(long, value_name = "NAME", requires = "probe")]
    route: Option<String>,
    /// A field of the probe's request, `name: value`; may be given again
    #[arg(long, value_name = "FIELD", requires = "probe")]
    header: Vec<String>,
}

impl Flags {
    /// Returns the probe that is asked for, if one is.
    pub(super) fn read(self, json: bool) -> Option<Probe> {
        Some(Probe {
            url: self.probe?,
            route: self.route,
            headers: self.header,
            json,
        })
    }
}

/// What is asked, as it was typed.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    pub(super) url: String,
    pub(super) route: Option<String>,
    pub(super) headers: Vec<String>,
    pub(super) json: bool,
}

pub(super) fn run(path: &Path, probe: Probe) -> ExitCode {
    match report(path, probe) {
        Ok((text, true)) => {
            print(&text);
            ExitCode::SUCCESS
        }
        Ok((text, false)) => {
            print(&text);
            ExitCode::from(FAILED)
        }
        Err(why) => {
            why.iter().for_each(|why| complain(why));
            ExitCode::from(UNUSABLE)
        }
    }
}

/// Returns what is printed, and whether the answer would stand in; the error has been printed where it is `None`.
fn report(path: &Path, probe: Probe) -> Result<(String, bool), Option<String>> {
    let asked = Asked::read(&probe.url, &probe.headers, probe.route).map_err(Some)?;
    let contract = check::load(path).map_err(|_| None)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Some(format!("cannot start a worker thread: {error}")))?;
    let report = runtime.block_on(ask(&contract, &asked));
    // A name that is being looked up sits in a thread that nobody can interrupt.
    runtime.shutdown_background();
    let report = report.map_err(|why| Some(format!("could not ask: {why}")))?;
    let text = if probe.json {
        report.to_json()
    } else {
        report.to_text()
    };
    Ok((text, report.would_stand_in()))
}
