//! Decides when every route is looked at, and where what was found can be read.
//! It exists so that log and status speak of the same degradations, each found once.
//! It refuses to keep what the contract no longer names.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use evenkeel::{Counts, Mono};
use parking_lot::Mutex;

use super::degradation::{Came, Degradation, Episode, Turn};

/// How often the counters are looked at.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// So many turns wait to be told; the oldest go. Nobody tells them where there is no log.
const TURNS_MAX: usize = 1024;

/// Where the routes of a gateway stand.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    routes: Mutex<BTreeMap<Arc<str>, Degradation>>,
    turns: Mutex<VecDeque<(Arc<str>, Turn)>>,
}

impl Standing {
    /// Looks at the counters of all routes, and notes what has turned since the last look. A route that reads and
    /// forwards comes with both counters.
    pub(crate) fn look(&self, now: Mono, routes: &[(Arc<str>, Vec<Counts>)]) {
        let mut known = self.routes.lock();
        known.retain(|name, _| routes.iter().any(|(route, _)| route == name));
        let turned = routes.iter().filter_map(|(name, counts)| {
            let one = known.entry(Arc::clone(name)).or_default();
            let turn = one.look(now, |ending, reason| {
                counts.iter().map(|counts| counts.get(ending, reason)).sum()
            })?;
            Some((Arc::clone(name), turn))
        });
        let mut turns = self.turns.lock();
        turns.extend(turned);
        let too_many = turns.len().saturating_sub(TURNS_MAX);
        drop(turns.drain(..too_many));
    }

    /// Returns what has turned since this was asked last.
    pub(crate) fn turned(&self) -> Vec<(Arc<str>, Turn)> {
        self.turns.lock().drain(..).collect()
    }

    /// Returns the degradation of a route that is under way, and what its calls of the last minute came to.
    pub(crate) fn of(&self, route: &str, now: Mono) -> (Option<Episode>, Came) {
        let known = self.routes.lock();
        known.get(route).map_or_else(Default::default, |one| {
            (one.current().cloned(), one.last_minute(now))
        })
    }
}
