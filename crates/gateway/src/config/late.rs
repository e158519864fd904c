//! Decides what a contract says about work whose attempt ran into its limit: it is dropped, or brought to its end.
//! It exists because a timeout ends a wait and not the work, and throwing a late answer away costs the dependency as much
//! as keeping it.
//! It refuses work that goes on where nothing could be kept of it, and a span where nothing goes on.

use std::time::Duration;

use super::{ladder::Known, reader::Fields};

/// Reads for how long work goes on after its limit; `None` where it is dropped. `keeps` where answers are kept.
pub(super) fn read(
    fields: &mut Fields<'_, '_>,
    known: Known<'_>,
    from: Option<&str>,
    keeps: bool,
) -> Option<Duration> {
    let finishes = fields.word("on_timeout", &[("cancel", false), ("finish", true)]);
    let within = fields.duration("finish_within", "\"2s\"");
    if finishes != Some(true) {
        if fields.has("finish_within") {
            fields.problem(
                "finish_within",
                "set without `on_timeout = \"finish\"`",
                "only beside it: otherwise late work is dropped where it stands",
                "add `on_timeout = \"finish\"`, or remove it",
            );
        }
        return None;
    }
    if !keeps {
        fields.problem(
            "on_timeout",
            "\"finish\" on a route that keeps nothing",
            "beside a stale rung or `freshness = \"origin\"`: what comes late is for them",
            "add one of them, or remove it",
        );
        return None;
    }
    // One more timeout: as long as work that is dropped counts as lingering.
    within.or_else(|| known.timeout_of(from?))
}
