//! Decides what a route would serve if a dependency were gone, by letting the engine end a call for each case.
//! It exists so that the answer is that of the rules which will give it.
//! It refuses to ask anybody: the calls are made of nothing but a contract and an instant.

use std::time::Duration;

use evenkeel::{Problems, Reason, Rung, Skipped, http::problem_kind};
use evenkeel_core::{
    Class, DependencyContract, Facts, Mono, Outage, ReadCall, ReadContract, Refresh, Step, Table, Verdict,
};

use crate::{
    config::{self, Route, units::show_duration},
    proxy::App,
};

/// What would be served if something were gone.
#[derive(Clone, Debug)]
pub struct Outlook {
    /// The dependencies that are gone.
    pub gone: Vec<String>,
    /// What comes of a call, case by case.
    pub outcomes: Vec<Outcome>,
}

/// What comes of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What there is of a copy.
    pub with: String,
    /// Whether the breaker of the first dependency is open already.
    pub breaker_open: bool,
    /// The rung that answers; `None` for a refusal.
    pub rung: Option<Rung>,
    /// The status; `None` for that of a copy or of another dependency.
    pub status: Option<u16>,
    /// Why the answer is not live.
    pub reason: Option<Reason>,
    /// The rungs that were not used.
    pub skipped: Vec<(Rung, Skipped)>,
}

/// Returns the dependencies that a route asks, the first one first.
pub(super) fn asked(route: &Route) -> Vec<&str> {
    let alternates = route.ladder.iter().filter_map(|rung| match rung {
        config::Rung::Alternate(alternate) => Some(alternate.name.as_str()),
        config::Rung::Stale(_) | config::Rung::Default(_) => None,
    });
    [route.from.as_str()].into_iter().chain(alternates).collect()
}

/// Returns the table by which the attempts at a dependency are judged.
pub(super) fn classes(app: &App, dependency: &str) -> Vec<(&'static str, &'static str, bool)> {
    let Some(dependency) = app.dependency(dependency) else {
        return Vec::new();
    };
    let row = |class: Class| {
        let row = dependency.contract().table().row(class);
        let breaker = match row.breaker {
            Verdict::Failure => "failure",
            Verdict::Success => "success",
            Verdict::Neutral => "neutral",
        };
        (class.as_str(), breaker, row.lower_rung)
    };
    Class::ALL.map(row).to_vec()
}

/// What a copy may be, for one call.
struct Copy {
    with: String,
    facts: Option<Facts>,
}

/// Returns what a route of class read would serve.
///
/// # Errors
/// What the engine finds wrong with the contract.
pub(super) fn of_read(app: &App, route: &Route) -> Result<Vec<Outlook>, Problems> {
    let contract = route.draft().check()?;
    let first = app.dependency(&route.from);
    let table = first
        .as_ref()
        .map_or_else(Table::default, |it| it.contract().table().clone());
    let timeout = first.as_ref().and_then(|it| it.contract().timeout());
    let has_breaker = first
        .as_ref()
        .is_some_and(|it| DependencyContract::breaker(it.contract()).is_some());
    let copies = copies(route);
    let asked = asked(route);
    let mut outlooks = Vec::new();
    // The first alone, and then, as nobody else would be asked, together with each that stands in for it.
    for gone in 1..=asked.len() {
        let mut outcomes: Vec<Outcome> = Vec::new();
        for breaker_open in [false, true] {
            if breaker_open && !has_breaker {
                continue;
            }
            for copy in &copies {
                let case = Case {
                    contract: &contract,
                    table: &table,
                    timeout,
                    breaker_open,
                    has_alternate: gone < asked.len(),
                };
                let outcome = case.run(copy);
                let outcome = Outcome {
                    status: outcome.status.or_else(|| of_default(route, &outcome)),
                    ..outcome
                };
                outcomes.push(outcome);
            }
        }
        outlooks.push(Outlook {
            gone: asked.iter().take(gone).map(|name| (*name).to_owned()).collect(),
            outcomes,
        });
    }
    Ok(outlooks)
}

/// Returns the status of the default, where it is what answers.
fn of_default(route: &Route, outcome: &Outcome) -> Option<u16> {
    let answer = route
        .default_answer()
        .filter(|_| outcome.rung == Some(Rung::Default))?;
    Some(answer.status.as_u16())
}

