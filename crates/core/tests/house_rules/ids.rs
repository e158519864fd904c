//! Decides whether `docs/reference/rules.md` explains exactly the rule ids that the code uses. An id
//! that nobody can look up tells a reader nothing, and one that no code uses misleads. It refuses to
//! guess what an id means: only its family and its number of digits make it one.

use std::collections::BTreeSet;

/// The families with one digit, and those with two.
const FAMILIES: [(&[&str], usize); 2] = [
    (&["CS", "PS", "PD", "PM", "X"], 1),
    (&["H", "C", "S", "M", "E", "G"], 2),
];

/// Returns the ids in a file: written out, as `C12`, and as a part of the name of a function, as `fn c12_..`.
pub(crate) fn used(text: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut ids = BTreeSet::new();
    let mut after_fn = false;
    for word in text.split(|c: char| !is_word(c)).filter(|word| !word.is_empty()) {
        if is_id(word) {
            ids.insert(word.to_owned());
        }
        if after_fn {
            let parts = word.split('_').map(str::to_ascii_uppercase);
            ids.extend(parts.filter(|part| is_id(part)));
        }
        after_fn = word == "fn";
    }
    ids
}

/// Returns the ids that the page has a row for.
pub(crate) fn explained(page: &str) -> BTreeSet<String> {
    page.lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(' ').next())
        .filter(|id| is_id(id))
        .map(str::to_owned)
        .collect()
}

fn is_id(word: &str) -> bool {
    FAMILIES.iter().any(|(families, digits)| {
        families.iter().any(|family| {
            word.strip_prefix(family).is_some_and(|number| {
                number.len() == *digits && number.bytes().all(|byte| byte.is_ascii_digit())
            })
        })
    })
}

#[test]
fn an_id_is_found_in_comments_and_in_names_and_nowhere_else() {
    let text =
        "/// Rule C12, CS2; see S01-S03.\nfn h04_and_x1_hold(c13: u8) { e21_x(); } // H2 C123 CS22 XX1";
    let found: Vec<String> = used(text).into_iter().collect();
    assert_eq!(found, ["C12", "CS2", "H04", "S01", "S03", "X1"]);
}

#[test]
fn a_row_of_the_page_explains_one_id() {
    let page = "| id | source |\n|---|---|\n| C12 | x |\n| CS2 | C13 |\nC14\n";
    let found: Vec<String> = explained(page).into_iter().collect();
    assert_eq!(found, ["C12", "CS2"]);
}
