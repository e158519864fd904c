//! Decides what is written down of each change that a person asked for: when, who, from where, what, and what came of it.
//! It exists because "who switched that off" is asked on the next day, when the log is gone.
//! It refuses to be rewritten: lines are only ever added, of what was refused too.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
};

use evenkeel::Wall;
use serde_json::{Value, json};

use crate::telemetry::rfc3339;

/// The file; `None` where nothing is kept.
#[derive(Debug, Default)]
pub(super) struct Audit(Option<PathBuf>);

/// One change.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    /// The verb.
    pub(crate) what: &'a str,
    /// Who asked, in their own words.
    pub(crate) by: &'a str,
    /// From where.
    pub(crate) peer: &'a str,
    /// About what.
    pub(crate) target: &'a str,
    /// What was in force.
    pub(crate) before: Option<Value>,
    /// What is.
    pub(crate) after: Option<Value>,
    /// Why nothing was done.
    pub(crate) refused: Option<String>,
}

impl Audit {
    pub(super) const fn at(path: PathBuf) -> Self {
        Self(Some(path))
    }

    /// Adds a line, and waits until it is on the disk.
    ///
    /// # Errors
    /// Why it could not be written.
    pub(super) fn write(&self, at: Wall, entry: &Entry<'_>) -> Result<(), String> {
        let Some(path) = &self.0 else { return Ok(()) };
        let line = json!({
            "time": rfc3339(at),
            "what": entry.what,
            "by": entry.by,
            "peer": entry.peer,
            "target": entry.target,
            "before": entry.before,
            "after": entry.after,
            "result": if entry.refused.is_some() { "refused" } else { "done" },
            "why": entry.refused,
        });
        let add = || -> io::Result<()> {
            let mut file = fs::OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(path)?;
            // One write, so that lines of two writers do not mix.
            file.write_all(format!("{line}\n").as_bytes())?;
            file.sync_data()
        };
        add().map_err(|error| format!("not written down: {}: {error}", path.display()))
    }
}
