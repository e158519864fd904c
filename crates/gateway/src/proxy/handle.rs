//! Decides the life of one request: is it one, which route, whose data, the call, the answer.
//! It exists as one short function, so that the order of the checks can be read in one look.
//! It refuses what could be read in two ways before anything else happens.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use evenkeel::Usable;
use evenkeel_http::{facts::Reuse, problem::ProblemKind, reuse::given_from_shared};
use http::{
    HeaderName, Method, Request, Response,
    header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE},
};
use hyper::body::Incoming;
use parking_lot::Mutex;

use super::{
    app::App,
    authority,
    exchange::{Exchange, Handed},
    forward::Peer,
    outbound::Outbound,
    refuse, repeat,
    respond::respond,
    route::Whose,
    router::has_dot_segment,
    whole::Reply,
};

/// Answers one request.
pub(crate) async fn handle(app: &App, peer: &Arc<Peer>, request: Request<Incoming>) -> Response<Outbound> {
    let _in_flight = InFlight::begin(&app.in_flight);
    let (request, _body) = request.into_parts();
    let (exchange, whose) = match prepare(app, peer, request) {
        Ok(prepared) => prepared,
        Err((kind, detail)) => {
            app.note_misdirected(kind);
            return refuse::misdirected(kind, detail.as_deref());
        }
    };
    let usable = |held: &Reply| exchange.may_be_given(held);
    let target = exchange
        .request
        .uri
        .path_and_query()
        .map_or("", |target| target.as_str());
    let work = Arc::clone(&exchange);
    let work = move |_call, permit| {
        let work = Arc::clone(&work);
        async move {
            work.run(permit)
                .await
                .inspect_err(|trouble| work.route.upstream.note(trouble))
        }
    };
    let guard = &exchange.route.guard;
    let is_own = exchange.route.coalesces && exchange.is_one_callers_own();
    let repeats = exchange.repeats();
    let usable: Usable<'_, Reply> = Some(&usable);
    let end = match (repeats, is_own) {
        (false, false) => guard.call_work(whose, target, usable, work).await,
        (false, true) => guard.call_alone(whose, target, usable, work).await,
        (true, false) => guard.call_repeatable_work(whose, target, usable, work).await,
        (true, true) => guard.call_repeatable_alone(whose, target, usable, work).await,
    };
    let mut response = respond(&exchange, end, &app.labels);
    if repeats {
        repeat::mark(&mut response);
    }
    response
}

type Refused = (ProblemKind, Option<String>);

/// Checks a request and finds out what it asks for.
fn prepare(
    app: &App,
    peer: &Arc<Peer>,
    request: http::request::Parts,
) -> Result<(Arc<Exchange>, Whose), Refused> {
    let bad = |detail: &str| (ProblemKind::BadRequest, Some(detail.to_owned()));
    let authority = authority::of_request(&request.uri, &request.headers).map_err(bad)?;
    let path = request.uri.path();
    if has_dot_segment(path) {
        return Err(bad("the path holds a dot segment"));
    }
    let route = app
        .router
        .find(path)
        .and_then(|number| app.routes.get(number))
        .ok_or((ProblemKind::NoSuchRoute, None))?;
    if request.method != Method::GET && request.method != Method::HEAD {
        return Err((ProblemKind::MethodNotAllowed, None));
    }
    let parts = route
        .scope_of(path, request.uri.query())
        .map_err(|detail| (ProblemKind::BadRequest, Some(detail)))?;
    let whose = Whose {
        authority: authority::normalised(&authority),
        parts,
    };
    let exchange = Arc::new(Exchange {
        route: Arc::clone(route),
        request,
        authority,
        peer: Arc::clone(peer),
        handed: Mutex::new(Handed::default()),
        connected: AtomicBool::new(false),
    });
    Ok((exchange, whose))
}

/// Fields by which a request asks for less than the whole answer. On routes that keep answers they stay here.
const NARROWING: [HeaderName; 4] = [RANGE, IF_RANGE, IF_NONE_MATCH, IF_MODIFIED_SINCE];
/// Fields by which a request may get no answer at all; the origin judges them on every route.
const PRECONDITIONS: [HeaderName; 2] = [IF_MATCH, IF_UNMODIFIED_SINCE];

impl Exchange {
    /// Tells whether the request may be sent once more after a failure.
    pub(super) fn repeats(&self) -> bool {
        self.route.retries && repeat::is_repeatable(&self.request.method)
    }

    /// Tells whether the answer will be nobody else's, whatever it says: it is then not asked for together.
    fn is_one_callers_own(&self) -> bool {
        let facts = self.facts();
        let headers = &self.request.headers;
        self.request.method != Method::GET
            || facts.authorization
            || facts.cookies
            || facts.directives.no_store
            || facts.directives.unreadable
            || PRECONDITIONS.iter().any(|name| headers.contains_key(name))
            || (!self.route.keeps && NARROWING.iter().any(|name| headers.contains_key(name)))
    }

    /// Tells whether what is held, or was fetched for somebody else just now, may be given to this request.
    ///
    /// Asked on every rung that gives a copy: identity (C12, cookies) and `Vary` (C13).
    fn may_be_given(&self, held: &Reply) -> bool {
        let Reply::Whole(whole) = held else {
            return false;
        };
        whole.shared.as_ref().is_some_and(|shared| {
            given_from_shared(&self.facts(), &shared.facts, Reuse::Stale).is_ok()
                && shared.variant.matches(&self.request.headers)
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
