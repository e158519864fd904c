//! Decides which series tell of stand-ins that were tried beside live answers.
//! It exists apart from the other series because they are there only where a route exercises its ladder.
//! It refuses rungs that are never tried: a copy needs no exercise.

use evenkeel::{Exercised, Rung};

use crate::proxy::App;

/// Yields the labels and the count of each, from zero on.
pub(super) fn all(app: &App) -> impl Iterator<Item = (Vec<&str>, u64)> {
    app.routes
        .iter()
        .filter(|route| route.exercises)
        .flat_map(|route| {
            let counts = route.guard.counts();
            let ladder = route.guard.contract().ladder();
            [
                (Rung::Alternate, ladder.has_alternate()),
                (Rung::Default, ladder.has_default()),
            ]
            .into_iter()
            .filter(|(_, is_listed)| *is_listed)
            .flat_map(|(rung, _)| Exercised::ALL.map(|end| (rung, end)))
            .map(move |(rung, end)| {
                let labels = vec![&*route.name, rung.as_str(), end.as_str()];
                (labels, counts.exercises(rung, end))
            })
        })
}
