//! Decides which problems the gateway can report: one kind per thing a client can do about it, with URI,
//! title and status.
//! It exists as the one list that code, answers and `docs/reference/problems.md` share; a test compares the
//! page with it.
//! It refuses to have a kind per reason: finer causes travel as the `reason` extension.

use http::StatusCode;

/// What every type URI begins with; the kind's word follows.
pub const TYPE_BASE: &str = "https://evenkeel.dev/problems/";

/// The kinds of problem the gateway reports itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// Not asked: breaker open, ramping or cooling down.
    BreakerOpen,
    /// Asked as a probe; no usable answer, so the breaker stays open.
    ProbeFailed,
    /// Not asked: no permit, queue expired, shed.
    AtCapacity,
    /// Not asked: an operator's hold.
    Held,
    /// Not asked: access could not be decided.
    ProtectionUnavailable,
    /// Not asked: operations cannot be recorded.
    JournalUnavailable,
    /// Asked; no usable answer.
    DependencyFailed,
    /// Asked; no answer in time.
    TimedOut,
    /// Our own fault, or an answer that breaks what was declared.
    Fault,
    /// An operation was sent and its outcome is unknown.
    OutcomeUnknown,
    /// The same operation is still running.
    OperationRunning,
    /// No operation with this id for this caller.
    NoSuchOperation,
    /// The route needs an `Idempotency-Key`.
    IdempotencyKeyMissing,
    /// The key was used for another request.
    IdempotencyKeyReused,
    /// `only-if-cached`, and nothing usable is kept.
    NothingKept,
    /// The request cannot be understood.
    BadRequest,
    /// No route covers the target.
    NoSuchRoute,
    /// The administration port is asked under a name that is not its own.
    WrongHost,
    /// The administration port is asked for a change without its token.
    TokenMissing,
    /// A page of another origin asks the administration port for a change.
    CrossOrigin,
    /// The administration port is asked about something that is not there.
    NotThere,
    /// What is asked of the administration port is against the contract.
    NotPermitted,
    /// The route does not cover the method.
    MethodNotAllowed,
    /// No route of this gateway takes the method.
    MethodNotImplemented,
    /// The request did not arrive in time.
    RequestTimedOut,
    /// The request body is over the limit.
    BodyTooLarge,
    /// The request target is over the limit.
    TargetTooLong,
    /// The request header section is over the limit.
    HeadersTooLarge,
}

/// What is known of a kind.
struct Row {
    word: &'static str,
    status: StatusCode,
    title: &'static str,
    meaning: &'static str,
    retry_after: bool,
}

impl ProblemKind {
    /// Every kind, in the order of the reference page.
    pub const ALL: [Self; 28] = [
        Self::BreakerOpen,
        Self::ProbeFailed,
        Self::AtCapacity,
        Self::Held,
        Self::ProtectionUnavailable,
        Self::JournalUnavailable,
        Self::DependencyFailed,
        Self::TimedOut,
        Self::Fault,
        Self::OutcomeUnknown,
        Self::OperationRunning,
        Self::NoSuchOperation,
        Self::IdempotencyKeyMissing,
        Self::IdempotencyKeyReused,
        Self::NothingKept,
        Self::BadRequest,
        Self::NoSuchRoute,
        Self::WrongHost,
        Self::TokenMissing,
        Self::CrossOrigin,
        Self::NotThere,
        Self::NotPermitted,
        Self::MethodNotAllowed,
        Self::MethodNotImplemented,
        Self::RequestTimedOut,
        Self::BodyTooLarge,
        Self::TargetTooLong,
        Self::HeadersTooLarge,
    ];

