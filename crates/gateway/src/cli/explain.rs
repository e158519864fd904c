//! Decides what `evenkeel explain` says about the code of a problem.
//! It exists so that the page about a mistake is at hand where the mistake was shown, without a network.
//! It refuses to guess which code was meant: it names those that there are.

use std::process::ExitCode;

use super::{UNUSABLE, complain, print};
use crate::config::lints::{self, Lint};

pub(super) fn run(code: Option<&str>) -> ExitCode {
    let Some(code) = code else {
        let lines: Vec<String> = lints::ALL.iter().map(line).collect();
        print(&lines.join("\n"));
        return ExitCode::SUCCESS;
    };
    if let Some(lint) = lints::find(code) {
        print(lint.page.trim_end());
        return ExitCode::SUCCESS;
    }
    complain(&format!(
        "{:?} is no code of a problem; `evenkeel explain` lists those there are",
        code.chars().take(64).collect::<String>()
    ));
    ExitCode::from(UNUSABLE)
}

/// Returns one line about a code: the title of its page.
fn line(lint: &Lint) -> String {
    let title = lint.page.lines().next().unwrap_or_default();
    let what = title.split_once(": ").map_or("", |(_, what)| what);
    format!("{:<32} {:<8} {what}", lint.code, lint.severity.as_str())
}
