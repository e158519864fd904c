//! Decides the life of one request: is it one, which route, whose data, the call, the answer.
//! It exists as one short function, so that the order of the checks can be read in one look.
//! It refuses what could be read in two ways before anything else happens.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use evenkeel::{Answer, Mono, Protection, Together, Unanswered, Usable, http::HttpCache};
use evenkeel_http::{
    accept::{normalise_encoding, normalise_language},
    decision::Decision,
    facts::{Reuse, Sharing},
    hop::strip_nominated,
    problem::ProblemKind,
    reuse::given_from_shared,
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response,
    header::{
        ACCEPT_ENCODING, ALLOW, EXPECT, HOST, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, MAX_FORWARDS, RANGE,
    },
};
use http_body::Body as _;
use hyper::body::Incoming;
use parking_lot::Mutex;

use super::{
    app::App,
    authority,
    cached::Cached,
    exchange::{Exchange, Handed},
    framing, gate,
    outbound::Outbound,
    pass::Passed,
    peer::Peer,
    refuse, repeat,
    respond::respond,
    route::Whose,
    router::has_dot_segment,
    served::{Nobody, Served},
    trouble::Trouble,
    upload,
    watched::Watched,
    whole::{Reply, Whole},
};
use crate::telemetry::{AccessedRequest, CameTo};

/// Answers one request.
pub(crate) async fn handle(app: &App, peer: &Arc<Peer>, request: Request<Incoming>) -> Response<Watched> {
    let _in_flight = InFlight::begin(&app.in_flight);
    let (head, body) = request.into_parts();
    // It is written when it is dropped, wherever this is left.
    let mut record = app
        .access
        .as_ref()
        .map(|access| access.begin(described(&head, peer)));
    let mut protection = None;
    let (response, came_to) = answer(app, peer, head, body, &mut protection).await;
    if let Some(record) = &mut record {
        record.status = Some(response.status());
        record.protection = protection;
        record.came_to = came_to;
    }
    response.map(|body| Watched::new(body, record))
}

/// Returns what is written down of a request.
fn described(head: &http::request::Parts, peer: &Peer) -> AccessedRequest {
    let host = head
        .headers
        .get(HOST)
        .map(HeaderValue::as_bytes)
        .unwrap_or_default();
    AccessedRequest {
        method: head.method.clone(),
        host: String::from_utf8_lossy(host).into_owned(),
        path: head.uri.path().to_owned(),
        peer: peer.to_string(),
    }
}

/// Returns the answer to one request, and what its call came to if it became one.
async fn answer(
    app: &App,
    peer: &Arc<Peer>,
    head: http::request::Parts,
    body: Incoming,
    protection: &mut Option<Protection>,
) -> (Response<Outbound>, Option<CameTo>) {
    let is_expecting = !body.is_end_stream() && head.headers.contains_key(EXPECT);
    let prepared = match cover(app, peer, head) {
        Ok(Some(covered)) if covered.served.gate.is_some() => {
            // Boxed, so that requests that nobody decides about do not carry the room for it.
            match Box::pin(gate::pass(app, peer, covered)).await {
                Ok((covered, arrived)) => {
                    *protection = Some(Protection::Allowed);
                    prepare(app, peer, covered, Some(arrived))
                }
                Err(stopped) => {
                    *protection = Some(stopped.protection);
                    upload::leave(body, is_expecting);
                    return (stopped.response, stopped.came_to);
                }
            }
        }
        Ok(Some(covered)) => prepare(app, peer, covered, None),
        Ok(None) => Ok(Asked::Options),
        Err(refused) => Err(refused),
    };
    let response = match prepared {
        // A body of a read stays here: no answer that others may get depends on it.
        Ok(Asked::Read(exchange, whose)) => {
            let answered = read(app, &exchange, whose).await;
            upload::leave(body, is_expecting);
            return answered;
        }
        Ok(Asked::Pass(passed)) => match passed.answer(body, &app.labels).await {
            Ok((response, came_to)) => return (response, Some(came_to)),
            Err((kind, detail)) => return (misdirected(app, kind, Some(detail)), None),
        },
        Ok(Asked::Options) => refuse::options(),
        Err(Refused { kind, detail, allow }) => {
            let mut response = misdirected(app, kind, detail.as_deref());
            if let Some(allow) = allow {
                response.headers_mut().insert(ALLOW, allow);
            }
            response
        }
    };
    upload::leave(body, is_expecting);
    (response, None)
}

