//! Decides what an editor is told of the keys of a contract: the JSON Schema of its tables.
//! It exists so that a slip of the pen is marked while it is made, by what the reader itself asks for.
//! It refuses a second list of types: a contract with every key is read, and what each was read as is written down.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{
    diag::{Diagnostics, Places},
    keys,
    kinds::Kind,
    page::{self, Row},
};

/// A contract with every key that there is.
const EVERY_KEY: &str = include_str!("../../tests/random_contracts/full.toml");

/// What was learned about keys by reading [`EVERY_KEY`].
struct Learned {
    kinds: BTreeMap<String, Kind>,
    /// The keys whose values are lists of tables.
    lists: BTreeSet<String>,
}

/// Returns the JSON Schema (draft 2020-12) of contracts.
///
/// # Errors
/// What is wrong with the contract that it is learned from; a test reads it.
pub fn schema() -> Result<Value, Diagnostics> {
    let learned = learn()?;
    let mut definitions = Map::new();
    for (name, pattern, example) in [
        ("duration", DURATION, "250ms"),
        ("size", SIZE, "64KiB"),
        ("share", SHARE, "50%"),
    ] {
        let text = json!({ "type": "string", "pattern": pattern, "examples": [example] });
        definitions.insert(name.to_owned(), or_reference(&text));
    }
    definitions.insert("text".to_owned(), or_reference(&json!({ "type": "string" })));
    definitions.insert(
        "reference".to_owned(),
        json!({
            "description": "A text from the environment or from a file.",
            "type": "object",
            "properties": { "env": { "type": "string" }, "file": { "type": "string" } },
            "additionalProperties": false,
            "minProperties": 1,
            "maxProperties": 1,
        }),
    );
    for (table, keys) in keys::ALL {
        definitions.insert((*table).to_owned(), of_table(table, keys, &learned));
    }
    let mut properties = Map::new();
    for key in keys::ROOT {
        properties.insert((*key).to_owned(), of_root(key, &learned));
    }
    Ok(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "evenkeel contract",
        "description": "What is promised on which route. docs/reference/contract.md explains each key.",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "$defs": definitions,
    }))
}

/// An integer with a unit, as [`super::units::duration`] reads it.
pub const DURATION: &str = "^[0-9]+(ms|s|m|h|d)$";
/// An integer with a unit, as [`super::units::size`] reads it.
pub const SIZE: &str = "^[0-9]+(B|KiB|MiB|GiB)$";
/// A share, as [`super::units::share_ppm`] reads it.
pub const SHARE: &str = "^[0-9]+(\\.[0-9]{1,4})?%$";

/// Returns the keys of which neither the reader nor this file says what they are.
///
/// # Errors
/// As [`schema`].
pub fn without_type() -> Result<Vec<String>, Diagnostics> {
    let learned = learn()?;
    let all = keys::ALL.iter();
    let keys = all.flat_map(|(table, keys)| keys.iter().map(move |key| format!("{table}.{key}")));
    Ok(keys
        .filter(|key| type_of(key, None, &learned).is_none())
        .collect())
}

fn learn() -> Result<Learned, Diagnostics> {
    let mut places = Places::with_kinds();
    super::parse_with("every-key.toml", EVERY_KEY, None, &mut places)?;
    let mut lists = BTreeSet::new();
    for place in places.all() {
        for (end, _) in place.match_indices("[0]") {
            lists.insert(page::without_names(place.get(..end).unwrap_or_default()));
        }
    }
    let kinds = places.kinds();
    Ok(Learned {
        kinds: kinds
            .map(|(place, kind)| (page::without_names(place), kind.clone()))
            .collect(),
        lists,
    })
}

fn of_table(table: &str, keys: &[&str], learned: &Learned) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in keys {
        let place = format!("{table}.{key}");
        let row = page::row(&place);
        let mut property = type_of(&place, row, learned).unwrap_or_else(|| json!({}));
        if let Some(row) = row {
            property["description"] = Value::String(row.effect.to_owned());
            if let Some(default) = row.default_value() {
                property["default"] = default;
            }
            if row.is_required() {
                required.push(*key);
            }
        }
        properties.insert((*key).to_owned(), property);
    }
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if table == "routes.ladder" {
        schema["minProperties"] = json!(1);
        schema["maxProperties"] = json!(1);
    }
    schema
}

/// Returns the type of a key, from what it was read as, or from the table that it opens.
fn type_of(place: &str, row: Option<&Row>, learned: &Learned) -> Option<Value> {
    let row = row.or_else(|| page::row(place));
    let words = row.map(|row| row.words()).unwrap_or_default();
    let key = place.rsplit('.').next().unwrap_or(place);
    let read = learned
        .kinds
        .get(place)
        .map(|kind| of_kind(kind, &words, row.is_some_and(Row::is_words_alone)));
    let opened = if let Some(table) = page::table_of(place) {
        let table = refer(table);
        Some(if learned.lists.contains(place) {
            json!({ "type": "array", "items": table })
        } else if read.is_none() && !words.is_empty() {
            json!({ "anyOf": [{ "enum": words }, table] })
        } else {
            table
        })
    } else if keys::FREE_NAMES.contains(&key) {
        Some(json!({ "type": "object", "additionalProperties": refer("text") }))
    } else {
        None
    };
    match (read, opened) {
        (Some(read), Some(opened)) => Some(json!({ "anyOf": [read, opened] })),
        (read, opened) => read.or(opened),
    }
}

fn of_kind(kind: &Kind, words: &[String], is_words_alone: bool) -> Value {
    let list = |item: Value| json!({ "type": "array", "items": item });
    match kind {
        Kind::Text if is_words_alone => or_reference(&json!({ "enum": words })),
        Kind::Text => refer("text"),
        Kind::Duration => refer("duration"),
        Kind::Size { .. } => refer("size"),
        Kind::Share => refer("share"),
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Word(words) => or_reference(&json!({ "enum": words })),
        Kind::Texts => list(refer("text")),
        Kind::Integers { min, max } => list(json!({ "type": "integer", "minimum": min, "maximum": max })),
    }
}

fn of_root(key: &str, learned: &Learned) -> Value {
    if key == "include" {
        return json!({
            "description": "Files below the directory of the contract whose tables are part of it.",
            "type": "array",
            "items": { "type": "string" },
        });
    }
    let named = format!("{key}.<name>");
    if keys::ALL.iter().any(|(table, _)| *table == named) {
        return json!({ "type": "object", "additionalProperties": refer(&named) });
    }
    if learned.lists.contains(key) {
        return json!({ "type": "array", "items": refer(key) });
    }
    refer(key)
}

fn refer(definition: &str) -> Value {
    // Of what stands in a fragment of a URI these two have to be escaped.
    let definition = definition.replace('<', "%3C").replace('>', "%3E");
    json!({ "$ref": format!("#/$defs/{definition}") })
}

fn or_reference(value: &Value) -> Value {
    json!({ "anyOf": [value, refer("reference")] })
}
