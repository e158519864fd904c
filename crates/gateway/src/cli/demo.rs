//! Decides how `evenkeel demo` is run and which exit status it has.
//! It exists so that the demo itself knows nothing of processes.
//! It refuses to call a promise held that was not.

use std::process::ExitCode;

use super::{FAILED, UNUSABLE, complain, print};
use crate::demo::{self, report};

pub(super) fn run(json: bool, without_stale: bool) -> ExitCode {
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start worker threads: {error}"))
        .and_then(|runtime| runtime.block_on(demo::run(without_stale)));
    match outcome {
        Ok(outcome) => {
            print(&if json {
                report::json(&outcome)
            } else {
                report::text(&outcome)
            });
            if outcome.is_held() {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(FAILED)
            }
        }
        Err(why) => {
            complain(&format!("the demo could not run: {why}"));
            ExitCode::from(UNUSABLE)
        }
    }
}
