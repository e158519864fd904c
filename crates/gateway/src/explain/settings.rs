//! Decides which settings are shown of a route and a dependency, each with its value and where that comes from.
//! It exists so that a default is seen as one, and what is written down is found again.
//! It refuses to show what came from a secret.

use crate::config::{
    Breaker, Class, Loaded, Route, keys, keys_of_reads,
    page::{self, Row},
    units::show_duration,
};

/// One setting in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its key, below the route or the dependency.
    pub key: String,
    /// Its value, as a contract writes it.
    pub value: String,
    /// Where the value comes from.
    pub source: Source,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// It is written down.
    Written {
        /// In this file,
        file: String,
        /// in this line.
        line: usize,
    },
    /// It is not, and has a value all the same.
    Default,
    /// It is not, and nothing is in force.
    Off,
}

/// Returns the settings of a route by its index.
pub(super) fn of_route(loaded: &Loaded, index: usize) -> Vec<Setting> {
    let mut walk = Walk::new(loaded);
    walk.table("routes", &format!("routes[{index}]"), "");
    let route = loaded.contract.routes.get(index);
    let is_pass = route.is_some_and(|route| route.class == Class::Pass);
    let passes = route.is_some_and(Route::passes);
    walk.found.retain(|setting| {
        let is_of_reads = keys_of_reads().any(|key| is_below(&setting.key, key));
        let is_idle = is_pass && is_of_reads || !passes && setting.key == "max_request_body";
        !(is_idle && setting.is_unwritten())
    });
    walk.in_force()
}

/// Returns the settings of an authority.
pub(super) fn of_authority(loaded: &Loaded, name: &str) -> Vec<Setting> {
    let mut walk = Walk::new(loaded);
    walk.table("authorities.<name>", &format!("authorities.{name}"), "");
    walk.in_force()
}

/// Returns the settings of a dependency.
pub(super) fn of_dependency(loaded: &Loaded, name: &str) -> Vec<Setting> {
    let mut walk = Walk::new(loaded);
    walk.table("dependencies.<name>", &format!("dependencies.{name}"), "");
    let mut dependencies = loaded.contract.dependencies.iter();
    if let Some(dependency) = dependencies.find(|dependency| dependency.name == name) {
        for setting in &mut walk.found {
            // The one default that depends on other settings.
            if setting.key == "timeout" && setting.source == Source::Default {
                setting.value = format!("\"{}\"", show_duration(dependency.timeout));
            }
        }
        let is_alone = dependency.upstreams.len() < 2;
        let is_broken_off = dependency.breaker == Breaker::Off;
        walk.found.retain(|setting| {
            let is_of_several = is_below(&setting.key, "eject") || setting.key == "balance";
            let is_of_breaker = is_below(&setting.key, "ramp");
            !(setting.is_unwritten() && (is_alone && is_of_several || is_broken_off && is_of_breaker))
        });
    }
    walk.in_force()
}

/// Tells whether a setting is this key, or one of its table.
fn is_below(setting: &str, key: &str) -> bool {
    let rest = setting.strip_prefix(key);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Defaults that are in force only beside another key, and that key.
const BESIDE: [(&str, &str); 3] = [
    ("when_busy", "ladder"),
    ("request_directives", "freshness"),
    ("breaker.slow_ratio", "breaker.slow_after"),
];
/// Defaults that another key takes the place of.
const INSTEAD: [(&str, &str); 1] = [("breaker.window", "breaker.window_calls")];

impl Setting {
    const fn is_unwritten(&self) -> bool {
        matches!(self.source, Source::Default | Source::Off)
    }
}

struct Walk<'l> {
    loaded: &'l Loaded,
    found: Vec<Setting>,
}

impl<'l> Walk<'l> {
    const fn new(loaded: &'l Loaded) -> Self {
        Self {
            loaded,
            found: Vec::new(),
        }
    }

