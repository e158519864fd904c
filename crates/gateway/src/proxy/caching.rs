//! Decides how the caching keys of a route become rules of the library, and how the bytes for answers are divided.
//! It exists so that contract words are turned into cache rules in one place.
//! It refuses to add rules of its own.

use evenkeel::{
    EmptyScopePart, Memory,
    http::{CacheRules, Shelf, UriKey},
};
use evenkeel_http::{facts::Sharing, lifetime::Heuristic, targeted::CDN_CACHE_CONTROL};
use http::HeaderName;

use super::{identity::Told, peer::REPLACED, route::Whose, whole::Reply};
use crate::config::{self, Caching, Contract};

/// The targeted field of this product, before the one for all of its kind (RFC 9213).
pub(super) const OWN_CACHE_CONTROL: HeaderName = HeaderName::from_static("evenkeel-cache-control");

/// Writes the caching rules of a route.
pub(super) fn rules(route: &config::Route, caching: &Caching, told: &Told) -> CacheRules {
    let sharing = sharing(route);
    CacheRules {
        heuristic: caching.heuristic.map_or(Heuristic::OFF, Heuristic::a_tenth_up_to),
        // What is said to caches that share is not said to one that keeps for one principal.
        targets: match sharing {
            Sharing::Shared => vec![OWN_CACHE_CONTROL, CDN_CACHE_CONTROL],
            Sharing::Private => Vec::new(),
        },
        personal: told.personal.clone(),
        ignored_cookies: route.ignored_cookies.clone(),
        keep_set_cookie: caching.keep_set_cookie,
        replaced: REPLACED.to_vec(),
        requests: caching.requests,
        stale_age: route.stale(),
        stale_while_revalidate: caching.stale_while_revalidate,
        set_aside: caching.set_aside.clone(),
        ..CacheRules::plain(sharing)
    }
}

/// Says for whom the copies of a route are: with a verified principal in their key, for that one.
pub(super) fn sharing(route: &config::Route) -> Sharing {
    if route.is_private() {
        Sharing::Private
    } else {
        Sharing::Shared
    }
}

impl Whose {
    /// Writes the key of a target. Whoever names a tenant or the like has a share of the shelf and no more.
    pub(super) fn key(&self, route: &str, target: &str) -> Result<UriKey, EmptyScopePart> {
        let key = UriKey::of(route, self, target)?;
        Ok(if self.parts.is_empty() {
            key
        } else {
            key.with_budget(target)
        })
    }
}

/// Makes the stores that a contract wants.
pub(super) fn stores(contract: &Contract) -> (Memory<Reply>, Shelf) {
    let (memory, shelf) = room(contract);
    let share = contract.gateway.scope_share_ppm;
    (Memory::new(memory), Shelf::with_shares(shelf, share))
}

/// Divides `gateway.memory` between snapshots and the shelf: where a contract uses both, half each.
pub(super) fn room(contract: &Contract) -> (u64, u64) {
    let whole = contract.gateway.memory as u64;
    let caches = contract.routes.iter().any(|route| route.caching.is_some());
    let snapshots = contract
        .routes
        .iter()
        .any(|route| route.caching.is_none() && route.stale().is_some());
    match (snapshots, caches) {
        (_, false) => (whole, 0),
        (false, true) => (0, whole),
        (true, true) => (whole / 2, whole / 2),
    }
}
