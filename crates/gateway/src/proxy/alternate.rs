//! Decides how the alternate of a route is asked over HTTP, and what its answer says to the client.
//! It exists because the same question goes to another place: with that one's rewriting, connections and permits.
//! It refuses to keep what comes, to share it, and to let caches or validators take it for the first one's data.

use std::sync::{Arc, OnceLock, atomic::AtomicBool};

use evenkeel::{Answer, Class, Dependency, Keep, Permit, Scope};
use evenkeel_http::{
    cache_status::{Forward, Handling},
    targeted::CDN_CACHE_CONTROL,
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Response,
    header::{CACHE_CONTROL, ETAG, EXPIRES, LAST_MODIFIED, PRAGMA},
};
use parking_lot::Mutex;

use super::{
    caching::OWN_CACHE_CONTROL,
    exchange::{Exchange, Handed, Read},
    forward::{self, Sent},
    framing::{self, Asked},
    given,
    keep::Verdict,
    labels,
    outbound::Outbound,
    respond::{head_only, unlabelled},
    route::Whose,
    seat::{CameTo, Tried},
    stream::Stream,
    trouble::Trouble,
    upload::Upload,
    upstream::{Head, Upstream},
    whole::Reply,
};

/// What a guard of the gateway is called with: whose data is asked for, and by which request where an alternate may have
/// to be asked the same.
#[derive(Debug)]
pub(crate) struct Asking {
    whose: Whose,
    exchange: Option<Arc<Exchange>>,
}

impl Asking {
    /// Describes a call made for this request.
    pub(super) fn of(exchange: &Arc<Exchange>, whose: Whose) -> Self {
        let has_alternate = exchange.route.guard.contract().ladder().has_alternate();
        Self {
            whose,
            exchange: has_alternate.then(|| Arc::clone(exchange)),
        }
    }
}

impl From<Whose> for Asking {
    /// For what concerns copies alone.
    fn from(whose: Whose) -> Self {
        Self {
            whose,
            exchange: None,
        }
    }
}

impl Scope for Asking {
    fn parts(&self, each: &mut dyn FnMut(&str)) {
        self.whose.parts(each);
    }
}

impl Asking {
    /// Asks the alternate what was asked.
    pub(super) fn ask(
        &self,
        alternate: Alternate,
        permit: Option<Permit<'static>>,
    ) -> impl Future<Output = Result<Reply, Trouble>> + Send + 'static + use<> {
        alternate.ask(self.exchange.clone(), permit)
    }
}

/// The other dependency of a route.
#[derive(Clone, Debug)]
pub(crate) struct Alternate {
    pub(super) dependency: Dependency,
    pub(super) upstream: Arc<Upstream>,
}

impl Alternate {
    async fn ask(
        self,
        asked: Option<Arc<Exchange>>,
        permit: Option<Permit<'static>>,
    ) -> Result<Reply, Trouble> {
        // Every call of a route with an alternate names its request.
        let Some(asked) = asked else {
            return Err(Trouble::NothingLeft);
        };
        let instead = Arc::new(asked.instead(Arc::clone(Upstream::newest(&self.upstream))));
        // An exercise of the alternate asks beside a call that needs no answer of it.
        drop(asked.alternate.set(Arc::clone(&instead)));
        instead.attempt(permit).await
    }
}

impl Exchange {
    /// Makes the exchange of the same request with another upstream.
    fn instead(&self, upstream: Arc<Upstream>) -> Self {
        Self {
            route: Arc::clone(&self.route),
            request: self.request.clone(),
            authority: self.authority.clone(),
            peer: Arc::clone(&self.peer),
            handed: Mutex::new(Handed::default()),
            connected: AtomicBool::new(false),
            said: self.said.clone(),
            tried: Tried::with(self.said.as_ref()),
            cached: None,
            instead: Some(upstream),
            alternate: OnceLock::new(),
            arrived: self.arrived,
            void: self.void,
            began: OnceLock::new(),
        }
    }

    /// Returns where it is asked.
    pub(super) fn upstream(&self) -> &Arc<Upstream> {
        self.instead.as_ref().unwrap_or_else(|| self.route.upstream())
    }

