//! The page about time limits: each claim names tests, and each test that is named exists.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test of a page reads it, and what breaks it fails it"
)]

use std::{fs, path::Path};

/// Returns each `file::function` that the page names, between backquotes.
fn named(page: &str) -> Vec<(&str, &str)> {
    let tests = page.split('`').skip(1).step_by(2);
    tests.filter_map(|code| code.split_once(".rs::")).collect()
}

#[test]
fn every_test_that_the_page_of_time_limits_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/guide/timeouts.md")).unwrap();
    let named = named(&page);
    assert!(named.len() > 30, "{} tests are named", named.len());
    let missing: Vec<_> = named
        .into_iter()
        .filter(|(file, function)| {
            let text = fs::read_to_string(root.join(format!("crates/{file}.rs"))).unwrap_or_default();
            !text.contains(&format!("fn {function}("))
        })
        .collect();
    assert_eq!(missing, []);
}

#[test]
fn every_limit_of_a_contract_stands_on_the_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/guide/timeouts.md")).unwrap();
    for limit in [
        "deadline",
        "timeout",
        "soft_timeout",
        "wait",
        "retry",
        "slow_after",
        "lease",
        "finish_within",
        "linger",
        "cool_down",
        "gateway.drain",
    ] {
        let has_a_row = page
            .lines()
            .filter(|line| line.starts_with('|'))
            .any(|row| row.split('|').nth(1).is_some_and(|cell| cell.contains(limit)));
        assert!(has_a_row, "{limit}");
    }
}
