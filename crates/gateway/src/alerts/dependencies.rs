//! Decides which alerts a dependency needs: its breaker, and the budget that its retries are paid from.
//! It exists because one dependency behind many routes is one cause, and should be one notification.
//! It refuses to fire for what came and went: the breaker has to have been open again and again, or all the time.

use std::time::Duration;

use super::{
    Alerts,
    parts::{KEEP, show},
    rule::{Input, Proof, Rule, Severity},
};
use crate::config::{Breaker, Class, Contract, Dependency, Route, Rung};

pub(super) const BREAKER_OPEN: &str = "EvenkeelBreakerOpen";
pub(super) const RETRIES_DENIED: &str = "EvenkeelRetriesDenied";

pub(super) const TOO_FEW_ADDRESSES: &str = "EvenkeelTooFewAddresses";

const MINUTE: Duration = Duration::from_secs(60);

pub(super) fn add(alerts: &mut Alerts, contract: &Contract, dependency: &Dependency) {
    if let Breaker::On(_) = dependency.breaker {
        let rule = breaker_open(contract, dependency, alerts.every);
        alerts.rules.push(rule);
    }
    if dependency.retry.is_some() {
        alerts.rules.push(retries_denied(dependency));
    }
    if dependency.upstreams.len() > 1 && dependency.spread.eject.is_some() {
        alerts.rules.push(too_few_addresses(dependency));
    }
}

/// The routes that suffer when a dependency is gone.
struct Touched<'a> {
    /// Those that ask it first.
    first: Vec<&'a Route>,
    /// Those that ask it in place of another.
    spare: Vec<&'a Route>,
    /// Those at whose door it decides.
    door: Vec<&'a Route>,
}

impl<'a> Touched<'a> {
    fn by(contract: &'a Contract, name: &str) -> Self {
        let authorities = contract.authorities.iter().filter(|one| one.from == name);
        let authorities: Vec<&str> = authorities.map(|one| &*one.name).collect();
        let routes = || contract.routes.iter();
        let spares = |route: &&Route| {
            route
                .ladder
                .iter()
                .any(|rung| matches!(rung, Rung::Alternate(other) if other.name == name))
        };
        let guards = |route: &&Route| {
            let authority = route.authorize.as_deref();
            authority.is_some_and(|authority| authorities.contains(&authority))
        };
        Self {
            first: routes().filter(|route| route.from == name).collect(),
            spare: routes().filter(spares).collect(),
            door: routes().filter(guards).collect(),
        }
    }

    /// Half of the shortest age limit, between a minute and five; a minute where a route has none, or a door.
    fn wait(&self) -> Duration {
        let bridged = self.first.iter().map(|route| match route.stale() {
            Some(limit) if route.class == Class::Read => limit / 2,
            Some(_) | None => Duration::ZERO,
        });
        let doors = self.door.iter().map(|_| Duration::ZERO);
        let shortest = bridged.chain(doors).min();
        shortest.unwrap_or(5 * MINUTE).clamp(MINUTE, 5 * MINUTE)
    }

    /// Some users get nothing while it is gone.
    fn is_critical(&self) -> bool {
        !self.door.is_empty() || self.first.iter().any(|route| route.ladder.is_empty())
    }

    fn impact(&self) -> String {
        let named = |routes: &[&Route]| {
            let names: Vec<&str> = routes.iter().map(|route| &*route.name).collect();
            names.join(", ")
        };
        let sentences = [
            (
                &self.first,
                "live on their ladders, and are refused where they have none",
            ),
            (&self.spare, "are without their alternate"),
            (&self.door, "are refused: nobody decides who may see them"),
        ];
        let said = sentences
            .iter()
            .filter(|(routes, _)| !routes.is_empty())
            .map(|(routes, what)| format!("These routes {what}: {}.", named(routes)));
        said.collect::<Vec<_>>().join(" ")
    }
}

