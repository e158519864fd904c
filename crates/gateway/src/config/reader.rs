//! Decides how one table of a contract is read: each key by its type, what is missing, what nobody knows.
//! It exists so that reading goes on after a mistake and every one of them is reported with its place.
//! It refuses unknown keys, always: a setting that is silently ignored is a promise that is silently broken.

use std::{ops::Range, time::Duration};

use evenkeel_core::{Problems, codes};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    dangers,
    diag::{Diagnostics, Places},
    kinds::{Kind, Miss},
    lints,
    units::{self, NoDuration},
};

/// Where problems and places are collected while a contract is read.
#[derive(Debug)]
pub(super) struct Reader<'r> {
    pub(super) diagnostics: &'r mut Diagnostics,
    pub(super) places: &'r mut Places,
}

/// One table being read.
#[derive(Debug)]
pub(super) struct Fields<'r, 't> {
    diagnostics: &'r mut Diagnostics,
    places: &'r mut Places,
    table: &'t DeTable<'t>,
    place: String,
    span: Range<usize>,
    keys: &'static [&'static str],
}

impl Reader<'_> {
    /// Adds a problem of a kind, or a warning, at a span; the kinds are those of [`lints`].
    pub(super) fn lint(
        &mut self,
        code: &'static str,
        place: &str,
        span: Range<usize>,
        seen: &str,
        allowed: &str,
        mend: &str,
    ) {
        self.diagnostics.lint(code, place, span, [seen, allowed, mend]);
    }

    /// Opens a table at `place`, of which only `keys` are known. `None`, and a problem, if it is no table.
    pub(super) fn open<'s, 't>(
        &'s mut self,
        place: String,
        value: &'t Spanned<DeValue<'t>>,
        keys: &'static [&'static str],
    ) -> Option<Fields<'s, 't>> {
        self.places.note(&place, value.span());
        let Some(table) = value.get_ref().as_table() else {
            self.lint(
                lints::WRONG_TYPE,
                &place,
                value.span(),
                &shown(value),
                "a table",
                "write it as `{ key = value }`",
            );
            return None;
        };
        Some(self.open_table(place, table, value.span(), keys))
    }

    /// Opens a table that is known to be one.
    pub(super) fn open_table<'s, 't>(
        &'s mut self,
        place: String,
        table: &'t DeTable<'t>,
        span: Range<usize>,
        keys: &'static [&'static str],
    ) -> Fields<'s, 't> {
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            if !keys.contains(&name) {
                let at = join(&place, name);
                if let Some((code, [seen, allowed, mend])) = dangers::unwritable(&place, name) {
                    self.lint(code, &at, key.span(), seen, allowed, mend);
                    continue;
                }
                let mend = nearest(name, keys).map_or_else(
                    || "remove it".to_owned(),
                    |near| format!("did you mean `{near}`?"),
                );
                self.lint(
                    lints::UNKNOWN_KEY,
                    &at,
                    key.span(),
                    "an unknown key",
                    &listed(keys),
                    &mend,
                );
            }
        }
        Fields {
            diagnostics: self.diagnostics,
            places: self.places,
            table,
            place,
            span,
            keys,
        }
    }
}

