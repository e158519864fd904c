//! Decides how a route is watched that is to change nothing yet: each request is forwarded under no rule at all, and beside
//! it the route's own guard goes through the call with what really came.
//! It exists so that a contract can be tried on real traffic before anything depends on it, by the very engine that will
//! carry it out.
//! It refuses to have a second set of rules, to send anything of its own, and to keep a body.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use evenkeel::{
    Class, Counts, Dependency, Engine, Keep, Memory, Now, Permit, Problems, Together, Usable,
    http::{Arrived, Head as Judged, Shelf},
};
use evenkeel_http::hop::Via;
use http::{
    HeaderMap, Method, Response, StatusCode,
    header::{CONTENT_LENGTH, TRANSFER_ENCODING},
    request::Parts,
};
use parking_lot::Mutex;
use tokio::{sync::oneshot, task::AbortHandle};

use super::{
    alternate::Asking,
    exchange::Exchange,
    identity::Told,
    limits::Limits,
    outbound::Outbound,
    passing::Passing,
    repeat,
    route::{Common, Route, Whose},
    trouble::Trouble,
    upstream::Upstream,
    whole::{How, Reply},
};
use crate::config::{self, Class as RouteClass, Rung};

/// What a route would do.
#[derive(Debug)]
pub(crate) struct Observing {
    pub(crate) name: Arc<str>,
    /// Its reads, with stores of their own: nothing that is kept here has a body, so nobody must ever be given it.
    pub(crate) reads: Option<Arc<Route>>,
    /// What it would only forward.
    pub(crate) passes: Option<Arc<Passing>>,
}

/// The longest for anything, where nothing is to be cut off.
const LONG: Duration = Duration::from_secs(24 * 3600);
/// Copies are watched without their bodies; this is room for some ten thousand.
const STORE: u64 = 16 << 20;

impl Observing {
    /// Builds what forwards, and what watches.
    ///
    /// # Errors
    /// Every problem that the engine finds with the route.
    pub(super) fn build(
        (route, told): (&config::Route, Told),
        (dependency, upstream): (&Dependency, &Arc<Upstream>),
        (before, forwarded): (Option<&Self>, Option<&Passing>),
        common: &Common,
    ) -> Result<(Passing, Self), Problems> {
        // An alternate would be asked, and that is more than is asked today.
        let mut watched = route.clone();
        watched.ladder.retain(|rung| !matches!(rung, Rung::Alternate(_)));
        watched.exercise = None;
        let own = common.apart(STORE);
        let reads = match route.class {
            RouteClass::Read => {
                let before = before.and_then(|before| before.reads.as_deref());
                let asked = (dependency, upstream);
                Some(Route::build(&watched, asked, None, before, &own, told)?)
            }
            RouteClass::Pass => None,
        };
        let passes = route
            .passes()
            .then(|| {
                let before = before.and_then(|before| before.passes.as_deref());
                Passing::build(&watched, dependency, upstream, before, &own)
            })
            .transpose()?;
        let free = common.engine.dependency(dependency.name()).build()?;
        let forwarded = forwarded.filter(|before| before.is_quiet);
        let mut forward = Passing::build(&watched, &free, upstream, forwarded, common)?;
        forward.is_quiet = true;
        forward.wait = LONG;
        forward.deadline = LONG;
        forward.max_request_body = u64::MAX;
        forward.limits = Limits {
            stream_idle: LONG,
            upload_idle: LONG,
            upload: LONG,
            ..forward.limits
        };
        let observing = Self {
            name: route.name.as_str().into(),
            reads: reads.map(Arc::new),
            passes: passes.map(Arc::new),
        };
        Ok((forward, observing))
    }

    /// Returns what calls would have come to, of both guards.
    pub(crate) fn counts(&self) -> Vec<Counts> {
        let reads = self.reads.iter().map(|route| route.guard.counts());
        let passes = self.passes.iter().map(|passing| passing.guard.counts());
        reads.chain(passes).collect()
    }
}

