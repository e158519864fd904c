//! Decides what becomes of a request at the door of its route: on it goes, or this is what its client is told.
//! It exists between finding the route and everything else, so that nobody who is not allowed gets any further.
//! It refuses to let a request go on without a decision, and to call one that nobody decided about forbidden.

use std::sync::Arc;

use evenkeel::{Ending, Mono, Protection, Reason, Unanswered};
use http::Response;

use super::{
    app::App,
    arrive::Covered,
    outbound::Outbound,
    peer::Peer,
    protect::{Gate, Passed},
    refuse,
};
use crate::telemetry::CameTo;

/// A request that goes no further.
pub(super) struct Stopped {
    pub(super) protection: Protection,
    pub(super) response: Response<Outbound>,
    /// A denied request became no call. One that nobody decided about is a call that was refused.
    pub(super) came_to: Option<CameTo>,
}

/// Has a request decided about, and tells when it arrived.
pub(super) async fn pass<'a>(
    app: &App,
    peer: &Arc<Peer>,
    mut covered: Covered<'a>,
) -> Result<(Covered<'a>, Mono), Stopped> {
    let arrived = app.engine().now().mono;
    let Some(gate) = covered.served.gate.as_ref() else {
        return Ok((covered, arrived));
    };
    match gate
        .decide(arrived, &mut covered.request, &covered.authority, peer)
        .await
    {
        Passed::Allowed => Ok((covered, arrived)),
        Passed::Denied(response) => Err(Stopped {
            protection: Protection::Denied,
            response,
            came_to: None,
        }),
        Passed::Unavailable(retry_after) => Err(unavailable(gate, &covered, retry_after)),
    }
}

/// Tells a client that nobody decided. What kept the authority from it is for the operator to know.
fn unavailable(gate: &Gate, covered: &Covered<'_>, retry_after: Option<std::time::Duration>) -> Stopped {
    let served = covered.served;
    let is_read = matches!(covered.request.method, http::Method::GET | http::Method::HEAD);
    match (&served.reads, &served.passes) {
        (Some(route), _) if is_read => route.guard.count_unprotected(),
        (_, Some(passing)) => passing.guard.count_unprotected(),
        (Some(_), None) | (None, None) => {}
    }
    let reason = Some(Reason::ProtectionUnavailable);
    let end = Unanswered {
        ending: Ending::Refused,
        reason,
        skipped: evenkeel::Skips::default(),
        retry_after,
        cause: None,
        alternate_cause: None,
        misuse: None,
    };
    Stopped {
        protection: Protection::Unavailable,
        response: refuse::unanswered(&end, false, || gate.next_turn()),
        came_to: Some(CameTo {
            route: Arc::clone(&gate.route),
            ending: Ending::Refused,
            reason,
            age: None,
        }),
    }
}
