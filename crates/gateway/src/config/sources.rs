//! Decides in which file and line a place of a contract stands, where a contract is made of several files.
//! It exists so that everything else counts in one row of bytes, the files one behind the other.
//! It refuses to read files; it is given their texts.

use std::ops::Range;

/// The files of one contract, the one that was named first.
#[derive(Clone, Debug, Default)]
pub struct Sources(Vec<Source>);

#[derive(Clone, Debug)]
struct Source {
    name: String,
    text: String,
    /// Where its first byte stands in the row of all files.
    start: usize,
}

/// Where something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot<'s> {
    /// The name of the file.
    pub file: &'s str,
    /// The line, from 1.
    pub line: usize,
    /// The first character, from 1.
    pub column: usize,
    /// How many characters of that line it takes, at least 1.
    pub width: usize,
    /// The line itself.
    pub text: &'s str,
}

impl Sources {
    /// Adds a file, and returns where its first byte stands.
    pub(super) fn add(&mut self, name: &str, text: &str) -> usize {
        let start = self.0.last().map_or(0, |last| last.start + last.text.len() + 1);
        self.0.push(Source {
            name: name.to_owned(),
            text: text.to_owned(),
            start,
        });
        start
    }

    /// Yields the name and the text of each file, the one that was named first before all others.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|source| (source.name.as_str(), source.text.as_str()))
    }

    /// Returns the name of the first file.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.first().map_or("", |first| &first.name)
    }

    /// Returns where a span stands. One outside every file is shown at the end of the last before it.
    #[must_use]
    pub fn spot(&self, span: &Range<usize>) -> Spot<'_> {
        let Some(source) = self.0.iter().rev().find(|source| source.start <= span.start) else {
            return Spot {
                file: "",
                line: 1,
                column: 1,
                width: 1,
                text: "",
            };
        };
        let text = source.text.as_str();
        let mut at = (span.start - source.start).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let (before, behind) = text.split_at(at);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let from = before.get(start..).unwrap_or_default();
        let whole = text.get(start..).and_then(|rest| rest.lines().next());
        let marked = behind.get(..span.len()).unwrap_or(behind);
        let marked = marked.split(['\r', '\n']).next().unwrap_or_default();
        Spot {
            file: &source.name,
            line,
            column: from.chars().count() + 1,
            width: marked.chars().count().max(1),
            text: whole.unwrap_or_default(),
        }
    }

    /// Returns the text of a span, if it lies in one file.
    #[must_use]
    pub fn text(&self, span: &Range<usize>) -> Option<&str> {
        let source = self.0.iter().rev().find(|source| source.start <= span.start)?;
        source
            .text
            .get(span.start - source.start..span.end.checked_sub(source.start)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_by_its_own_file_and_line() {
        let mut sources = Sources::default();
        assert_eq!(sources.add("a", "one\ntwo"), 0);
        let start = sources.add("b", "ö = 1\r\nx = 22\n");
        assert_eq!(start, 8);
        let spot = sources.spot(&(start + 12..start + 14));
        assert_eq!((spot.file, spot.line, spot.column, spot.width), ("b", 2, 5, 2));
        assert_eq!(spot.text, "x = 22");
        assert_eq!(sources.text(&(start + 12..start + 14)), Some("22"));
        let spot = sources.spot(&(4..7));
        assert_eq!((spot.file, spot.line, spot.column, spot.text), ("a", 2, 1, "two"));
    }

    #[test]
    fn a_span_outside_the_files_or_inside_a_character_is_no_panic() {
        let mut sources = Sources::default();
        assert_eq!(sources.spot(&(3..9)).line, 1);
        sources.add("a", "ö = 1");
        assert_eq!(sources.spot(&(1..2)).column, 1);
        assert_eq!(sources.spot(&(90..99)).column, 6);
        assert_eq!(sources.text(&(90..99)), None);
    }
}
