//! Decides which copies a write takes away: those of its target and of what its answer points to, on every route.
//! It exists because a copy that outlives the write it contradicts is wrong even as a last resort (C27, C28).
//! It refuses to be called after an error answer or a refusal: they changed nothing (case 058).

use evenkeel::http::Retire;
use evenkeel_http::invalidate::related_targets;
use http::{HeaderMap, HeaderValue, Uri, uri::Scheme};

use super::{
    authority,
    route::{Route, Whose},
    served::AllServed,
};

/// A write that was sent on: by which scheme, to which authority, and its target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written<'w> {
    pub(super) scheme: &'static str,
    pub(super) authority: &'w HeaderValue,
    pub(super) target: &'w Uri,
}

/// Retires the copies of a target that was written, and those of `Location` and `Content-Location` on the same origin.
pub(super) fn after_success(served: &AllServed, written: Written<'_>, answered: &HeaderMap) {
    retire(served, written, Retire::Hard);
    let mut parts = written.target.clone().into_parts();
    parts.scheme = Some(if written.scheme == "https" {
        Scheme::HTTPS
    } else {
        Scheme::HTTP
    });
    parts.authority = written.authority.to_str().ok().and_then(|name| name.parse().ok());
    let Ok(absolute) = Uri::from_parts(parts) else {
        return;
    };
    for target in related_targets(&absolute, answered) {
        let written = Written {
            target: &target,
            ..written
        };
        retire(served, written, Retire::Hard);
    }
}

/// Ends the freshness of the copies of a target that may have been written. They still stand in for failures: nobody
/// knows that they are wrong.
pub(super) fn after_silence(served: &AllServed, written: Written<'_>) {
    retire(served, written, Retire::Soft);
}

fn retire(served: &AllServed, written: Written<'_>, how: Retire) {
    for route in served.keepers(written.target.path()) {
        route.and_newer().for_each(|route| retire_on(route, written, how));
    }
}

fn retire_on(route: &Route, written: Written<'_>, how: Retire) {
    let Written {
        scheme,
        authority,
        target,
    } = written;
    let Some(path_and_query) = target.path_and_query() else {
        return;
    };
    let authority = authority::normalised(authority, scheme);
    // What is kept for failures alone is never fresh, so there is nothing to end but attempts that others would join.
    let goes = match how {
        Retire::Hard => route.keeps || route.coalesces,
        Retire::Soft => route.coalesces && !route.keeps,
    };
    if route.is_somebodys() {
        if goes || route.cache.is_some() {
            route.void_target(scheme, &authority, path_and_query.as_str());
        }
        return;
    }
    // Without its scope parts no read of this target was ever let in.
    let Ok(parts) = route.scope_of(target.path(), target.query(), &HeaderMap::new()) else {
        return;
    };
    let whose = Whose {
        scheme,
        authority,
        parts,
    };
    if let Some(cache) = &route.cache
        && let Ok(key) = whose.key(&route.data, path_and_query.as_str())
    {
        cache.retire(&key, how, route.engine.now().mono);
    }
    if goes {
        // An empty part is refused above.
        let _kept = route.guard.forget(whose.into(), path_and_query.as_str());
    }
}
