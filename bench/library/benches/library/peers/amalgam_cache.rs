//! Decides how amalgam-cache is measured: fresh hits, and stale ones by its fail-safe.
//! It exists because it is the library that, like ours, serves old data while the source fails: rows 11 and 12.
//! It refuses the comparison with its plain lookup alone, which decides nothing; that one is for orientation.

use std::{error::Error, hint::black_box, sync::Arc, thread, time::Duration};

use amalgam::{Cache, EntryOptions};
use evenkeel_bench_library::Case;
use tokio::runtime::{Builder, Runtime};

use crate::{
    data::{Data, Value},
    work::down,
};

/// Inside its lifetime, by the call that would also load it.
pub(crate) const FRESH: &str = "amalgam-cache 0.4, get_or_set";
/// Inside its lifetime, by the call that only looks.
pub(crate) const FRESH_LOOK: &str = "amalgam-cache 0.4, try_get";
/// Past its lifetime; the source is asked each time and fails.
pub(crate) const STALE_AFTER_FAILURE: &str = "amalgam-cache 0.4, each call fails";
/// Past its lifetime; the source failed a while ago and is left alone.
pub(crate) const STALE_WHILE_THROTTLED: &str = "amalgam-cache 0.4, throttled";

const HOUR: Duration = Duration::from_secs(3_600);
/// Longer than any run.
const THROTTLE: Duration = Duration::from_secs(3_000);
const LIFETIME_BEFORE_STALE: Duration = Duration::from_millis(1);

/// Its caches want a runtime for what they do in the background.
type Background = Arc<Runtime>;

pub(crate) fn cases() -> Result<Vec<Case>, Box<dyn Error>> {
    let background = Arc::new(
        Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?,
    );
    let data = Data::new();
    let fresh = cache(&background, &data, EntryOptions::new(HOUR))?;
    let stale = |throttle| {
        let options =
            EntryOptions::new(LIFETIME_BEFORE_STALE).with_fail_safe(true, Some(HOUR), Some(throttle));
        cache(&background, &data, options)
    };
    let cases = vec![
        get_or_set(fresh.clone(), &background, data.clone()),
        try_get(fresh, &background, data.clone()),
        stale_hit(
            STALE_AFTER_FAILURE,
            stale(Duration::from_nanos(1))?,
            &background,
            data.clone(),
        ),
        stale_hit(STALE_WHILE_THROTTLED, stale(THROTTLE)?, &background, data.clone()),
    ];
    thread::sleep(10 * LIFETIME_BEFORE_STALE);
    Ok(cases)
}

fn cache(
    background: &Background,
    data: &Data,
    options: EntryOptions,
) -> Result<Cache<Value>, Box<dyn Error>> {
    let inside = background.enter();
    let cache = Cache::<Value>::builder().default_options(options).try_build()?;
    drop(inside);
    background.block_on(async {
        for key in data.keys() {
            cache.set(key, data.value.clone()).await?;
        }
        Ok(cache)
    })
}

fn get_or_set(cache: Cache<Value>, background: &Background, data: Data) -> Case {
    let background = Arc::clone(background);
    Case::new(FRESH, move |_, calls| {
        background.block_on(async {
            for call in 0..calls {
                let value = cache
                    .get_or_set(data.key(call), |_| async { down::<Value>(0) })
                    .await;
                black_box(value).expect("a hit");
            }
        });
    })
}

fn try_get(cache: Cache<Value>, background: &Background, data: Data) -> Case {
    let background = Arc::clone(background);
    Case::new(FRESH_LOOK, move |_, calls| {
        background.block_on(async {
            for call in 0..calls {
                black_box(cache.try_get(data.key(call)).await).expect("a hit");
            }
        });
    })
}

fn stale_hit(name: &'static str, cache: Cache<Value>, background: &Background, data: Data) -> Case {
    let background = Arc::clone(background);
    Case::new(name, move |_, calls| {
        background.block_on(async {
            for call in 0..calls {
                let value = cache
                    .get_or_set(data.stale_key(call), |_| async { down::<Value>(0) })
                    .await;
                black_box(value).expect("stale");
            }
        });
    })
}
