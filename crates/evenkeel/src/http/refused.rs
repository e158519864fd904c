//! Decides as which problem a refusal is told over HTTP: the status follows from the first cause.
//! It exists so that a router with a layer and the gateway refuse alike.
//! It refuses to know what was skipped on the way: those are details of a problem, never its kind.

use evenkeel_core::Reason;
use evenkeel_http::problem::ProblemKind;

/// Returns the problem that a call without an answer ended in, by the reason that kept it from being live.
///
/// ```
/// use evenkeel::{Reason, http::problem_kind};
/// assert_eq!(problem_kind(Some(Reason::TimedOut)).status(), 504);
/// assert_eq!(problem_kind(Some(Reason::BreakerOpen)).status(), 503);
/// ```
#[must_use]
pub const fn problem_kind(reason: Option<Reason>) -> ProblemKind {
    match reason {
        Some(Reason::DependencyFailed | Reason::Cut | Reason::ErrorAnswer | Reason::Busy) => {
            ProblemKind::DependencyFailed
        }
        Some(Reason::TimedOut) => ProblemKind::TimedOut,
        // What is served while the dependency is being asked is never refused.
        Some(Reason::Fault | Reason::Slow | Reason::Revalidating) | None => ProblemKind::Fault,
        Some(Reason::BreakerOpen | Reason::Ramping | Reason::CoolDown) => ProblemKind::BreakerOpen,
        Some(Reason::ProbeFailed) => ProblemKind::ProbeFailed,
        Some(Reason::AtCapacity | Reason::QueueExpired | Reason::Shed) => ProblemKind::AtCapacity,
        Some(Reason::Held) => ProblemKind::Held,
        Some(Reason::ProtectionUnavailable) => ProblemKind::ProtectionUnavailable,
    }
}
