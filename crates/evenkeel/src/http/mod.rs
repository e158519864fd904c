//! Decides how HTTP answers are kept and reused: the steps of one exchange with a cache, by the rules of RFC 9111.
//! It exists so that a program and the gateway store, validate, update and retire by the same code; the rules
//! themselves are the pure functions of `evenkeel-http`, which this turns into actions on a [`Shelf`].
//! It refuses to send anything, and to read a clock: requests go out by other hands, and times come in.
//!
//! ```
//! use bytes::Bytes;
//! use evenkeel::{Mono, Now, Wall, http::{Arrived, CacheRules, Head, HttpCache, Shelf, UriKey}};
//! use evenkeel_http::{decide::Origin, decision::{Decision, Why}, facts::Sharing};
//! use http::{HeaderMap, HeaderValue, Method, StatusCode, header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH}};
//!
//! let at = |seconds: i64| Now {
//!     mono: Mono::from_nanos(seconds * 1_000_000_000),
//!     wall: Wall::from_nanos((1_764_440_643 + seconds) * 1_000_000_000),
//! };
//! let cache = HttpCache::new(&Shelf::new(64 << 20), CacheRules::plain(Sharing::Shared));
//! let key = UriKey::of("shop", &("http", "shop.example"), "/products/42").unwrap();
//! let request = HeaderMap::new();
//!
//! // Nothing is kept, so the request goes out, and its answer comes in and is stored.
//! let looked = cache.look(&key, &Method::GET, &request);
//! assert_eq!(cache.decide(&looked, at(0).mono, Origin::NotAsked), Decision::Fetch(Why::UriMiss));
//! let mut fields = HeaderMap::new();
//! fields.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
//! fields.insert(ETAG, HeaderValue::from_static("\"v1\""));
//! let arrived = Arrived { status: StatusCode::OK, headers: &fields, began: at(0).mono, at: at(1) };
//! assert!(matches!(cache.judge(&looked, &arrived), Head::Storable));
//! let body = Bytes::from_static(b"blue");
//! let stored = cache.store(&key, &looked, &request, (&arrived, &fields), &body).unwrap();
//! assert_eq!(stored.stored, Ok(()));
//!
//! // Half a minute later it is a hit.
//! let looked = cache.look(&key, &Method::GET, &request);
//! assert_eq!(cache.decide(&looked, at(30).mono, Origin::NotAsked), Decision::Fresh);
//! assert_eq!(looked.chosen().unwrap().body(), "blue");
//!
//! // Later still it is stale: the origin is asked whether it holds, and says so.
//! let looked = cache.look(&key, &Method::GET, &request);
//! let decision = cache.decide(&looked, at(90).mono, Origin::NotAsked);
//! let mut sent = request.clone();
//! assert!(cache.ask(&looked, decision, &request, &mut sent));
//! assert_eq!(sent[IF_NONE_MATCH], "\"v1\"");
//! let not_modified = HeaderMap::from_iter([(ETAG, HeaderValue::from_static("\"v1\""))]);
//! let arrived =
//!     Arrived { status: StatusCode::NOT_MODIFIED, headers: &not_modified, began: at(90).mono, at: at(90) };
//! assert!(cache.not_modified(&key, &looked, &request, &arrived).is_some());
//! let looked = cache.look(&key, &Method::GET, &request);
//! assert_eq!(cache.decide(&looked, at(100).mono, Origin::NotAsked), Decision::Fresh);
//! ```

mod behind;
mod budget;
mod cache;
mod facts;
mod failing;
mod head;
mod key;
mod place;
mod refused;
mod rules;
mod settled;
mod shelf;
mod shelved;

pub use behind::{BehindShelf, ShelvedParts};
pub use cache::{HttpCache, Looked};
pub use key::UriKey;
pub use place::COPIES_MAX;
pub use refused::problem_kind;
pub use rules::{CacheRules, IgnoredCookies};
pub use settled::{Head, NotShelved, Settled};
pub use shelf::{Retire, Shelf};
pub use shelved::{Arrived, Shelved};
