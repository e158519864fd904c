//! Decides what is told of the copies that a gateway keeps: which there are, how old each is, and why it would not stand in.
//! It exists so that "why is nothing served" is asked before the outage, of the copies themselves.
//! It refuses to decide again what the engine and the rule book decide: it asks them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use evenkeel::{Facts, KeyParts, Mono, Skipped, Wall, http::Shelved};
use http::{HeaderMap, StatusCode};

use super::{
    app::App,
    data::{self, Fnv},
    looked::skipped,
    purging::Place,
    route::Route,
    whole::Reply,
};

/// Which copies are asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) route: Option<String>,
    /// Begins so.
    pub(crate) prefix: Option<Place>,
    /// Is exactly this.
    pub(crate) uri: Option<Place>,
    /// One of the parts that say whose it is.
    pub(crate) scope: Option<String>,
}

impl Wanted {
    fn has(&self, key: &KeyParts<'_>) -> bool {
        let whose = key.scope.get(2..).unwrap_or_default();
        self.route
            .as_deref()
            .is_none_or(|route| route == data::route_of(key.guard))
            && self.prefix.as_ref().is_none_or(|place| place.begins(key))
            && self.uri.as_ref().is_none_or(|place| place.is(key))
            && self.scope.as_deref().is_none_or(|scope| whose.contains(&scope))
    }
}

/// One copy.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) route: String,
    pub(crate) uri: String,
    pub(crate) scope: Vec<String>,
    /// `snapshot` of a route that always asks, `copy` of one that caches.
    pub(crate) kind: &'static str,
    pub(crate) status: StatusCode,
    pub(crate) observed: Option<Wall>,
    pub(crate) age: Option<Duration>,
    /// The oldest at which it stands in.
    pub(crate) limit: Option<Duration>,
    /// Why it would not stand in now.
    pub(crate) not_servable: Option<&'static str>,
    /// It was purged softly.
    pub(crate) expired: bool,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A page of copies, in the order of route, URI and scope.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) items: Vec<Item>,
    /// Where the next page begins, if there is one.
    pub(crate) next: Option<String>,
}

/// The most copies of one page.
pub(crate) const PAGE_MAX: usize = 1000;

impl App {
    /// Returns the first `most` copies that are wanted behind a place that an earlier page named. It looks at every key, so
    /// it is called where that may take a while; of what it finds it holds one page.
    pub(crate) fn copies(&self, wanted: &Wanted, after: Option<&str>, most: usize) -> Page {
        let now = self.process.engine.now().mono;
        let most = most.clamp(1, PAGE_MAX);
        let mut found: BTreeMap<(String, usize), Item> = BTreeMap::new();
        let mut number = 0;
        let mut behind = Behind::default();
        let mut add = |key: &KeyParts<'_>, make: &dyn Fn() -> Option<Item>| {
            if !wanted.has(key) {
                return;
            }
            let place = behind.next(key);
            if after.is_some_and(|after| *place <= *after) {
                return;
            }
            let is_behind =
                found.len() > most && found.last_key_value().is_some_and(|(last, _)| last.0 < place);
            if is_behind {
                return;
            }
            if let Some(item) = make() {
                number += 1;
                found.insert((place, number), item);
            }
            if found.len() > most + 1 {
                found.pop_last();
            }
        };
        self.process.memory.each(|key, held| {
            add(key, &|| {
                let Reply::Whole(whole) = held.value else {
                    return None;
                };
                let route = self.reads(key.guard);
                let limit = route.and_then(|route| route.guard.contract().ladder().max_age());
                let limit = limit.map(|limit| held.own_limit.map_or(limit, |own| own.min(limit)));
                let facts = Facts {
                    observed: held.observed,
                    own_limit: held.own_limit,
                    stale_forbidden: held.stale_forbidden,
                    ..Facts::default()
                };
                let verdict = limit.map_or(Err(Skipped::NoSnapshot), |limit| facts.stale(limit, now));
                let known = held.observed.filter(|at| *at <= now);
                Some(Item {
                    kind: "snapshot",
                    status: whole.status,
                    observed: held.observed_wall,
                    age: known.map(|at| now.since(at)),
                    limit,
                    not_servable: verdict.err().map(Skipped::as_str),
                    expired: held.expired,
                    headers: whole.headers.clone(),
                    body: whole.body.clone(),
                    ..Item::of(key)
                })
            });
        });
        self.process
            .shelf
            .each(|key, copy| add(key, &|| Some(self.shelved(key, copy, now))));
        let mut items: Vec<((String, usize), Item)> = found.into_iter().collect();
        let next = (items.len() > most).then(|| {
            items.truncate(most);
            items.last().map(|((place, _), _)| place.clone())
        });
        Page {
            items: items.into_iter().map(|(_, item)| item).collect(),
            next: next.flatten(),
        }
    }

    /// Returns the route that would find a copy; none if its data is no longer what the route means.
    fn reads(&self, guard: &str) -> Option<&Arc<Route>> {
        self.routes.iter().find(|route| *route.data == *guard)
    }

    fn shelved(&self, key: &KeyParts<'_>, copy: &Shelved, now: Mono) -> Item {
        let cache = self.reads(key.guard).and_then(|route| route.cache.as_ref());
        let decision = cache.map(|cache| cache.on_failure(copy, now));
        Item {
            kind: "copy",
            status: copy.status(),
            observed: Some(copy.observed_wall()),
            age: copy.age(now),
            limit: cache.and_then(|cache| cache.limit_of(copy)),
            not_servable: decision
                .map_or(Some(Skipped::NoSnapshot), skipped)
                .map(Skipped::as_str),
            expired: copy.facts().expired,
            headers: copy.headers(0),
            body: copy.body().clone(),
            ..Item::of(key)
        }
    }
}

impl Item {
    /// Begins with what the key says.
    fn of(key: &KeyParts<'_>) -> Self {
        let part = |at: usize| key.scope.get(at).copied().unwrap_or_default();
        Self {
            route: data::route_of(key.guard).to_owned(),
            uri: format!("{}://{}{}", part(0), part(1), String::from_utf8_lossy(key.key)),
            scope: key
                .scope
                .get(2..)
                .unwrap_or_default()
                .iter()
                .map(ToString::to_string)
                .collect(),
            kind: "",
            status: StatusCode::OK,
            observed: None,
            age: None,
            limit: None,
            not_servable: None,
            expired: false,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }
}

/// Numbers the copies of one URI, which are shown one behind the other.
#[derive(Debug, Default)]
struct Behind {
    key: String,
    copies: usize,
}

impl Behind {
    /// Writes the place of the next copy as a text whose order is that of route, URI, scope and number. It leaves the
    /// gateway as the place where a page ends, so it does not say whose the copy is.
    fn next(&mut self, key: &KeyParts<'_>) -> String {
        let item = Item::of(key);
        let mut whose = Fnv::default();
        for part in &item.scope {
            whose.add(part);
            whose.add("\n");
        }
        let key = format!("{}\n{}\n{:016x}", item.route, item.uri, whose.0);
        if key == self.key {
            self.copies += 1;
        } else {
            *self = Self { key, copies: 0 };
        }
        format!("{}\n{:04}", self.key, self.copies)
    }
}