    /// Returns the stable word, the last part of the type URI.
    #[must_use]
    pub const fn word(self) -> &'static str {
        self.row().word
    }

    /// Returns the type URI.
    ///
    /// ```
    /// use evenkeel_http::problem::ProblemKind;
    ///
    /// assert_eq!(ProblemKind::TimedOut.type_uri(), "https://evenkeel.dev/problems/timed-out");
    /// ```
    #[must_use]
    pub fn type_uri(self) -> String {
        [TYPE_BASE, self.word()].concat()
    }

    /// Returns the status of every answer of this kind.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        self.row().status
    }

    /// Returns the title, the same for every occurrence.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.row().title
    }

    /// Returns what it means and what a client can do.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        self.row().meaning
    }

    /// Tells whether answers of this kind carry `Retry-After` (and `retry_after_seconds`).
    #[must_use]
    pub const fn has_retry_after(self) -> bool {
        self.row().retry_after
    }

    const fn row(self) -> Row {
        match self {
            Self::BreakerOpen => Row {
                word: "breaker-open",
                status: StatusCode::SERVICE_UNAVAILABLE,
                title: "The service behind this route is recovering",
                meaning: "It has been failing and is being left alone, or is taking traffic again step by step. \
                          The request was not sent to it. Repeat it after the stated time.",
                retry_after: true,
            },
            Self::ProbeFailed => Row {
                word: "probe-failed",
                status: StatusCode::SERVICE_UNAVAILABLE,
                title: "The service behind this route has not recovered yet",
                meaning: "It has been failing, and this request was sent to it to see whether it works again. No \
                          usable answer came, and nothing could stand in for it. Repeat the request after the \
                          stated time.",
                retry_after: true,
            },
            Self::AtCapacity => Row {
                word: "at-capacity",
                status: StatusCode::SERVICE_UNAVAILABLE,
                title: "Too busy to take this request",
                meaning: "Every permit for the service is in use, or the wait for one was too long. The request \
                          was not sent. Repeat it after the stated time.",
                retry_after: true,
            },
            Self::Held => Row {
                word: "held",
                status: StatusCode::SERVICE_UNAVAILABLE,
                title: "Switched off by an operator",
                meaning: "Somebody responsible has switched this route off for a limited time. The request was not \
                          sent. The stated time is the end of the hold.",
                retry_after: true,
            },
            Self::ProtectionUnavailable => Row {
                word: "protection-unavailable",
                status: StatusCode::SERVICE_UNAVAILABLE,
                title: "Access cannot be decided at the moment",
                meaning: "The authority that allows or denies this request does not answer. That is neither a yes \
                          nor a no: the protected operation did not run. Repeat the request after the stated time.",
                retry_after: true,
            },
            Self::JournalUnavailable => Row {
                word: "journal-unavailable",
                status: StatusCode::SERVICE_UNAVAILABLE,
                title: "Operations cannot be recorded at the moment",
                meaning: "An operation is recorded before it is sent, and recording does not work. It was not \
                          sent. Repeat it with the same key after the stated time.",
                retry_after: true,
            },
            Self::DependencyFailed => Row {
                word: "dependency-failed",
                status: StatusCode::BAD_GATEWAY,
                title: "The service behind this route gave no usable answer",
                meaning: "It refused the connection, broke off, or sent something that cannot be used, and nothing \
                          could stand in for its answer.",
                retry_after: false,
            },
            Self::TimedOut => Row {
                word: "timed-out",
                status: StatusCode::GATEWAY_TIMEOUT,
                title: "The service behind this route did not answer in time",
                meaning: "The request was sent and no answer came before the deadline, and nothing could stand in \
                          for it.",
                retry_after: false,
            },
            Self::Fault => Row {
                word: "fault",
                status: StatusCode::INTERNAL_SERVER_ERROR,
                title: "Something went wrong on our side",
                meaning: "An error that is not an outage: a defect, or an answer that breaks what was declared \
                          about it. Repeating the request will hardly help.",
                retry_after: false,
            },
            Self::OutcomeUnknown => Row {
                word: "outcome-unknown",
                status: StatusCode::GATEWAY_TIMEOUT,
                title: "The outcome of this operation is not known yet",
                meaning: "It may have taken effect. It is neither a failure nor a success and is never sent again \
                          by itself. Ask at `status_url`; do not repeat it with another key.",
                retry_after: false,
            },
            Self::OperationRunning => Row {
                word: "operation-running",
                status: StatusCode::CONFLICT,
                title: "The same operation is still running",
                meaning: "A request with this key was received before and has not finished. Repeat it unchanged \
                          after the stated time to get its result.",
                retry_after: true,
            },
            Self::NoSuchOperation => Row {
                word: "no-such-operation",
                status: StatusCode::NOT_FOUND,
                title: "No operation with this id",
                meaning: "There is none, or it belongs to somebody else.",
                retry_after: false,
            },
            Self::IdempotencyKeyMissing => Row {
                word: "idempotency-key-missing",
                status: StatusCode::BAD_REQUEST,
                title: "This route needs an Idempotency-Key",
                meaning: "Send the request with an `Idempotency-Key` of its own, and with the same one when it is \
                          repeated.",
                retry_after: false,
            },
            Self::IdempotencyKeyReused => Row {
                word: "idempotency-key-reused",
                status: StatusCode::UNPROCESSABLE_ENTITY,
                title: "This Idempotency-Key belongs to another request",
                meaning: "A request with this key but other content was received before. Use a new key for a new \
                          request.",
                retry_after: false,
            },
            Self::NothingKept => Row {
                word: "nothing-kept",
                status: StatusCode::GATEWAY_TIMEOUT,
                title: "No kept answer can be used",
                meaning: "The request asked for a kept answer only (`only-if-cached`), and there is none that may \
                          be given.",
                retry_after: false,
            },
            Self::BadRequest => Row {
                word: "bad-request",
                status: StatusCode::BAD_REQUEST,
                title: "The request cannot be understood",
                meaning: "It breaks the protocol or can be read in more than one way. `detail` names the place.",
                retry_after: false,
            },
            Self::NoSuchRoute => Row {
                word: "no-such-route",
                status: StatusCode::NOT_FOUND,
                title: "No route for this address",
                meaning: "Nothing is served under this host and path.",
                retry_after: false,
            },
            Self::WrongHost => Row {
                word: "wrong-host",
                status: StatusCode::MISDIRECTED_REQUEST,
                title: "Nothing is served here under this host name",
                meaning: "The administration port answers to IP addresses and to `localhost`, so that no page in a \
                          browser can read it under a name of its own. Use one of these.",
                retry_after: false,
            },
            Self::TokenMissing => Row {
                word: "token-missing",
                status: StatusCode::UNAUTHORIZED,
                title: "This needs the token of the administration port",
                meaning: "Changes, and reading what is kept, need `Authorization: Bearer` with the token of this \
                          gateway. The command line of the same user on the same machine finds it by itself.",
                retry_after: false,
            },
            Self::CrossOrigin => Row {
                word: "cross-origin",
                status: StatusCode::FORBIDDEN,
                title: "A page from elsewhere may not change anything here",
                meaning: "A browser said that the request comes from a page of another origin.",
                retry_after: false,
            },
            Self::NotThere => Row {
                word: "not-there",
                status: StatusCode::NOT_FOUND,
                title: "What was named is not there",
                meaning: "The administration port knows no route, dependency, hold or copy of this name. `detail` says \
                          which there are.",
                retry_after: false,
            },
            Self::NotPermitted => Row {
                word: "not-permitted",
                status: StatusCode::UNPROCESSABLE_ENTITY,
                title: "The contract does not permit this",
                meaning: "What was asked of the administration port does not suit what it was asked for: a hold that \
                          would serve old data where only exact answers are allowed, say. `detail` says what is \
                          permitted. Nothing was changed.",
                retry_after: false,
            },
            Self::MethodNotAllowed => Row {
                word: "method-not-allowed",
                status: StatusCode::METHOD_NOT_ALLOWED,
                title: "This address does not take this method",
                meaning: "The `Allow` field lists the methods it takes.",
                retry_after: false,
            },
            Self::MethodNotImplemented => Row {
                word: "method-not-implemented",
                status: StatusCode::NOT_IMPLEMENTED,
                title: "No address here takes this method",
                meaning: "CONNECT and TRACE are not forwarded: the one would open a tunnel past every rule, the other \
                          would send the request's credentials back.",
                retry_after: false,
            },
            Self::RequestTimedOut => Row {
                word: "request-timed-out",
                status: StatusCode::REQUEST_TIMEOUT,
                title: "The request did not arrive in time",
                meaning: "Its head or body came too slowly. `detail` says whether a part of it was sent on.",
                retry_after: false,
            },
            Self::BodyTooLarge => Row {
                word: "body-too-large",
                status: StatusCode::PAYLOAD_TOO_LARGE,
                title: "The request body is too large",
                meaning: "It is over the limit of this route. `detail` says whether a part of it was sent on.",
                retry_after: false,
            },
            Self::TargetTooLong => Row {
                word: "target-too-long",
                status: StatusCode::URI_TOO_LONG,
                title: "The address is too long",
                meaning: "Path and query are over the limit.",
                retry_after: false,
            },
            Self::HeadersTooLarge => Row {
                word: "headers-too-large",
                status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                title: "The request header is too large",
                meaning: "One field, or all of them together, are over the limit.",
                retry_after: false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn pd3_each_kind_has_a_word_and_a_title_of_its_own() {
        let words: BTreeSet<_> = ProblemKind::ALL.into_iter().map(ProblemKind::word).collect();
        let titles: BTreeSet<_> = ProblemKind::ALL.into_iter().map(ProblemKind::title).collect();
        assert_eq!(
            (words.len(), titles.len()),
            (ProblemKind::ALL.len(), ProblemKind::ALL.len())
        );
        assert!(
            words
                .iter()
                .all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'))
        );
    }

    #[test]
    fn h03_h04_every_local_503_names_a_time_and_nothing_else_but_a_running_twin_does() {
        for kind in ProblemKind::ALL {
            let local = matches!(
                kind.status(),
                StatusCode::SERVICE_UNAVAILABLE | StatusCode::CONFLICT
            );
            assert_eq!(kind.has_retry_after(), local, "{}", kind.word());
        }
    }

    #[test]
    fn h01_h02_unusable_is_502_and_too_late_is_504() {
        assert_eq!(ProblemKind::DependencyFailed.status(), 502);
        assert_eq!(ProblemKind::TimedOut.status(), 504);
        assert_eq!(ProblemKind::OutcomeUnknown.status(), 504);
        assert_eq!(ProblemKind::NothingKept.status(), 504, "C20");
    }
}
