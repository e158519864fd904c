//! Decides what every store of snapshots does, whatever it keeps them in: one suite, played against each of them.
//! It exists so that a store that is added later is held to the same words.
//! It refuses to know a store by name but where it is made.
#![cfg(feature = "disk")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod kit;

use evenkeel_core::{
    Mono,
    store::{NotTaken, Order, Purge, PurgeHow, SnapshotStore, StoreError},
};
use evenkeel_store::{Disk, Model};
use kit::{Directory, at, flush, get, held, order, record, remove, until, wait};
use proptest::prelude::*;

/// A store, and what must outlive it.
struct Made {
    store: Box<dyn SnapshotStore>,
    _directory: Option<Directory>,
}

fn model() -> Made {
    Made {
        store: Box::new(Model::new()),
        _directory: None,
    }
}

fn disk() -> Made {
    let directory = Directory::new();
    let store = Disk::start(directory.options()).unwrap();
    until("the file is open", || store.stats().up);
    Made {
        store: Box::new(store),
        _directory: Some(directory),
    }
}

/// Plays one test against every store, once with what is written and once with what still waits to be.
fn each(test: impl Fn(&dyn SnapshotStore, &dyn Fn())) {
    for make in [model, disk] {
        for writes in [true, false] {
            let made = make();
            let store = &*made.store;
            test(store, &|| {
                if writes {
                    flush(store);
                }
            });
        }
    }
}

fn put(store: &dyn SnapshotStore, key: &str, turn: u64) -> Result<(), NotTaken> {
    store.put(record(key, turn), at(1))
}

fn purge(store: &dyn SnapshotStore, purge: Purge, how: PurgeHow, order: Order) -> u64 {
    wait(|done| store.purge(purge, how, order, done)).unwrap()
}

#[test]
fn what_is_put_comes_back_whole() {
    each(|store, written| {
        put(store, "a", 1).unwrap();
        written();
        let found = get(store, "a").unwrap();
        assert_eq!(found.record, record("a", 1));
        assert!(found.same_boot);
        assert_eq!(get(store, "b"), None);
    });
}

#[test]
fn e47_the_newest_start_stays_in_whatever_order_they_come() {
    each(|store, written| {
        put(store, "a", 5).unwrap();
        written();
        // Which of both notices depends on where the later one is; it is gone either way.
        let _refused = put(store, "a", 4);
        written();
        assert_eq!(held(store, "a"), Some(5));
        put(store, "a", 6).unwrap();
        written();
        assert_eq!(held(store, "a"), Some(6));
    });
}

#[test]
fn e46_a_removal_also_refuses_what_began_before_it_and_comes_later() {
    each(|store, written| {
        put(store, "a", 5).unwrap();
        written();
        remove(store, "a", order(6, 6));
        assert_eq!(held(store, "a"), None);
        assert_eq!(store.put(kit::record("a", 5), at(1)), Err(NotTaken::Superseded));
        let mut late = record("a", 9);
        late.order = order(9, 5);
        assert_eq!(store.put(late, at(1)), Err(NotTaken::Superseded), "a late load");
        written();
        assert_eq!(held(store, "a"), None);
        put(store, "a", 7).unwrap();
        written();
        assert_eq!(held(store, "a"), Some(7));
    });
}

#[test]
fn e47_a_late_removal_leaves_what_began_after_it() {
    each(|store, written| {
        put(store, "a", 5).unwrap();
        written();
        assert_eq!(remove(store, "a", order(6, 4)), 0);
        written();
        assert_eq!(held(store, "a"), Some(5));
    });
}

#[test]
fn a_purge_concerns_what_it_names_and_nothing_else() {
    let all = ["a", "ab", "abc", "b"];
    let purges: [(Purge, &[&str]); 8] = [
        (Purge::Target("/ab".to_owned()), &["ab"]),
        (Purge::TargetPrefix("/ab".to_owned()), &["ab", "abc"]),
        (Purge::Uri("http://shop.example/ab".to_owned()), &["ab"]),
        (
            Purge::Prefix("http://shop.example/a".to_owned()),
            &["a", "ab", "abc"],
        ),
        (Purge::Tag("tag-1".to_owned()), &["a", "b"]),
        (Purge::Scope(b"b".to_vec()), &["b"]),
        (Purge::Route("route-0".to_owned()), &["ab"]),
        (Purge::All, &all),
    ];
    for (what, concerned) in &purges {
        for how in [PurgeHow::Hard, PurgeHow::Soft] {
            each(|store, written| {
                for (key, turn) in all.iter().zip(1..) {
                    put(store, key, turn).unwrap();
                }
                written();
                put(store, "ab", 8).unwrap();
                assert_eq!(
                    purge(store, what.clone(), how, order(9, 9)),
                    concerned.len() as u64,
                    "{what:?}"
                );
                written();
                for key in all {
                    let found = get(store, key);
                    let is_concerned = concerned.contains(&key);
                    assert_eq!(
                        found.is_some(),
                        !is_concerned || how == PurgeHow::Soft,
                        "{what:?} {key}"
                    );
                    if let Some(found) = found {
                        assert_eq!(found.record.soft, is_concerned, "{what:?} {key}");
                    }
                }
            });
        }
    }
}

