//! Decides how long a request waits for the store on disk, and when it does not ask at all.
//! It exists so that a disk that hangs costs a request a known time, and soon none: the store is a dependency like others,
//! behind permits, a limit of time and a breaker.
//! It refuses to serve: what it finds is put where the call looks anyway, and judged there.

use std::{sync::Arc, time::Duration};

use evenkeel::{Class, Ending, Engine, Problems, Read, Restored};
use evenkeel_core::store::{Found, SnapshotStore as _, StoreError};
use tokio::sync::oneshot;

use super::{
    super::{exchange::Exchange, route::Whose},
    Store,
    marks::{self, Kind},
    plain, shelved,
};

/// So many look-ups at once; whoever comes when all are taken goes without.
const PERMITS: u32 = 64;
/// So many failures in a row, and the store is left alone for a while.
const FAILURES: u32 = 5;
const OPEN_FOR: Duration = Duration::from_millis(500);
const OPEN_FOR_MAX: Duration = Duration::from_secs(2);

/// What look-ups go through.
pub(super) type Lane = Read<Option<Arc<Found>>, StoreError, ()>;

/// Builds it.
pub(super) fn lane(engine: &Engine, timeout: Duration) -> Result<Lane, Problems> {
    engine
        .read::<Option<Arc<Found>>>("evenkeel/store")
        .timeout(timeout)
        .concurrency(PERMITS)
        .breaker(|breaker| breaker.consecutive(FAILURES).open_for(OPEN_FOR, OPEN_FOR_MAX))
        .classify(|error: &StoreError| match error {
            StoreError::Busy => Class::Busy,
            StoreError::Down(_) | StoreError::Closed => Class::OUTAGE,
        })
        .build()
}

/// Returns how many look-ups brought no answer.
pub(super) fn given_up(lane: &Lane) -> u64 {
    let counts = lane.counts();
    counts.total(Ending::Refused) + counts.total(Ending::Failed)
}

impl Store {
    async fn look(&self, key: Vec<u8>) -> Option<Arc<Found>> {
        let work = |_call| {
            let (tell, told) = oneshot::channel();
            self.disk.get(
                &key,
                Box::new(move |found: Result<Option<Found>, StoreError>| {
                    drop(tell.send(found.map(|found| found.map(Arc::new))));
                }),
            );
            async move { told.await.unwrap_or(Err(StoreError::Closed)) }
        };
        self.lane.call((), "", work).await.ok()?.value
    }

    /// Puts into memory what a request may be answered with and memory lacks. What is returned holds it there for that.
    pub(crate) async fn bring(&self, exchange: &mut Arc<Exchange>, whose: &Whose) -> Option<Restored> {
        let route = Arc::clone(&exchange.route);
        if route.is_somebodys() {
            return None;
        }
        if let (Some(cache), Some(cached)) = (&route.cache, &exchange.cached) {
            if !cached.looked.is_missing() {
                return None;
            }
            let before = cache.shelf().before();
            let found = self
                .look(marks::key(Kind::Shelved, cached.key.as_bytes()))
                .await?;
            let (_, copies) = shelved::decode(&found.record, self.times(found.same_boot))?;
            let restored = cache.shelf().restore(&cached.key, copies, before);
            // Nobody else has the request yet.
            let exchange = Arc::get_mut(exchange)?;
            let cached = exchange.cached.as_mut()?;
            cached.looked =
                cache.look_again(&cached.key, *cached.looked.request(), &exchange.request.headers);
            return restored;
        }
        let target = exchange.request.uri.path_and_query();
        let key = route
            .guard
            .missing(whose, target.map_or("", |target| target.as_str()))?;
        let before = route.guard.memory().before();
        let found = self.look(marks::key(Kind::Plain, &key)).await?;
        let (reply, entry) = plain::decode(&found.record, self.times(found.same_boot))?;
        let weight = reply.weight();
        route.guard.memory().restore(&key, reply, weight, entry, before)
    }
}
