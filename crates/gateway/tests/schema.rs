//! The schema of contracts says of every key what the reader asks for, and accepts what the check accepts.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "schema/judge.rs"]
mod judge;

use std::{collections::BTreeSet, path::Path};

use evenkeel_gateway::config::{self, keys, schema};
use judge::judge;
use serde_json::Value;

fn file(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)).unwrap()
}

fn of_contracts() -> Value {
    schema::schema().unwrap_or_else(|problems| panic!("the contract with every key: {problems}"))
}

#[test]
fn the_file_in_the_repository_is_what_the_program_prints() {
    let printed = format!("{:#}\n", of_contracts());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/contract.json");
    if std::env::var_os("EVENKEEL_UPDATE").is_some() {
        std::fs::write(&path, &printed).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap() == printed,
        "docs/schema/contract.json is old: run this test with EVENKEEL_UPDATE=1"
    );
}

#[test]
fn every_key_that_is_read_is_in_the_schema_with_a_type_and_a_description_and_nothing_else_is() {
    let untyped = schema::without_type().unwrap();
    assert_eq!(
        untyped,
        Vec::<String>::new(),
        "put them into tests/random_contracts/full.toml"
    );
    let schema = of_contracts();
    let names = |table: &Value| -> BTreeSet<String> {
        table["properties"].as_object().unwrap().keys().cloned().collect()
    };
    let set = |keys: &[&str]| -> BTreeSet<String> { keys.iter().map(|&key| key.to_owned()).collect() };
    assert_eq!(names(&schema), set(keys::ROOT));
    for (table, keys) in keys::ALL {
        let rules = &schema["$defs"][*table];
        assert_eq!(names(rules), set(keys), "{table}");
        for key in *keys {
            let rule = &rules["properties"][key];
            assert!(
                rule["description"].as_str().is_some_and(|text| !text.is_empty()),
                "{table}.{key}"
            );
        }
    }
    let tables = schema["$defs"].as_object().unwrap().keys();
    let others: Vec<&String> = tables
        .filter(|name| !keys::ALL.iter().any(|(table, _)| table == name))
        .collect();
    assert_eq!(others, ["duration", "reference", "share", "size", "text"]);
}

#[test]
fn words_ranges_and_defaults_are_in_it() {
    let schema = of_contracts();
    let of = |table: &str, key: &str| schema["$defs"][table]["properties"][key].clone();
    assert_eq!(of("routes", "class")["anyOf"][0]["enum"][0], "read");
    assert_eq!(of("routes", "when_busy")["default"], "ladder");
    assert_eq!(of("gateway", "workers")["maximum"], 1024);
    assert_eq!(of("dependencies.<name>", "breaker")["anyOf"][0]["enum"][0], "off");
    assert_eq!(
        of("dependencies.<name>.ramp", "stages")["default"],
        serde_json::json!([5, 20, 50, 100])
    );
    assert_eq!(
        schema["$defs"]["routes"]["required"],
        serde_json::json!(["name", "match", "class", "from"])
    );
    assert_eq!(of("routes", "ladder")["type"], "array");
}

#[test]
fn what_the_check_accepts_fits_and_what_nobody_reads_does_not() {
    let schema = of_contracts();
    let full = file("crates/gateway/tests/random_contracts/full.toml");
    let mut contracts = vec![("full.toml".to_owned(), full.clone())];
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(
                text.starts_with("#:schema ../docs/schema/contract.json\n"),
                "{}",
                path.display()
            );
            contracts.push((path.display().to_string(), text));
        }
    }
    for (name, text) in &contracts {
        assert_eq!(judge(&schema, text), Vec::<String>::new(), "{name}");
        assert!(config::parse(name, text).is_ok(), "{name}");
    }
    for (from, to) in [
        ("drain = \"5s\"", "drain = 5"),
        ("drain = \"5s\"", "drain = \"5 s\""),
        ("drain = \"5s\"", "drian = \"5s\""),
        ("workers = 2", "workers = 0"),
        ("workers = 2", "workers = \"2\""),
        ("memory = \"64MiB\"", "memory = \"64MB\""),
        ("scope_share = \"40%\"", "scope_share = 0.4"),
        ("class = \"pass\"", "class = \"paas\""),
        ("resend = true", "resend = \"yes\""),
        ("breaker = \"off\"", "breaker = \"on\""),
        ("uses = [\"db\"]", "uses = \"db\""),
        ("{ stale = \"10m\" }", "{ stale = \"10m\", default = {} }"),
        ("header = { x-kind = \"*\" }", "header = { x-kind = 1 }"),
        ("name = \"orders\"\n", ""),
        ("# Every", "x = 1\n# Every"),
    ] {
        let bad = full.replacen(from, to, 1);
        assert_ne!(bad, full, "{from}");
        assert_ne!(judge(&schema, &bad), Vec::<String>::new(), "{to}");
        assert!(config::parse("bad", &bad).is_err(), "{to}");
    }
    for (from, to) in [
        ("drain = \"5s\"", "drain = { env = \"DRAIN\" }"),
        ("x-from = \"gateway\"", "x-from = { file = \"from\" }"),
    ] {
        assert_eq!(
            judge(&schema, &full.replacen(from, to, 1)),
            Vec::<String>::new(),
            "{to}"
        );
    }
}
