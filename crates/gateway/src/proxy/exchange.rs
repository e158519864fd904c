//! Decides how one attempt is carried out: sent, received, held back or let through, judged.
//! It exists as a value shared by the call and its work, because the work may go on without the call, and what
//! cannot be copied (a stream, the original fields) is handed from one to the other through it.
//! It refuses to know the ladder; it reports what came, and the engine decides.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use evenkeel::{Class, Keep, Mono, Permit};
use evenkeel_http::{
    dates::HttpDate,
    facts::{RequestFacts, Sharing},
    hop::strip_hop_by_hop,
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version,
    header::{DATE, IF_MATCH, IF_UNMODIFIED_SINCE},
    request::Parts,
    response,
};
use parking_lot::Mutex;

use super::{
    alternate,
    buffers::Lease,
    cached::Cached,
    forward::{self, Sent},
    framing::{self, Asked, End},
    hints::Said,
    keep::{self, Received, Verdict, Why},
    peer::Peer,
    pieces::Pieces,
    purging, repeat,
    route::Route,
    seat::{CameTo, Tried},
    since::Place,
    stream::Stream,
    trouble::Trouble,
    upload::Upload,
    upstream::{Head, Upstream},
    whole::{Reply, Whole, compact},
    worth::{self, GRPC_STATUS, Unworthy},
};

/// One request and the attempt made for it.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(super) route: Arc<Route>,
    pub(super) request: Parts,
    pub(super) authority: HeaderValue,
    pub(super) peer: Arc<Peer>,
    pub(super) handed: Mutex<Handed>,
    /// A connection was there and the request was written to it.
    pub(super) connected: AtomicBool,
    /// What arrived with it beside what it asks for.
    pub(super) said: Option<Arc<Said>>,
    /// The addresses of its dependency that it was sent to.
    pub(super) tried: Tried,
    /// What the shelf has for it, on a route that caches.
    pub(super) cached: Option<Cached>,
    /// When it arrived, where something was decided before the call.
    pub(super) arrived: Option<Mono>,
    /// Where it stands since when copies may be given, where they are somebody's.
    pub(super) void: Option<[Place; 2]>,
    /// When the first attempt began, where that matters.
    pub(super) began: OnceLock<Mono>,
    /// The alternate, where it is asked in place of the route's own dependency.
    pub(super) instead: Option<Arc<Upstream>>,
    /// The exchange of the same request with the alternate, once that is asked.
    pub(super) alternate: OnceLock<Arc<Self>>,
}

/// What the work hands to the call beside its result.
#[derive(Debug, Default)]
pub(super) struct Handed {
    /// The fields as they came, so that they need not be copied for the one who asked.
    pub(super) headers: Option<HeaderMap>,
    pub(super) stream: Option<Box<Stream>>,
    pub(super) lease: Option<Lease>,
}

/// A body that was read, or as much of it as may be held back.
pub(super) enum Read {
    /// All of it, and the `grpc-status` behind it.
    Whole(Bytes, Lease, Option<HeaderValue>),
    Flowing(Stream, Why),
}

impl Exchange {
    /// Notes how long the attempt that begins now may take, where its dependency wants to be told.
    pub(super) fn note_remaining(&self, remaining: impl FnOnce() -> Duration) {
        if self.upstream().is_told_the_time() {
            self.tried.ends(self.route.engine.now().mono.after(remaining()));
        }
    }

    /// Makes the attempt; a failure is remembered for the log.
    pub(super) async fn attempt(&self, permit: Option<Permit<'static>>) -> Result<Reply, Trouble> {
        if let Some(permit) = &permit {
            permit.not_sent();
        }
        if self.void.is_some() {
            self.began.get_or_init(|| self.route.engine.now().mono);
        }
        self.run(permit)
            .await
            .inspect(|reply| self.note_refusal(reply))
            .inspect_err(|trouble| self.upstream().note(trouble))
    }

