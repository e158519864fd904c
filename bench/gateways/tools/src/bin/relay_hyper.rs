//! A limit: what a bare relay costs, hyper's server in front of a list of hyper's client connections.
//!
//! It exists because a gateway built on hyper cannot pass an answer through for less. It
//! refuses every policy: no timeout, no limit, no retry, no header of its own.

use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use gateway_bench_tools::start::{on_one_thread, two_addresses, without_delay};
use http_body_util::{Either, Empty};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::CONNECTION;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

/// Most idle connections kept to the origin; further ones are closed.
const IDLE_MAX: usize = 1024;

fn main() -> io::Result<()> {
    let [listen, origin] = two_addresses("relay_hyper LISTEN ORIGIN")?;
    on_one_thread(async {
        let listener = TcpListener::bind(listen).await?;
        let relay = Rc::new(Relay {
            origin,
            idle: RefCell::default(),
        });
        loop {
            let (socket, _) = listener.accept().await?;
            let relay = Rc::clone(&relay);
            let service = service_fn(move |request| {
                let relay = Rc::clone(&relay);
                async move { Ok::<_, Infallible>(relay.answer(request).await) }
            });
            tokio::task::spawn_local(async move {
                let socket = without_delay(socket)?;
                let served = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
                served.await.map_err(io::Error::other)
            });
        }
    })
}

/// The origin's address and the connections that wait for their next request.
struct Relay {
    origin: SocketAddr,
    idle: RefCell<Vec<SendRequest<Incoming>>>,
}

impl Relay {
    async fn answer(self: &Rc<Self>, request: Request<Incoming>) -> Response<Either<Borrowed, Empty<Bytes>>> {
        self.forward(request).await.unwrap_or_else(|_| {
            let mut response = Response::new(Either::Right(Empty::new()));
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        })
    }

    async fn forward(
        self: &Rc<Self>,
        mut request: Request<Incoming>,
    ) -> io::Result<Response<Either<Borrowed, Empty<Bytes>>>> {
        request.headers_mut().remove(CONNECTION);
        let mut connection = self.connection().await?;
        let response = connection.send_request(request).await.map_err(io::Error::other)?;
        Ok(response.map(|body| {
            Either::Left(Borrowed {
                body,
                connection: Some(connection),
                relay: Rc::clone(self),
            })
        }))
    }

    /// Takes the connection that came back last, or opens one.
    async fn connection(&self) -> io::Result<SendRequest<Incoming>> {
        loop {
            let Some(mut last) = self.idle.borrow_mut().pop() else {
                break;
            };
            // Closed by the origin in the meantime: try the one before it.
            if last.ready().await.is_ok() {
                return Ok(last);
            }
        }
        let socket = without_delay(TcpStream::connect(self.origin).await?)?;
        let (sender, connection) = handshake(TokioIo::new(socket)).await.map_err(io::Error::other)?;
        tokio::task::spawn_local(connection);
        Ok(sender)
    }
}

/// A body on its way to the client, with the connection it comes from.
struct Borrowed {
    body: Incoming,
    connection: Option<SendRequest<Incoming>>,
    relay: Rc<Relay>,
}

impl Body for Borrowed {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Borrowed {
    /// A body read to its end frees its connection for the next request; a cut one closes it.
    fn drop(&mut self) {
        let mut idle = self.relay.idle.borrow_mut();
        if self.body.is_end_stream() && idle.len() < IDLE_MAX {
            idle.extend(self.connection.take());
        }
    }
}
