//! Decides how one request is made: on the connection that was used last, or on a new one.
//!
//! It exists so that the load keeps connections as browsers and service clients do. It refuses
//! to wait longer than its timeout, and closes a connection whose answer it did not wait for.

use std::cell::RefCell;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HOST;
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::answer::{BODY_LEN, MADE_AT};
use crate::start::without_delay;

/// What a request came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A whole answer; for 200, the whole body and when the origin made it, in ms since 1970.
    Answer {
        /// The status code.
        status: u16,
        /// The origin's time, where the answer carries it.
        made_at: Option<u64>,
    },
    /// No answer within the timeout.
    Late,
    /// Refused, reset, cut, or of the wrong length.
    Broken,
}

/// A client of one server on loopback; clones of its connections are never shared.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    timeout: Duration,
    idle: RefCell<Vec<Connection>>,
}

/// One connection; dropping it closes it.
#[derive(Debug)]
struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    driver: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Client {
    /// Makes a client of `port` on loopback without a connection.
    #[must_use]
    pub fn new(port: u16, timeout: Duration) -> Self {
        Self {
            address: (Ipv4Addr::LOCALHOST, port).into(),
            timeout,
            idle: RefCell::default(),
        }
    }

    /// Opens connections ahead of the requests that will use them.
    ///
    /// # Errors
    /// What the first one fails with.
    pub async fn open_ahead(&self, connections: usize) -> io::Result<()> {
        for _ in 0..connections {
            let connection = self.connect().await?;
            self.idle.borrow_mut().push(connection);
        }
        Ok(())
    }

    /// Asks for a path once.
    pub async fn get(&self, path: &str) -> Outcome {
        let Ok(path) = path.parse::<Uri>() else {
            return Outcome::Broken;
        };
        match timeout(self.timeout, self.ask(&path)).await {
            Ok(answered) => answered.unwrap_or(Outcome::Broken),
            Err(_) => Outcome::Late,
        }
    }

    async fn ask(&self, path: &Uri) -> Option<Outcome> {
        loop {
            let kept = self.idle.borrow_mut().pop();
            let fresh = kept.is_none();
            let mut connection = match kept {
                Some(connection) => connection,
                None => self.connect().await.ok()?,
            };
            let request = Request::builder()
                .uri(path)
                .header(HOST, "bench.test")
                .body(Empty::new())
                .ok()?;
            let answer = match connection.sender.send_request(request).await {
                Ok(response) => outcome(response).await,
                Err(_) => None,
            };
            if answer.is_some() {
                // A server that closes makes this fail, and then the connection is not kept.
                if connection.sender.ready().await.is_ok() {
                    self.idle.borrow_mut().push(connection);
                }
                return answer;
            }
            if fresh {
                return None;
            }
            // A kept connection may have been closed by the server just now: that is no failure.
        }
    }

    async fn connect(&self) -> io::Result<Connection> {
        let socket = without_delay(TcpStream::connect(self.address).await?)?;
        let (sender, connection) = handshake(TokioIo::new(socket)).await.map_err(io::Error::other)?;
        let driver = tokio::task::spawn_local(connection).abort_handle();
        Ok(Connection { sender, driver })
    }
}

/// Reads the whole body; `None` when it is cut, or not what the origin sends.
async fn outcome(response: Response<hyper::body::Incoming>) -> Option<Outcome> {
    let status = response.status().as_u16();
    let made_at = response
        .headers()
        .get(MADE_AT)
        .and_then(|millis| millis.to_str().ok()?.parse().ok());
    let mut body = response.into_body();
    let mut len = 0;
    while let Some(frame) = body.frame().await {
        len += frame.ok()?.data_ref().map_or(0, Bytes::len);
    }
    (status != 200 || len == BODY_LEN).then_some(Outcome::Answer { status, made_at })
}