    async fn run(&self, permit: Option<Permit<'static>>) -> Result<Reply, Trouble> {
        if let Some(upstream) = &self.instead {
            return self.run_instead(upstream, permit).await;
        }
        let route = &self.route;
        let repeats = self.repeats();
        if repeats {
            // What an attempt before this one left is of no use.
            drop(std::mem::take(&mut *self.handed.lock()));
            self.connected.store(false, Ordering::Relaxed);
        }
        if let (Some(cache), Some(cached)) = (&route.cache, &self.cached) {
            return self.run_cached(cache, cached, permit).await;
        }
        let upstream = route.upstream();
        let head = upstream
            .send(&self.tried, || {
                self.note_connected(permit.as_ref());
                forward::outgoing(
                    &self.request,
                    &self.authority,
                    &self.peer,
                    &route.via,
                    &upstream.rewrite,
                    if route.keeps { Sent::Whole } else { Sent::Question },
                    Upload::Empty,
                )
            })
            .await?;
        let Head { response, mut link } = head;
        let (mut parts, body) = response.into_parts();
        let end = framing::check(&mut parts, Asked::of(&self.request.headers, route.keeps))
            .inspect_err(|_| link.came_to(CameTo::Failed))?;
        let home = Arc::clone(upstream);
        let mut stream = Stream::new(body, link, home, permit, route.limits.stream_idle);
        if stream.length() == Some(0) {
            stream.end_now().await;
        }
        let may_repeat = repeats && self.is_worth_repeating(parts.status);
        if !self.holds_back() && !may_repeat {
            let keep = self.flowing(&parts, None);
            return self.let_through(parts, stream, None, keep);
        }
        // HEAD has no body whatever its head says.
        let end_is_known = end == End::Known || stream.length().is_some();
        match self.read(stream).await? {
            Read::Flowing(stream, why) => {
                let keep = self.flowing(&parts, Some(why));
                self.let_through(parts, stream, Some(why), keep)
            }
            Read::Whole(body, lease, trailer) => {
                let worth = self.worth(&parts, &body, trailer.as_ref())?;
                let verdict = if end_is_known {
                    self.judge(&parts, worth)
                } else {
                    Verdict::leave(self.route.keeps.then_some(Why::UnknownEnd))
                };
                self.whole(parts, body, lease, verdict)
            }
        }
    }

    /// Tells whether an answer of this status may be followed by another attempt; its body is then not let through at once.
    pub(super) fn is_worth_repeating(&self, status: StatusCode) -> bool {
        matches!(
            self.upstream().classify.of(status),
            Class::Outage(_) | Class::Busy
        )
    }

    /// Tells whether an answer of this status is none while something can stand in for it.
    pub(super) fn is_error(&self, status: StatusCode) -> bool {
        let classify = &self.upstream().classify;
        classify.is_error(classify.of(status))
    }

    /// Bodies are held back where a lower rung could still help, where several callers may share them, or where one that
    /// does not pass is not to be shown.
    fn holds_back(&self) -> bool {
        self.route.has_ladder || self.route.coalesces || self.route.keep_if.faults
    }

    pub(super) async fn read(&self, mut stream: Stream) -> Result<Read, Trouble> {
        let (max, buffers) = (self.route.max_body, &self.route.buffers);
        let announced = match stream.length() {
            None => 0,
            Some(length) => match usize::try_from(length) {
                Ok(length) if length <= max => length,
                Ok(_) | Err(_) => return Ok(Read::Flowing(stream, Why::TooLarge)),
            },
        };
        let Some(mut lease) = buffers.take(announced) else {
            return Ok(Read::Flowing(stream, Why::BuffersFull));
        };
        let mut read = Pieces::of(announced);
        let (mut room, mut trailer) = (announced, None);
        while let Some(frame) = stream.next().await {
            // Trailers are not held back; of what is kept none but the status of gRPC has a say.
            let piece = match frame?.into_data() {
                Ok(piece) => piece,
                Err(frame) => {
                    let mut fields = frame.into_trailers().unwrap_or_default();
                    trailer = fields.remove(GRPC_STATUS).or(trailer);
                    continue;
                }
            };
            read.add(piece);
            let length = read.length();
            let why = if length > max {
                Some(Why::TooLarge)
            } else if length > room && !lease.grow(length - room) {
                Some(Why::BuffersFull)
            } else {
                None
            };
            if let Some(why) = why {
                stream.put_ahead(read.joined());
                return Ok(Read::Flowing(stream, why));
            }
            room = room.max(length);
        }
        Ok(Read::Whole(read.joined(), lease, trailer))
    }

