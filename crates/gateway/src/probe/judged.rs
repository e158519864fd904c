//! Decides what is told of one answer: kept or not, for how long, by which limit, and everything that stands against it.
//! It exists so that words of the judge, fields of the answer and lines of the contract stand side by side.
//! It refuses to show values of cookies and credentials: names are enough to mend a contract.

use std::time::Duration;

use evenkeel::{Keep, Protection, http::IgnoredCookies};
use evenkeel_http::{
    age::corrected_initial_age,
    dates::HttpDate,
    directives::ResponseDirectives,
    reuse::{Prohibition, stale_prohibitions},
    store_rules::NotKept,
};
use http::{
    Method, Response, StatusCode,
    header::{CACHE_CONTROL, COOKIE, VARY},
};

use super::{
    Asked,
    against::{Against, cookies, shown_keep_if},
};
use crate::{
    config::{self, Class, Contract, units::show_duration},
    proxy::{App, Route, Tapped, Why},
};

/// What is told.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(super) url: String,
    pub(super) route: String,
    pub(super) dependency: String,
    /// What the dependency was asked for, where the contract rewrites it.
    pub(super) target: String,
    pub(super) status: StatusCode,
    pub(super) bytes: Option<usize>,
    /// It would be kept.
    pub(super) kept: bool,
    /// How old it was already when it came.
    pub(super) age: Duration,
    /// For how long it is given without asking.
    pub(super) fresh: Option<Duration>,
    /// For how long from now it would stand in for a failure, and what ends that.
    pub(super) stands_in: Option<(Duration, &'static str)>,
    /// What stands against keeping it, the first that the judge named first.
    pub(super) against: Vec<Against>,
    /// What forbids giving it old.
    pub(super) forbidden: Vec<Forbidden>,
    /// What else is worth knowing.
    pub(super) notes: Vec<String>,
}

/// One prohibition of the origin.
#[derive(Clone, Debug)]
pub(super) struct Forbidden {
    pub(super) word: Prohibition,
    pub(super) field: String,
    /// The contract sets it aside.
    pub(super) set_aside: bool,
    /// The line that would set it aside, or why none can.
    pub(super) mend: String,
}

impl Report {
    /// Tells whether an outage now would be answered by it.
    pub(crate) const fn would_stand_in(&self) -> bool {
        self.kept && self.stands_in.is_some()
    }
}

/// Puts together what the gateway left behind.
pub(super) fn report(
    contract: &Contract,
    app: &App,
    asked: &Asked,
    answer: &Response<()>,
) -> Result<Report, String> {
    let route = app.routes.iter().find(|route| route.guard.counts().calls() > 0);
    let Some(route) = route else {
        return Err(nobody(app, answer));
    };
    if let Some(meant) = &asked.route
        && **meant != *route.name
    {
        return Err(format!(
            "the contract gives this request to the route {}, not to {meant}",
            route.name
        ));
    }
    let declared = contract
        .routes
        .iter()
        .find(|declared| *declared.name == *route.name);
    let seen = route.tap.seen().map(|seen| seen.clone());
    let (Some(declared), Some(seen)) = (declared, seen) else {
        return Err("the gateway says nothing about this request".to_owned());
    };
    let Some(status) = seen.status else {
        return Err(format!(
            "{} gave no answer ({}); see that it runs where the contract says",
            declared.from,
            said(answer, "proxy-status").unwrap_or_else(|| answer.status().to_string())
        ));
    };
    Ok(Judged {
        contract,
        declared,
        route,
        seen: &seen,
        status,
    }
    .report(asked))
}

fn said(answer: &Response<()>, name: &str) -> Option<String> {
    let value = answer.headers().get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Says why no call of a read was made.
fn nobody(app: &App, answer: &Response<()>) -> String {
    let stopped = app.gates.iter().find_map(|gate| {
        let counts = gate.guard.counts();
        let decided = [Protection::Denied, Protection::Unavailable];
        let what = decided.into_iter().find(|what| counts.total(*what) > 0)?;
        Some((gate, what.as_str()))
    });
    if let Some((gate, what)) = stopped {
        return format!(
            "the authority {} of the route {} said {what}: it is answered {}; give what it asks for with --header",
            gate.authority,
            gate.route,
            answer.status()
        );
    }
    let passes = app
        .passes
        .iter()
        .find(|passing| passing.guard.counts().calls() > 0);
    match passes {
        Some(passing) => format!(
            "the route {} only forwards: nothing of it is ever kept",
            passing.name
        ),
        None => format!(
            "the contract gives this request to no route that reads: it is answered {}",
            answer.status()
        ),
    }
}

pub(super) struct Judged<'a> {
    pub(super) contract: &'a Contract,
    pub(super) declared: &'a config::Route,
    pub(super) route: &'a Route,
    pub(super) seen: &'a Tapped,
    pub(super) status: StatusCode,
}

