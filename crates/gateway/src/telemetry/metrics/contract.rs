//! Decides what is exported of the contract that runs: which, since when, and what came of wishes for another.
//! It exists because a file that was changed and not taken looks like one that was.
//! It refuses to tell what is in the contract.

use std::fmt;

use super::{Scrape, out::Out};
use crate::{reload::Reload, telemetry::series};

impl Scrape<'_> {
    pub(super) fn contract(&self, out: &mut Out<'_>) -> fmt::Result {
        let reloads = &self.app.process.reloads;
        let counts = Reload::ALL.map(|reload| (vec![reload.as_str()], reloads.counted(reload)));
        out.write(&series::CONTRACT_RELOADS, counts.into_iter())?;
        let hash = reloads.hash();
        let word = if hash.is_empty() { "none" } else { &hash };
        out.write(&series::CONTRACT_INFO, std::iter::once((vec![word], 1)))?;
        let since = reloads.since().map_or(0, |since| since.as_secs());
        let since = u64::try_from(since).unwrap_or(0);
        out.write(&series::CONTRACT_LOADED, std::iter::once((Vec::new(), since)))?;
        let fallback = u64::from(reloads.fallback().is_some());
        out.write(
            &series::CONTRACT_FALLBACK,
            std::iter::once((Vec::new(), fallback)),
        )
    }
}
