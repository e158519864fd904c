//! Decides whether the repository keeps the rules that no compiler and no linter checks.
//! A rule that only people enforce is forgotten on the busiest day, so each one is a test that
//! names the file, the line, and what to do instead. It refuses to judge style that
//! `cargo fmt` or clippy can judge, and it starts no other program.

mod ids;
mod pages;
mod source;
mod tree;
mod words;

use tree::File;

/// Largest tracked file; a bigger one belongs in a release or behind a download.
const FILE_BYTES_MAX: usize = 512 * 1024;

/// Runs one rule over the files it covers and fails with everything it found.
fn assert_no_problem(rule: impl Fn(&File) -> Vec<String>) {
    let files = tree::tracked();
    let problems: Vec<String> = files
        .iter()
        .flat_map(|file| {
            rule(file)
                .into_iter()
                .map(|problem| format!("{}{problem}", file.path))
        })
        .collect();
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn a_source_file_has_at_most_400_lines_of_code() {
    assert_no_problem(|file| match file.is_source() {
        true => source::too_long(&file.text),
        false => Vec::new(),
    });
}

#[test]
fn a_source_file_opens_with_what_it_is() {
    assert_no_problem(|file| match file.is_source() {
        true => source::no_module_doc(&file.text),
        false => Vec::new(),
    });
}

#[test]
fn the_text_keeps_to_the_dictionary() {
    assert_no_problem(|file| words::banned(&file.path, &file.text));
}

#[test]
fn nothing_is_left_to_do_in_the_text() {
    assert_no_problem(|file| words::unfinished(&file.path, &file.text));
}

#[test]
fn no_file_names_a_place_on_one_machine() {
    assert_no_problem(|file| words::machine_paths(&file.path, &file.text));
}

#[test]
fn the_changelog_is_ready_for_the_next_line() {
    let files = tree::tracked();
    let log = files
        .iter()
        .find(|file| file.path == "CHANGELOG.md")
        .expect("CHANGELOG.md exists");
    assert_eq!(pages::changelog(&log.text), Vec::<String>::new());
}

#[test]
fn a_decision_says_context_choice_and_cost() {
    assert_no_problem(|file| match file.path.strip_prefix("docs/decisions/") {
        Some(name) => pages::decision(name, &file.text),
        None => Vec::new(),
    });
}

#[test]
fn a_decision_number_is_used_once() {
    let files = tree::tracked();
    let names: Vec<&str> = files
        .iter()
        .filter_map(|file| file.path.strip_prefix("docs/decisions/"))
        .collect();
    assert!(!names.is_empty(), "docs/decisions/ holds no page");
    assert_eq!(pages::repeated_numbers(&names), Vec::<String>::new());
}

#[test]
fn a_link_to_a_local_file_resolves() {
    let root = tree::root();
    assert_no_problem(|file| match file.path.ends_with(".md") {
        true => pages::dead_links(&file.path, &file.text, |path| root.join(path).exists()),
        false => Vec::new(),
    });
}

#[test]
fn no_tracked_file_is_large() {
    assert_no_problem(|file| too_large(file.bytes));
}

/// Names a file above [`FILE_BYTES_MAX`].
fn too_large(bytes: usize) -> Vec<String> {
    if bytes <= FILE_BYTES_MAX {
        return Vec::new();
    }
    vec![format!(
        ": {bytes} bytes, at most {FILE_BYTES_MAX} are allowed; generate it or fetch it instead"
    )]
}

#[test]
fn the_size_rule_fails_one_byte_past_the_limit() {
    assert_eq!(too_large(FILE_BYTES_MAX), Vec::<String>::new());
    assert_eq!(too_large(FILE_BYTES_MAX + 1).len(), 1);
}

#[test]
fn the_walk_sees_this_file_and_no_build_output() {
    let files = tree::tracked();
    assert!(
        files
            .iter()
            .any(|file| file.path == "crates/core/tests/house_rules/main.rs")
    );
    assert!(
        files
            .iter()
            .any(|file| file.path == "crates/core/src/lib.rs" && file.is_source())
    );
    assert!(!files.iter().any(|file| file.path.starts_with("target/")));
}

#[test]
fn every_rule_id_in_the_code_can_be_looked_up() {
    let files = tree::tracked();
    let is_code = |file: &&File| {
        file.path.starts_with("crates/")
            && (file.path.ends_with(".rs") || file.path.ends_with(".toml"))
            // Its examples are no rules.
            && !file.path.ends_with("house_rules/ids.rs")
    };
    let used = files
        .iter()
        .filter(is_code)
        .flat_map(|file| ids::used(&file.text));
    let page = files.iter().find(|file| file.path == "docs/reference/rules.md");
    let explained = page.map(|file| ids::explained(&file.text)).unwrap_or_default();
    let used: std::collections::BTreeSet<String> = used.collect();
    let (missing, idle) = (used.difference(&explained), explained.difference(&used));
    assert_eq!(
        (missing.collect::<Vec<_>>(), idle.collect::<Vec<_>>()),
        (Vec::new(), Vec::new()),
        "ids that docs/reference/rules.md lacks, and ids on it that no code uses"
    );
}
