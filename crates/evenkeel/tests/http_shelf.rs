//! The shelf of HTTP answers: its bound, what it costs, and its behaviour against a plain model.
#![cfg(feature = "http")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::HashMap;

use bytes::Bytes;
use evenkeel::{
    Mono, Now, Wall,
    http::{Arrived, CacheRules, Head, HttpCache, NotShelved, Retire, Shelf, UriKey},
};
use evenkeel_http::{decide::Origin, decision::Decision, facts::Sharing};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use proptest::prelude::*;

const BEGAN: i64 = 1_764_440_643_000_000_000;

fn at(seconds: i64) -> Now {
    Now {
        mono: Mono::from_nanos(seconds * 1_000_000_000),
        wall: Wall::from_nanos(BEGAN + seconds * 1_000_000_000),
    }
}

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    lines
        .iter()
        .map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            (name, HeaderValue::from_str(value).unwrap())
        })
        .collect()
}

fn key(target: &str) -> UriKey {
    UriKey::of("r", &("http", "a.example"), target).unwrap()
}

struct Kit {
    cache: HttpCache,
}

impl Kit {
    fn new(bytes: u64) -> Self {
        Self {
            cache: HttpCache::new(&Shelf::new(bytes), CacheRules::plain(Sharing::Shared)),
        }
    }

    /// Fetches a target: an attempt that took from `began` to `now`.
    fn fetch(
        &self,
        target: &str,
        request: &HeaderMap,
        answer: (u16, &[(&str, &str)], &str),
        (began, now): (i64, i64),
    ) -> Head {
        let key = key(target);
        let looked = self.cache.look(&key, &Method::GET, request);
        let (status, lines, body) = answer;
        let fields = headers(lines);
        let arrived = Arrived {
            status: StatusCode::from_u16(status).unwrap(),
            headers: &fields,
            began: at(began).mono,
            at: at(now),
        };
        let judged = self.cache.judge(&looked, &arrived);
        match judged {
            Head::Storable => {
                let body = Bytes::copy_from_slice(body.as_bytes());
                let settled = self
                    .cache
                    .store(&key, &looked, request, (&arrived, &fields), &body);
                assert!(settled.is_some());
            }
            Head::Not(why) => self.cache.supersede(&key, &looked, request, &arrived, why),
        }
        judged
    }

    fn given(&self, target: &str, request: &HeaderMap, now: i64) -> Option<String> {
        let looked = self.cache.look(&key(target), &Method::GET, request);
        let fresh = self.cache.decide(&looked, at(now).mono, Origin::NotAsked) == Decision::Fresh;
        let copy = looked.chosen().filter(|_| fresh)?;
        Some(String::from_utf8(copy.body().to_vec()).unwrap())
    }
}

const LASTING: &[(&str, &str)] = &[("cache-control", "max-age=60")];

#[test]
fn e47_the_newest_attempt_wins_whatever_the_order_of_arrival() {
    let kit = Kit::new(1 << 20);
    let anybody = HeaderMap::new();
    kit.fetch("/a", &anybody, (200, LASTING, "new"), (5, 6));
    kit.fetch("/a", &anybody, (200, LASTING, "old"), (4, 7));
    assert_eq!(kit.given("/a", &anybody, 8).as_deref(), Some("new"));
}

/// What is held is looked at when the answer is put, not when the question was asked.
#[test]
fn x4_an_error_answer_replaces_no_good_copy_that_came_while_it_was_under_way() {
    for status in [429, 500, 503] {
        let kit = Kit::new(1 << 20);
        let (key, anybody) = (key("/a"), HeaderMap::new());
        let looked = kit.cache.look(&key, &Method::GET, &anybody);
        let fields = headers(LASTING);
        let arrived = Arrived {
            status: StatusCode::from_u16(status).unwrap(),
            headers: &fields,
            began: at(6).mono,
            at: at(7),
        };
        assert!(
            matches!(kit.cache.judge(&looked, &arrived), Head::Storable),
            "nothing was there"
        );
        kit.fetch("/a", &anybody, (200, LASTING, "good"), (5, 7));
        let settled = kit
            .cache
            .store(
                &key,
                &looked,
                &anybody,
                (&arrived, &fields),
                &Bytes::from_static(b"bad"),
            )
            .unwrap();
        assert_eq!(settled.stored, Err(NotShelved::ErrorAnswer), "{status}");
        assert_eq!(kit.given("/a", &anybody, 8).as_deref(), Some("good"), "{status}");
    }
}

