//! Decides how the addresses of a dependency are seen: as series, and as lines when one is left out or used again.
//! It exists because a dependency with one dead address of three looks well from above, and somebody has to mend it.
//! It refuses to hide that a rule is not kept: that too few were left to leave one out is told and counted.

use std::fmt;

use evenkeel::Wall;
use evenkeel_core::BalanceEvent;

use super::{
    line::{Level, Line},
    metrics::Out,
    series,
};
use crate::{
    config::units::show_duration,
    proxy::{AddressCameTo, App},
};

/// Writes the series of every dependency whose addresses share its attempts.
pub(super) fn write(app: &App, out: &mut Out<'_>) -> fmt::Result {
    let all: Vec<_> = app
        .dependencies
        .iter()
        .filter_map(|(dependency, upstream)| {
            let spreading = upstream.spreading()?;
            Some((dependency.name(), upstream, spreading, spreading.status()))
        })
        .collect();
    let attempts = all.iter().flat_map(|(name, upstream, spreading, _)| {
        upstream.labels().enumerate().flat_map(move |(index, address)| {
            AddressCameTo::ALL.map(|came_to| {
                (
                    vec![*name, address, came_to.as_str()],
                    spreading.count(index, came_to),
                )
            })
        })
    });
    out.write(&series::ADDRESS_ATTEMPTS, attempts)?;
    let addresses = || {
        all.iter().flat_map(|(name, upstream, _, status)| {
            upstream
                .labels()
                .zip(&status.addresses)
                .map(move |(address, one)| (vec![*name, address], one))
        })
    };
    let in_flight = addresses().map(|(labels, one)| (labels, u64::from(one.in_flight)));
    out.write(&series::ADDRESS_IN_FLIGHT, in_flight)?;
    let ejected = addresses().map(|(labels, one)| (labels, u64::from(one.ejected_until.is_some())));
    out.write(&series::ADDRESS_EJECTED, ejected)?;
    let overrides = all
        .iter()
        .map(|(name, _, _, status)| (vec![*name], u64::from(status.overrides)));
    out.write(&series::EJECTION_OVERRIDDEN, overrides)?;
    let overridden = all
        .iter()
        .map(|(name, _, spreading, _)| (vec![*name], spreading.overridden()));
    out.write(&series::OVERRIDDEN, overridden)
}

/// Returns the line for a change; `addresses` are those of the dependency.
pub(crate) fn line<'a>(
    name: &str,
    addresses: impl IntoIterator<Item = &'a str>,
    at: Wall,
    event: BalanceEvent,
) -> Line {
    let address = |index| addresses.into_iter().nth(index).unwrap_or_default().to_owned();
    let (level, event, more) = match event {
        BalanceEvent::Ejected { index, lasts } => (
            Level::Warn,
            "address-ejected",
            vec![("address", address(index)), ("lasts", show_duration(lasts))],
        ),
        BalanceEvent::Returned { index, proven } => {
            let cause = if proven { "answered" } else { "over" };
            (
                Level::Info,
                "address-returned",
                vec![("address", address(index)), ("cause", cause.to_owned())],
            )
        }
        BalanceEvent::Overridden { marked, most } => (
            Level::Warn,
            "ejection-overridden",
            vec![("ejected", marked.to_string()), ("most", most.to_string())],
        ),
        BalanceEvent::InForce { marked } => (
            Level::Info,
            "ejection-in-force",
            vec![("ejected", marked.to_string())],
        ),
    };
    let mut fields = vec![("name", name.to_owned())];
    fields.extend(more);
    Line {
        at,
        level,
        event,
        fields,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_change_is_a_line_with_the_address_it_is_about() {
        let told = |event| {
            let line = line("d", ["a:1", "b:2"], Wall::from_nanos(0), event).to_text();
            line.split_once("level=").unwrap().1.trim_end().to_owned()
        };
        assert_eq!(
            told(BalanceEvent::Ejected {
                index: 1,
                lasts: Duration::from_millis(1500)
            }),
            "warn event=address-ejected name=d address=b:2 lasts=1500ms"
        );
        assert_eq!(
            told(BalanceEvent::Returned {
                index: 0,
                proven: false
            }),
            "info event=address-returned name=d address=a:1 cause=over"
        );
        assert_eq!(
            told(BalanceEvent::Overridden { marked: 2, most: 1 }),
            "warn event=ejection-overridden name=d ejected=2 most=1"
        );
        assert_eq!(
            told(BalanceEvent::InForce { marked: 1 }),
            "info event=ejection-in-force name=d ejected=1"
        );
    }
}