impl Common {
    /// Returns the same with stores of their own.
    fn apart(&self, bytes: u64) -> Self {
        let Self {
            engine,
            buffers,
            limits,
            via,
            since,
            ..
        } = self;
        let (engine, via): (Engine, Via) = (engine.clone(), via.clone());
        Self {
            engine,
            memory: Memory::new(bytes),
            shelf: Shelf::new(bytes),
            buffers: buffers.clone(),
            limits: *limits,
            via,
            since: since.clone(),
        }
    }
}

/// What really came of a request.
#[derive(Debug)]
enum Came {
    Head(StatusCode, HeaderMap),
    Trouble(Trouble),
}

/// A call that is gone through beside a request that is forwarded.
#[derive(Debug)]
pub(super) enum Shadow {
    Read(Arc<Exchange>, Whose),
    /// With whether the client sends a body: its time for that says nothing about the dependency.
    Pass(Arc<Passing>, bool),
}

/// A shadow under way. When the client leaves before there is a head, so does it.
#[derive(Debug)]
pub(super) struct Watching {
    heard: Option<oneshot::Sender<Came>>,
    task: AbortHandle,
}

impl Shadow {
    /// Chooses the side of a route that would take this request; the exchange is made by `read`.
    pub(super) fn of(
        observing: &Observing,
        request: &Parts,
        read: impl FnOnce(&Arc<Route>) -> Option<(Arc<Exchange>, Whose)>,
    ) -> Option<Self> {
        let is_read = request.method == Method::GET || request.method == Method::HEAD;
        match (observing.reads.as_ref().filter(|_| is_read), &observing.passes) {
            (Some(route), _) => read(route).map(|(exchange, whose)| Self::Read(exchange, whose)),
            (None, Some(passing)) => Some(Self::Pass(Arc::clone(passing), sends_body(&request.headers))),
            (None, None) => None,
        }
    }

    /// Goes through the call while the request is on its way.
    pub(super) fn begin(self) -> Watching {
        let (heard, came) = oneshot::channel();
        let task = tokio::spawn(async move {
            match self {
                Self::Read(exchange, whose) => read(&exchange, whose, came).await,
                Self::Pass(passing, sends_body) => {
                    let upstream = Arc::clone(passing.upstream());
                    let work = move |_call, permit: Option<Permit<'static>>| async move {
                        let came = came.await;
                        drop(permit);
                        match came {
                            Ok(Came::Head(status, _)) => match upstream.classify.of(status) {
                                Class::Fault => Err(Trouble::Fault),
                                class @ Class::Outage(_) => Err(Trouble::ErrorAnswer(status, class, None)),
                                Class::Answer
                                | Class::Refusal
                                | Class::Gone
                                | Class::Busy
                                | Class::Local
                                | Class::Cancelled => Ok(status),
                            },
                            Ok(Came::Trouble(trouble)) => Err(trouble),
                            Err(_) => Err(Trouble::Terminated),
                        }
                    };
                    let end = if sends_body {
                        passing.guard.call_slow(work).await
                    } else {
                        passing.guard.call(work).await
                    };
                    drop(end);
                }
            }
        });
        Watching {
            heard: Some(heard),
            task: task.abort_handle(),
        }
    }
}

/// Tells whether a body follows a head (RFC 9112 §6).
fn sends_body(headers: &HeaderMap) -> bool {
    let stated = headers.get(CONTENT_LENGTH);
    headers.contains_key(TRANSFER_ENCODING) || stated.is_some_and(|length| length != "0")
}

impl Watching {
    /// Tells what came.
    pub(super) fn came(mut self, response: &mut Response<Outbound>) {
        let came = match response.extensions_mut().remove::<Trouble>() {
            Some(trouble) => Came::Trouble(trouble),
            None => Came::Head(response.status(), response.headers().clone()),
        };
        // Whoever would not have asked does not listen.
        drop(self.heard.take().map(|heard| heard.send(came)));
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if self.heard.is_some() {
            self.task.abort();
        }
    }
}

