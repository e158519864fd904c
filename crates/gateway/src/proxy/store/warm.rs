//! Decides what of the store on disk is in memory soon after a start: what was used last, up to most of the room.
//! It exists so that the disk can fail later without taking the copies along that are asked for most.
//! It refuses to hold anything up: it runs beside the traffic, page by page, and gives up when the store does.

use std::{sync::Arc, time::Duration};

use evenkeel::{Memory, http::Shelf};
use evenkeel_core::store::{Found, SnapshotStore as _, StoreError};
use tokio::{sync::oneshot, time::sleep};

use super::{
    super::whole::Reply,
    Store,
    marks::{self, Kind},
    plain, shelved,
};

/// So many snapshots are read at once, and about so many bytes.
const PAGE: usize = 64;
const PAGE_BYTES: u64 = 4 << 20;
/// How often it is looked whether the file is open, and how often at most.
const OPENS_WITHIN: (Duration, u32) = (Duration::from_millis(50), 200);

/// Begins to fill memory. Without a runtime nothing is begun.
pub(super) fn begin(store: &Arc<Store>, memory: &Memory<Reply>, shelf: &Shelf) {
    let (store, memory, shelf) = (Arc::downgrade(store), memory.clone(), shelf.clone());
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return;
    };
    drop(runtime.spawn(async move {
        let (pause, most) = OPENS_WITHIN;
        for _ in 0..most {
            match store.upgrade() {
                Some(store) if store.disk.down().is_none() => break,
                Some(_) => sleep(pause).await,
                None => return,
            }
        }
        let mut after = None;
        loop {
            // What was used longest ago would only push out what is asked for now.
            let has_room = |bytes: u64, limit: u64| bytes < limit / 10 * 9;
            let rooms = (
                has_room(memory.bytes(), memory.limit()),
                has_room(shelf.bytes(), shelf.limit()),
            );
            let Some(store) = store.upgrade().filter(|_| rooms != (false, false)) else {
                return;
            };
            let before = (memory.before(), shelf.before());
            let Some(Ok((page, next))) = store.page(after).await else {
                return;
            };
            for found in page {
                if store.personal.has(&found.record.marks.route) {
                    continue;
                }
                let times = store.times(found.same_boot);
                if let Some(key) = marks::key_of(Kind::Plain, &found.record.key) {
                    if let Some((reply, entry)) = plain::decode(&found.record, times).filter(|_| rooms.0) {
                        let weight = reply.weight();
                        drop(memory.restore(key, reply, weight, entry, before.0));
                    }
                } else if let Some((key, copies)) = shelved::decode(&found.record, times).filter(|_| rooms.1)
                {
                    drop(shelf.restore(&key, copies, before.1));
                }
            }
            after = next;
            if after.is_none() {
                return;
            }
            tokio::task::yield_now().await;
        }
    }));
}

type Page = Result<(Vec<Found>, Option<i64>), StoreError>;

impl Store {
    async fn page(&self, after: Option<i64>) -> Option<Page> {
        let (tell, told) = oneshot::channel();
        self.disk.latest(
            after,
            PAGE,
            PAGE_BYTES,
            Box::new(move |page| drop(tell.send(page))),
        );
        told.await.ok()
    }
}
