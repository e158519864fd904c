//! Decides how a contract that has served is kept, so that a start finds it when there is none that can be loaded.
//! It exists because a mistake in a file must not keep a gateway from coming back after a crash or a reboot (case 071).
//! It refuses to write values that come from elsewhere: what is kept is the text, which names them.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::config::{self, Loaded, outside::CONTRACT_MAX};

/// The text of a contract is its owner's, and nobody else's.
const MODE: u32 = 0o600;
/// What the kept file is, so that no other is taken for one.
const KIND: &str = "evenkeel last good contract, 1";
/// JSON writes some characters in six.
const KEPT_MAX: u64 = 6 * CONTRACT_MAX + (1 << 20);

/// The file in which the last good contract is kept.
#[derive(Clone, Debug)]
pub struct LastGood(PathBuf);

impl LastGood {
    /// Keeps it in this file; without one beside the contract, as `<name of the contract>.last-good`.
    #[must_use]
    pub fn of(contract: &Path, file: Option<&Path>) -> Self {
        let beside = || {
            let mut name = contract
                .file_name()
                .map_or_else(|| OsString::from("contract"), OsString::from);
            name.push(".last-good");
            contract.with_file_name(name)
        };
        Self(file.map_or_else(beside, Path::to_owned))
    }

    /// Returns where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Keeps a contract: its text and that of the files it includes. A crash in the middle leaves the one before.
    ///
    /// # Errors
    /// When the directory cannot be written to. Then the one before is still there.
    pub fn keep(&self, loaded: &Loaded) -> io::Result<()> {
        let files = loaded.diagnostics.sources().files();
        let files: Vec<Value> = files
            .map(|(name, text)| json!({ "name": name, "text": text }))
            .collect();
        let kept = format!("{:#}\n", json!({ "kind": KIND, "files": files }));
        if opened(&self.0)
            .and_then(|mut file| {
                let mut held = Vec::new();
                file.read_to_end(&mut held).map(|_| held)
            })
            .is_ok_and(|held| held == kept.as_bytes())
        {
            return Ok(());
        }
        let mut name = self.0.clone().into_os_string();
        name.push(format!(".{}", std::process::id()));
        let beside = PathBuf::from(name);
        let written = write(&beside, kept.as_bytes()).and_then(|()| fs::rename(&beside, &self.0));
        if written.is_err() {
            // What is half written is of no use, and may not be there at all.
            drop(fs::remove_file(&beside));
            return written;
        }
        // The new name, too, has to be there after a loss of power.
        let directory = self.0.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or_else(|| Path::new(".")))?.sync_all()
    }

    /// Reads what was kept, as a contract.
    ///
    /// # Errors
    /// In words: there is none, it is no such file, or it has problems by now, as when a secret that it names is gone.
    pub fn load(&self) -> Result<Loaded, String> {
        let shown = self.0.display();
        let mut text = String::new();
        opened(&self.0)
            .and_then(|file| file.take(KEPT_MAX).read_to_string(&mut text))
            .map_err(|error| format!("cannot read {shown}: {error}"))?;
        let value: Value =
            serde_json::from_str(&text).map_err(|error| format!("{shown} is no JSON: {error}"))?;
        if value["kind"] != KIND {
            return Err(format!("{shown} is no contract that was kept"));
        }
        let file = |file: &Value| {
            Some((
                file["name"].as_str()?.to_owned(),
                file["text"].as_str()?.to_owned(),
            ))
        };
        let files = value["files"].as_array().into_iter().flatten().map(file);
        let files: Option<Vec<(String, String)>> = files.collect();
        let Some([(name, text), included @ ..]) = files.as_deref() else {
            return Err(format!("{shown} names no file"));
        };
        config::parse_kept(name, text, included).map_err(|problems| problems.to_string())
    }
}

/// Opens a file to read it. A pipe in its place would be waited for without end.
fn opened(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        File::open(path)
    } else {
        Err(io::Error::other("it is no file"))
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // What a crash has left, or a link that somebody has put there: it is not written through.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
