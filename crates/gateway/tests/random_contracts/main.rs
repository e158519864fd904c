//! Contracts that nobody meant: good ones with parts cut out, doubled, swapped and replaced, and bytes at random. Whatever
//! is read, `evenkeel check` comes to its end and says of every problem what is needed to mend it.
//!
//! Each run draws fresh seeds and prints them; the last one printed is the one that failed.
//! `EVENKEEL_SEED=7 cargo test -p evenkeel-gateway --test random_contracts` repeats one,
//! `EVENKEEL_CONTRACTS=100000` draws more.

#![allow(clippy::panic, reason = "what breaks a test fails it")]

#[path = "../schema/judge.rs"]
mod judge;

use std::{fmt::Write as _, hash::BuildHasher as _};

use evenkeel::{Engine, Problem};
use evenkeel_core::Rng;
use evenkeel_gateway::{
    config::{self, Diagnostics, lints, schema},
    proxy::{App, Limits},
};

/// How many are drawn where nobody says.
const CONTRACTS: u64 = 1500;
/// The longest text that is made; a longer one is cut.
const TEXT_MAX: usize = 64 << 10;
const FULL: &str = include_str!("full.toml");
const EXAMPLES: [&str; 5] = [
    include_str!("../../../../examples/five-services.toml"),
    include_str!("../../../../examples/product-page.toml"),
    include_str!("../../../../examples/shared-cache.toml"),
    include_str!("../../../../examples/sidecar.toml"),
    include_str!("../../../../examples/tenants.toml"),
];
const REFERENCE: &str = include_str!("../../../../docs/reference/contract.md");

/// Values that stand where others are meant.
const VALUES: [&str; 30] = [
    "{ env = \"PATH\" }",
    "{ env = \"EVENKEEL_NOT_SET\" }",
    "{ file = \"/dev/null\" }",
    "{ file = \"no/such/file\" }",
    "0",
    "-1",
    "1",
    "4294967296",
    "9223372036854775807",
    "1e400",
    "nan",
    "0.5",
    "true",
    "\"\"",
    "\"0s\"",
    "\"1ns\"",
    "\"99999999999999999999d\"",
    "\"-1s\"",
    "\"100%\"",
    "\"0.0000001%\"",
    "\"18446744073709551615 GiB\"",
    "\"\\u0000\"",
    "\"ö\\u001b[31m\"",
    "\"http://[::1]:0\"",
    "\"///*\"",
    "[]",
    "[[[[]]]]",
    "{}",
    "{ a = { b = { c = 1 } } }",
    "1979-05-27T07:32:00Z",
];

struct Draws(Rng);

impl Draws {
    fn below(&mut self, of: usize) -> usize {
        usize::try_from(self.0.next_u64() % (of.max(1) as u64)).expect("it is below a usize")
    }

    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

/// Returns the contracts to start from: one with every kind of setting, and those that are shown to people.
fn originals() -> Vec<&'static str> {
    let shown = REFERENCE.split("```toml\n").skip(1);
    let shown = shown.filter_map(|rest| rest.split("```").next());
    [FULL; 5].into_iter().chain(EXAMPLES).chain(shown).collect()
}

/// Returns a text that somebody could have written who was not careful.
fn contract(draws: &mut Draws, originals: &[&'static str]) -> String {
    if draws.below(10) == 0 {
        let bytes: Vec<u8> = (0..draws.below(300))
            .map(|_| u8::try_from(draws.below(256)).expect("a byte"))
            .collect();
        return String::from_utf8_lossy(&bytes).into_owned();
    }
    if draws.below(10) == 0 {
        // Single bytes, wherever they are.
        let mut bytes = draws.of(originals).as_bytes().to_vec();
        for _ in 0..=draws.below(3) {
            let at = draws.below(bytes.len());
            bytes[at] = u8::try_from(draws.below(256)).expect("a byte");
        }
        return String::from_utf8_lossy(&bytes).into_owned();
    }
    let mut lines: Vec<String> = draws.of(originals).lines().map(str::to_owned).collect();
    if draws.below(4) == 0 {
        lines.extend(draws.of(originals).lines().map(str::to_owned));
    }
    for _ in 0..=draws.below(4) {
        let at = draws.below(lines.len());
        let Some(line) = lines.get(at).cloned() else { break };
        match draws.below(8) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, line),
            2 => {
                let other = draws.below(lines.len());
                lines.swap(at, other);
            }
            3 => lines.truncate(at),
            4 => {
                // A part of a line is cut out, wherever its characters are.
                let from = draws.below(line.chars().count());
                let length = draws.below(6);
                let kept = line
                    .chars()
                    .enumerate()
                    .filter(|(i, _)| !(from..from + length).contains(i));
                lines[at] = kept.map(|(_, c)| c).collect();
            }
            5 => {
                let from = draws.below(line.chars().count());
                let other = draws.of(&[
                    "\u{0}", "\"", "[", "}", "=", "#", "\r", "\\", "ß", "\u{202e}", ".",
                ]);
                lines[at] = line.chars().take(from).chain(other.chars()).collect::<String>()
                    + &line.chars().skip(from).collect::<String>();
            }
            _ => {
                let value = draws.of(&VALUES);
                if let Some((name, _)) = line.split_once('=') {
                    lines[at] = format!("{name}= {value}");
                } else {
                    lines.insert(at + 1, format!("x{} = {value}", draws.below(3)));
                }
            }
        }
    }
    let mut text = lines.join("\n");
    if let Some((end, _)) = text.char_indices().nth(TEXT_MAX) {
        text.truncate(end);
    }
    text
}

