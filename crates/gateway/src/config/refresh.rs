//! Decides what a route of the contract says about copies that answer although nothing has failed.
//! It exists apart from the route because the rules are the engine's and only their keys are here.
//! It refuses times that the limits of the dependency would never let happen.

use std::time::Duration;

use evenkeel_core::{RefreshRules, codes};

use super::{
    Dependency, Route,
    reader::{Fields, Reader},
    units::show_duration,
};

/// Reads the rules; `late` is for how long late work goes on.
pub(super) fn read(fields: &mut Fields<'_, '_>, late: Option<Duration>) -> RefreshRules {
    RefreshRules {
        soft_timeout: fields.duration("soft_timeout", "\"200ms\""),
        cool_down: fields.duration("cool_down", "\"1s\""),
        refresh_ahead: fields.boolean("refresh_ahead").unwrap_or_default(),
        jitter_ppm: fields.share_ppm("jitter", "\"10%\"").unwrap_or_default(),
        finish_within: late,
        ..RefreshRules::default()
    }
}

/// Adds a problem if the dependency's timeout comes before the route's soft timeout.
pub(super) fn check_beside(reader: &mut Reader<'_>, place: &str, route: &Route, dependencies: &[Dependency]) {
    let Some(soft) = route.refresh.soft_timeout else {
        return;
    };
    let Some(dependency) = dependencies.iter().find(|other| other.name == route.from) else {
        return;
    };
    if dependency.timeout <= soft {
        let place = format!("{place}.soft_timeout");
        let span = reader.places.find(&place).unwrap_or_default();
        reader.lint(
            codes::TIMES_CONFLICT,
            &place,
            span,
            &format!(
                "\"{}\", and the timeout of \"{}\" ends the attempt after \"{}\"",
                show_duration(soft),
                route.from,
                show_duration(dependency.timeout)
            ),
            "shorter than the timeout",
            "lower it, or raise the timeout: as it stands it would never end a wait",
        );
    }
}
