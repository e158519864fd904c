//! Decides when the data that a route serves is other data than before, so that no old copy answers for it.
//! It exists because a contract can be loaded anew while copies are kept: whose they are and what they are must not change
//! under them.
//! It refuses to tell apart what only changes how long a copy may be served: that holds for old copies at once.

use super::identity::Told;
use crate::config::{Rewrite, Route};

/// Returns a word for everything that says which data a route means, and for whom it may be kept: its dependency, what is
/// changed of messages, the scope, who says whose it is, the cookies that do not count, the prohibitions set aside. Whatever else comes to say whose
/// data it is belongs here.
pub(super) fn version(route: &Route, rewrite: &Rewrite, told: &Told) -> String {
    let caching = route
        .caching
        .as_ref()
        .map(|caching| (&caching.set_aside, caching.keep_set_cookie));
    let mut hash = Fnv::default();
    let said = format!(
        "{:?} {:?} {:?} {:?} {caching:?} {rewrite:?} {told:?}",
        route.class, route.from, route.scope, route.ignored_cookies
    );
    hash.add(&said);
    format!("{:016x}", hash.0)
}

/// Returns the name of the route in what keys say of it: the name, and the version behind the last `@`.
pub(super) fn route_of(guard: &str) -> &str {
    guard.rsplit_once('@').map_or(guard, |(name, _)| name)
}

/// The hash of Fowler, Noll and Vo with 64 bits: the same in every process, which a store that outlives it needs.
#[derive(Debug)]
pub(crate) struct Fnv(pub(crate) u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Adds a text.
    pub(crate) fn add(&mut self, text: &str) {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        for (text, hash) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            let mut fnv = Fnv::default();
            fnv.add(text);
            assert_eq!(fnv.0, hash, "{text}");
        }
    }
}
