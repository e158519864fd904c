//! Decides what one answer leaves behind for whoever asks why it is kept or not.
//! It exists because a probe has to see what the judge saw: fields as they were received, before the contract changes them.
//! It refuses to be on in a gateway that serves: it is turned on before the one request of a probe.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use evenkeel::{Terms, http::Shelved};
use http::{HeaderMap, StatusCode};
use parking_lot::{Mutex, MutexGuard};

use super::{exchange::Exchange, keep::Verdict};

/// What was seen of the one answer of a probe.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tapped {
    /// The fields of the request, as they were judged.
    pub(crate) request: HeaderMap,
    pub(crate) status: Option<StatusCode>,
    /// The fields of the answer, as they were received.
    pub(crate) headers: HeaderMap,
    /// Its body, where it was held back.
    pub(crate) body: Option<Bytes>,
    /// On which terms it is kept, and for how long it is fresh, on a route that keeps snapshots.
    pub(crate) terms: Option<(Terms, Option<Duration>)>,
    /// The copy that was made of it, on a route that caches.
    pub(crate) copy: Option<Arc<Shelved>>,
}

/// Where it is left; nothing is, unless it is on.
#[derive(Debug, Default)]
pub(crate) struct Tap(OnceLock<Mutex<Tapped>>);

impl Tap {
    /// Turns it on, for good.
    pub(crate) fn turn_on(&self) {
        self.0.get_or_init(Mutex::default);
    }

    /// Returns what was seen; `None` if it is off.
    pub(crate) fn seen(&self) -> Option<MutexGuard<'_, Tapped>> {
        self.0.get().map(Mutex::lock)
    }
}

impl Exchange {
    /// Leaves the fields of an answer, as they were received.
    pub(super) fn tap_fields(&self, headers: &HeaderMap) {
        if let Some(mut seen) = self.route.tap.seen() {
            seen.request.clone_from(&self.request.headers);
            seen.headers.clone_from(headers);
        }
    }

    /// Leaves what became of an answer: its status, and where its body was held back that and the verdict.
    pub(super) fn tapped(&self, status: StatusCode, whole: Option<(&Bytes, &Verdict)>) {
        if let Some(mut seen) = self.route.tap.seen() {
            seen.status = Some(status);
            if let Some((body, verdict)) = whole {
                seen.body = Some(body.clone());
                seen.terms = Some((verdict.terms, verdict.lifetime));
            }
        }
    }

    /// Leaves the copy that was made of an answer.
    pub(super) fn tap_copy(&self, copy: &Arc<Shelved>, body: &Bytes) {
        if let Some(mut seen) = self.route.tap.seen() {
            seen.status = Some(copy.status());
            seen.body = Some(body.clone());
            seen.copy = Some(Arc::clone(copy));
        }
    }
}
