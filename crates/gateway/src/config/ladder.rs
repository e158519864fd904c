//! Decides what stands in on a route when its dependency cannot answer: the rungs of its ladder, in their order.
//! It exists apart from the route because each rung has keys of its own, and one of them names another dependency.
//! It refuses rungs that nobody could have meant: two in one, an alternate that is the dependency itself.

use std::time::Duration;

use bytes::Bytes;
use evenkeel_core::{RungRule, codes};
use evenkeel_http::directives::ResponseDirectives;
use http::{HeaderMap, HeaderValue, StatusCode, header::CACHE_CONTROL};

use super::{
    Dependency, dangers, keys, lints,
    reader::{Fields, listed, shown},
};

/// A rung below live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rung {
    /// The snapshot, up to this age.
    Stale(Duration),
    /// Another dependency.
    Alternate(Alternate),
    /// A declared constant.
    Default(DefaultAnswer),
}

/// Another dependency that is asked in place of the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternate {
    /// Its name.
    pub name: String,
    /// Its timeout: so much of the deadline is kept free for it.
    pub timeout: Duration,
}

/// The declared constant of a default rung.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultAnswer {
    /// Its status.
    pub status: StatusCode,
    /// Its media type.
    pub content_type: HeaderValue,
    /// How long others may keep it.
    pub cache_control: HeaderValue,
    /// Its body.
    pub body: Bytes,
}

impl DefaultAnswer {
    /// Whoever keeps a stand-in shows it after the outage too.
    pub const CACHE_CONTROL: &str = "no-store";
}

impl Rung {
    /// Returns the rule by which the engine checks it.
    pub(super) const fn rule(&self) -> RungRule {
        match self {
            Self::Stale(max_age) => RungRule::Stale { max_age: *max_age },
            Self::Alternate(Alternate { timeout, .. }) => RungRule::Alternate {
                timeout: Some(*timeout),
            },
            Self::Default(_) => RungRule::Default,
        }
    }
}

/// The dependencies of a contract: every name, and those that could be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'k> {
    pub(super) names: &'k [String],
    pub(super) read: &'k [Dependency],
    /// Every route only watches that does not say otherwise.
    pub(super) observe_only: bool,
}

impl Known<'_> {
    /// Returns the timeout of a dependency that could be read.
    pub(super) fn timeout_of(&self, name: &str) -> Option<Duration> {
        let found = self.read.iter().find(|dependency| dependency.name == name);
        found.map(|dependency| dependency.timeout)
    }

    /// Adds a problem unless there is a dependency of this name.
    pub(super) fn refuse_unknown(&self, fields: &mut Fields<'_, '_>, key: &str, name: &str) {
        if self.names.iter().any(|known| known == name) {
            return;
        }
        let known: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let allowed = if known.is_empty() {
            "names of dependencies; the contract has none".to_owned()
        } else {
            listed(&known)
        };
        fields.lint(
            lints::UNKNOWN_NAME,
            key,
            &format!("\"{name}\""),
            &allowed,
            &format!("add `[dependencies.{name}]`, or correct the name"),
        );
    }
}

/// Reads the ladder of a route that asks `from`.
pub(super) fn read(fields: &mut Fields<'_, '_>, known: Known<'_>, from: Option<&str>) -> Vec<Rung> {
    let Some(value) = fields.value("ladder") else {
        return Vec::new();
    };
    let Some(list) = value.get_ref().as_array() else {
        fields.lint(
            lints::WRONG_TYPE,
            "ladder",
            &shown(value),
            "a list of rungs",
            "write `ladder = [ { stale = \"60s\" } ]`, say",
        );
        return Vec::new();
    };
    let place = fields.place_of("ladder");
    let mut reader = fields.reader();
    let mut rungs = Vec::new();
    for (index, item) in list.iter().enumerate() {
        let Some(mut rung) = reader.open(format!("{place}[{index}]"), item, keys::RUNG) else {
            continue;
        };
        match (rung.has("stale"), rung.has("alternate"), rung.has("default")) {
            (true, false, false) if dangers::refuse_no_limit(&mut rung) => {}
            (true, false, false) => rungs.extend(rung.duration("stale", "\"60s\"").map(Rung::Stale)),
            (false, true, false) => rungs.extend(alternate(&mut rung, known, from).map(Rung::Alternate)),
            (false, false, true) => rungs.extend(default_answer(&mut rung).map(Rung::Default)),
            // What is written there has been told.
            (false, false, false) if !item.get_ref().as_table().is_some_and(toml::map::Map::is_empty) => {}
            _ => rung.problem(
                "",
                "not exactly one of stale, alternate and default",
                "{ stale = duration }, { alternate = dependency } or { default = answer }",
                "write one rung in each pair of braces",
            ),
        }
    }
    rungs
}

