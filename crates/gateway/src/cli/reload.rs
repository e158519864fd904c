//! Decides how `evenkeel reload` says what came of a reload.
//! It exists so that a script goes by the exit status, and a person sees at once what has changed or what is wrong.
//! It refuses to read the contract itself: what runs is what the gateway found in its own file.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::{
    FAILED, complain,
    hold::told,
    print,
    remote::{Failure, Reach},
};

pub(super) fn run(reach: &Reach) -> ExitCode {
    match reach.change("/reload", &json!({})) {
        Err(Failure::Refused(refused)) if refused["result"] == "refused" => {
            if reach.json {
                print(&refused.to_string());
            } else {
                complain(&problems(&refused));
            }
            ExitCode::from(FAILED)
        }
        done => told(reach, done, text),
    }
}

/// Says what has changed, one line for each kind of change.
fn text(done: &Value) -> String {
    let hash = done["hash"].as_str().unwrap_or_default();
    if done["result"] == "unchanged" {
        return format!("unchanged: the files say what runs already ({hash})");
    }
    let mut lines = vec![format!("reloaded ({hash})")];
    for (kind, names) in done["changes"].as_object().into_iter().flatten() {
        let names: Vec<&str> = names
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if !names.is_empty() {
            lines.push(format!("  {}: {}", kind.replace('_', " "), names.join(", ")));
        }
    }
    lines.join("\n")
}

/// Says what is wrong, and that nothing has changed.
fn problems(refused: &Value) -> String {
    let word = |key: &str| refused[key].as_str().unwrap_or_default();
    let more = match refused["problems"].as_u64() {
        Some(count @ 2..) => format!("\n{} more; `evenkeel check` shows them all", count - 1),
        Some(_) | None => String::new(),
    };
    format!(
        "refused, and nothing has changed: {}: {}{more}",
        word("at"),
        word("problem")
    )
}
