//! Decides how one connection to an upstream carries one exchange, and when it may carry another.
//! It exists because the task that waits for an answer can drive the connection itself: no task per connection,
//! and no hand-over between tasks on the way of every request.
//! It refuses to be reused after an exchange that did not end cleanly: it is closed, so that no answer can ever
//! reach somebody else's request.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, Waker, ready},
};

use http::{Request, Response};
use hyper::{
    body::Incoming,
    client::conn::http1::{self, Connection, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::{
    seat::{CameTo, Seat},
    upload::Upload,
};

/// What is sent.
pub(super) type Outgoing = Request<Upload>;

/// The most bytes of the head of an upstream's answer.
pub const RESPONSE_HEAD_MAX: usize = 64 << 10;

/// One connection to an upstream, driven by whoever holds it.
pub(super) struct Link {
    sender: SendRequest<Upload>,
    connection: Connection<TokioIo<Wire>, Upload>,
    /// How far the exchange has come on the wire.
    reached: Arc<Reached>,
    /// The connection has ended and must not be polled again.
    ended: bool,
    /// The place at its address that this exchange takes, where there are several.
    pub(super) seat: Option<Seat>,
}

/// Why an exchange brought no response head.
#[derive(Debug)]
pub(super) struct Broken {
    /// `None` if the connection had ended before.
    pub(super) error: Option<hyper::Error>,
    /// Not one byte of an answer had arrived: nothing had, or it came before the request had been written.
    pub(super) unanswered: bool,
}

/// Why a request that must not be sent twice brought no response head.
pub(super) enum Lost {
    /// Not one byte of it has left; here it is, its body untouched.
    Unsent(Box<Outgoing>),
    /// It may have arrived. There is an error unless the connection had ended.
    Sent(Option<hyper::Error>),
}

impl Link {
    /// Makes a link of a connected stream.
    pub(super) async fn over(stream: TcpStream) -> Result<Self, hyper::Error> {
        let reached = Arc::new(Reached::default());
        let wire = TokioIo::new(Wire {
            stream,
            reached: Arc::clone(&reached),
        });
        let (sender, connection) = http1::Builder::new()
            .max_header_size(RESPONSE_HEAD_MAX)
            .handshake(wire)
            .await?;
        Ok(Self {
            sender,
            connection,
            reached,
            ended: false,
            seat: None,
        })
    }

    /// Lets the connection finish with an exchange that has ended; `true` if it can carry the next one.
    pub(super) fn is_done(&mut self, context: &mut Context<'_>) -> bool {
        if !self.sender.is_ready() {
            self.drive(context);
        }
        !self.ended && self.sender.is_ready()
    }

    /// Tells whether nothing more can come.
    pub(super) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Tells its address what the exchange came to, where there are several.
    pub(super) fn came_to(&mut self, came_to: CameTo) {
        if let Some(seat) = &mut self.seat {
            seat.came_to(came_to);
        }
    }

    /// Looks whether an idle connection is still usable, without waiting for anything.
    pub(super) fn is_usable(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        !self.ended && self.sender.is_ready()
    }

    /// Lets the connection do what it can.
    pub(super) fn drive(&mut self, context: &mut Context<'_>) {
        if !self.ended && Pin::new(&mut self.connection).poll(context).is_ready() {
            self.ended = true;
        }
    }

    /// Sends a request and waits for the head of its answer. Dropping the future closes the connection.
    pub(super) async fn exchange(
        mut self: Box<Self>,
        request: Outgoing,
    ) -> Result<(Response<Incoming>, Box<Self>), Broken> {
        self.reached.restart();
        let answer = std::pin::pin!(self.sender.send_request(request));
        match self.drive_until(answer).await {
            Some(Ok(response)) => Ok((response, self)),
            failed => Err(Broken {
                error: failed.and_then(Result::err),
                unanswered: !self.reached.an_answer(),
            }),
        }
    }

    /// Sends a request that must not be sent twice, and waits for the head of its answer. Dropping the future closes the
    /// connection.
    pub(super) async fn exchange_once(
        mut self: Box<Self>,
        request: Outgoing,
    ) -> Result<(Response<Incoming>, Box<Self>), Lost> {
        self.reached.restart();
        let mut answer = std::pin::pin!(self.sender.try_send_request(request));
        let failed = match self.drive_until(answer.as_mut()).await {
            Some(Ok(response)) => return Ok((response, self)),
            Some(Err(failed)) => failed,
            None => {
                // With its connection a request that was not begun comes back.
                drop(self);
                match answer.await {
                    Ok(_) => return Err(Lost::Sent(None)),
                    Err(failed) => failed,
                }
            }
        };
        let mut failed = failed;
        Err(match failed.take_message() {
            Some(request) => Lost::Unsent(Box::new(request)),
            None => Lost::Sent(Some(failed.into_error())),
        })
    }

    /// Lets the connection work until there is an answer; `None` when it has ended without one.
    async fn drive_until<F: Future>(&mut self, mut answer: Pin<&mut F>) -> Option<F::Output> {
        poll_fn(|context| {
            self.drive(context);
            match answer.as_mut().poll(context) {
                // A connection that has ended leaves a request that it had not begun where it was.
                Poll::Pending if self.ended => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
                Poll::Ready(result) => Poll::Ready(Some(result)),
            }
        })
        .await
    }
}

/// How far an exchange has come: nothing yet, its request written, something back after that.
///
/// What comes before the request is no answer to it: servers say 408 on an idle connection and close it.
#[derive(Debug, Default)]
struct Reached(AtomicU8);

impl Reached {
    const REQUEST: u8 = 1;
    const ANSWER: u8 = 2;

    fn restart(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn note_written(&self) {
        self.0.fetch_max(Self::REQUEST, Ordering::Relaxed);
    }

    fn note_read(&self) {
        if self.0.load(Ordering::Relaxed) == Self::REQUEST {
            self.0.store(Self::ANSWER, Ordering::Relaxed);
        }
    }

    fn an_answer(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::ANSWER
    }
}

/// A stream that tells how far its exchange has come.
struct Wire {
    stream: TcpStream,
    reached: Arc<Reached>,
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.reached.note_read();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.reached.note_written();
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.reached.note_written();
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
