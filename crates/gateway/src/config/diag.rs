//! Decides how the problems of a contract are shown: file, line, excerpt, caret, what is allowed, how to mend it.
//! It exists so that a person finds and mends every mistake in one go, without knowing the code.
//! It refuses to judge a contract; it only shows what others found.

use std::{collections::BTreeMap, fmt, ops::Range};

use evenkeel_core::{Problem, Problems};

/// Everything wrong with one contract file, ready to be shown.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    file: String,
    text: String,
    /// The names of the routes that have one, by their index.
    routes: BTreeMap<usize, String>,
    found: Vec<(Problem, Option<Range<usize>>)>,
}

/// Where each setting of a contract stands in its file.
#[derive(Clone, Debug, Default)]
pub struct Places(BTreeMap<String, Range<usize>>);

impl Places {
    /// Notes where the setting at `place` stands.
    pub(super) fn note(&mut self, place: &str, span: Range<usize>) {
        self.0.insert(place.to_owned(), span);
    }

    /// Returns where a setting stands; of a setting that is not written down, where the table around it does.
    #[must_use]
    pub fn find(&self, place: &str) -> Option<Range<usize>> {
        let mut place = place;
        loop {
            if let Some(span) = self.0.get(place) {
                return Some(span.clone());
            }
            place = place.get(..place.rfind(['.', '['])?)?;
        }
    }
}

impl Diagnostics {
    /// Starts an empty list for a file with this text.
    #[must_use]
    pub fn new(file: &str, text: &str) -> Self {
        Self {
            file: file.to_owned(),
            text: text.to_owned(),
            routes: BTreeMap::new(),
            found: Vec::new(),
        }
    }

    /// Adds a problem, with the bytes of the file that it is about.
    pub(super) fn add(&mut self, problem: Problem, span: Option<Range<usize>>) {
        self.found.push((problem, span));
    }

    /// Notes the name of a route: people look for names, files are read by index.
    pub(super) fn name_route(&mut self, index: usize, name: Option<&str>) {
        if let Some(name) = name {
            self.routes.insert(index, name.to_owned());
        }
    }

    /// Returns a place with the name of the route in it: `routes[0] "product".deadline`.
    fn named(&self, place: &str) -> String {
        let name_of = || {
            let (index, rest) = place.strip_prefix("routes[")?.split_once(']')?;
            let name = self.routes.get(&index.parse().ok()?)?;
            let shown: String = name.chars().take(NAME_SHOWN).collect();
            Some(format!("routes[{index}] \"{}\"{rest}", shown.escape_debug()))
        };
        name_of().unwrap_or_else(|| place.to_owned())
    }

    /// Takes over problems found elsewhere, finding their lines by their places.
    pub fn absorb(&mut self, problems: &Problems, places: &Places) {
        for problem in problems.list() {
            self.add(problem.clone(), places.find(&problem.place));
        }
    }

    /// Tells whether nothing is wrong.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the problems in the order in which they stand in the file.
    #[must_use]
    pub fn list(&self) -> Vec<&Problem> {
        self.in_order().into_iter().map(|(problem, _)| problem).collect()
    }

    fn in_order(&self) -> Vec<&(Problem, Option<Range<usize>>)> {
        let mut found: Vec<_> = self.found.iter().collect();
        found.sort_by_key(|(_, span)| span.as_ref().map_or(0, |span| span.start));
        found
    }

    /// Returns line and column, both from 1, and the line itself.
    fn locate(&self, at: usize) -> (usize, usize, &str) {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let number = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(start..).unwrap_or_default().chars().count() + 1;
        let line = self.text.get(start..).and_then(|rest| rest.lines().next());
        (number, column, line.unwrap_or_default())
    }
}

/// The most characters of a route's name that are shown; no valid one is longer.
const NAME_SHOWN: usize = 64;
/// The most problems that are shown; the rest is counted. Nobody mends more in one go.
const SHOWN_MAX: usize = 100;
/// The most characters that are shown of each text about a problem.
const TEXT_MAX: usize = 500;
/// The most characters that are shown of one line of the file.
const LINE_MAX: usize = 160;