fn misdirected(app: &App, kind: ProblemKind, detail: Option<&str>) -> Response<Outbound> {
    app.note_misdirected(kind);
    refuse::misdirected(kind, detail)
}

/// Makes the call of a read and answers with its end.
async fn read(app: &App, exchange: &Arc<Exchange>, whose: Whose) -> (Response<Outbound>, Option<CameTo>) {
    if let Some((cache, cached)) = exchange.route.cache.as_ref().zip(exchange.cached.as_ref()) {
        return read_cached(app, exchange, cache, cached).await;
    }
    let usable = |held: &Reply| exchange.may_be_given(held);
    let target = exchange
        .request
        .uri
        .path_and_query()
        .map_or("", |target| target.as_str());
    let work = Arc::clone(exchange);
    let work = move |_call, permit| {
        let work = Arc::clone(&work);
        async move { work.attempt(permit).await }
    };
    let (guard, late);
    guard = match exchange.arrived {
        None => &exchange.route.guard,
        Some(at) => {
            late = exchange.route.guard.arrived_at(at);
            &late
        }
    };
    let shares = exchange.route.coalesces || guard.contract().refreshes();
    let is_own = shares && exchange.is_one_callers_own();
    let usable: Usable<'_, Reply> = Some(&usable);
    let end = match (exchange.repeats(), is_own) {
        (false, false) => guard.call_work(whose, target, usable, work).await,
        (false, true) => guard.call_alone(whose, target, usable, work).await,
        (true, false) => guard.call_repeatable_work(whose, target, usable, work).await,
        (true, true) => guard.call_repeatable_alone(whose, target, usable, work).await,
    };
    ended(app, exchange, end)
}

/// Answers one request on a route that caches.
async fn read_cached(
    app: &App,
    exchange: &Arc<Exchange>,
    cache: &HttpCache,
    cached: &Cached,
) -> (Response<Outbound>, Option<CameTo>) {
    if cached.looked.request().directives.only_if_cached
        && cached.first(cache, exchange.route.engine.now().mono) == Decision::OnlyIfCached
    {
        app.note_misdirected(ProblemKind::NothingKept);
        return (refuse::nothing_kept(), None);
    }
    let bring = |moment, now| exchange.bring(cache, cached, moment, now);
    let key = || cache.together(&cached.key, &cached.looked, &exchange.request.headers);
    let usable = |fetched: &Reply| exchange.may_share(cache, cached, fetched);
    let together = if exchange.asks_alone(cache, cached) {
        Together::Alone(&key)
    } else {
        Together::Shared(&key)
    };
    let work = Arc::clone(exchange);
    let work = move |_call, permit| {
        let work = Arc::clone(&work);
        async move { work.attempt(permit).await }
    };
    let (guard, late);
    guard = match exchange.arrived {
        None => &exchange.route.guard,
        Some(at) => {
            late = exchange.route.guard.arrived_at(at);
            &late
        }
    };
    let end = guard.call_held(&bring, together, Some(&usable), work).await;
    ended(app, exchange, end)
}

/// Answers with what a call came to.
fn ended(
    app: &App,
    exchange: &Exchange,
    end: Result<Answer<Reply, Trouble>, Unanswered<Trouble>>,
) -> (Response<Outbound>, Option<CameTo>) {
    // Only the line about the request wants to know.
    let came_to = app
        .access
        .as_ref()
        .map(|_| CameTo::of(&exchange.route.name, &end));
    let mut response = respond(exchange, end, &app.labels);
    if exchange.repeats() {
        repeat::mark(&mut response);
    }
    (response, came_to)
}

