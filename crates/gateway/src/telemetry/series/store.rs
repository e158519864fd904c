//! Decides which series there are of the store on disk.
//! It exists apart because only a gateway whose contract has a store exports them.
//! It refuses labels that come from requests, as the list does everywhere.

use super::shape::{Series, counter, gauge};

pub(in crate::telemetry) const UP: Series = gauge(
    "evenkeel_store_up",
    &[],
    "1 while the store on disk takes and gives copies; without it the gateway serves from memory alone",
);
pub(in crate::telemetry) const DOWN: Series = gauge(
    "evenkeel_store_down",
    &["reason"],
    "1 for the reason why the store is down",
);
pub(in crate::telemetry) const ENTRIES: Series =
    gauge("evenkeel_store_entries", &[], "Copies in the store on disk");
pub(in crate::telemetry) const BYTES: Series =
    gauge("evenkeel_store_bytes", &[], "Bytes of its file with the journal");
pub(in crate::telemetry) const BYTES_LIMIT: Series =
    gauge("evenkeel_store_bytes_limit", &[], "The most bytes of those");
pub(in crate::telemetry) const BACKLOG_ENTRIES: Series = gauge(
    "evenkeel_store_backlog_entries",
    &[],
    "Changes that wait to be written",
);
pub(in crate::telemetry) const BACKLOG_BYTES: Series =
    gauge("evenkeel_store_backlog_bytes", &[], "Bytes of those");
pub(in crate::telemetry) const BACKLOG_SECONDS: Series = gauge(
    "evenkeel_store_backlog_seconds",
    &[],
    "How long the one has waited that waits longest",
);
pub(in crate::telemetry) const WRITES: Series = counter(
    "evenkeel_store_writes",
    &[],
    "Copies written to the store on disk",
);
pub(in crate::telemetry) const BATCHES: Series = counter(
    "evenkeel_store_batches",
    &[],
    "Batches in which they were written",
);
pub(in crate::telemetry) const BATCHES_FAILED: Series = counter(
    "evenkeel_store_batches_failed",
    &[],
    "Batches that could not be written and were tried again",
);
pub(in crate::telemetry) const DROPS: Series = counter(
    "evenkeel_store_drops",
    &["why"],
    "Copies kept in memory that were not written, by why",
);
pub(in crate::telemetry) const EVICTIONS: Series = counter(
    "evenkeel_store_evictions",
    &[],
    "Copies taken out of the store for want of room",
);
pub(in crate::telemetry) const REMOVALS: Series = counter(
    "evenkeel_store_removals",
    &[],
    "Copies taken out of the store because they were retired or purged",
);
pub(in crate::telemetry) const REMOVALS_LATE: Series = counter(
    "evenkeel_store_removals_late",
    &[],
    "Answers to writes that went out before the removal of the copies was on the disk",
);
pub(in crate::telemetry) const READS: Series = counter(
    "evenkeel_store_reads",
    &["result"],
    "Look-ups of what memory lacks, by result",
);
pub(in crate::telemetry) const FILES_PUT_ASIDE: Series = counter(
    "evenkeel_store_files_put_aside",
    &[],
    "Damaged files that were put aside for a new one",
);
