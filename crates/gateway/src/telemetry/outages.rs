//! Decides which events of the engine become lines, and what an outage looks like in the log.
//! It exists because a breaker that is open for hours probes thousands of times: who is woken by it needs the
//! beginning, the cause, a sign of life each minute, and the end.
//! It refuses to hide an outage: all that happens up to its second failed probe, and its end, are always told.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use evenkeel::{Cause, Class, Event, EventKind, Mono, RampStep, Transition};

use super::line::{Level, Line};
use crate::config::units::show_duration;

/// While an outage lasts, its failed probes are told of at most this often.
const SUMMARY_EVERY: Duration = Duration::from_secs(60);

/// So many probes of an outage are told one by one; who has seen them knows how the others went.
const PROBES_TOLD: u64 = 2;

/// What is known of a failure beside its class. Only for the log: clients are told no addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blame {
    /// The type of RFC 9209.
    pub(crate) error: Option<&'static str>,
    /// The status of an error answer.
    pub(crate) status: Option<u16>,
    /// Who was asked.
    pub(crate) upstream: Option<String>,
}

/// The outages under way: at most one for each dependency with a breaker.
#[derive(Debug, Default)]
pub(crate) struct Outages(BTreeMap<Arc<str>, Outage>);

#[derive(Clone, Copy, Debug)]
struct Outage {
    since: Mono,
    /// Probes that failed, from its beginning.
    failed: u64,
    told: Mono,
}

impl Outages {
    /// Returns the line for an event; `None` where it is folded into a later one. `blame` says what is known of the
    /// latest failure of a dependency, by its name and the class of that failure.
    pub(crate) fn line(
        &mut self,
        event: &Event,
        blame: impl FnOnce(&str, Option<Class>) -> Blame,
    ) -> Option<Line> {
        let (level, word, more) = match &event.kind {
            EventKind::Breaker(transition) => self.breaker(&event.name, transition, blame)?,
            // Several in each recovery: they are counted, and the last one is told.
            EventKind::Ramp(event) if event.step != RampStep::Ended => return None,
            EventKind::Ramp(event) => {
                let limit = event
                    .stage
                    .limit
                    .map_or_else(|| "none".to_owned(), |limit| limit.to_string());
                (Level::Info, "ramp-ended", vec![("limit", limit)])
            }
            EventKind::Held { mode, by, why, lasts } => {
                let lasts = lasts.map_or_else(|| "until-released".to_owned(), show_duration);
                let fields = vec![
                    ("mode", mode.as_str().to_owned()),
                    ("by", by.clone()),
                    ("why", why.clone()),
                    ("lasts", lasts),
                ];
                (Level::Warn, "held", fields)
            }
            EventKind::Released { mode, by } => {
                let by = by.clone().unwrap_or_else(|| "expiry".to_owned());
                (
                    Level::Info,
                    "released",
                    vec![("mode", mode.as_str().to_owned()), ("by", by)],
                )
            }
            EventKind::Exercised { rung, came_to } => (
                Level::Warn,
                "exercised",
                vec![
                    ("rung", rung.as_str().to_owned()),
                    ("came-to", came_to.as_str().to_owned()),
                ],
            ),
            EventKind::Reset { by, why } => (
                Level::Info,
                "reset",
                vec![("by", by.clone()), ("why", why.clone())],
            ),
        };
        let mut fields = vec![("name", event.name.to_string())];
        fields.extend(more);
        Some(Line {
            at: event.at,
            level,
            event: word,
            fields,
        })
    }

    fn breaker(
        &mut self,
        name: &Arc<str>,
        transition: &Transition,
        blame: impl FnOnce(&str, Option<Class>) -> Blame,
    ) -> Option<(Level, &'static str, Fields)> {
        let at = transition.at;
        let begun = Outage {
            since: at,
            failed: 0,
            told: at,
        };
        let mut fields = vec![
            ("from", transition.from.as_str().to_owned()),
            ("to", transition.to.as_str().to_owned()),
            ("cause", transition.cause.as_str().to_owned()),
        ];
        match transition.cause {
            Cause::Probing => {
                let outage = self.0.entry(Arc::clone(name)).or_insert(begun);
                (outage.failed < PROBES_TOLD).then_some((Level::Info, "breaker", fields))
            }
            // A dependency that breaks down under the ramp begins an outage of its own.
            Cause::Tripped | Cause::RampFailed => {
                self.0.insert(Arc::clone(name), begun);
                if let Some(rule) = transition.rule {
                    fields.push(("rule", rule.as_str().to_owned()));
                }
                fields.extend(why(transition, blame(name, transition.class)));
                Some((Level::Warn, "breaker", fields))
            }
            Cause::ProbeFailed | Cause::ProbeSlow | Cause::LeaseExpired => {
                let outage = self.0.entry(Arc::clone(name)).or_insert(begun);
                outage.failed += 1;
                if outage.failed <= PROBES_TOLD {
                    outage.told = at;
                    fields.extend(why(transition, blame(name, transition.class)));
                    return Some((Level::Warn, "breaker", fields));
                }
                if at.since(outage.told) < SUMMARY_EVERY {
                    return None;
                }
                outage.told = at;
                let mut fields = lasted(outage, at);
                fields.extend(why(transition, blame(name, transition.class)));
                Some((Level::Warn, "breaker-still-open", fields))
            }
            Cause::Proven | Cause::Reset => {
                if let Some(outage) = self.0.remove(name) {
                    fields.extend(lasted(&outage, at));
                }
                Some((Level::Info, "breaker", fields))
            }
        }
    }
}

