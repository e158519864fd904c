//! Decides how the problems of a contract are shown: file, line, excerpt, caret, what is allowed, how to mend it.
//! It exists so that a person finds and mends every mistake in one go, without knowing the code.
//! It refuses to judge a contract; it only shows what others found, and no value that came from a secret.

use std::{collections::BTreeMap, fmt, ops::Range};

use evenkeel_core::{Problem, Problems};
use serde_json::{Value, json};

use super::{
    kinds::Kind,
    lints::{self, Severity},
    reader::SHOWN_OF_TEXT,
    sources::{Sources, Spot},
};

/// Everything found in one contract, ready to be shown.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    sources: Sources,
    /// The names of the routes that have one, by their index.
    routes: BTreeMap<usize, String>,
    found: Vec<(Problem, Option<Range<usize>>)>,
    secrets: Vec<Secret>,
    is_strict: bool,
}

/// A value that came from the environment or a file, and is not shown.
#[derive(Clone)]
pub(super) struct Secret {
    /// Where it is asked for.
    pub(super) span: Range<usize>,
    pub(super) text: String,
    /// What is shown instead.
    pub(super) label: String,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

/// Where each setting of a contract stands in its file.
#[derive(Clone, Debug, Default)]
pub struct Places {
    spans: BTreeMap<String, Range<usize>>,
    /// What each setting was read as, where somebody wants to know.
    kinds: Option<BTreeMap<String, Kind>>,
}

impl Places {
    /// Also remembers what each setting is read as, whether it is written down or not.
    pub(super) const fn with_kinds() -> Self {
        Self {
            spans: BTreeMap::new(),
            kinds: Some(BTreeMap::new()),
        }
    }

    /// Notes where the setting at `place` stands.
    pub(super) fn note(&mut self, place: &str, span: Range<usize>) {
        self.spans.insert(place.to_owned(), span);
    }

    /// Notes what a setting is read as, if somebody wants to know.
    pub(super) fn read_as(&mut self, place: impl FnOnce() -> String, kind: &Kind) {
        if let Some(kinds) = &mut self.kinds {
            kinds.insert(place(), kind.clone());
        }
    }

    /// Returns what settings were read as.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&str, &Kind)> {
        let kinds = self.kinds.iter().flatten();
        kinds.map(|(place, kind)| (place.as_str(), kind))
    }

