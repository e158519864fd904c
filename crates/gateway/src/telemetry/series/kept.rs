//! Decides which series tell what is there for a failure, and how old it is when it is needed.
//! It exists because these are read before an outage, and the others in one.
//! It refuses series of single keys: what is kept is counted by route.

use super::shape::{Series, counter, gauge, histogram};

pub(in crate::telemetry) const COVERAGE: Series = counter(
    "evenkeel_coverage_calls",
    &["route", "found"],
    "Calls of a route that keeps answers, by what was there for them when they came: servable, or why a failure then would have found nothing",
);
pub(in crate::telemetry) const COVERAGE_RECENT: Series = gauge(
    "evenkeel_coverage_ratio",
    &["route"],
    "The servable share of these calls in the last five minutes; no value while there were none",
);
pub(in crate::telemetry) const STALE_LIMIT: Series = gauge(
    "evenkeel_stale_limit_seconds",
    &["route"],
    "The contract's limit on the age of old answers, where it states one",
);
pub(in crate::telemetry) const STALE_AGE: Series = histogram(
    "evenkeel_stale_age_ratio",
    &["route"],
    "Ages of old answers that stood in for a failure, as shares of the limit that each was served under",
);
pub(in crate::telemetry) const SHARED: Series = gauge(
    "evenkeel_attempts_shared",
    &["route"],
    "Attempts under way that calls may join, where a route shares them",
);
pub(in crate::telemetry) const UNSHAREABLE: Series = gauge(
    "evenkeel_keys_unshareable",
    &["route"],
    "Keys that are remembered because their answers were one caller's own, where a route shares attempts",
);
