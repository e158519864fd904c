//! Decides whether what arrives is a request, which route covers it, and what it asks for.
//! It exists in two steps, because between finding the route and anything else somebody may have to be asked whether the
//! sender is allowed.
//! It refuses what could be read in two ways before anything else happens.

use std::{
    sync::{Arc, OnceLock, atomic::AtomicBool},
    time::Duration,
};

use evenkeel::Mono;
use evenkeel_http::{
    accept::{normalise_encoding, normalise_language},
    hop::strip_nominated,
    problem::ProblemKind,
};
use http::{
    HeaderMap, HeaderValue, Method,
    header::{ACCEPT_ENCODING, MAX_FORWARDS},
    request::Parts,
};
use parking_lot::Mutex;

use super::{
    app::App,
    authority,
    cached::Cached,
    exchange::{Exchange, Handed},
    framing,
    hints::Said,
    observing::Shadow,
    pass::Passed,
    peer::Peer,
    route::{Route, Whose},
    router::has_dot_segment,
    seat::Tried,
    served::{Nobody, Served},
};

/// Why a request becomes no call.
pub(super) struct Refused {
    pub(super) kind: ProblemKind,
    pub(super) detail: Option<String>,
    /// The methods that the address takes.
    pub(super) allow: Option<HeaderValue>,
    /// Where it ends could be read in two ways, so nothing behind it is read.
    pub(super) closes: bool,
}

impl Refused {
    const fn because(kind: ProblemKind, detail: Option<String>) -> Self {
        Self {
            kind,
            detail,
            allow: None,
            closes: false,
        }
    }

    fn of(nobody: Nobody) -> Self {
        match nobody {
            Nobody::NoRoute => Self::because(ProblemKind::NoSuchRoute, None),
            Nobody::TwoReadings => {
                let detail = "the target can be read in two ways, and one of them is not open to everybody";
                Self::because(ProblemKind::BadRequest, Some(detail.to_owned()))
            }
            Nobody::OtherMethods(allow) => Self {
                allow: Some(allow),
                ..Self::because(ProblemKind::MethodNotAllowed, None)
            },
        }
    }
}

/// What a request asks for.
pub(super) enum Asked {
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
    pub(super) request: Parts,
    pub(super) authority: HeaderValue,
}

/// Checks a request and finds the route that covers it; none for what the gateway itself can do.
pub(super) fn cover<'a>(
    app: &'a App,
    peer: &Peer,
    mut request: Parts,
) -> Result<Option<Covered<'a>>, Refused> {
    let bad = |detail: &str| Refused::because(ProblemKind::BadRequest, Some(detail.to_owned()));
    if request.method == Method::CONNECT || request.method == Method::TRACE {
        return Err(Refused::because(ProblemKind::MethodNotImplemented, None));
    }
    let authority = authority::of_request(&request.uri, &request.headers).map_err(bad)?;
    if !framing::can_be_read(&request.headers) {
        let why = "the body has another transfer coding than chunked, or more than one";
        return Err(Refused {
            closes: true,
            ..bad(why)
        });
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
pub(super) fn prepare(
    app: &App,
    peer: &Arc<Peer>,
    covered: Covered<'_>,
    arrived: Option<Mono>,
) -> Result<Asked, Refused> {
    let Covered {
        served,
        request,
        authority,
    } = covered;
    let said = request.extensions.get::<Arc<Said>>().cloned();
    let is_read = request.method == Method::GET || request.method == Method::HEAD;
    let (route, passing) = (served.reads.as_ref().filter(|_| is_read), served.passes.as_ref());
    let route = match (route, passing) {
        (Some(route), _) => route,
        (None, Some(passing)) => {
            let spent = arrived.map_or(Duration::ZERO, |at| app.engine().now().mono.since(at));
            let given = said
                .as_ref()
                .and_then(|said| said.deadline)
                .map_or(Duration::MAX, |waits| waits.saturating_sub(spent));
            if given.is_zero() {
                let detail = "its time was over; nothing was sent on";
                return Err(Refused::because(ProblemKind::TimedOut, Some(detail.to_owned())));
            }
            let shadow = served.observes.as_ref().and_then(|observing| {
                Shadow::of(observing, &request, |route| {
                    exchange(route, peer, request.clone(), &authority, arrived).ok()
                })
            });
            return Ok(Asked::Pass(Box::new(Passed {
                shadow,
                passing: Arc::clone(passing),
                served: Arc::clone(&app.served),
                request,
                authority,
                peer: Arc::clone(peer),
                personal: app.personal.clone(),
                wait: passing.wait_after(spent).min(given),
                said,
            })));
        }
        // Nobody who does not take the method is found.
        (None, None) => return Err(Refused::because(ProblemKind::NoSuchRoute, None)),
    };
    let (exchange, whose) = exchange(route, peer, request, &authority, arrived)?;
    Ok(Asked::Read(exchange, whose))
}

/// Prepares the call of a read.
fn exchange(
    route: &Arc<Route>,
    peer: &Arc<Peer>,
    mut request: Parts,
    authority: &HeaderValue,
    arrived: Option<Mono>,
) -> Result<(Arc<Exchange>, Whose), Refused> {
    let said = request.extensions.remove::<Arc<Said>>();
    let parts = route
        .scope_of(request.uri.path(), request.uri.query(), &request.headers)
        .map_err(|detail| Refused::because(ProblemKind::BadRequest, Some(detail)))?;
    let scheme = peer.scheme(&request.headers);
    let whose = Whose {
        scheme,
        authority: authority::normalised(authority, scheme),
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
            let looked = Cached::look(cache, &route.data, &whose, &request, is_void);
            Some(looked.map_err(|error| Refused::because(ProblemKind::BadRequest, Some(error.to_string())))?)
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
        tried: Tried::with(said.as_ref()),
        said,
        cached,
        arrived,
        void,
        began: OnceLock::new(),
        instead: None,
        alternate: OnceLock::new(),
    });
    Ok((exchange, whose))
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