/// Goes through a read.
async fn read(exchange: &Arc<Exchange>, whose: Whose, came: oneshot::Receiver<Came>) {
    let guard = &exchange.route.guard;
    let engine = &exchange.route.engine;
    let began = engine.now();
    let asking = Asking::of(exchange, whose);
    if let Some((cache, cached)) = exchange.route.cache.as_ref().zip(exchange.cached.as_ref()) {
        let bring = |moment, now| exchange.bring(cache, cached, moment, now);
        let key = || cache.together(&cached.key, &cached.looked, &exchange.request.headers);
        // It is called once for each attempt, and only what came of the first is known.
        let came = Mutex::new(Some(came));
        let work = Arc::clone(exchange);
        let work = move |_call, permit: Option<Permit<'static>>| {
            let (work, came) = (Arc::clone(&work), came.lock().take());
            async move {
                let came = match came {
                    Some(came) => came.await.ok(),
                    None => None,
                };
                drop(permit);
                work.seen(came, began)
            }
        };
        let end = guard.call_held(asking, "", &bring, Together::Alone(&key), None, work);
        drop(end.await);
        return;
    }
    let work = Arc::clone(exchange);
    let work = move |_call, permit: Option<Permit<'static>>| async move {
        let came = came.await.ok();
        // What follows the head is not watched.
        drop(permit);
        work.seen(came, began)
    };
    let usable = |held: &Reply| exchange.may_be_given(held);
    let usable: Usable<'_, Reply> = Some(&usable);
    let target = exchange.request.uri.path_and_query();
    let target = target.map_or("", |target| target.as_str());
    drop(guard.call_alone(asking, target, usable, work).await);
}

impl Exchange {
    /// Makes of what came what the attempt of the route would have made of it, without a body.
    fn seen(&self, came: Option<Came>, began: Now) -> Result<Reply, Trouble> {
        let (status, headers) = match came {
            Some(Came::Head(status, headers)) => (status, headers),
            Some(Came::Trouble(trouble)) => return Err(trouble),
            None => return Err(Trouble::Terminated),
        };
        let class = self.route.upstream().classify.of(status);
        let advice = repeat::advice_of_head(status, &headers, self.route.engine.now().wall);
        let leave = || Reply::Streamed(status, class, Keep::Leave, advice);
        if let Some((cache, cached)) = self.route.cache.as_ref().zip(self.cached.as_ref()) {
            if self.route.upstream().classify.is_error(class) {
                return Err(Trouble::ErrorAnswer(status, class, None));
            }
            let arrived = Arrived {
                status,
                headers: &headers,
                began: began.mono,
                at: self.route.engine.now(),
            };
            let is_whole = self.request.method == Method::GET && status != StatusCode::NOT_MODIFIED;
            if !is_whole || !matches!(cache.judge(&cached.looked, &arrived), Judged::Storable) {
                return Ok(leave());
            }
            let fields = &self.request.headers;
            let stored = cache.store(
                &cached.key,
                &cached.looked,
                fields,
                (&arrived, &headers),
                &Bytes::new(),
            );
            return Ok(stored.map_or_else(leave, |settled| {
                let stored = settled.stored.is_ok();
                Reply::Cached(settled.copy, How::Fetched { stored })
            }));
        }
        let Some(lease) = self.route.buffers.take(0) else {
            return Ok(leave());
        };
        let (mut head, ()) = Response::new(()).into_parts();
        head.status = status;
        head.headers = headers;
        let verdict = self.judge(&head, Ok(()));
        self.whole(head, Bytes::new(), lease, verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    #[test]
    fn a_body_is_told_from_none_by_the_head() {
        let told = |name: &str, value: &str| {
            let request = Request::post("/").header(name, value).body(()).unwrap();
            sends_body(request.headers())
        };
        assert!(told("content-length", "5"));
        assert!(told("transfer-encoding", "chunked"));
        assert!(!told("content-length", "0"));
        assert!(!told("accept", "*/*"));
    }
}
