//! Decides what a contract says about probing a dependency that nobody asks.
//! It exists because only the contract knows which path of a dependency tells whether it works and changes nothing.
//! It refuses paths that could not be sent, and a probe where there is no breaker that could want one.

use evenkeel_core::codes;
use http::uri::PathAndQuery;

use super::{keys, reader::Fields};

/// How a dependency is probed while its breaker is open, beside the requests that come anyway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthProbe {
    /// What is asked for, with GET.
    pub path: PathAndQuery,
}

/// Reads it; `is_without_breaker` where there is nothing to be probed for.
pub(super) fn read(fields: &mut Fields<'_, '_>, is_without_breaker: bool) -> Option<HealthProbe> {
    let value = fields.value("probe")?;
    if is_without_breaker {
        fields.lint(
            codes::NO_EFFECT,
            "probe",
            "no breaker",
            "a probe where there is a breaker, which asks for one while it is open",
            "remove it, or `breaker = \"off\"`",
        );
    }
    let place = fields.place_of("probe");
    let mut reader = fields.reader();
    let mut inner = reader.open(place, value, keys::PROBE)?;
    let text = inner.required_text("path", "\"/health\"")?;
    let path = text
        .starts_with('/')
        .then(|| text.parse::<PathAndQuery>().ok())
        .flatten();
    if path.is_none() {
        inner.problem(
            "path",
            &format!("\"{}\"", text.escape_debug()),
            "a path from the root, with or without a query, as it is sent",
            "write `path = \"/health\"`, say",
        );
    }
    path.map(|path| HealthProbe { path })
}
