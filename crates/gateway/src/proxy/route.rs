//! Decides how a route of the contract becomes a guard of the library, with everything its calls need.
//! It exists so that the gateway has no rules of its own: the same guard serves it that a Rust program would use.
//! It refuses to exist half-built.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

use evenkeel::{
    Dependency, Engine, Ladder, LadderRung, Memory, Problems, Read, Scope, default,
    http::{HttpCache, IgnoredCookies, Shelf},
    stale,
};
use evenkeel_http::{
    facts::{RequestFacts, Sharing},
    hop::Via,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::{
    ahead::Ahead,
    alternate::{Alternate, Asking, agrees},
    buffers::Buffers,
    caching, data,
    identity::{self, Told},
    keep::Why,
    limits::Limits,
    oldest::Oldest,
    repeat,
    since::Since,
    tap::Tap,
    trouble::Trouble,
    upstream::Upstream,
    whole::Reply,
};
use crate::{
    config::{self, KeepIf, Rung, ScopePart, pattern::Pattern},
    telemetry::Seen,
};

/// The guard of a route.
pub(crate) type Guard = Read<Reply, Trouble, Asking>;

/// What a key says beside the target: the scheme, the authority and the scope parts.
#[derive(Debug)]
pub(crate) struct Whose {
    pub(super) scheme: &'static str,
    pub(super) authority: HeaderValue,
    pub(super) parts: Vec<String>,
}

impl Scope for Whose {
    fn parts(&self, each: &mut dyn FnMut(&str)) {
        each(self.scheme);
        // Authorities are checked before they get here: visible ASCII.
        each(self.authority.to_str().unwrap_or_default());
        for part in &self.parts {
            each(part);
        }
    }
}

/// What the dependency said when it was asked whether a copy still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Validated {
    /// It does.
    NotModified,
    /// Something else has taken its place.
    Replaced,
}

impl Validated {
    pub(crate) const ALL: [Self; 2] = [Self::NotModified, Self::Replaced];

    /// Returns the stable word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::NotModified => "not-modified",
            Self::Replaced => "replaced",
        }
    }
}

/// A route, ready to serve.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) name: Arc<str>,
    pub(crate) guard: Guard,
    pub(super) pattern: Pattern,
    pub(super) scope: Vec<ScopePart>,
    /// For whom its copies are.
    pub(crate) sharing: Sharing,
    pub(super) told: Told,
    pub(super) since: Arc<Since>,
    upstream: Arc<Upstream>,
    pub(super) engine: Engine,
    pub(super) buffers: Buffers,
    pub(super) limits: Limits,
    pub(super) via: Via,
    /// Answers are kept for the stale rung.
    pub(super) keeps: bool,
    pub(super) has_ladder: bool,
    pub(super) coalesces: bool,
    /// Stand-ins are tried beside some live answers.
    pub(crate) exercises: bool,
    /// Its dependency is asked once more after a failure.
    pub(super) retries: bool,
    pub(super) keep_if: KeepIf,
    /// The field with the tags of its answers.
    pub(super) tags: Option<HeaderName>,
    pub(super) max_body: usize,
    /// Its use of the shelf; `None` where it always asks.
    pub(crate) cache: Option<HttpCache>,
    /// When copies are refreshed before their lifetime ends.
    pub(super) ahead: Ahead,
    /// Fields of requests that are brought into one spelling.
    pub(super) normalise: Vec<HeaderName>,
    ignored_cookies: IgnoredCookies,
    /// Which data is meant, in every key.
    pub(super) data: String,
    not_kept: Arc<[AtomicU64; Why::COUNT]>,
    validations: Arc<[AtomicU64; Validated::ALL.len()]>,
    /// The age of the copies that it gives in place of live answers.
    pub(crate) oldest: Arc<Oldest>,
    turns: AtomicU32,
    /// What serves in its place from now on.
    newer: OnceLock<Arc<Self>>,
    /// What is noted for those who watch it.
    pub(crate) seen: Arc<Seen>,
    /// What a probe sees.
    pub(crate) tap: Tap,
}

/// What the routes of one gateway share.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) engine: Engine,
    pub(crate) memory: Memory<Reply>,
    pub(crate) shelf: Shelf,
    pub(crate) buffers: Buffers,
    pub(crate) limits: Limits,
    pub(crate) via: Via,
    pub(crate) since: Arc<Since>,
}

