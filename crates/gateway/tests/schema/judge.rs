//! A judge of values by a JSON Schema. It knows only the words that the schema of contracts uses, and fails on any other.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    unreachable_pub,
    reason = "what breaks a test fails it"
)]

use evenkeel_gateway::config::{schema, units};
use serde_json::Value;

/// Returns the value of a contract's text.
fn value(text: &str) -> Value {
    let table: toml::Table = toml::from_str(text).unwrap();
    serde_json::to_value(table).unwrap()
}

/// Returns what is wrong with a value, each with its place.
fn wrong(root: &Value, rule: &Value, value: &Value, place: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (word, says) in rule.as_object().unwrap() {
        let fits = match word.as_str() {
            "$ref" => {
                let name = says.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                let name = name.replace("%3C", "<").replace("%3E", ">");
                found.extend(wrong(root, &root["$defs"][&name], value, place));
                true
            }
            "anyOf" => {
                let all = says.as_array().unwrap();
                all.iter().any(|rule| wrong(root, rule, value, place).is_empty())
            }
            "type" => match says.as_str().unwrap() {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "integer" => value.is_i64(),
                "boolean" => value.is_boolean(),
                other => panic!("unknown type {other}"),
            },
            "enum" => says.as_array().unwrap().contains(value),
            "pattern" => value.as_str().is_none_or(|text| match says.as_str().unwrap() {
                schema::DURATION => units::duration(text).is_ok(),
                schema::SIZE => units::size(text).is_some(),
                schema::SHARE => units::share_ppm(text).is_some(),
                other => panic!("unknown pattern {other}"),
            }),
            "minimum" => value
                .as_i64()
                .is_none_or(|number| number >= says.as_i64().unwrap()),
            "maximum" => value
                .as_i64()
                .is_none_or(|number| number <= says.as_i64().unwrap()),
            "required" => value.as_object().is_none_or(|table| {
                let mut keys = says.as_array().unwrap().iter();
                keys.all(|key| table.contains_key(key.as_str().unwrap()))
            }),
            "minProperties" => value
                .as_object()
                .is_none_or(|table| table.len() as u64 >= says.as_u64().unwrap()),
            "maxProperties" => value
                .as_object()
                .is_none_or(|table| table.len() as u64 <= says.as_u64().unwrap()),
            "properties" => {
                for (key, rule) in says.as_object().unwrap() {
                    if let Some(value) = value.get(key) {
                        found.extend(wrong(root, rule, value, &format!("{place}.{key}")));
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = rule.get("properties").and_then(Value::as_object);
                for (key, value) in value.as_object().into_iter().flatten() {
                    if known.is_some_and(|known| known.contains_key(key)) {
                        continue;
                    }
                    let place = format!("{place}.{key}");
                    if *says == false {
                        found.push(format!("{place}: no such key"));
                    } else {
                        found.extend(wrong(root, says, value, &place));
                    }
                }
                true
            }
            "items" => {
                for (index, value) in value.as_array().into_iter().flatten().enumerate() {
                    found.extend(wrong(root, says, value, &format!("{place}[{index}]")));
                }
                true
            }
            "description" | "default" | "examples" | "title" | "$schema" | "$defs" => true,
            other => panic!("the judge does not know `{other}`"),
        };
        if !fits {
            found.push(format!("{place}: {value} does not fit {word} {says}"));
        }
    }
    found
}

pub fn judge(schema: &Value, text: &str) -> Vec<String> {
    wrong(schema, schema, &value(text), "")
}