    /// Says what becomes of the old snapshot when an answer flows.
    fn flowing(&self, head: &response::Parts, why: Option<Why>) -> Keep {
        // That there was no room for it here says nothing about the answer, so what is kept stays; unless it says that
        // there is nothing to be kept.
        if self.route.keeps && (why != Some(Why::BuffersFull) || keep::is_gone(head.status)) {
            keep::flowing(self.route.sharing, &self.facts(), head.status, &head.headers)
        } else {
            Keep::Leave
        }
    }

    /// Hands the stream to the caller.
    pub(super) fn let_through(
        &self,
        head: response::Parts,
        stream: Stream,
        why: Option<Why>,
        keep: Keep,
    ) -> Result<Reply, Trouble> {
        if let Some(why) = why {
            self.route.note_not_kept(why);
        }
        let advice = repeat::advice_of_head(head.status, &head.headers, self.route.engine.now().wall);
        let status = head.status;
        self.tapped(status, None);
        let class = self.upstream().classify.of(status);
        if class == Class::Fault {
            return Err(Trouble::Fault);
        }
        *self.handed.lock() = Handed {
            headers: Some(self.answered(head)),
            stream: Some(Box::new(stream)),
            lease: None,
        };
        if self.upstream().classify.is_error(class) {
            return Err(Trouble::ErrorAnswer(status, class, None));
        }
        Ok(Reply::Streamed(status, class, keep, advice))
    }

    pub(super) fn whole(
        &self,
        head: response::Parts,
        body: Bytes,
        lease: Lease,
        verdict: Verdict,
    ) -> Result<Reply, Trouble> {
        if let Some(why) = verdict.why_not {
            self.route.note_not_kept(why);
        }
        let status = head.status;
        self.tapped(status, Some((&body, &verdict)));
        let class = self.upstream().classify.of(status);
        if class == Class::Fault {
            return Err(Trouble::Fault);
        }
        let is_error = self.upstream().classify.is_error(class);
        let shared = if is_error {
            keep::of_failure(
                self.route.sharing,
                &self.facts(),
                &self.request.headers,
                status,
                &head.headers,
            )
        } else {
            verdict.shared
        };
        let tagged = self.route.tags.as_ref().filter(|_| shared.is_some());
        // Before the contract's changes: a tag that clients do not see is one all the same.
        let tags = tagged.and_then(|field| purging::tags(&head.headers, field));
        let headers = self.answered(head);
        // What goes into the store or to several callers is copied out of the connection's buffers.
        let (stored, body, original) = if shared.is_some() {
            (compact(&headers), Bytes::copy_from_slice(&body), Some(headers))
        } else {
            (headers, body, None)
        };
        let whole = Arc::new(Whole {
            status,
            class,
            headers: stored,
            body,
            terms: verdict.terms,
            lifetime: verdict.lifetime,
            shared,
            tags: tags.map(String::into_boxed_str),
            began: self.began.get().copied(),
        });
        *self.handed.lock() = Handed {
            headers: original,
            stream: None,
            lease: Some(lease),
        };
        if is_error {
            return Err(Trouble::ErrorAnswer(status, class, Some(whole)));
        }
        Ok(Reply::Whole(whole))
    }

    /// Asks of a complete answer what the contract asks of those that are kept. A question is for good answers to a GET; the
    /// error is for those that do not pass where the contract calls that a fault.
    pub(super) fn worth(
        &self,
        head: &response::Parts,
        body: &[u8],
        trailer: Option<&HeaderValue>,
    ) -> Result<Result<(), Unworthy>, Trouble> {
        let is_answer = self.upstream().classify.of(head.status) == Class::Answer;
        if !is_answer || self.request.method == Method::HEAD || head.status == StatusCode::NOT_MODIFIED {
            return Ok(Ok(()));
        }
        let keep_if = &self.route.keep_if;
        let worth = worth::judge(keep_if, head.status, &head.headers, body, trailer);
        match worth {
            Err(why) if keep_if.faults => {
                self.route.note_not_kept(Why::KeepIf(why));
                Err(Trouble::Fault)
            }
            Ok(()) | Err(_) => Ok(worth),
        }
    }

