//! Decides what becomes of a value that a contract takes from the environment or a file, and where parts of it stand.
//! It exists so that passwords stay out of contracts, and one contract can be several files.
//! It refuses what is not there, what is too large, and a reference where a table of free names stands.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    ops::Range,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    diag::{Diagnostics, Secret},
    keys, lints,
};

/// The most bytes of a file that a value comes from; longer is no password, token or body of a default.
pub const VALUE_MAX: u64 = 64 << 10;
/// The most bytes of all files of a contract together.
pub const CONTRACT_MAX: u64 = 4 << 20;

/// Reads a file of at most `max` bytes in UTF-8; what is wrong with it is told. A pipe or a device is none: whoever opens
/// one may wait for ever, and a reload finds nothing in it any more.
pub(super) fn read(path: &Path, max: u64) -> Result<String, String> {
    if is_stream(path) {
        return Err("it is a pipe or a device, and no file".to_owned());
    }
    read_once(path, max)
}

/// Tells whether something is there that is neither a file nor a directory.
pub(crate) fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// As [`read`], also from a pipe: what a shell hands to a command that reads it once.
pub(super) fn read_once(path: &Path, max: u64) -> Result<String, String> {
    let bytes = File::open(path)
        .and_then(|file| {
            if file.metadata()?.is_dir() {
                return Err(io::Error::from(io::ErrorKind::IsADirectory));
            }
            let mut bytes = Vec::new();
            file.take(max + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        })
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > max {
        return Err(format!("larger than {max} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..valid).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("not UTF-8 in line {line}")
    })
}

/// Takes the values of one file from where they come, and moves its spans by `start`.
#[derive(Debug)]
pub(super) struct Outside<'d> {
    pub(super) diagnostics: &'d mut Diagnostics,
    /// Where relative paths begin.
    pub(super) directory: &'d Path,
    /// The files that values came from.
    pub(super) files: &'d mut Vec<PathBuf>,
    /// Where the first byte of the file stands in the row of all.
    pub(super) start: usize,
}

impl Outside<'_> {
    /// Returns the table with every span moved and every reference replaced. As deep as TOML may be nested.
    pub(super) fn table<'t>(&mut self, place: &str, table: DeTable<'t>) -> DeTable<'t> {
        let mut moved = DeTable::new();
        for (key, value) in table {
            let name = key.get_ref().clone();
            let inner = if place.is_empty() {
                name.clone().into_owned()
            } else {
                format!("{place}.{name}")
            };
            let is_free = keys::FREE_NAMES.contains(&name.as_ref());
            let value = self.value(&inner, value, is_free);
            moved.insert(Spanned::new(self.moved(&key.span()), name), value);
        }
        moved
    }

    fn value<'t>(&mut self, place: &str, value: Spanned<DeValue<'t>>, is_free: bool) -> Spanned<DeValue<'t>> {
        let span = self.moved(&value.span());
        let value = match value.into_inner() {
            DeValue::Table(table) => match reference(&table) {
                Some((kind, name)) if !is_free => self.fetched(place, &span, kind, &name),
                Some(_) | None => DeValue::Table(self.table(place, table)),
            },
            DeValue::Array(mut items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let taken = std::mem::replace(item, Spanned::new(0..0, DeValue::Boolean(false)));
                    *item = self.value(&format!("{place}[{index}]"), taken, false);
                }
                DeValue::Array(items)
            }
            plain @ (DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)) => plain,
        };
        Spanned::new(span, value)
    }

    fn fetched(&mut self, place: &str, span: &Range<usize>, kind: Kind, name: &str) -> DeValue<'static> {
        let (label, read) = match kind {
            Kind::Env => (
                format!("(from the environment, {name})"),
                match std::env::var(name) {
                    Ok(text) => Ok(text),
                    Err(std::env::VarError::NotPresent) => Err("there is no such variable".to_owned()),
                    Err(std::env::VarError::NotUnicode(_)) => Err("it is not UTF-8".to_owned()),
                },
            ),
            Kind::File => (format!("(from file {name})"), self.file(place, span, name)),
        };
        let text = read.unwrap_or_else(|why| {
            let (allowed, mend) = match kind {
                Kind::Env => (
                    "the name of a variable that is set when the contract is read".to_owned(),
                    format!("set {name}, or correct the name"),
                ),
                Kind::File => (
                    format!(
                        "a file of at most {} KiB in UTF-8 that may be read",
                        VALUE_MAX >> 10
                    ),
                    "make the file, or correct the path".to_owned(),
                ),
            };
            self.tell(
                lints::VALUE_NOT_THERE,
                place,
                span,
                &format!("{}: {why}", name.escape_debug()),
                &allowed,
                &mend,
            );
            String::new()
        });
        self.diagnostics.hide(Secret {
            span: span.clone(),
            text: text.clone(),
            label,
        });
        DeValue::String(text.into())
    }

    /// Reads a value from a file, without one newline at its end.
    fn file(&mut self, place: &str, span: &Range<usize>, name: &str) -> Result<String, String> {
        let path = self.directory.join(name);
        let mut text = read(&path, VALUE_MAX)?;
        self.files.push(path.clone());
        if text.ends_with('\n') {
            text.pop();
            if text.ends_with('\r') {
                text.pop();
            }
        }
        let mode = std::fs::metadata(&path).map_or(0, |about| about.permissions().mode());
        if mode & OTHERS_READ != 0 {
            self.tell(
                lints::SECRET_READABLE_BY_ALL,
                place,
                span,
                &format!("{}, which every user may read", name.escape_debug()),
                "a file that only this user or group may read",
                "take the right from others: `chmod o-r`",
            );
        }
        Ok(text)
    }

    fn tell(
        &mut self,
        code: &'static str,
        place: &str,
        span: &Range<usize>,
        seen: &str,
        allowed: &str,
        mend: &str,
    ) {
        self.diagnostics
            .lint(code, place, span.clone(), [seen, allowed, mend]);
    }

    const fn moved(&self, span: &Range<usize>) -> Range<usize> {
        span.start + self.start..span.end + self.start
    }
}

/// The bit of a file's mode by which everybody may read it.
const OTHERS_READ: u32 = 0o004;

#[derive(Clone, Copy)]
enum Kind {
    Env,
    File,
}

/// Returns where a table says that a value comes from: its only key is `env` or `file`, with a text.
fn reference(table: &DeTable<'_>) -> Option<(Kind, String)> {
    let mut keys = table.iter();
    let (key, value) = keys.next()?;
    let kind = match key.get_ref().as_ref() {
        "env" => Kind::Env,
        "file" => Kind::File,
        _ => return None,
    };
    let name = value.get_ref().as_str()?.to_owned();
    keys.next().is_none().then_some((kind, name))
}
