//! Decides what `evenkeel init` writes, and when it does not.
//! It exists so that the first contract of a newcomer is one that passes the check and says what to change.
//! It refuses to write over a file, unless told to.

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Write as _},
    path::Path,
    process::ExitCode,
};

use super::{FAILED, UNUSABLE, complain, print};

/// The contract to start from.
const STARTER: &str = include_str!("starter.toml");

pub(super) fn run(path: &Path, force: bool) -> ExitCode {
    let mut how = OpenOptions::new();
    how.write(true);
    if force {
        how.create(true).truncate(true);
    } else {
        // One step: what comes between a look and a write is not written over either.
        how.create_new(true);
    }
    let name = path.display();
    match how
        .open(path)
        .and_then(|mut file| file.write_all(STARTER.as_bytes()))
    {
        Ok(()) => {
            print(&format!(
                "{name}: written\n  change the address of the dependency and the routes, then:\n  \
                 evenkeel check --explain {name}\n  evenkeel serve {name}"
            ));
            ExitCode::SUCCESS
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            complain(&format!(
                "{name} is there already; name another file, or write in its place with --force"
            ));
            ExitCode::from(FAILED)
        }
        Err(error) => {
            complain(&format!("cannot write {name}: {error}"));
            ExitCode::from(UNUSABLE)
        }
    }
}
