//! Decides by which contract the gateway runs just now.
//! It exists so that a new contract takes over in one step, for everybody who looks after it and for nobody who looked before.
//! It refuses to change what somebody has taken: a request keeps the app of its start until its end.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::{app::App, process::Process};

/// The app that runs, and may be replaced by another of the same process.
#[derive(Debug)]
pub(crate) struct Current {
    process: Arc<Process>,
    app: ArcSwap<App>,
}

impl Current {
    pub(crate) fn new(app: App) -> Self {
        Self {
            process: Arc::clone(&app.process),
            app: ArcSwap::from_pointee(app),
        }
    }

    /// Returns the app that runs now. It stays whole for as long as it is held, also when another has taken over.
    pub(crate) fn app(&self) -> Arc<App> {
        self.app.load_full()
    }

    /// Returns what stays whatever app runs.
    pub(crate) const fn process(&self) -> &Arc<Process> {
        &self.process
    }
}
