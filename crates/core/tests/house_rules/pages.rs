//! Decides whether the written pages keep their shape: changelog, decisions, links. A page that
//! lost its cost section or points nowhere misleads the one reader who needed it. It refuses to
//! follow links out of the repository: a test must not depend on somebody else's server.

use std::collections::BTreeMap;

/// The sections of a decision, in order.
const DECISION_SECTIONS: [&str; 3] = ["## Context", "## Choice", "## Cost"];

/// Names a changelog in which the next change has no place to go.
pub(crate) fn changelog(text: &str) -> Vec<String> {
    let first = text
        .lines()
        .find(|line| line.starts_with("## "))
        .unwrap_or_default();
    match first {
        "## [Unreleased]" | "## Unreleased" => Vec::new(),
        _ => vec![format!(
            ": the first section is `{first}`; it must be `## [Unreleased]`"
        )],
    }
}

/// Names what a page of `docs/decisions/` lacks: its `NNNN-title.md` name, a title, a section.
pub(crate) fn decision(name: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if !is_decision_name(name) {
        problems.push(": the name must be NNNN-title.md, lower case with hyphens".to_owned());
    }
    if !text.starts_with("# ") {
        problems.push(":1: must open with `# ` and the decision in one line".to_owned());
    }
    let sections: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
    if sections != DECISION_SECTIONS {
        problems.push(format!(
            ": sections are {sections:?}; they must be {DECISION_SECTIONS:?}"
        ));
    }
    problems
}

fn is_decision_name(name: &str) -> bool {
    let Some((number, title)) = name.strip_suffix(".md").and_then(|stem| stem.split_once('-')) else {
        return false;
    };
    let digits = number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit());
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    digits && !title.is_empty() && title.bytes().all(plain)
}

/// Names decisions that share a number, so that "decision 7" means one page.
pub(crate) fn repeated_numbers(names: &[&str]) -> Vec<String> {
    let mut by_number: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in names {
        by_number
            .entry(name.split('-').next().unwrap_or(name))
            .or_default()
            .push(name);
    }
    by_number
        .into_values()
        .filter(|names| names.len() > 1)
        .map(|names| names.join(" and "))
        .collect()
}

/// Names each link of a Markdown page whose file does not exist. `exists` gets paths below the root.
pub(crate) fn dead_links(page: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut problems = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        if fenced {
            continue;
        }
        for target in targets(line) {
            let file = target.split('#').next().unwrap_or_default();
            let remote = file.contains("://") || file.starts_with("mailto:");
            if file.is_empty() || remote {
                continue;
            }
            if !below_root(folder, file).is_some_and(|path| exists(&path)) {
                problems.push(format!(
                    ":{}: links to `{target}`, which does not exist",
                    index + 1
                ));
            }
        }
    }
    problems
}

/// Returns the targets of `[text](target)` and `[name]: target` outside code spans.
fn targets(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    // Every second piece between backticks is code.
    for piece in line.split('`').step_by(2) {
        for after in piece.split("](").skip(1) {
            found.extend(after.split([')', ' ']).next());
        }
    }
    // A footnote, `[^1]: text`, looks alike and is none.
    let definition = line
        .split_once("]: ")
        .filter(|(name, _)| name.starts_with('[') && !name.starts_with("[^"));
    if let Some((_, target)) = definition {
        found.push(target.split(' ').next().unwrap_or_default());
    }
    found
}

/// Resolves `file` against `folder`; `None` when it leaves the repository.
fn below_root(folder: &str, file: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[test]
fn a_changelog_without_an_open_section_fails() {
    assert_eq!(
        changelog("# Changelog\n\n## [Unreleased]\n\n## [0.1.0]\n"),
        Vec::<String>::new()
    );
    assert_eq!(
        changelog("# Changelog\n\n## [0.1.0]\n\n## [Unreleased]\n").len(),
        1
    );
    assert_eq!(changelog("").len(), 1);
}

#[test]
fn a_decision_with_a_bad_name_fails() {
    let good = "# One\n\n## Context\n\n## Choice\n\n## Cost\n";
    assert_eq!(decision("0001-small-packages.md", good), Vec::<String>::new());
    for name in [
        "1-small.md",
        "0001.md",
        "0001-.md",
        "0001-Small.md",
        "0001_small.md",
        "notes.txt",
        "x/0001-a.md",
    ] {
        assert_eq!(decision(name, good).len(), 1, "{name}");
    }
}

#[test]
fn a_decision_without_a_title_or_a_section_fails() {
    assert_eq!(decision("0001-a.md", "## Context\n## Choice\n## Cost\n").len(), 1);
    for section in DECISION_SECTIONS {
        let text = format!("# One\n{}", DECISION_SECTIONS.join("\n").replace(section, "text"));
        assert_eq!(decision("0001-a.md", &text).len(), 1, "{section}");
    }
}

#[test]
fn a_number_used_twice_fails() {
    assert_eq!(
        repeated_numbers(&["0001-a.md", "0002-b.md"]),
        Vec::<String>::new()
    );
    assert_eq!(
        repeated_numbers(&["0001-a.md", "0001-b.md"]),
        ["0001-a.md and 0001-b.md"]
    );
}

#[test]
fn a_dead_link_fails_wherever_it_stands() {
    let exists = |path: &str| path == "docs/guide/a.md";
    let dead = |text: &str| dead_links("docs/decisions/0001-a.md", text, exists).len();
    assert_eq!(
        dead("[a](../guide/a.md#top) [b](#here) [c](https://example.org/x)"),
        0
    );
    assert_eq!(dead("[a](guide/a.md)"), 1);
    assert_eq!(dead("[a](../guide/a.md), then [`b`](../guide/b.md \"title\")"), 1);
    assert_eq!(dead("[ref]: ../guide/missing.md"), 1);
    assert_eq!(dead("![picture](picture.svg)"), 1);
    assert_eq!(dead("[out](../../../secret)"), 1);
    assert_eq!(dead("```\n[code](missing.md)\n```\n`[code](missing.md)`"), 0);
}
