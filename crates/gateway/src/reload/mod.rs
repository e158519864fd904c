//! Decides how a running gateway goes over to another contract: read whole, built whole, and swapped once, or not at all.
//! It exists so that a contract is changed without a lost request, and a mistake in it changes nothing but the log.
//! It refuses to run twice at once: who asks while a reload runs shares the one that follows.

mod last_good;
mod loaded;
mod refused;
mod watch;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use evenkeel::Problems;
use tokio::sync::Mutex;

pub use last_good::LastGood;
pub use loaded::{Reload, Reloads};
pub use refused::Refused;

use crate::{
    config::{self, Gateway, Loaded, NotLoaded, Store, units::show_duration},
    proxy::{App, Changes, Current},
    telemetry::{AccessLog, Level},
};

/// Who asked for a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// SIGHUP.
    Signal,
    /// A file has changed.
    File,
    /// The administration port.
    Admin,
}

impl Trigger {
    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::File => "file",
            Self::Admin => "admin",
        }
    }
}

/// What a reload came to.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The contract is another one now.
    Reloaded(Changes),
    /// The files say what they said before.
    Unchanged,
    /// The contract of before goes on.
    Refused(Refused),
}

impl Outcome {
    /// Returns what it counts as.
    #[must_use]
    pub const fn counts_as(&self) -> Reload {
        match self {
            Self::Reloaded(_) => Reload::Reloaded,
            Self::Unchanged => Reload::Unchanged,
            Self::Refused(_) => Reload::Refused,
        }
    }
}

/// Loads the contract of one gateway anew, whoever asks for it.
#[derive(Debug)]
pub struct Reloader {
    current: Weak<Current>,
    path: PathBuf,
    workers: usize,
    last_good: Option<LastGood>,
    /// How often somebody has asked.
    asked: AtomicU64,
    turn: Mutex<Turn>,
}

/// What the reload before has done.
#[derive(Debug, Default)]
struct Turn {
    /// Whoever asked as this one or earlier shares its outcome.
    answers: u64,
    outcome: Option<Arc<Outcome>>,
    /// The files that it has read, as far as it got.
    files: Vec<PathBuf>,
}

impl Reloader {
    pub(crate) fn new(
        current: &Arc<Current>,
        path: &Path,
        workers: usize,
        last_good: Option<LastGood>,
        files: Vec<PathBuf>,
    ) -> Self {
        Self {
            current: Arc::downgrade(current),
            path: path.to_owned(),
            workers,
            last_good,
            asked: AtomicU64::new(0),
            turn: Mutex::new(Turn {
                files,
                ..Turn::default()
            }),
        }
    }

    /// Reads the contract and goes over to it if nothing is wrong with it. Requests under way end by the contract by which
    /// they began; a retry, or a call that waits for a permit, asks the newest addresses next.
    ///
    /// A caller who leaves does not stop it. `None` when the gateway is gone, or stops.
    pub async fn reload(self: &Arc<Self>, trigger: Trigger) -> Option<Arc<Outcome>> {
        let ticket = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let reloader = Arc::clone(self);
        let turn = tokio::spawn(async move { reloader.in_turn(ticket, trigger).await });
        turn.await.ok().flatten()
    }

    async fn in_turn(self: Arc<Self>, ticket: u64, trigger: Trigger) -> Option<Arc<Outcome>> {
        let mut turn = self.turn.lock().await;
        if turn.answers >= ticket {
            // One that began after this was asked for has ended meanwhile.
            return turn.outcome.clone();
        }
        let current = self.current.upgrade()?;
        if current.process().is_stopping() {
            return None;
        }
        let answers = self.asked.load(Ordering::SeqCst);
        let reloader = Arc::clone(&self);
        let of = Arc::clone(&current);
        // Reading and checking takes as long as it takes, and must not hold up requests.
        let ended = tokio::task::spawn_blocking(move || reloader.run(&of)).await;
        let (outcome, files) = ended.unwrap_or_else(|broken| {
            let why = format!("the check of the contract broke: {broken}");
            (Outcome::Refused(Refused::unreadable(&self.path, why)), Vec::new())
        });
        self.tell(&current, &outcome, trigger);
        let outcome = Arc::new(outcome);
        turn.answers = answers;
        turn.outcome = Some(Arc::clone(&outcome));
        if !files.is_empty() {
            turn.files = files;
        }
        Some(outcome)
    }

    /// Does it, on a thread that may wait. Returns the files that were read, too.
    fn run(&self, current: &Current) -> (Outcome, Vec<PathBuf>) {
        let before = current.app();
        let mut loaded = match config::load(&self.path) {
            Ok(loaded) => loaded,
            Err(NotLoaded::Unreadable(why)) => {
                return (Outcome::Refused(Refused::unreadable(&self.path, why)), Vec::new());
            }
            Err(NotLoaded::Problems(found)) => {
                let files = found
                    .sources()
                    .files()
                    .map(|(name, _)| PathBuf::from(name))
                    .collect();
                return (Outcome::Refused(Refused::of(&found)), files);
            }
        };
        let files = std::mem::take(&mut loaded.files);
        let reloads = &current.process().reloads;
        if loaded.contract == *before.contract {
            self.keep(current, &loaded);
            reloads.note_loaded(&loaded, current.process().engine.now().wall);
            return (Outcome::Unchanged, files);
        }
        let built = needs_no_restart(&before.contract.gateway, &loaded.contract.gateway)
            .and_then(|()| {
                store_needs_no_restart(before.contract.store.as_ref(), loaded.contract.store.as_ref())
            })
            .and_then(|()| App::within(&before.process, &loaded.contract, self.workers, Some(&before)))
            .and_then(|app| with_access_log(app, &before));
        match built {
            Ok(app) => {
                let changes = current.replace(app);
                reloads.note_loaded(&loaded, current.process().engine.now().wall);
                self.keep(current, &loaded);
                (Outcome::Reloaded(changes), files)
            }
            Err(problems) => {
                loaded.diagnostics.absorb(&problems, &loaded.places);
                (Outcome::Refused(Refused::of(&loaded.diagnostics)), files)
            }
        }
    }