impl<'t> Fields<'_, 't> {
    /// Returns the reader, to open a table inside this one.
    pub(super) const fn reader(&mut self) -> Reader<'_> {
        Reader {
            diagnostics: self.diagnostics,
            places: self.places,
        }
    }

    /// Returns the place of a key of this table.
    pub(super) fn place_of(&self, key: &str) -> String {
        join(&self.place, key)
    }

    /// Returns the value of a key, if it is written down.
    pub(super) fn value(&mut self, key: &'static str) -> Option<&'t Spanned<DeValue<'t>>> {
        debug_assert!(
            self.keys.contains(&key),
            "{key} is read but not in the list of known keys"
        );
        let value = self.table.get(key)?;
        self.places.note(&join(&self.place, key), value.span());
        Some(value)
    }

    /// Adds a problem about the value of a key, or about the table when the key is not written down; of no kind with a
    /// word of its own.
    pub(super) fn problem(&mut self, key: &str, seen: &str, allowed: &str, mend: &str) {
        self.lint(codes::BAD_VALUE, key, seen, allowed, mend);
    }

    /// Adds a problem of a kind, or a warning, about the value of a key, or about the table when the key is not written
    /// down; the kinds are those of [`lints`].
    pub(super) fn lint(&mut self, code: &'static str, key: &str, seen: &str, allowed: &str, mend: &str) {
        let place = self.place_of(key);
        let span = self
            .table
            .get(key)
            .map_or_else(|| self.span.clone(), Spanned::span);
        self.reader().lint(code, &place, span, seen, allowed, mend);
    }

    /// Takes over what the engine finds wrong with the settings of this table.
    pub(super) fn absorb(&mut self, found: Problems) {
        let mut placed = Problems::default();
        placed.absorb(&self.place, found);
        self.diagnostics.absorb(&placed, self.places);
    }

    /// Returns where the first route of this name has it.
    pub(super) fn first_named(&self, name: &str) -> Option<String> {
        let index = self.diagnostics.first_route(name)?;
        let span = self.places.exactly(&join(&format!("routes[{index}]"), "name"))?;
        let spot = self.diagnostics.sources().spot(&span);
        Some(format!("{}, line {}", spot.file, spot.line))
    }

    /// Tells whether a key is written down.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Reads a key of a kind with `read`; what `read` refuses is a problem.
    fn read<T>(
        &mut self,
        key: &'static str,
        kind: &Kind,
        allowed: &str,
        example: &str,
        read: impl FnOnce(&DeValue<'t>) -> Option<T>,
    ) -> Option<T> {
        self.places.read_as(|| join(&self.place, key), kind);
        let value = self.value(key)?;
        let result = read(value.get_ref());
        if result.is_none() {
            let code = match kind.miss(value.get_ref()) {
                Miss::Type => lints::WRONG_TYPE,
                Miss::Range => codes::OUT_OF_RANGE,
                Miss::Value => codes::BAD_VALUE,
            };
            self.lint(
                code,
                key,
                &shown(value),
                allowed,
                &format!("write `{key} = {example}`, say"),
            );
        }
        result
    }

    /// Reads a text.
    pub(super) fn text(&mut self, key: &'static str, example: &str) -> Option<String> {
        self.read(key, &Kind::Text, "a text in quotes", example, |value| {
            value.as_str().map(str::to_owned)
        })
    }

    /// Reads a text that must be written down.
    pub(super) fn required_text(&mut self, key: &'static str, example: &str) -> Option<String> {
        self.require(key, example);
        self.text(key, example)
    }

    /// Adds a problem unless a key is written down.
    pub(super) fn require(&mut self, key: &'static str, example: &str) {
        if !self.has(key) {
            let mend = format!("add `{key} = {example}`");
            self.lint(lints::MISSING_KEY, key, "missing", "required", &mend);
        }
    }

    /// Reads a duration. What is wrong is said, and mended without changing what was meant.
    pub(super) fn duration(&mut self, key: &'static str, example: &str) -> Option<Duration> {
        self.places.read_as(|| join(&self.place, key), &Kind::Duration);
        let value = self.value(key)?;
        let code = if value.get_ref().is_str() || value.get_ref().is_integer() {
            lints::BAD_DURATION
        } else {
            lints::WRONG_TYPE
        };
        let read = match value.get_ref() {
            DeValue::String(text) => units::duration(text),
            DeValue::Integer(number) => units::duration(&number.to_string()),
            DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => Err(NoDuration {
                why: "not a text in quotes".to_owned(),
                meant: Vec::new(),
            }),
        };
        let NoDuration { why, meant } = match read {
            Ok(span) => return Some(span),
            Err(wrong) => wrong,
        };
        let written: Vec<String> = meant
            .iter()
            .map(|meant| format!("`{key} = \"{meant}\"`"))
            .collect();
        let mend = match (written.is_empty(), why.as_str()) {
            (false, _) => format!("write {}", written.join(" or ")),
            (true, "negative" | "zero") => format!("write 1ms or more, or remove `{key}`"),
            (true, _) => format!("write `{key} = {example}`, say"),
        };
        self.lint(
            code,
            key,
            &format!("{}: {why}", shown(value)),
            "a duration longer than zero: an integer with ms, s, m, h or d, in quotes",
            &mend,
        );
        None
    }

    /// Reads a size of `min` to `max` bytes.
    pub(super) fn size(&mut self, key: &'static str, min: u64, max: u64, example: &str) -> Option<u64> {
        let allowed = format!("a size of {min} to {max} bytes: an integer with B, KiB, MiB or GiB");
        self.read(key, &Kind::Size { min, max }, &allowed, example, |value| {
            value
                .as_str()
                .and_then(units::size)
                .filter(|bytes| (min..=max).contains(bytes))
        })
    }

    /// Reads a share into parts per million.
    pub(super) fn share_ppm(&mut self, key: &'static str, example: &str) -> Option<u32> {
        self.read(
            key,
            &Kind::Share,
            "a share of 0% to 100%, with at most four decimals",
            example,
            |value| value.as_str().and_then(units::share_ppm),
        )
    }

    /// Reads an integer of `min` to `max`.
    pub(super) fn integer(&mut self, key: &'static str, min: u32, max: u32, example: &str) -> Option<u32> {
        let allowed = format!("an integer of {min} to {max}");
        self.read(key, &Kind::Integer { min, max }, &allowed, example, |value| {
            integer(value).filter(|number| (min..=max).contains(number))
        })
    }

    /// Reads `true` or `false`.
    pub(super) fn boolean(&mut self, key: &'static str) -> Option<bool> {
        self.read(key, &Kind::Boolean, "true or false", "true", DeValue::as_bool)
    }

    /// Reads one word of a list.
    pub(super) fn word<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let example = format!("\"{}\"", names.first().copied().unwrap_or_default());
        let kind = Kind::Word(names.iter().map(|&name| name.to_owned()).collect());
        self.read(key, &kind, &listed(&names), &example, |value| {
            let text = value.as_str()?;
            words
                .iter()
                .find(|(word, _)| *word == text)
                .map(|(_, meant)| *meant)
        })
    }

    /// Reads a list of texts.
    pub(super) fn texts(&mut self, key: &'static str, example: &str) -> Option<Vec<String>> {
        self.read(key, &Kind::Texts, "a list of texts", example, |value| {
            value
                .as_array()?
                .iter()
                .map(|item| item.get_ref().as_str().map(str::to_owned))
                .collect()
        })
    }

    /// Reads a list of integers of `min` to `max`.
    pub(super) fn integers(
        &mut self,
        key: &'static str,
        min: u32,
        max: u32,
        example: &str,
    ) -> Option<Vec<u32>> {
        let allowed = format!("a list of integers of {min} to {max}, not empty");
        self.read(key, &Kind::Integers { min, max }, &allowed, example, |value| {
            let list: Option<Vec<u32>> = value
                .as_array()?
                .iter()
                .map(|item| integer(item.get_ref()).filter(|number| (min..=max).contains(number)))
                .collect();
            list.filter(|list| !list.is_empty())
        })
    }
}

