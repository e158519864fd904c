//! Decides by which contract the gateway runs just now.
//! It exists so that a new contract takes over in one step, for everybody who looks after it and for nobody who looked before.
//! It refuses to change what somebody has taken: a request keeps the app of its start until its end.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;

use super::{app::App, process::Process, succession::Changes};
use crate::reload::Reloader;

/// The app that runs, and may be replaced by another of the same process.
#[derive(Debug)]
pub(crate) struct Current {
    process: Arc<Process>,
    app: ArcSwap<App>,
    reloader: OnceLock<Arc<Reloader>>,
}

impl Current {
    pub(crate) fn new(app: App) -> Self {
        Self {
            process: Arc::clone(&app.process),
            app: ArcSwap::from_pointee(app),
            reloader: OnceLock::new(),
        }
    }

    /// Returns the app that runs now. It stays whole for as long as it is held, also when another has taken over.
    pub(crate) fn app(&self) -> Arc<App> {
        self.app.load_full()
    }

    /// Puts another app of the same process in the place of the one that runs, and returns what that has changed. Whoever calls
    /// this makes sure that nobody else does at the same time.
    pub(crate) fn replace(&self, app: App) -> Changes {
        let (process, app) = (&self.process, Arc::new(app));
        process.steering.carry(&app, process.engine.now(), || {
            let changes = app.take_over(&self.app());
            self.app.store(Arc::clone(&app));
            changes
        })
    }

    /// Returns what loads the contract anew; `None` where it came from no file.
    pub(crate) fn reloader(&self) -> Option<&Arc<Reloader>> {
        self.reloader.get()
    }

    /// Says what loads the contract anew, once.
    pub(crate) fn reload_by(&self, reloader: &Arc<Reloader>) {
        drop(self.reloader.set(Arc::clone(reloader)));
    }

    /// Returns what stays whatever app runs.
    pub(crate) const fn process(&self) -> &Arc<Process> {
        &self.process
    }
}