impl Route {
    /// Builds the route.
    ///
    /// # Errors
    /// Every problem that the engine finds with it.
    pub(crate) fn build(
        route: &config::Route,
        (dependency, upstream): (&Dependency, &Arc<Upstream>),
        alternate: Option<Alternate>,
        before: Option<&Self>,
        common: &Common,
        told: Told,
    ) -> Result<Self, Problems> {
        let cache = route
            .caching
            .as_ref()
            .map(|caching| HttpCache::new(&common.shelf, caching::rules(route, caching, &told)));
        let (above, below) = rungs(route);
        let mut builder = common
            .engine
            .read::<Reply>(&route.name)
            .scope::<Asking>()
            .from(dependency)
            .deadline(route.deadline)
            .classify(Trouble::class)
            .class_of(Reply::class)
            .ladder(above)
            .when_busy(route.when_busy)
            .criticality(route.criticality);
        let version = data::version(route, &upstream.rewrite, &told);
        builder = builder.version(&version);
        if let Some(before) = before {
            builder = builder.succeeds(&before.guard);
        }
        let keeps = cache.is_none() && route.stale().is_some();
        if keeps {
            builder = builder
                .terms(Reply::terms)
                .memory(&common.memory)
                .weigh(Reply::weight);
        }
        let retries = dependency.contract().retry().is_some();
        let (clock, clock_of) = (common.engine.clone(), common.engine.clone());
        builder = builder
            .advice(move |trouble| repeat::advice_of_trouble(trouble, clock.now().wall))
            .advice_of(move |reply| repeat::advice_of_reply(reply, clock_of.now().wall));
        if route.exact {
            builder = builder.exact();
        }
        if let Some(ppm) = route.exercise {
            builder = builder.exercise(ppm, |_rung, live, other| agrees(live, other));
        }
        if let Some(soft) = route.refresh.soft_timeout {
            builder = builder.soft_timeout(soft);
        }
        if let Some(span) = route.refresh.finish_within {
            builder = builder.finish_within(span);
        }
        if route.refresh.refresh_ahead || route.refresh.jitter_ppm > 0 {
            builder = builder.refresh_ahead();
        }
        if let Some(span) = route.refresh.cool_down {
            builder = builder.cool_down(span);
        }
        if cache.is_some() {
            // Each copy says for itself for how long it is fresh.
            builder = builder.own_lifetimes().terms(Reply::terms);
        }
        if route.coalesce || cache.is_some() {
            builder = builder.coalesce().share_if(Reply::is_shareable);
        }
        let guard = match alternate {
            None => builder.build()?,
            Some(alternate) => {
                let dependency = alternate.dependency.clone();
                builder
                    .alternate_work(&dependency, move |asking, _key, _call, permit| {
                        asking.ask(alternate.clone(), permit)
                    })
                    .ladder(below)
                    .build()?
            }
        };
        Ok(Self {
            name: route.name.as_str().into(),
            guard,
            pattern: route.pattern.clone(),
            scope: route.scope.clone(),
            sharing: caching::sharing(route),
            told,
            since: Arc::clone(&common.since),
            upstream: Arc::clone(upstream),
            engine: common.engine.clone(),
            buffers: common.buffers.clone(),
            limits: common.limits,
            via: common.via.clone(),
            keeps,
            has_ladder: !route.ladder.is_empty(),
            coalesces: route.coalesce,
            exercises: route.exercise.is_some(),
            retries,
            keep_if: route.keep_if.clone(),
            tags: route.tags.clone(),
            max_body: route.max_body,
            cache,
            ahead: Ahead::of(&route.refresh, || common.engine.draw_seed()),
            normalise: route
                .caching
                .as_ref()
                .map_or_else(Vec::new, |caching| caching.normalise.clone()),
            ignored_cookies: route.ignored_cookies.clone(),
            data: format!("{}@{version}", route.name),
            not_kept: before.map_or_else(
                || Arc::new(std::array::from_fn(|_| AtomicU64::new(0))),
                |before| Arc::clone(&before.not_kept),
            ),
            validations: before.map_or_else(
                || Arc::new(std::array::from_fn(|_| AtomicU64::new(0))),
                |before| Arc::clone(&before.validations),
            ),
            oldest: before.map_or_else(Arc::default, |before| Arc::clone(&before.oldest)),
            turns: AtomicU32::new(0),
            newer: OnceLock::new(),
            tap: Tap::default(),
            seen: before.map_or_else(Arc::default, |before| Arc::clone(&before.seen)),
        })
    }

    /// Returns where an attempt that begins now asks.
    pub(super) fn upstream(&self) -> &Arc<Upstream> {
        Upstream::newest(&self.upstream)
    }

    /// Has `newer` serve in its place. A route is taken over once.
    pub(super) fn hand_over(&self, newer: &Arc<Self>) {
        if !std::ptr::eq(self, Arc::as_ptr(newer)) {
            drop(self.newer.set(Arc::clone(newer)));
        }
    }

