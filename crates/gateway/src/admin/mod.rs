//! Decides what the administration port answers: which address is whose, and who may change something there.
//! It exists on a listener of its own, loopback by default, so that nothing of it is reachable where traffic is.
//! It refuses changes without the token; to be reached under names that others control; and to do the work itself:
//! each address has a file.
//!
//! A further address is a row in `ENDPOINTS`, an arm in `Admin::dispatch` and a file with a function that takes
//! `Admin` and `Asked`. Token, host, method, size and time are checked before that function is called.

mod asked;
mod door;
mod health;
mod hold;
mod purge;
mod reload;
mod reply;
mod snapshots;
mod status;
mod token;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use evenkeel::Mono;
use evenkeel_http::problem::ProblemKind;
use http::{Method, Request, Response, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::body::Incoming;
use parking_lot::Mutex;

pub use token::{TOKEN_MIN, places, read as read_token};

pub(crate) use {asked::encoded, token::Token};

use self::{
    asked::Asked,
    reply::{Refused, Reply},
};
use crate::{proxy::Current, steering::Entry, telemetry::Metrics};

/// One address of the administration port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The method that it takes; HEAD is taken where GET is.
    pub method: &'static str,
    /// Its path.
    pub path: &'static str,
    /// It needs the token.
    pub token: bool,
    /// The most bytes of the body that it takes.
    pub body_max: usize,
    /// What it is for, in one sentence without a full stop.
    pub what: &'static str,
}

const fn read(path: &'static str, what: &'static str) -> Endpoint {
    Endpoint {
        method: "GET",
        path,
        token: false,
        body_max: 0,
        what,
    }
}

const fn change(path: &'static str, what: &'static str) -> Endpoint {
    Endpoint {
        method: "POST",
        token: true,
        body_max: COMMAND_MAX,
        ..read(path, what)
    }
}

/// The most bytes of an answer that is put in.
const SEED_MAX: usize = 16 << 20;

/// The most bytes of what a change needs to be told.
const COMMAND_MAX: usize = 16 << 10;

/// Every address, in the order of the reference page.
pub const ENDPOINTS: &[Endpoint] = &[
    read("/livez", "200 while the process can answer at all"),
    read(
        "/readyz",
        "200 while it takes traffic, also when everything it asks is down; 503 while it stops",
    ),
    read("/metrics", "every series, in the text format of Prometheus"),
    read(
        "/status",
        "what is degraded, since when, how old, what is held, and what happens next",
    ),
    read("/holds", "the holds in force, with author, reason and end"),
    change("/hold", "puts a hold on a route or a dependency"),
    change("/release", "takes a hold off"),
    change(
        "/purge",
        "takes copies out by URI, prefix, tag or route: softly, unless `hard` is said",
    ),
    change(
        "/reset",
        "closes a breaker and lets traffic back from the first stage of the ramp",
    ),
    change(
        "/reload",
        "loads the contract anew from its file; 422, and nothing has changed, if it has problems",
    ),
    Endpoint {
        token: true,
        ..read(
            "/snapshots",
            "lists what is kept, page by page, without bodies and without whose it is in full",
        )
    },
    Endpoint {
        token: true,
        ..read(
            "/snapshot",
            "shows every copy of one URI, or the body of one of them",
        )
    },
    Endpoint {
        body_max: SEED_MAX,
        ..change(
            "/seed",
            "puts an answer in, with the time at which it was observed",
        )
    },
];

/// What the administration port works on.
#[derive(Debug)]
pub(crate) struct Admin {
    current: Arc<Current>,
    metrics: Metrics,
    token: Token,
    started: Mono,
    /// Where clients connect.
    listen: SocketAddr,
    /// When somebody without the token was last written down.
    locked_out: Mutex<Option<Mono>>,
}

impl Admin {
    pub(crate) fn new(current: &Arc<Current>, metrics: Metrics, token: Token, listen: SocketAddr) -> Self {
        Self {
            current: Arc::clone(current),
            metrics,
            token,
            started: current.process().engine.now().mono,
            listen,
            locked_out: Mutex::default(),
        }
    }

    /// Answers one request.
    pub(crate) async fn answer(&self, peer: SocketAddr, request: Request<Incoming>) -> Response<Full<Bytes>> {
        match self.checked(peer, request).await {
            Ok(reply) => reply.response(),
            Err(refused) => refused.response(),
        }
    }

