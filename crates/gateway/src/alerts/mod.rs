//! Decides which alerts a contract needs, and when each of them fires.
//! It exists because thresholds that are copied by hand from a contract are wrong after its next change.
//! It refuses alerts that nobody could act on: each says what users get, what to do, and where that is explained.

mod dependencies;
mod doors;
mod gateway;
mod parts;
mod proof;
mod routes;
mod rule;
mod store;
mod yaml;

use std::time::Duration;

use crate::config::Contract;

pub use rule::{Rule, Severity};

/// How often Prometheus asks, where nobody says.
pub const EVERY: Duration = Duration::from_secs(15);
/// How often it may ask: below a second the rates of a scrape say nothing, above five minutes the alerts come too late.
pub const EVERY_RANGE: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(300)];

/// The name of every alert that there can be, in the order of the guide.
pub const NAMES: &[&str] = &[
    routes::NO_ANSWER,
    doors::PROTECTION,
    routes::AGE_NEAR_LIMIT,
    routes::STALE,
    routes::ALTERNATE,
    routes::DEFAULT,
    routes::TURNED_AWAY,
    routes::COVERAGE,
    routes::NOT_KEPT,
    doors::EXERCISE,
    routes::FORWARDING,
    dependencies::BREAKER_OPEN,
    dependencies::RETRIES_DENIED,
    dependencies::TOO_FEW_ADDRESSES,
    gateway::NOT_SEEN,
    gateway::LOG_GAPS,
    gateway::RELOAD_REFUSED,
    gateway::LAST_GOOD,
    store::DOWN,
    store::BEHIND,
];

/// The alerts of one contract.
#[derive(Clone, Debug)]
pub struct Alerts {
    rules: Vec<Rule>,
    every: Duration,
    /// What the contract would have needed an alert for, and why there is none.
    notes: Vec<String>,
}

impl Alerts {
    /// Makes the alerts of a contract whose gateway is scraped this often, within [`EVERY_RANGE`].
    #[must_use]
    pub fn of(contract: &Contract, every: Duration) -> Self {
        let mut alerts = Self {
            rules: Vec::new(),
            every,
            notes: Vec::new(),
        };
        for route in &contract.routes {
            routes::add(&mut alerts, contract, route);
        }
        for dependency in &contract.dependencies {
            dependencies::add(&mut alerts, contract, dependency);
        }
        gateway::add(&mut alerts);
        store::add(&mut alerts, contract);
        alerts
    }

    /// Returns the rules, in the order of the file.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Writes them as a rule file of Prometheus.
    #[must_use]
    pub fn to_rules(&self, contract: &str) -> String {
        yaml::rules(self, contract)
    }

    /// Writes the tests of that file for `promtool test rules`: each alert fires for what it is about, not just below it,
    /// and none of them while all is well.
    #[must_use]
    pub fn to_tests(&self, rule_file: &str) -> String {
        proof::tests(self, rule_file)
    }
}