#[test]
fn e45_e46_a_retired_uri_is_gone_with_all_variants_and_late_fills_do_not_bring_it_back() {
    let kit = Kit::new(1 << 20);
    let vary = &[("cache-control", "max-age=60"), ("vary", "accept")][..];
    let requests = ["a", "b"].map(|value| headers(&[("accept", value)]));
    for request in &requests {
        kit.fetch("/a", request, (200, vary, "x"), (1, 1));
        kit.fetch("/b", request, (200, vary, "x"), (1, 1));
    }
    kit.cache.retire(&key("/a"), Retire::Hard, at(5).mono);
    for request in &requests {
        assert_eq!(kit.given("/a", request, 6), None);
        assert!(kit.given("/b", request, 6).is_some());
    }
    kit.fetch("/a", &requests[0], (200, vary, "late"), (4, 7));
    assert_eq!(kit.given("/a", &requests[0], 8), None);
    kit.fetch("/a", &requests[0], (200, vary, "new"), (6, 8));
    assert_eq!(kit.given("/a", &requests[0], 8).as_deref(), Some("new"));
}

#[test]
fn what_is_retired_softly_is_never_fresh_again_and_still_there_for_failures() {
    let kit = Kit::new(1 << 20);
    let anybody = HeaderMap::new();
    let lines = &[("cache-control", "max-age=60, stale-if-error=600")];
    kit.fetch("/a", &anybody, (200, lines, "x"), (1, 1));
    kit.cache.retire(&key("/a"), Retire::Soft, at(2).mono);
    assert_eq!(kit.given("/a", &anybody, 3), None);
    let looked = kit.cache.look(&key("/a"), &Method::GET, &anybody);
    assert_eq!(
        kit.cache.decide(&looked, at(3).mono, Origin::NoAnswer),
        Decision::StaleOnError
    );
}

#[test]
fn g29_the_copies_of_one_uri_are_capped_and_the_oldest_makes_room() {
    let kit = Kit::new(1 << 20);
    let vary = &[("cache-control", "max-age=6000"), ("vary", "accept")][..];
    let most = i64::try_from(evenkeel::http::COPIES_MAX).unwrap();
    let request = |n: i64| headers(&[("accept", &n.to_string())]);
    for n in 0..=most {
        kit.fetch("/a", &request(n), (200, vary, &n.to_string()), (n, n));
    }
    assert_eq!(kit.given("/a", &request(0), most), None);
    for n in 1..=most {
        assert_eq!(kit.given("/a", &request(n), most), Some(n.to_string()));
    }
}

#[test]
fn an_error_answer_never_takes_the_place_of_a_good_copy() {
    let kit = Kit::new(1 << 20);
    let anybody = HeaderMap::new();
    kit.fetch(
        "/a",
        &anybody,
        (200, &[("cache-control", "max-age=1, stale-if-error=60")], "good"),
        (1, 1),
    );
    kit.fetch("/a", &anybody, (503, LASTING, "bad"), (5, 5));
    let looked = kit.cache.look(&key("/a"), &Method::GET, &anybody);
    assert_eq!(looked.chosen().unwrap().body(), "good");
}

