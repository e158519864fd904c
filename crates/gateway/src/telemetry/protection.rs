//! Decides how decisions at the doors of routes are exported: by route, authority, what was decided, and why nobody did.
//! It exists beside the calls because a denied request is none, and one that nobody decided about says more here.
//! It refuses to leave out what has not happened yet, so that an alert on it has a zero to start from.

use std::fmt;

use evenkeel::{Ending, Protection, Reason};

use super::{
    metrics::{Out, Reach},
    series,
};
use crate::proxy::App;

/// Writes the series.
pub(super) fn write(app: &App, out: &mut Out<'_>) -> fmt::Result {
    let all = app.gates.iter().flat_map(|gate| {
        let counts = gate.guard.counts();
        let reach = Reach::without_rungs(gate.guard.dependency());
        let decided = [Protection::Allowed, Protection::Denied];
        let decided = decided.map(|what| (what.as_str(), "none", counts.total(what)));
        let unavailable = Reason::ALL
            .map(|reason| (reason, counts.unavailable(reason)))
            .into_iter()
            .filter(move |(reason, count)| {
                // Nothing is passed on as it came, so each of these ends in nobody's decision.
                let always = matches!(reason, Reason::ErrorAnswer | Reason::Busy | Reason::Fault);
                *count > 0 || always || reach.reaches(Ending::Refused, Some(*reason))
            })
            .map(|(reason, count)| (Protection::Unavailable.as_str(), reason.as_str(), count));
        decided
            .into_iter()
            .chain(unavailable)
            .chain([("abandoned", "none", counts.abandoned())])
            .map(|(decision, reason, count)| (vec![&*gate.route, &*gate.authority, decision, reason], count))
    });
    out.write(&series::PROTECT, all)
}
