//! A store behind the shelf: what it is told of each change, and what it gives back.
#![cfg(feature = "http")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "what breaks a test fails it")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use evenkeel::{
    Mono, Now, Wall,
    http::{
        Arrived, BehindShelf, CacheRules, HttpCache, NotShelved, Retire, Shelf, Shelved, ShelvedParts, UriKey,
    },
};
use evenkeel_http::{decide::Origin, decision::Decision, facts::Sharing};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{ACCEPT_LANGUAGE, CACHE_CONTROL, VARY},
};
use parking_lot::Mutex;

#[derive(Debug, Default)]
struct Told {
    turns: AtomicU64,
    lines: Mutex<Vec<String>>,
    parts: Mutex<Vec<ShelvedParts>>,
}

impl Told {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock())
    }
}

impl BehindShelf for Told {
    fn turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn kept(&self, _key: &UriKey, copies: &[Arc<Shelved>], takes_away: bool, _turn: u64) {
        let word = if takes_away { "left" } else { "kept" };
        self.lines.lock().push(format!("{word} {}", copies.len()));
        *self.parts.lock() = copies.iter().map(|copy| copy.to_parts()).collect();
    }

    fn gone(&self, _key: &UriKey, _turn: u64) {
        self.lines.lock().push("gone".to_owned());
    }
}

fn at(seconds: i64) -> Now {
    Now {
        mono: Mono::from_nanos(seconds * 1_000_000_000),
        wall: Wall::from_nanos((1_764_440_643 + seconds) * 1_000_000_000),
    }
}

fn fields(lines: &[(HeaderName, &'static str)]) -> HeaderMap {
    let lines = lines.iter().cloned();
    lines
        .map(|(name, value)| (name, HeaderValue::from_static(value)))
        .collect()
}

struct Setting {
    shelf: Shelf,
    cache: HttpCache,
    told: Arc<Told>,
}

fn setting() -> Setting {
    let shelf = Shelf::new(1 << 20);
    let told = Arc::new(Told::default());
    assert!(shelf.write_behind(Arc::clone(&told) as _));
    let rules = CacheRules {
        stale_age: Some(Duration::from_secs(600)),
        ..CacheRules::plain(Sharing::Shared)
    };
    let cache = HttpCache::new(&shelf, rules);
    Setting { shelf, cache, told }
}

fn key(target: &str) -> UriKey {
    UriKey::of("shop", &("http", "shop.example"), target).unwrap()
}

/// Lets an answer to a request in this language arrive.
fn arrives(
    cache: &HttpCache,
    target: &str,
    language: &'static str,
    cache_control: &'static str,
    seconds: i64,
) {
    let (key, request) = (key(target), fields(&[(ACCEPT_LANGUAGE, language)]));
    let looked = cache.look(&key, &Method::GET, &request);
    let headers = fields(&[(CACHE_CONTROL, cache_control), (VARY, "accept-language")]);
    let arrived = Arrived {
        status: StatusCode::OK,
        headers: &headers,
        began: at(seconds).mono,
        at: at(seconds),
    };
    match cache.judge(&looked, &arrived) {
        evenkeel::http::Head::Storable => {
            let body = Bytes::from_static(b"body");
            assert!(
                cache
                    .store(&key, &looked, &request, (&arrived, &headers), &body)
                    .is_some()
            );
        }
        evenkeel::http::Head::Not(why) => cache.supersede(&key, &looked, &request, &arrived, why),
    }
}

#[test]
fn each_change_is_told_with_all_that_is_there_now() {
    let Setting { shelf, cache, told } = setting();
    arrives(&cache, "/a", "de", "max-age=60", 1);
    arrives(&cache, "/a", "en", "max-age=60", 2);
    assert_eq!(told.take(), ["kept 1", "kept 2"]);
    // One of two is superseded by something that may not be kept.
    arrives(&cache, "/a", "de", "no-store", 3);
    assert_eq!(told.take(), ["left 1"]);
    arrives(&cache, "/a", "en", "no-store", 4);
    assert_eq!(told.take(), ["gone"]);
    // What is not here may be there.
    arrives(&cache, "/b", "en", "no-store", 5);
    shelf.retire(&key("/c"), Retire::Hard, at(6).mono);
    assert_eq!(told.take()[..2], ["gone", "gone"]);
    arrives(&cache, "/a", "de", "max-age=60", 7);
    shelf.retire(&key("/a"), Retire::Soft, at(8).mono);
    assert!(told.take().contains(&"left 1".to_owned()));
    assert!(told.parts.lock()[0].facts.expired);
}

#[test]
fn what_comes_back_is_what_was_told_and_is_told_to_nobody() {
    let Setting { cache, told, .. } = setting();
    arrives(&cache, "/a", "de", "max-age=60", 1);
    arrives(&cache, "/a", "en", "max-age=60", 2);
    let parts = told.parts.lock().clone();
    let Setting { shelf, cache, told } = setting();
    let copies = || parts.iter().cloned().map(Shelved::of_parts).collect::<Vec<_>>();
    assert!(shelf.restore(&key("/a"), copies(), shelf.before()).is_some());
    assert!(
        shelf.restore(&key("/a"), copies(), shelf.before()).is_none(),
        "what is here stays"
    );
    assert_eq!(told.take(), [""; 0]);
    let request = fields(&[(ACCEPT_LANGUAGE, "en")]);
    let looked = cache.look(&key("/a"), &Method::GET, &request);
    let chosen = looked.chosen().unwrap();
    assert_eq!(chosen.body(), "body");
    assert_eq!(chosen.age(at(12).mono), Some(Duration::from_secs(10)));
    assert_eq!(
        cache.decide(&looked, at(12).mono, Origin::NotAsked),
        Decision::Fresh
    );
    let french = fields(&[(ACCEPT_LANGUAGE, "fr")]);
    assert!(cache.look(&key("/a"), &Method::GET, &french).chosen().is_none());
}

#[test]
fn e46_what_comes_back_after_its_uri_was_retired_is_not_kept() {
    let Setting { cache, told, .. } = setting();
    arrives(&cache, "/a", "de", "max-age=60", 1);
    let parts = told.parts.lock().clone();
    let Setting { shelf, .. } = setting();
    let before = shelf.before();
    shelf.retire(&key("/a"), Retire::Hard, at(0).mono);
    let copies = || parts.iter().cloned().map(Shelved::of_parts).collect::<Vec<_>>();
    assert!(shelf.restore(&key("/a"), copies(), before).is_none());
    assert!(shelf.restore(&key("/b"), copies(), before).is_some());
}

#[test]
fn e44_what_is_dated_ahead_is_not_given() {
    let Setting { cache, told, .. } = setting();
    arrives(&cache, "/a", "de", "max-age=60", 1);
    let mut parts = told.parts.lock().clone();
    parts[0].observed = Mono::END;
    let Setting { shelf, cache, .. } = setting();
    let copies = parts.iter().cloned().map(Shelved::of_parts).collect::<Vec<_>>();
    assert!(shelf.restore(&key("/a"), copies, shelf.before()).is_some());
    let request = fields(&[(ACCEPT_LANGUAGE, "de")]);
    let looked = cache.look(&key("/a"), &Method::GET, &request);
    assert!(!matches!(
        cache.decide(&looked, at(12).mono, Origin::NotAsked),
        Decision::Fresh
    ));
    assert!(matches!(
        cache.decide(&looked, at(12).mono, Origin::NoAnswer),
        Decision::Refuse(_)
    ));
    let _: Option<NotShelved> = None;
}
