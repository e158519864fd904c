//! Decides when a file of the contract has changed: when time, size or identity is another, and stays so for a second.
//! It exists as a look once a second, which also sees links that are swapped and files that are renamed over others.
//! It refuses to read a file that is still being written.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::{Reloader, Trigger};

/// How often the files are looked at.
pub(crate) const WATCH_EVERY: Duration = Duration::from_secs(1);

/// What tells one state of a file from another; `None` where there is none.
type Stamp = Option<(u64, u64, u64, i64, i64)>;

fn stamp(path: &Path) -> Stamp {
    let found = std::fs::metadata(path).ok()?;
    Some((
        found.dev(),
        found.ino(),
        found.size(),
        found.mtime(),
        found.mtime_nsec(),
    ))
}

fn stamps(files: Vec<PathBuf>) -> Vec<(PathBuf, Stamp)> {
    files
        .into_iter()
        .map(|file| {
            let found = stamp(&file);
            (file, found)
        })
        .collect()
}

impl Reloader {
    /// Looks at the files for as long as the gateway runs, and reloads when they have changed, while the contract that runs
    /// says so with `gateway.watch`.
    pub(crate) async fn watch(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(WATCH_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut known: Option<Vec<(PathBuf, Stamp)>> = None;
        let mut changed: Option<Vec<(PathBuf, Stamp)>> = None;
        loop {
            ticks.tick().await;
            let Some(current) = self.current.upgrade() else {
                return;
            };
            let watches = current.app().contract.gateway.watch;
            drop(current);
            if !watches {
                (known, changed) = (None, None);
                continue;
            }
            let mut files = self.files().await;
            if !files.contains(&self.path) {
                files.push(self.path.clone());
            }
            // A file system that hangs holds up no request.
            let Ok(seen) = tokio::task::spawn_blocking(move || stamps(files)).await else {
                continue;
            };
            let Some(before) = &known else {
                known = Some(seen);
                continue;
            };
            if *before == seen {
                changed = None;
            } else if changed.as_ref() == Some(&seen) {
                self.reload(Trigger::File).await;
                // Other files may be part of it now; those that stay are known as they were when they were read.
                let files = self.files().await;
                known = Some(with_new(seen, files).await);
                changed = None;
            } else {
                changed = Some(seen);
            }
        }
    }
}

/// Keeps what is known of files, and looks at those that have come.
async fn with_new(known: Vec<(PathBuf, Stamp)>, files: Vec<PathBuf>) -> Vec<(PathBuf, Stamp)> {
    let is_new = |file: &PathBuf| known.iter().all(|(known, _)| known != file);
    let new: Vec<PathBuf> = files.iter().filter(|file| is_new(file)).cloned().collect();
    let found = tokio::task::spawn_blocking(move || stamps(new))
        .await
        .unwrap_or_default();
    let all = known.into_iter().chain(found);
    let mut all: Vec<(PathBuf, Stamp)> = all.collect();
    let order = |file: &PathBuf| files.iter().position(|known| known == file).unwrap_or(usize::MAX);
    all.retain(|(file, _)| files.contains(file));
    all.sort_by_key(|(file, _)| order(file));
    all
}
