//! Decides how the degradation of a route is told in the log: when it begins, when it changes, when it is over.
//! It exists because who is woken needs what users get, why, how many of them and since when, in three lines and not in
//! one for each request.
//! It refuses to tell what has not turned: while nothing changes there is no line.

use evenkeel::{Ending, Mono, Now, Reason, Rung};

use super::{
    degradation::{Came, Episode, Turn},
    line::{Level, Line},
};

/// Returns the line for a turn of this route.
pub(crate) fn line(route: &str, turn: &Turn, now: Now) -> Line {
    let name = ("name", route.to_owned());
    let (level, event, at, fields) = match turn {
        Turn::Began(episode) => (Level::Warn, "degraded", episode.since, gets(episode)),
        Turn::Changed { from, episode } => {
            let mut fields = vec![("was", word(*from).to_owned())];
            fields.extend(gets(episode));
            fields.push(lasted(episode, now.mono));
            (Level::Warn, "degraded-otherwise", now.mono, fields)
        }
        Turn::Ended { episode, at, well } => {
            let mut fields = vec![lasted(episode, *at)];
            fields.extend(numbers(&episode.came));
            // Nobody asks any more: whether it is well nobody knows.
            let (level, event) = if *well {
                (Level::Info, "recovered")
            } else {
                (Level::Warn, "degraded-until-last-seen")
            };
            (level, event, *at, fields)
        }
    };
    Line {
        at: now.wall_of(at),
        level,
        event,
        fields: std::iter::once(name).chain(fields).collect(),
    }
}

type Fields = Vec<(&'static str, String)>;

/// What users get in place of what they asked for, and why; then how many.
fn gets(episode: &Episode) -> Fields {
    let mut fields = vec![("gets", word(episode.mostly).to_owned())];
    if let Some(reason) = episode.came.why(episode.mostly) {
        fields.push(("reason", reason.as_str().to_owned()));
    }
    fields.extend(numbers(&episode.came));
    fields
}

fn numbers(came: &Came) -> Fields {
    let mut counts: Vec<String> = came
        .degraded
        .iter()
        .map(|kind| {
            let reason = kind.reason.map_or("none", Reason::as_str);
            format!("{}/{reason}={}", word(kind.ending), kind.count)
        })
        .collect();
    counts.sort();
    vec![
        ("calls", came.calls.to_string()),
        ("degraded", came.degraded().to_string()),
        ("counts", counts.join(",")),
    ]
}

fn lasted(episode: &Episode, now: Mono) -> (&'static str, String) {
    (
        "lasted",
        format!("{:.1}s", now.since(episode.since).as_secs_f64()),
    )
}

/// The rung, where something stood in, else what became of the call.
fn word(ending: Ending) -> &'static str {
    ending.rung().map_or(ending.as_str(), Rung::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::degradation::Degradation;
    use evenkeel::Wall;
    use std::time::Duration;

    /// Plays one second after the other, with so many calls of each ending, and returns the lines without time.
    fn told(seconds: impl IntoIterator<Item = Vec<(Ending, Option<Reason>, u64)>>) -> Vec<String> {
        let mut route = Degradation::default();
        let mut counts: Vec<(Ending, Option<Reason>, u64)> = Vec::new();
        let mut lines = Vec::new();
        for (second, calls) in seconds.into_iter().enumerate() {
            counts.extend(calls);
            let mono = Mono::ORIGIN.after(Duration::from_secs(second as u64));
            let turn = route.look(mono, |ending, reason| {
                let same = counts.iter().filter(|one| (one.0, one.1) == (ending, reason));
                same.map(|one| one.2).sum()
            });
            if let Some(turn) = turn {
                let now = Now {
                    mono,
                    wall: Wall::from_nanos(second as i64 * 1_000_000_000),
                };
                let text = line("product", &turn, now).to_text();
                lines.push(text.split_once("level=").unwrap().1.trim_end().to_owned());
            }
        }
        lines
    }

    const STALE: Ending = Ending::Answered(Rung::Stale);
    const LIVE: Ending = Ending::Answered(Rung::Live);

    fn healthy() -> Vec<(Ending, Option<Reason>, u64)> {
        vec![(LIVE, None, 10)]
    }

    #[test]
    fn an_outage_is_told_when_it_begins_when_it_changes_and_when_it_is_over() {
        let mut seconds = vec![healthy(); 5];
        seconds.extend(vec![vec![(STALE, Some(Reason::BreakerOpen), 10)]; 60]);
        seconds.extend(vec![vec![(Ending::Refused, Some(Reason::BreakerOpen), 10)]; 30]);
        seconds.extend(vec![healthy(); 60]);
        let lines = told(seconds);
        assert_eq!(lines.len(), 3, "{lines:#?}");
        assert!(
            lines[0].starts_with("warn event=degraded name=product gets=stale reason=breaker-open calls=")
        );
        assert!(lines[1].starts_with(
            "warn event=degraded-otherwise name=product was=stale gets=refused reason=breaker-open calls="
        ));
        assert!(
            lines[2].starts_with("info event=recovered name=product lasted="),
            "{}",
            lines[2]
        );
        assert!(
            lines[2].ends_with("degraded=900 counts=\"refused/breaker-open=300,stale/breaker-open=600\""),
            "{}",
            lines[2]
        );
    }

    /// Case 067 in the log: what comes and goes every five seconds is one degradation.
    #[test]
    fn case_067_a_dependency_that_comes_and_goes_is_told_once() {
        let mut seconds = Vec::new();
        for _ in 0..30 {
            seconds.extend(vec![vec![(STALE, Some(Reason::BreakerOpen), 10)]; 5]);
            seconds.extend(vec![healthy(); 5]);
        }
        seconds.extend(vec![healthy(); 60]);
        let lines = told(seconds);
        assert_eq!(lines.len(), 2, "{lines:#?}");
        assert!(
            lines[1].contains("counts=\"stale/breaker-open=1500\""),
            "{}",
            lines[1]
        );
    }

    #[test]
    fn a_route_that_nobody_asks_any_more_is_not_said_to_be_well() {
        let mut seconds = vec![vec![(STALE, Some(Reason::TimedOut), 10)]; 20];
        seconds.extend(vec![Vec::new(); 400]);
        let lines = told(seconds);
        assert_eq!(lines.len(), 2, "{lines:#?}");
        assert!(lines[1].starts_with("warn event=degraded-until-last-seen name=product"));
    }
}