#[test]
fn a_purge_by_prefix_takes_the_text_as_it_is() {
    each(|store, written| {
        for key in ["a%c", "abc", "a_c", "A_c"] {
            put(store, key, 1).unwrap();
        }
        written();
        let prefix = Purge::Prefix("http://shop.example/a_".to_owned());
        assert_eq!(purge(store, prefix, PurgeHow::Hard, order(2, 2)), 1);
        assert_eq!(held(store, "a_c"), None);
        assert_eq!(held(store, "A_c"), Some(1));
    });
}

#[test]
fn e46_a_purge_refuses_what_began_before_it() {
    each(|store, _| {
        for how in [PurgeHow::Hard, PurgeHow::Soft] {
            purge(store, Purge::Tag("all".to_owned()), how, order(5, 5));
            assert_eq!(put(store, "a", 4), Err(NotTaken::Superseded));
        }
        put(store, "a", 6).unwrap();
    });
}

#[test]
fn a_purge_leaves_what_is_later_than_it() {
    each(|store, written| {
        put(store, "a", 6).unwrap();
        written();
        assert_eq!(purge(store, Purge::All, PurgeHow::Hard, order(5, 5)), 0);
        assert_eq!(held(store, "a"), Some(6));
    });
}

#[test]
fn the_latest_come_first_and_page_by_page() {
    each(|store, _| {
        for turn in 1..=25 {
            put(store, &format!("k{turn}"), turn).unwrap();
            flush(store);
        }
        let (mut after, mut seen) = (None, Vec::new());
        loop {
            let (page, next) = wait(|done| store.latest(after, 10, 1 << 20, done)).unwrap();
            assert!(page.len() <= 10);
            seen.extend(page.iter().map(|found| found.record.order.turn));
            let Some(next) = next else { break };
            after = Some(next);
        }
        assert_eq!(seen, (1..=25).rev().collect::<Vec<u64>>());
        let (page, _) = wait(|done| store.latest(None, 10, 1, done)).unwrap();
        assert_eq!(page.len(), 1, "one at least, however few bytes are asked for");
    });
}

#[test]
fn a_closed_store_takes_and_gives_nothing() {
    each(|store, _| {
        put(store, "a", 1).unwrap();
        store.close();
        assert_eq!(put(store, "b", 1), Err(NotTaken::Closed));
        let closed = wait(|done| store.get(b"b", done));
        assert!(
            matches!(closed, Err(StoreError::Closed | StoreError::Down(_))),
            "{closed:?}"
        );
        assert!(!store.stats().up);
    });
}

#[test]
fn what_nobody_dated_comes_back_undated() {
    each(|store, written| {
        let mut undated = record("a", 1);
        undated.stamp = evenkeel_core::store::Stamp::default();
        undated.order.started = None;
        store.put(undated.clone(), at(1)).unwrap();
        written();
        assert_eq!(get(store, "a").unwrap().record, undated);
    });
}

#[derive(Clone, Debug)]
enum Operation {
    Put(usize, u64),
    Remove(usize, u64),
    Purge(Purge, PurgeHow, u64),
    Flush,
}

const KEYS: [&str; 5] = ["a", "b", "aa", "bb", "aaa"];

fn operation() -> impl Strategy<Value = Operation> {
    let what = prop_oneof![
        prop::sample::select(&KEYS[..]).prop_map(|key| Purge::Uri(format!("http://shop.example/{key}"))),
        Just(Purge::Prefix("http://shop.example/a".to_owned())),
        (0..3).prop_map(|tag| Purge::Tag(format!("tag-{tag}"))),
        Just(Purge::Scope(b"b".to_vec())),
        Just(Purge::Route("route-1".to_owned())),
        Just(Purge::All),
    ];
    let how = prop_oneof![Just(PurgeHow::Hard), Just(PurgeHow::Soft)];
    prop_oneof![
        6 => (0..KEYS.len(), 1_u64..30).prop_map(|(key, turn)| Operation::Put(key, turn)),
        2 => (0..KEYS.len(), 1_u64..30).prop_map(|(key, turn)| Operation::Remove(key, turn)),
        2 => (what, how, 1_u64..30).prop_map(|(what, how, turn)| Operation::Purge(what, how, turn)),
        1 => Just(Operation::Flush),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Anything in any order leaves in every store what it leaves in the plain one.
    #[test]
    fn every_store_holds_what_the_plain_one_holds(operations in prop::collection::vec(operation(), 1..60)) {
        let (plain, made) = (Model::new(), disk());
        for operation in &operations {
            for store in [&plain as &dyn SnapshotStore, &*made.store] {
                match operation {
                    Operation::Put(key, turn) => drop(put(store, KEYS[*key], *turn)),
                    Operation::Remove(key, turn) => {
                        remove(store, KEYS[*key], order(*turn, i64::try_from(*turn).unwrap()));
                    }
                    Operation::Purge(what, how, turn) => {
                        purge(store, what.clone(), *how, order(*turn, i64::try_from(*turn).unwrap()));
                    }
                    Operation::Flush => flush(store),
                }
            }
            for key in KEYS {
                let of_plain = get(&plain, key).map(|found| (found.record.order, found.record.soft));
                let of_store = get(&*made.store, key).map(|found| (found.record.order, found.record.soft));
                prop_assert_eq!(of_plain, of_store, "{} after {:?}", key, operation);
            }
        }
        flush(&*made.store);
        prop_assert_eq!(plain.stats().entries, made.store.stats().entries);
    }
}

#[test]
fn a_store_is_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Disk>();
    shared::<Model>();
    let _: Mono = at(1);
}
