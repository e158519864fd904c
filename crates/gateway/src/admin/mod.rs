//! Decides what the administration port answers: metrics, alive, ready.
//! It exists on a listener of its own, loopback by default, so that nothing of it is reachable where traffic is.
//! It refuses to change anything: it is read-only.

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CONTENT_TYPE},
};
use http_body_util::Full;

use crate::telemetry::Metrics;

/// Answers one request of the administration port.
pub(crate) fn answer<B>(request: &Request<B>, metrics: &Metrics) -> Response<Full<Bytes>> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned());
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match request.uri().path() {
        "/metrics" => {
            let mut response = text(StatusCode::OK, metrics.text());
            let format = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, format);
            response
        }
        // Both are about this process: a dependency that is down makes answers worse, not the gateway unready.
        "/livez" => text(StatusCode::OK, "live\n".to_owned()),
        "/readyz" => text(StatusCode::OK, "ready\n".to_owned()),
        _ => text(
            StatusCode::NOT_FOUND,
            "known: /metrics, /livez, /readyz\n".to_owned(),
        ),
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}
