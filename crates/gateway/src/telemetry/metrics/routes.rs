//! Decides what is exported of each route: what its calls came to, what stood in, what was kept and what was not.
//! It exists so that the promise of a contract can be watched route by route.
//! It refuses to call an answer made of old data live.

use std::fmt;

use evenkeel::{Counts, Ending, Reason, Refreshed, Rung, Skipped};

use super::{Scrape, out::Out, reach::Reach};
use crate::{
    proxy::{Route, Validated, Why},
    telemetry::{coverage, exercises, series},
};

impl Scrape<'_> {
    pub(super) fn calls(&self, out: &mut Out<'_>) -> fmt::Result {
        let routes: Vec<(&str, Counts, Reach)> = self
            .app
            .routes
            .iter()
            .map(|route| (&*route.name, route.guard.counts(), Reach::of(route, &self.app)))
            .collect();
        let calls = routes.iter().flat_map(|(route, counts, reach)| {
            Ending::ALL
                .into_iter()
                .flat_map(move |ending| reasons().map(move |reason| (ending, reason)))
                .map(move |(ending, reason)| (ending, reason, counts.get(ending, reason)))
                .filter(move |(ending, reason, count)| *count > 0 || reach.reaches(*ending, *reason))
                .map(move |(ending, reason, count)| {
                    let rung = ending.rung().map_or("none", Rung::as_str);
                    let reason = reason.map_or("none", Reason::as_str);
                    (vec![*route, ending.as_str(), rung, reason], count)
                })
        });
        out.write(&series::CALLS, calls)?;
        let skipped = routes.iter().flat_map(|(route, counts, reach)| {
            Rung::ALL
                .into_iter()
                .flat_map(|rung| Skipped::ALL.into_iter().map(move |why| (rung, why)))
                .map(move |(rung, why)| (rung, why, counts.skipped(rung, why)))
                .filter(move |(rung, why, count)| *count > 0 || reach.skips(*rung, *why))
                .map(move |(rung, why, count)| (vec![*route, rung.as_str(), why.as_str()], count))
        });
        out.write(&series::SKIPPED, skipped)?;
        out.write(&series::EXERCISES, exercises::all(&self.app))?;
        let not_kept = self
            .app
            .routes
            .iter()
            .zip(&routes)
            .flat_map(|(route, (name, counts, reach))| {
                // Two of the words are said by the store of snapshots as well as by the shelf.
                let by_the_store = |why| {
                    [
                        (Why::TooBig, evenkeel::NotKept::TooBig),
                        (Why::Superseded, evenkeel::NotKept::Superseded),
                    ]
                    .into_iter()
                    .find(|(own, _)| *own == why)
                    .map_or(0, |(_, theirs)| counts.not_kept(theirs))
                };
                Why::all()
                    .map(move |why| (why.as_str(), route.not_kept(why) + by_the_store(why)))
                    .filter(move |(_, count)| *count > 0 || reach.keeps)
                    .map(move |(why, count)| (vec![*name, why], count))
            });
        out.write(&series::NOT_KEPT, not_kept)?;
        let joined = routes
            .iter()
            .map(|(route, counts, _)| (vec![*route], counts.joined()));
        out.write(&series::JOINED, joined)?;
        let refreshes = routes.iter().flat_map(|(route, counts, reach)| {
            Refreshed::ALL
                .into_iter()
                .map(|end| (vec![*route, end.as_str()], counts.refreshes(end)))
                .filter(|(_, count)| *count > 0 || reach.revalidates)
        });
        out.write(&series::REFRESHES, refreshes)?;
        let validations = self.app.routes.iter().filter(|route| route.cache.is_some());
        let validations = validations.flat_map(|route| {
            Validated::ALL.map(|result| (vec![&*route.name, result.as_str()], route.validations(result)))
        });
        out.write(&series::VALIDATIONS, validations)?;
        self.kept(&routes, out)
    }

    /// Writes what is there for a failure, and how old it was when it was needed.
    fn kept(&self, routes: &[(&str, Counts, Reach)], out: &mut Out<'_>) -> fmt::Result {
        let both = || self.app.routes.iter().zip(routes);
        let keeping = || both().filter(|(_, (_, _, reach))| reach.keeps);
        let coverage = keeping().flat_map(|(route, (name, counts, _))| {
            let more = route.answered_by_copies(counts);
            let found = route.seen.coverage.counts();
            coverage::WORDS
                .iter()
                .zip(found)
                .map(move |((word, why), count)| {
                    let count = if why.is_none() { count + more } else { count };
                    (vec![*name, *word], count)
                })
        });
        out.write(&series::COVERAGE, coverage)?;
        let recent = keeping().filter_map(|(route, (name, counts, _))| {
            let share = route.seen.coverage.recent(route.answered_by_copies(counts))?;
            Some((vec![*name], f64::from(share) / 1e6))
        });
        out.write_real(&series::COVERAGE_RECENT, recent)?;
        let limits = both().filter_map(|(route, (name, ..))| {
            let limit = stale_limit(route)?;
            Some((vec![*name], limit.as_secs_f64()))
        });
        out.write_real(&series::STALE_LIMIT, limits)?;
        let ages = keeping().map(|(route, (name, ..))| (vec![*name], route.seen.ages.read()));
        out.write_ages(&series::STALE_AGE, ages)?;
        let sharing = || both().filter(|(route, _)| route.shares());
        let under_way = sharing().map(|(route, (name, ..))| (vec![*name], route.guard.flights().0 as u64));
        out.write(&series::SHARED, under_way)?;
        let unshareable = sharing().map(|(route, (name, ..))| (vec![*name], route.guard.flights().1 as u64));
        out.write(&series::UNSHAREABLE, unshareable)
    }

    pub(super) fn passes(&self, out: &mut Out<'_>) -> fmt::Result {
        let passes = self.app.passes.iter().flat_map(|passing| {
            let counts = passing.guard.counts();
            let reach = Reach::of_pass(passing, &self.app);
            Ending::ALL
                .into_iter()
                .filter(|ending| ending.rung().is_none_or(|rung| rung == Rung::Live))
                .flat_map(|ending| reasons().map(move |reason| (ending, reason)))
                .map(move |(ending, reason)| (ending, reason, counts.get(ending, reason)))
                .filter(move |(ending, reason, count)| *count > 0 || reach.reaches(*ending, *reason))
                .map(|(ending, reason, count)| {
                    let reason = reason.map_or("none", Reason::as_str);
                    (vec![&*passing.name, ending.as_str(), reason], count)
                })
        });
        out.write(&series::PASSES, passes)
    }
}

/// Returns the contract's limit on the age of old answers, where it states one.
fn stale_limit(route: &Route) -> Option<std::time::Duration> {
    match &route.cache {
        None => route.guard.contract().ladder().max_age(),
        // The ladder of such a route leaves the limit to each copy.
        Some(cache) => cache.rules().stale_age,
    }
}

/// Yields every reason, and none.
fn reasons() -> impl Iterator<Item = Option<Reason>> {
    std::iter::once(None).chain(Reason::ALL.into_iter().map(Some))
}
