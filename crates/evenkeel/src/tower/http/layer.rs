//! Decides how a guard for HTTP is made, and wrapped around services.
//! It exists so that the rules of HTTP are in every such guard and cannot be forgotten.
//! It refuses a contract that has rules of its own for keeping: those of HTTP take their place.

use std::{fmt, sync::Arc};

use evenkeel_core::{Class, Problems};
use tower_layer::Layer;

use super::{service::HttpReadService, trouble::Trouble, whole::Whole};
use crate::read::{Classifier, Read, ReadBuilder, Unclassified};

/// The most bytes of a body that are read where nothing else is said: 1 MiB.
pub const BODY_MAX: usize = 1024 * 1024;

/// Builds a guard for services of HTTP from its contract: with the classes of statuses, the terms of the responses,
/// and their weights. `class` classifies the errors of the service itself, as
/// [`classify`](ReadBuilder::classify) does.
///
/// Terms, weights and classes that the contract has already are replaced.
///
/// # Errors
/// Every problem of the contract.
pub fn guard<E, S>(
    contract: ReadBuilder<Whole, Unclassified, S>,
    class: impl Fn(&E) -> Class + Send + Sync + 'static,
) -> Result<Read<Whole, Trouble<E>, S>, Problems>
where
    E: Send + Sync + 'static,
{
    let keeps = contract.keeps();
    let contract: ReadBuilder<Whole, Classifier<Trouble<E>>, S> = contract
        .classify(move |trouble: &Trouble<E>| trouble.class(&class))
        .advice(Trouble::advice)
        .class_of(Whole::class);
    if keeps {
        contract.terms(Whole::terms).weigh(Whole::weight).build()
    } else {
        contract.build()
    }
}

/// Puts a guard made by [`guard`] around services of HTTP. See the [module page](crate::tower::http).
pub struct HttpReadLayer<E, S, W> {
    guard: Read<Whole, Trouble<E>, S>,
    whose: Arc<W>,
    body_max: usize,
    ready_in_call: bool,
}

impl<E, S, W> HttpReadLayer<E, S, W> {
    /// Makes a layer of a guard. `whose` returns the scope of a request, read from its head: tenant, locale,
    /// whatever tells whose answer it is beside authority, path and query.
    pub fn new(guard: &Read<Whole, Trouble<E>, S>, whose: W) -> Self {
        Self {
            guard: guard.clone(),
            whose: Arc::new(whose),
            body_max: BODY_MAX,
            ready_in_call: false,
        }
    }

    /// Reads bodies of up to this many bytes.
    #[must_use]
    pub fn body_max(mut self, bytes: usize) -> Self {
        self.body_max = bytes;
        self
    }

    /// Waits for the inner service within the call, see [`ReadLayer`](crate::tower::ReadLayer::ready_in_call).
    /// Requests that are not guarded wait as long as it takes.
    #[must_use]
    pub fn ready_in_call(mut self) -> Self {
        self.ready_in_call = true;
        self
    }
}

impl<E, S, W> Clone for HttpReadLayer<E, S, W> {
    fn clone(&self) -> Self {
        Self {
            guard: self.guard.clone(),
            whose: Arc::clone(&self.whose),
            ..*self
        }
    }
}

impl<E, S, W> fmt::Debug for HttpReadLayer<E, S, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpReadLayer")
            .field("guard", &self.guard)
            .field("body_max", &self.body_max)
            .field("ready_in_call", &self.ready_in_call)
            .finish_non_exhaustive()
    }
}

impl<I, E, S, W> Layer<I> for HttpReadLayer<E, S, W> {
    type Service = HttpReadService<I, E, S, W>;

    fn layer(&self, inner: I) -> Self::Service {
        HttpReadService::new(inner, &self.guard, &self.whose, self.body_max, self.ready_in_call)
    }
}
