//! Decides what is exported of the store on disk, and in which words it is told why it is down.
//! It exists apart because only a gateway whose contract has a store has these series.
//! It refuses to count anything itself; the store and its lane do.

use std::fmt;

use evenkeel_store::Read;

use super::{
    metrics::{Out, Scrape},
    series::store as series,
};
use crate::proxy::DROPPED;

/// Every reason why a store is down.
const REASONS: [&str; 6] = ["opening", "in-use", "foreign", "damaged", "full", "unreachable"];

impl Scrape<'_> {
    pub(super) fn store(&self, out: &mut Out<'_>) -> fmt::Result {
        let Some(store) = self.app.process.store.get() else {
            return Ok(());
        };
        let (stats, counts) = (store.stats(), store.counts());
        let one = |value: u64| std::iter::once((Vec::new(), value));
        out.write(&series::UP, one(u64::from(stats.up)))?;
        let why = store.down();
        let reasons = REASONS
            .iter()
            .map(|reason| (vec![*reason], u64::from(why == Some(*reason))));
        out.write(&series::DOWN, reasons)?;
        out.write(&series::ENTRIES, one(stats.entries))?;
        out.write(&series::BYTES, one(stats.bytes))?;
        out.write(&series::BYTES_LIMIT, one(store.bytes_limit()))?;
        out.write(&series::BACKLOG_ENTRIES, one(stats.backlog))?;
        out.write(&series::BACKLOG_BYTES, one(stats.backlog_bytes))?;
        let age = store.backlog_age(&stats).as_secs_f64();
        out.write_real(&series::BACKLOG_SECONDS, std::iter::once((Vec::new(), age)))?;
        out.write(&series::WRITES, one(counts.written))?;
        out.write(&series::BATCHES, one(counts.batches))?;
        out.write(&series::BATCHES_FAILED, one(counts.failed_batches))?;
        let dropped = DROPPED
            .iter()
            .zip(counts.dropped)
            .map(|(why, count)| (vec![why.as_str()], count));
        out.write(&series::DROPS, dropped.chain([(vec![PRIVATE], store.private())]))?;
        out.write(&series::EVICTIONS, one(counts.evicted))?;
        out.write(&series::REMOVALS, one(counts.removed))?;
        out.write(&series::REMOVALS_LATE, one(store.late()))?;
        let reads = Read::ALL
            .iter()
            .zip(counts.reads)
            .map(|(read, count)| (vec![read.as_str()], count));
        out.write(&series::READS, reads.chain([(vec![GIVEN_UP], store.given_up())]))?;
        out.write(&series::FILES_PUT_ASIDE, one(counts.put_aside))
    }
}

/// The word for copies that are one caller's own.
const PRIVATE: &str = "private";
/// The word for look-ups that were not waited for to the end, or not begun.
const GIVEN_UP: &str = "given-up";
