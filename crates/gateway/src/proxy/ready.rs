//! Decides which heads of hits are made anew, and which are taken from those that this worker made just now.
//! It exists because a head differs from that of the hit before only in its age, and that only once a second; making the
//! map and its two numbers costs more than everything else on the way of a hit.
//! It refuses to grow, and to hold a body: it keeps the fields of [`PLACES`] answers at most for each worker.

use std::{
    cell::RefCell,
    sync::{Arc, Weak},
    time::Duration,
};

use evenkeel::http::Shelved;
use http::HeaderMap;

/// How many heads each worker keeps.
const PLACES: usize = 64;

/// A head that was made before.
struct Ready {
    /// Keeps the address from being given to another copy, and nothing else of it.
    of: Weak<Shelved>,
    /// The age that it says.
    seconds: u64,
    headers: HeaderMap,
}

thread_local! {
    static MADE: RefCell<[Option<Ready>; PLACES]> = const { RefCell::new([const { None }; PLACES]) };
}

/// Returns the head of a hit on this copy at this age, made by `make` unless it was made for this very second before.
pub(super) fn head(copy: &Arc<Shelved>, age: Duration, make: impl FnOnce() -> HeaderMap) -> HeaderMap {
    let seconds = age.as_secs();
    let address = Arc::as_ptr(copy);
    // Neighbours in memory are at least as far from each other as a copy is large.
    let place = (address.addr() / size_of::<Shelved>()) % PLACES;
    MADE.with_borrow_mut(|made| {
        let held = &mut made[place];
        if let Some(ready) = held
            && ready.seconds == seconds
            && std::ptr::eq(ready.of.as_ptr(), address)
        {
            return ready.headers.clone();
        }
        let headers = make();
        *held = Some(Ready {
            of: Arc::downgrade(copy),
            seconds,
            headers: headers.clone(),
        });
        headers
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use evenkeel::{
        Mono, Now, Wall,
        http::{Arrived, CacheRules, HttpCache, Shelf, UriKey},
    };
    use evenkeel_http::facts::Sharing;
    use http::{HeaderValue, Method, StatusCode, header};

    fn copy(body: &'static [u8]) -> Arc<Shelved> {
        let cache = HttpCache::new(&Shelf::new(1 << 20), CacheRules::plain(Sharing::Shared));
        let lasting = HeaderValue::from_static("max-age=60");
        let fields = HeaderMap::from_iter([(header::CACHE_CONTROL, lasting)]);
        let arrived = Arrived {
            status: StatusCode::OK,
            headers: &fields,
            began: Mono::ORIGIN,
            at: Now {
                mono: Mono::ORIGIN,
                wall: Wall::from_nanos(0),
            },
        };
        let (key, anybody) = (UriKey::of("r", &(), "/").unwrap(), HeaderMap::new());
        let looked = cache.look(&key, &Method::GET, &anybody);
        let body = Bytes::from_static(body);
        let stored = cache.store(&key, &looked, &anybody, (&arrived, &fields), &body);
        stored.unwrap().copy
    }

    fn tagged(tag: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static(tag))])
    }

    #[test]
    fn a_head_is_made_once_for_each_copy_and_second() {
        let (one, other) = (copy(b"1"), copy(b"2"));
        let at = Duration::from_millis;
        assert_eq!(head(&one, at(100), || tagged("a")), tagged("a"));
        assert_eq!(head(&one, at(900), || panic!("it is there")), tagged("a"));
        assert_eq!(head(&one, at(1000), || tagged("b")), tagged("b"));
        assert_eq!(head(&other, at(1000), || tagged("c")), tagged("c"));
    }

    #[test]
    fn a_copy_that_takes_the_place_of_another_never_gets_its_head() {
        for n in 0..1000_u64 {
            let copy = copy(b"x");
            let made = std::cell::Cell::new(false);
            head(&copy, Duration::ZERO, || {
                made.set(true);
                HeaderMap::new()
            });
            assert!(made.get(), "{n}");
        }
    }

    #[test]
    fn no_body_is_held_by_a_head() {
        let copy = copy(b"body");
        head(&copy, Duration::ZERO, || copy.headers(0));
        let held = Arc::downgrade(&copy);
        drop(copy);
        assert!(held.upgrade().is_none());
    }
}
