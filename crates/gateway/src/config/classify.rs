//! Decides what a contract says about the meaning of a dependency's answers: what a status is, and what that leads to.
//! It exists because the usual meaning is not everybody's: one service says 408 when it is down, another 404 all day.
//! It refuses to send a real answer down the ladder under its own name, and to touch the rows that are nobody's to change.

use std::fmt;

use evenkeel_core::{Class, Outage, Row, Table, Verdict};
use http::StatusCode;

use super::{
    keys, lints,
    reader::{Fields, shown},
};

/// What the answers of a dependency mean, where that differs from the usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classify {
    /// What a status is; every other one is what [`Class::of_status`] says.
    pub statuses: Vec<(StatusCode, Class)>,
    /// What a class leads to; every other one has the usual row.
    pub rows: Vec<(Class, Row)>,
}

/// The most statuses of one dependency.
pub const STATUSES_MAX: usize = 64;

/// What a status may be said to be.
const CLASSES: [(&str, Class); 5] = [
    ("outage", Class::Outage(Outage::ErrorAnswer)),
    ("refusal", Class::Refusal),
    ("gone", Class::Gone),
    ("busy", Class::Busy),
    ("fault", Class::Fault),
];

const VERDICTS: [(&str, Verdict); 3] = [
    ("failure", Verdict::Failure),
    ("neutral", Verdict::Neutral),
    ("success", Verdict::Success),
];

impl Classify {
    /// Returns what a status is.
    #[must_use]
    pub fn of(&self, status: StatusCode) -> Class {
        self.statuses
            .iter()
            .find(|(known, _)| *known == status)
            .map_or_else(|| Class::of_status(status.as_u16()), |(_, class)| *class)
    }

    /// Tells whether an answer of this class is no answer to the one who asks while something can stand in for it.
    #[must_use]
    pub fn is_error(&self, class: Class) -> bool {
        matches!(class, Class::Outage(_) | Class::Fault)
            || self
                .rows
                .iter()
                .any(|(known, row)| known.index() == class.index() && row.lower_rung)
    }

    /// Returns the whole table.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut table = Table::default();
        for (class, row) in &self.rows {
            table.set(*class, *row);
        }
        table
    }
}

