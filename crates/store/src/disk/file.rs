//! Decides which file is ours to write: its place, its rights, its form, and what becomes of one that is damaged.
//! It exists so that a deploy with another form, a second gateway or a broken disk is met before a row is read.
//! It refuses what belongs to somebody else, and to throw a damaged file away: it is put aside, a bounded number of times.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags};

/// The name of the file in its directory.
const FILE: &str = "snapshots.db";
/// What belongs to it.
const BESIDE: [&str; 3] = ["snapshots.db-wal", "snapshots.db-shm", "snapshots.db-journal"];
const LOCK: &str = "lock";
/// Damaged files are called so, with a number; the lowest is the latest.
const ASIDE: &str = "damaged-";
/// So many damaged files are kept.
pub(super) const ASIDE_MAX: u32 = 3;
/// "even": what says in its head that a file is ours.
const APPLICATION: i32 = 0x6576_656e;
/// The form of the tables. A file with a later number is left alone.
const FORM: i32 = 1;
/// How long a connection waits for another one that has the file locked.
const BUSY: Duration = Duration::from_millis(250);

/// Why a file cannot be used.
#[derive(Debug)]
pub(super) enum Unusable {
    /// Somebody else is at it.
    InUse(String),
    /// It is not ours, or of a later form: it is left alone.
    Foreign(String),
    /// It is ours, and broken.
    Damaged(String),
    /// There is no room.
    Full(String),
    /// It cannot be reached.
    Io(String),
}

impl Unusable {
    /// Returns the stable word.
    pub(super) const fn as_str(&self) -> &'static str {
        match self {
            Self::InUse(_) => "in-use",
            Self::Foreign(_) => "foreign",
            Self::Damaged(_) => "damaged",
            Self::Full(_) => "full",
            Self::Io(_) => "unreachable",
        }
    }

    pub(super) fn detail(&self) -> &str {
        match self {
            Self::InUse(why) | Self::Foreign(why) | Self::Damaged(why) | Self::Full(why) | Self::Io(why) => {
                why
            }
        }
    }
}

impl From<rusqlite::Error> for Unusable {
    fn from(error: rusqlite::Error) -> Self {
        let why = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::InUse(why),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(why),
            Some(ErrorCode::DiskFull) => Self::Full(why),
            // A table that is missing, or holds something else than was written there.
            Some(ErrorCode::Unknown) | None => Self::Damaged(why),
            Some(_) => Self::Io(why),
        }
    }
}

/// Where the file is, and the lock on it.
#[derive(Debug)]
pub(super) struct Place {
    directory: PathBuf,
    /// Held for as long as this process writes there.
    _lock: File,
}