    /// Yields it and all that have served in its place since.
    pub(super) fn and_newer(self: &Arc<Self>) -> impl Iterator<Item = &Arc<Self>> {
        std::iter::successors(Some(self), |route| route.newer.get())
    }

    /// Returns the engine that it runs on.
    pub(crate) const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Reads what the rules need to know of a request.
    pub(crate) fn facts(&self, method: &Method, headers: &HeaderMap) -> RequestFacts {
        let mut facts = self.ignored_cookies.request(method, headers);
        facts.authorization |= self.told.personal.iter().any(|name| headers.contains_key(name));
        facts
    }

    /// Numbers those who are told when to come back; after 2^32 from zero again.
    pub(super) fn next_turn(&self) -> u32 {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts an answer that was not kept.
    pub(super) fn note_not_kept(&self, why: Why) {
        if let Some(count) = self.not_kept.get(why.index()) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns how many answers were not kept for a reason of the gateway's.
    pub(crate) fn not_kept(&self, why: Why) -> u64 {
        self.not_kept
            .get(why.index())
            .map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Counts an answer to a validation.
    pub(super) fn note_validated(&self, result: Validated) {
        let [not_modified, replaced] = &*self.validations;
        let count = match result {
            Validated::NotModified => not_modified,
            Validated::Replaced => replaced,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many answers to validations said this.
    pub(crate) fn validations(&self, result: Validated) -> u64 {
        let [not_modified, replaced] = &*self.validations;
        let count = match result {
            Validated::NotModified => not_modified,
            Validated::Replaced => replaced,
        };
        count.load(Ordering::Relaxed)
    }

    /// Reads the scope parts of a request.
    ///
    /// # Errors
    /// What is missing or said twice, in words for the client. A missing part is never an empty text.
    pub(super) fn scope_of(
        &self,
        path: &str,
        query: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<Vec<String>, String> {
        self.scope
            .iter()
            .map(|part| match part {
                ScopePart::Path(name) => match self.pattern.part(path, name) {
                    Some(value) if !value.is_empty() => Ok(value.to_owned()),
                    Some(_) | None => Err(format!("the part `{name}` of the path is missing")),
                },
                ScopePart::Query(name) => parameter(query.unwrap_or_default(), name),
                // Whoever may say it has said it by now, and nobody else could.
                ScopePart::Identity(part, name) => {
                    identity::part(headers, name).map(str::to_owned).map_err(|why| {
                        let part = part.as_str();
                        format!("the {part} of the request {why}, as far as those have said it who may")
                    })
                }
            })
            .collect()
    }
}

type Rungs = Vec<LadderRung<Reply>>;

/// The rungs of the contract above the alternate, or all of them, and those below it. On a route that caches, a copy
/// stands in where its origin permits it, contract or not; how old it may be is said by each copy.
fn rungs(route: &config::Route) -> (Rungs, Rungs) {
    let caches = route.caching.is_some();
    let rung = |rung: &Rung| match rung {
        Rung::Stale(_) if caches => Some(stale(Ladder::MAX_AGE_LIMIT)),
        Rung::Stale(max_age) => Some(stale(*max_age)),
        Rung::Alternate(_) => None,
        Rung::Default(answer) => {
            let answer = Arc::new(answer.clone());
            Some(default(move || Reply::Default(Arc::clone(&answer))))
        }
    };
    let mut halves = route.ladder.split(|rung| matches!(rung, Rung::Alternate(_)));
    let mut half = || {
        halves
            .next()
            .unwrap_or_default()
            .iter()
            .filter_map(rung)
            .collect()
    };
    let (mut above, below): (Rungs, Rungs) = (half(), half());
    if caches && route.stale().is_none() {
        above.insert(0, stale(Ladder::MAX_AGE_LIMIT));
    }
    (above, below)
}

/// Returns the value of a query parameter that is there exactly once and not empty.
fn parameter(query: &str, name: &str) -> Result<String, String> {
    let mut values = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .filter(|(key, _)| *key == name)
        .map(|(_, value)| value);
    match (values.next(), values.next()) {
        (Some(value), None) if !value.is_empty() => Ok(value.to_owned()),
        (Some(_), Some(_)) => Err(format!("the parameter `{name}` is given more than once")),
        (Some(_) | None, _) => Err(format!("the parameter `{name}` is missing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_counts_only_once_and_not_empty() {
        assert_eq!(parameter("a=1&lang=de", "lang"), Ok("de".to_owned()));
        for query in [
            "",
            "lang",
            "lang=",
            "lang=de&lang=en",
            "slang=de",
            "lang=&lang=de",
        ] {
            assert!(parameter(query, "lang").is_err(), "{query}");
        }
    }
}
