//! Decides what is told of a contract that was not taken: the first problem with its place, and how many there are.
//! It exists so that log, command line and administration say the same.
//! It refuses to show values that came from secrets, as `evenkeel check` does.

use std::path::Path;

use serde_json::{Value, json};

use crate::config::Diagnostics;

/// Why the contract of before goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// File, line and column of the first problem; the file alone where it has no line.
    pub at: String,
    /// The first problem, in one line.
    pub first: String,
    /// How many there are.
    pub problems: usize,
    /// All of them, as `evenkeel check` prints them.
    pub text: String,
    /// The same as a list for programs.
    pub list: Value,
}

impl Refused {
    /// Tells what was found in a contract.
    pub(super) fn of(found: &Diagnostics) -> Self {
        let list = found.json();
        let first = list.as_array().and_then(|all| {
            all.iter()
                .find(|one| one["severity"] == "error")
                .or_else(|| all.first())
        });
        let text = |key: &str| first.and_then(|first| first[key].as_str()).unwrap_or_default();
        let number = |key: &str| first.and_then(|first| first[key].as_u64());
        let at = match (number("line"), number("column")) {
            (Some(line), Some(column)) => format!("{}:{line}:{column}", text("file")),
            (Some(_) | None, _) => text("file").to_owned(),
        };
        Self {
            at,
            first: format!(
                "{}: {}; allowed: {}; {}",
                text("place"),
                text("seen"),
                text("allowed"),
                text("mend")
            ),
            problems: found.problems(),
            text: found.to_string(),
            list,
        }
    }

    /// Tells that there is nothing to read.
    pub(super) fn unreadable(path: &Path, why: String) -> Self {
        Self {
            at: path.display().to_string(),
            problems: 1,
            list: json!([]),
            text: why.clone(),
            first: why,
        }
    }
}