    /// Answers one request of the port that has nothing but numbers and health. Whoever opened it to others has named
    /// it as he liked, so the name is not looked at.
    pub(crate) fn answer_reader(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let asked = request
            .uri()
            .query()
            .is_some_and(|query| query.split('&').any(|one| one == "verbose"));
        match (request.method(), request.uri().path()) {
            (&(Method::GET | Method::HEAD), "/metrics") => self.numbers().response(),
            (&(Method::GET | Method::HEAD), "/livez") => health::live().response(),
            (&(Method::GET | Method::HEAD), "/readyz") => {
                health::ready(self.current.process(), asked).response()
            }
            (_, "/metrics" | "/livez" | "/readyz") => Refused::nowhere(&[&ENDPOINTS[0]]).response(),
            (_, _) => {
                Refused::because(ProblemKind::NoSuchRoute, "known: /livez, /readyz, /metrics").response()
            }
        }
    }

    fn numbers(&self) -> Reply {
        let format = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        Reply::text(self.metrics.text()).with(CONTENT_TYPE, format)
    }

    /// Lets through what may be asked, in this order: under an own name, of a known address, by a method that it
    /// takes, with the token, and not by a page of somebody else.
    async fn checked(&self, peer: SocketAddr, request: Request<Incoming>) -> Result<Reply, Refused> {
        if !door::is_addressed_here(&request) {
            return Err(Refused::plain(ProblemKind::WrongHost));
        }
        let path = request.uri().path().to_owned();
        let at: Vec<&Endpoint> = ENDPOINTS.iter().filter(|known| known.path == path).collect();
        let method = if request.method() == Method::HEAD {
            "GET"
        } else {
            request.method().as_str()
        };
        let Some(endpoint) = at.iter().find(|known| known.method == method) else {
            return Err(Refused::nowhere(&at));
        };
        if endpoint.method != "GET" {
            door::is_no_foreign_page(&request)?;
        }
        if endpoint.token
            && let Err(refused) = self.token.opens(request.headers())
        {
            self.note_locked_out(peer, endpoint, &refused);
            return Err(refused);
        }
        let asked = Asked::read(peer, request, endpoint.body_max).await?;
        self.dispatch(endpoint, &asked).await
    }

    /// Writes down that somebody asked without the token, at most once a second: whoever goes on asking fills no disk.
    fn note_locked_out(&self, peer: SocketAddr, endpoint: &Endpoint, refused: &Refused) {
        let process = Arc::clone(self.current.process());
        let now = process.engine.now();
        {
            let mut last = self.locked_out.lock();
            if last.is_some_and(|at| now.mono.since(at) < Duration::from_secs(1)) {
                return;
            }
            *last = Some(now.mono);
        }
        let (path, why, peer) = (endpoint.path, refused.detail.clone(), peer.to_string());
        // Nobody waits for the file.
        drop(tokio::task::spawn_blocking(move || {
            let entry = Entry {
                what: "locked-out",
                by: "-",
                peer: &peer,
                target: path,
                before: None,
                after: None,
                refused: Some(why),
            };
            process.steering.note(now, &entry)
        }));
    }

    async fn dispatch(&self, endpoint: &Endpoint, asked: &Asked) -> Result<Reply, Refused> {
        match (endpoint.method, endpoint.path) {
            ("GET", "/livez") => Ok(health::live()),
            ("GET", "/readyz") => Ok(health::ready(
                self.current.process(),
                asked.parameter("verbose").is_some(),
            )),
            ("GET", "/metrics") => Ok(self.numbers()),
            ("GET", "/status") => Ok(status::show(&self.current, (self.started, self.listen))),
            ("GET", "/holds") => Ok(hold::list(&self.current)),
            ("POST", "/hold") => hold::hold(&self.current, asked).await,
            ("POST", "/release") => hold::release(&self.current, asked).await,
            ("POST", "/reset") => hold::reset(&self.current, asked).await,
            ("POST", "/reload") => reload::reload(&self.current).await,
            ("POST", "/purge") => purge::purge(&self.current, asked).await,
            ("GET", "/snapshots") => snapshots::list(&self.current, asked).await,
            ("GET", "/snapshot") => snapshots::show(&self.current, asked).await,
            ("POST", "/seed") => snapshots::seed(&self.current, asked).await,
            // Unreachable while every row has an arm; a test asks for each.
            (_, _) => Err(Refused::nowhere(&[])),
        }
    }
}
