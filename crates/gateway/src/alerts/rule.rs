//! Decides what an alert is made of.
//! It exists so that a rule and the series that prove it stand side by side, and neither can change without the other.
//! It refuses annotations with names of addresses or clients: alerts travel far.

use std::time::Duration;

/// How soon somebody has to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Users get nothing, or will within minutes: now.
    Critical,
    /// Users get less than they should, or would in an outage: in working hours.
    Warning,
}

impl Severity {
    /// Returns the word of the label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
        }
    }
}

/// One alert.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// What it is about, as a label: `route` or `dependency`, and the name in the contract.
    pub about: Option<(&'static str, String)>,
    /// When it holds, in the language of Prometheus.
    pub expr: String,
    /// For how long it has to hold before it fires.
    pub wait: Duration,
    /// For how long it goes on firing when it no longer holds, so that what comes and goes is one notification.
    pub keep: Duration,
    /// How soon somebody has to look.
    pub severity: Severity,
    /// What is the case, with the value in it. May be a template.
    pub summary: String,
    /// What users get.
    pub impact: String,
    /// What to do.
    pub action: String,
    pub(super) proof: Proof,
}

impl Rule {
    /// Returns where it is explained.
    #[must_use]
    pub fn runbook(&self) -> String {
        format!("docs/guide/alerts.md#{}", self.name.to_lowercase())
    }
}

/// Series by which a rule is tested.
#[derive(Clone, Debug)]
pub(super) struct Proof {
    /// With these it fires.
    pub(super) fires: Vec<Input>,
    /// With these it does not, though nearly.
    pub(super) quiet: Vec<Input>,
    /// What [`Rule::summary`] is then, where it is a template.
    pub(super) summary: Option<String>,
    /// By when it fires.
    pub(super) by: Duration,
}

/// One series of a test: its name with labels, its first value, and what is added at each scrape.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) series: String,
    pub(super) first: u64,
    pub(super) step: u64,
}

impl Input {
    /// A counter that grows by this much at each scrape.
    pub(super) fn grows(series: impl Into<String>, step: u64) -> Self {
        Self {
            series: series.into(),
            first: 0,
            step,
        }
    }

    /// A series that stays as it is.
    pub(super) fn stays(series: impl Into<String>, value: u64) -> Self {
        Self {
            series: series.into(),
            first: value,
            step: 0,
        }
    }
}
