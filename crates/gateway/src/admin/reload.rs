//! Decides what the administration says about a reload that was asked for: what has changed, or why nothing has.
//! It exists so that whoever rolls out a contract learns at once, and by the status, whether it runs.
//! It refuses to take a contract from the request: what runs is what is in the file.

use evenkeel_http::problem::ProblemKind;
use http::StatusCode;
use serde_json::{Value, json};

use super::reply::{Refused, Reply};
use crate::{
    proxy::Current,
    reload::{Outcome, Trigger},
};

pub(super) async fn reload(current: &Current) -> Result<Reply, Refused> {
    let Some(reloader) = current.reloader() else {
        let why = "the contract of this gateway came from no file";
        return Err(Refused::because(ProblemKind::NoSuchRoute, why));
    };
    let Some(outcome) = reloader.reload(Trigger::Admin).await else {
        let why = "the gateway stops; the next start reads the file";
        return Err(Refused::because(ProblemKind::NoSuchRoute, why));
    };
    let hash = current.process().reloads.hash();
    Ok(match &*outcome {
        Outcome::Reloaded(changes) => {
            Reply::json(&json!({ "result": "reloaded", "hash": hash, "changes": changes.json() }))
        }
        Outcome::Unchanged => Reply::json(&json!({ "result": "unchanged", "hash": hash })),
        Outcome::Refused(refused) => {
            let refused: Value = json!({
                "result": "refused",
                "hash": hash,
                "at": refused.at,
                "problem": refused.first,
                "problems": refused.problems,
                "list": refused.list,
            });
            Reply::json(&refused).status(StatusCode::UNPROCESSABLE_ENTITY)
        }
    })
}
