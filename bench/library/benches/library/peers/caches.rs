//! Decides how the bare caches quick_cache and moka are measured: a hit, without any rule.
//! It exists for orientation: what a lookup costs before ages, labels and counters.
//! It refuses eviction; everything fits.

use std::{hint::black_box, sync::Arc};

use evenkeel_bench_library::Case;

use crate::data::{Data, Value};

/// A hit.
pub(crate) const QUICK_CACHE: &str = "quick_cache 0.7, bare";
/// A hit.
pub(crate) const MOKA: &str = "moka 0.12, bare";

const ROOM: usize = 20_000;

pub(crate) fn cases() -> Vec<Case> {
    vec![quick_cache(Data::new()), moka(Data::new())]
}

fn quick_cache(data: Data) -> Case {
    let cache = Arc::new(quick_cache::sync::Cache::<String, Value>::new(ROOM));
    for key in data.keys() {
        cache.insert(key.to_owned(), data.value.clone());
    }
    Case::new(QUICK_CACHE, move |_, calls| {
        for call in 0..calls {
            black_box(cache.get(data.key(call))).expect("a hit");
        }
    })
}

fn moka(data: Data) -> Case {
    let cache = moka::sync::Cache::<String, Value>::new(ROOM as u64);
    for key in data.keys() {
        cache.insert(key.to_owned(), data.value.clone());
    }
    cache.run_pending_tasks();
    Case::new(MOKA, move |_, calls| {
        for call in 0..calls {
            black_box(cache.get(data.key(call))).expect("a hit");
        }
    })
}