type Fields = Vec<(&'static str, String)>;

fn lasted(outage: &Outage, now: Mono) -> Fields {
    vec![
        ("outage", format!("{:.1}s", now.since(outage.since).as_secs_f64())),
        ("probes-failed", outage.failed.to_string()),
    ]
}

/// Says what the attempt came to: the words that clients are told too, and the address, which they are not.
fn why(transition: &Transition, blame: Blame) -> Fields {
    let reason = transition.class.and_then(Class::reason);
    let mut fields = Vec::new();
    if let Some(reason) = reason {
        fields.push(("reason", reason.as_str().to_owned()));
    }
    if let Some(error) = blame.error {
        fields.push(("error", error.to_owned()));
    }
    if let Some(status) = blame.status {
        fields.push(("status", status.to_string()));
    }
    if let Some(upstream) = blame.upstream {
        fields.push(("upstream", upstream));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel::{Outage as Kind, State, TripRule, Wall};

    /// Plays transitions at these seconds and returns the lines without time and level.
    fn told(steps: &[(u64, Cause)]) -> Vec<String> {
        let mut outages = Outages::default();
        let lines = steps.iter().filter_map(|(second, cause)| {
            let is_failure = matches!(cause, Cause::Tripped | Cause::RampFailed | Cause::ProbeFailed);
            let (from, to) = match cause {
                Cause::Tripped | Cause::RampFailed => (State::Closed, State::Open),
                Cause::Probing => (State::Open, State::HalfOpen),
                Cause::ProbeFailed | Cause::ProbeSlow | Cause::LeaseExpired => (State::HalfOpen, State::Open),
                Cause::Proven | Cause::Reset => (State::HalfOpen, State::Closed),
            };
            let event = Event {
                at: Wall::from_nanos(0),
                name: "d".into(),
                kind: EventKind::Breaker(Transition {
                    from,
                    to,
                    at: Mono::ORIGIN.after(Duration::from_secs(*second)),
                    cause: *cause,
                    rule: (*cause == Cause::Tripped).then_some(TripRule::Consecutive),
                    class: is_failure.then_some(Class::Outage(Kind::Failed)),
                }),
            };
            let blame = |name: &str, class: Option<Class>| Blame {
                error: class.map(|_| "connection_refused"),
                status: None,
                upstream: Some(format!("{name}:80")),
            };
            outages.line(&event, blame)
        });
        lines
            .map(|line| {
                let text = line.to_text();
                text.split_once("event=").unwrap().1.trim_end().to_owned()
            })
            .collect()
    }

    #[test]
    fn a_trip_says_by_which_rule_and_after_what() {
        assert_eq!(
            told(&[(0, Cause::Tripped)]),
            [
                "breaker name=d from=closed to=open cause=tripped rule=consecutive reason=dependency-failed error=connection_refused upstream=d:80"
            ]
        );
    }

    #[test]
    fn case_065_a_breaker_that_goes_through_all_its_states_tells_each_step() {
        let steps = [
            (1, Cause::Tripped),
            (2, Cause::Probing),
            (3, Cause::ProbeFailed),
            (4, Cause::Probing),
            (5, Cause::Proven),
        ];
        let lines = told(&steps);
        let ways: Vec<&str> = lines
            .iter()
            .map(|line| {
                line.split_once("from=")
                    .unwrap()
                    .1
                    .split_once(" cause")
                    .unwrap()
                    .0
            })
            .collect();
        assert_eq!(
            ways,
            [
                "closed to=open",
                "open to=half-open",
                "half-open to=open",
                "open to=half-open",
                "half-open to=closed"
            ]
        );
    }

    #[test]
    fn an_outage_of_hours_is_a_line_a_minute_and_its_end_says_how_long_it_was() {
        let mut steps = vec![(0, Cause::Tripped)];
        for second in 1..=7200 {
            steps.extend([(second, Cause::Probing), (second, Cause::ProbeFailed)]);
        }
        steps.extend([(7201, Cause::Probing), (7201, Cause::Proven)]);
        let lines = told(&steps);
        assert_eq!(lines[1], "breaker name=d from=open to=half-open cause=probing");
        assert!(lines[4].contains("cause=probe-failed reason=dependency-failed error=connection_refused"));
        assert_eq!(
            lines[5],
            "breaker-still-open name=d outage=62.0s probes-failed=62 reason=dependency-failed error=connection_refused upstream=d:80"
        );
        assert_eq!(lines.len(), 1 + 2 + 2 + 119 + 1);
        assert_eq!(
            lines.last().unwrap(),
            "breaker name=d from=half-open to=closed cause=proven outage=7201.0s probes-failed=7200"
        );
    }

    #[test]
    fn each_outage_tells_its_own_first_failed_probes() {
        let outage = [
            (1, Cause::Tripped),
            (2, Cause::ProbeFailed),
            (3, Cause::LeaseExpired),
            (4, Cause::ProbeFailed),
            (5, Cause::Reset),
        ];
        let lines = told(&[outage, outage].concat());
        assert_eq!(lines.len(), 8, "the third failure is folded");
        assert_eq!(lines[..4], lines[4..]);
        assert!(lines[3].ends_with("cause=reset outage=4.0s probes-failed=3"));
    }
}
