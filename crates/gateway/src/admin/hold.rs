//! Decides how holds are asked for over the administration port: what must be said, and what is answered.
//! It exists so that every word of a hold is checked in one place, and the reason is never left out.
//! It refuses anonymous changes and holds without an end; what the contract permits is the register's to say.

use std::{sync::Arc, time::Duration};

use evenkeel::HoldMode;
use evenkeel_http::problem::ProblemKind;
use serde_json::{Value, json};

use super::{
    asked::{Asked, Object},
    reply::{Refused, Reply},
};
use crate::{
    config::units::{duration, show_duration},
    proxy::Current,
    steering::{Change, Entry, HOLD_DEFAULT, HOLD_MAX, Refusal, Target, WORDS_MAX, Wish},
};

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotThere(detail) => Self::because(ProblemKind::NotThere, detail),
            Refusal::NotPermitted(detail) => Self::because(ProblemKind::NotPermitted, detail),
        }
    }
}

fn bad(detail: String) -> Refused {
    Refused::because(ProblemKind::BadRequest, detail)
}

/// Puts a hold on.
pub(super) async fn hold(current: &Arc<Current>, asked: &Asked) -> Result<Reply, Refused> {
    let said = asked.object(&["route", "dependency", "mode", "reason", "by", "for"])?;
    let target = target(&said)?;
    let mode = mode(said.required("mode")?)?;
    let (by, why) = (words(&said, "by")?, words(&said, "reason")?);
    let lasts = lasts(said.text("for")?)?;
    let wish = Wish {
        target,
        mode,
        by,
        why,
        lasts,
    };
    let peer = asked.peer.to_string();
    let of = Arc::clone(current);
    let change = apart(current, move |(process, _)| {
        process.steering.hold(&of, wish, process.engine.now(), &peer)
    })
    .await??;
    Ok(answered(&change))
}

/// Takes a hold off.
pub(super) async fn release(current: &Arc<Current>, asked: &Asked) -> Result<Reply, Refused> {
    let said = asked.object(&["route", "dependency", "by"])?;
    let (target, by) = (target(&said)?, words(&said, "by")?);
    let peer = asked.peer.to_string();
    let of = Arc::clone(current);
    let change = apart(current, move |(process, _)| {
        process
            .steering
            .release(&of, &target, &by, process.engine.now(), &peer)
    })
    .await??;
    Ok(answered(&change))
}

/// Closes a breaker and begins the ramp from its first stage.
pub(super) async fn reset(current: &Current, asked: &Asked) -> Result<Reply, Refused> {
    let said = asked.object(&["route", "dependency", "reason", "by"])?;
    let (target, by, why) = (target(&said)?, words(&said, "by")?, words(&said, "reason")?);
    let peer = asked.peer.to_string();
    let done = apart(current, move |(process, app)| {
        let name = match &target {
            Target::Dependency(name) => Some(name.clone()),
            Target::Route(name) => app.asks(name),
        };
        let dependency = name.and_then(|name| app.dependency(&name));
        let before = dependency.as_ref().map(|one| one.status().state);
        let refused = dependency
            .is_none()
            .then(|| Refusal::not_there(&target.to_string(), &app.target_names()));
        if let Some(dependency) = &dependency {
            dependency.reset(&by, &why);
        }
        let word = |state: Option<evenkeel::State>| Value::from(state.map(evenkeel::State::as_str));
        let entry = Entry {
            what: "reset",
            by: &by,
            peer: &peer,
            target: &target.to_string(),
            before: before.map(word),
            after: dependency.as_ref().map(|one| word(one.status().state)),
            refused: refused.as_ref().map(ToString::to_string),
        };
        let audited = process.steering.note(process.engine.now(), &entry);
        match (refused, dependency) {
            (None, Some(dependency)) => Ok(json!({
                "dependency": dependency.name(),
                "before": before.map(word),
                "state": word(dependency.status().state),
                "trouble": audited.err(),
            })),
            (refused, _) => Err(refused.unwrap_or_else(|| Refusal::NotThere(target.to_string()))),
        }
    })
    .await??;
    Ok(Reply::json(&done))
}

/// Lists the holds.
pub(super) fn list(current: &Current) -> Reply {
    let process = current.process();
    let holds = process.steering.list(&current.app(), process.engine.now().mono);
    Reply::json(&json!({ "holds": holds, "trouble": process.steering.trouble() }))
}

type Of = (Arc<crate::proxy::Process>, Arc<crate::proxy::App>);

/// Does what writes files where no worker waits for it.
pub(super) async fn apart<R: Send + 'static>(
    current: &Current,
    work: impl FnOnce(Of) -> R + Send + 'static,
) -> Result<R, Refused> {
    let of = (Arc::clone(current.process()), current.app());
    tokio::task::spawn_blocking(move || work(of))
        .await
        .map_err(|_| Refused::plain(ProblemKind::Fault))
}

fn answered(change: &Change) -> Reply {
    Reply::json(&json!({
        "hold": change.hold,
        "kept_over_restart": change.kept,
        "trouble": change.trouble,
    }))
}

/// Reads what is meant: a route or a dependency, and not both.
pub(super) fn target(said: &Object) -> Result<Target, Refused> {
    match (said.text("route")?, said.text("dependency")?) {
        (Some(route), None) => Ok(Target::Route(route.to_owned())),
        (None, Some(dependency)) => Ok(Target::Dependency(dependency.to_owned())),
        (Some(_), Some(_)) => Err(bad("both route and dependency; name one".to_owned())),
        (None, None) => Err(bad("neither route nor dependency; name one".to_owned())),
    }
}

/// Reads a text of a person that must not be empty.
pub(super) fn words(said: &Object, key: &str) -> Result<String, Refused> {
    worded(said.required(key)?, key)
}

/// Takes a text of a person: not empty, of one line, and nothing in it that would steer the terminal of whoever reads it.
pub(super) fn worded(text: &str, key: &str) -> Result<String, Refused> {
    let text = text.trim();
    if let Some(control) = text.chars().find(|one| one.is_control()) {
        return Err(bad(format!(
            "{key} contains {control:?}; write one line without control characters"
        )));
    }
    if text.is_empty() || text.chars().count() > WORDS_MAX {
        return Err(bad(format!(
            "{key} has {} characters; write 1 to {WORDS_MAX}",
            text.chars().count()
        )));
    }
    Ok(text.to_owned())
}

fn mode(word: &str) -> Result<HoldMode, Refused> {
    HoldMode::ALL
        .into_iter()
        .find(|mode| mode.as_str() == word)
        .ok_or_else(|| {
            let words = HoldMode::ALL.map(HoldMode::as_str).join(", ");
            bad(format!("mode is {word:?}; one of: {words}"))
        })
}

fn lasts(text: Option<&str>) -> Result<Duration, Refused> {
    let Some(text) = text else { return Ok(HOLD_DEFAULT) };
    let allowed = || format!("1s to {}", show_duration(HOLD_MAX));
    let span =
        duration(text).map_err(|no| bad(format!("for is {text:?}: {}; allowed: {}", no.why, allowed())))?;
    if span < Duration::from_secs(1) || span > HOLD_MAX {
        return Err(bad(format!(
            "for is {text:?}; allowed: {}; a longer one belongs into the contract",
            allowed()
        )));
    }
    Ok(span)
}