/// Does what `evenkeel check` does with the text of a file, and returns what it would show.
fn check(text: &str) -> Option<Diagnostics> {
    let loaded = match config::parse("contract.toml", text) {
        Ok(loaded) => loaded,
        Err(diagnostics) => return Some(diagnostics),
    };
    let mut diagnostics = loaded.diagnostics;
    let problems = App::build(&loaded.contract, &Engine::system(), Limits::default(), 1).err()?;
    diagnostics.absorb(&problems, &loaded.places);
    Some(diagnostics)
}

/// Returns what is missing of an answer to such a text.
fn missing(text: &str, diagnostics: &Diagnostics) -> String {
    let mut missing = String::new();
    if diagnostics.is_empty() {
        missing.push_str("it is refused without a problem\n");
    }
    for problem in diagnostics.list() {
        let Problem {
            code,
            place,
            seen,
            allowed,
            mend,
        } = problem;
        if lints::find(code).is_none() {
            let _written = writeln!(missing, "`{code}` has no page");
        }
        for (what, word) in [
            ("place", place),
            ("value", seen),
            ("allowed", allowed),
            ("mend", mend),
        ] {
            if word.trim().is_empty() {
                let _written = writeln!(missing, "a problem without {what}: {problem:?}");
            }
        }
    }
    let lines = text.lines().count().max(1);
    for (problem, spot) in diagnostics.spots() {
        // A text that ends with a newline can be wrong behind it.
        if spot.is_none_or(|spot| spot.line > lines + 1) {
            let _written = writeln!(missing, "a problem without a line of the file: {problem:?}");
        }
    }
    let shown = diagnostics.to_string();
    if !shown.contains("problem") || shown.len() > 1 << 20 {
        let _written = writeln!(missing, "{} bytes are shown of {}", shown.len(), text.len());
    }
    if shown.chars().any(|c| c.is_control() && c != '\n') {
        missing.push_str("a control character is shown\n");
    }
    missing
}

/// Returns whether the text of this seed was accepted.
fn holds(seed: u64, originals: &[&'static str], schema: &serde_json::Value) -> bool {
    let text = contract(&mut Draws(Rng::new(seed)), originals);
    let Some(diagnostics) = check(&text) else {
        let wrong = judge::judge(schema, text.trim_start_matches('\u{feff}'));
        assert!(
            wrong.is_empty(),
            "EVENKEEL_SEED={seed}: accepted, and not by the schema: {wrong:?}\n{text}"
        );
        return true;
    };
    let missing = missing(&text, &diagnostics);
    assert!(missing.is_empty(), "EVENKEEL_SEED={seed}: {missing}\n{text}");
    false
}

/// Returns a number that the environment gives.
fn given(name: &str) -> Option<u64> {
    let word = std::env::var(name).ok()?;
    Some(
        word.parse()
            .unwrap_or_else(|_| panic!("{name} is `{word}`; it has to be a number")),
    )
}

#[test]
fn whatever_a_contract_says_a_check_ends_with_every_problem_told_in_full() {
    let originals = originals();
    assert!(originals.len() > 4, "the page shows one");
    let refused: Vec<_> = originals.iter().filter_map(|text| check(text)).collect();
    assert!(refused.is_empty(), "{}", refused[0]);
    let schema = schema::schema().unwrap_or_else(|problems| panic!("{problems}"));
    if let Some(seed) = given("EVENKEEL_SEED") {
        holds(seed, &originals, &schema);
        return;
    }
    let mut rng = Rng::new(std::hash::RandomState::new().hash_one(0));
    let count = given("EVENKEEL_CONTRACTS").unwrap_or(CONTRACTS);
    let mut accepted = 0;
    for _ in 0..count {
        let seed = rng.next_u64();
        println!("EVENKEEL_SEED={seed}");
        accepted += u64::from(holds(seed, &originals, &schema));
    }
    // What is always refused at its first line tests nothing behind it.
    assert!(
        (count / 50..count).contains(&accepted),
        "{accepted} of {count} were accepted"
    );
}
