//! The `evenkeel` program; everything is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    evenkeel_gateway::cli::run(std::env::args_os())
}