/// Why a request becomes no call.
struct Refused {
    kind: ProblemKind,
    detail: Option<String>,
    /// The methods that the address takes.
    allow: Option<HeaderValue>,
}

impl Refused {
    const fn because(kind: ProblemKind, detail: Option<String>) -> Self {
        Self {
            kind,
            detail,
            allow: None,
        }
    }

    fn of(nobody: Nobody) -> Self {
        match nobody {
            Nobody::NoRoute => Self::because(ProblemKind::NoSuchRoute, None),
            Nobody::OtherMethods(allow) => Self {
                allow: Some(allow),
                ..Self::because(ProblemKind::MethodNotAllowed, None)
            },
        }
    }
}

/// What a request asks for.
enum Asked {
    /// An answer of class read.
    Read(Arc<Exchange>, Whose),
    /// To be forwarded.
    Pass(Box<Passed>),
    /// What the gateway itself can do.
    Options,
}

/// A request and the route that covers it.
pub(super) struct Covered<'a> {
    pub(super) served: &'a Served,
    pub(super) request: http::request::Parts,
    pub(super) authority: HeaderValue,
}

/// Checks a request and finds the route that covers it; none for what the gateway itself can do.
fn cover<'a>(
    app: &'a App,
    peer: &Peer,
    mut request: http::request::Parts,
) -> Result<Option<Covered<'a>>, Refused> {
    let bad = |detail: &str| Refused::because(ProblemKind::BadRequest, Some(detail.to_owned()));
    if request.method == Method::CONNECT || request.method == Method::TRACE {
        return Err(Refused::because(ProblemKind::MethodNotImplemented, None));
    }
    let authority = authority::of_request(&request.uri, &request.headers).map_err(bad)?;
    if !framing::can_be_read(&request.headers) {
        return Err(bad(
            "the body has another transfer coding than chunked, or more than one",
        ));
    }
    // Nothing is decided by a field that goes no further, nor by one that its sender may not say: neither a route nor a
    // copy.
    strip_nominated(&mut request.headers);
    app.personal.strip(&mut request.headers, peer.is_trusted());
    let path = request.uri.path();
    if has_dot_segment(path) {
        return Err(bad("the path holds a dot segment"));
    }
    if request.method == Method::OPTIONS && (path == "*" || is_last_hop(&request.headers).map_err(bad)?) {
        return Ok(None);
    }
    let served = app.served.find(&request, &authority).map_err(Refused::of)?;
    Ok(Some(Covered {
        served,
        request,
        authority,
    }))
}

