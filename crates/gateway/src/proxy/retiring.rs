//! Decides which copies go when a write has worked: those of its target, and of what its answer points to.
//! It exists because a copy that outlives the write it contradicts is wrong even as a last resort (C27, C28).
//! It refuses to be called after anything else: an error answer or a refusal changed nothing (case 058).

use evenkeel::http::{HttpCache, Retire};
use evenkeel_http::invalidate::related_targets;
use http::{HeaderMap, HeaderValue, Uri, uri::Scheme};

use super::{
    authority,
    route::{Route, Whose},
};

/// Retires the copies of a target, and those of `Location` and `Content-Location` on the same origin.
pub(super) fn retire_after(
    route: &Route,
    cache: &HttpCache,
    (scheme, authority, target): (&'static str, &HeaderValue, &Uri),
    answered: &HeaderMap,
) {
    retire(route, cache, (scheme, authority), target);
    let mut parts = target.clone().into_parts();
    parts.scheme = Some(if scheme == "https" {
        Scheme::HTTPS
    } else {
        Scheme::HTTP
    });
    parts.authority = authority.to_str().ok().and_then(|name| name.parse().ok());
    let Ok(absolute) = Uri::from_parts(parts) else {
        return;
    };
    for related in related_targets(&absolute, answered) {
        retire(route, cache, (scheme, authority), &related);
    }
}

fn retire(route: &Route, cache: &HttpCache, (scheme, authority): (&'static str, &HeaderValue), target: &Uri) {
    let Some(path_and_query) = target.path_and_query() else {
        return;
    };
    if route.is_somebodys() {
        let authority = authority::normalised(authority, scheme);
        route.void_target(scheme, &authority, path_and_query.as_str());
        return;
    }
    // Without its scope parts no read of this target was ever let in.
    let Ok(parts) = route.scope_of(target.path(), target.query(), &HeaderMap::new()) else {
        return;
    };
    let whose = Whose {
        scheme,
        authority: authority::normalised(authority, scheme),
        parts,
    };
    if let Ok(key) = whose.key(&route.data, path_and_query.as_str()) {
        cache.retire(&key, Retire::Hard, route.engine.now().mono);
    }
}
