//! Decides how `evenkeel serve` runs: load, start, wait for a signal, drain, end.
//! It exists as the one place where the process, its signals and its log are handled.
//! It refuses to start with a contract that has a problem.

use std::{path::Path, process::ExitCode, time::Duration};

use evenkeel::Engine;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{FAILED, UNUSABLE, check, complain, files};
use crate::{
    Gateway,
    config::Contract,
    proxy::Limits,
    telemetry::{Level, Outages},
    workers,
};

/// How often changes of state are written to the log.
const EVENTS_EVERY: Duration = Duration::from_millis(200);
/// How long the last lines may take to be written before the process ends without them.
const FLUSH_MAX: Duration = Duration::from_secs(1);

pub(super) fn run(path: &Path) -> ExitCode {
    let Ok(contract) = check::load(path) else {
        return ExitCode::from(UNUSABLE);
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers(&contract))
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(serve(&contract));
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

async fn serve(contract: &Contract) -> ExitCode {
    let engine = Engine::system();
    let limits = files::fit(Limits::default());
    let started = async {
        let signals = Signals::new().map_err(|error| format!("cannot wait for signals: {error}"))?;
        let gateway = Gateway::start(contract, &engine, limits)
            .await
            .map_err(|error| error.to_string())?;
        Ok::<_, String>((signals, gateway))
    };
    let (mut signals, gateway) = match started.await {
        Ok(started) => started,
        Err(why) => {
            complain(&why);
            return ExitCode::from(UNUSABLE);
        }
    };
    let (log, current) = (gateway.log().clone(), gateway.current());
    log.note(
        Level::Info,
        "started",
        &[
            ("listen", &gateway.address().to_string()),
            ("admin", &gateway.admin_address().to_string()),
            ("version", env!("CARGO_PKG_VERSION")),
            ("workers", &workers(contract).to_string()),
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
    let mut outages = Outages::default();
    let mut ticks = tokio::time::interval(EVENTS_EVERY);
    let name = loop {
        tokio::select! {
            name = signals.next() => break name,
            _ = ticks.tick() => current.app().log_events(&mut outages),
        }
    };
    current.app().log_events(&mut outages);
    log.note(Level::Info, "stopping", &[("signal", name)]);
    let drained = tokio::select! {
        drained = gateway.stop(contract.gateway.drain) => drained,
        _ = signals.next() => false,
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

/// The signals that mean "stop".
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "terminate",
            _ = self.interrupt.recv() => "interrupt",
        }
    }
}
