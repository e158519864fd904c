//! Decides the verb `purge`: what is named, and how it is told what has gone.
//! It exists so that wrong data can be taken out of every copy at once.
//! It refuses to guess: one selection is named, and hard is written out.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::{
    hold::told,
    remote::{Reach, author},
};

/// What is purged.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct Selected {
    /// A URI, or a path for every host: all its copies, in every scope, variant and encoding
    uri: Option<String>,
    /// Everything that begins so
    #[arg(long, value_name = "URI")]
    prefix: Option<String>,
    /// Everything that carries this tag, on routes with `tags`
    #[arg(long)]
    tag: Option<String>,
    /// Everything of one route
    #[arg(long, value_name = "NAME")]
    route: Option<String>,
}

pub(super) fn run(reach: &Reach, what: &Selected, hard: bool, by: Option<&str>) -> ExitCode {
    let wish = json!({
        "uri": what.uri,
        "prefix": what.prefix,
        "tag": what.tag,
        "route": what.route,
        "hard": hard,
        "by": by.map_or_else(author, str::to_owned),
    });
    told(reach, reach.change("/purge", &wish), |done| said(done, hard))
}

/// Writes what a purge found, and what is not as it should be: in the audit file, and in the store on disk.
fn said(done: &Value, hard: bool) -> String {
    let count = |key: &str| done[key].as_u64().unwrap_or_default();
    let counted = |key: &str, one: &str| match count(key) {
        1 => format!("1 {one}"),
        many => format!("{many} {one}s"),
    };
    let (how, meaning) = if hard {
        ("hard", "gone")
    } else {
        ("softly", "no longer fresh, still there for failures")
    };
    let mut told = format!(
        "purged {how} ({meaning}): {}, {} of routes that cache",
        counted("snapshots", "snapshot"),
        counted("uris", "URI"),
    );
    if done["stored"].is_u64() {
        told.push_str(&format!(", {} on disk", count("stored")));
    }
    told.push_str(&format!("; {} looked at", counted("looked_at", "key")));
    if let Some(why) = done["trouble"].as_str() {
        told.push_str(&format!("\n warning: {why}"));
    }
    if let Some(why) = done["store_trouble"].as_str() {
        told.push_str(&format!(
            "\n warning: not durable in the store on disk yet, and tried until it is: {why}"
        ));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_store_has_done_or_not_is_told_beside_the_audit_file() {
        let done = json!({ "snapshots": 1, "uris": 0, "looked_at": 24, "stored": 5, "trouble": "the audit file is full" });
        assert_eq!(
            said(&done, true),
            "purged hard (gone): 1 snapshot, 0 URIs of routes that cache, 5 on disk; 24 keys looked at\n warning: the audit file is full"
        );
        let done = json!({ "snapshots": 2, "uris": 1, "looked_at": 1, "store_trouble": "damaged" });
        assert_eq!(
            said(&done, false),
            "purged softly (no longer fresh, still there for failures): 2 snapshots, 1 URI of routes that cache; 1 key looked at\n warning: not durable in the store on disk yet, and tried until it is: damaged"
        );
    }
}
