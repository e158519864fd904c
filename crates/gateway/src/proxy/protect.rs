//! Decides how the authority of a route is asked about a request, and what its answer means: allow, deny, or neither.
//! It exists before every rung, so that no copy, no default and no dependency is reached by somebody not allowed.
//! It refuses to read a decision out of anything but a whole answer with a status that says one.

use std::{
    error::Error,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use evenkeel::{Advice, Class, Decided, Decision, Dependency, Engine, Mono, Problems, Protect};
use evenkeel_http::hop::{Via, strip_hop_by_hop};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{CACHE_CONTROL, CONTENT_LENGTH, HOST, TRAILER},
    request::Parts,
};

use super::{
    framing::{self, Asked},
    hints::Said,
    identity,
    limits::Limits,
    link::Outgoing,
    outbound::Outbound,
    peer::Peer,
    repeat,
    seat::{CameTo, Tried},
    stream::Stream,
    trouble::Trouble,
    upload::Upload,
    upstream::{Head, Upstream},
};
use crate::config::{self, RewriteHost, ScopePart};

/// The most bytes of a body that says why somebody is denied; a larger one is left out.
pub const DENIAL_MAX: usize = 64 << 10;
const X_FORWARDED_METHOD: HeaderName = HeaderName::from_static("x-forwarded-method");
const X_FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// What an authority says of a request that it allows: the fields that are copied.
type Known = Arc<HeaderMap>;

/// The door of one route.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) authority: Arc<str>,
    pub(crate) route: Arc<str>,
    pub(crate) guard: Protect<Known, Arc<Denial>, NoDecision>,
    asking: Arc<Asking>,
    consume: Vec<HeaderName>,
    /// Repeats the question after an outage.
    repeats: bool,
    turns: AtomicU32,
}

/// How the authority is asked and understood.
#[derive(Debug)]
struct Asking {
    upstream: Arc<Upstream>,
    via: Via,
    limits: Limits,
    engine: Engine,
    method: Method,
    target: Uri,
    headers: Vec<HeaderName>,
    copy: Vec<HeaderName>,
    deny: Vec<StatusCode>,
    /// Parts of the identity that the route cannot do without.
    needed: Vec<HeaderName>,
}

/// A denial, as the client is told it.
#[derive(Debug)]
pub(crate) struct Denial {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// Why an authority that was asked did not decide.
#[derive(Clone, Debug)]
pub(crate) enum NoDecision {
    /// It did not answer, or not in whole.
    Trouble(Trouble),
    /// It answered with a status that says neither yes nor no, and this about asking again.
    Status(StatusCode, Class, Advice),
    /// It said yes, and did not say whom to.
    Nobody(HeaderName, &'static str),
}

impl NoDecision {
    fn class(&self) -> Class {
        match self {
            Self::Trouble(trouble) => trouble.class(),
            Self::Status(_, class, _) => *class,
            Self::Nobody(..) => Class::Fault,
        }
    }
}

impl fmt::Display for NoDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trouble(trouble) => trouble.fmt(f),
            Self::Status(status, ..) => write!(f, "status {}, which is no decision", status.as_u16()),
            Self::Nobody(name, why) => write!(f, "the field {name} {why}"),
        }
    }
}

impl Error for NoDecision {}

/// What became of a request at a gate.
pub(super) enum Passed {
    /// It may go on.
    Allowed,
    /// The client is told this.
    Denied(Response<Outbound>),
    /// Nobody decided. Asking again may help after this, where that is known.
    Unavailable(Option<Duration>),
}

/// There is no such authority, or its dependency has problems.
#[derive(Debug)]
pub(super) struct NotBuilt;

/// An authority and who is asked.
pub(super) type AtGate<'a> = (&'a config::Authority, &'a Dependency, &'a Arc<Upstream>);

