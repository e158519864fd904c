//! Decides the life of a request that is only forwarded: sent once, its body and its answer as they come.
//! It exists apart from reads, because here nothing may stand in for the answer, and the effect of what was sent may
//! be there although no answer is.
//! It refuses to send a request again once a byte of it may have left, and to make up what became of it.

use std::{
    borrow::Cow,
    future::poll_fn,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use evenkeel::{Class, Ending, Permit, Unanswered};
use evenkeel_http::{hop::strip_hop_by_hop, invalidate::retires_target, problem::ProblemKind};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header::MAX_FORWARDS, request::Parts};
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep};

use super::{
    forward::{self, Sent},
    framing::{self, Asked},
    hints::Said,
    identity::Personal,
    labels::Labels,
    observing::Shadow,
    outbound::Outbound,
    passing::Passing,
    peer::Peer,
    refuse,
    retiring::{self, Written},
    seat::{CameTo as AddressCameTo, Tried},
    served::AllServed,
    stream::Stream,
    trouble::Trouble,
    upload::{Fault, Progress, Turn, Upload},
    upstream::{Head, Upstream},
};
use crate::telemetry::CameTo;

/// A request that is forwarded, without its body.
#[derive(Debug)]
pub(super) struct Passed {
    pub(super) passing: Arc<Passing>,
    pub(super) request: Parts,
    pub(super) authority: HeaderValue,
    pub(super) peer: Arc<Peer>,
    /// The routes, some of which may keep an answer for what it writes.
    pub(super) served: Arc<AllServed>,
    /// What arrived with it beside what it asks for.
    pub(super) said: Option<Arc<Said>>,
    /// What the route would do, where it only watches.
    pub(super) shadow: Option<Shadow>,
    /// What no client may say in trailers either.
    pub(super) personal: Personal,
    /// The longest wait for each step of the upstream.
    pub(super) wait: Duration,
}

/// What call and work share.
#[derive(Debug)]
struct Shared {
    asked: Passed,
    upload: Arc<Progress>,
    /// A byte of the request may have left.
    left: AtomicBool,
    tried: Tried,
    answer: Mutex<Option<(HeaderMap, Stream)>>,
}

impl Passed {
    /// Forwards the request and answers with what comes, or with a problem. The kind of a problem that is the client's
    /// is handed back beside it when the request has become no call.
    pub(super) async fn answer(
        self,
        body: Incoming,
        labels: &Labels,
    ) -> Result<(Response<Outbound>, CameTo), (ProblemKind, &'static str)> {
        let passing = Arc::clone(&self.passing);
        let (max, limits) = (passing.max_request_body, passing.limits);
        let (mut upload, progress) = Upload::of(body, &self.request.headers, max, &limits).map_err(|_| {
            (
                ProblemKind::BodyTooLarge,
                "its stated length is over the limit; nothing was sent on",
            )
        })?;
        upload.without(&self.personal);
        // A client takes its time for a body, which says nothing about the dependency.
        let is_slow = !upload.is_empty();
        let shared = Arc::new(Shared {
            tried: Tried::with(self.said.as_ref()).beside(Arc::clone(&progress)),
            asked: self,
            upload: progress,
            left: AtomicBool::new(false),
            answer: Mutex::default(),
        });
        let work = Arc::clone(&shared);
        let work = move |_call, permit| async move {
            let result = work.attempt(upload, permit).await;
            result.inspect_err(|trouble| work.asked.passing.upstream().note(trouble))
        };
        let guard = match shared.asked.said.as_ref().and_then(|said| said.criticality) {
            None => Cow::Borrowed(&passing.guard),
            Some(criticality) => Cow::Owned(passing.guard.with_criticality(criticality)),
        };
        let end = {
            let mut call = pin!(async {
                if is_slow {
                    guard.call_slow(work).await
                } else {
                    guard.call(work).await
                }
            });
            poll_fn(|context| match call.as_mut().poll(context) {
                Poll::Ready(end) => Poll::Ready(Ok(end)),
                // The call is dropped where it stands, and so is the connection.
                Poll::Pending => shared
                    .upload
                    .fault()
                    .map_or(Poll::Pending, |fault| Poll::Ready(Err(fault))),
            })
            .await
        };
        let end = match end {
            Ok(end) => end,
            Err(fault) => {
                let came_to = CameTo {
                    route: Arc::clone(&passing.name),
                    ending: Ending::Abandoned,
                    reason: None,
                    age: None,
                };
                return Ok((shared.broken_off(fault), came_to));
            }
        };
        let came_to = CameTo::of(&passing.name, &end);
        let response = match end {
            Ok(answer) => shared.passed_on(answer.value, labels),
            Err(end) => match (end.ending, &end.cause) {
                (Ending::Failed, Some(Trouble::ErrorAnswer(status, ..))) => shared.passed_on(*status, labels),
                _ => {
                    let mut response = shared.unanswered(&end);
                    if let Some(trouble) = end.cause.filter(|_| passing.is_quiet) {
                        response.extensions_mut().insert(trouble);
                    }
                    response
                }
            },
        };
        Ok((response, came_to))
    }
}

