//! Decides what the demo's upstream does: answers, refuses connections, answers again, and counts.
//! It exists as a server of its own, so that the demo needs nothing but this program.
//! It refuses to pretend: when it is dead its port is closed.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpListener,
    task::{JoinHandle, JoinSet},
};

/// An upstream that can die and be healed.
#[derive(Debug)]
pub(super) struct Origin {
    address: SocketAddr,
    received: Arc<AtomicU64>,
    serving: Option<JoinHandle<()>>,
}

impl Origin {
    pub(super) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let mut origin = Self {
            address: listener.local_addr()?,
            received: Arc::default(),
            serving: None,
        };
        origin.serve(listener);
        Ok(origin)
    }

    fn serve(&mut self, listener: TcpListener) {
        let received = Arc::clone(&self.received);
        self.serving = Some(tokio::spawn(async move {
            // Dropped with this task: then the open connections are cut too.
            let mut connections = JoinSet::new();
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                let received = Arc::clone(&received);
                connections.spawn(async move {
                    let service = service_fn(|request| std::future::ready(answer(&request, &received)));
                    // How a connection ended is of no interest here.
                    drop(
                        http1::Builder::new()
                            .serve_connection(TokioIo::new(stream), service)
                            .await,
                    );
                });
                while connections.try_join_next().is_some() {}
            }
        }));
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns how many requests have arrived here.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Dies: connections are cut and refused.
    pub(super) async fn die(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
            // It ends cancelled; what matters is that its port is closed.
            drop(serving.await);
        }
    }

    /// Comes back on the same port.
    pub(super) async fn heal(&mut self) -> io::Result<()> {
        let listener = TcpListener::bind(self.address).await?;
        self.serve(listener);
        Ok(())
    }
}

fn answer(request: &Request<Incoming>, received: &AtomicU64) -> Result<Response<Full<Bytes>>, Infallible> {
    received.fetch_add(1, Ordering::Relaxed);
    let body = format!("{{\"product\":\"{}\",\"price\":4200}}\n", request.uri().path());
    let mut response = Response::new(Full::new(Bytes::from(body)));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
