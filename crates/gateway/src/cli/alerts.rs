//! Decides what `evenkeel alerts` prints: rules for Prometheus, or the tests of these rules.
//! It exists so that alerts are made from the contract that runs, and can be made anew in the step that ships it.
//! It refuses a contract with problems: nobody can say what such a one promises.

use std::{path::Path, process::ExitCode, time::Duration};

use super::{UNUSABLE, check, complain, print};
use crate::{
    alerts::{Alerts, EVERY, EVERY_RANGE},
    config::units::{duration, show_duration},
};

/// What is printed.
#[derive(Clone, Debug)]
pub(super) struct What {
    /// The tests, and not the rules.
    pub(super) tests: bool,
    /// How often Prometheus asks.
    pub(super) every: Option<String>,
    /// The name of the rule file, as the tests see it.
    pub(super) rules: String,
}

pub(super) fn run(path: &Path, what: &What) -> ExitCode {
    let every = match what.every.as_deref().map_or(Ok(EVERY), span) {
        Ok(every) => every,
        Err(why) => {
            complain(&why);
            return ExitCode::from(UNUSABLE);
        }
    };
    let Ok(contract) = check::load(path) else {
        return ExitCode::from(UNUSABLE);
    };
    let alerts = Alerts::of(&contract, every);
    let text = if what.tests {
        alerts.to_tests(&what.rules)
    } else {
        let name = path.file_name().unwrap_or(path.as_os_str());
        alerts.to_rules(&name.to_string_lossy())
    };
    print(text.trim_end());
    ExitCode::SUCCESS
}

fn span(text: &str) -> Result<Duration, String> {
    let [least, most] = EVERY_RANGE;
    let every = duration(text).map_err(|why| {
        format!(
            "--scrape-interval \"{text}\": {}; write whole seconds, like 15s",
            why.why
        )
    })?;
    if (least..=most).contains(&every) && every.subsec_nanos() == 0 {
        Ok(every)
    } else {
        Err(format!(
            "--scrape-interval {}: whole seconds from {} to {}; write what `scrape_interval` of Prometheus says",
            show_duration(every),
            show_duration(least),
            show_duration(most)
        ))
    }
}
