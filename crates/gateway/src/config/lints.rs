//! Decides the words for the kinds of mistakes in a contract, and which of them only warn.
//! It exists so that each kind has one word, one page and one example, which tests hold to what the check does.
//! It refuses a second meaning for a word: tools and people rely on it.

use evenkeel_core::codes;

/// What a finding means for the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The contract is not served.
    Error,
    /// It is served, and somebody should look.
    Warning,
}

impl Severity {
    /// Returns its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One kind of mistake.
#[derive(Clone, Copy, Debug)]
pub struct Lint {
    /// Its word.
    pub code: &'static str,
    /// What it means for the contract.
    pub severity: Severity,
    /// The page about it: why, a bad example, and the same mended.
    pub page: &'static str,
}

// Mistakes of writing.
/// The file is not TOML.
pub const SYNTAX: &str = "syntax";
/// A file that cannot be read: not there, too large, or not UTF-8.
pub const UNREADABLE_FILE: &str = "unreadable-file";
/// A key that nobody reads.
pub const UNKNOWN_KEY: &str = "unknown-key";
/// A key that has no default and is not written down.
pub const MISSING_KEY: &str = "missing-key";
/// A value of another kind than the key takes.
pub const WRONG_TYPE: &str = "wrong-type";
/// A text that is no duration.
pub const BAD_DURATION: &str = "bad-duration";
/// A name that another one of the same kind has.
pub const DUPLICATE_NAME: &str = "duplicate-name";
/// An item that its list has already.
pub const LISTED_TWICE: &str = "listed-twice";
/// A reference to something that the contract does not have.
pub const UNKNOWN_NAME: &str = "unknown-name";
/// Something declared that nothing refers to.
pub const UNUSED: &str = "unused";
/// Two routes that could cover one request with equal right.
pub const SAME_REQUESTS: &str = "same-requests";
/// A dependency that is this gateway.
pub const CALLS_ITSELF: &str = "calls-itself";
/// Two listeners at one address.
pub const ADDRESS_TWICE: &str = "address-twice";

// Times that cannot be.
/// A timeout that no deadline lets happen.
pub const TIMEOUT_PAST_DEADLINE: &str = "timeout-past-deadline";
/// A pause before a retry that no deadline lets end.
pub const RETRIES_PAST_DEADLINE: &str = "retries-past-deadline";
/// Attempts that no deadline leaves time for, if those before them time out.
pub const LAST_ATTEMPT_TOO_LATE: &str = "last-attempt-too-late";
/// A wait for a permit that no deadline lets end.
pub const WAIT_PAST_DEADLINE: &str = "wait-past-deadline";

// What is dangerous.
/// Old data without a limit of its age.
pub const STALE_WITHOUT_LIMIT: &str = "stale-without-limit";
/// A decision that guards something, with something to stand in for it.
pub const PROTECT_WITH_LADDER: &str = "protect-with-ladder";
/// A ladder for routes that did not ask for one.
pub const LADDER_BY_WILDCARD: &str = "ladder-by-wildcard";
/// A ladder on a route that covers every path.
pub const LADDER_ON_CATCH_ALL: &str = "ladder-on-catch-all";
/// Something to stand in for what is only forwarded.
pub const PASS_WITH_LADDER: &str = "pass-with-ladder";
/// The mark taken away that keeps a gateway in front from retrying again.
pub const RETRIES_AT_TWO_LAYERS: &str = "retries-at-two-layers";
/// The copies for an outage kept behind what is out.
pub const STORE_ON_OWN_RESOURCE: &str = "store-on-own-resource";
/// Copies for everybody on a route for those who have logged in.
pub const SHARED_COPIES_WITH_CREDENTIALS: &str = "shared-copies-with-credentials";
/// A cookie that says who is asking, declared to decide nothing.
pub const SESSION_COOKIE_IGNORED: &str = "session-cookie-ignored";
/// Real answers that old data may take the place of.
pub const REAL_ANSWER_HIDDEN: &str = "real-answer-hidden";
/// An administration port that others reach, with no token of its operators.
pub const ADMIN_WITHOUT_TOKEN: &str = "admin-without-token";
/// A default that has to ask somebody.
pub const DEFAULT_CALLS_DEPENDENCY: &str = "default-calls-dependency";
/// A write whose outcome nobody could find out.
pub const OPERATE_WITHOUT_STATUS: &str = "operate-without-status";
/// A class that this version does not have.
pub const CLASS_NOT_BUILT: &str = "class-not-built";
/// An alternate that needs what the first dependency lacks when it fails.
pub const ALTERNATE_ON_OWN_RESOURCE: &str = "alternate-on-own-resource";

/// An authority that fails, or is slow, with what it protects.
pub const AUTHORITY_ON_OWN_RESOURCE: &str = "authority-on-own-resource";

// Values and files from outside.
/// A variable or a file that a value is to come from, and that cannot be read.
pub const VALUE_NOT_THERE: &str = "value-not-there";
/// A file with a value that every user of the machine may read.
pub const SECRET_READABLE_BY_ALL: &str = "secret-readable-by-all";
/// An include that names no file.
pub const INCLUDE_NOT_THERE: &str = "include-not-there";
/// An include in a file that is included.
pub const INCLUDE_NESTED: &str = "include-nested";
/// A file that is part of the contract already.
pub const INCLUDE_TWICE: &str = "include-twice";

/// Every kind, in the order of the index of the pages.
pub static ALL: &[Lint] = &[
    error(SYNTAX, include_str!("../../../../docs/reference/lints/syntax.md")),
    error(
        UNREADABLE_FILE,
        include_str!("../../../../docs/reference/lints/unreadable-file.md"),
    ),
    error(
        UNKNOWN_KEY,
        include_str!("../../../../docs/reference/lints/unknown-key.md"),
    ),
    error(
        MISSING_KEY,
        include_str!("../../../../docs/reference/lints/missing-key.md"),
    ),
    error(
        WRONG_TYPE,
        include_str!("../../../../docs/reference/lints/wrong-type.md"),
    ),
    error(
        codes::BAD_VALUE,
        include_str!("../../../../docs/reference/lints/bad-value.md"),
    ),
    error(
        BAD_DURATION,
        include_str!("../../../../docs/reference/lints/bad-duration.md"),
    ),
    error(
        codes::OUT_OF_RANGE,
        include_str!("../../../../docs/reference/lints/out-of-range.md"),
    ),
    error(
        DUPLICATE_NAME,
        include_str!("../../../../docs/reference/lints/duplicate-name.md"),
    ),
    error(
        LISTED_TWICE,
        include_str!("../../../../docs/reference/lints/listed-twice.md"),
    ),
    error(
        UNKNOWN_NAME,
        include_str!("../../../../docs/reference/lints/unknown-name.md"),
    ),
    error(UNUSED, include_str!("../../../../docs/reference/lints/unused.md")),
    error(
        codes::NO_EFFECT,
        include_str!("../../../../docs/reference/lints/no-effect.md"),
    ),
    error(
        SAME_REQUESTS,
        include_str!("../../../../docs/reference/lints/same-requests.md"),
    ),
    error(
        CALLS_ITSELF,
        include_str!("../../../../docs/reference/lints/calls-itself.md"),
    ),
    error(
        ADDRESS_TWICE,
        include_str!("../../../../docs/reference/lints/address-twice.md"),
    ),
    error(
        TIMEOUT_PAST_DEADLINE,
        include_str!("../../../../docs/reference/lints/timeout-past-deadline.md"),
    ),
    error(
        RETRIES_PAST_DEADLINE,
        include_str!("../../../../docs/reference/lints/retries-past-deadline.md"),
    ),
    warning(
        LAST_ATTEMPT_TOO_LATE,
        include_str!("../../../../docs/reference/lints/last-attempt-too-late.md"),
    ),
    error(
        WAIT_PAST_DEADLINE,
        include_str!("../../../../docs/reference/lints/wait-past-deadline.md"),
    ),
    error(
        codes::TIMES_CONFLICT,
        include_str!("../../../../docs/reference/lints/times-conflict.md"),
    ),
    error(
        STALE_WITHOUT_LIMIT,
        include_str!("../../../../docs/reference/lints/stale-without-limit.md"),
    ),
    error(
        PROTECT_WITH_LADDER,
        include_str!("../../../../docs/reference/lints/protect-with-ladder.md"),
    ),
    error(
        LADDER_BY_WILDCARD,
        include_str!("../../../../docs/reference/lints/ladder-by-wildcard.md"),
    ),
    warning(
        LADDER_ON_CATCH_ALL,
        include_str!("../../../../docs/reference/lints/ladder-on-catch-all.md"),
    ),
    error(
        PASS_WITH_LADDER,
        include_str!("../../../../docs/reference/lints/pass-with-ladder.md"),
    ),
    error(
        RETRIES_AT_TWO_LAYERS,
        include_str!("../../../../docs/reference/lints/retries-at-two-layers.md"),
    ),
    error(
        STORE_ON_OWN_RESOURCE,
        include_str!("../../../../docs/reference/lints/store-on-own-resource.md"),
    ),
    error(
        SHARED_COPIES_WITH_CREDENTIALS,
        include_str!("../../../../docs/reference/lints/shared-copies-with-credentials.md"),
    ),
    warning(
        SESSION_COOKIE_IGNORED,
        include_str!("../../../../docs/reference/lints/session-cookie-ignored.md"),
    ),
    error(
        REAL_ANSWER_HIDDEN,
        include_str!("../../../../docs/reference/lints/real-answer-hidden.md"),
    ),
    error(
        ADMIN_WITHOUT_TOKEN,
        include_str!("../../../../docs/reference/lints/admin-without-token.md"),
    ),
    error(
        DEFAULT_CALLS_DEPENDENCY,
        include_str!("../../../../docs/reference/lints/default-calls-dependency.md"),
    ),
    error(
        OPERATE_WITHOUT_STATUS,
        include_str!("../../../../docs/reference/lints/operate-without-status.md"),
    ),
    error(
        CLASS_NOT_BUILT,
        include_str!("../../../../docs/reference/lints/class-not-built.md"),
    ),
    warning(
        ALTERNATE_ON_OWN_RESOURCE,
        include_str!("../../../../docs/reference/lints/alternate-on-own-resource.md"),
    ),
    error(
        AUTHORITY_ON_OWN_RESOURCE,
        include_str!("../../../../docs/reference/lints/authority-on-own-resource.md"),
    ),
    error(
        codes::EXACT_WITH_OLD_DATA,
        include_str!("../../../../docs/reference/lints/exact-with-old-data.md"),
    ),
    error(
        codes::RUNG_TWICE,
        include_str!("../../../../docs/reference/lints/rung-twice.md"),
    ),
    error(
        codes::DEFAULT_NOT_LAST,
        include_str!("../../../../docs/reference/lints/default-not-last.md"),
    ),
    error(
        VALUE_NOT_THERE,
        include_str!("../../../../docs/reference/lints/value-not-there.md"),
    ),
    warning(
        SECRET_READABLE_BY_ALL,
        include_str!("../../../../docs/reference/lints/secret-readable-by-all.md"),
    ),
    error(
        INCLUDE_NOT_THERE,
        include_str!("../../../../docs/reference/lints/include-not-there.md"),
    ),
    error(
        INCLUDE_NESTED,
        include_str!("../../../../docs/reference/lints/include-nested.md"),
    ),
    error(
        INCLUDE_TWICE,
        include_str!("../../../../docs/reference/lints/include-twice.md"),
    ),
];

const fn error(code: &'static str, page: &'static str) -> Lint {
    Lint {
        code,
        severity: Severity::Error,
        page,
    }
}

const fn warning(code: &'static str, page: &'static str) -> Lint {
    Lint {
        code,
        severity: Severity::Warning,
        page,
    }
}

/// Returns the kind of this word.
///
/// ```
/// use evenkeel_gateway::config::lints;
/// assert!(lints::find("unknown-key").is_some());
/// assert!(lints::find("unknown-word").is_none());
/// ```
#[must_use]
pub fn find(code: &str) -> Option<&'static Lint> {
    ALL.iter().find(|lint| lint.code == code)
}

/// Returns what a finding of this word means; a word without a page is an error.
#[must_use]
pub fn severity(code: &str) -> Severity {
    find(code).map_or(Severity::Error, |lint| lint.severity)
}

/// Returns the path of the page about this word, from the root of the project.
#[must_use]
pub fn see(code: &str) -> String {
    format!("docs/reference/lints/{code}.md")
}
