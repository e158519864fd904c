//! Decides who may write in the directory of holds: one gateway at a time, told by a lock that ends with its process.
//! It exists because two gateways that write one file each lose the holds of the other and say that they are kept.
//! It refuses to give up: a directory that is not there, or another's, is tried anew with every change and every second.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use super::{Held, Target, kept};

/// The directory in which holds are kept over a restart.
#[derive(Debug)]
pub(super) struct State {
    directory: PathBuf,
    /// Held for as long as this gateway writes there.
    lock: Option<File>,
}

impl State {
    pub(super) fn at(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            lock: None,
        }
    }

    /// Returns the file of the holds.
    pub(super) fn holds(&self) -> PathBuf {
        self.directory.join("holds.json")
    }

    /// Makes the directory unless it is there, and becomes the one who writes in it.
    ///
    /// # Errors
    /// When it cannot be made, or another gateway writes there.
    pub(super) fn take(&mut self) -> io::Result<()> {
        let named = |error: io::Error| io::Error::other(format!("{}: {error}", self.directory.display()));
        kept::make(&self.directory).map_err(named)?;
        let path = self.directory.join("lock");
        if self.lock.as_ref().is_some_and(|lock| is_at(lock, &path)) {
            return Ok(());
        }
        self.lock = None;
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(named)?;
        match lock.try_lock() {
            Ok(()) => self.lock = Some(lock),
            Err(TryLockError::WouldBlock) => {
                return Err(named(io::Error::other(
                    "another gateway keeps its holds there; give each a directory of its own",
                )));
            }
            Err(TryLockError::Error(error)) => return Err(named(error)),
        }
        Ok(())
    }

    /// Keeps every hold.
    ///
    /// # Errors
    /// Why they are not kept; what was kept before is still there.
    pub(super) fn keep(&mut self, holds: &BTreeMap<Target, Held>) -> io::Result<()> {
        self.take()?;
        kept::write(&self.holds(), holds)
    }
}

/// Tells whether an open file is still the one of that name: a directory may have been removed and made anew.
fn is_at(open: &File, path: &Path) -> bool {
    let named = fs::metadata(path).map(|named| (named.dev(), named.ino())).ok();
    let held = open.metadata().map(|held| (held.dev(), held.ino())).ok();
    named.is_some() && named == held
}
