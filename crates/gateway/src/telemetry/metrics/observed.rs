//! Decides how it is counted what routes would have done that are only watched.
//! It exists apart from what calls came to, because nothing of this has happened.
//! It refuses to leave a pair out that the contract can reach.

use std::fmt;

use evenkeel::{Ending, Reason, Rung};

use super::{super::series, Scrape, out::Out, reach::Reach};

impl Scrape<'_> {
    pub(super) fn observed(&self, out: &mut Out<'_>) -> fmt::Result {
        let observed = self.app.observed.iter().flat_map(|observing| {
            let counts = observing.counts();
            let reach = match (&observing.reads, &observing.passes) {
                (Some(route), _) => Some(Reach::of(route, &self.app)),
                (None, Some(passing)) => Some(Reach::of_pass(passing, &self.app)),
                (None, None) => None,
            };
            let reasons = || std::iter::once(None).chain(Reason::ALL.into_iter().map(Some));
            Ending::ALL
                .into_iter()
                .flat_map(move |ending| reasons().map(move |reason| (ending, reason)))
                .map(move |(ending, reason)| {
                    let count = counts.iter().map(|one| one.get(ending, reason)).sum::<u64>();
                    (ending, reason, count)
                })
                .filter(move |(ending, reason, count)| {
                    *count > 0 || reach.is_some_and(|reach| reach.reaches(*ending, *reason))
                })
                .map(|(ending, reason, count)| {
                    let would = ending.rung().map_or_else(|| ending.as_str(), Rung::as_str);
                    let reason = reason.map_or("none", Reason::as_str);
                    (vec![&*observing.name, would, reason], count)
                })
        });
        out.write(&series::OBSERVED, observed)
    }
}