    /// Returns the place of every setting that is written down.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.spans.keys().map(String::as_str)
    }

    /// Returns where a setting stands; `None` if it is not written down.
    #[must_use]
    pub fn exactly(&self, place: &str) -> Option<Range<usize>> {
        self.spans.get(place).cloned()
    }

    /// Returns where a setting stands; of a setting that is not written down, where the table around it does.
    #[must_use]
    pub fn find(&self, place: &str) -> Option<Range<usize>> {
        let mut place = place;
        loop {
            if let Some(span) = self.spans.get(place) {
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
        let mut sources = Sources::default();
        sources.add(file, text);
        Self {
            sources,
            routes: BTreeMap::new(),
            found: Vec::new(),
            secrets: Vec::new(),
            is_strict: false,
        }
    }

    /// Makes every warning a problem.
    #[must_use]
    pub fn strict(self) -> Self {
        Self {
            is_strict: true,
            ..self
        }
    }

    /// Adds a file of the contract, and returns where its first byte stands.
    pub(super) fn add_source(&mut self, name: &str, text: &str) -> usize {
        self.sources.add(name, text)
    }

    /// Returns the files of the contract.
    #[must_use]
    pub const fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Adds a value that must not be shown.
    pub(super) fn hide(&mut self, secret: Secret) {
        self.secrets.push(secret);
    }

    /// Returns what is shown for the value at a span, if it came from a secret.
    #[must_use]
    pub fn hidden(&self, span: &Range<usize>) -> Option<&str> {
        let mut secrets = self.secrets.iter();
        secrets
            .find(|secret| secret.span == *span)
            .map(|secret| secret.label.as_str())
    }

    /// Adds a problem of a kind, or a warning, at a span: what was seen, what is allowed, how to mend it.
    pub(super) fn lint(
        &mut self,
        code: &'static str,
        place: &str,
        span: Range<usize>,
        [seen, allowed, mend]: [&str; 3],
    ) {
        let problem = Problem {
            code,
            place: place.to_owned(),
            seen: seen.to_owned(),
            allowed: allowed.to_owned(),
            mend: mend.to_owned(),
        };
        self.add(problem, Some(span));
    }

    /// Adds a problem, with the bytes of the files that it is about. What it tells of a secret is left out.
    pub(super) fn add(&mut self, mut problem: Problem, span: Option<Range<usize>>) {
        for secret in &self.secrets {
            if span.as_ref() == Some(&secret.span) {
                problem.seen.clone_from(&secret.label);
                problem.mend = "correct the value there".to_owned();
            }
            for text in [
                &mut problem.place,
                &mut problem.seen,
                &mut problem.allowed,
                &mut problem.mend,
            ] {
                secret.cut_from(text);
            }
        }
        self.found.push((problem, span));
    }

    /// Notes the name of a route: people look for names, files are read by index.
    pub(super) fn name_route(&mut self, index: usize, name: Option<&str>) {
        if let Some(name) = name {
            let mut name = name.to_owned();
            for secret in &self.secrets {
                secret.cut_from(&mut name);
            }
            self.routes.insert(index, name);
        }
    }

    /// Returns the index of the first route of this name.
    pub(super) fn first_route(&self, name: &str) -> Option<usize> {
        let mut routes = self.routes.iter();
        routes.find(|(_, known)| *known == name).map(|(index, _)| *index)
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

    /// Tells whether nothing is wrong; warnings are not wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.problems() == 0
    }

    /// Counts what keeps the contract from being served.
    #[must_use]
    pub fn problems(&self) -> usize {
        let is_error = |(problem, _): &&(Problem, _)| self.severity(problem) == Severity::Error;
        self.found.iter().filter(is_error).count()
    }

    /// Counts what does not, and should be looked at.
    #[must_use]
    pub fn warnings(&self) -> usize {
        self.found.len() - self.problems()
    }

    fn severity(&self, problem: &Problem) -> Severity {
        if self.is_strict {
            return Severity::Error;
        }
        lints::severity(problem.code)
    }

    /// Returns problems and warnings in the order in which they stand in the files.
    #[must_use]
    pub fn list(&self) -> Vec<&Problem> {
        self.in_order().into_iter().map(|(problem, _)| problem).collect()
    }

    /// Returns problems and warnings in the order of the files, each with where it stands.
    #[must_use]
    pub fn spots(&self) -> Vec<(&Problem, Option<Spot<'_>>)> {
        let spot = |span: &Option<Range<usize>>| span.as_ref().map(|span| self.sources.spot(span));
        let found = self.in_order().into_iter();
        found.map(|(problem, span)| (problem, spot(span))).collect()
    }

    fn in_order(&self) -> Vec<&(Problem, Option<Range<usize>>)> {
        let mut found: Vec<_> = self.found.iter().collect();
        found.sort_by_key(|(_, span)| span.as_ref().map_or(0, |span| span.start));
        found
    }

    /// Returns what was found as a list of objects for programs; `docs/reference/check.md` says what is in them.
    #[must_use]
    pub fn json(&self) -> Value {
        let object = |(problem, spot): (&Problem, Option<Spot<'_>>)| {
            json!({
                "code": problem.code,
                "severity": self.severity(problem).as_str(),
                "file": spot.map_or_else(|| self.sources.name(), |spot| spot.file),
                "line": spot.map(|spot| spot.line),
                "column": spot.map(|spot| spot.column),
                "end_column": spot.map(|spot| spot.column + spot.width),
                "place": readable(&self.named(&problem.place)),
                "seen": readable(&problem.seen),
                "allowed": readable(&problem.allowed),
                "mend": readable(&problem.mend),
                "see": lints::see(problem.code),
            })
        };
        self.spots().into_iter().take(SHOWN_MAX).map(object).collect()
    }
}

impl Secret {
    /// Takes the value out of a text: wherever it is quoted, and a longer one wherever it stands.
    fn cut_from(&self, text: &mut String) {
        if self.text.is_empty() {
            return;
        }
        let cut: String = self.text.chars().take(SHOWN_OF_TEXT).collect();
        for value in [
            &self.text,
            &cut,
            &self.text.escape_debug().to_string(),
            &cut.escape_debug().to_string(),
        ] {
            let quoted = format!("\"{value}\"");
            if text.contains(&quoted) {
                *text = text.replace(&quoted, &self.label);
            }
            // A short one is hardly secret, and may be part of any word.
            if value.len() >= SECRET_MIN && text.contains(value) {
                *text = text.replace(value, &self.label);
            }
        }
    }
}

/// A secret of so many bytes is not shown inside other words either.
const SECRET_MIN: usize = 4;
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
        for (problem, spot) in self.spots().into_iter().take(SHOWN_MAX) {
            let severity = self.severity(problem).as_str();
            let place = readable(&self.named(&problem.place));
            writeln!(
                f,
                "{severity}[{}]: {place}: {}",
                problem.code,
                readable(&problem.seen)
            )?;
            match spot {
                Some(spot) => excerpt(f, &spot)?,
                None => writeln!(f, " --> {}", self.sources.name())?,
            }
            writeln!(f, "  = allowed: {}", readable(&problem.allowed))?;
            writeln!(f, "  = mend: {}", readable(&problem.mend))?;
            writeln!(f, "  = see: {}", lints::see(problem.code))?;
            writeln!(f)?;
        }
        if let Some(more) = self.found.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
            writeln!(f, "{more} more not shown")?;
            writeln!(f)?;
        }
        let counted = |count: usize, word| match count {
            0 => None,
            1 => Some(format!("1 {word}")),
            count => Some(format!("{count} {word}s")),
        };
        let counts = [(self.problems(), "problem"), (self.warnings(), "warning")];
        let counts: Vec<String> = counts
            .into_iter()
            .filter_map(|(n, word)| counted(n, word))
            .collect();
        let counts = if counts.is_empty() {
            "0 problems".to_owned()
        } else {
            counts.join(", ")
        };
        write!(f, "{counts} in {}", self.sources.name())
    }
}

