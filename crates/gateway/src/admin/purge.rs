//! Decides how a purge is asked for over the administration port, and what is answered.
//! It exists so that one thing is named and nothing is purged by what was left out.
//! It refuses more than one selection, and to purge hard unless somebody says so.

use evenkeel::Purge;
use evenkeel_http::problem::ProblemKind;
use serde_json::json;

use super::{
    asked::{Asked, Object},
    hold::{apart, words},
    reply::{Refused, Reply},
};
use crate::{
    proxy::{Current, Place, Selection},
    steering::Entry,
};

/// Purges.
pub(super) async fn purge(current: &Current, asked: &Asked) -> Result<Reply, Refused> {
    let said = asked.object(&["uri", "prefix", "tag", "route", "hard", "by"])?;
    let (selection, named) = selection(&said)?;
    let how = if said.flag("hard")? {
        Purge::Hard
    } else {
        Purge::Soft
    };
    let by = words(&said, "by")?;
    let peer = asked.peer.to_string();
    let report = apart(current, move |(process, app)| {
        let report = app.purge(&selection, how);
        let after = report.as_ref().ok().map(|report| {
            let mut shown = json!({
                "how": how.as_str(),
                "snapshots": report.snapshots.purged,
                "uris": report.uris.purged,
                "looked_at": report.snapshots.looked_at + report.uris.looked_at,
            });
            match &report.stored {
                Some(Ok(stored)) => shown["stored"] = (*stored).into(),
                Some(Err(why)) => shown["store_trouble"] = why.clone().into(),
                None => {}
            }
            shown
        });
        let entry = Entry {
            what: "purge",
            by: &by,
            peer: &peer,
            target: &named,
            before: None,
            after: after.clone(),
            refused: report.as_ref().err().cloned(),
        };
        let audited = process.steering.note(process.engine.now(), &entry);
        report.map(|_| {
            let mut shown = after.unwrap_or_default();
            shown["trouble"] = audited.err().into();
            shown
        })
    })
    .await?;
    let report = report.map_err(|why| Refused::because(ProblemKind::NotThere, why))?;
    Ok(Reply::json(&report))
}

fn selection(said: &Object) -> Result<(Selection, String), Refused> {
    let bad = |detail: String| Refused::because(ProblemKind::BadRequest, detail);
    let mut found = None;
    for key in ["uri", "prefix", "tag", "route"] {
        let Some(text) = said.text(key)? else { continue };
        if found.is_some() {
            return Err(bad(
                "more than one of uri, prefix, tag and route; name one".to_owned()
            ));
        }
        if text.is_empty() {
            return Err(bad(format!("{key} is empty; an empty one would mean everything")));
        }
        let selection = match key {
            "uri" => Selection::Uri(Place::read(text).map_err(bad)?),
            "prefix" => Selection::Prefix(Place::read(text).map_err(bad)?),
            "tag" if text.contains([' ', '\t', ',']) => {
                return Err(bad(format!(
                    "tag is {text:?}; tags are parted by blanks and commas, so name one tag without"
                )));
            }
            "tag" => Selection::Tag(text.to_owned()),
            _ => Selection::Route(text.to_owned()),
        };
        found = Some((selection, format!("{key} {text}")));
    }
    found.ok_or_else(|| bad("none of uri, prefix, tag and route; name one".to_owned()))
}
