//! Decides what is exported of the gateway itself: its stores, its rooms, its connections, and what it lost.
//! It exists because the gateway is a dependency too, of everybody in front of it.
//! It refuses labels from requests here as everywhere: a problem is told by its kind.

use std::fmt;

use super::{Scrape, out::Out};
use crate::{proxy::Unread, telemetry::series};

impl Scrape<'_> {
    pub(super) fn gateway(&self, out: &mut Out<'_>) -> fmt::Result {
        let (app, process) = (&self.app, &self.app.process);
        let one = |value: u64| std::iter::once((Vec::new(), value));
        out.write(&series::SNAPSHOTS, one(process.memory.count() as u64))?;
        out.write(&series::SNAPSHOT_BYTES, one(process.memory.bytes()))?;
        out.write(&series::SNAPSHOT_BYTES_LIMIT, one(process.memory.limit()))?;
        out.write(&series::SNAPSHOT_EVICTIONS, one(process.memory.evicted()))?;
        out.write(&series::SHELF_URIS, one(process.shelf.uris() as u64))?;
        out.write(&series::SHELF_BYTES, one(process.shelf.bytes()))?;
        out.write(&series::SHELF_BYTES_LIMIT, one(process.shelf.limit()))?;
        out.write(&series::SHELF_EVICTIONS, one(process.shelf.evicted()))?;
        out.write(&series::BUFFERED_BYTES, one(process.buffers.used() as u64))?;
        out.write(&series::REQUESTS_IN_FLIGHT, one(app.requests_in_flight() as u64))?;
        out.write(&series::CLIENT_CONNECTIONS, one(self.connections.count() as u64))?;
        let misdirected = process
            .misdirected()
            .map(|(kind, count)| (vec![kind.word()], count));
        out.write(&series::MISDIRECTED, misdirected)?;
        out.write(&series::EVENTS_LOST, one(process.engine.events_lost()))?;
        out.write(&series::LOG_LINES_LOST, one(process.log.lost()))?;
        let unread = Unread::ALL.map(|what| (vec![what.as_str()], app.hints.unread(what)));
        out.write(&series::PEER_WORDS_UNREAD, unread.into_iter())?;
        let lost = app.access.as_ref().map(|access| (Vec::new(), access.lost()));
        out.write(&series::ACCESS_LINES_LOST, lost.into_iter())?;
        let version = std::iter::once((vec![env!("CARGO_PKG_VERSION")], 1));
        out.write(&series::BUILD_INFO, version)
    }
}
