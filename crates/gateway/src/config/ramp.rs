//! Decides what a contract says about letting traffic back after an outage, and about learning what a dependency bears.
//! It exists because both are on by default and each must be one word to turn off, one table to change.
//! It refuses nothing about the numbers by itself: their ranges are the engine's to check.

use evenkeel_core::{LimitRules, RampRules};
use toml::{Spanned, de::DeValue};

use super::{
    keys, lints,
    reader::{Fields, shown},
};

/// What stands under a key that may be `"off"` or a table.
enum Switch<'t> {
    /// Nothing usable; what is wrong with it has been told.
    Default,
    Off,
    Table(&'t Spanned<DeValue<'t>>),
}

/// Reads the ramp. Without a breaker there is none unless one is written down, which is then a problem.
pub(super) fn read_ramp(fields: &mut Fields<'_, '_>, is_without_breaker: bool) -> Option<RampRules> {
    let default = (!is_without_breaker).then(RampRules::default);
    let value = match switch(fields, "ramp", "ramp = { stages = [10, 100] }") {
        Switch::Default => return default,
        Switch::Off => return None,
        Switch::Table(value) => value,
    };
    let place = fields.place_of("ramp");
    let mut reader = fields.reader();
    let Some(mut fields) = reader.open(place, value, keys::RAMP) else {
        return default;
    };
    let rules = RampRules::default();
    let stages = fields.integers("stages", 1, 100, "[5, 20, 50, 100]");
    Some(RampRules {
        stages: stages.map_or(rules.stages, |stages| {
            stages
                .into_iter()
                .map(|percent| u8::try_from(percent).unwrap_or(u8::MAX))
                .collect()
        }),
        hold: fields.duration("hold", "\"100ms\"").unwrap_or(rules.hold),
        longest: fields.duration("hold_max", "\"500ms\"").unwrap_or(rules.longest),
        calls: fields.integer("calls", 1, 100_000, "5").unwrap_or(rules.calls),
        failures_ppm: fields
            .share_ppm("failure_ratio", "\"50%\"")
            .unwrap_or(rules.failures_ppm),
    })
}

/// Reads the learned limit.
pub(super) fn read_learned_limit(fields: &mut Fields<'_, '_>) -> Option<LimitRules> {
    let default = LimitRules::DEFAULT;
    let value = match switch(fields, "learned_limit", "learned_limit = { floor = 2 }") {
        Switch::Default => return Some(default),
        Switch::Off => return None,
        Switch::Table(value) => value,
    };
    let place = fields.place_of("learned_limit");
    let mut reader = fields.reader();
    let Some(mut fields) = reader.open(place, value, keys::LEARNED_LIMIT) else {
        return Some(default);
    };
    Some(LimitRules {
        floor: fields.integer("floor", 1, 1000, "1").unwrap_or(default.floor),
        cold: fields.integer("cold", 1, 1_000_000, "10").unwrap_or(default.cold),
        linger: fields.duration("linger", "\"1s\""),
    })
}

/// Reads a key that may be `"off"` or a table; anything else is a problem.
fn switch<'t>(fields: &mut Fields<'_, 't>, key: &'static str, example: &str) -> Switch<'t> {
    let Some(value) = fields.value(key) else {
        return Switch::Default;
    };
    if value.get_ref().as_str() == Some("off") {
        return Switch::Off;
    }
    if value.get_ref().as_table().is_some() {
        return Switch::Table(value);
    }
    fields.lint(
        lints::WRONG_TYPE,
        key,
        &shown(value),
        "\"off\", or a table of rules",
        &format!("write `{example}`, say, or `{key} = \"off\"`"),
    );
    Switch::Default
}
