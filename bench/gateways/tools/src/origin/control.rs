//! Decides what the origin's control port understands: `/mode/WORD` and `/counters`.
//!
//! It exists so that a script steers the origin with nothing but HTTP. It refuses to
//! answer a mode change before the data port has taken it up.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::{Mode, Origin};

/// Serves the control port until binding or accepting fails.
///
/// # Errors
/// What binding `address` or accepting fails with.
pub async fn serve_control(origin: Rc<Origin>, address: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    loop {
        let (socket, _) = listener.accept().await?;
        let origin = Rc::clone(&origin);
        let service = service_fn(move |request| answer(Rc::clone(&origin), request));
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

async fn answer(origin: Rc<Origin>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    if let Some(mode) = path.strip_prefix("/mode/").and_then(Mode::from_word) {
        origin.set_mode(mode).await;
    } else if path != "/counters" {
        let mut unknown = Response::new(Full::from("want /counters or /mode/{normal,refuse,hang}\n"));
        *unknown.status_mut() = StatusCode::NOT_FOUND;
        return Ok(unknown);
    }
    let (requests, connections) = origin.counters();
    let mode = origin.mode().as_str();
    Ok(Response::new(Full::from(format!(
        "{{\"mode\":\"{mode}\",\"requests\":{requests},\"connections\":{connections}}}\n"
    ))))
}
