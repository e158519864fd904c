//! Decides how one connection to an upstream carries one exchange, and when it may carry another.
//! It exists because the task that waits for an answer can drive the connection itself: no task per connection,
//! and no hand-over between tasks on the way of every request.
//! It refuses to be reused after an exchange that did not end cleanly: it is closed, so that no answer can ever
//! reach somebody else's request.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use hyper::{
    body::Incoming,
    client::conn::http1::{self, Connection, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// What is sent: requests of Read routes have no body.
pub(super) type Outgoing = Request<Empty<Bytes>>;

/// The most bytes of the head of an upstream's answer.
pub const RESPONSE_HEAD_MAX: usize = 64 << 10;

/// One connection to an upstream, driven by whoever holds it.
pub(super) struct Link {
    sender: SendRequest<Empty<Bytes>>,
    connection: Connection<TokioIo<Wire>, Empty<Bytes>>,
    /// The connection has ended and must not be polled again.
    ended: bool,
}

/// Why an exchange brought no response head.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) error: hyper::Error,
    /// Not one byte of an answer had arrived.
    pub(super) unanswered: bool,
}

impl Link {
    /// Makes a link of a connected stream.
    pub(super) async fn over(stream: TcpStream) -> Result<Self, hyper::Error> {
        let wire = TokioIo::new(Wire {
            stream,
            answered: false,
        });
        let (sender, connection) = http1::Builder::new()
            .max_header_size(RESPONSE_HEAD_MAX)
            .handshake(wire)
            .await?;
        Ok(Self {
            sender,
            connection,
            ended: false,
        })
    }

    /// Lets the connection do what it can; `true` if it can carry a request now.
    pub(super) fn poll_idle(&mut self, context: &mut Context<'_>) -> bool {
        self.drive(context);
        !self.ended && self.sender.is_ready()
    }

    /// Looks whether an idle connection is still usable, without waiting for anything.
    pub(super) fn is_usable(&mut self) -> bool {
        self.poll_idle(&mut Context::from_waker(Waker::noop()))
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
        let answer = self.sender.send_request(request);
        let mut answer = std::pin::pin!(answer);
        let result = poll_fn(|context| {
            self.drive(context);
            answer.as_mut().poll(context)
        })
        .await;
        match result {
            Ok(response) => Ok((response, self)),
            Err(error) => {
                let io = self.connection.into_parts();
                let unanswered = !io.io.inner().answered && io.read_buf.is_empty();
                Err(Broken { error, unanswered })
            }
        }
    }
}

/// A stream that knows whether anything has come back since it was last written to.
struct Wire {
    stream: TcpStream,
    answered: bool,
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.answered |= buffer.filled().len() > before;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.answered = false;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.answered = false;
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