    /// Keeps a contract that serves for a start at which there is none that can be loaded.
    fn keep(&self, current: &Current, loaded: &Loaded) {
        let Some(last_good) = &self.last_good else { return };
        if let Err(error) = last_good.keep(loaded) {
            let (path, error) = (last_good.path().display().to_string(), error.to_string());
            let fields = [("file", path.as_str()), ("error", error.as_str())];
            current
                .process()
                .log
                .note(Level::Warn, "last-good-not-kept", &fields);
        }
    }

    /// Keeps the contract that the gateway has started with.
    pub(crate) fn started(&self, loaded: &Loaded) {
        if let Some(current) = self.current.upgrade() {
            self.keep(&current, loaded);
        }
    }

    fn tell(&self, current: &Current, outcome: &Outcome, trigger: Trigger) {
        let process = current.process();
        process.reloads.count(outcome.counts_as());
        if let Outcome::Refused(refused) = outcome {
            let now = process.engine.now().wall;
            process.reloads.note_refused(&refused.at, refused.problems, now);
        }
        let log = &process.log;
        let mut fields = vec![("trigger", trigger.as_str())];
        match outcome {
            Outcome::Unchanged => log.note(Level::Info, "reload-unchanged", &fields),
            Outcome::Reloaded(changes) => {
                let hash = process.reloads.hash();
                let lists = changes.lists().map(|(name, list)| (name, list.join(",")));
                let told = lists.iter().filter(|(_, list)| !list.is_empty());
                fields.push(("hash", &hash));
                fields.extend(told.map(|(name, list)| (*name, list.as_str())));
                log.note(Level::Info, "reloaded", &fields);
            }
            Outcome::Refused(refused) => {
                let problems = refused.problems.to_string();
                fields.extend([
                    ("at", refused.at.as_str()),
                    ("problem", refused.first.as_str()),
                    ("problems", problems.as_str()),
                ]);
                log.note(Level::Error, "reload-refused", &fields);
            }
        }
    }

    async fn files(&self) -> Vec<PathBuf> {
        self.turn.lock().await.files.clone()
    }
}

/// What was bound, and how many threads there are, cannot change while the process runs.
fn needs_no_restart(now: &Gateway, wanted: &Gateway) -> Result<(), Problems> {
    let mut problems = Problems::default();
    let mut compare = |key: &str, now: String, wanted: String| {
        if now != wanted {
            problems.add(
                &format!("gateway.{key}"),
                &wanted,
                &format!("{now}, for as long as this process runs"),
                "take it back, or restart the gateway",
            );
        }
    };
    let workers =
        |count: Option<usize>| count.map_or_else(|| "one per core".to_owned(), |count| count.to_string());
    compare(
        "listen",
        format!("\"{}\"", now.listen),
        format!("\"{}\"", wanted.listen),
    );
    compare(
        "admin",
        format!("\"{}\"", now.admin),
        format!("\"{}\"", wanted.admin),
    );
    compare("workers", workers(now.workers), workers(wanted.workers));
    let path = |path: &Option<PathBuf>| {
        path.as_ref()
            .map_or_else(|| "nothing".to_owned(), |path| format!("{path:?}"))
    };
    let (now, wanted) = (&now.steering, &wanted.steering);
    compare("state", path(&now.state), path(&wanted.state));
    compare(
        "admin_token_file",
        path(&now.admin_token_file),
        path(&wanted.admin_token_file),
    );
    let address = |address: Option<SocketAddr>| {
        address.map_or_else(|| "nothing".to_owned(), |address| format!("\"{address}\""))
    };
    compare("metrics", address(now.metrics), address(wanted.metrics));
    problems.or(())
}

/// The file of the store is opened once.
fn store_needs_no_restart(now: Option<&Store>, wanted: Option<&Store>) -> Result<(), Problems> {
    let mut problems = Problems::default();
    if now != wanted {
        let shown = |store: Option<&Store>| {
            store.map_or_else(
                || "nothing".to_owned(),
                |store| {
                    let Store { path, max, backlog, timeout, clock_skew } = store;
                    let (timeout, clock_skew) = (show_duration(*timeout), show_duration(*clock_skew));
                    format!("path {path:?}, max {max}B, backlog {backlog}B, timeout {timeout}, clock_skew {clock_skew}")
                },
            )
        };
        let allowed = format!("{}, for as long as this process runs", shown(now));
        problems.add(
            "store",
            &shown(wanted),
            &allowed,
            "take it back, or restart the gateway",
        );
    }
    problems.or(())
}

/// Goes on with the access log, or opens the other one.
fn with_access_log(mut app: App, before: &App) -> Result<App, Problems> {
    let wanted = &app.contract.gateway.access_log;
    if *wanted == before.contract.gateway.access_log {
        app.access.clone_from(&before.access);
        return Ok(app);
    }
    match AccessLog::open(wanted, &app.process.engine) {
        Ok(access) => {
            app.access = access;
            Ok(app)
        }
        Err(error) => {
            let mut problems = Problems::default();
            problems.add(
                "gateway.access_log",
                &format!("{wanted:?}: {error}"),
                "a file in a directory that this user may write to",
                "name another, or give the user the right",
            );
            Err(problems)
        }
    }
}
