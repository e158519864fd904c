//! Decides the verbs of the `evenkeel` program, their arguments and their exit statuses.
//! It exists so that parsing, help and meaning come from one definition.
//! It refuses to do the work itself: each verb has a file.

mod alerts;
mod check;
mod demo;
mod explain;
mod files;
mod hold;
mod init;
mod probe;
mod purge;
mod reload;
mod remote;
mod schema;
mod screen;
mod serve;
mod snapshot;
mod status;
mod steer;
mod store;

use std::{ffi::OsString, io::Write as _, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

/// Something is wrong with what was asked about: a contract with problems, a promise that was not held, an answer
/// that had to be cut.
const FAILED: u8 = 1;
/// It could not begin: wrong arguments, a file that cannot be read, an address in use, a contract that cannot be served.
const UNUSABLE: u8 = 2;

/// Keeps an HTTP product answering, truthfully, while the things it depends on fail.
#[derive(Debug, Parser)]
#[command(name = "evenkeel", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serve a contract as a reverse proxy
    #[command(after_help = "\
Examples:
  evenkeel serve contract.toml
  evenkeel serve contract.toml --last-good /var/lib/evenkeel/last-good

SIGHUP loads the contract anew, whole or not at all. SIGTERM and SIGINT finish what runs, for as long as `drain`
says; a second one ends at once. A contract that has served is kept as contract.toml.last-good, and served at a
start at which there is none that can be loaded.
Exit status: 0 stopped, 1 something had to be cut, 2 it could not start: a contract with problems, an
address in use.")]
    Serve {
        /// The contract file
        contract: PathBuf,
        /// Where the last good contract is kept, if not beside the contract
        #[arg(long, value_name = "FILE")]
        last_good: Option<PathBuf>,
        /// Do not start, rather than with the last good contract; and keep none
        #[arg(long)]
        no_fallback: bool,
    },
    /// Check a contract and print every problem
    #[command(after_help = "\
Examples:
  evenkeel check contract.toml
  evenkeel check --strict contract.toml    warnings are problems
  evenkeel check --explain contract.toml   what is in force, and what an outage would leave
  evenkeel check --json contract.toml      a list for programs, see docs/reference/check.md
  evenkeel check contract.toml --probe http://shop.example/products/42 --header \"cookie: theme=dark\"
                                           ask once: what would be kept of the answer, and why not

Exit status: 0 no problem (there may be warnings), 1 problems, 2 the file cannot be read.
With --probe: 0 the answer would stand in for a failure, 1 it would not, 2 it could not be asked for.")]
    Check {
        /// The contract file
        contract: PathBuf,
        /// Print a JSON list instead of text
        #[arg(long)]
        json: bool,
        /// Make every warning a problem
        #[arg(long)]
        strict: bool,
        /// Print what is in force on each route, and what would be served if a dependency were gone
        #[arg(long)]
        explain: bool,
        #[command(flatten)]
        probe: probe::Flags,
    },
    /// Write a contract to start from
    #[command(after_help = "\
Examples:
  evenkeel init                    writes contract.toml
  evenkeel init shop.toml
  evenkeel init --force shop.toml  in place of what is there

Exit status: 0 written, 1 the file is there already, 2 it cannot be written.")]
    Init {
        /// Where to write it
        #[arg(default_value = "contract.toml")]
        path: PathBuf,
        /// Write in place of a file that is there
        #[arg(long)]
        force: bool,
    },
    /// Say what is meant by the code of a problem, and show it mended
    #[command(after_help = "\
Examples:
  evenkeel explain stale-without-limit
  evenkeel explain                         every code there is

Exit status: 0 explained, 2 there is no such code.")]
    Explain {
        /// The word in the brackets of a problem or warning
        code: Option<String>,
    },
    /// Print the JSON Schema of contracts, for editors
    #[command(after_help = "\
Examples:
  evenkeel schema > contract.schema.json
  #:schema contract.schema.json            the first line of a contract, for Taplo and editors that use it

Exit status: 0 printed.")]
    Schema,
    #[command(flatten)]
    Steer(steer::Verb),
    /// Write the alerts of a contract as rules for Prometheus
    #[command(after_help = "\
Examples:
  evenkeel alerts contract.toml > evenkeel.rules.yml
  evenkeel alerts contract.toml --tests > evenkeel.rules_test.yml
  promtool test rules evenkeel.rules_test.yml

Each alert says what users get, what to do, and where it is explained: docs/guide/alerts.md
Exit status: 0 written, 2 the contract cannot be read or has problems.")]
    Alerts {
        /// The contract file
        contract: PathBuf,
        /// Write the tests of the rules instead, for promtool test rules
        #[arg(long)]
        tests: bool,
        /// How often Prometheus asks: whole seconds, 1s to 5m; 15s if left out
        #[arg(long, value_name = "SPAN")]
        scrape_interval: Option<String>,
        /// The rule file that the tests name
        #[arg(long, value_name = "FILE", default_value = "evenkeel.rules.yml")]
        rules: String,
    },
    /// Watch an outage with and without a ladder, on this machine, in a few seconds
    #[command(after_help = "\
Examples:
  evenkeel demo                    the table, the timeline, the way back
  evenkeel demo --json             the same counts for programs
  evenkeel demo --without-stale    take the stale rung out: the promise is not held, exit status 1

Everything is real: an upstream, gateways and clients on loopback, ports of the system's choice.
Exit status: 0 the promise was held, 1 it was not, 2 the demo could not run.")]
    Demo {
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
        /// Take the stale rung out of the ladder
        #[arg(long)]
        without_stale: bool,
    },
}

/// Runs the program with these arguments, the program's name first.
#[must_use]
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    match Arguments::try_parse_from(arguments) {
        Ok(arguments) => match arguments.verb {
            Verb::Serve {
                contract,
                last_good,
                no_fallback,
            } => serve::run(&serve::Wanted {
                contract,
                last_good,
                no_fallback,
            }),
            Verb::Steer(verb) => verb.run(),
            Verb::Check {
                contract,
                json,
                strict,
                explain,
                probe,
            } => match probe.read(json) {
                Some(probe) => probe::run(&contract, probe),
                None => check::run(
                    &contract,
                    check::How {
                        json,
                        strict,
                        explain,
                    },
                ),
            },
            Verb::Init { path, force } => init::run(&path, force),
            Verb::Schema => schema::run(),
            Verb::Explain { code } => explain::run(code.as_deref()),
            Verb::Alerts {
                contract,
                tests,
                scrape_interval,
                rules,
            } => alerts::run(
                &contract,
                &alerts::What {
                    tests,
                    every: scrape_interval,
                    rules,
                },
            ),
            Verb::Demo { json, without_stale } => demo::run(json, without_stale),
        },
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(UNUSABLE);
            // Help goes to standard output and mistakes to standard error; neither being read is no reason to fail.
            drop(error.print());
            ExitCode::from(code)
        }
    }
}

/// Prints to standard output. A reader who has left is not an error.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    drop(out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")));
}

/// Prints to standard error.
fn complain(text: &str) {
    let mut out = std::io::stderr().lock();
    drop(out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_are_well_formed() {
        Arguments::command().debug_assert();
    }
}
