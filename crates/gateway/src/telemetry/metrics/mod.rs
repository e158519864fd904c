//! Decides what is exported at a scrape: every series, from the engine's own counters.
//! It exists as a collector, so that nothing is counted twice and the way of a request touches no registry.
//! It refuses to leave a reachable series out because it is still zero: alerts need the zero.

mod contract;
mod dependencies;
mod gateway;
mod observed;
mod out;
mod own;
mod reach;
mod routes;

use std::{fmt, sync::Arc};

use evenkeel::Wall;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, prometheus_text},
    registry::Registry,
};

pub(super) use self::{out::Out, reach::Reach};
use crate::proxy::{App, Connections, Current};

/// Exports the series of one gateway.
pub(crate) struct Metrics(Registry);

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    pub(crate) fn new(current: &Arc<Current>, connections: &Connections) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Source {
            current: Arc::clone(current),
            connections: connections.clone(),
            started: current.process().engine.now().wall,
        }));
        Self(registry)
    }

    /// Writes every series in the text format of Prometheus.
    pub(crate) fn text(&self) -> String {
        let mut text = String::with_capacity(16 << 10);
        // Writing to a `String` cannot fail.
        prometheus_text::encode(&mut text, &self.0).unwrap_or_default();
        text
    }
}

#[derive(Debug)]
struct Source {
    current: Arc<Current>,
    connections: Connections,
    started: Wall,
}

impl Collector for Source {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // One app for the whole scrape: its series belong together.
        let scrape = Scrape {
            app: self.current.app(),
            connections: &self.connections,
            started: self.started,
        };
        let mut out = Out::new(encoder);
        scrape.calls(&mut out)?;
        scrape.passes(&mut out)?;
        scrape.observed(&mut out)?;
        super::protection::write(&scrape.app, &mut out)?;
        scrape.dependencies(&mut out)?;
        scrape.gateway(&mut out)?;
        scrape.contract(&mut out)?;
        scrape.store(&mut out)?;
        scrape.own(&mut out)
    }
}

#[derive(Debug)]
pub(super) struct Scrape<'a> {
    pub(super) app: Arc<App>,
    connections: &'a Connections,
    started: Wall,
}
