//! Decides the verb `purge`: what is named, and how it is told what has gone.
//! It exists so that wrong data can be taken out of every copy at once.
//! It refuses to guess: one selection is named, and hard is written out.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::{
    hold::told,
    remote::{Reach, author},
    store,
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
    told(reach, reach.change("/purge", &wish), |done| {
        let count = |key: &str| done[key].as_u64().unwrap_or_default();
        let meaning = if hard {
            "gone"
        } else {
            "no longer fresh, still there for failures"
        };
        let trouble = done["trouble"].as_str();
        let trouble = trouble.map_or_else(String::new, |why| format!("\n warning: {why}"));
        format!(
            "purged {} ({meaning}): {} snapshots, {} URIs of routes that cache; {} keys looked at{}{trouble}",
            if hard { "hard" } else { "softly" },
            count("snapshots"),
            count("uris"),
            count("looked_at"),
            store::purged(done),
        )
    })
}