/// Reads the share of live answers beside which the stand-ins of this ladder are tried, in parts per million.
pub(super) fn read_exercise(fields: &mut Fields<'_, '_>, ladder: &[Rung]) -> Option<u32> {
    let ppm = fields.share_ppm("exercise", "\"0.1%\"")?;
    if ppm == 0 {
        fields.problem(
            "exercise",
            "no share at all",
            "more than 0% to 100%",
            "write `exercise = \"0.1%\"`, say, or remove it",
        );
    }
    if !ladder.iter().any(|rung| !matches!(rung, Rung::Stale(_))) {
        fields.lint(
            codes::NO_EFFECT,
            "exercise",
            "set without an alternate or a default in the ladder",
            "beside one of them: a copy needs no exercise",
            "add one, or remove it",
        );
    }
    Some(ppm).filter(|ppm| *ppm > 0)
}

fn alternate(rung: &mut Fields<'_, '_>, known: Known<'_>, from: Option<&str>) -> Option<Alternate> {
    let name = rung.text("alternate", "\"catalog-spare\"")?;
    known.refuse_unknown(rung, "alternate", &name);
    if from == Some(name.as_str()) {
        rung.problem(
            "alternate",
            &format!("\"{name}\", the dependency that could not answer"),
            "another dependency than `from`",
            "name another, or remove the rung: to ask once more is a `retry`",
        );
    }
    dangers::warn_shared_resource(rung, known, from, &name);
    // What is wrong with a dependency that could not be read is told there.
    let timeout = known.timeout_of(&name).unwrap_or(Duration::from_millis(1));
    Some(Alternate { name, timeout })
}

fn default_answer(rung: &mut Fields<'_, '_>) -> Option<DefaultAnswer> {
    let value = rung.value("default")?;
    let place = rung.place_of("default");
    let mut reader = rung.reader();
    let mut fields = reader.open(place, value, keys::DEFAULT)?;
    let status = fields.integer("status", 200, 599, "200").unwrap_or(200);
    let content_type = fields.required_text("content_type", "\"application/json\"");
    let cache_control = cache_control(&mut fields);
    let body = fields.required_text("body", "\"[]\"");
    let status = u16::try_from(status)
        .ok()
        .and_then(|status| StatusCode::from_u16(status).ok())?;
    if matches!(status.as_u16(), 204 | 205 | 304) {
        fields.problem(
            "status",
            status.as_str(),
            "a status whose answers have a body",
            "write `status = 200`",
        );
    }
    let content_type = content_type?;
    let value = HeaderValue::from_str(&content_type).ok();
    if value.is_none() || !content_type.contains('/') {
        fields.problem(
            "content_type",
            &format!("{content_type:?}"),
            "a media type",
            "write `content_type = \"application/json\"`, say",
        );
    }
    Some(DefaultAnswer {
        status,
        content_type: value?,
        cache_control,
        body: Bytes::from(body?),
    })
}

/// Reads what a default answer says to caches; what HTTP's own grammar refuses is a problem.
fn cache_control(fields: &mut Fields<'_, '_>) -> HeaderValue {
    let default = HeaderValue::from_static(DefaultAnswer::CACHE_CONTROL);
    let Some(text) = fields.text("cache_control", "\"max-age=5\"") else {
        return default;
    };
    let value = HeaderValue::from_str(&text).ok().filter(|value| {
        let headers = HeaderMap::from_iter([(CACHE_CONTROL, value.clone())]);
        !value.is_empty() && !ResponseDirectives::of(&headers).unreadable
    });
    if value.is_none() {
        fields.problem(
            "cache_control",
            &format!("{text:?}"),
            "directives of Cache-Control",
            "write `cache_control = \"max-age=5\"`, say, or remove it: it is `no-store` then",
        );
    }
    value.unwrap_or(default)
}