#[test]
fn case_011_a_private_cache_keeps_what_is_for_one_principal_under_that_principal() {
    let cache = HttpCache::new(&Shelf::new(1 << 20), CacheRules::plain(Sharing::Private));
    let request = headers(&[("authorization", "Bearer t1")]);
    let fields = headers(&[("cache-control", "private, max-age=60")]);
    let of = |principal: &str| UriKey::of("r", &("http", "a.example", principal), "/me").unwrap();
    let arrived = Arrived {
        status: StatusCode::OK,
        headers: &fields,
        began: at(0).mono,
        at: at(0),
    };
    let looked = cache.look(&of("t1"), &Method::GET, &request);
    assert!(matches!(cache.judge(&looked, &arrived), Head::Storable));
    let body = Bytes::from_static(b"mine");
    let stored = cache.store(&of("t1"), &looked, &request, (&arrived, &fields), &body);
    assert_eq!(stored.unwrap().stored, Ok(()));
    let decided = |principal: &str| {
        let looked = cache.look(&of(principal), &Method::GET, &request);
        cache.decide(&looked, at(1).mono, Origin::NotAsked)
    };
    assert_eq!(decided("t1"), Decision::Fresh);
    assert!(matches!(decided("t2"), Decision::Fetch(_)));
}

/// Fills a shelf with so many objects of 1 KiB and returns how many it holds, and its bytes.
fn filled(objects: usize, bound: u64) -> (usize, u64, Shelf) {
    let kit = Kit::new(bound);
    let anybody = HeaderMap::new();
    let lines = &[
        ("cache-control", "max-age=600"),
        ("content-type", "application/json"),
        ("date", "Sun, 29 Nov 2026 18:24:03 GMT"),
        ("server", "origin"),
    ];
    let body = "x".repeat(1024);
    for n in 0..objects {
        kit.fetch(&format!("/objects/{n}"), &anybody, (200, lines, &body), (1, 1));
        assert!(kit.cache.shelf().bytes() <= bound);
    }
    let shelf = kit.cache.shelf().clone();
    (shelf.uris(), shelf.bytes(), shelf)
}

/// A million in full, a hundredth of it on each run: `EVENKEEL_FULL=1 cargo test --release` fills the million.
#[test]
fn many_small_objects_obey_the_bound_and_what_goes_is_counted() {
    let full = option_env!("EVENKEEL_FULL").is_some();
    let objects = if full { 1_000_000 } else { 10_000 };
    let bound = objects as u64 * 800;
    let (uris, bytes, shelf) = filled(objects, bound);
    assert!(bytes > bound / 2, "it is used: {bytes} of {bound}");
    assert_eq!(uris as u64 + shelf.evicted(), objects as u64);
}

/// What an object costs beside its body and the text of its fields, key included, by the shelf's own count. That count
/// is within two in a hundred of what the process grows by.
#[test]
fn an_object_costs_at_most_600_bytes_beside_its_body_and_fields() {
    let (uris, bytes, _) = filled(1000, 64 << 20);
    let values = "max-age=600application/jsonSun, 29 Nov 2026 18:24:03 GMTorigin";
    let overhead = bytes / uris as u64 - 1024 - values.len() as u64;
    assert!(overhead <= 600, "{overhead}");
}

/// What the model knows: per target, for each value of the field that selects, the newest attempt and its answer.
type Model = HashMap<(u8, u8), (i64, String)>;

#[derive(Clone, Debug)]
enum Act {
    Fetch {
        target: u8,
        value: u8,
        began: i64,
        storable: bool,
    },
    Retire {
        target: u8,
    },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (0..3_u8, 0..3_u8, 0..10_i64, prop::bool::weighted(0.8)).prop_map(
            |(target, value, earlier, storable)| Act::Fetch { target, value, began: earlier, storable }
        ),
        1 => (0..3_u8).prop_map(|target| Act::Retire { target }),
    ];
    prop::collection::vec(act, 1..60)
}