/// No answer has come yet. Dropped like that it may be that a write was made all the same.
struct Silence<'s>(Option<&'s Shared>);

impl Silence<'_> {
    /// An answer has come, and says what became of the write.
    fn end(mut self) {
        self.0 = None;
    }
}

impl Drop for Silence<'_> {
    fn drop(&mut self) {
        let Some(shared) = self.0 else { return };
        if shared.left.load(Ordering::Relaxed) && !shared.asked.request.method.is_safe() {
            retiring::after_silence(&shared.asked.served, shared.written());
        }
    }
}

impl Shared {
    /// Makes the one attempt.
    async fn attempt(
        self: &Arc<Self>,
        upload: Upload,
        permit: Option<Permit<'static>>,
    ) -> Result<StatusCode, Trouble> {
        let passing = &self.asked.passing;
        let upstream = passing.upstream();
        if let Some(permit) = &permit {
            permit.not_sent();
        }
        let silence = Silence(Some(self));
        let sent = self.in_time(self.sent(upstream, upload)).await;
        if sent.is_ok() {
            silence.end();
        }
        if let Some(permit) = permit.as_ref().filter(|_| self.left.load(Ordering::Relaxed)) {
            permit.sent();
        }
        let Head { response, mut link } = sent?;
        let (mut parts, body) = response.into_parts();
        framing::check(&mut parts, Asked::of(&self.asked.request.headers, false))
            .inspect_err(|_| link.came_to(AddressCameTo::Failed))?;
        let home = Arc::clone(upstream);
        let mut stream = Stream::new(body, link, home, permit, passing.limits.stream_idle)
            .beside(Arc::clone(&self.upload));
        if stream.length() == Some(0) {
            stream.end_now().await;
        }
        let status = parts.status;
        let class = upstream.classify.of(status);
        if class == Class::Fault {
            return Err(Trouble::Fault);
        }
        self.retire_copies(status, &parts.headers);
        let mut headers = parts.headers;
        strip_hop_by_hop(&mut headers);
        upstream.rewrite.response.apply(&mut headers);
        passing.via.append(&mut headers, parts.version);
        *self.answer.lock() = Some((headers, stream));
        if matches!(class, Class::Outage(_)) {
            return Err(Trouble::ErrorAnswer(status, class, None));
        }
        Ok(status)
    }

    /// Sends the request. What has no body and may be repeated is sent once more when an idle connection turns out to
    /// be closed, as reads are (rules H07, M10); everything else once.
    async fn sent(&self, upstream: &Upstream, upload: Upload) -> Result<Head, Trouble> {
        let Passed {
            passing,
            request,
            authority,
            peer,
            wait,
            ..
        } = &self.asked;
        if passing.upstream().is_told_the_time() {
            self.tried.ends(passing.engine.now().mono.after(*wait));
        }
        let outgoing = |upload| {
            let mut outgoing = forward::outgoing(
                request,
                authority,
                peer,
                &passing.via,
                &upstream.rewrite,
                Sent::All,
                upload,
            );
            if request.method == Method::OPTIONS {
                one_hop_less(outgoing.headers_mut());
            }
            outgoing
        };
        if upload.is_empty() && request.method.is_idempotent() {
            let each = || {
                self.left.store(true, Ordering::Relaxed);
                outgoing(Upload::Empty)
            };
            upstream.send(&self.tried, each).await
        } else {
            upstream
                .send_once(&self.tried, outgoing(upload), &self.left)
                .await
        }
    }

