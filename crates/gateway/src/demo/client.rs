//! Decides how the demo asks and what it reads from an answer.
//! It exists so that every count of the demo comes from the labels of a real HTTP response.
//! It refuses to take an answer for good that does not say what it is.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use evenkeel::Engine;
use http::{HeaderMap, Request, Response, header::HOST};
use http_body_util::Empty;
use hyper::{
    body::{Body as _, Incoming},
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinHandle};

/// Where an answer came from, by its labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Live,
    Stale,
    Default,
    Failed,
}

/// One answer as the client saw it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) source: Source,
    pub(super) took: Duration,
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
}

/// One connection to a gateway.
pub(super) struct Client {
    sender: SendRequest<Empty<Bytes>>,
    connection: JoinHandle<()>,
    engine: Engine,
    host: String,
}

impl Client {
    pub(super) async fn connect(address: SocketAddr, engine: &Engine) -> Result<Self, String> {
        let stream = TcpStream::connect(address)
            .await
            .map_err(|error| format!("connect to the gateway: {error}"))?;
        stream
            .set_nodelay(true)
            .map_err(|error| format!("connect to the gateway: {error}"))?;
        let (sender, connection) = handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        Ok(Self {
            sender,
            connection: tokio::spawn(async move { drop(connection.await) }),
            engine: engine.clone(),
            host: address.to_string(),
        })
    }

    /// Asks for one product and waits for the whole answer.
    pub(super) async fn ask(&mut self, product: usize) -> Result<Seen, String> {
        let request = Request::get(format!("/products/{product}"))
            .header(HOST, &self.host)
            .body(Empty::new())
            .map_err(|error| error.to_string())?;
        let began = self.engine.now().mono;
        self.sender.ready().await.map_err(|error| error.to_string())?;
        let response = self
            .sender
            .send_request(request)
            .await
            .map_err(|error| format!("ask the gateway: {error}"))?;
        let (head, body) = response.into_parts();
        read(body).await?;
        Ok(Seen {
            source: source(&Response::from_parts(head.clone(), ())),
            took: self.engine.now().mono.since(began),
            status: head.status.as_u16(),
            headers: head.headers,
        })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

async fn read(body: Incoming) -> Result<(), String> {
    let mut body = std::pin::pin!(body);
    while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
        frame.map_err(|error| format!("read an answer: {error}"))?;
    }
    Ok(())
}

/// Reads the source of an answer from its labels; what is unlabelled or an error counts as failed.
fn source(response: &Response<()>) -> Source {
    let freshness = response
        .headers()
        .get("x-data-freshness")
        .map(|value| value.as_bytes());
    match (response.status().is_success(), freshness) {
        (true, Some(b"fresh")) => Source::Live,
        (true, Some(b"stale")) => Source::Stale,
        (true, Some(b"default")) => Source::Default,
        (true | false, _) => Source::Failed,
    }
}
