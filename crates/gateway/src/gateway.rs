//! Decides how a gateway starts and stops: everything is built and bound first, then served, then drained.
//! It exists so that the command line, the demo and the tests start the same thing.
//! It refuses to start half: a contract with problems or an address in use starts nothing.

use std::{fmt, io, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use evenkeel::{Engine, Problems};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    admin::{Admin, Token},
    config::{self, Contract, Loaded},
    proxy::{App, Connections, Current, Limits, SWEEP_EVERY, Stop, serve, serve_with},
    reload::{LastGood, Reloader, Reloads},
    steering,
    telemetry::{AccessLog, LOOK_EVERY, Level, Log, Metrics},
};

/// So long the store may write its last lines, whatever is left of the drain.
const STORE_END_MIN: Duration = Duration::from_millis(200);
/// Connections to the administration port at once.
const ADMIN_CONNECTIONS: usize = 64;

/// A running gateway. Dropping it closes its listeners; [`Gateway::stop`] also waits for what runs.
#[derive(Debug)]
pub struct Gateway {
    current: Arc<Current>,
    address: SocketAddr,
    admin: SocketAddr,
    metrics: Option<SocketAddr>,
    stop: Arc<Stop>,
    /// The administration is there until the last answer has gone out.
    stop_admin: Arc<Stop>,
    connections: Connections,
    serving: JoinHandle<()>,
    others: Vec<JoinHandle<()>>,
}

/// Why a gateway did not start.
#[derive(Debug)]
pub enum StartError {
    /// The engine found problems in the contract.
    Contract(Problems),
    /// An address could not be bound.
    Bind(SocketAddr, io::Error),
    /// The token for changes could not be read.
    Token(String),
    /// No thread could be started for the store.
    Store(io::Error),
    /// The access log could not be opened.
    AccessLog(config::AccessLog, io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contract(problems) => problems.fmt(f),
            Self::Bind(address, error) => write!(
                f,
                "cannot listen on {address}: {error}; choose a free address of this machine"
            ),
            Self::Token(error) => write!(
                f,
                "cannot use gateway.admin_token_file: {error}; write a token of at least 16 characters to the file, as \
                 `openssl rand -hex 32` makes one, and let this user read it"
            ),
            Self::Store(error) => write!(
                f,
                "cannot start the threads of the store: {error}; raise the limit of threads"
            ),
            Self::AccessLog(named, error) => write!(
                f,
                "cannot open gateway.access_log {named:?}: {error}; name a file in a directory that this user may write to"
            ),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Contract(problems) => Some(problems),
            Self::Token(_) => None,
            Self::Bind(_, error) | Self::AccessLog(_, error) | Self::Store(error) => Some(error),
        }
    }
}

