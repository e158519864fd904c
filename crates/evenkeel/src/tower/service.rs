//! Decides what happens to one request: the guard is asked, and the service behind it if the guard says so.
//! It exists so that the rules of readiness are kept in one place, whatever the guard decides.
//! It refuses to call a service that was not ready, and to keep one ready that is not called.

use std::{
    fmt,
    future::poll_fn,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tower_service::Service;

use super::layer::Asked;
use crate::{
    answer::{Answer, Unanswered},
    key::Scope,
    read::Read,
};

/// One call of a wrapped service.
pub type Calling<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

/// A service behind a [`Read`] guard. Clones share the guard; each has a clone of the service.
pub struct ReadService<I, T, E, S, W, K> {
    inner: Ready<I, E>,
    guard: Read<T, E, S>,
    asked: Arc<Asked<W, K>>,
}

impl<I, T, E, S, W, K> ReadService<I, T, E, S, W, K> {
    pub(super) fn new(
        inner: I,
        guard: &Read<T, E, S>,
        asked: &Arc<Asked<W, K>>,
        ready_in_call: bool,
    ) -> Self {
        Self {
            inner: Ready::new(inner, ready_in_call),
            guard: guard.clone(),
            asked: Arc::clone(asked),
        }
    }

    /// Returns the guard.
    #[must_use]
    pub const fn guard(&self) -> &Read<T, E, S> {
        &self.guard
    }
}

impl<I: Clone, T, E, S, W, K> Clone for ReadService<I, T, E, S, W, K> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            guard: self.guard.clone(),
            asked: Arc::clone(&self.asked),
        }
    }
}

impl<I: fmt::Debug, T, E, S, W, K> fmt::Debug for ReadService<I, T, E, S, W, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadService")
            .field("inner", &self.inner.service)
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}

impl<I, R, S, W, K, Key> Service<R> for ReadService<I, I::Response, I::Error, S, W, K>
where
    I: Service<R> + Clone + Send + 'static,
    I::Response: Clone + Send + Sync + 'static,
    I::Error: Send + Sync + 'static,
    I::Future: Send + 'static,
    R: Send + 'static,
    S: Scope + Send + 'static,
    W: Fn(&R) -> S,
    K: Fn(&R) -> Key,
    Key: AsRef<[u8]> + Send + 'static,
{
    type Response = Answer<I::Response, I::Error>;
    type Error = Unanswered<I::Error>;
    type Future = Calling<Self::Response, Self::Error>;

    /// Is ready when the inner service is, or has failed to become ready; never fails itself.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll(context).map(Ok)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let inner = self.inner.take();
        let guard = self.guard.clone();
        let scope = (self.asked.whose)(&request);
        let key = (self.asked.what)(&request);
        Box::pin(async move { guard.call_owned(scope, key, |_| inner.call(request)).await })
    }
}

/// A service, and what polling it has come to.
#[derive(Debug)]
pub(super) struct Ready<I, E> {
    service: I,
    /// It failed to become ready.
    failed: Option<E>,
    in_call: bool,
}

impl<I: Clone, E> Clone for Ready<I, E> {
    /// A clone has been polled by nobody, so it is neither ready nor failed.
    fn clone(&self) -> Self {
        Self::new(self.service.clone(), self.in_call)
    }
}

impl<I, E> Ready<I, E> {
    pub(super) const fn new(service: I, in_call: bool) -> Self {
        Self {
            service,
            failed: None,
            in_call,
        }
    }

    /// Waits for the service, unless that is left to the call.
    pub(super) fn poll<R>(&mut self, context: &mut Context<'_>) -> Poll<()>
    where
        I: Service<R, Error = E>,
    {
        if !self.in_call && self.failed.is_none() {
            self.failed = ready!(self.service.poll_ready(context)).err();
        }
        Poll::Ready(())
    }

    /// Hands out the service that was polled, and leaves a clone of it.
    pub(super) fn take(&mut self) -> Self
    where
        I: Clone,
    {
        let next = self.clone();
        mem::replace(self, next)
    }

    /// Calls it once it is ready. One that is ready already says so again.
    pub(super) async fn call<R, T>(mut self, request: R) -> Result<T, E>
    where
        I: Service<R, Response = T, Error = E>,
    {
        if let Some(error) = self.failed {
            return Err(error);
        }
        poll_fn(|context| self.service.poll_ready(context)).await?;
        self.service.call(request).await
    }
}