/// The table in force, a line for each class: what it does to the breaker, whether it leads to the ladder, and the statuses
/// that are counted as it beside the usual ones.
impl fmt::Display for Classify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.table();
        for class in Class::ALL {
            let Row { breaker, lower_rung } = table.row(class);
            let breaker = VERDICTS
                .iter()
                .find(|(_, verdict)| *verdict == breaker)
                .map_or("", |(word, _)| word);
            let ladder = if lower_rung { "ladder" } else { "no ladder" };
            write!(f, "{:<9} {breaker:<7} {ladder}", class.as_str())?;
            for (status, known) in &self.statuses {
                if known.index() == class.index() {
                    write!(f, " {}", status.as_u16())?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Reads `classify` and `classes`.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Classify {
    Classify {
        statuses: statuses(fields),
        rows: rows(fields),
    }
}

fn statuses(fields: &mut Fields<'_, '_>) -> Vec<(StatusCode, Class)> {
    const EXAMPLE: &str = "{ 408 = \"outage\" }";
    let Some(value) = fields.value("classify") else {
        return Vec::new();
    };
    let Some(table) = value.get_ref().as_table() else {
        fields.lint(
            lints::WRONG_TYPE,
            "classify",
            &shown(value),
            "a table of statuses and what they are",
            &format!("write `classify = {EXAMPLE}`, say"),
        );
        return Vec::new();
    };
    if table.is_empty() || table.len() > STATUSES_MAX {
        fields.problem(
            "classify",
            &format!("{} statuses", table.len()),
            &format!("1 to {STATUSES_MAX} statuses"),
            &format!("write `classify = {EXAMPLE}`, say, or remove it"),
        );
    }
    let mut read = Vec::new();
    for (status, class) in table {
        let number = status.get_ref();
        let known = (number.len() == 3)
            .then(|| StatusCode::from_bytes(number.as_bytes()).ok())
            .flatten()
            .filter(|status| (400..600).contains(&status.as_u16()));
        let word = class.get_ref().as_str();
        let class_of = CLASSES.iter().find(|(known, _)| Some(*known) == word);
        if let (Some(status), Some((_, class))) = (known, class_of) {
            read.push((status, *class));
        } else {
            fields.problem(
                "classify",
                &format!("{} = {}", number.escape_debug(), shown(class)),
                "a status of 400 to 599, and one of outage, refusal, gone, busy, fault",
                &format!("write `classify = {EXAMPLE}`, say"),
            );
        }
    }
    read
}

fn rows(fields: &mut Fields<'_, '_>) -> Vec<(Class, Row)> {
    let Some(value) = fields.value("classes") else {
        return Vec::new();
    };
    let place = fields.place_of("classes");
    let mut reader = fields.reader();
    let Some(mut inner) = reader.open(place, value, keys::CLASSES) else {
        return Vec::new();
    };
    let mut read = Vec::new();
    for (key, class) in [
        ("outage", Class::OUTAGE),
        ("refusal", Class::Refusal),
        ("gone", Class::Gone),
        ("busy", Class::Busy),
    ] {
        let Some(value) = inner.value(key) else { continue };
        let place = inner.place_of(key);
        let usual = Table::default().row(class);
        let mut reader = inner.reader();
        let Some(mut row) = reader.open(place, value, keys::CLASS) else {
            continue;
        };
        let breaker = row.word("breaker", &VERDICTS).unwrap_or(usual.breaker);
        let lower_rung = row.boolean("ladder").unwrap_or(usual.lower_rung);
        if lower_rung && matches!(class, Class::Refusal | Class::Gone) {
            row.lint(
                lints::REAL_ANSWER_HIDDEN,
                "ladder",
                "true, for real answers",
                "false: a real answer is never hidden by old data",
                "remove it, or say of those statuses that are none: `classify = { 501 = \"outage\" }`",
            );
        }
        read.push((class, Row { breaker, lower_rung }));
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn read(dependency: &str) -> Result<Classify, String> {
        let text = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n[dependencies.d]\nurls = [\"http://a:81\"]\n{dependency}\n\
             [[routes]]\nname = \"r\"\nmatch = {{ path = \"/r\" }}\nclass = \"pass\"\nfrom = \"d\"\n"
        );
        parse("contract.toml", &text)
            .map(|loaded| loaded.contract.dependencies[0].classify.clone())
            .map_err(|problems| problems.to_string())
    }

    #[test]
    fn the_table_in_force_can_be_printed() {
        let usual = read("").unwrap();
        let changed = read(
            "classify = { 408 = \"outage\", 409 = \"fault\", 425 = \"outage\" }\n\
             classes = { busy = { ladder = true, breaker = \"failure\" }, gone = { breaker = \"success\" } }",
        )
        .unwrap();
        let lines = |classify: &Classify| -> Vec<String> {
            classify.to_string().lines().map(str::to_owned).collect()
        };
        assert_eq!(
            lines(&usual),
            [
                "outage    failure ladder",
                "answer    success no ladder",
                "refusal   neutral no ladder",
                "gone      neutral no ladder",
                "busy      neutral no ladder",
                "fault     neutral no ladder",
                "local     neutral ladder",
                "cancelled neutral no ladder",
            ]
        );
        let changed_lines = lines(&changed);
        assert_eq!(changed_lines[0], "outage    failure ladder 408 425");
        assert_eq!(changed_lines[3], "gone      success no ladder");
        assert_eq!(changed_lines[4], "busy      failure ladder");
        assert_eq!(changed_lines[5], "fault     neutral no ladder 409");
        for (status, class) in [
            (408, "outage"),
            (409, "fault"),
            (404, "gone"),
            (200, "answer"),
            (503, "outage"),
        ] {
            assert_eq!(
                changed.of(StatusCode::from_u16(status).unwrap()).as_str(),
                class,
                "{status}"
            );
        }
        assert!(changed.is_error(Class::Busy) && !usual.is_error(Class::Busy));
    }

    #[test]
    fn bad_values_are_told_with_what_is_allowed() {
        for (dependency, seen, allowed) in [
            ("classify = 1", "classify: 1", "a table of statuses"),
            ("classify = {}", "classify: 0 statuses", "1 to 64"),
            (
                "classify = { 200 = \"outage\" }",
                "classify: 200 = \"outage\"",
                "400 to 599",
            ),
            ("classify = { 0408 = \"outage\" }", "classify: 0408", "400 to 599"),
            ("classify = { x = \"outage\" }", "classify: x", "400 to 599"),
            (
                "classify = { 404 = \"answer\" }",
                "classify: 404 = \"answer\"",
                "outage, refusal, gone, busy, fault",
            ),
            (
                "classes = { answer = {} }",
                "classes.answer: an unknown key",
                "outage, refusal",
            ),
            (
                "classes = { busy = { retry = 1 } }",
                "classes.busy.retry: an unknown key",
                "breaker, ladder",
            ),
            (
                "classes = { busy = { breaker = \"open\" } }",
                "classes.busy.breaker: \"open\"",
                "failure, neutral",
            ),
            (
                "classes = { gone = { ladder = true } }",
                "classes.gone.ladder: true",
                "never hidden",
            ),
        ] {
            let shown = read(dependency).unwrap_err();
            let seen = format!("]: dependencies.d.{seen}");
            assert!(shown.contains(&seen), "{seen} is missing from\n{shown}");
            assert!(shown.contains(allowed), "{allowed} is missing from\n{shown}");
        }
    }
}
