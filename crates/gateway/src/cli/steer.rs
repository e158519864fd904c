//! Decides the verbs that look at and steer a gateway that runs, and their arguments.
//! It exists apart from the other verbs because these speak to a process and those to files.
//! It refuses to do the work itself: each verb has a function.

use std::process::ExitCode;

use clap::Subcommand;

use super::{
    hold::{self, Because, Mode, What},
    purge::{self, Selected},
    reload,
    remote::Reach,
    snapshot, status,
};

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Show what is degraded, since when, how old, what is held, and what happens next
    #[command(after_help = "\
Examples:
  evenkeel status
  evenkeel status --watch
  evenkeel status --json --admin 10.0.0.7:9181

Exit status: 0 shown, 1 the gateway refused, 2 nobody could be asked.")]
    Status {
        /// Show it again every second
        #[arg(long)]
        watch: bool,
        #[command(flatten)]
        reach: Reach,
    },
    /// Load the contract anew: whole, or not at all
    #[command(after_help = "\
Examples:
  evenkeel reload
  evenkeel reload --json --admin 10.0.0.7:9181

The gateway reads its own file; check it before with `evenkeel check`.
Exit status: 0 it runs, 1 it was refused and the one before runs on, 2 nobody could be asked.")]
    Reload {
        #[command(flatten)]
        reach: Reach,
    },
    /// Force a mode on a route or a dependency, for a limited time
    #[command(
        allow_missing_positional = true,
        after_help = "\
Examples:
  evenkeel hold product stale-only --reason 'wrong prices since 03:10' --for 30m
  evenkeel hold --dependency catalog forced-open --reason 'database migration' --for 2h

A hold lasts for an hour unless --for says otherwise, at most 7 days. It ends by itself, replaces any other on the
same target, and with `gateway.state` outlives a restart. Where route and dependency are both held the stricter mode counts.
Exit status: 0 held, 1 refused, 2 nobody could be asked."
    )]
    Hold {
        #[command(flatten)]
        what: What,
        /// What the dependency and the callers get
        #[arg(value_enum)]
        mode: Mode,
        /// For how long [default: 1h]
        #[arg(long = "for", value_name = "DURATION")]
        lasts: Option<String>,
        #[command(flatten)]
        because: Because,
        #[command(flatten)]
        reach: Reach,
    },
    /// Take a hold off before it ends
    #[command(after_help = "\
Examples:
  evenkeel release product
  evenkeel release --dependency catalog

Exit status: 0 released, 1 there was none, 2 nobody could be asked.")]
    Release {
        #[command(flatten)]
        what: What,
        /// Who [default: the user and the host]
        #[arg(long)]
        author: Option<String>,
        #[command(flatten)]
        reach: Reach,
    },
    /// List the holds, with author, reason and end
    #[command(after_help = "\
Examples:
  evenkeel holds
  evenkeel holds --json

Exit status: 0 listed, also when there is none; 1 the gateway refused, 2 nobody could be asked.")]
    Holds {
        #[command(flatten)]
        reach: Reach,
    },
    /// Make copies no longer fresh, or take them out, by URI, prefix, tag or route
    #[command(after_help = "\
Examples:
  evenkeel purge http://shop.example/products/42
  evenkeel purge --prefix /products/ --hard
  evenkeel purge --tag product-42

Softly, copies are no longer fresh and still there for failures: in an outage the old data is given as ever. Hard, they are
gone: with the dependency down callers get the next rung, or 503.
Exit status: 0 purged, also when nothing was there; 1 refused, 2 nobody could be asked.")]
    Purge {
        #[command(flatten)]
        what: Selected,
        /// The copies are gone, for failures too
        #[arg(long, conflicts_with = "soft")]
        hard: bool,
        /// The copies are no longer fresh, and still there for failures; this is the default
        #[arg(long)]
        soft: bool,
        /// Who [default: the user and the host]
        #[arg(long)]
        author: Option<String>,
        #[command(flatten)]
        reach: Reach,
    },
    /// Look at what is kept, or put something in
    #[command(subcommand)]
    Snapshot(snapshot::Verb),
    /// Close a breaker now, and let traffic back from the first stage of the ramp
    #[command(after_help = "\
Examples:
  evenkeel reset --dependency catalog --reason 'repaired'

Exit status: 0 done, 1 refused, 2 nobody could be asked.")]
    Reset {
        #[command(flatten)]
        what: What,
        #[command(flatten)]
        because: Because,
        #[command(flatten)]
        reach: Reach,
    },
}

impl Verb {
    /// Does it.
    pub(super) fn run(self) -> ExitCode {
        match self {
            Self::Status { watch, reach } => status::run(&reach, watch),
            Self::Reload { reach } => reload::run(&reach),
            Self::Hold {
                what,
                mode,
                lasts,
                because,
                reach,
            } => hold::hold(&reach, &what, mode, &because, lasts.as_deref()),
            Self::Release { what, author, reach } => hold::release(&reach, &what, author.as_deref()),
            Self::Holds { reach } => hold::holds(&reach),
            Self::Purge {
                what,
                hard,
                soft: _,
                author,
                reach,
            } => purge::run(&reach, &what, hard, author.as_deref()),
            Self::Snapshot(verb) => verb.run(),
            Self::Reset { what, because, reach } => hold::reset(&reach, &what, &because),
        }
    }
}