impl Judged<'_> {
    fn report(&self, asked: &Asked) -> Report {
        let dependency = self
            .contract
            .dependencies
            .iter()
            .find(|one| one.name == self.declared.from);
        let target = dependency.and_then(|dependency| dependency.rewrite.target(&asked.url));
        let shown = |uri: &http::Uri| uri.path_and_query().map_or_else(String::new, ToString::to_string);
        let keeps = self.declared.stale().is_some() || self.declared.caching.is_some();
        let against = if keeps { self.against() } else { Vec::new() };
        let kept = keeps && against.is_empty() && self.is_kept();
        let against = if keeps && !kept && against.is_empty() {
            // The judge counts good answers alone.
            vec![self.explain(Why::Http(NotKept::Status))]
        } else {
            against
        };
        let age = self.age();
        let forbidden = if kept { self.forbidden() } else { Vec::new() };
        let is_forbidden = forbidden.iter().any(|one| !one.set_aside);
        let stands_in = self
            .limit()
            .filter(|_| kept && !is_forbidden && self.is_good())
            .and_then(|(limit, by)| Some((limit.checked_sub(age)?, by)));
        Report {
            url: asked.url.to_string(),
            route: self.declared.name.clone(),
            dependency: self.declared.from.clone(),
            target: target.as_ref().map_or_else(|| shown(&asked.url), shown),
            status: self.status,
            bytes: self.seen.body.as_ref().map(bytes::Bytes::len),
            kept,
            age,
            fresh: self.fresh(age).filter(|_| kept),
            stands_in,
            against,
            forbidden,
            notes: self.notes(keeps),
        }
    }

    fn is_kept(&self) -> bool {
        match &self.seen.terms {
            Some((terms, _)) => terms.keep == Keep::Yes,
            None => self.seen.copy.is_some(),
        }
    }

    /// Error answers are kept for their own lifetime and stand in for nothing.
    fn is_good(&self) -> bool {
        self.seen.copy.as_ref().is_none_or(|copy| copy.facts().is_good())
    }

    fn age(&self) -> Duration {
        match (&self.seen.terms, &self.seen.copy) {
            (Some((terms, _)), _) => terms.already,
            (None, Some(copy)) => copy.age(self.route.engine().now().mono).unwrap_or_default(),
            (None, None) => {
                let now = HttpDate::from_unix_seconds(self.route.engine().now().wall.as_secs());
                corrected_initial_age(&self.seen.headers, now, Duration::ZERO)
            }
        }
    }

    fn fresh(&self, age: Duration) -> Option<Duration> {
        let copy = self.seen.copy.as_ref()?;
        copy.facts().lifetime.span().checked_sub(age)
    }

    /// Returns the greatest age at which it would stand in, and who says so.
    fn limit(&self) -> Option<(Duration, &'static str)> {
        let contract = self.declared.stale();
        let own = match (&self.seen.copy, &self.route.cache) {
            (Some(copy), Some(cache)) => {
                let request = cache.rules().request(&Method::GET, &self.seen.request);
                cache.limit_on_failure(&request, copy)
            }
            _ => self.seen.terms.as_ref().and_then(|(terms, _)| terms.own_limit),
        };
        match (contract, own) {
            (Some(contract), Some(own)) if own < contract => {
                Some((own, "the answer's own lifetime and stale-if-error"))
            }
            (Some(contract), _) => Some((contract, "the stale rung of the contract")),
            // Without a rung only a route that caches gives old answers, where their origin permits it.
            (None, Some(own)) if self.route.cache.is_some() => Some((own, "the answer's own stale-if-error")),
            (None, _) => None,
        }
    }

    /// What forbids giving it old, and what the contract does about that.
    fn forbidden(&self) -> Vec<Forbidden> {
        let said = match &self.seen.copy {
            Some(copy) => copy.facts().facts.directives,
            None => ResponseDirectives::of(&self.seen.headers),
        };
        let set_aside = self.declared.caching.as_ref().map(|caching| &*caching.set_aside);
        stale_prohibitions(self.route.sharing, &said)
            .map(|word| {
                let line = format!("override = [\"{word}\"]");
                Forbidden {
                    word,
                    field: self.field(&CACHE_CONTROL),
                    set_aside: set_aside.is_some_and(|set_aside| set_aside.contains(&word)),
                    mend: if set_aside.is_some() {
                        line
                    } else {
                        format!(
                            "{line}, on a route with freshness = \"origin\"; else change it at the origin"
                        )
                    },
                }
            })
            .collect()
    }

    fn notes(&self, keeps: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if !keeps {
            notes.push("this route keeps nothing: it has no stale rung and does not cache; add ladder = [ { stale = \"60s\" } ], say".to_owned());
        }
        let (request, headers) = (&self.seen.request, &self.seen.headers);
        if request.contains_key(COOKIE) && self.declared.ignored_cookies != IgnoredCookies::Named(Vec::new())
        {
            notes.push(format!(
                "cookies of the request: {}; ignore_cookies is heeded",
                cookies(request).join(", ")
            ));
        }
        if let Some(vary) = headers.get(VARY) {
            let vary = String::from_utf8_lossy(vary.as_bytes()).into_owned();
            notes.push(if self.declared.caching.is_some() {
                format!(
                    "vary: {vary}: one copy for each combination of their values; `normalise` keeps them few"
                )
            } else {
                format!("vary: {vary}: the snapshot is given only to requests that say the same there")
            });
        }
        if self.declared.keep_if != config::KeepIf::default() {
            notes.push(format!("keep_if = {}", shown_keep_if(&self.declared.keep_if)));
        }
        if self.declared.class == Class::Read && self.declared.caching.is_none() && keeps {
            notes.push(
                "the dependency is asked every time (freshness = \"none\"); what is kept is for failures"
                    .to_owned(),
            );
        }
        notes
    }
}

/// Rounds to the nearest second: a few milliseconds have passed since the answer came.
pub(super) fn seconds(span: Duration) -> u64 {
    span.saturating_add(Duration::from_millis(500)).as_secs()
}

/// Writes a span for people.
pub(super) fn span(span: Duration) -> String {
    match seconds(span) {
        0 => "0s".to_owned(),
        seconds => show_duration(Duration::from_secs(seconds)),
    }
}
