//! Decides how the administration port writes what it says: text, JSON, or a problem.
//! It exists so that every address answers alike, and a program can go by status and type.
//! It refuses to be kept by anybody on the way: nothing said here is true for longer than a moment.

use bytes::Bytes;
use evenkeel_http::problem::{Problem, ProblemKind};
use http::{
    HeaderMap, HeaderName, HeaderValue, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE},
};
use http_body_util::Full;
use serde_json::Value;

use super::{ENDPOINTS, Endpoint};

/// An answer.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Reply {
    fn of(content_type: &'static str, body: Bytes) -> Self {
        let headers = HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static(content_type)),
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ]);
        Self {
            status: StatusCode::OK,
            headers,
            body,
        }
    }

    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::of("text/plain; charset=utf-8", Bytes::from(text.into()))
    }

    pub(super) fn json(value: &Value) -> Self {
        Self::of("application/json", Bytes::from(format!("{value}\n")))
    }

    pub(super) fn bytes(bytes: Bytes) -> Self {
        Self::of("application/octet-stream", bytes)
    }

    /// Sets a field.
    pub(super) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    pub(super) const fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    pub(super) fn response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

/// Why something was not answered or not done.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) kind: ProblemKind,
    /// What was seen, what is allowed and how to mend it; empty where the kind says it all.
    pub(super) detail: String,
    allow: Option<HeaderValue>,
}

impl Refused {
    /// Refuses with words that help with this request.
    pub(super) fn because(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            allow: None,
        }
    }

    /// Refuses with nothing to add.
    pub(super) fn plain(kind: ProblemKind) -> Self {
        Self::because(kind, String::new())
    }

    /// Refuses a method where there is another, or an address where there is none.
    pub(super) fn nowhere(at: &[&Endpoint]) -> Self {
        if at.is_empty() {
            let known: Vec<&str> = ENDPOINTS.iter().map(|known| known.path).collect();
            return Self::because(ProblemKind::NoSuchRoute, format!("known: {}", known.join(", ")));
        }
        let methods: Vec<&str> = at
            .iter()
            .map(|known| match known.method {
                "GET" => "GET, HEAD",
                other => other,
            })
            .collect();
        Self {
            allow: HeaderValue::from_str(&methods.join(", ")).ok(),
            ..Self::plain(ProblemKind::MethodNotAllowed)
        }
    }

    pub(super) fn response(self) -> Response<Full<Bytes>> {
        let problem = Problem {
            detail: (!self.detail.is_empty()).then_some(&*self.detail),
            ..Problem::new(self.kind)
        };
        let mut response = Response::new(Full::new(Bytes::from(problem.to_json() + "\n")));
        *response.status_mut() = problem.status();
        problem.set_headers(response.headers_mut());
        if let Some(allow) = self.allow {
            response.headers_mut().insert(ALLOW, allow);
        }
        if self.kind == ProblemKind::TokenMissing {
            let scheme = HeaderValue::from_static("Bearer realm=\"evenkeel administration\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        }
        response
    }
}
