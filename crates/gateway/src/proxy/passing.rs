//! Decides how a route of the contract takes requests that are only forwarded: its guard, its limits, its time.
//! It exists beside the routes of class read, because such a request has no key, no rung and no copy.
//! It refuses to share a guard with reads: what a write came to is counted apart.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use evenkeel::{Dependency, Engine, Pass, Problems};
use evenkeel_http::hop::Via;
use http::StatusCode;

use super::{limits::Limits, route::Common, trouble::Trouble, upstream::Upstream};
use crate::config;

/// The part of a route that forwards.
#[derive(Debug)]
pub(crate) struct Passing {
    pub(crate) name: Arc<str>,
    pub(crate) guard: Pass<StatusCode, Trouble>,
    upstream: Arc<Upstream>,
    pub(super) engine: Engine,
    pub(super) limits: Limits,
    pub(super) via: Via,
    /// The most bytes of a request body.
    pub(super) max_request_body: u64,
    /// The longest wait for the upstream: to take a piece of the request, or to answer all of it.
    pub(super) wait: Duration,
    /// Answers are passed on without a word of the gateway's: it only watches.
    pub(super) is_quiet: bool,
    pub(super) deadline: Duration,
    turns: AtomicU32,
}

impl Passing {
    /// Builds it.
    ///
    /// # Errors
    /// Every problem that the engine finds with it.
    pub(crate) fn build(
        route: &config::Route,
        dependency: &Dependency,
        upstream: &Arc<Upstream>,
        before: Option<&Self>,
        common: &Common,
    ) -> Result<Self, Problems> {
        let mut builder = common
            .engine
            .pass(&route.name, dependency)
            .classify(Trouble::class)
            .class_of({
                let upstream = Arc::clone(upstream);
                move |status: &StatusCode| upstream.classify.of(*status)
            })
            .criticality(route.criticality);
        if let Some(before) = before {
            builder = builder.succeeds(&before.guard);
        }
        let guard = builder.build()?;
        let timeout = dependency.contract().timeout().unwrap_or(Duration::MAX);
        Ok(Self {
            name: route.name.as_str().into(),
            guard,
            upstream: Arc::clone(upstream),
            engine: common.engine.clone(),
            limits: common.limits,
            via: common.via.clone(),
            max_request_body: route.max_request_body,
            wait: timeout.min(route.deadline),
            is_quiet: false,
            deadline: route.deadline,
            turns: AtomicU32::new(0),
        })
    }

    /// Returns where an attempt that begins now asks.
    pub(super) fn upstream(&self) -> &Arc<Upstream> {
        Upstream::newest(&self.upstream)
    }

    /// Returns the longest wait for each step, for a request of which so much time has been spent before.
    pub(super) fn wait_after(&self, spent: Duration) -> Duration {
        self.wait.min(self.deadline.saturating_sub(spent))
    }

    /// Numbers those who are told when to come back; after 2^32 from zero again.
    pub(super) fn next_turn(&self) -> u32 {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }
}
