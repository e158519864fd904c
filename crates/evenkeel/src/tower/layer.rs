//! Decides how services are wrapped: by one guard, and two functions that read from a request whose it is and what.
//! It exists so that a stack is written in one place and every service in it shares the guard.
//! It refuses to guess a key: two requests that mean different things must never meet.

use std::{fmt, sync::Arc};

use tower_layer::Layer;

use super::service::ReadService;
use crate::read::Read;

/// Puts a [`Read`] guard around services. See the [module page](crate::tower).
///
/// `W` reads the scope from a request, `K` the key; both see the request before the inner service does.
pub struct ReadLayer<T, E, S, W, K> {
    guard: Read<T, E, S>,
    asked: Arc<Asked<W, K>>,
    ready_in_call: bool,
}

/// What a request asks for.
pub(super) struct Asked<W, K> {
    pub(super) whose: W,
    pub(super) what: K,
}

impl<T, E, S, W, K> ReadLayer<T, E, S, W, K> {
    /// Makes a layer of a guard. `whose` returns the scope of a request, `what` its key: every byte by which two
    /// requests differ that must not get the same answer.
    pub fn new(guard: &Read<T, E, S>, whose: W, what: K) -> Self {
        Self {
            guard: guard.clone(),
            asked: Arc::new(Asked { whose, what }),
            ready_in_call: false,
        }
    }

    /// Waits for the inner service to become ready within the call, under its timeout and deadline, instead of before
    /// it. See the [module page](crate::tower).
    #[must_use]
    pub fn ready_in_call(mut self) -> Self {
        self.ready_in_call = true;
        self
    }
}

impl<T, E, S, W, K> Clone for ReadLayer<T, E, S, W, K> {
    fn clone(&self) -> Self {
        Self {
            guard: self.guard.clone(),
            asked: Arc::clone(&self.asked),
            ready_in_call: self.ready_in_call,
        }
    }
}

impl<T, E, S, W, K> fmt::Debug for ReadLayer<T, E, S, W, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadLayer")
            .field("guard", &self.guard)
            .field("ready_in_call", &self.ready_in_call)
            .finish_non_exhaustive()
    }
}

impl<I, T, E, S, W, K> Layer<I> for ReadLayer<T, E, S, W, K> {
    type Service = ReadService<I, T, E, S, W, K>;

    fn layer(&self, inner: I) -> Self::Service {
        ReadService::new(inner, &self.guard, &self.asked, self.ready_in_call)
    }
}
