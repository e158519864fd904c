//! Decides the verbs that steer a running gateway: `hold`, `release`, `holds`, `reset`.
//! It exists so that a person can switch in an incident, with author, reason and end, and without a deploy.
//! It refuses to leave the reason out; what the contract permits is the gateway's to say.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{
    print,
    remote::{Failure, Reach, author},
    screen,
};

/// What is meant: one route, or one dependency with everything that asks it.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct What {
    /// A route of the contract
    route: Option<String>,
    /// A dependency of the contract, for every route that asks it
    #[arg(long, value_name = "NAME")]
    dependency: Option<String>,
}

/// What the dependency and the callers get.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Mode {
    /// The dependency gets nothing, no probes; callers get the ladder
    ForcedOpen,
    /// The dependency gets nothing; callers are refused without trying rungs
    ForcedOff,
    /// The dependency gets nothing; callers get the stale rung, else refused
    StaleOnly,
    /// The dependency gets nothing; callers get the default rung, else refused
    DefaultOnly,
    /// The dependency gets everything within permits: the breaker only observes
    ForcedClosed,
}

impl Mode {
    const fn word(self) -> &'static str {
        match self {
            Self::ForcedOpen => "forced-open",
            Self::ForcedOff => "forced-off",
            Self::StaleOnly => "stale-only",
            Self::DefaultOnly => "default-only",
            Self::ForcedClosed => "forced-closed",
        }
    }
}

/// Who asks and why.
#[derive(Debug, Args)]
pub(super) struct Because {
    /// Why; it is shown to everybody who looks, and written down
    #[arg(long)]
    reason: String,
    /// Who [default: the user and the host]
    #[arg(long)]
    author: Option<String>,
}

fn by(author_given: Option<&str>) -> String {
    author_given.map_or_else(author, str::to_owned)
}

pub(super) fn hold(
    reach: &Reach,
    what: &What,
    mode: Mode,
    because: &Because,
    lasts: Option<&str>,
) -> ExitCode {
    let wish = json!({
        "route": what.route,
        "dependency": what.dependency,
        "mode": mode.word(),
        "reason": because.reason,
        "by": by(because.author.as_deref()),
        "for": lasts,
    });
    told(reach, reach.change("/hold", &wish), |done| {
        format!("held:{}{}", screen::hold(&done["hold"]), keeping(done))
    })
}

pub(super) fn release(reach: &Reach, what: &What, author: Option<&str>) -> ExitCode {
    let wish = json!({ "route": what.route, "dependency": what.dependency, "by": by(author) });
    told(reach, reach.change("/release", &wish), |done| {
        format!("released:{}{}", screen::hold(&done["hold"]), trouble(done))
    })
}

pub(super) fn reset(reach: &Reach, what: &What, because: &Because) -> ExitCode {
    let wish = json!({
        "route": what.route,
        "dependency": what.dependency,
        "reason": because.reason,
        "by": by(because.author.as_deref()),
    });
    told(reach, reach.change("/reset", &wish), |done| {
        let word = |key: &str| done[key].as_str().unwrap_or("without a breaker").to_owned();
        let name = done["dependency"].as_str().unwrap_or_default();
        format!(
            "reset: {name} was {}, is {}; traffic comes back by its ramp{}",
            word("before"),
            word("state"),
            trouble(done)
        )
    })
}

pub(super) fn holds(reach: &Reach) -> ExitCode {
    told(reach, reach.get("/holds"), |holds| {
        let list = holds["holds"].as_array().map(Vec::as_slice).unwrap_or_default();
        if list.is_empty() {
            return "no holds".to_owned();
        }
        let lines: Vec<String> = list.iter().map(screen::hold).collect();
        lines.join("\n")
    })
}

/// Prints what came of it.
pub(super) fn told(
    reach: &Reach,
    done: Result<Value, Failure>,
    text: impl FnOnce(&Value) -> String,
) -> ExitCode {
    match done {
        Ok(done) => {
            print(&if reach.json { done.to_string() } else { text(&done) });
            ExitCode::SUCCESS
        }
        Err(failure) => failure.tell(reach.json),
    }
}

fn keeping(done: &Value) -> String {
    let kept = if done["kept_over_restart"] == true {
        ""
    } else {
        "\n it ends with the process: set `gateway.state` to keep holds over a restart"
    };
    format!("{kept}{}", trouble(done))
}

fn trouble(done: &Value) -> String {
    let trouble = done["trouble"].as_str();
    trouble.map_or_else(String::new, |why| format!("\n warning: {why}"))
}
