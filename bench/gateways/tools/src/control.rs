//! Decides how a script steers a tool: GET on a control port, answered with JSON.
//!
//! It exists so that nothing but HTTP is needed, and every tool is steered alike. It refuses
//! paths that the tool does not know, and says which it does.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// Serves the control port until binding or accepting fails.
///
/// `answer` gets a path and returns JSON, or `None` for a path it does not know; that is then
/// answered by 404 and `usage`.
///
/// # Errors
/// What binding `address` or accepting fails with.
pub async fn serve<A: Future<Output = Option<String>>>(
    address: SocketAddr,
    usage: &'static str,
    answer: impl Fn(String) -> A,
) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    loop {
        let (socket, _) = listener.accept().await?;
        let service = service_fn(|request: Request<Incoming>| {
            let told = answer(request.uri().path().to_owned());
            async { Ok::<_, Infallible>(response(told.await, usage)) }
        });
        // One connection at a time bounds what a script can hold open.
        if http1::Builder::new()
            .keep_alive(false)
            .serve_connection(TokioIo::new(socket), service)
            .await
            .is_err()
        {
            // The asker left early: its loss alone.
        }
    }
}

fn response(told: Option<String>, usage: &str) -> Response<Full<Bytes>> {
    let Some(json) = told else {
        let mut unknown = Response::new(Full::from(format!("want {usage}\n")));
        *unknown.status_mut() = StatusCode::NOT_FOUND;
        return unknown;
    };
    Response::new(Full::from(json + "\n"))
}
