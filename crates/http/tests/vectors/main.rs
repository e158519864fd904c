//! Runs the rule vectors beside this file: a request, a stored response, an elapsed time, and what must follow.
//! They exist so that a person can read what the cache does, section by section of the RFCs, without reading
//! code.
//! A vector that states nothing, or has a key nobody knows, fails: it refuses to pass for lack of a question.
//!
//! Every stored response arrives at Sun, 06 Nov 1994 08:49:37 GMT, `delay` seconds after its request was sent.
//! `docs/reference/caching.md` explains the keys.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a vector that cannot be read is a failed test, and its place is in the panic"
)]

mod expect;
mod given;

use std::fs;
use std::path::{Path, PathBuf};

use evenkeel_http::decision::{Decision, Unusable, Why};
use evenkeel_http::reuse::{NotGiven, Prohibition};
use evenkeel_http::store_rules::NotKept;
use toml::{Table, Value};

/// The fewest vectors this suite may shrink to.
const VECTORS_MIN: usize = 150;

/// The sections that must have a file, so that none is lost by a slip.
const SECTIONS: [&str; 25] = [
    "rfc5861-3",
    "rfc5861-4",
    "rfc9110-13",
    "rfc9110-14",
    "rfc9111-3",
    "rfc9111-3.1",
    "rfc9111-3.2",
    "rfc9111-3.3",
    "rfc9111-3.4",
    "rfc9111-3.5",
    "rfc9111-4",
    "rfc9111-4.1",
    "rfc9111-4.2",
    "rfc9111-4.2.1",
    "rfc9111-4.2.2",
    "rfc9111-4.2.3",
    "rfc9111-4.2.4",
    "rfc9111-4.3",
    "rfc9111-4.4",
    "rfc9111-5.1",
    "rfc9111-5.2.1",
    "rfc9111-5.2.2",
    "rfc9111-5.3",
    "rfc9211-2",
    "rfc9213-2",
];

#[test]
fn every_vector_holds() {
    let mut failures = Vec::new();
    for file in files() {
        for (number, vector) in vectors(&file).iter().enumerate() {
            let name = name_of(vector).unwrap_or_else(|| format!("vector {} without a name", number + 1));
            for problem in problems(vector) {
                failures.push(format!("{}: {name}: {problem}", stem(&file)));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn there_are_enough_vectors_each_with_a_name_of_its_own_and_a_rule() {
    let all: Vec<Table> = files().iter().flat_map(|file| vectors(file)).collect();
    assert!(all.len() >= VECTORS_MIN, "{} vectors", all.len());
    let mut names: Vec<_> = all.iter().map(|vector| name_of(vector).unwrap()).collect();
    names.sort_unstable();
    let repeated: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(repeated.is_empty(), "{repeated:?}");
    for vector in &all {
        let rule = vector.get("rule").and_then(Value::as_str).unwrap_or_default();
        assert!(!rule.is_empty(), "{:?} names no rule", name_of(vector));
    }
}

#[test]
fn every_section_has_a_file() {
    let mut stems: Vec<_> = files().iter().map(|file| stem(file)).collect();
    stems.sort_unstable();
    assert_eq!(stems, SECTIONS);
}

#[test]
fn a_wrong_expectation_an_unknown_key_and_an_empty_vector_fail() {
    let found = |text: &str| problems(&text.parse().unwrap());
    assert_eq!(found("response = ['200']\nstore = 'stored'"), [""; 0]);
    assert_eq!(found("response = ['200']\nstore = 'private'").len(), 1);
    assert_eq!(found("response = ['200']\nstroe = 'stored'").len(), 2);
    assert_eq!(found("response = ['200']"), ["expects nothing"]);
}

#[test]
fn the_reference_page_names_every_key_and_every_word() {
    let page = include_str!("../../../../docs/reference/caching.md");
    let given = NotGiven::Authorization;
    let why = [
        Why::Method,
        Why::UriMiss,
        Why::VaryMiss,
        Why::NotGiven(given),
        Why::UnknownAge,
        Why::ResponseNoCache,
        Why::RequestNoCache,
        Why::RequestMaxAge,
        Why::RequestMinFresh,
        Why::Stale,
    ];
    let unusable = [
        Unusable::NoSnapshot,
        Unusable::NotGiven(given),
        Unusable::ErrorCopy,
        Unusable::UnknownAge,
        Unusable::Forbidden(Prohibition::NoCache),
        Unusable::Request,
        Unusable::NoLimit,
        Unusable::TooOld,
    ];
    let decisions = [
        Decision::Fresh,
        Decision::StaleWhileRevalidating,
        Decision::StaleAccepted,
        Decision::Validate(Why::Stale),
        Decision::Fetch(Why::Stale),
        Decision::OnlyIfCached,
        Decision::FreshOnError,
        Decision::StaleOnError,
        Decision::Answer,
        Decision::ErrorAnswer(Unusable::TooOld),
        Decision::Refuse(Unusable::TooOld),
    ];
    let words = given::KEYS
        .iter()
        .chain(expect::KEYS)
        .copied()
        .chain(why.into_iter().map(Why::as_str))
        .chain(unusable.into_iter().map(Unusable::as_str))
        .chain(decisions.into_iter().map(Decision::as_str))
        .chain(NotKept::ALL.into_iter().map(NotKept::as_str));
    let missing: Vec<_> = words
        .filter(|word| !page.contains(&format!("`{word}`")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

fn problems(vector: &Table) -> Vec<String> {
    let unknown = vector
        .keys()
        .filter(|key| !given::KEYS.contains(&key.as_str()) && !expect::KEYS.contains(&key.as_str()))
        .map(|key| format!("unknown key {key:?}"));
    let mut problems: Vec<String> = unknown.collect();
    let expectations = expect::KEYS.iter().filter(|key| vector.contains_key(**key));
    if expectations.clone().next().is_none() {
        problems.push("expects nothing".to_owned());
    }
    let given = given::Given::of(vector);
    for key in expectations {
        let wanted = given::text(&vector[*key]);
        let found = expect::observe(key, &given);
        if wanted != found {
            problems.push(format!("{key} is {found:?}, wanted {wanted:?}"));
        }
    }
    problems
}

fn name_of(vector: &Table) -> Option<String> {
    vector.get("name").and_then(Value::as_str).map(str::to_owned)
}

fn stem(file: &Path) -> String {
    file.file_stem().unwrap().to_str().unwrap().to_owned()
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort_unstable();
    files
}

#[expect(
    clippy::disallowed_methods,
    reason = "the vectors are files; the rules themselves read none"
)]
fn vectors(file: &Path) -> Vec<Table> {
    let text = fs::read_to_string(file).unwrap();
    let table: Table = text
        .parse()
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let Some(Value::Array(vectors)) = table.get("vector") else {
        panic!("{}: no [[vector]]", file.display());
    };
    vectors
        .iter()
        .map(|vector| vector.as_table().unwrap().clone())
        .collect()
}