fn integer(value: &DeValue<'_>) -> Option<u32> {
    let integer = value.as_integer()?;
    u32::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// Joins a place and a key inside it.
fn join(place: &str, key: &str) -> String {
    match (place, key) {
        ("", key) => key.to_owned(),
        (place, "") => place.to_owned(),
        (place, key) => format!("{place}.{key}"),
    }
}

/// The most characters that are shown of a value.
pub(super) const SHOWN_OF_TEXT: usize = 60;

/// Shows a value as it was seen, cut to a readable length.
pub(super) fn shown(value: &Spanned<DeValue<'_>>) -> String {
    match value.get_ref() {
        DeValue::String(text) => {
            let cut: String = text.chars().take(SHOWN_OF_TEXT).collect();
            let more = if cut.len() < text.len() { "..." } else { "" };
            format!("\"{}{more}\"", cut.escape_debug())
        }
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// Lists words the way a sentence does.
pub(super) fn listed(words: &[&str]) -> String {
    words.join(", ")
}

/// Returns the known key that is most like `seen`, if one is like it at all.
fn nearest(seen: &str, keys: &[&'static str]) -> Option<&'static str> {
    keys.iter()
        .map(|key| (distance(seen, key), *key))
        .filter(|(distance, key)| *distance <= 2.max(key.len() / 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, key)| key)
}

/// Counts the edits between two words. Words longer than 64 bytes are like nothing.
fn distance(left: &str, right: &str) -> usize {
    if left.len() > 64 || right.len() > 64 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, a) in left.bytes().enumerate() {
        let mut diagonal = line;
        let mut left_cell = line + 1;
        for (cell, b) in row.iter_mut().skip(1).zip(right.bytes()) {
            let changed = diagonal + usize::from(a != b);
            diagonal = *cell;
            left_cell = changed.min(*cell + 1).min(left_cell + 1);
            *cell = left_cell;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_finds_the_key_that_was_meant() {
        let keys: &[&'static str] = &["timeout", "concurrency", "urls"];
        assert_eq!(nearest("timout", keys), Some("timeout"));
        assert_eq!(nearest("concurency", keys), Some("concurrency"));
        assert_eq!(nearest("color", keys), None);
        assert_eq!(nearest(&"x".repeat(100), keys), None);
    }

    #[test]
    fn the_distance_is_the_number_of_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }
}