/// When the calls are made: long enough after the start of the clock for every copy.
const NOW: Mono = Mono::from_nanos(1 << 62);

/// Returns the copies between which the answers of a route may differ.
fn copies(route: &Route) -> Vec<Copy> {
    let aged = |age: Duration, lifetime: Option<Duration>| Facts {
        observed: Some(NOW.before(age)),
        lifetime,
        ..Facts::default()
    };
    let mut copies = Vec::new();
    if route.caching.is_some() {
        copies.push(Copy {
            with: "a copy inside its lifetime".to_owned(),
            facts: Some(aged(Duration::ZERO, Some(Duration::from_secs(1)))),
        });
    }
    if let Some(limit) = route.stale() {
        let over = route.caching.is_some().then_some(Duration::ZERO);
        let past = if over.is_some() {
            "past it, up to "
        } else {
            "up to "
        };
        copies.push(Copy {
            with: format!("a copy {past}{} old", show_duration(limit)),
            facts: Some(aged(limit, over)),
        });
        copies.push(Copy {
            with: "an older copy".to_owned(),
            facts: Some(aged(limit + Duration::from_nanos(1), over)),
        });
    } else if route.caching.is_some() {
        copies.push(Copy {
            with: "a copy past its lifetime".to_owned(),
            facts: Some(aged(Duration::from_secs(2), Some(Duration::from_secs(1)))),
        });
    }
    copies.push(Copy {
        with: "no copy".to_owned(),
        facts: None,
    });
    copies
}

/// One call to be made up.
struct Case<'c> {
    contract: &'c ReadContract,
    table: &'c Table,
    timeout: Option<Duration>,
    breaker_open: bool,
    has_alternate: bool,
}

/// More steps than any call takes.
const STEPS_MAX: usize = 32;

impl Case<'_> {
    /// Walks a call to its end, as a driver would whose dependency refuses every connection.
    fn run(&self, copy: &Copy) -> Outcome {
        let (mut call, mut step) = ReadCall::begin(self.contract, self.table, self.timeout, None, NOW);
        let mut rung = None;
        for _ in 0..STEPS_MAX {
            step = match step {
                Step::Look => call.found(copy.facts, NOW),
                Step::Admit if self.breaker_open => call.refused(Reason::BreakerOpen),
                Step::Admit => call.admitted(NOW),
                Step::Attempt(_) => call.attempted(Class::Outage(Outage::Failed), false),
                Step::Refresh => call.refreshed(Refresh::UnderWay),
                Step::Alternate => match call.alternate(NOW) {
                    Ok(_) if self.has_alternate => call.alternate_answered(),
                    Ok(_) => call.alternate_skipped(Skipped::Failed),
                    Err(step) => step,
                },
                Step::Serve(by, _) => {
                    rung = Some(by);
                    break;
                }
                Step::Refuse | Step::Fail => break,
            };
        }
        let refused = problem_kind(call.reason()).status().as_u16();
        Outcome {
            with: copy.with.clone(),
            breaker_open: self.breaker_open,
            rung,
            status: rung.is_none().then_some(refused),
            reason: call.reason(),
            skipped: call.skips().iter().collect(),
        }
    }
}

/// Returns what becomes of a protected route whose authority cannot answer: nothing, before any rung is looked at.
pub(super) fn of_authority(dependency: &str) -> Outlook {
    let reason = Reason::ProtectionUnavailable;
    let refused = |breaker_open| Outcome {
        with: "any copy, or none".to_owned(),
        breaker_open,
        rung: None,
        status: Some(problem_kind(Some(reason)).status().as_u16()),
        reason: Some(reason),
        skipped: Vec::new(),
    };
    Outlook {
        gone: vec![dependency.to_owned()],
        outcomes: vec![refused(false), refused(true)],
    }
}

/// Returns what becomes of what is only forwarded: nothing stands in for it.
pub(super) fn of_pass(route: &Route) -> Vec<Outlook> {
    let refused = |breaker_open, reason| Outcome {
        with: "nothing kept".to_owned(),
        breaker_open,
        rung: None,
        status: Some(problem_kind(Some(reason)).status().as_u16()),
        reason: Some(reason),
        skipped: Vec::new(),
    };
    vec![Outlook {
        gone: vec![route.from.clone()],
        outcomes: vec![
            refused(false, Reason::DependencyFailed),
            refused(true, Reason::BreakerOpen),
        ],
    }]
}
