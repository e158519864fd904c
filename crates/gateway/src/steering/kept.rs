//! Decides how holds are kept over a restart: in one small file, written whole or not at all.
//! It exists because a dependency that is held off for a migration stays off when the gateway is restarted meanwhile.
//! It refuses to lengthen a hold: what is left of it is at most what was left when it was put on.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    time::Duration,
};

use evenkeel::{HoldMode, Now, Wall};
use serde_json::{Value, json};

use super::{HOLD_MAX, Held, Target};

/// The most bytes of the file: some ten thousand holds.
const FILE_MAX: u64 = 8 << 20;
/// What the file says that it is.
const VERSION: u64 = 1;

/// Makes the directory, with nobody else's eyes on it, unless it is there.
pub(super) fn make(directory: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => Ok(()),
        made => made,
    }
}

/// Writes every hold. What was there stays until all of it is on the disk.
pub(super) fn write(file: &Path, holds: &BTreeMap<Target, Held>) -> io::Result<()> {
    let holds: Vec<Value> = holds
        .iter()
        .map(|(target, held)| {
            json!({
                "kind": target.kind(),
                "name": target.name(),
                "mode": held.mode.as_str(),
                "by": held.by,
                "why": held.why,
                "since": held.since.as_nanos(),
                "until": held.until.as_nanos(),
            })
        })
        .collect();
    let text = json!({ "version": VERSION, "holds": holds }).to_string();
    let next = file.with_extension("new");
    // What a crash has left, or a link that somebody has put there: it is not written through.
    match fs::remove_file(&next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut out = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&next)?;
    out.write_all(text.as_bytes())?;
    out.sync_all()?;
    fs::rename(&next, file)?;
    match file.parent() {
        Some(directory) => fs::File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

/// Opens a file to read it. A pipe in its place would be waited for without end.
fn open(file: &Path) -> io::Result<fs::File> {
    if fs::metadata(file)?.is_file() {
        fs::File::open(file)
    } else {
        Err(io::Error::other(format!("{} is no file", file.display())))
    }
}

/// Reads the holds that have not run out. Without a file there are none.
pub(super) fn read(file: &Path, now: Now) -> io::Result<BTreeMap<Target, Held>> {
    let mut text = String::new();
    match open(file) {
        Ok(opened) => drop(opened.take(FILE_MAX).read_to_string(&mut text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    }
    let bad = |what: &str| io::Error::other(format!("{}: {what}", file.display()));
    let value: Value = serde_json::from_str(&text).map_err(|error| bad(&error.to_string()))?;
    if value["version"] != VERSION {
        return Err(bad("another version"));
    }
    let list = value["holds"].as_array().ok_or_else(|| bad("no list of holds"))?;
    let mut holds = BTreeMap::new();
    for (index, value) in list.iter().enumerate() {
        let (target, held) = one(value, now).ok_or_else(|| bad(&format!("hold {index} cannot be read")))?;
        if held.ends > now.mono {
            holds.insert(target, held);
        }
    }
    Ok(holds)
}

fn one(value: &Value, now: Now) -> Option<(Target, Held)> {
    let text = |key: &str| value[key].as_str();
    let wall = |key: &str| value[key].as_i64().map(Wall::from_nanos);
    let target = Target::of(text("kind")?, text("name")?)?;
    let mode = text("mode")?;
    let mode = HoldMode::ALL.into_iter().find(|known| known.as_str() == mode)?;
    let (since, until) = (wall("since")?, wall("until")?);
    let span = |from: Wall, to: Wall| {
        let nanos = to.as_nanos().saturating_sub(from.as_nanos());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
    };
    // A wall clock that was set back since makes nothing longer.
    let left = span(now.wall, until).min(span(since, until)).min(HOLD_MAX);
    let held = Held {
        mode,
        by: text("by")?.to_owned(),
        why: text("why")?.to_owned(),
        since,
        until,
        ends: now.mono.after(left),
        prepared: false,
    };
    Some((target, held))
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel::{ManualClock, Mono};

    fn held(now: Now, lasts: Duration) -> BTreeMap<Target, Held> {
        let held = Held {
            mode: HoldMode::ForcedOff,
            by: "ana".to_owned(),
            why: "migration".to_owned(),
            since: now.wall,
            until: now.wall_of(now.mono.after(lasts)),
            ends: now.mono.after(lasts),
            prepared: false,
        };
        BTreeMap::from_iter([(Target::Dependency("stock".to_owned()), held)])
    }

    fn file(name: &str) -> std::path::PathBuf {
        let directory = std::env::temp_dir().join(format!("evenkeel-kept-{}", std::process::id()));
        make(&directory).unwrap();
        directory.join(name)
    }

    #[test]
    fn what_is_left_of_a_hold_goes_on_counting_while_nothing_runs() {
        let file = file("counting.json");
        let (clock, minute) = (ManualClock::new(), Duration::from_secs(60));
        let holds = held(clock.now(), minute * 10);
        write(&file, &holds).unwrap();
        clock.advance(minute * 4);
        let read_back = read(&file, clock.now()).unwrap();
        assert_eq!(read_back, holds);
        clock.advance(minute * 6);
        assert!(read(&file, clock.now()).unwrap().is_empty(), "it has run out");
    }

    #[test]
    fn a_wall_clock_that_was_set_back_makes_no_hold_longer() {
        let file = file("set-back.json");
        let now = ManualClock::new().now();
        write(&file, &held(now, Duration::from_secs(60))).unwrap();
        let back = Now {
            mono: Mono::ORIGIN,
            wall: Wall::from_nanos(now.wall.as_nanos() - 3_600_000_000_000),
        };
        let (_, held) = read(&file, back).unwrap().pop_first().unwrap();
        assert_eq!(held.ends, Mono::ORIGIN.after(Duration::from_secs(60)));
    }

    #[test]
    fn a_damaged_file_is_an_error_and_a_missing_one_is_none() {
        let file = file("damaged.json");
        let now = ManualClock::new().now();
        for text in [
            "",
            "{",
            "{}",
            "{\"version\":2,\"holds\":[]}",
            "{\"version\":1,\"holds\":[{}]}",
        ] {
            fs::write(&file, text).unwrap();
            assert!(read(&file, now).is_err(), "{text}");
        }
        fs::remove_file(&file).unwrap();
        assert!(read(&file, now).unwrap().is_empty());
    }
}
