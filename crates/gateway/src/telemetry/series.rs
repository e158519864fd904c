//! Decides which series exist: name, kind, labels and meaning of each.
//! It exists as one list, so that code, reference page and alerts cannot name a series differently.
//! It refuses labels that come from requests.

mod kept;
mod process;
mod shape;
pub(super) mod store;

pub(super) use kept::{COVERAGE, COVERAGE_RECENT, SHARED, STALE_AGE, STALE_LIMIT, UNSHAREABLE};
pub(super) use process::{PROCESS_CPU, PROCESS_FILES, PROCESS_FILES_MAX, PROCESS_MEMORY, PROCESS_START};
pub use shape::{Kind, Series};
use shape::{counter, gauge};

pub(super) const CALLS: Series = counter(
    "evenkeel_calls",
    &["route", "ending", "rung", "reason"],
    "What calls came to; each is counted exactly once, and an answer made of old data never as live",
);
pub(super) const PASSES: Series = counter(
    "evenkeel_passes",
    &["route", "ending", "reason"],
    "What requests came to that are only forwarded; each is counted exactly once, and in no other series",
);
pub(super) const OBSERVED: Series = counter(
    "evenkeel_observed",
    &["route", "would", "reason"],
    "What requests would have come to on routes that only watch; in truth each was forwarded",
);
pub(super) const PROTECT: Series = counter(
    "evenkeel_protect",
    &["route", "authority", "decision", "reason"],
    "What authorities decided about requests, and why nobody did; a request that is not allowed is asked of no dependency",
);
pub(super) const SKIPPED: Series = counter(
    "evenkeel_rungs_skipped",
    &["route", "rung", "why"],
    "Rungs of the ladder that a call passed over, and why",
);
pub(super) const EXERCISES: Series = counter(
    "evenkeel_exercises",
    &["route", "rung", "result"],
    "Alternates and defaults that were tried beside a live answer, by what they came to",
);
pub(super) const NOT_KEPT: Series = counter(
    "evenkeel_answers_not_kept",
    &["route", "why"],
    "Good answers that were not kept as snapshots, and why",
);
pub(super) const JOINED: Series = counter(
    "evenkeel_calls_joined",
    &["route"],
    "Calls that shared an attempt which was under way already",
);
pub(super) const REFRESHES: Series = counter(
    "evenkeel_refreshes",
    &["route", "result"],
    "Refreshes of copies that nobody waited for, by what they came to",
);
pub(super) const ATTEMPTS: Series = counter(
    "evenkeel_attempts",
    &["dependency", "class"],
    "Attempts at a dependency that have ended, by what they brought; refusals made here are none",
);
pub(super) const QUEUE_WAITING: Series = gauge(
    "evenkeel_queue_waiting",
    &["dependency"],
    "Requests that wait for a permit, where the contract has a queue",
);
pub(super) const QUEUE_LIMIT: Series = gauge(
    "evenkeel_queue_limit",
    &["dependency"],
    "The most requests that wait for a permit, where the contract has a queue",
);
pub(super) const QUEUE_WAITS: Series = counter(
    "evenkeel_queue_waits",
    &["dependency"],
    "Requests that have waited for a permit, whatever came of it",
);
pub(super) const QUEUE_WAIT_SECONDS: Series = counter(
    "evenkeel_queue_wait_seconds",
    &["dependency"],
    "How long they have waited together",
);
pub(super) const RETRIES: Series = counter(
    "evenkeel_retries",
    &["dependency"],
    "Attempts that were made because the one before had failed; they are counted as attempts too",
);
pub(super) const RETRIES_DENIED: Series = counter(
    "evenkeel_retries_denied",
    &["dependency"],
    "Attempts that were not made because the budget for retries was used up",
);
pub(super) const RETRIES_LEFT: Series = gauge(
    "evenkeel_retries_left",
    &["dependency"],
    "Retries that the budget could pay for now, all at once",
);
pub(super) const ADDRESS_ATTEMPTS: Series = counter(
    "evenkeel_address_attempts",
    &["dependency", "address", "result"],
    "Attempts at one of several addresses, by what they say about the address",
);
pub(super) const ADDRESS_IN_FLIGHT: Series = gauge(
    "evenkeel_address_attempts_in_flight",
    &["dependency", "address"],
    "Attempts in flight at one of several addresses, streamed bodies included",
);
pub(super) const ADDRESS_EJECTED: Series = gauge(
    "evenkeel_address_ejected",
    &["dependency", "address"],
    "1 while an address has failed too often and is to be left out",
);
pub(super) const EJECTION_OVERRIDDEN: Series = gauge(
    "evenkeel_ejection_overridden",
    &["dependency"],
    "1 while addresses that are to be left out are asked all the same, because too few others are left",
);
pub(super) const OVERRIDDEN: Series = counter(
    "evenkeel_attempts_overridden",
    &["dependency"],
    "Attempts at an address that was to be left out, because too few others were left",
);
pub(super) const BREAKER_STATE: Series = gauge(
    "evenkeel_breaker_state",
    &["dependency", "state"],
    "1 for the state that the circuit breaker is in, 0 for the others",
);
pub(super) const BREAKER_TRANSITIONS: Series = counter(
    "evenkeel_breaker_transitions",
    &["dependency", "from", "to", "cause"],
    "Changes of the circuit breaker's state, by from where, to where and why",
);
pub(super) const BREAKER_OPENED: Series = gauge(
    "evenkeel_breaker_opened_timestamp_seconds",
    &["dependency"],
    "Since when the breaker is not closed, in Unix time; 0 while it is closed",
);
pub(super) const NEXT_PROBE: Series = gauge(
    "evenkeel_breaker_next_probe_timestamp_seconds",
    &["dependency"],
    "When the next probe may start, in Unix time; 0 while the breaker is closed",
);
pub(super) const PERMITS_IN_USE: Series = gauge(
    "evenkeel_permits_in_use",
    &["dependency"],
    "Attempts in flight, streamed bodies included, where a limit is declared",
);
pub(super) const PERMITS_LIMIT: Series = gauge(
    "evenkeel_permits_limit",
    &["dependency"],
    "The most attempts in flight, where a limit is declared",
);
pub(super) const IN_FLIGHT: Series = gauge(
    "evenkeel_attempts_in_flight",
    &["dependency"],
    "Attempts in flight, streamed bodies included, where a ramp, a learned limit or a concurrency is in force",
);
pub(super) const LINGERING: Series = gauge(
    "evenkeel_attempts_lingering",
    &["dependency"],
    "Attempts that were given up and still count as load, where a limit is learned or their number is capped",
);
pub(super) const ABANDONED_LIMIT: Series = gauge(
    "evenkeel_attempts_lingering_limit",
    &["dependency"],
    "The most attempts that are given up and still count, where the contract caps them",
);
pub(super) const LEARNED_LIMIT: Series = gauge(
    "evenkeel_learned_limit",
    &["dependency"],
    "The most attempts in flight that ramp and learned limit let in; 0 while they set no limit",
);
pub(super) const RAMP_STAGE: Series = gauge(
    "evenkeel_ramp_stage",
    &["dependency"],
    "Which stage of the ramp is under way, from 1; 0 while none is",
);
pub(super) const RAMP_STEPS: Series = counter(
    "evenkeel_ramp_steps",
    &["dependency", "step"],
    "What ramps did: begun, promoted, held, rolled-back, ended, reopened",
);
pub(super) const RAMP_SHARE: Series = gauge(
    "evenkeel_ramp_share_percent",
    &["dependency"],
    "How many of a hundred calls the ramp lets in; 100 while none is under way",
);
pub(super) const RESOURCE_IN_USE: Series = gauge(
    "evenkeel_resource_permits_in_use",
    &["resource"],
    "Attempts in flight that draw on a resource",
);
pub(super) const RESOURCE_LIMIT: Series = gauge(
    "evenkeel_resource_permits_limit",
    &["resource"],
    "The capacity of a resource",
);
pub(super) const IDLE_CONNECTIONS: Series = gauge(
    "evenkeel_idle_connections",
    &["dependency"],
    "Open connections to a dependency that wait for a request",
);
pub(super) const SNAPSHOTS: Series = gauge("evenkeel_snapshots", &[], "Snapshots that are kept");
pub(super) const SNAPSHOT_BYTES: Series = gauge(
    "evenkeel_snapshot_bytes",
    &[],
    "Bytes that the snapshots take, keys and bookkeeping included",
);
pub(super) const SNAPSHOT_BYTES_LIMIT: Series = gauge(
    "evenkeel_snapshot_bytes_limit",
    &[],
    "The most bytes of snapshots",
);
pub(super) const SNAPSHOT_EVICTIONS: Series = counter(
    "evenkeel_snapshot_evictions",
    &[],
    "Snapshots that went for want of room",
);
pub(super) const SHELF_URIS: Series = gauge(
    "evenkeel_shelf_uris",
    &[],
    "URIs of which routes that cache have copies",
);
pub(super) const SHELF_BYTES: Series = gauge(
    "evenkeel_shelf_bytes",
    &[],
    "Bytes that these copies take, keys and bookkeeping included",
);
pub(super) const SHELF_BYTES_LIMIT: Series =
    gauge("evenkeel_shelf_bytes_limit", &[], "The most bytes of such copies");
