//! Decides what is measured against what, and prints it as one table with our goals.
//! It exists so that "fast enough" is a ratio against what a user could pick instead, in the same run.
//! It refuses to start with a subject that is not in the state its name says.

mod data;
mod goals;
mod ours;
mod peers;
mod work;

use std::{
    error::Error,
    fs,
    io::{IsTerminal as _, stderr},
    process::ExitCode,
};

use evenkeel_bench_library::{Comparison, Options, Tasks, USAGE, json, measure, table};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let options = Options::read(std::env::args().skip(1))?;
    if options.help {
        println!("{USAGE}");
        return Ok(());
    }
    let lines: Vec<Comparison> = goals::lines()
        .into_iter()
        .filter(|line| line.contains(&options.filter))
        .collect();
    if lines.is_empty() {
        return Err(format!("--filter {}: no line contains this", options.filter).into());
    }
    let tasks = Tasks::start()?;
    let mut cases = ours::cases(&tasks)?;
    cases.extend(peers::cases(&tasks)?);
    let figures = measure(&cases, &lines, options.rounds, options.span, progress)?;
    progress("");
    print!("{}", table(&lines, &figures));
    if let Some(file) = options.json {
        fs::write(&file, format!("{:#}\n", json(&lines, &figures)))
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

/// Shows what is going on in one line of a terminal that the next one replaces.
fn progress(what: &str) {
    if stderr().is_terminal() {
        eprint!("\r\x1b[K{what}");
    }
}