    /// Makes the attempt at the alternate: for the whole answer, because the validators that the client has are those of
    /// the first dependency's data.
    pub(super) async fn run_instead(
        &self,
        upstream: &Arc<Upstream>,
        permit: Option<Permit<'static>>,
    ) -> Result<Reply, Trouble> {
        let route = &self.route;
        let outgoing = || {
            self.note_connected(permit.as_ref());
            forward::outgoing(
                &self.request,
                &self.authority,
                &self.peer,
                &route.via,
                &upstream.rewrite,
                Sent::Whole,
                Upload::Empty,
            )
        };
        let Head { response, mut link } = upstream.send(&self.tried, outgoing).await?;
        let (mut head, body) = response.into_parts();
        framing::check(&mut head, Asked::of(&self.request.headers, true))
            .inspect_err(|_| link.came_to(CameTo::Failed))?;
        let mut stream = Stream::new(body, link, Arc::clone(upstream), permit, route.limits.stream_idle);
        if stream.length() == Some(0) {
            stream.end_now().await;
        }
        match self.read(stream).await? {
            Read::Whole(body, lease, _) => self.whole(head, body, lease, Verdict::leave(None)),
            Read::Flowing(stream, _) => self.let_through(head, stream, None, Keep::Leave),
        }
    }
}

/// Fields by which others would keep an answer, or know it again, as if it were the first dependency's.
static CLAIMS: [HeaderName; 6] = [
    ETAG,
    LAST_MODIFIED,
    EXPIRES,
    PRAGMA,
    CDN_CACHE_CONTROL,
    OWN_CACHE_CONTROL,
];

/// Takes away what an answer of the alternate says about being kept. The rewriting of its dependency may say otherwise.
pub(super) fn disclaim(headers: &mut HeaderMap) {
    for name in &CLAIMS {
        headers.remove(name);
    }
    // Whoever keeps a stand-in shows it after the outage too.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// Makes the response of an answer that the alternate gave.
pub(super) fn respond(
    exchange: &Exchange,
    answer: &Answer<Reply, Trouble>,
    connected: bool,
) -> Response<Outbound> {
    let handed = exchange.alternate.get().map_or_else(Handed::default, |instead| {
        std::mem::take(&mut *instead.handed.lock())
    });
    let mut response = unlabelled(answer.value.clone(), handed);
    let first = exchange.route.cache.as_ref().zip(exchange.cached.as_ref());
    let handling = first.map_or(
        Handling::Forwarded {
            why: Forward::Bypass,
            status: None,
            stored: false,
            collapsed: None,
        },
        |(cache, cached)| given::forwarded(cached.first(cache, exchange.route.engine.now().mono)),
    );
    labels::alternate(
        response.headers_mut(),
        &exchange.route.name,
        answer,
        handling,
        connected,
    );
    if exchange.request.method == http::Method::HEAD {
        head_only(&mut response);
    }
    response
}

/// Tells whether a stand-in that was tried beside a live answer is of the same kind: status and media type. What it says
/// may differ; that it could not be read as an answer may not.
pub(super) fn agrees(live: &Reply, other: &Reply) -> bool {
    kind_of(live) == kind_of(other) && other.class() == Class::Answer
}

/// Returns the status of an answer, and its media type without parameters where it is whole.
fn kind_of(reply: &Reply) -> (u16, Option<String>) {
    let essence = |value: Option<&HeaderValue>| {
        let text = String::from_utf8_lossy(value?.as_bytes()).to_ascii_lowercase();
        Some(text.split(';').next().unwrap_or_default().trim().to_owned())
    };
    match reply {
        Reply::Whole(whole) => (
            whole.status.as_u16(),
            essence(whole.headers.get(http::header::CONTENT_TYPE)),
        ),
        Reply::Cached(copy, _) => (
            copy.status().as_u16(),
            essence(copy.headers(0).get(http::header::CONTENT_TYPE)),
        ),
        Reply::Default(answer) => (answer.status.as_u16(), essence(Some(&answer.content_type))),
        Reply::Streamed(status, ..) => (status.as_u16(), None),
    }
}
