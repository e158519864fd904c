//! Decides which copies of somebody's are void: after a write to their target, and after the dependency has refused the one
//! they belong to.
//! It exists apart from the stores because neither can list the copies of a target under all who may have one.
//! It refuses to give what nobody knows the time of.

use evenkeel::Mono;
use evenkeel_http::facts::Sharing;
use http::{HeaderMap, HeaderValue, StatusCode};

use super::{
    exchange::Exchange,
    route::{Route, Whose},
    since::Place,
    whole::Reply,
};

impl Route {
    /// Tells whether its copies are somebody's.
    pub(super) fn is_somebodys(&self) -> bool {
        self.scope.iter().any(|part| part.field().is_some())
    }

    /// Returns where it stands when the copies of a target, and those of the principal who asks, were void last.
    pub(super) fn void_places(&self, whose: &Whose, target: &str, headers: &HeaderMap) -> Option<[Place; 2]> {
        self.is_somebodys().then(|| {
            let principal = self.told.principal.iter();
            let principal: Vec<&[u8]> = principal
                .map(|name| headers.get(name).map(HeaderValue::as_bytes).unwrap_or_default())
                .collect();
            [
                self.place_of(whose.scheme, &whose.authority, target),
                self.since.place((2, &self.told.by, principal)),
            ]
        })
    }

    fn place_of(&self, scheme: &str, authority: &HeaderValue, target: &str) -> Place {
        self.since
            .place((1, &*self.name, scheme, authority.as_bytes(), target))
    }

    /// Tells whether a copy that an attempt of this time loaded is void.
    pub(super) fn is_void(&self, places: [Place; 2], began: Mono) -> bool {
        places.iter().any(|place| self.since.covers(*place, began))
    }

    /// Voids the copies of a target, whosever they are.
    pub(super) fn void_target(&self, scheme: &str, authority: &HeaderValue, target: &str) {
        self.since
            .note(self.place_of(scheme, authority, target), self.engine.now().mono);
    }

    /// Voids the copies of a principal that the dependency has refused; only where the route keeps private ones.
    pub(super) fn void_principal(&self, [_, principal]: [Place; 2]) {
        if self.sharing == Sharing::Private {
            self.since.note(principal, self.engine.now().mono);
        }
    }
}

impl Exchange {
    /// Tells whether what an attempt of this time loaded may no longer be given, because it is somebody's and void.
    pub(super) fn is_void(&self, began: Option<Mono>) -> bool {
        // Of what nobody knows when it was loaded, nobody knows that it still holds.
        self.void
            .is_some_and(|places| began.is_none_or(|began| self.route.is_void(places, began)))
    }

    /// Voids what is kept for a principal whom the dependency itself refuses.
    pub(super) fn note_refusal(&self, reply: &Reply) {
        let refused = matches!(
            reply.status(),
            Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
        );
        if let Some(places) = self.void.filter(|_| refused) {
            self.route.void_principal(places);
        }
    }
}