impl Place {
    /// Takes a directory, made if it is not there, for this process alone.
    pub(super) fn take(directory: &Path) -> Result<Self, Unusable> {
        let failed = |error: io::Error| Unusable::Io(format!("{}: {error}", directory.display()));
        if !directory.is_dir() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)
                .map_err(failed)?;
        }
        let lock = private(&directory.join(LOCK)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                directory: directory.to_owned(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(Unusable::InUse(format!(
                "another process writes in {}; give each gateway a directory of its own",
                directory.display()
            ))),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    fn file(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    /// Returns what tells the file from another one of its name; `None` if it is gone.
    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        let found = fs::metadata(self.file()).ok()?;
        Some((found.dev(), found.ino()))
    }

    /// Returns the bytes of the file and of what belongs to it.
    pub(super) fn bytes(&self) -> u64 {
        let beside = BESIDE.iter().map(|name| self.directory.join(name));
        let sizes = std::iter::once(self.file()).chain(beside);
        sizes
            .filter_map(|path| fs::metadata(path).ok())
            .map(|found| found.len())
            .sum()
    }

    /// Returns the bytes of the journal beside the file.
    pub(super) fn journal_bytes(&self) -> u64 {
        let [journal, ..] = BESIDE;
        fs::metadata(self.directory.join(journal)).map_or(0, |found| found.len())
    }

    /// Returns the names of files in the directory that are not ours, up to twenty.
    pub(super) fn ignored(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let is_ours =
            |name: &str| name == FILE || name == LOCK || BESIDE.contains(&name) || name.starts_with(ASIDE);
        let mut ignored: Vec<String> = names.filter(|name| !is_ours(name)).take(20).collect();
        ignored.sort();
        ignored
    }

    /// Puts a damaged file aside, so that a new one can begin, and returns its name there.
    pub(super) fn put_aside(&self) -> Result<String, Unusable> {
        let failed = |error: io::Error| Unusable::Io(error.to_string());
        let aside = |number: u32| self.directory.join(format!("{ASIDE}{number}"));
        for number in (1..ASIDE_MAX).rev() {
            if aside(number).exists() {
                fs::rename(aside(number), aside(number + 1)).map_err(failed)?;
            }
        }
        if self.file().exists() {
            fs::rename(self.file(), aside(1)).map_err(failed)?;
        }
        // A journal that is left would be played into the new file.
        for name in BESIDE {
            match fs::remove_file(self.directory.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(format!("{ASIDE}1"))
    }

    /// Opens the file to write, made if it is not there.
    pub(super) fn open(&self, most_bytes: u64) -> Result<Connection, Unusable> {
        let path = self.file();
        // The journal gets the rights of the file.
        private(&path).map_err(|error| Unusable::Io(format!("{}: {error}", path.display())))?;
        let connection = connection(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let form: i32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
        let is_new = application == 0 && form == 0 && tables == 0;
        if !is_new && application != APPLICATION {
            return Err(Unusable::Foreign(format!(
                "{} holds somebody else's tables; name another directory",
                path.display()
            )));
        }
        if form > FORM {
            return Err(Unusable::Foreign(format!(
                "{} is of form {form} and this version knows form {FORM}; run the later version, or name another directory",
                path.display()
            )));
        }
        if is_new {
            // Only before the first table it has an effect.
            connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        }
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        if mode != "wal" {
            return Err(Unusable::Io(format!(
                "no write-ahead journal on this file system: {mode}"
            )));
        }
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "journal_size_limit", 0)?;
        if is_new {
            connection.execute_batch(&format!(
                "BEGIN IMMEDIATE;
                 {TABLES}
                 PRAGMA application_id = {APPLICATION};
                 PRAGMA user_version = {FORM};
                 COMMIT;"
            ))?;
        }
        let page: u64 = connection
            .pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0))
            .map(i64::unsigned_abs)?;
        let pages = i64::try_from(most_bytes / page.max(1)).unwrap_or(i64::MAX);
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
        Ok(connection)
    }

    /// Opens the file to read.
    pub(super) fn open_to_read(directory: &Path) -> Result<Connection, Unusable> {
        Ok(connection(
            &directory.join(FILE),
            OpenFlags::SQLITE_OPEN_READ_ONLY,
        )?)
    }
}

/// `copies` is narrow, so that purges and evictions read little; what is large stands in `contents`.
const TABLES: &str = "
    CREATE TABLE store (only INTEGER PRIMARY KEY CHECK (only = 1), run INTEGER NOT NULL, boot TEXT NOT NULL,
        boot_run INTEGER NOT NULL, seed INTEGER NOT NULL, proof INTEGER NOT NULL);
    CREATE TABLE copies (hash INTEGER PRIMARY KEY, uri TEXT NOT NULL, route TEXT NOT NULL, scope BLOB NOT NULL,
        run INTEGER NOT NULL, turn INTEGER NOT NULL, started INTEGER, soft INTEGER NOT NULL,
        used INTEGER NOT NULL);
    CREATE INDEX by_use ON copies (used);
    CREATE TABLE contents (hash INTEGER PRIMARY KEY, key BLOB NOT NULL, mono INTEGER, wall INTEGER, tags TEXT NOT NULL,
        facts BLOB NOT NULL, body BLOB NOT NULL, sum INTEGER NOT NULL);
    CREATE TABLE tags (tag TEXT NOT NULL, hash INTEGER NOT NULL, PRIMARY KEY (tag, hash)) WITHOUT ROWID;
    CREATE INDEX tags_of ON tags (hash);
";

fn connection(path: &Path, mode: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}

/// Opens a file that nobody else may read, made if it is not there.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)
}
