//! Decides how an answer is put in by hand: as if it had come from the dependency at the stated time.
//! It exists so that the first outage after a start finds something, and a page can be kept that was rescued elsewhere.
//! It refuses to make up a time, and to keep what the contract would not have kept.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use evenkeel::{
    Seeded,
    http::{Arrived, Head as Judged},
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header::AGE, header::HOST};

use super::{
    app::App,
    authority,
    cached::Cached,
    keep::{self, Received},
    purging::Place,
    route::{Route, Whose},
    whole::{Reply, Whole, compact},
    worth,
};

/// What is put in.
#[derive(Debug)]
pub(crate) struct Seed {
    pub(crate) place: Place,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// When it was observed, in Unix time; `None` where nobody knows.
    pub(crate) observed: Option<Duration>,
}

impl App {
    /// Puts an answer in, and returns the route that has it.
    ///
    /// # Errors
    /// Why it was not kept.
    pub(crate) fn seed(&self, seed: Seed) -> Result<Arc<str>, String> {
        let Some((scheme, host)) = &seed.place.site else {
            return Err("a whole URI is needed, with its host: copies of two hosts are two".to_owned());
        };
        let host = HeaderValue::from_str(host).map_err(|_| "its host is none".to_owned())?;
        let (mut request, ()) = Request::get(&*seed.place.target)
            .header(HOST, &host)
            .body(())
            .map_err(|error| format!("its path is none: {error}"))?
            .into_parts();
        request.method = Method::GET;
        let served = self
            .served
            .find(&request, &host)
            .map_err(|_| "no route of the contract covers it".to_owned())?;
        let route = served
            .reads
            .as_ref()
            .ok_or_else(|| "its route keeps nothing: it only forwards, or only watches".to_owned())?;
        let parts = route
            .scope_of(request.uri.path(), request.uri.query(), &request.headers)
            .map_err(|why| format!("whose it is cannot be told: {why}"))?;
        let whose = Whose {
            scheme,
            authority: authority::normalised(&host, scheme),
            parts,
        };
        if seed.body.len() > route.max_body {
            return Err(format!(
                "max_body of route {} is {} bytes",
                route.name, route.max_body
            ));
        }
        worth::judge(&route.keep_if, StatusCode::OK, &seed.headers, &seed.body, None)
            .map_err(|why| format!("it may not be kept: {}", keep::Why::KeepIf(why).as_str()))?;
        match &route.cache {
            Some(_) => cached(route, &whose, &request, &seed)?,
            None if route.keeps => plain(route, whose, &request, seed)?,
            None => return Err(format!("route {} has no stale rung: nothing is kept", route.name)),
        }
        Ok(Arc::clone(&route.name))
    }
}

fn plain(route: &Route, whose: Whose, request: &http::request::Parts, seed: Seed) -> Result<(), String> {
    let facts = route.facts(&request.method, &request.headers);
    let received = Received {
        sharing: route.sharing,
        request: &facts,
        request_headers: &request.headers,
        status: StatusCode::OK,
        headers: &seed.headers,
        at: route.engine.now().wall,
    };
    let verdict = keep::judge(&received, Ok(()));
    if let Some(why) = verdict.why_not {
        return Err(format!("it may not be kept: {}", why.as_str()));
    }
    let whole = Whole {
        status: StatusCode::OK,
        class: route.upstream().classify.of(StatusCode::OK),
        headers: compact(&seed.headers),
        body: Bytes::copy_from_slice(&seed.body),
        terms: verdict.terms,
        lifetime: verdict.lifetime,
        shared: verdict.shared,
        tags: None,
        began: None,
    };
    let observed = seed.observed.map(|at| SystemTime::UNIX_EPOCH + at);
    let target = seed.place.target;
    match route
        .guard
        .seed(whose.into(), target, Reply::Whole(Arc::new(whole)), observed)
    {
        Ok(Seeded::Kept) => Ok(()),
        Ok(Seeded::Superseded) => {
            Err("what is there was observed later, or has a time where this has none".to_owned())
        }
        Ok(Seeded::TooBig) => Err("it is larger than the store takes".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn cached(route: &Route, whose: &Whose, request: &http::request::Parts, seed: &Seed) -> Result<(), String> {
    let Some(cache) = &route.cache else { return Ok(()) };
    let Some(observed) = seed.observed else {
        return Err(format!(
            "route {} caches: a copy without a time could never be given; say when it was observed",
            route.name
        ));
    };
    let now = route.engine.now();
    let age = now.wall.as_nanos() - i64::try_from(observed.as_nanos()).unwrap_or(i64::MAX);
    let Ok(age) = u64::try_from(age) else {
        return Err("its time lies ahead of the clock of this machine".to_owned());
    };
    let mut headers = seed.headers.clone();
    // Rounded up: a copy is never made younger.
    headers.insert(AGE, HeaderValue::from(age.div_ceil(1_000_000_000)));
    let looked =
        Cached::look(cache, &route.data, whose, request, |_| false).map_err(|error| error.to_string())?;
    let arrived = Arrived {
        status: StatusCode::OK,
        headers: &headers,
        began: now.mono,
        at: now,
    };
    if let Judged::Not(why) = cache.judge(&looked.looked, &arrived) {
        return Err(format!("it may not be kept: {}", keep::Why::of(why).as_str()));
    }
    let fields = (&arrived, &headers);
    match cache.store(&looked.key, &looked.looked, &request.headers, fields, &seed.body) {
        Some(settled) => settled
            .stored
            .map_err(|why| format!("it was not kept: {}", keep::Why::of(why).as_str())),
        None => Err("it cannot be selected by any request".to_owned()),
    }
}