/// Shows a line of a file, and marks what it is about.
fn excerpt(f: &mut fmt::Formatter<'_>, spot: &Spot<'_>) -> fmt::Result {
    // Of a long line, what stands around the place.
    let skipped = (spot.column - 1).saturating_sub(LINE_MAX / 2);
    let line: String = spot.text.chars().skip(skipped).take(LINE_MAX).collect();
    let line = readable(&line);
    let indent = spot.column - 1 - skipped;
    let room = line.chars().count().saturating_sub(indent).max(1);
    let gutter = spot.line.to_string();
    let blank = " ".repeat(gutter.len());
    writeln!(f, "{blank}--> {}:{gutter}:{}", spot.file, spot.column)?;
    writeln!(f, "{gutter} | {line}")?;
    let mark = "^".repeat(spot.width.clamp(1, room));
    writeln!(f, "{blank} | {}{mark}", " ".repeat(indent))
}

impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_core::codes;

    fn problem(place: &str) -> Problem {
        Problem {
            code: codes::BAD_VALUE,
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
    fn a_problem_shows_its_code_its_line_and_marks_its_value() {
        let text = "[[routes]]\ndeadline = \"0s\"\n";
        let mut diagnostics = Diagnostics::new("contract.toml", text);
        diagnostics.add(problem("routes[0].deadline"), Some(22..26));
        assert_eq!(
            diagnostics.to_string(),
            "error[bad-value]: routes[0].deadline: \"0s\"\n --> contract.toml:2:12\n2 | deadline = \"0s\"\n  |            ^^^^\n  = allowed: a duration longer than zero\n  = mend: write `3s`, say\n  = see: docs/reference/lints/bad-value.md\n\n1 problem in contract.toml"
        );
        let json = diagnostics.json();
        let first = &json[0];
        assert_eq!(first["code"], "bad-value");
        assert_eq!(first["severity"], "error");
        assert_eq!(
            (&first["line"], &first["column"], &first["end_column"]),
            (&json!(2), &json!(12), &json!(16))
        );
        assert_eq!(first["see"], "docs/reference/lints/bad-value.md");
    }

    #[test]
    fn a_warning_is_counted_apart_and_is_a_problem_where_it_is_strict() {
        let mut diagnostics = Diagnostics::new("c", "x = 1");
        let warning = Problem {
            code: lints::LADDER_ON_CATCH_ALL,
            ..problem("x")
        };
        diagnostics.add(warning, Some(0..1));
        assert!(diagnostics.is_empty());
        assert!(
            diagnostics
                .to_string()
                .starts_with("warning[ladder-on-catch-all]: x")
        );
        assert!(diagnostics.to_string().ends_with("\n1 warning in c"));
        diagnostics.add(problem("x"), None);
        assert!(diagnostics.to_string().ends_with("\n1 problem, 1 warning in c"));
        let strict = diagnostics.strict();
        assert!(strict.to_string().ends_with("\n2 problems in c"));
    }

    #[test]
    fn a_value_from_a_secret_is_shown_nowhere() {
        let mut diagnostics = Diagnostics::new("c", "token = { file = \"t\" }");
        diagnostics.hide(Secret {
            span: 8..22,
            text: "hunter\n2".to_owned(),
            label: "(from file t)".to_owned(),
        });
        let told = Problem {
            seen: "\"hunter\\n2\": too short".into(),
            mend: "write `x-hunter\n2`".into(),
            ..problem("token")
        };
        diagnostics.add(told.clone(), Some(8..22));
        diagnostics.add(told, None);
        diagnostics.name_route(0, Some("hunter\n2"));
        diagnostics.add(problem("routes[0]"), None);
        let shown = format!("{diagnostics} {} {diagnostics:?}", diagnostics.json());
        assert!(!shown.contains("hunter"), "{shown}");
        assert!(shown.contains("token: (from file t)\n"), "{shown}");
        assert_eq!(diagnostics.hidden(&(8..22)), Some("(from file t)"));
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
        assert_eq!(places.exactly("routes[0].ladder"), None);
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
