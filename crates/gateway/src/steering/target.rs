//! Decides what a hold is put on: a route or a dependency of the contract, by its name, and what suits it.
//! It exists because a route may have two guards, one that reads and one that only forwards, and a person means both.
//! It refuses modes that the contract cannot carry out, before anything has changed.

use std::fmt;

use evenkeel::{Hold, HoldMode, State};

use crate::proxy::{App, Passing, Route};

/// What is held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// A route.
    Route(String),
    /// A dependency, for all routes that ask it.
    Dependency(String),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.name())
    }
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no such thing.
    NotThere(String),
    /// The contract does not permit it.
    NotPermitted(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotThere(detail) | Self::NotPermitted(detail) => f.write_str(detail),
        }
    }
}

impl Refusal {
    /// Says that there is no such thing, and what there is.
    pub(crate) fn not_there(what: &str, there: &[String]) -> Self {
        let there = if there.is_empty() {
            "none".to_owned()
        } else {
            there.join(", ")
        };
        Self::NotThere(format!("there is no {what}; there is: {there}"))
    }
}

impl Target {
    /// Returns the word for what it is.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Route(_) => "route",
            Self::Dependency(_) => "dependency",
        }
    }

    /// Returns its name in the contract.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Route(name) | Self::Dependency(name) => name,
        }
    }

    /// Makes the target of this kind and name.
    pub(crate) fn of(kind: &str, name: &str) -> Option<Self> {
        match kind {
            "route" => Some(Self::Route(name.to_owned())),
            "dependency" => Some(Self::Dependency(name.to_owned())),
            _ => None,
        }
    }

    /// Tells whether this hold is on it already, as where an app goes on with what another one had.
    pub(crate) fn has(&self, app: &App, hold: &Hold) -> bool {
        let is_it = |held: Option<Hold>| held.is_some_and(|held| held.by == hold.by && held.why == hold.why);
        match self {
            Self::Dependency(name) => app.dependency(name).is_some_and(|one| is_it(one.held())),
            Self::Route(_) => {
                let (reads, passes) = (self.reads(app), self.passes(app));
                (reads.is_some() || passes.is_some())
                    && reads.is_none_or(|route| is_it(route.guard.held()))
                    && passes.is_none_or(|passing| is_it(passing.guard.held()))
            }
        }
    }

    /// Puts a hold on.
    ///
    /// # Errors
    /// When there is no such target or the mode does not suit it; then nothing has changed.
    pub(crate) fn put_on(&self, app: &App, hold: &Hold) -> Result<(), Refusal> {
        match self {
            Self::Dependency(name) => {
                let Some(dependency) = app.dependency(name) else {
                    let there = app.dependencies.iter().map(|(one, _)| one.name().to_owned());
                    return Err(Refusal::not_there(
                        &format!("dependency {name:?}"),
                        &there.collect::<Vec<_>>(),
                    ));
                };
                dependency.hold(hold.clone()).map_err(refusal)
            }
            Self::Route(name) => {
                let (reads, passes) = (self.reads(app), self.passes(app));
                if reads.is_none() && passes.is_none() {
                    return Err(Refusal::not_there(&format!("route {name:?}"), &app.route_names()));
                }
                if app.observed.iter().any(|one| *one.name == **name) {
                    let detail = format!("{self} is only watched (`observe_only`): nothing is held there");
                    return Err(Refusal::NotPermitted(detail));
                }
                if hold.mode == HoldMode::StaleOnly || hold.mode == HoldMode::DefaultOnly {
                    self.has_rung(reads, hold.mode)?;
                }
                if let Some(route) = reads {
                    route.guard.hold(hold.clone()).map_err(refusal)?;
                }
                if let Some(passing) = passes {
                    // What is only forwarded has no rungs: where the dependency gets nothing, it is refused.
                    let mode = if hold.mode.lets_ask() || hold.mode == HoldMode::ForcedOff {
                        hold.mode
                    } else {
                        HoldMode::ForcedOpen
                    };
                    let hold = Hold { mode, ..hold.clone() };
                    passing.guard.hold(hold).map_err(refusal)?;
                }
                Ok(())
            }
        }
    }

    /// Refuses to leave a route to a rung that it does not have: everything would be refused, by a word that promises
    /// something else.
    fn has_rung(&self, reads: Option<&Route>, mode: HoldMode) -> Result<(), Refusal> {
        let Some(route) = reads else {
            let detail = format!(
                "{self} only forwards and has no rungs; hold it forced-open, forced-off or forced-closed"
            );
            return Err(Refusal::NotPermitted(detail));
        };
        let contract = route.guard.contract();
        if contract.exact() {
            let detail = format!(
                "{self} is exact and is never made to serve old or default data; hold it forced-open, forced-off or forced-closed"
            );
            return Err(Refusal::NotPermitted(detail));
        }
        let ladder = contract.ladder();
        let has = match mode {
            HoldMode::StaleOnly => ladder.max_age().is_some(),
            HoldMode::DefaultOnly => ladder.has_default(),
            HoldMode::ForcedOpen | HoldMode::ForcedOff | HoldMode::ForcedClosed => true,
        };
        if has {
            return Ok(());
        }
        let rung = if mode == HoldMode::StaleOnly {
            "stale"
        } else {
            "default"
        };
        let detail = format!(
            "the ladder of {self} has no {rung} rung, so {} would refuse everything; hold it forced-off if that is meant",
            mode.as_str()
        );
        Err(Refusal::NotPermitted(detail))
    }

    /// Takes the hold off.
    pub(super) fn take_off(&self, app: &App, by: &str) {
        match self {
            Self::Dependency(name) => {
                let Some(dependency) = app.dependency(name) else {
                    return;
                };
                if let Some(held) = dependency.held() {
                    self.prepare(app, held.mode, by);
                }
                drop(dependency.release(by));
            }
            Self::Route(_) => {
                drop(self.reads(app).and_then(|route| route.guard.release(by)));
                drop(self.passes(app).and_then(|passing| passing.guard.release(by)));
            }
        }
    }

    /// Begins a ramp for the end of a hold that has kept everything from a dependency: what it bore before may be too much
    /// for it now. A breaker that is open stays so: only a probe closes it.
    pub(super) fn prepare(&self, app: &App, mode: HoldMode, by: &str) {
        let Self::Dependency(name) = self else { return };
        let Some(dependency) = app.dependency(name).filter(|_| !mode.lets_ask()) else {
            return;
        };
        if dependency.status().state == Some(State::Closed) && dependency.contract().ramp().is_some() {
            dependency.reset(by, "the hold ends");
        }
    }

    /// Looks at it, so that the engine notices what has run out.
    pub(super) fn look(&self, app: &App) {
        self.is_held(app);
    }

    /// Tells whether the engine has a hold on it in force.
    pub(super) fn is_held(&self, app: &App) -> bool {
        match self {
            Self::Dependency(name) => app
                .dependency(name)
                .is_some_and(|dependency| dependency.held().is_some()),
            Self::Route(_) => {
                let reads = self.reads(app).map(|route| route.guard.held().is_some());
                let passes = self.passes(app).map(|passing| passing.guard.held().is_some());
                reads == Some(true) || passes == Some(true)
            }
        }
    }

    fn reads<'a>(&self, app: &'a App) -> Option<&'a Route> {
        app.routes
            .iter()
            .find(|route| &*route.name == self.name())
            .map(|route| &**route)
    }

    fn passes<'a>(&self, app: &'a App) -> Option<&'a Passing> {
        app.passes
            .iter()
            .find(|one| &*one.name == self.name())
            .map(|one| &**one)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "handed over by map_err")]
fn refusal(problems: evenkeel::Problems) -> Refusal {
    let list = problems.list().iter();
    let said: Vec<String> = list
        .map(|problem| format!("{}; allowed: {}; {}", problem.seen, problem.allowed, problem.mend))
        .collect();
    Refusal::NotPermitted(said.join("; "))
}
