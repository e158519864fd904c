//! A limit: what a bare hyper server costs that answers every request from memory.
//!
//! It exists because a gateway built on hyper cannot answer a hit for less. It refuses
//! to look at the request.

use std::convert::Infallible;
use std::io;

use bytes::Bytes;
use gateway_bench_tools::answer;
use gateway_bench_tools::start::{on_one_thread, one_address, without_delay};
use http_body_util::Full;
use hyper::Response;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

fn main() -> io::Result<()> {
    let address = one_address("hello_hyper LISTEN")?;
    on_one_thread(async {
        let listener = TcpListener::bind(address).await?;
        let body = Bytes::from(answer::body());
        loop {
            let (socket, _) = listener.accept().await?;
            let body = body.clone();
            let service = service_fn(move |_| {
                let hello = hello(body.clone());
                async { Ok::<_, Infallible>(hello) }
            });
            tokio::task::spawn_local(async move {
                let socket = without_delay(socket)?;
                let served = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
                served.await.map_err(io::Error::other)
            });
        }
    })
}

fn hello(body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(answer::CONTENT_TYPE));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}
