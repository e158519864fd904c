//! Decides what a series is made of.
//! It exists so that every series has a kind, its labels and one sentence that says what it is.
//! It refuses series without help: whoever reads a number has to know what was counted.

/// What kind of series it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only ever grows; exported with `_total` behind its name.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by size; exported as `_bucket`, `_sum` and `_count`.
    Histogram,
}

/// One series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// Its name, without `_total`.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Its labels, in order.
    pub labels: &'static [&'static str],
    /// What it says, in one sentence without a full stop.
    pub help: &'static str,
}

impl Series {
    /// Returns the name under which it is exported.
    #[must_use]
    pub fn exported(&self) -> String {
        match self.kind {
            Kind::Counter => format!("{}_total", self.name),
            Kind::Gauge | Kind::Histogram => self.name.to_owned(),
        }
    }
}

pub(super) const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Series {
    Series {
        name,
        kind: Kind::Counter,
        labels,
        help,
    }
}

pub(super) const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Series {
    Series {
        name,
        kind: Kind::Gauge,
        labels,
        help,
    }
}

pub(super) const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Series {
    Series {
        name,
        kind: Kind::Histogram,
        labels,
        help,
    }
}
