//! Decides how `evenkeel status` is asked for: once, or again and again.
//! It exists as the first thing that somebody types who was woken.
//! It refuses to end a watch because the gateway is away for a moment: that is what is being watched.

use std::{
    io::{IsTerminal as _, stdout},
    process::ExitCode,
    thread,
    time::Duration,
};

use super::{
    complain,
    hold::told,
    print,
    remote::{Failure, Reach},
    screen,
};

/// How often a watch looks.
const EVERY: Duration = Duration::from_secs(1);
/// Clears a terminal and goes to its first place.
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

pub(super) fn run(reach: &Reach, watch: bool) -> ExitCode {
    if !watch {
        return told(reach, reach.get("/status"), screen::status);
    }
    loop {
        match reach.get("/status") {
            Ok(status) if reach.json => print(&status.to_string()),
            Ok(status) => {
                let clear = if stdout().is_terminal() { CLEAR } else { "" };
                print(&format!("{clear}{}", screen::status(&status)));
            }
            Err(failure @ Failure::Refused(_)) => return failure.tell(reach.json),
            Err(Failure::Unasked(why)) => complain(&why),
        }
        thread::sleep(EVERY);
    }
}
