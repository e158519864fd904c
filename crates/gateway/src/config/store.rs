//! Decides the settings of the store on disk: where it is, how large it may get, how long anybody waits for it.
//! It exists so that these numbers have one place, with their ranges and the reasons for their defaults.
//! It refuses a path that depends on where the gateway was started.

use std::{path::PathBuf, time::Duration};

use super::{reader::Fields, units::show_duration};

/// Where copies are kept that are to survive the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// The directory; it belongs to one gateway at a time.
    pub path: PathBuf,
    /// The most bytes of the file with its journal.
    pub max: u64,
    /// The most bytes of copies that wait to be written.
    pub backlog: u64,
    /// How long a request waits for it.
    pub timeout: Duration,
    /// How far the wall clock may have been wrong when a copy was written, or be wrong now.
    pub clock_skew: Duration,
}

impl Store {
    /// Four times what is in memory.
    pub const MAX: u64 = 1 << 30;
    /// Some seconds of writing, and no more memory than that.
    pub const BACKLOG: u64 = 64 << 20;
    /// A disk that is well answers in a millisecond; this is a tenth of what a dependency is given.
    pub const TIMEOUT: Duration = Duration::from_millis(100);
    /// What a synchronised clock is never off by.
    pub const CLOCK_SKEW: Duration = Duration::from_secs(1);
    /// Less than this is no store.
    pub const MAX_LEAST: u64 = 16 << 20;
}

/// The most bytes: 1 TiB.
const BYTES_MAX: u64 = 1 << 40;

pub(super) fn read(mut fields: Fields<'_, '_>) -> Option<Store> {
    const EXAMPLE: &str = "\"/var/lib/evenkeel/store\"";
    fields.require("path", EXAMPLE);
    let path = fields.text("path", EXAMPLE);
    let is_usable = path
        .as_ref()
        .is_none_or(|path| path.starts_with('/') && path.len() > 1);
    if !is_usable {
        fields.problem(
            "path",
            &format!("{:?}", path.as_deref().unwrap_or_default()),
            "the path of a directory from the root",
            &format!("write `path = {EXAMPLE}`, say"),
        );
    }
    let max = fields.size("max", Store::MAX_LEAST, BYTES_MAX, "\"1GiB\"");
    let backlog = fields.size("backlog", 1 << 20, 1 << 32, "\"64MiB\"");
    let timeout = fields.duration("timeout", "\"100ms\"");
    if let Some(timeout) = timeout
        && timeout > Duration::from_secs(10)
    {
        fields.problem(
            "timeout",
            &show_duration(timeout),
            "1ms to 10s",
            "lower it: a request that waits longer for a copy is better off without",
        );
    }
    let clock_skew = fields.duration("clock_skew", "\"1s\"");
    if let Some(skew) = clock_skew
        && skew > Duration::from_secs(3600)
    {
        fields.problem(
            "clock_skew",
            &show_duration(skew),
            "1ms to 1h",
            "set the clock of the machine",
        );
    }
    Some(Store {
        path: path.filter(|_| is_usable)?.into(),
        max: max.unwrap_or(Store::MAX),
        backlog: backlog.unwrap_or(Store::BACKLOG),
        timeout: timeout.unwrap_or(Store::TIMEOUT),
        clock_skew: clock_skew.unwrap_or(Store::CLOCK_SKEW),
    })
}

#[cfg(test)]
mod tests {
    use crate::config::parse;

    #[test]
    fn bad_values_are_told_with_what_is_allowed() {
        for (keys, seen, allowed) in [
            ("path = \"store\"", "store.path: \"store\"", "from the root"),
            ("path = \"/\"", "store.path: \"/\"", "a directory"),
            ("max = \"1GiB\"", "store.path", "missing"),
            (
                "path = \"/s\"\nmax = \"1MiB\"",
                "store.max: \"1MiB\"",
                "a size of 16777216",
            ),
            (
                "path = \"/s\"\nbacklog = \"1B\"",
                "store.backlog: \"1B\"",
                "a size of 1048576",
            ),
            (
                "path = \"/s\"\ntimeout = \"11s\"",
                "store.timeout: 11s",
                "1ms to 10s",
            ),
            (
                "path = \"/s\"\nclock_skew = \"2h\"",
                "store.clock_skew: 2h",
                "1ms to 1h",
            ),
            ("path = \"/s\"\nsize = 1", "store.size", "path"),
        ] {
            let text = format!(
                "[gateway]\nlisten = \"127.0.0.1:8080\"\n[store]\n{keys}\n[dependencies.d]\nurls = [\"http://127.0.0.1:1\"]\n\
                 [[routes]]\nname = \"r\"\nmatch = {{ path = \"/\" }}\nclass = \"read\"\nfrom = \"d\"\n"
            );
            let problems = parse("contract.toml", &text).unwrap_err().to_string();
            assert!(
                problems.contains(seen) && problems.contains(allowed),
                "{keys}\n{problems}"
            );
        }
    }
}