pub(super) const SHELF_EVICTIONS: Series = counter(
    "evenkeel_shelf_evictions",
    &[],
    "URIs whose copies went for want of room",
);
pub(super) const VALIDATIONS: Series = counter(
    "evenkeel_validations",
    &["route", "result"],
    "Answers of the dependency to questions whether a copy still holds, by what they said",
);
pub(super) const BUFFERED_BYTES: Series = gauge(
    "evenkeel_buffered_bytes",
    &[],
    "Bytes of bodies that are being held back",
);
pub(super) const REQUESTS_IN_FLIGHT: Series = gauge(
    "evenkeel_requests_in_flight",
    &[],
    "Requests that have arrived and have no answer yet",
);
pub(super) const CLIENT_CONNECTIONS: Series =
    gauge("evenkeel_client_connections", &[], "Open connections of clients");
pub(super) const MISDIRECTED: Series = counter(
    "evenkeel_requests_misdirected",
    &["problem"],
    "Requests that became no call, by the problem told to the client",
);
pub(super) const PEER_WORDS_UNREAD: Series = counter(
    "evenkeel_peer_words_unread",
    &["what"],
    "Deadlines and criticalities of listed peers, and traces, that could not be read and were left out",
);
pub(super) const EVENTS_LOST: Series = counter(
    "evenkeel_events_lost",
    &[],
    "Changes of state that were not logged because too many came at once",
);
pub(super) const LOG_LINES_LOST: Series = counter(
    "evenkeel_log_lines_lost",
    &[],
    "Lines of the log that could not be written, or came while too many waited to be",
);
pub(super) const ACCESS_LINES_LOST: Series = counter(
    "evenkeel_access_log_lines_lost",
    &[],
    "Lines about requests that could not be written, or came while too many waited to be",
);
pub(super) const CONTRACT_RELOADS: Series = counter(
    "evenkeel_contract_reloads",
    &["result"],
    "How often the contract was to be loaded anew, and what came of it",
);
pub(super) const CONTRACT_INFO: Series = gauge(
    "evenkeel_contract_info",
    &["hash"],
    "1, with a word for the text of the contract that runs; `none` where it came from no file",
);
pub(super) const CONTRACT_LOADED: Series = gauge(
    "evenkeel_contract_loaded_timestamp_seconds",
    &[],
    "Since when the contract that runs does, in Unix time; 0 where it came from no file",
);
pub(super) const CONTRACT_FALLBACK: Series = gauge(
    "evenkeel_contract_is_last_good",
    &[],
    "1 while the contract that runs is the last good one, because the file could not be loaded at the start",
);
pub(super) const BUILD_INFO: Series = gauge(
    "evenkeel_build_info",
    &["version"],
    "1, with the version that runs",
);