/// Finds out what a request asks for. Where somebody has decided about it first, it arrived before now.
fn prepare(
    app: &App,
    peer: &Arc<Peer>,
    covered: Covered<'_>,
    arrived: Option<Mono>,
) -> Result<Asked, Refused> {
    let bad = |detail: &str| Refused::because(ProblemKind::BadRequest, Some(detail.to_owned()));
    let Covered {
        served,
        mut request,
        authority,
    } = covered;
    let is_read = request.method == Method::GET || request.method == Method::HEAD;
    let (route, passing) = (served.reads.as_ref().filter(|_| is_read), served.passes.as_ref());
    let route = match (route, passing) {
        (Some(route), _) => route,
        (None, Some(passing)) => {
            let keepers = if request.method.is_safe() {
                Vec::new()
            } else {
                app.served.keepers(&request)
            };
            let spent = arrived.map_or(Duration::ZERO, |at| app.engine.now().mono.since(at));
            return Ok(Asked::Pass(Box::new(Passed {
                passing: Arc::clone(passing),
                keepers,
                request,
                authority,
                peer: Arc::clone(peer),
                personal: app.personal.clone(),
                wait: passing.wait_after(spent),
            })));
        }
        // Nobody who does not take the method is found.
        (None, None) => return Err(Refused::because(ProblemKind::NoSuchRoute, None)),
    };
    let parts = route
        .scope_of(request.uri.path(), request.uri.query(), &request.headers)
        .map_err(|detail| Refused::because(ProblemKind::BadRequest, Some(detail)))?;
    let scheme = peer.scheme(&request.headers);
    let whose = Whose {
        scheme,
        authority: authority::normalised(&authority, scheme),
        parts,
    };
    for name in &route.normalise {
        if *name == ACCEPT_ENCODING {
            normalise_encoding(&mut request.headers);
        } else {
            normalise_language(&mut request.headers);
        }
    }
    let target = request.uri.path_and_query().map_or("", |target| target.as_str());
    let void = route.void_places(&whose, target, &request.headers);
    let cached = match &route.cache {
        None => None,
        Some(cache) => {
            let is_void = |began| void.is_some_and(|places| route.is_void(places, began));
            let looked = Cached::look(cache, &route.name, &whose, &request, is_void);
            Some(looked.map_err(|error| bad(&error.to_string()))?)
        }
    };
    let exchange = Arc::new(Exchange {
        route: Arc::clone(route),
        request,
        // What is in the key is what is asked for: a spelling that only the origin sees could change its answer (C32).
        authority: whose.authority.clone(),
        peer: Arc::clone(peer),
        handed: Mutex::new(Handed::default()),
        connected: AtomicBool::new(false),
        cached,
        arrived,
        void,
        began: OnceLock::new(),
    });
    Ok(Asked::Read(exchange, whose))
}

/// Tells whether an `OPTIONS` request says that it goes no further (rule H13).
fn is_last_hop(headers: &HeaderMap) -> Result<bool, &'static str> {
    let mut lines = headers.get_all(MAX_FORWARDS).iter();
    let Some(line) = lines.next() else {
        return Ok(false);
    };
    let digits = line.as_bytes();
    if lines.next().is_some() || digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err("the Max-Forwards field is not one number");
    }
    Ok(digits.iter().all(|digit| *digit == b'0'))
}

/// Fields by which a request asks for less than the whole answer. On routes that keep answers they stay here.
const NARROWING: [HeaderName; 4] = [RANGE, IF_RANGE, IF_NONE_MATCH, IF_MODIFIED_SINCE];

impl Exchange {
    /// Tells whether the request may be sent once more after a failure.
    pub(super) fn repeats(&self) -> bool {
        self.route.retries && repeat::is_repeatable(&self.request.method)
    }

    /// Tells whether the answer will be nobody else's, whatever it says: it is then not asked for together.
    fn is_one_callers_own(&self) -> bool {
        let headers = &self.request.headers;
        self.asks_for_itself(&self.facts(), true)
            || (!self.route.keeps && NARROWING.iter().any(|name| headers.contains_key(name)))
    }

    /// Tells whether what is held, or was fetched for somebody else just now, may be given to this request.
    ///
    /// Asked on every rung that gives a copy: identity (C12, cookies) and `Vary` (C13).
    fn may_be_given(&self, held: &Reply) -> bool {
        match held {
            Reply::Whole(whole) => self.may_be_given_whole(whole),
            Reply::Streamed(..) | Reply::Cached(..) | Reply::Default(_) => false,
        }
    }

    /// The same, of a whole answer; also of an error that somebody else waited for.
    pub(super) fn may_be_given_whole(&self, whole: &Whole) -> bool {
        whole.shared.as_ref().is_some_and(|shared| {
            // What is kept for one principal is under a key that nobody else has.
            let is_given = self.route.sharing == Sharing::Private
                || given_from_shared(&self.facts(), &shared.facts, Reuse::Stale).is_ok();
            is_given && shared.variant.matches(&self.request.headers) && !self.is_void(whole.began)
        })
    }
}

/// Counts a request from its arrival to the head of its answer.
struct InFlight<'a>(&'a AtomicUsize);

impl<'a> InFlight<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
