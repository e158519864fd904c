//! Decides which route of a gateway covers a request, and what to say where none does.
//! It exists because a path alone does not settle it: host, method and fields count too.
//! It refuses to call an address unknown that only does not take the method.

use std::{collections::BTreeSet, sync::Arc};

use evenkeel::Counts;
use http::{HeaderValue, Method, request::Parts};

use super::{
    authority, observing::Observing, passing::Passing, protect::Gate, readings::Readings, route::Route,
    router::Router,
};
use crate::config::{Conditions, pattern::Pattern};

/// What a route does with requests: with GET and HEAD where it reads, with all others where it forwards. One of the
/// two at least is there.
#[derive(Clone, Debug)]
pub(super) struct Served {
    pub(super) reads: Option<Arc<Route>>,
    pub(super) passes: Option<Arc<Passing>>,
    /// What it would do, where it only watches: then everything is forwarded.
    pub(super) observes: Option<Arc<Observing>>,
    pub(super) conditions: Conditions,
    /// Who decides first, if anybody does.
    pub(super) gate: Option<Arc<Gate>>,
}

/// The routes of a gateway, found by what they cover.
#[derive(Debug, Default)]
pub(super) struct AllServed {
    pub(super) router: Router,
    /// The same in the most generous reading.
    readings: Readings,
    /// What stands under each number of the router.
    pub(super) list: Vec<Served>,
}

/// Why no route takes a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Nobody {
    /// Nothing is served under this address.
    NoRoute,
    /// The address takes these methods.
    OtherMethods(HeaderValue),
    /// It could be read as something that has another door.
    TwoReadings,
}

impl AllServed {
    /// Adds a route with the paths that it covers.
    pub(super) fn add(&mut self, pattern: &Pattern, served: Served) {
        let number = self.list.len();
        self.router.add(pattern, served.conditions.rank(), number);
        self.readings.add(pattern, &served);
        self.list.push(served);
    }

    /// Returns the route that covers a request.
    ///
    /// # Errors
    /// [`Nobody`].
    pub(super) fn find(&self, request: &Parts, authority: &HeaderValue) -> Result<&Served, Nobody> {
        let covers = |served: &Served| self.covers(served, request, authority);
        let found = self.router.find(request.uri.path(), |number| {
            self.list
                .get(number)
                .is_some_and(|served| served.conditions.take(&request.method) && covers(served))
        });
        let found = found.and_then(|number| Some((number, self.list.get(number)?)));
        let (number, served) = found
            .filter(|(_, served)| served.takes(&request.method))
            .ok_or_else(|| self.nobody(request, authority))?;
        if self
            .readings
            .lead_past_a_door((&self.list, number), request, authority)
        {
            return Err(Nobody::TwoReadings);
        }
        Ok(served)
    }

    fn covers(&self, served: &Served, request: &Parts, authority: &HeaderValue) -> bool {
        let conditions = &served.conditions;
        // The usual route has none, and nothing is looked at then.
        (conditions.hosts.is_empty() && conditions.fields.is_empty())
            || conditions.cover_but_for_the_method(authority::host(authority), &request.headers)
    }

    fn nobody(&self, request: &Parts, authority: &HeaderValue) -> Nobody {
        let mut methods = BTreeSet::new();
        self.each(request.uri.path(), |served| {
            if self.covers(served, request, authority) {
                methods.extend(served.methods());
            }
        });
        let methods: Vec<&str> = methods.into_iter().collect();
        // Names of methods are tokens.
        HeaderValue::try_from(methods.join(", "))
            .ok()
            .filter(|value| !value.is_empty())
            .map_or(Nobody::NoRoute, Nobody::OtherMethods)
    }

    /// Returns the routes that may keep an answer for a path.
    pub(super) fn keepers(&self, path: &str) -> Vec<Arc<Route>> {
        let mut keepers = Vec::new();
        self.each(path, |served| {
            keepers.extend(
                served
                    .reads
                    .iter()
                    .filter(|route| route.keeps || route.coalesces || route.cache.is_some())
                    .cloned(),
            );
        });
        keepers
    }

    /// Shows each route that covers a path, the most specific first.
    fn each<'s>(&'s self, path: &str, mut show: impl FnMut(&'s Served)) {
        let all = self.router.find(path, |number| {
            self.list.get(number).into_iter().for_each(&mut show);
            false
        });
        debug_assert!(all.is_none(), "nothing was accepted");
    }
}

impl Served {
    /// Returns its name.
    pub(super) fn name(&self) -> Option<&Arc<str>> {
        let reads = self.reads.as_ref().map(|route| &route.name);
        reads.or_else(|| self.passes.as_ref().map(|passing| &passing.name))
    }

    /// Returns its name and the counters of its guards.
    pub(super) fn counts(&self) -> Option<(Arc<str>, Vec<Counts>)> {
        let reads = self.reads.iter().map(|route| (&route.name, route.guard.counts()));
        let passes = self
            .passes
            .iter()
            .map(|passing| (&passing.name, passing.guard.counts()));
        let (names, counts): (Vec<_>, Vec<_>) = reads.chain(passes).unzip();
        Some((Arc::clone(names.first()?), counts))
    }

    fn takes(&self, method: &Method) -> bool {
        self.passes.is_some() || *method == Method::GET || *method == Method::HEAD
    }

    /// Returns the methods that it takes, where they can be told.
    fn methods(&self) -> Vec<&str> {
        let mut methods: Vec<&str> = if self.conditions.methods.is_empty() {
            vec!["GET"]
        } else {
            self.conditions.methods.iter().map(Method::as_str).collect()
        };
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods
    }
}
