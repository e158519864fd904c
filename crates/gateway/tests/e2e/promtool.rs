//! Where the checks of Prometheus are found.

use std::{env, path::PathBuf};

/// Returns the program, from the `PATH` or from where `./check` puts it. It is there wherever `./check` runs: then
/// `EVENKEEL_PROMTOOL` says that it must be. `None` leaves out what it would check.
pub(crate) fn promtool() -> Option<PathBuf> {
    let on_path = env::var_os("PATH")
        .into_iter()
        .flat_map(|path| env::split_paths(&path).collect::<Vec<_>>());
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../tools/usr/bin");
    let found = on_path
        .chain([target])
        .map(|folder| folder.join("promtool"))
        .find(|program| program.is_file());
    assert!(
        found.is_some() || env::var_os("EVENKEEL_PROMTOOL").is_none(),
        "promtool is neither on the PATH nor under target/tools: ./check promtool fetches it"
    );
    found
}
