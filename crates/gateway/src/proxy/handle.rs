//! Decides the life of one request: is it one, which route, who may, whose data, the call, the answer.
//! It exists as one short function, so that the order of the checks can be read in one look.
//! It refuses what could be read in two ways before anything else happens.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use evenkeel::{Answer, Call, Protection, Together, Unanswered, Usable, http::HttpCache};
use evenkeel_http::{
    decision::Decision,
    facts::{Reuse, Sharing},
    problem::ProblemKind,
    reuse::given_from_shared,
};
use http::{
    HeaderName, HeaderValue, Request, Response,
    header::{ALLOW, CONNECTION, EXPECT, HOST, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, RANGE},
};
use http_body::Body as _;
use hyper::body::Incoming;

use super::{
    alternate::Asking,
    app::App,
    arrive::{Asked, Refused, cover, prepare},
    cached::Cached,
    exchange::Exchange,
    gate,
    hints::Said,
    observing::Shadow,
    outbound::Outbound,
    peer::Peer,
    refuse, repeat,
    respond::respond,
    route::{Guard, Whose},
    trouble::Trouble,
    upload,
    watched::Watched,
    whole::{Reply, Whole},
};
use crate::telemetry::{AccessedRequest, CameTo};

/// Answers one request.
pub(crate) async fn handle(app: &App, peer: &Arc<Peer>, request: Request<Incoming>) -> Response<Watched> {
    let _in_flight = InFlight::begin(&app.process.in_flight);
    let (mut head, body) = request.into_parts();
    let said = app.hints.read(&mut head.headers, peer.is_trusted());
    if let Some(said) = said {
        head.extensions.insert(Arc::new(said));
    }
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
        trace: head
            .extensions
            .get::<Arc<Said>>()
            .and_then(|said| Some(said.trace.as_ref()?.0.id())),
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
        Ok(Asked::Read(mut exchange, whose)) => {
            // Held until the call has ended.
            let _brought = match app.process.store.get() {
                Some(store) => store.bring(&mut exchange, &whose).await,
                None => None,
            };
            let answered = read(app, &exchange, whose).await;
            upload::leave(body, is_expecting);
            return answered;
        }
        Ok(Asked::Pass(mut passed)) => {
            let watching = passed.shadow.take().map(Shadow::begin);
            let retires = !passed.request.method.is_safe();
            let answered = passed.answer(body, &app.process.labels).await;
            if let Some(store) = app.process.store.get().filter(|_| retires) {
                store.settled().await;
            }
            match answered {
                Ok((mut response, came_to)) => {
                    if let Some(watching) = watching {
                        watching.came(&mut response);
                    }
                    return (response, Some(came_to));
                }
                Err((kind, detail)) => return (misdirected(app, kind, Some(detail)), None),
            }
        }
        Ok(Asked::Options) => refuse::options(),
        Err(Refused {
            kind,
            detail,
            allow,
            closes,
        }) => {
            let mut response = misdirected(app, kind, detail.as_deref());
            if closes {
                response
                    .headers_mut()
                    .insert(CONNECTION, HeaderValue::from_static("close"));
            }
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
    app.process.note_misdirected(kind);
    refuse::misdirected(kind, detail)
}

/// Makes the call of a read and answers with its end.
async fn read(app: &App, exchange: &Arc<Exchange>, whose: Whose) -> (Response<Outbound>, Option<CameTo>) {
    let asking = Asking::of(exchange, whose);
    if let Some((cache, cached)) = exchange.route.cache.as_ref().zip(exchange.cached.as_ref()) {
        return read_cached(app, exchange, asking, (cache, cached)).await;
    }
    let usable = |held: &Reply| exchange.may_be_given(held);
    let target = exchange
        .request
        .uri
        .path_and_query()
        .map_or("", |target| target.as_str());
    let work = Arc::clone(exchange);
    let work = move |call: Call<'static>, permit| {
        let work = Arc::clone(&work);
        async move {
            work.note_remaining(|| call.remaining());
            work.attempt(permit).await
        }
    };
    let guard = exchange.guard();
    let shares = exchange.route.coalesces || guard.contract().refreshes();
    let is_own = shares && exchange.is_one_callers_own();
    let usable: Usable<'_, Reply> = Some(&usable);
    exchange.note_coverage(&asking, target, usable);
    let end = match (exchange.repeats(), is_own) {
        (false, false) => guard.call_work(asking, target, usable, work).await,
        (false, true) => guard.call_alone(asking, target, usable, work).await,
        (true, false) => guard.call_repeatable_work(asking, target, usable, work).await,
        (true, true) => guard.call_repeatable_alone(asking, target, usable, work).await,
    };
    ended(app, exchange, end)
}

/// Answers one request on a route that caches.
async fn read_cached(
    app: &App,
    exchange: &Arc<Exchange>,
    asking: Asking,
    (cache, cached): (&HttpCache, &Cached),
) -> (Response<Outbound>, Option<CameTo>) {
    if cached.looked.request().directives.only_if_cached
        && cached.first(cache, exchange.route.engine.now().mono) == Decision::OnlyIfCached
    {
        app.process.note_misdirected(ProblemKind::NothingKept);
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
    let work = move |call: Call<'static>, permit| {
        let work = Arc::clone(&work);
        async move {
            work.note_remaining(|| call.remaining());
            work.attempt(permit).await
        }
    };
    let guard = exchange.guard();
    let end = guard
        .call_held(asking, "", &bring, together, Some(&usable), work)
        .await;
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
    exchange.note_end(&end);
    let mut response = respond(exchange, end, &app.process.labels);
    if exchange.repeats() {
        repeat::mark(&mut response);
    }
    (response, came_to)
}

/// Fields by which a request asks for less than the whole answer. On routes that keep answers they stay here.
const NARROWING: [HeaderName; 4] = [RANGE, IF_RANGE, IF_NONE_MATCH, IF_MODIFIED_SINCE];

impl Exchange {
    /// Returns the guard of the route, as this request meets it: with the time that was spent before, the time that its
    /// sender waits, and how much it matters.
    fn guard(&self) -> Cow<'_, Guard> {
        let mut guard = Cow::Borrowed(&self.route.guard);
        if let Some(at) = self.arrived {
            guard = Cow::Owned(guard.arrived_at(at));
        }
        let Some(said) = &self.said else { return guard };
        if let Some(waits) = said.deadline {
            let from = self.arrived.unwrap_or_else(|| self.route.engine.now().mono);
            guard = Cow::Owned(guard.ending_by(from.after(waits)));
        }
        if let Some(criticality) = said.criticality {
            guard = Cow::Owned(guard.with_criticality(criticality));
        }
        guard
    }

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
    pub(super) fn may_be_given(&self, held: &Reply) -> bool {
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
