//! Random stories of one URI: reads of three variants, reloads, conditions, ranges and writes, one after another.
//! The model keeps for each variant the step that its body came from, its tag, and whether it is fresh.
//! It leaves out what a cache may choose: a copy is only expected where it must be the right one.

use std::fmt::Write as _;

use super::Dice;
use crate::script::{self, Script};

/// How many stories are told.
pub(crate) const STORIES: usize = 300;
/// How many requests each has.
const STEPS: usize = 14;
/// What tells the variants apart: the value of the field that `Vary` names, or its absence.
const VARIANTS: [Option<&str>; 3] = [None, Some("1"), Some("2")];

const FRESH: &str = "cache-control: max-age=1000";
const STALE: &str = "cache-control: max-age=100', 'age: 500";
const STALE_BUT: &str = "cache-control: max-age=100, stale-if-error=9000', 'age: 500";
const NO_STORE: &str = "cache-control: no-store";

/// What is stored for one variant.
#[derive(Clone, Copy, Debug)]
struct Copy {
    /// The step whose body it has.
    step: usize,
    is_fresh: bool,
    /// It may be given where asking failed: it is fresh, or says so.
    stands_in: bool,
}

/// One URI, and the story of it so far.
struct Story<'d> {
    dice: &'d mut Dice,
    copies: [Option<Copy>; VARIANTS.len()],
    steps: Vec<String>,
}

/// Returns the stories of a seed.
pub(crate) fn scripts(seed: u64) -> Vec<Script> {
    let mut dice = Dice(seed);
    let mut text = String::new();
    for number in 0..STORIES {
        let mut story = Story {
            dice: &mut dice,
            copies: [None; VARIANTS.len()],
            steps: Vec::new(),
        };
        while story.steps.len() < STEPS {
            story.go_on();
        }
        let steps = story.steps.join(",\n");
        let result = writeln!(
            text,
            "[[script]]\nname = 'story {number}'\nrule = 'C32'\nsteps = [\n{steps}]"
        );
        result.expect("a text takes what is written to it");
    }
    script::parse("story", &text).unwrap_or_else(|problem| panic!("{problem}"))
}

impl Story<'_> {
    /// Tells one more step.
    fn go_on(&mut self) {
        let variant = self.dice.of(&[0, 1, 2]);
        let copy = self.copies[variant];
        let fresh = copy.filter(|copy| copy.is_fresh);
        match (self.dice.of(&[0, 0, 0, 1, 2, 3, 4, 5, 6]), fresh) {
            (0, Some(copy)) => self.reads("GET", variant, "", &format!("from = {}", copy.step)),
            (0, None) => self.asks(variant, ""),
            (1, _) => self.asks(variant, "cache-control: no-cache"),
            (2, Some(copy)) => self.reads("HEAD", variant, "", &format!("from = {}", copy.step)),
            (3, Some(copy)) => {
                let condition = format!("if-none-match: \"x\", {}", tag(copy));
                self.reads(
                    "GET",
                    variant,
                    &condition,
                    &format!("from = {}, gets = ['304']", copy.step),
                );
            }
            (4, Some(copy)) => {
                let then = format!("from = {}, gives = 'the ', gets = ['206']", copy.step);
                self.reads("GET", variant, "range: bytes=0-3", &then);
            }
            (5, _) => self.writes(),
            _ => {}
        }
    }

    fn reads(&mut self, method: &str, variant: usize, field: &str, then: &str) {
        let lines = [
            VARIANTS[variant].map(|value| format!("foo: {value}")),
            Some(field.to_owned()),
        ];
        let lines: String = lines
            .into_iter()
            .flatten()
            .filter(|line| !line.is_empty())
            .map(|line| format!(", '{line}'"))
            .collect();
        self.steps
            .push(format!("{{ request = ['{method}'{lines}], {then} }}"));
    }

    /// The origin is asked: it confirms what is stored, replaces it, or fails.
    fn asks(&mut self, variant: usize, field: &str) {
        let step = self.steps.len() + 1;
        let life = self.dice.of(&[FRESH, FRESH, STALE, STALE_BUT]);
        let (is_fresh, stands_in) = (life == FRESH, life != STALE);
        let copy = self.copies[variant];
        match (self.dice.of(&[0, 1, 2, 3]), copy) {
            (0, Some(copy)) => {
                let tag = tag(copy);
                let then = format!(
                    "answer = ['304', 'vary: foo', '{life}', 'etag: {tag}'], from = {}, \
                     sees = ['if-none-match has {tag}']",
                    copy.step
                );
                self.copies[variant] = Some(Copy {
                    is_fresh,
                    stands_in,
                    ..copy
                });
                self.reads("GET", variant, field, &then);
            }
            (1, copy) => {
                let framing = self
                    .dice
                    .of(&["length", "nothing", "cut-length", "cut-chunked", "garbage"]);
                let status = if framing == "length" { "503" } else { "200" };
                let outcome = match copy {
                    Some(copy) if copy.stands_in => format!("from = {}", copy.step),
                    _ if framing == "length" => "gets = ['503']".to_owned(),
                    _ if framing.starts_with("cut") => "cut = true".to_owned(),
                    _ => "gets = ['50x']".to_owned(),
                };
                let then = format!("answer = ['{status}', '{NO_STORE}'], framing = '{framing}', {outcome}");
                self.reads("GET", variant, field, &then);
            }
            (2, _) => {
                self.copies[variant] = None;
                self.reads(
                    "GET",
                    variant,
                    field,
                    &format!("answer = ['200', 'vary: foo', '{NO_STORE}']"),
                );
            }
            _ => {
                let copy = Copy {
                    step,
                    is_fresh,
                    stands_in,
                };
                self.copies[variant] = Some(copy);
                let then = format!("answer = ['200', 'vary: foo', '{life}', 'etag: {}']", tag(copy));
                self.reads("GET", variant, field, &then);
            }
        }
    }

    /// A write that succeeds retires all variants; one that fails none.
    fn writes(&mut self) {
        let method = self.dice.of(&["POST", "PUT", "DELETE", "FOO"]);
        let status = self.dice.of(&["200", "204", "303", "404", "500"]);
        if !matches!(status, "404" | "500") {
            self.copies = [None; VARIANTS.len()];
        }
        self.steps.push(format!(
            "{{ request = ['{method}'], body = 'x', answer = ['{status}', '{NO_STORE}'] }}"
        ));
    }
}

fn tag(copy: Copy) -> String {
    format!("\"of step {}\"", copy.step).replace(' ', "-")
}