proptest! {
    /// The shelf gives what a plain map would: the answer of the newest attempt, unless that or a retirement since
    /// has taken it away.
    #[test]
    fn the_shelf_agrees_with_a_plain_model(acts in acts()) {
        let kit = Kit::new(8 << 20);
        let mut model = Model::new();
        let mut retired: HashMap<u8, i64> = HashMap::new();
        let request = |value: u8| headers(&[("accept", &value.to_string())]);
        let lasting = &[("cache-control", "max-age=100000"), ("vary", "accept")];
        let forbidden = &[("cache-control", "no-store")];
        for (now, act) in (100_i64..).zip(acts) {
            match act {
                Act::Fetch { target, value, began, storable } => {
                    let began = now - began;
                    let body = format!("{now}");
                    let lines: &[(&str, &str)] = if storable { lasting } else { forbidden };
                    kit.fetch(&format!("/{target}"), &request(value), (200, lines, &body), (began, now));
                    let place = (target, value);
                    let newer = model.get(&place).is_some_and(|(held, _)| *held > began);
                    let void = storable && retired.get(&target).is_some_and(|at| began < *at);
                    if !newer && !void {
                        if storable {
                            model.insert(place, (began, body));
                        } else {
                            model.remove(&place);
                        }
                    }
                }
                Act::Retire { target } => {
                    kit.cache.retire(&key(&format!("/{target}")), Retire::Hard, at(now).mono);
                    model.retain(|(held, _), (began, _)| *held != target || *began > now);
                    retired.insert(target, now);
                }
            }
            for target in 0..3 {
                for value in 0..3 {
                    let given = kit.given(&format!("/{target}"), &request(value), now);
                    let expected = model.get(&(target, value)).map(|(_, body)| body.clone());
                    prop_assert_eq!(given, expected, "{} {}", target, value);
                }
            }
        }
    }
}

#[test]
fn bodies_are_shared_not_copied() {
    let kit = Kit::new(1 << 20);
    let anybody = HeaderMap::new();
    kit.fetch("/a", &anybody, (200, LASTING, "body"), (1, 1));
    let body = || {
        let looked = kit.cache.look(&key("/a"), &Method::GET, &anybody);
        looked.chosen().unwrap().body().clone()
    };
    assert_eq!(body().as_ptr(), body().as_ptr());
}

#[test]
fn a_scope_beyond_its_share_makes_room_from_its_own_and_leaves_others_alone() {
    let shelf = Shelf::with_shares(1 << 20, 100_000);
    let cache = HttpCache::new(&shelf, CacheRules::plain(Sharing::Shared));
    let fields = headers(LASTING);
    let anybody = HeaderMap::new();
    let key = |tenant: &str, n: u32| {
        let target = format!("/{n}");
        let key = UriKey::of("r", &("http", "a.example", tenant), &target).unwrap();
        key.with_budget(&target)
    };
    let put = |tenant: &str, n: u32| {
        let key = key(tenant, n);
        let looked = cache.look(&key, &Method::GET, &anybody);
        let arrived = Arrived {
            status: StatusCode::OK,
            headers: &fields,
            began: at(0).mono,
            at: at(0),
        };
        let body = Bytes::from(vec![b'x'; 1000]);
        let stored = cache.store(&key, &looked, &anybody, (&arrived, &fields), &body);
        assert_eq!(stored.unwrap().stored, Ok(()));
    };
    let holds = |tenant: &str, n: u32| {
        cache
            .look(&key(tenant, n), &Method::GET, &anybody)
            .chosen()
            .is_some()
    };
    for n in 0..10 {
        put("small", n);
    }
    for n in 0..500 {
        put("large", n);
        put("large", 499); // again and again: it is charged once
    }
    assert!((0..10).all(|n| holds("small", n)));
    assert!(!holds("large", 0) && holds("large", 498));
    let held = (0..500).filter(|n| holds("large", *n)).count();
    assert!((40..=104).contains(&held), "{held}");
    assert_eq!(shelf.uris(), held + 10);
    assert!(shelf.bytes() <= (1 << 20) / 10 + 20_000, "{}", shelf.bytes());
}
