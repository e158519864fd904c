//! Scenarios as text: the commands of each file lead to the trace below its line of dashes.
//!
//! `EVENKEEL_REWRITE=1 cargo test -p evenkeel-sim --test golden` writes the traces anew; read the diff.

use std::{fs, path::Path};

use evenkeel_sim::Scenario;

const DASHES: &str = "----\n";

#[test]
fn every_scenario_goes_as_it_is_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let rewrite = std::env::var_os("EVENKEEL_REWRITE").is_some();
    let mut seen = 0;
    let mut wrong = Vec::new();
    for file in fs::read_dir(folder).expect("the folder is there") {
        let path = file.expect("it can be listed").path();
        let text = fs::read_to_string(&path).expect("it is text");
        let (commands, expected) = text.split_once(DASHES).unwrap_or((&text, ""));
        let scenario =
            Scenario::read(commands).unwrap_or_else(|problem| panic!("{}: {problem}", path.display()));
        let trace = scenario.run().expect("what ships is valid");
        seen += 1;
        if rewrite {
            fs::write(&path, format!("{commands}{DASHES}{trace}")).expect("it can be written");
        } else if trace != expected {
            let line = trace
                .lines()
                .zip(expected.lines())
                .position(|(is, was)| is != was);
            wrong.push(format!(
                "{}: first at line {line:?} of the trace\n{trace}",
                path.display()
            ));
        }
    }
    assert!(seen >= 6, "{seen} scenarios: some are missing");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
