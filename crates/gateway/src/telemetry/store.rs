//! Decides what is exported of the store on disk, and in which words it is told why it is down.
//! It exists apart because only a gateway whose contract has a store has these series.
//! It refuses to count anything itself; the store and its lane do.

use std::fmt;

use evenkeel_store::Read;

use super::{
    metrics::{Out, Scrape},
    series::{Series, counter, gauge},
};
use crate::proxy::DROPPED;

pub(super) const UP: Series = gauge(
    "evenkeel_store_up",
    &[],
    "1 while the store on disk takes and gives copies; without it the gateway serves from memory alone",
);
pub(super) const DOWN: Series = gauge(
    "evenkeel_store_down",
    &["reason"],
    "1 for the reason why the store is down",
);
pub(super) const ENTRIES: Series = gauge("evenkeel_store_entries", &[], "Copies in the store on disk");
pub(super) const BYTES: Series = gauge("evenkeel_store_bytes", &[], "Bytes of its file with the journal");
pub(super) const BYTES_LIMIT: Series = gauge("evenkeel_store_bytes_limit", &[], "The most bytes of those");
pub(super) const BACKLOG_ENTRIES: Series = gauge(
    "evenkeel_store_backlog_entries",
    &[],
    "Changes that wait to be written",
);
pub(super) const BACKLOG_BYTES: Series = gauge("evenkeel_store_backlog_bytes", &[], "Bytes of those");
pub(super) const BACKLOG_SECONDS: Series = gauge(
    "evenkeel_store_backlog_seconds",
    &[],
    "How long the one has waited that waits longest",
);
pub(super) const WRITES: Series = counter(
    "evenkeel_store_writes",
    &[],
    "Copies written to the store on disk",
);
pub(super) const BATCHES: Series = counter(
    "evenkeel_store_batches",
    &[],
    "Batches in which they were written",
);
pub(super) const BATCHES_FAILED: Series = counter(
    "evenkeel_store_batches_failed",
    &[],
    "Batches that could not be written and were tried again",
);
pub(super) const DROPS: Series = counter(
    "evenkeel_store_drops",
    &["why"],
    "Copies kept in memory that were not written, by why",
);
pub(super) const EVICTIONS: Series = counter(
    "evenkeel_store_evictions",
    &[],
    "Copies taken out of the store for want of room",
);
pub(super) const REMOVALS: Series = counter(
    "evenkeel_store_removals",
    &[],
    "Copies taken out of the store because they were retired or purged",
);
pub(super) const REMOVALS_LATE: Series = counter(
    "evenkeel_store_removals_late",
    &[],
    "Answers to writes that went out before the removal of the copies was on the disk",
);
pub(super) const READS: Series = counter(
    "evenkeel_store_reads",
    &["result"],
    "Look-ups of what memory lacks, by result",
);
pub(super) const FILES_PUT_ASIDE: Series = counter(
    "evenkeel_store_files_put_aside",
    &[],
    "Damaged files that were put aside for a new one",
);

/// Every reason why a store is down.
const REASONS: [&str; 6] = ["opening", "in-use", "foreign", "damaged", "full", "unreachable"];

impl Scrape<'_> {
    pub(super) fn store(&self, out: &mut Out<'_>) -> fmt::Result {
        let Some(store) = self.app.process.store.get() else {
            return Ok(());
        };
        let (stats, counts) = (store.stats(), store.counts());
        let one = |value: u64| std::iter::once((Vec::new(), value));
        out.write(&UP, one(u64::from(stats.up)))?;
        let why = store.down();
        let reasons = REASONS
            .iter()
            .map(|reason| (vec![*reason], u64::from(why == Some(*reason))));
        out.write(&DOWN, reasons)?;
        out.write(&ENTRIES, one(stats.entries))?;
        out.write(&BYTES, one(stats.bytes))?;
        out.write(&BYTES_LIMIT, one(store.bytes_limit()))?;
        out.write(&BACKLOG_ENTRIES, one(stats.backlog))?;
        out.write(&BACKLOG_BYTES, one(stats.backlog_bytes))?;
        let age = store.backlog_age(&stats).as_secs_f64();
        out.write_real(&BACKLOG_SECONDS, std::iter::once((Vec::new(), age)))?;
        out.write(&WRITES, one(counts.written))?;
        out.write(&BATCHES, one(counts.batches))?;
        out.write(&BATCHES_FAILED, one(counts.failed_batches))?;
        let dropped = DROPPED
            .iter()
            .zip(counts.dropped)
            .map(|(why, count)| (vec![why.as_str()], count));
        out.write(&DROPS, dropped.chain([(vec![PRIVATE], store.private())]))?;
        out.write(&EVICTIONS, one(counts.evicted))?;
        out.write(&REMOVALS, one(counts.removed))?;
        out.write(&REMOVALS_LATE, one(store.late()))?;
        let reads = Read::ALL
            .iter()
            .zip(counts.reads)
            .map(|(read, count)| (vec![read.as_str()], count));
        out.write(&READS, reads.chain([(vec![GIVEN_UP], store.given_up())]))?;
        out.write(&FILES_PUT_ASIDE, one(counts.put_aside))
    }
}

/// The word for copies that are one caller's own.
const PRIVATE: &str = "private";
/// The word for look-ups that were not waited for to the end, or not begun.
const GIVEN_UP: &str = "given-up";
