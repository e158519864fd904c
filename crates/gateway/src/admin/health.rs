//! Decides what liveness and readiness mean: the process answers, and the process takes traffic.
//! It exists because whoever restarts or unroutes a gateway for its dependencies makes their outage its own.
//! It refuses to be unready for a dependency that is down: answers get worse then, not the gateway.

use http::StatusCode;
use serde_json::json;

use super::reply::Reply;
use crate::proxy::Process;

pub(super) fn live() -> Reply {
    Reply::text("live\n")
}

pub(super) fn ready(process: &Process, verbose: bool) -> Reply {
    let stopping = process.is_stopping();
    let status = if stopping {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::OK
    };
    let word = if stopping { "stopping" } else { "ready" };
    if !verbose {
        return Reply::text(format!("{word}\n")).status(status);
    }
    let detail = json!({
        "state": word,
        "contract": process.reloads.json(),
        "requests_in_flight": process.requests_in_flight(),
    });
    Reply::json(&detail).status(status)
}