/// Cuts a text to a readable length, and shows characters that could steer a terminal as what they are.
fn readable(text: &str) -> String {
    let mut shown = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == TEXT_MAX {
            shown.push_str("...");
            break;
        }
        shown.push(if c.is_control() { '\u{fffd}' } else { c });
    }
    shown
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (problem, span) in self.in_order().into_iter().take(SHOWN_MAX) {
            let Problem {
                place,
                seen,
                allowed,
                mend,
            } = problem;
            writeln!(f, "error: {}: {}", readable(&self.named(place)), readable(seen))?;
            if let Some(span) = span {
                let (number, column, line) = self.locate(span.start);
                // Of a long line, what stands around the place.
                let skipped = (column - 1).saturating_sub(LINE_MAX / 2);
                let excerpt: String = line.chars().skip(skipped).take(LINE_MAX).collect();
                let excerpt = readable(&excerpt);
                let indent = column - 1 - skipped;
                let room = excerpt.chars().count().saturating_sub(indent).max(1);
                let marked = self.text.get(span.clone()).map_or(1, |text| text.chars().count());
                let gutter = number.to_string();
                let blank = " ".repeat(gutter.len());
                writeln!(f, "{blank}--> {}:{number}:{column}", self.file)?;
                writeln!(f, "{gutter} | {excerpt}")?;
                writeln!(
                    f,
                    "{blank} | {}{}",
                    " ".repeat(indent),
                    "^".repeat(marked.clamp(1, room))
                )?;
            } else {
                writeln!(f, " --> {}", self.file)?;
            }
            writeln!(f, "  = allowed: {}", readable(allowed))?;
            writeln!(f, "  = mend: {}", readable(mend))?;
            writeln!(f)?;
        }
        if let Some(more) = self.found.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
            writeln!(f, "{more} more not shown")?;
            writeln!(f)?;
        }
        let (count, plural) = (self.found.len(), if self.found.len() == 1 { "" } else { "s" });
        write!(f, "{count} problem{plural} in {}", self.file)
    }
}

impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(place: &str) -> Problem {
        Problem {
            place: place.into(),
            seen: "\"0s\"".into(),
            allowed: "a duration longer than zero".into(),
            mend: "write `3s`, say".into(),
        }
    }

    #[test]
    fn however_much_is_wrong_the_text_is_short_and_steers_no_terminal() {
        let text = format!("x = \"{}\u{1b}[31m\"\n", "y".repeat(100_000));
        let mut diagnostics = Diagnostics::new("contract.toml", &text);
        let long = "z\u{1b}".repeat(50_000);
        for at in 0..=SHOWN_MAX {
            let problem = Problem {
                seen: long.clone(),
                allowed: long.clone(),
                mend: long.clone(),
                ..problem(&long)
            };
            diagnostics.add(problem, Some(99_900 + at..text.len()));
        }
        let shown = diagnostics.to_string();
        assert!(shown.len() < 1_000_000, "{}", shown.len());
        assert!(!shown.contains('\u{1b}'));
        assert!(shown.ends_with("1 more not shown\n\n101 problems in contract.toml"));
        assert!(shown.contains("1:99901"), "places are those in the file");
    }

    #[test]
    fn a_problem_shows_its_line_and_marks_its_value() {
        let text = "[[routes]]\ndeadline = \"0s\"\n";
        let mut diagnostics = Diagnostics::new("contract.toml", text);
        diagnostics.add(problem("routes[0].deadline"), Some(22..26));
        assert_eq!(
            diagnostics.to_string(),
            "error: routes[0].deadline: \"0s\"\n --> contract.toml:2:12\n2 | deadline = \"0s\"\n  |            ^^^^\n  = allowed: a duration longer than zero\n  = mend: write `3s`, say\n\n1 problem in contract.toml"
        );
    }

    #[test]
    fn a_problem_of_a_route_names_the_route_beside_its_index() {
        let mut diagnostics = Diagnostics::new("c", "");
        diagnostics.name_route(1, Some("pro\u{1b}duct"));
        diagnostics.name_route(2, None);
        for (place, shown) in [
            ("routes[1].deadline", "routes[1] \"pro\\u{1b}duct\".deadline"),
            ("routes[1]", "routes[1] \"pro\\u{1b}duct\""),
            ("routes[2].deadline", "routes[2].deadline"),
            ("routes", "routes"),
        ] {
            assert_eq!(diagnostics.named(place), shown);
        }
    }

    #[test]
    fn a_setting_that_is_not_written_down_is_shown_at_the_table_around_it() {
        let mut places = Places::default();
        places.note("routes[0]", 3..9);
        assert_eq!(places.find("routes[0].ladder[1].stale"), Some(3..9));
        assert_eq!(places.find("gateway.listen"), None);
    }

    #[test]
    fn a_span_outside_the_text_is_shown_at_the_end_without_a_panic() {
        let mut diagnostics = Diagnostics::new("contract.toml", "ö = 1");
        diagnostics.add(problem("x"), Some(90..99));
        diagnostics.add(problem("y"), Some(1..2));
        assert!(diagnostics.to_string().ends_with("2 problems in contract.toml"));
    }
}
