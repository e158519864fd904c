//! Decides how the body of a request flows from a client to an upstream: as it comes, up to its limits.
//! It exists because three parties can be the one that is waited for, and only the body knows which one it is.
//! It refuses to pass a fault of the client on as an end: what was cut, too long or too slow never looks complete.

use std::{
    convert::Infallible,
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use evenkeel_http::hop::ConnectionOptions;
use http::{HeaderMap, header::EXPECT};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::{runtime::Handle, time::Sleep};

use super::{identity::Personal, limits::Limits};

/// The body of a request that is sent on.
#[derive(Debug)]
pub(super) enum Upload {
    /// There is none.
    Empty,
    /// It comes from a client.
    Flowing(Box<Flowing>),
}

/// A body on its way from a client.
pub(super) struct Flowing {
    /// Taken when nothing more is wanted of it.
    body: Option<Incoming>,
    /// How many bytes more may come.
    left: u64,
    /// What must not cross this hop in trailers either.
    options: ConnectionOptions,
    /// And what no client may say.
    personal: Personal,
    progress: Arc<Progress>,
    limits: Limits,
    /// Runs only while the client is waited for.
    idle: Option<Pin<Box<Sleep>>>,
    /// Runs from the first wait to the end.
    whole: Option<Pin<Box<Sleep>>>,
    /// The client sends nothing before it is told to go on.
    is_expecting: bool,
}

/// How far the body of a request has come. Shared with those who wait for its answer.
#[derive(Debug, Default)]
pub(super) struct Progress {
    state: AtomicU8,
    pieces: AtomicU64,
    /// The upstream has had its time.
    late: AtomicBool,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The client's: more of the body is wanted.
    Client,
    /// The upstream's, which has been given this many pieces.
    Upstream(u64),
}

/// What a client did wrong with its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is larger than the route takes.
    TooLarge,
    /// It paused for too long, or took too long in all.
    TooSlow,
    /// It broke off.
    Cut,
}

impl Progress {
    const UPSTREAM: u8 = 0;
    const CLIENT: u8 = 1;
    const ENDED: u8 = 2;
    const TOO_LARGE: u8 = 3;
    const TOO_SLOW: u8 = 4;
    const CUT: u8 = 5;

    fn set(&self, state: u8) {
        self.state.store(state, Ordering::Relaxed);
    }

    fn state(&self) -> u8 {
        self.state.load(Ordering::Relaxed)
    }

    /// Tells who is waited for.
    pub(super) fn turn(&self) -> Turn {
        if self.state() == Self::CLIENT {
            Turn::Client
        } else {
            Turn::Upstream(self.pieces.load(Ordering::Relaxed))
        }
    }

    /// Notes that the upstream has had its time.
    pub(super) fn note_late(&self) {
        self.late.store(true, Ordering::Relaxed);
    }

    /// Tells whether the upstream has had its time.
    pub(super) fn is_late(&self) -> bool {
        self.late.load(Ordering::Relaxed)
    }

    /// Tells what the client did wrong.
    pub(super) fn fault(&self) -> Option<Fault> {
        match self.state() {
            Self::TOO_LARGE => Some(Fault::TooLarge),
            Self::TOO_SLOW => Some(Fault::TooSlow),
            Self::CUT => Some(Fault::Cut),
            _ => None,
        }
    }

    /// Tells whether nothing more will be read.
    fn is_over(&self) -> bool {
        self.state() >= Self::ENDED
    }
}

/// A body whose stated length is over the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

impl Upload {
    /// Takes the body of a request with these fields. Nothing is read yet: a client that expects to be told to go on is
    /// told so when the upstream takes the first piece.
    ///
    /// # Errors
    /// [`TooLarge`], when its length is stated and over `at_most`. A chunked body is measured as it flows.
    pub(super) fn of(
        body: Incoming,
        headers: &HeaderMap,
        at_most: u64,
        limits: &Limits,
    ) -> Result<(Self, Arc<Progress>), TooLarge> {
        let progress = Arc::new(Progress::default());
        if body.is_end_stream() {
            progress.set(Progress::ENDED);
            return Ok((Self::Empty, progress));
        }
        let stated = body.size_hint().exact();
        let flowing = Flowing {
            body: Some(body),
            left: at_most,
            options: ConnectionOptions::default(),
            personal: Personal::default(),
            progress: Arc::clone(&progress),
            limits: *limits,
            idle: None,
            whole: None,
            is_expecting: headers.contains_key(EXPECT),
        };
        // Dropping it here lets a client that is sending already read why.
        if stated.is_some_and(|stated| stated > at_most) {
            return Err(TooLarge);
        }
        Ok((Self::Flowing(Box::new(flowing)), progress))
    }