impl Gate {
    /// Finds who decides about a route, if anybody does.
    ///
    /// # Errors
    /// When the one who should was not built, which has been told.
    pub(super) fn of<'a>(
        contract: &'a config::Contract,
        route: &config::Route,
        dependencies: &'a [(Dependency, Arc<Upstream>)],
    ) -> Result<Option<AtGate<'a>>, NotBuilt> {
        let Some(name) = &route.authorize else {
            return Ok(None);
        };
        let authority = contract.authorities.iter().find(|known| known.name == *name);
        let authority = authority.ok_or(NotBuilt)?;
        let (dependency, upstream) = dependencies
            .iter()
            .find(|(dependency, _)| dependency.name() == authority.from)
            .ok_or(NotBuilt)?;
        Ok(Some((authority, dependency, upstream)))
    }

    /// Builds the door of a route.
    ///
    /// # Errors
    /// Every problem that the engine finds with it.
    pub(crate) fn build(
        route: &config::Route,
        (authority, dependency, upstream): AtGate<'_>,
        before: Option<&Self>,
        common: &super::route::Common,
    ) -> Result<Self, Problems> {
        let deadline = authority.deadline.unwrap_or(route.deadline).min(route.deadline);
        let mut builder = common
            .engine
            .protect(&route.name)
            .from(dependency)
            .deadline(deadline)
            .classify(NoDecision::class)
            .advice(|error| match error {
                NoDecision::Status(_, _, advice) => *advice,
                NoDecision::Trouble(_) | NoDecision::Nobody(..) => Advice::Whenever,
            })
            .criticality(route.criticality);
        if let Some(before) = before {
            builder = builder.succeeds(&before.guard);
        }
        let guard = builder.build()?;
        let needed = route.scope.iter().filter_map(|part| match part {
            ScopePart::Identity(_, name) => Some(name.clone()),
            ScopePart::Path(_) | ScopePart::Query(_) => None,
        });
        Ok(Self {
            authority: authority.name.as_str().into(),
            route: route.name.as_str().into(),
            guard,
            asking: Arc::new(Asking {
                upstream: Arc::clone(upstream),
                via: common.via.clone(),
                limits: common.limits,
                engine: common.engine.clone(),
                method: authority.method.clone(),
                target: Uri::from(authority.path.clone()),
                headers: authority.headers.clone(),
                copy: authority.copy.clone(),
                deny: authority.deny.clone(),
                needed: needed.collect(),
            }),
            consume: authority.consume.clone(),
            repeats: dependency.contract().retry().is_some() && repeat::is_repeatable(&authority.method),
            turns: AtomicU32::new(0),
        })
    }

    /// Numbers those who are told when to come back; after 2^32 from zero again.
    pub(super) fn next_turn(&self) -> u32 {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }

    /// Has a request decided about. Where it is allowed, what the authority says of its sender takes the place of what the
    /// client said, and what ends with the authority is gone.
    pub(super) async fn decide(
        &self,
        arrived: Mono,
        request: &mut Parts,
        authority: &HeaderValue,
        peer: &Peer,
    ) -> Passed {
        identity::take_twins(&mut request.headers, &self.asking.headers);
        let question = Arc::new(self.asking.question(request, authority, peer));
        let asking = Arc::clone(&self.asking);
        let mut guard = self.guard.arrived_at(arrived);
        if let Some(said) = question.tried.said() {
            if let Some(waits) = said.deadline {
                guard = guard.ending_by(arrived.after(waits));
            }
            if let Some(criticality) = said.criticality {
                guard = guard.with_criticality(criticality);
            }
        }
        let decided = if self.repeats {
            guard
                .decide_repeatable(move |call| {
                    let (asking, question) = (Arc::clone(&asking), Arc::clone(&question));
                    async move { asking.ask(&question, || call.remaining()).await }
                })
                .await
        } else {
            guard
                .decide(|call| async move { asking.ask(&question, || call.remaining()).await })
                .await
        };
        match decided {
            Decided::Allow(known) => {
                for name in &self.consume {
                    request.headers.remove(name);
                }
                identity::say_instead(&mut request.headers, &self.asking.copy, &known);
                Passed::Allowed
            }
            Decided::Deny(denial) => Passed::Denied(denial.response(&request.method)),
            Decided::Unavailable(nobody) => Passed::Unavailable(nobody.retry_after),
        }
    }
}

/// What an authority is asked, without a body.
#[derive(Debug)]
struct Question {
    method: Method,
    target: Uri,
    headers: HeaderMap,
    tried: Tried,
}

impl Question {
    fn outgoing(&self) -> Outgoing {
        let mut outgoing = Request::new(Upload::Empty);
        *outgoing.method_mut() = self.method.clone();
        *outgoing.uri_mut() = self.target.clone();
        *outgoing.headers_mut() = self.headers.clone();
        outgoing
    }
}

impl Asking {
    /// Returns where a question that is put now goes.
    fn upstream(&self) -> &Arc<Upstream> {
        Upstream::newest(&self.upstream)
    }