/// Case 067: what opens and closes every few seconds is open in every window, so it is one alert; and it goes on for a
/// while after the last time.
fn breaker_open(contract: &Contract, dependency: &Dependency, every: Duration) -> Rule {
    let name = &*dependency.name;
    let window = (4 * every).max(MINUTE);
    let state = |state: &str, value: u64| {
        Input::stays(
            format!("evenkeel_breaker_state{{dependency=\"{name}\",state=\"{state}\"}}"),
            value,
        )
    };
    let touched = Touched::by(contract, name);
    let wait = touched.wait();
    Rule {
        name: BREAKER_OPEN,
        about: Some(("dependency", name.to_owned())),
        expr: format!(
            "min(min_over_time(evenkeel_breaker_state{{dependency=\"{name}\",state=\"closed\"}}[{}])) == 0",
            show(window)
        ),
        wait,
        keep: KEEP,
        severity: if touched.is_critical() {
            Severity::Critical
        } else {
            Severity::Warning
        },
        summary: format!("The breaker of {name} is open, or opens again and again"),
        impact: touched.impact(),
        action: "The log has the rule and the cause of the trip (event=breaker), `evenkeel status` the next probe. It closes by itself when a probe succeeds: mend the dependency.".to_owned(),
        proof: Proof {
            fires: vec![state("closed", 0), state("open", 1)],
            quiet: vec![state("closed", 1), state("open", 0)],
            summary: None,
            by: window + wait + 5 * MINUTE,
        },
    }
}

fn retries_denied(dependency: &Dependency) -> Rule {
    let name = &*dependency.name;
    let rate = |series: &str| format!("sum(rate({series}{{dependency=\"{name}\"}}[5m]))");
    let (denied, made) = (
        rate("evenkeel_retries_denied_total"),
        rate("evenkeel_retries_total"),
    );
    let steps = |denied: u64, made: u64| {
        vec![
            Input::grows(
                format!("evenkeel_retries_denied_total{{dependency=\"{name}\"}}"),
                denied,
            ),
            Input::grows(format!("evenkeel_retries_total{{dependency=\"{name}\"}}"), made),
        ]
    };
    Rule {
        name: RETRIES_DENIED,
        about: Some(("dependency", name.to_owned())),
        expr: format!("{denied}\n  / ({denied} + {made}) > 0.5"),
        wait: 10 * MINUTE,
        keep: KEEP,
        severity: Severity::Warning,
        summary: format!("{{{{ $value | humanizePercentage }}}} of the retries at {name} are not paid for"),
        impact: "Failures that one more attempt might have mended reach the ladder.".to_owned(),
        action: format!(
            "This many failures are no blips: look at `evenkeel_attempts_total` of {name} by class, and leave the budget as it is until it is well."
        ),
        proof: Proof {
            fires: steps(75, 25),
            quiet: steps(49, 51),
            summary: Some(format!("75% of the retries at {name} are not paid for")),
            by: 30 * MINUTE,
        },
    }
}

fn too_few_addresses(dependency: &Dependency) -> Rule {
    let name = &*dependency.name;
    let series = format!("evenkeel_ejection_overridden{{dependency=\"{name}\"}}");
    Rule {
        name: TOO_FEW_ADDRESSES,
        about: Some(("dependency", name.to_owned())),
        expr: format!("max(max_over_time({series}[2m])) == 1"),
        wait: 2 * MINUTE,
        keep: KEEP,
        severity: Severity::Warning,
        summary: format!("So many addresses of {name} fail that the failing ones are asked too"),
        impact: "A part of the attempts goes to addresses that are known to fail. The breaker decides about the rest."
            .to_owned(),
        action: "`evenkeel_address_ejected` has which they are, the log why (event=address-ejected). Mend them, or take them out of the contract.".to_owned(),
        proof: Proof {
            fires: vec![Input::stays(series.clone(), 1)],
            quiet: vec![Input::stays(series, 0)],
            summary: None,
            by: 15 * MINUTE,
        },
    }
}
