//! Decides how `evenkeel serve` runs: load, start, wait for a signal, drain, end.
//! It exists as the one place where the process, its signals and its log are handled.
//! It refuses to start with a contract that has a problem; it falls back to the last good one, unless told not to.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use evenkeel::Engine;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{FAILED, UNUSABLE, check, complain, files};
use crate::{
    Gateway,
    config::{Contract, Loaded, NotLoaded},
    proxy::Limits,
    reload::{LastGood, Trigger},
    telemetry::{Level, Log, Outages},
    workers,
};

/// How often changes of state are written to the log.
const EVENTS_EVERY: Duration = Duration::from_millis(200);
/// How long the last lines may take to be written before the process ends without them.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// What is to be served, and what else was said about it.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// The contract file.
    pub(super) contract: PathBuf,
    /// Where the last good contract is kept, if not beside it.
    pub(super) last_good: Option<PathBuf>,
    /// There is no last good contract: none is kept, and none is served.
    pub(super) no_fallback: bool,
}

/// A contract that can be served.
struct Found {
    loaded: Loaded,
    last_good: Option<LastGood>,
    /// Why it is not the one in the file.
    instead_of: Option<String>,
}

pub(super) fn run(wanted: &Wanted) -> ExitCode {
    let Some(found) = find(wanted) else {
        return ExitCode::from(UNUSABLE);
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers(&found.loaded.contract))
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(serve(&wanted.contract, &found));
            // A name being looked up sits in a thread that nobody can interrupt; the stop does not wait for it.
            runtime.shutdown_background();
            code
        }
        Err(error) => {
            complain(&format!("cannot start worker threads: {error}"));
            ExitCode::from(UNUSABLE)
        }
    }
}

/// Loads the contract, or in its place the last one that has served. What is wrong is printed.
fn find(wanted: &Wanted) -> Option<Found> {
    let last_good =
        (!wanted.no_fallback).then(|| LastGood::of(&wanted.contract, wanted.last_good.as_deref()));
    let why = match check::loaded(&wanted.contract) {
        Ok(loaded) => {
            return Some(Found {
                loaded,
                last_good,
                instead_of: None,
            });
        }
        Err(NotLoaded::Unreadable(why)) => why,
        Err(NotLoaded::Problems(found)) => {
            let plural = if found.problems() == 1 { "" } else { "s" };
            format!(
                "{} problem{plural} in {}",
                found.problems(),
                wanted.contract.display()
            )
        }
    };
    let last_good = last_good.filter(|last_good| last_good.path().exists())?;
    let kept = last_good.load().and_then(|loaded| {
        check::whole(loaded)
            .map(|(loaded, _)| loaded)
            .map_err(|not| match not {
                NotLoaded::Unreadable(why) => why,
                NotLoaded::Problems(found) => found.to_string(),
            })
    });
    match kept {
        Ok(loaded) => Some(Found {
            loaded,
            last_good: Some(last_good),
            instead_of: Some(why),
        }),
        Err(none) => {
            complain(&format!(
                "and no last good contract can be served in its place: {none}"
            ));
            None
        }
    }
}

async fn serve(path: &Path, found: &Found) -> ExitCode {
    let engine = Engine::system();
    let limits = files::fit(Limits::default());
    let contract = &found.loaded.contract;
    let started = async {
        let signals = Signals::new().map_err(|error| format!("cannot wait for signals: {error}"))?;
        let gateway = Gateway::start(contract, &engine, limits)
            .await
            .map_err(|error| error.to_string())?;
        Ok::<_, String>((signals, gateway))
    };
    let (mut signals, mut gateway) = match started.await {
        Ok(started) => started,
        Err(why) => {
            complain(&why);
            return ExitCode::from(UNUSABLE);
        }
    };
    let (log, current) = (gateway.log().clone(), gateway.current());
    let reloader = gateway.follow(path, &found.loaded, found.last_good.clone());
    tell_start(&log, &gateway, contract, &limits);
    match &found.instead_of {
        None => reloader.started(&found.loaded),
        Some(why) => {
            gateway.reloads().note_fallback(why);
            let kept = found.last_good.as_ref().map(LastGood::path).unwrap_or(path);
            let fields = [("serves", &*kept.display().to_string()), ("because", &**why)];
            log.note(Level::Error, "last-good", &fields);
        }
    }
    let mut outages = Outages::default();
    let mut ticks = tokio::time::interval(EVENTS_EVERY);
    let name = loop {
        tokio::select! {
            told = signals.next() => match told {
                Told::Stop(name) => break name,
                Told::Reload => {
                    let reloader = Arc::clone(&reloader);
                    tokio::spawn(async move { reloader.reload(Trigger::Signal).await });
                }
            },
            _ = ticks.tick() => current.app().log_events(&mut outages),
        }
    };
    current.app().log_events(&mut outages);
    log.note(Level::Info, "stopping", &[("signal", name)]);
    let drain = current.app().contract.gateway.drain;
    let drained = {
        let mut stopping = std::pin::pin!(gateway.stop(drain));
        loop {
            tokio::select! {
                drained = &mut stopping => break drained,
                told = signals.next() => if let Told::Stop(_) = told { break false },
            }
        }
    };
    current.app().log_events(&mut outages);
    let (level, word) = if drained {
        (Level::Info, "yes")
    } else {
        (Level::Warn, "no")
    };
    log.note(level, "stopped", &[("drained", word)]);
    log.flush(FLUSH_MAX);
    current.app().flush_access(FLUSH_MAX);
    if drained {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    }
}

fn tell_start(log: &Log, gateway: &Gateway, contract: &Contract, limits: &Limits) {
    log.note(
        Level::Info,
        "started",
        &[
            ("listen", &gateway.address().to_string()),
            ("admin", &gateway.admin_address().to_string()),
            ("version", env!("CARGO_PKG_VERSION")),
            ("workers", &workers(contract).to_string()),
            ("contract", &gateway.reloads().hash()),
            ("connections", &limits.connections.to_string()),
        ],
    );
    // Against the RFC on purpose, so it is said aloud (rule X2).
    for route in &contract.routes {
        let set_aside = route.caching.iter().flat_map(|caching| &caching.set_aside);
        let words: Vec<&str> = set_aside.map(|prohibition| prohibition.as_str()).collect();
        if !words.is_empty() {
            let fields = [("route", &*route.name), ("sets-aside", &*words.join(","))];
            log.note(Level::Warn, "override", &fields);
        }
    }
}

/// The signals that mean something.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

/// What a signal means.
enum Told {
    Stop(&'static str),
    Reload,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::Stop("terminate"),
            _ = self.interrupt.recv() => Told::Stop("interrupt"),
            _ = self.hangup.recv() => Told::Reload,
        }
    }
}
