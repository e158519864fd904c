//! Decides what a contract says about waiting for a permit, and about who goes without when there are too few.
//! It exists apart from the limits themselves: these say how many, this says who.
//! It refuses a queue beside nothing that limits, and a wait that no deadline would let end.

use std::time::Duration;

use evenkeel_core::{Criticality, QueueRules, codes};

use super::{
    across::Asker,
    keys, lints,
    reader::{Fields, shown},
    units::show_duration,
};

/// A burst of this many is what a page with its parts makes.
pub const QUEUE_LENGTH: u32 = 64;
/// Less than a person notices.
pub const QUEUE_WAIT: Duration = Duration::from_millis(50);

/// Reads the queue; `pressed` is the route with the shortest deadline of those that ask the dependency.
pub(super) fn read_queue(
    fields: &mut Fields<'_, '_>,
    pressed: Option<&Asker>,
    is_limited: bool,
) -> Option<QueueRules> {
    let value = fields.value("queue")?;
    if value.get_ref().as_table().is_none() {
        fields.lint(
            lints::WRONG_TYPE,
            "queue",
            &shown(value),
            "a table of bounds; without one nothing waits",
            "write `queue = { length = 64, wait = \"50ms\" }`, say, or remove it",
        );
        return None;
    }
    if !is_limited {
        fields.lint(
            codes::NO_EFFECT,
            "queue",
            "beside nothing that limits how many attempts are in flight",
            "a queue beside `concurrency`, `learned_limit` or `uses`: without one nobody ever waits",
            "add one of them, or remove it",
        );
    }
    let place = fields.place_of("queue");
    let mut reader = fields.reader();
    let mut fields = reader.open(place, value, keys::QUEUE)?;
    let length = fields.integer("length", 1, 100_000, "64").unwrap_or(QUEUE_LENGTH);
    let longest_wait = fields.duration("wait", "\"50ms\"").unwrap_or(QUEUE_WAIT);
    if let Some(route) = pressed
        && longest_wait >= route.deadline
    {
        fields.lint(
lints::WAIT_PAST_DEADLINE,
            "wait",
            &format!(
                "\"{}\", and the deadline of {} is {}",
                show_duration(longest_wait),
                route.label(),
                show_duration(route.deadline)
            ),
            "less than the shortest deadline of its routes: whoever waits that long has no time left to be answered",
            "lower it, or raise that `deadline`",
        );
    }
    Some(QueueRules { length, longest_wait })
}

/// Reads how much the requests of a route matter.
pub(super) fn read_criticality(fields: &mut Fields<'_, '_>) -> Criticality {
    // The first is what a slip of the pen is told to write.
    let words = [
        Criticality::Critical,
        Criticality::CriticalPlus,
        Criticality::SheddablePlus,
        Criticality::Sheddable,
    ]
    .map(|one| (one.as_str(), one));
    fields.word("criticality", &words).unwrap_or_default()
}
