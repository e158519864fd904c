//! Decides what is exported of the process: memory, open files, processor time, when it began.
//! It exists so that a leak of the gateway's own is seen beside the traffic that it comes from, under the names that every
//! dashboard for processes knows.
//! It refuses to guess: what the system does not tell is left out.

use std::fmt;

use rustix::{
    process::{Resource, getrlimit},
    time::{ClockId, clock_gettime},
};

use super::{Scrape, out::Out};
use crate::telemetry::series;

impl Scrape<'_> {
    /// Writes what the system says about this process.
    pub(super) fn own(&self, out: &mut Out<'_>) -> fmt::Result {
        let one = |value: Option<u64>| value.map(|value| (Vec::new(), value)).into_iter();
        let spent = clock_gettime(ClockId::ProcessCPUTime);
        let spent = std::time::Duration::try_from(spent).ok();
        let spent = spent.map(|spent| (Vec::new(), spent.as_secs_f64()));
        out.write_real(&series::PROCESS_CPU, spent.into_iter())?;
        out.write(&series::PROCESS_MEMORY, one(resident_bytes()))?;
        out.write(&series::PROCESS_FILES, one(open_files()))?;
        out.write(
            &series::PROCESS_FILES_MAX,
            one(getrlimit(Resource::Nofile).current),
        )?;
        out.write(
            &series::PROCESS_START,
            one(u64::try_from(self.started.as_secs()).ok()),
        )
    }
}

/// Returns the bytes of memory that are in use; `None` where the system has no `/proc`.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages.saturating_mul(rustix::param::page_size() as u64))
}

/// Returns how many files are open, the one that is opened to count them not among them.
fn open_files() -> Option<u64> {
    let files = std::fs::read_dir("/proc/self/fd").ok()?;
    Some((files.count() as u64).saturating_sub(1))
}