    /// Returns what was found, without defaults that are not in force beside the rest.
    fn in_force(self) -> Vec<Setting> {
        let is_written = |key: &str| {
            let mut found = self.found.iter();
            found.any(|setting| is_below(&setting.key, key) && !setting.is_unwritten())
        };
        let is_idle = |setting: &Setting| {
            let mut beside = BESIDE.iter().filter(|(key, _)| *key == setting.key).peekable();
            let lacks = beside.peek().is_some() && !beside.any(|(_, other)| is_written(other));
            let mut instead = INSTEAD.iter();
            lacks || instead.any(|(key, other)| *key == setting.key && is_written(other))
        };
        let found = self.found.iter();
        found
            .filter(|setting| !(setting.source == Source::Default && is_idle(setting)))
            .cloned()
            .collect()
    }

    /// Adds the settings of a table that stands at a place; tables are at most four deep.
    fn table(&mut self, table: &str, place: &str, shown: &str) {
        let mut tables = keys::ALL.iter();
        let Some((_, keys)) = tables.find(|(name, _)| *name == table) else {
            return;
        };
        for key in *keys {
            let (path, at) = (format!("{table}.{key}"), format!("{place}.{key}"));
            let shown = if shown.is_empty() {
                (*key).to_owned()
            } else {
                format!("{shown}.{key}")
            };
            let opened = page::table_of(&path);
            let row = page::row(&path);
            if let (Some(table), true) = (opened, self.is_table(&at)) {
                if self.items(table, &at, &shown) == 0 {
                    self.table(table, &at, &shown);
                }
            } else if let Some(written) = self.written(&at) {
                self.found.push(Setting {
                    key: shown,
                    ..written
                });
            } else if let (Some(table), true) = (opened, row.is_some_and(Row::is_on)) {
                self.table(table, &at, &shown);
            } else if table != "routes.ladder" {
                let (value, source) = unwritten(row);
                self.found.push(Setting {
                    key: shown,
                    value,
                    source,
                });
            }
        }
    }

    /// Adds what stands in a list of tables, and returns how many there are.
    fn items(&mut self, path: &str, at: &str, shown: &str) -> usize {
        let mut index = 0;
        while self.loaded.places.exactly(&format!("{at}[{index}]")).is_some() {
            self.table(path, &format!("{at}[{index}]"), &format!("{shown}[{index}]"));
            index += 1;
        }
        index
    }

    /// Tells whether a table, or a list of them, is written down at a place, and not a word in its stead.
    fn is_table(&self, at: &str) -> bool {
        let Some(span) = self.loaded.places.exactly(at) else {
            return false;
        };
        let text = self.loaded.diagnostics.sources().text(&span);
        text.is_some_and(|text| !text.starts_with(['"', '\'']))
    }

    /// Returns the name of a file as seen from the directory of the contract.
    fn short(&self, file: &str) -> String {
        let main = self.loaded.diagnostics.sources().name();
        let directory = main.rsplit_once('/').map_or("", |(directory, _)| directory);
        let below = file.strip_prefix(directory).filter(|_| !directory.is_empty());
        below
            .map_or(file, |below| below.trim_start_matches('/'))
            .to_owned()
    }

    fn written(&self, at: &str) -> Option<Setting> {
        let span = self.loaded.places.exactly(at)?;
        let sources = self.loaded.diagnostics.sources();
        let spot = sources.spot(&span);
        let value = match self.loaded.diagnostics.hidden(&span) {
            Some(label) => label.to_owned(),
            None => flat(sources.text(&span)?),
        };
        Some(Setting {
            key: String::new(),
            value,
            source: Source::Written {
                file: self.short(spot.file),
                line: spot.line,
            },
        })
    }
}

/// Returns the value of a setting that is not written down.
fn unwritten(row: Option<&'static Row>) -> (String, Source) {
    let default = row.map_or("", |row| row.default);
    let has_value = row.and_then(Row::default_value).is_some();
    let is_nothing = matches!(default, "`false`" | "`[]`");
    if has_value && !is_nothing {
        (default.trim_matches('`').to_owned(), Source::Default)
    } else {
        (default.trim_matches('`').to_owned(), Source::Off)
    }
}

/// Returns a value on one line, cut to a readable length.
fn flat(text: &str) -> String {
    let mut flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    flat.retain(|c| !c.is_control());
    if let Some((end, _)) = flat.char_indices().nth(VALUE_MAX) {
        flat.truncate(end);
        flat.push_str("...");
    }
    flat
}

/// The most characters that are shown of a value.
const VALUE_MAX: usize = 60;