    /// Waits for the head for as long as the upstream may take. While the client is waited for that time stands still.
    async fn in_time(&self, head: impl Future<Output = Result<Head, Trouble>>) -> Result<Head, Trouble> {
        let mut head = pin!(head);
        let mut patience = Patience::new(self.asked.wait);
        poll_fn(|context| {
            if let Poll::Ready(result) = head.as_mut().poll(context) {
                return Poll::Ready(result);
            }
            patience.poll(self.upload.turn(), context).map(|()| {
                self.upload.note_late();
                Err(if self.left.load(Ordering::Relaxed) {
                    Trouble::AnswerTooLate
                } else {
                    Trouble::ConnectTooLate
                })
            })
        })
        .await
    }

    /// Takes away what is kept for the target of a write that worked (rule C27).
    fn retire_copies(&self, status: StatusCode, answered: &HeaderMap) {
        if retires_target(&self.asked.request.method, status) {
            retiring::after_success(&self.asked.served, self.written(), answered);
        }
    }

    fn written(&self) -> Written<'_> {
        let Passed {
            request,
            authority,
            peer,
            ..
        } = &self.asked;
        Written {
            scheme: peer.scheme(&request.headers),
            authority,
            target: &request.uri,
        }
    }

    /// Passes the answer on as it came.
    fn passed_on(&self, status: StatusCode, labels: &Labels) -> Response<Outbound> {
        let (headers, body) = match self.answer.lock().take() {
            Some((headers, stream)) => (headers, Outbound::Stream(Box::new(stream))),
            None => (HeaderMap::new(), Outbound::Empty),
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        if !self.asked.passing.is_quiet {
            labels.passed(&self.asked.request.method, response.headers_mut());
        }
        response
    }

    /// Answers a client that broke its own request off.
    fn broken_off(&self, fault: Fault) -> Response<Outbound> {
        let kind = match fault {
            Fault::TooLarge => ProblemKind::BodyTooLarge,
            Fault::TooSlow => ProblemKind::RequestTimedOut,
            Fault::Cut => ProblemKind::BadRequest,
        };
        let detail = if self.left.load(Ordering::Relaxed) {
            "a part of the request was sent on before it was broken off"
        } else {
            "nothing was sent on"
        };
        refuse::misdirected(kind, Some(detail))
    }

    /// Answers a call that has no answer.
    fn unanswered(&self, end: &Unanswered<Trouble>) -> Response<Outbound> {
        let left = self.left.load(Ordering::Relaxed);
        let detail = if self.asked.request.method.is_safe() {
            None
        } else if left {
            Some(UNKNOWN)
        } else {
            Some("the request was not sent: it has had no effect")
        };
        refuse::unanswered_with(end, detail, left, || self.asked.passing.next_turn())
    }
}

/// Counts this hop in the `Max-Forwards` of a request, which is a number (rule H13).
fn one_hop_less(headers: &mut HeaderMap) {
    if let Some(line) = headers.get_mut(MAX_FORWARDS) {
        let digits = line.to_str().unwrap_or_default();
        // A larger number than fits is as good as none.
        let left = digits.parse().unwrap_or(u64::MAX);
        *line = HeaderValue::from(left.saturating_sub(1));
    }
}

/// What is known of a request that may have an effect, and brought no answer.
const UNKNOWN: &str = "the request may have arrived, and whether it has taken effect is not known: find out before repeating it";

/// The time that an upstream is given for each step: a piece of the request, or the answer to all of it.
struct Patience {
    span: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    pieces: u64,
}

impl Patience {
    const fn new(span: Duration) -> Self {
        Self {
            span,
            timer: None,
            pieces: 0,
        }
    }

    /// Ready when the upstream has had its time.
    fn poll(&mut self, turn: Turn, context: &mut Context<'_>) -> Poll<()> {
        let Turn::Upstream(pieces) = turn else {
            self.timer = None;
            return Poll::Pending;
        };
        let span = self.span;
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(span)));
        if pieces != self.pieces {
            self.pieces = pieces;
            timer.as_mut().reset(Instant::now() + span);
        }
        timer.as_mut().poll(context)
    }
}
