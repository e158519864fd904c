//! Decides what is written down of each change that a person asked for: when, who, from where, what, and what came of it.
//! It exists because "who switched that off" is asked on the next day, when the log is gone.
//! It refuses to be rewritten: lines are only ever added, of what was refused too.

use std::{
    fs,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
};

use evenkeel::Wall;
use serde_json::{Value, json};

use super::kept;
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
            if let Some(directory) = path.parent() {
                kept::make(directory)?;
            }
            // A pipe in its place would be waited for without end.
            if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
                return Err(io::Error::other("it is no file"));
            }
            let mut file = fs::OpenOptions::new()
                .read(true)
                .append(true)
                .create(true)
                .mode(0o600)
                .open(path)?;
            // A full disk or a crash may have left half a line: this one begins behind it, so that it can be read.
            let between = if ends_whole(&mut file)? { "" } else { "\n" };
            // One write, so that lines of two writers do not mix.
            file.write_all(format!("{between}{line}\n").as_bytes())?;
            file.sync_data()
        };
        add().map_err(|error| format!("not written down: {}: {error}", path.display()))
    }
}

/// Tells whether the last line of a file has its end.
fn ends_whole(file: &mut fs::File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_that_a_full_disk_has_left_costs_no_other_line() {
        let directory = std::env::temp_dir().join(format!("evenkeel-audit-{}", std::process::id()));
        let path = directory.join("audit.jsonl");
        kept::make(&directory).unwrap();
        fs::write(&path, "{\"what\":\"ho").unwrap();
        let audit = Audit::at(path.clone());
        let entry = Entry {
            what: "release",
            by: "ana",
            peer: "-",
            target: "route r",
            before: None,
            after: None,
            refused: None,
        };
        for _ in 0..2 {
            audit.write(Wall::from_nanos(0), &entry).unwrap();
        }
        let text = fs::read_to_string(&path).unwrap();
        let whole = text
            .lines()
            .filter(|line| serde_json::from_str::<Value>(line).is_ok());
        assert_eq!((whole.count(), text.lines().count()), (2, 3), "{text}");
        fs::remove_dir_all(&directory).unwrap();
    }
}
