//! Decides how `evenkeel schema` prints the schema of contracts.
//! It exists so that an editor checks a contract by the version of the program that will serve it.
//! It refuses to write files: where the schema is kept is the editor's business.

use std::process::ExitCode;

use super::{UNUSABLE, complain, print};
use crate::config::schema;

pub(super) fn run() -> ExitCode {
    match schema::schema() {
        Ok(schema) => {
            print(&format!("{schema:#}"));
            ExitCode::SUCCESS
        }
        Err(problems) => {
            complain(&problems.to_string());
            ExitCode::from(UNUSABLE)
        }
    }
}