/// Returns the worker threads of a contract: as declared, else one per available core.
#[must_use]
pub fn workers(contract: &Contract) -> usize {
    contract
        .gateway
        .workers
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

impl Gateway {
    /// Starts a gateway in the runtime of the caller.
    ///
    /// # Errors
    /// [`StartError`]; then nothing runs.
    pub async fn start(contract: &Contract, engine: &Engine, limits: Limits) -> Result<Self, StartError> {
        let mut app =
            App::build(contract, engine, limits, workers(contract)).map_err(StartError::Contract)?;
        let access = &contract.gateway.access_log;
        app.access =
            AccessLog::open(access, engine).map_err(|error| StartError::AccessLog(access.clone(), error))?;
        let current = Arc::new(Current::new(app));
        let settings = &contract.gateway.steering;
        if let Some(state) = &settings.state {
            let process = current.process();
            let now = engine.now();
            process.steering.open(state, now, &process.log);
            process.steering.carry(&current.app(), now, || ());
        }
        let (listener, address) = bind(contract.gateway.listen).await?;
        let (admin_listener, admin) = bind(contract.gateway.admin).await?;
        let reading = match settings.metrics {
            None => None,
            Some(wanted) => Some(bind(wanted).await?),
        };
        let token = Token::of(settings.admin_token_file.as_deref(), admin)
            .map_err(|error| StartError::Token(error.to_string()))?;
        let process = current.process();
        if let Some(why) = token.missing() {
            process.log.note(Level::Warn, "no-admin-token", &[("error", why)]);
        }
        // What can be refused comes before this: from here on something runs.
        process
            .store
            .start(contract.store.as_ref(), engine, &process.memory, &process.shelf)
            .map_err(StartError::Store)?;
        let (stop, stop_admin) = (Arc::new(Stop::default()), Arc::new(Stop::default()));
        let connections = Connections::new(limits.connections);
        let serving = tokio::spawn(serve(
            listener,
            Arc::clone(&current),
            connections.clone(),
            Arc::clone(&stop),
        ));
        let metrics = Metrics::new(&current, &connections);
        let administered = Arc::new(Admin::new(&current, metrics, token, address));
        let readers = Arc::clone(&administered);
        let admin_serving = tokio::spawn(serve_with(
            admin_listener,
            current.process().log.clone(),
            limits,
            Connections::new(ADMIN_CONNECTIONS),
            Arc::clone(&stop_admin),
            move |peer, request| {
                let administered = Arc::clone(&administered);
                async move { administered.answer(peer, request).await }
            },
        ));
        let metrics = reading.map(|(listener, address)| {
            let reader = tokio::spawn(serve_with(
                listener,
                current.process().log.clone(),
                limits,
                Connections::new(ADMIN_CONNECTIONS),
                Arc::clone(&stop_admin),
                move |_, request| std::future::ready(readers.answer_reader(&request)),
            ));
            (reader, address)
        });
        let (reading, metrics) = metrics.unzip();
        let mut others = vec![
            admin_serving,
            tokio::spawn(every(SWEEP_EVERY, Arc::clone(&current), App::sweep)),
            tokio::spawn(steering::watch(Arc::clone(&current))),
            tokio::spawn(every(LOOK_EVERY, Arc::clone(&current), App::look)),
        ];
        others.extend(reading);
        Ok(Self {
            current,
            address,
            admin,
            metrics,
            stop,
            stop_admin,
            connections,
            serving,
            others,
        })
    }

    /// Has the contract be loaded anew from its file: see [`Reloader`]. `loaded` is what this gateway was started with; where
    /// `last_good` is given each contract that serves is kept there. A gateway has one reloader, from the first call on.
    pub fn follow(&mut self, path: &Path, loaded: &Loaded, last_good: Option<LastGood>) -> Arc<Reloader> {
        if let Some(known) = self.current.reloader() {
            return Arc::clone(known);
        }
        let process = self.current.process();
        process.reloads.note_loaded(loaded, process.engine.now().wall);
        let workers = workers(&loaded.contract);
        let files = loaded.files.clone();
        let reloader = Arc::new(Reloader::new(&self.current, path, workers, last_good, files));
        self.current.reload_by(&reloader);
        self.others.push(tokio::spawn(Arc::clone(&reloader).watch()));
        reloader
    }

    /// Returns which contract runs.
    #[must_use]
    pub fn reloads(&self) -> &Reloads {
        &self.current.process().reloads
    }

    /// Returns where clients connect.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns where metrics and health are read.
    #[must_use]
    pub const fn admin_address(&self) -> SocketAddr {
        self.admin
    }

    /// Returns where metrics are read beside the administration port, if the contract says so.
    #[must_use]
    pub const fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Returns where its lines go.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.current.process().log
    }

    pub(crate) fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current)
    }

    /// Returns what runs inside now. Another may take its place at any time.
    #[must_use]
    pub fn app(&self) -> Arc<App> {
        self.current.app()
    }

    /// Stops: no new connections, answers under way are finished for as long as `drain`, and the rest is left to
    /// the end of the runtime. `true` if nothing was left.
    pub async fn stop(self, drain: Duration) -> bool {
        self.current.process().note_stopping();
        self.stop.tell();
        let began = tokio::time::Instant::now();
        let drained = self.connections.drained(drain).await;
        self.stop_admin.tell();
        if let Some(store) = self.current.process().store.get() {
            // Within the same bound; a moment is left also where the connections took all of it.
            store
                .end(drain.saturating_sub(began.elapsed()).max(STORE_END_MIN))
                .await;
        }
        drained
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop.tell();
        self.stop_admin.tell();
        self.serving.abort();
        for task in &self.others {
            task.abort();
        }
    }
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |error| StartError::Bind(address, error);
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

async fn every(period: Duration, current: Arc<Current>, work: fn(&App)) {
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        work(&current.app());
    }
}
