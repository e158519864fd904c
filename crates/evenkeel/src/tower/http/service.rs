//! Decides what happens to one request: through the guard, or past it.
//! It exists so that one service carries reads that may be reduced and writes that may not.
//! It refuses to hold back a body that is not complete: an answer is given once it can no longer break off.

use std::{
    error::Error,
    fmt,
    future::poll_fn,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use evenkeel_core::Class;
use evenkeel_http::validation::make_unconditional;
use http::{
    HeaderMap, Method, Request, Response,
    header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE},
    request::Parts,
};
use http_body::Body;
use http_body_util::{Either, Full};
use tower_service::Service;

use super::{
    label::respond,
    trouble::Trouble,
    whole::{Asked, Whole},
};
use crate::{
    dependency::Dependency,
    key::Scope,
    read::Read,
    tower::service::{Calling, Ready},
};

/// The body of a response: whole where the guard answered, the service's own where the request went past it.
pub type Given<B> = Either<Full<Bytes>, B>;

/// A service of HTTP behind a guard. Clones share the guard; each has a clone of the service.
pub struct HttpReadService<I, E, S, W> {
    inner: Ready<I, E>,
    guard: Read<Whole, Trouble<E>, S>,
    whose: Arc<W>,
    body_max: usize,
}

impl<I, E, S, W> HttpReadService<I, E, S, W> {
    pub(super) fn new(
        inner: I,
        guard: &Read<Whole, Trouble<E>, S>,
        whose: &Arc<W>,
        body_max: usize,
        ready_in_call: bool,
    ) -> Self {
        Self {
            inner: Ready::new(inner, ready_in_call),
            guard: guard.clone(),
            whose: Arc::clone(whose),
            body_max,
        }
    }
}

impl<I: Clone, E, S, W> Clone for HttpReadService<I, E, S, W> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            guard: self.guard.clone(),
            whose: Arc::clone(&self.whose),
            body_max: self.body_max,
        }
    }
}

impl<I, E, S, W> fmt::Debug for HttpReadService<I, E, S, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpReadService")
            .field("guard", &self.guard)
            .field("body_max", &self.body_max)
            .finish_non_exhaustive()
    }
}

impl<I, E, S, W, A, B> Service<Request<A>> for HttpReadService<I, E, S, W>
where
    I: Service<Request<A>, Response = Response<B>, Error = E> + Clone + Send + 'static,
    I::Future: Send + 'static,
    E: Send + Sync + 'static,
    S: Scope + Send + 'static,
    W: Fn(&Parts) -> S,
    A: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Response = Response<Given<B>>;
    type Error = E;
    type Future = Calling<Self::Response, E>;

    /// Is ready when the inner service is, or has failed to become ready; never fails itself.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), E>> {
        self.inner.poll(context).map(Ok)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let inner = self.inner.take();
        if *request.method() != Method::GET || request.headers().contains_key(UPGRADE) {
            return Box::pin(async move { Ok(inner.call(request).await?.map(Either::Right)) });
        }
        let (mut parts, body) = request.into_parts();
        let scope = (self.whose)(&parts);
        let key = key_of(&parts);
        let asked = Arc::new(Asked::of(&parts.headers));
        make_unconditional(&mut parts.headers);
        let guard = self.guard.clone();
        let body_max = self.body_max;
        Box::pin(async move {
            let dependency = guard.dependency().clone();
            let of_work = Arc::clone(&asked);
            let work = move |_, permit| async move {
                let request = Request::from_parts(parts, body);
                let result = exchange(inner, request, (&of_work, body_max), &dependency).await;
                drop(permit);
                result
            };
            let usable = |copy: &Whole| copy.fits(&asked);
            let end = guard.call_work(scope, key, Some(&usable), work).await;
            Ok(respond(guard.name(), &asked, end)?.map(|body| Either::Left(Full::new(body))))
        })
    }
}

/// Writes what is asked for: authority, path and query. Neither of them can hold a line break.
fn key_of(parts: &Parts) -> Vec<u8> {
    let authority = match (parts.uri.authority(), parts.headers.get(HOST)) {
        (Some(authority), _) => authority.as_str().as_bytes(),
        (None, Some(host)) => host.as_bytes(),
        (None, None) => b"",
    };
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    [authority, b"\n", target.as_bytes()].concat()
}

/// Asks the service, reads the response to its end, and says what came of it.
async fn exchange<I, A, B>(
    inner: Ready<I, I::Error>,
    request: Request<A>,
    (asked, body_max): (&Asked, usize),
    dependency: &Dependency,
) -> Result<Whole, Trouble<I::Error>>
where
    I: Service<Request<A>, Response = Response<B>>,
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let response = inner.call(request).await.map_err(Trouble::Service)?;
    let (mut head, body) = response.into_parts();
    let body = read(body, body_max).await?;
    // What frames the body here is this body's length.
    drop_framing(&mut head.headers);
    let status = head.status.as_u16();
    let response = Response::from_parts(head, body);
    if matches!(Class::of_status(status), Class::Outage(_) | Class::Busy) {
        return Err(Trouble::Answer(response));
    }
    Ok(Whole::received(response, asked, dependency.0.engine.now().wall))
}

fn drop_framing(headers: &mut HeaderMap) {
    headers.remove(CONTENT_LENGTH);
    headers.remove(TRANSFER_ENCODING);
}

/// Reads a body to its end. Trailers are left out.
async fn read<B, E>(body: B, body_max: usize) -> Result<Bytes, Trouble<E>>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    if body.size_hint().lower() > body_max as u64 {
        return Err(Trouble::TooLarge(body_max));
    }
    let mut body = pin!(body);
    let mut first = Bytes::new();
    let mut more = BytesMut::new();
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let frame = frame.map_err(|error| Trouble::Cut(error.into()))?;
        let Ok(data) = frame.into_data() else { continue };
        if data.len() > body_max - first.len() - more.len() {
            return Err(Trouble::TooLarge(body_max));
        }
        if first.is_empty() {
            first = data; // most bodies are one piece, and need no copy
        } else {
            more.extend_from_slice(&data);
        }
    }
    if more.is_empty() {
        return Ok(first);
    }
    Ok([first, more.freeze()].concat().into())
}
