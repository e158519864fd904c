//! Decides what a contract says about asking a dependency once more after a failure.
//! It exists apart from the other rules because it is the only one that adds load, and is off until written down.
//! It refuses pauses that would never end in time: such rules would read as a promise and do nothing.

use std::time::Duration;

use evenkeel_core::RetryRules;

use super::{
    across::Asker,
    keys, lints,
    reader::{Fields, shown},
    units::show_duration,
};

/// Reads the rules; `pressed` is the route with the shortest deadline of those that ask the dependency, `timeout` the span of each attempt. Ranges are the
/// engine's to check.
pub(super) fn read(
    fields: &mut Fields<'_, '_>,
    pressed: Option<&Asker>,
    timeout: Duration,
) -> Option<RetryRules> {
    let value = fields.value("retry")?;
    if value.get_ref().as_table().is_none() {
        fields.lint(
            lints::WRONG_TYPE,
            "retry",
            &shown(value),
            "a table of rules; without one nothing is retried",
            "write `retry = { attempts = 2 }`, say, or remove it",
        );
        return None;
    }
    let place = fields.place_of("retry");
    let mut reader = fields.reader();
    let mut fields = reader.open(place, value, keys::RETRY)?;
    let default = RetryRules::DEFAULT;
    let rules = RetryRules {
        attempts: fields.integer("attempts", 2, 10, "2").unwrap_or(default.attempts),
        budget_ppm: fields
            .share_ppm("budget", "\"10%\"")
            .unwrap_or(default.budget_ppm),
        floor: fields.integer("floor", 0, 1000, "3").unwrap_or(default.floor),
        pause: fields.duration("pause", "\"50ms\"").unwrap_or(default.pause),
        pause_max: fields
            .duration("pause_max", "\"1s\"")
            .unwrap_or(default.pause_max),
        retry_after_max: fields
            .duration("retry_after_max", "\"60s\"")
            .unwrap_or(default.retry_after_max),
    };
    if let Some(route) = pressed
        && rules.pause >= route.deadline
    {
        fields.lint(
            lints::RETRIES_PAST_DEADLINE,
            "pause",
            &format!(
                "\"{}\", and the deadline of {} is {}",
                show_duration(rules.pause),
                route.label(),
                show_duration(route.deadline)
            ),
            "less than the shortest deadline of its routes: a pause that would not end in time is not begun",
            "lower it, or raise that `deadline`",
        );
    }
    if let (Some(route), Some(last)) = (pressed, timeout.checked_mul(rules.attempts - 1))
        && last >= route.deadline
    {
        fields.lint(
            lints::LAST_ATTEMPT_TOO_LATE,
            "attempts",
            &format!(
                "{}, and those before the last take up to {} of the {} that {} has",
                rules.attempts,
                show_duration(last),
                show_duration(route.deadline),
                route.label()
            ),
            "attempts that fit into the shortest deadline of its routes, also where each runs into its timeout",
            "lower it, lower `timeout`, or raise that `deadline`",
        );
    }
    Some(rules)
}