    /// Names what must not cross this hop in trailers either.
    pub(super) fn strip(&mut self, options: ConnectionOptions) {
        if let Self::Flowing(flowing) = self {
            flowing.options = options;
        }
    }

    /// Names what its client may not say in trailers either.
    pub(super) fn without(&mut self, personal: &Personal) {
        if let Self::Flowing(flowing) = self {
            flowing.personal = personal.clone();
        }
    }

    /// Tells whether there is no body.
    pub(super) const fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }
}

impl Flowing {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(body) = &mut self.body else {
            // Whoever looks at the progress gives the exchange up; an end here could be taken for the body's.
            return Poll::Pending;
        };
        self.is_expecting = false;
        match Pin::new(body).poll_frame(context) {
            Poll::Pending => {
                self.progress.set(Progress::CLIENT);
                if self.has_run_out(context) {
                    return self.fail(Progress::TOO_SLOW);
                }
                Poll::Pending
            }
            Poll::Ready(None) => {
                self.progress.set(Progress::ENDED);
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(_))) => self.fail(Progress::CUT),
            Poll::Ready(Some(Ok(frame))) => self.passed(frame),
        }
    }

    fn passed(&mut self, mut frame: Frame<Bytes>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.idle = None;
        let length = frame.data_ref().map_or(0, Bytes::len) as u64;
        let Some(left) = self.left.checked_sub(length) else {
            return self.fail(Progress::TOO_LARGE);
        };
        self.left = left;
        if let Some(trailers) = frame.trailers_mut() {
            self.options.strip_trailers(trailers);
            self.personal.strip_trailers(trailers);
        }
        self.progress.pieces.fetch_add(1, Ordering::Relaxed);
        let has_ended = self.body.as_ref().is_some_and(Body::is_end_stream);
        self.progress.set(if has_ended {
            Progress::ENDED
        } else {
            Progress::UPSTREAM
        });
        Poll::Ready(Some(Ok(frame)))
    }

    /// Gives up: what has not been sent on is not wanted any more.
    fn fail(&mut self, fault: u8) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.progress.set(fault);
        if let Some(body) = self.body.take()
            && fault == Progress::TOO_LARGE
        {
            linger(body);
        }
        Poll::Pending
    }

    fn has_run_out(&mut self, context: &mut Context<'_>) -> bool {
        let (pause, whole) = (self.limits.upload_idle, self.limits.upload);
        let idle = self
            .idle
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
        let whole = self
            .whole
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(whole)));
        // Both, so that each wakes this task.
        idle.as_mut().poll(context).is_ready() | whole.as_mut().poll(context).is_ready()
    }
}

impl Drop for Flowing {
    /// The exchange ended before the body did.
    fn drop(&mut self) {
        if let Some(body) = self.body.take()
            && !self.progress.is_over()
            && !self.is_expecting
        {
            linger(body);
        }
    }
}

/// The most bytes that are read from a client whose request has been answered already.
pub const LINGER_BYTES: usize = 1 << 20;
/// The longest time for that.
pub const LINGER: Duration = Duration::from_secs(2);

/// Lets go of a body that nobody takes. A client that waits to be told to go on is not told, and sends nothing.
pub(super) fn leave(body: Incoming, is_expecting: bool) {
    if !body.is_end_stream() && !is_expecting {
        linger(body);
    }
}

/// Reads on for a while and throws away: a connection that is closed while its client is still sending is reset, and
/// the client may never see the answer (RFC 9112 §9.6, rule M09).
fn linger(mut body: Incoming) {
    let Ok(runtime) = Handle::try_current() else {
        return;
    };
    let drained = async move {
        let mut left = LINGER_BYTES;
        while let Some(Ok(frame)) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(length) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    // How it ends is of no interest: the answer has been given.
    drop(runtime.spawn(tokio::time::timeout(LINGER, drained)));
}

impl Body for Upload {
    type Data = Bytes;
    /// A fault of the client is told by the progress: an error here would look like one of the upstream's.
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        match self.get_mut() {
            Self::Empty => Poll::Ready(None),
            Self::Flowing(flowing) => flowing.poll_next(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Flowing(flowing) => flowing.body.as_ref().is_some_and(Body::is_end_stream),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Flowing(flowing) => flowing
                .body
                .as_ref()
                .map_or_else(SizeHint::default, Body::size_hint),
        }
    }
}

impl fmt::Debug for Flowing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flowing")
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}