    /// Makes the question about a request: the fields that are named, and what it is.
    fn question(&self, request: &Parts, authority: &HeaderValue, peer: &Peer) -> Question {
        let rewrite = &self.upstream().rewrite;
        let mut headers = HeaderMap::with_capacity(self.headers.len() + 10);
        for name in &self.headers {
            for line in request.headers.get_all(name) {
                headers.append(name.clone(), line.clone());
            }
        }
        rewrite.request.apply(&mut headers);
        self.via.append(&mut headers, request.version);
        peer.tell(&request.headers, &mut headers);
        // A method is a token, and a target visible ASCII.
        let method = HeaderValue::from_str(request.method.as_str());
        let target = request.uri.path_and_query().map_or("/", |target| target.as_str());
        for (name, value) in [
            (X_FORWARDED_METHOD, method),
            (X_FORWARDED_URI, HeaderValue::from_str(target)),
        ] {
            if let Ok(value) = value {
                headers.insert(name, value);
            }
        }
        headers.insert(X_FORWARDED_HOST, authority.clone());
        let host = match &rewrite.host {
            RewriteHost::Given(host) => host,
            // Where the contract asks for that, each address is told its own.
            RewriteHost::Keep | RewriteHost::Upstream => authority,
        };
        headers.insert(HOST, host.clone());
        if self.method == Method::POST {
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        Question {
            method: self.method.clone(),
            target: rewrite
                .target(&self.target)
                .unwrap_or_else(|| self.target.clone()),
            headers,
            tried: Tried::with(request.extensions.get::<Arc<Said>>()),
        }
    }

    async fn ask(
        &self,
        question: &Question,
        remaining: impl FnOnce() -> Duration,
    ) -> Result<Decision<Known, Arc<Denial>>, NoDecision> {
        if self.upstream().is_told_the_time() {
            question.tried.ends(self.engine.now().mono.after(remaining()));
        }
        let decision = self.answered(question).await;
        match &decision {
            Err(NoDecision::Trouble(trouble)) => self.upstream().note(trouble),
            Err(NoDecision::Status(status, class, _)) => {
                self.upstream().note(&Trouble::ErrorAnswer(*status, *class, None));
            }
            Ok(_) | Err(NoDecision::Nobody(..)) => {}
        }
        decision
    }

    async fn answered(&self, question: &Question) -> Result<Decision<Known, Arc<Denial>>, NoDecision> {
        // One and the same from here on: a connection goes back to where it came from.
        let upstream = self.upstream();
        let head = if repeat::is_repeatable(&self.method) {
            upstream.send(&question.tried, || question.outgoing()).await
        } else {
            let left = AtomicBool::new(false);
            upstream
                .send_once(&question.tried, question.outgoing(), &left)
                .await
        };
        let Head { response, mut link } = head.map_err(NoDecision::Trouble)?;
        let (mut head, body) = response.into_parts();
        let asked = Asked {
            conditional: false,
            range: false,
        };
        framing::check(&mut head, asked)
            .inspect_err(|_| link.came_to(CameTo::Failed))
            .map_err(NoDecision::Trouble)?;
        let home = Arc::clone(upstream);
        let stream = Stream::new(body, link, home, None, self.limits.stream_idle);
        // What is cut is no answer, whatever its head says.
        let body = whole(stream).await.map_err(NoDecision::Trouble)?;
        strip_hop_by_hop(&mut head.headers);
        let status = head.status;
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) || self.deny.contains(&status) {
            upstream.rewrite.response.apply(&mut head.headers);
            self.via.append(&mut head.headers, head.version);
            let denial = Denial {
                status,
                headers: head.headers,
                body: body.unwrap_or_default(),
            };
            return Ok(Decision::Deny(Arc::new(denial)));
        }
        if !status.is_success() {
            let now = self.engine.now().wall;
            let advice = repeat::advice(&head.headers, now);
            return Err(NoDecision::Status(status, upstream.classify.of(status), advice));
        }
        for name in &self.needed {
            identity::part(&head.headers, name).map_err(|why| NoDecision::Nobody(name.clone(), why))?;
        }
        let mut known = HeaderMap::with_capacity(self.copy.len());
        for name in &self.copy {
            for line in head.headers.get_all(name) {
                known.append(name.clone(), line.clone());
            }
        }
        Ok(Decision::Allow(Arc::new(super::whole::compact(&known))))
    }
}

/// Reads a body to its end, so that the connection can be used again; `None` if it is larger than anybody needs.
async fn whole(mut stream: Stream) -> Result<Option<Bytes>, Trouble> {
    if stream.length() == Some(0) {
        stream.end_now().await;
        return Ok(Some(Bytes::new()));
    }
    let mut body = Vec::new();
    while let Some(frame) = stream.next().await {
        let Ok(piece) = frame?.into_data() else { continue };
        if body.len() + piece.len() > DENIAL_MAX {
            stream.dismiss();
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body.into()))
}

impl Denial {
    fn response(&self, method: &Method) -> Response<Outbound> {
        let mut headers = self.headers.clone();
        // Of a body that is left out nothing is said, and to HEAD none is given.
        headers.remove(CONTENT_LENGTH);
        headers.remove(TRAILER);
        // A decision is about one request. Nobody keeps it.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let body = if *method == Method::HEAD {
            Outbound::Empty
        } else {
            Outbound::bytes(self.body.clone(), None)
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = headers;
        response
    }
}
