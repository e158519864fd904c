//! Decides which alerts a store on disk needs: that it is down, and that its disk does not keep up.
//! It exists because neither is felt before the next start, and then there is nothing to answer from.
//! It refuses to wake anybody: the gateway serves from memory as it did.

use std::time::Duration;

use super::{
    Alerts,
    parts::KEEP,
    rule::{Input, Proof, Rule, Severity},
};
use crate::{config::Contract, proxy::STORE_BEHIND};

pub(super) const DOWN: &str = "EvenkeelStoreDown";
pub(super) const BEHIND: &str = "EvenkeelStoreBehind";

const MINUTE: Duration = Duration::from_secs(60);
/// Longer than a rolling deploy, in which the new gateway waits for the old one to let go of the file.
const DOWN_FOR: Duration = Duration::from_secs(300);

pub(super) fn add(alerts: &mut Alerts, contract: &Contract) {
    if contract.store.is_none() {
        return;
    }
    let up = "evenkeel_store_up";
    alerts.rules.push(Rule {
        name: DOWN,
        about: None,
        expr: format!("min({up}) == 0"),
        wait: DOWN_FOR,
        keep: Duration::ZERO,
        severity: Severity::Warning,
        summary: "The store on disk of a gateway is down".to_owned(),
        impact: "Nothing for users yet. Copies are in memory alone, so a gateway that starts anew has none for an outage."
            .to_owned(),
        action: "`evenkeel status` says why and since when, with what to do; so does event=store-down in the log."
            .to_owned(),
        proof: Proof {
            fires: vec![Input::stays(up, 0)],
            quiet: vec![Input::stays(up, 1)],
            summary: None,
            by: 15 * MINUTE,
        },
    });
    let waits = "evenkeel_store_backlog_seconds";
    let most = STORE_BEHIND.as_secs();
    alerts.rules.push(Rule {
        name: BEHIND,
        about: None,
        expr: format!("max({waits}) > {most}"),
        wait: 2 * MINUTE,
        keep: KEEP,
        severity: Severity::Warning,
        summary: "The disk of a store does not keep up".to_owned(),
        impact: "Nothing for users yet. What waits would be lost in a crash, and when there is no more room new copies are not \
            written at all."
            .to_owned(),
        action: "See how busy the disk is, and evenkeel_store_drops_total for what was not written.".to_owned(),
        proof: Proof {
            fires: vec![Input::stays(waits, most + 1)],
            quiet: vec![Input::stays(waits, most)],
            summary: None,
            by: 15 * MINUTE,
        },
    });
}
