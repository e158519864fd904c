//! Decides what the administration port answers: metrics, alive, ready.
//! It exists on a listener of its own, loopback by default, so that nothing of it is reachable where traffic is.
//! It refuses to change anything, it is read-only; and to be reached under names that others control.

use std::net::IpAddr;

use bytes::Bytes;
use evenkeel_http::problem::{Problem, ProblemKind};
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CONTENT_TYPE},
    uri::Authority,
};
use http_body_util::Full;

use crate::{proxy::of_request, telemetry::Metrics};

/// Answers one request of the administration port.
pub(crate) fn answer<B>(request: &Request<B>, metrics: &Metrics) -> Response<Full<Bytes>> {
    if !is_addressed_here(request) {
        return wrong_host();
    }
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

/// Tells whether a request names an IP address or `localhost`.
///
/// A page in a browser can have its own name resolve to this address and then read what is here; the name it used
/// stands in `Host`. IP addresses cannot be taken over in this way.
fn is_addressed_here<B>(request: &Request<B>) -> bool {
    let Ok(authority) = of_request(request.uri(), request.headers()) else {
        return false;
    };
    let Ok(authority) = Authority::try_from(authority.as_bytes()) else {
        return false;
    };
    let host = authority.host();
    host.eq_ignore_ascii_case("localhost")
        || host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>()
            .is_ok()
}

fn wrong_host() -> Response<Full<Bytes>> {
    let problem = Problem::new(ProblemKind::WrongHost);
    let mut response = Response::new(Full::new(Bytes::from(problem.to_json() + "\n")));
    *response.status_mut() = problem.status();
    problem.set_headers(response.headers_mut());
    response
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
