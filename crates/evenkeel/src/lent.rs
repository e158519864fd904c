//! Decides how an attempt holds on to what it works with: by reference inside its caller, or by a share of its own.
//! It exists because the usual call borrows and must not pay for counting references.
//! It refuses to copy what it lends.

use std::{ops::Deref, sync::Arc};

/// Something shared, borrowed or co-owned.
#[derive(Debug)]
pub(crate) enum Lent<'a, T> {
    Borrowed(&'a T),
    Shared(Arc<T>),
}

impl<'a, T> Lent<'a, T> {
    /// Lends once more.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Borrowed(shared) => Self::Borrowed(shared),
            Self::Shared(shared) => Self::Shared(Arc::clone(shared)),
        }
    }
}

impl<T> Deref for Lent<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Borrowed(shared) => shared,
            Self::Shared(shared) => shared,
        }
    }
}