/// Every series, in the order in which they are exported.
pub const ALL: &[Series] = &[
    CALLS,
    PASSES,
    OBSERVED,
    PROTECT,
    SKIPPED,
    EXERCISES,
    NOT_KEPT,
    JOINED,
    REFRESHES,
    VALIDATIONS,
    COVERAGE,
    COVERAGE_RECENT,
    STALE_LIMIT,
    STALE_AGE,
    SHARED,
    UNSHAREABLE,
    ATTEMPTS,
    QUEUE_WAITING,
    QUEUE_LIMIT,
    QUEUE_WAITS,
    QUEUE_WAIT_SECONDS,
    RETRIES,
    RETRIES_DENIED,
    RETRIES_LEFT,
    ADDRESS_ATTEMPTS,
    ADDRESS_IN_FLIGHT,
    ADDRESS_EJECTED,
    EJECTION_OVERRIDDEN,
    OVERRIDDEN,
    BREAKER_STATE,
    BREAKER_TRANSITIONS,
    BREAKER_OPENED,
    NEXT_PROBE,
    PERMITS_IN_USE,
    PERMITS_LIMIT,
    IN_FLIGHT,
    LINGERING,
    ABANDONED_LIMIT,
    LEARNED_LIMIT,
    RAMP_STAGE,
    RAMP_SHARE,
    RAMP_STEPS,
    RESOURCE_IN_USE,
    RESOURCE_LIMIT,
    IDLE_CONNECTIONS,
    SNAPSHOTS,
    SNAPSHOT_BYTES,
    SNAPSHOT_BYTES_LIMIT,
    SNAPSHOT_EVICTIONS,
    SHELF_URIS,
    SHELF_BYTES,
    SHELF_BYTES_LIMIT,
    SHELF_EVICTIONS,
    store::UP,
    store::DOWN,
    store::ENTRIES,
    store::BYTES,
    store::BYTES_LIMIT,
    store::BACKLOG_ENTRIES,
    store::BACKLOG_BYTES,
    store::BACKLOG_SECONDS,
    store::WRITES,
    store::BATCHES,
    store::BATCHES_FAILED,
    store::DROPS,
    store::EVICTIONS,
    store::REMOVALS,
    store::REMOVALS_LATE,
    store::READS,
    store::FILES_PUT_ASIDE,
    BUFFERED_BYTES,
    REQUESTS_IN_FLIGHT,
    CLIENT_CONNECTIONS,
    MISDIRECTED,
    PEER_WORDS_UNREAD,
    EVENTS_LOST,
    LOG_LINES_LOST,
    ACCESS_LINES_LOST,
    CONTRACT_RELOADS,
    CONTRACT_INFO,
    CONTRACT_LOADED,
    CONTRACT_FALLBACK,
    BUILD_INFO,
    PROCESS_CPU,
    PROCESS_MEMORY,
    PROCESS_FILES,
    PROCESS_FILES_MAX,
    PROCESS_START,
];