    /// Judges a complete answer as it was received.
    pub(super) fn judge(&self, head: &response::Parts, worth: Result<(), Unworthy>) -> Verdict {
        let wanted = self.route.keeps || self.route.coalesces;
        if self.route.keeps && keep::is_gone(head.status) {
            return keep::gone(self.route.sharing, &self.facts(), head.status, &head.headers);
        }
        let is_answer = Class::of_status(head.status.as_u16()) == Class::Answer;
        if !wanted || !is_answer || self.request.method == Method::HEAD {
            return Verdict::leave(None);
        }
        let received = Received {
            sharing: self.route.sharing,
            request: &self.facts(),
            request_headers: &self.request.headers,
            status: head.status,
            headers: &head.headers,
            at: self.route.engine.now().wall,
        };
        keep::judge(&received, worth)
    }

    /// Notes that a connection is there and the request is being written to it: a head without a body, which is with the
    /// dependency at once.
    pub(super) fn note_connected(&self, permit: Option<&Permit<'static>>) {
        self.connected.store(true, Ordering::Relaxed);
        if let Some(permit) = permit {
            permit.sent();
        }
    }

    /// Tells whether the answer is for the one who asks and nobody else, as far as the request says. Where requests steer,
    /// a reload is: it wants an attempt that begins now, not one that is under way.
    pub(super) fn asks_for_itself(&self, facts: &RequestFacts, steers: bool) -> bool {
        let asked = &facts.directives;
        let headers = &self.request.headers;
        self.request.method != Method::GET
            || (self.route.sharing == Sharing::Shared && (facts.authorization || facts.cookies))
            || asked.no_store
            || asked.unreadable
            || (steers && (asked.no_cache || asked.max_age == Some(Duration::ZERO)))
            || PRECONDITIONS.iter().any(|name| headers.contains_key(name))
    }

    /// Reads what the store rules need to know of the request.
    pub(super) fn facts(&self) -> RequestFacts {
        self.route.facts(&self.request.method, &self.request.headers)
    }

    /// Copies the fields of an answer that are put on the shelf: without what the contract changes. A later 304 is
    /// about what the dependency said, and copies are told apart by that.
    pub(super) fn fields(&self, head: &response::Parts) -> HeaderMap {
        self.received(head.headers.clone(), head.version)
    }

    /// Prepares the fields of an answer for this side of the gateway.
    fn answered(&self, head: response::Parts) -> HeaderMap {
        let mut headers = self.received(head.headers, head.version);
        if self.instead.is_some() {
            alternate::disclaim(&mut headers);
        }
        self.changed(&mut headers);
        headers
    }

    /// Makes the changes of the contract. None of them is about a field that is added here.
    pub(super) fn changed(&self, headers: &mut HeaderMap) {
        self.upstream().rewrite.response.apply(headers);
    }

    fn received(&self, mut headers: HeaderMap, version: Version) -> HeaderMap {
        self.tap_fields(&headers);
        headers.reserve(ADDED);
        strip_hop_by_hop(&mut headers);
        self.route.via.append(&mut headers, version);
        if (self.route.keeps || self.route.cache.is_some()) && !headers.contains_key(DATE) {
            let now = self.route.engine.now().wall.as_secs();
            headers.insert(DATE, HttpDate::from_unix_seconds(now).to_value());
        }
        headers
    }
}

/// Fields by which a request may get no answer at all; the origin judges them on every route.
const PRECONDITIONS: [HeaderName; 2] = [IF_MATCH, IF_UNMODIFIED_SINCE];

/// The fields added to a live answer: `Via`, `Date`, and the two labels.
const ADDED: usize = 4;
