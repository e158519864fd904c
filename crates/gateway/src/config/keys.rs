//! Decides which keys a contract may hold, table by table.
//! It exists so that reader, reference page and tests share one list and none can forget a key.
//! It refuses nothing by itself; the reader refuses what is not listed here.

/// Keys at the top of the file.
pub const ROOT: &[&str] = &[
    "include",
    "gateway",
    "store",
    "resources",
    "dependencies",
    "authorities",
    "routes",
];
/// Keys of `[gateway]`.
pub const GATEWAY: &[&str] = &[
    "listen",
    "admin",
    "memory",
    "scope_share",
    "buffers",
    "workers",
    "drain",
    "access_log",
    "trusted_peers",
    "state",
    "admin_token_file",
    "metrics",
    "observe_only",
    "identity_from_peers",
    "deadline_from",
    "criticality_from",
    "trace",
    "watch",
];
/// Keys of `[store]`.
pub const STORE: &[&str] = &["path", "max", "backlog", "timeout", "clock_skew"];
/// Keys of `[resources.<name>]`.
pub const RESOURCE: &[&str] = &["concurrency"];
/// Keys of `[dependencies.<name>]`.
pub const DEPENDENCY: &[&str] = &[
    "urls",
    "balance",
    "eject",
    "uses",
    "timeout",
    "concurrency",
    "breaker",
    "probe",
    "ramp",
    "learned_limit",
    "retry",
    "queue",
    "abandoned",
    "resend",
    "classify",
    "classes",
    "deadline_to",
    "rewrite",
];
/// Keys of `eject`.
pub const EJECT: &[&str] = &["consecutive", "for", "for_max", "jitter", "max_share", "statuses"];
/// Keys of `classes`.
pub const CLASSES: &[&str] = &["outage", "refusal", "gone", "busy"];
/// Keys of one class of `classes`.
pub const CLASS: &[&str] = &["breaker", "ladder"];
/// Keys of `rewrite`.
pub const REWRITE: &[&str] = &[
    "host",
    "strip_prefix",
    "add_prefix",
    "set_request",
    "remove_request",
    "set_response",
    "remove_response",
];
/// Keys of `breaker`.
pub const BREAKER: &[&str] = &[
    "consecutive",
    "failure_ratio",
    "window",
    "window_calls",
    "min_calls",
    "slow_after",
    "slow_ratio",
    "open_for",
    "open_for_max",
    "jitter",
    "probes",
    "close_after",
    "lease",
];
/// Keys of `probe`.
pub const PROBE: &[&str] = &["path"];
/// Keys of `ramp`.
pub const RAMP: &[&str] = &["stages", "hold", "hold_max", "calls", "failure_ratio"];
/// Keys of `queue`.
pub const QUEUE: &[&str] = &["length", "wait"];
/// Keys of `retry`.
pub const RETRY: &[&str] = &[
    "attempts",
    "budget",
    "floor",
    "pause",
    "pause_max",
    "retry_after_max",
];
/// Keys of `learned_limit`.
pub const LEARNED_LIMIT: &[&str] = &["floor", "cold", "linger"];
/// Keys of `[authorities.<name>]`.
pub const AUTHORITY: &[&str] = &[
    "from", "method", "path", "headers", "consume", "copy", "identity", "deny", "deadline",
];
/// Keys of `identity` and `identity_from_peers`.
pub const IDENTITY: &[&str] = &["tenant", "subject", "entitlements"];
/// Keys of `[[routes]]`.
pub const ROUTE: &[&str] = &[
    "name",
    "match",
    "class",
    "from",
    "deadline",
    "authorize",
    "scope",
    "ladder",
    "exercise",
    "when_busy",
    "exact",
    "keep_if",
    "max_body",
    "coalesce",
    "criticality",
    "soft_timeout",
    "on_timeout",
    "finish_within",
    "refresh_ahead",
    "jitter",
    "cool_down",
    "other_methods",
    "max_request_body",
    "freshness",
    "heuristic",
    "stale_while_revalidate",
    "ignore_cookies",
    "keep_set_cookie",
    "override",
    "request_directives",
    "normalise",
    "tags",
    "observe_only",
];
/// Keys of `match`.
pub const MATCH: &[&str] = &["path", "host", "method", HEADER];
/// The key of `match` that is a table of fields.
pub const HEADER: &str = "header";
/// The keys whose tables have free names in them: `env` and `file` are names there, and no references.
pub const FREE_NAMES: &[&str] = &["classify", HEADER, "set_request", "set_response"];
/// Keys of one rung of `ladder`; exactly one of them.
pub const RUNG: &[&str] = &["stale", "alternate", "default"];
/// Keys of the `default` rung.
pub const DEFAULT: &[&str] = &["status", "content_type", "cache_control", "body"];
/// Keys of `keep_if`.
pub const KEEP_IF: &[&str] = &[
    "status",
    "not_empty",
    "content_type",
    "min_size",
    "max_size",
    "json",
    "json_not_empty",
    "grpc",
    "graphql",
    "else",
];

/// Every table with its keys, named as the reference page names them.
pub const ALL: &[(&str, &[&str])] = &[
    ("gateway", GATEWAY),
    ("gateway.identity_from_peers", IDENTITY),
    ("store", STORE),
    ("resources.<name>", RESOURCE),
    ("dependencies.<name>", DEPENDENCY),
    ("dependencies.<name>.eject", EJECT),
    ("dependencies.<name>.breaker", BREAKER),
    ("dependencies.<name>.probe", PROBE),
    ("dependencies.<name>.ramp", RAMP),
    ("dependencies.<name>.learned_limit", LEARNED_LIMIT),
    ("dependencies.<name>.retry", RETRY),
    ("dependencies.<name>.queue", QUEUE),
    ("dependencies.<name>.classes", CLASSES),
    ("dependencies.<name>.classes.outage", CLASS),
    ("dependencies.<name>.classes.refusal", CLASS),
    ("dependencies.<name>.classes.gone", CLASS),
    ("dependencies.<name>.classes.busy", CLASS),
    ("dependencies.<name>.rewrite", REWRITE),
    ("authorities.<name>", AUTHORITY),
    ("authorities.<name>.identity", IDENTITY),
    ("routes", ROUTE),
    ("routes.match", MATCH),
    ("routes.ladder", RUNG),
    ("routes.ladder.default", DEFAULT),
    ("routes.keep_if", KEEP_IF),
];
