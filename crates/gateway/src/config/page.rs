//! Decides what the reference page says about a key: its default, its range, its effect.
//! It exists so that editors, explanations and the page itself say the same words.
//! It refuses to be the source of a value: a test holds the page to the code.

use std::sync::LazyLock;

use serde_json::Value;
use toml::de::DeValue;

use super::keys;

/// The page about the keys of a contract.
pub const PAGE: &str = include_str!("../../../../docs/reference/contract.md");

/// What it says about one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The key with the table that it stands in, as in [`keys::ALL`].
    pub key: &'static str,
    /// Its default, as it is written there.
    pub default: &'static str,
    /// What it may be.
    pub range: &'static str,
    /// What it does.
    pub effect: &'static str,
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let lines = PAGE.lines().filter_map(|line| line.strip_prefix("| `"));
    lines
        .filter_map(|line| {
            let mut cells = line.trim_end_matches(" |").splitn(4, " | ");
            Some(Row {
                key: cells.next()?.trim_end_matches('`'),
                default: cells.next()?,
                range: cells.next()?,
                effect: cells.next()?,
            })
        })
        .collect()
});

/// Returns what the page says about a key, named as in [`keys::ALL`].
#[must_use]
pub fn row(key: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.key == key)
}

/// Returns the key or table that a place of a contract is, without the names and indexes in it:
/// `dependencies.<name>.timeout`, `routes.name`. What is neither comes back as it is.
///
/// Names with a dot in them are not told apart from keys; the contracts that this is asked about have none.
#[must_use]
pub fn without_names(place: &str) -> String {
    let parts: Vec<&str> = place
        .split('.')
        .map(|part| part.split('[').next().unwrap_or(part))
        .collect();
    if let Some((key, table)) = parts.split_last() {
        for (name, keys) in keys::ALL {
            if keys.contains(key) && is_like(name, table) {
                return format!("{name}.{key}");
            }
        }
    }
    let table = keys::ALL.iter().find(|(name, _)| is_like(name, &parts));
    table.map_or_else(|| parts.join("."), |(name, _)| (*name).to_owned())
}

/// Returns the table that a key opens, named as in [`keys::ALL`].
#[must_use]
pub fn table_of(key: &str) -> Option<&'static str> {
    let parts: Vec<&str> = key.split('.').collect();
    let named = keys::ALL.iter().find(|(name, _)| *name == key);
    let named = named.or_else(|| keys::ALL.iter().find(|(name, _)| is_like(name, &parts)));
    named.map(|(name, _)| *name)
}

/// Tells whether these are the parts of a table's name, any part where it has a name in angle brackets.
fn is_like(table: &str, parts: &[&str]) -> bool {
    let mut names = table.split('.');
    let fits = parts.iter().all(|part| {
        let name = names.next();
        name.is_some_and(|name| name == *part || name.starts_with('<'))
    });
    fits && names.next().is_none()
}

impl Row {
    /// Tells whether the key has to be written down.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.default == "required"
    }

    /// Tells whether a table that is not written down is in force with the defaults of its keys.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.default.starts_with("on, as below")
    }

    /// Returns the default as a value, where it is one.
    #[must_use]
    pub fn default_value(&self) -> Option<Value> {
        let code = self.default.strip_prefix('`')?.strip_suffix('`')?;
        let value = DeValue::parse(code).ok()?;
        of(value.get_ref())
    }

    /// Returns the words that the key may be, as far as its range lists any.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let codes = self.range.split('`').skip(1).step_by(2);
        let words = codes.filter_map(|code| code.strip_prefix('"')?.strip_suffix('"'));
        words.map(str::to_owned).collect()
    }

    /// Tells whether it may be nothing but one of [`Row::words`].
    #[must_use]
    pub fn is_words_alone(&self) -> bool {
        let mut pieces = self.range.split(", ");
        pieces.all(|piece| piece.starts_with("`\"") && piece.ends_with("\"`"))
    }
}

/// Returns a value of TOML as one of JSON; times have no such value.
fn of(value: &DeValue<'_>) -> Option<Value> {
    match value {
        DeValue::String(text) => Some(Value::String(text.clone().into_owned())),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .map(Value::from),
        DeValue::Float(number) => number.as_str().parse::<f64>().ok().map(Value::from),
        DeValue::Boolean(truth) => Some(Value::Bool(*truth)),
        DeValue::Datetime(_) => None,
        DeValue::Array(items) => items.iter().map(|item| of(item.get_ref())).collect(),
        DeValue::Table(table) => table
            .iter()
            .map(|(key, value)| Some((key.get_ref().clone().into_owned(), of(value.get_ref())?)))
            .collect::<Option<serde_json::Map<String, Value>>>()
            .map(Value::Object),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_with_its_default_and_words() {
        let when_busy = row("routes.when_busy").unwrap();
        assert_eq!(when_busy.default_value(), Some(Value::from("ladder")));
        assert_eq!(when_busy.words(), ["ladder", "refuse"]);
        assert!(when_busy.is_words_alone() && !when_busy.is_required());
        let log = row("gateway.access_log").unwrap();
        assert!(!log.is_words_alone());
        assert!(row("routes.class").unwrap().is_required());
        assert_eq!(row("routes.nothing"), None);
    }

    #[test]
    fn names_and_indexes_are_no_part_of_a_key() {
        for (place, key) in [
            (
                "dependencies.catalog.breaker.window",
                "dependencies.<name>.breaker.window",
            ),
            ("routes[3].ladder[0].stale", "routes.ladder.stale"),
            ("gateway.listen", "gateway.listen"),
            ("resources.db", "resources.<name>"),
            (
                "dependencies.a.classes.busy.breaker",
                "dependencies.<name>.classes.busy.breaker",
            ),
            ("dependencies.a.classes.busy", "dependencies.<name>.classes.busy"),
            ("routes[0].ladder", "routes.ladder"),
            ("include", "include"),
        ] {
            assert_eq!(without_names(place), key);
        }
        assert_eq!(
            table_of("dependencies.<name>.classes.busy"),
            Some("dependencies.<name>.classes.busy")
        );
        assert_eq!(table_of("routes.name"), None);
    }
}
