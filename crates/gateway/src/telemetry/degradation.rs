//! Decides when a route begins to be degraded, when that changes, and when it is over.
//! It exists because counters say how many and an operator asks since when; log and status both ask here.
//! It refuses to read clocks and counters: whoever looks hands them in, and is told what has turned since the last look.

use std::{collections::VecDeque, time::Duration};

use evenkeel::{Ending, Mono, Reason};

/// A route is degraded while at least one in this many of its latest calls is.
const BEGINS_AT_ONE_IN: u64 = 100;
/// It is no longer while fewer than one in this many is: further apart, so that it does not come and go at the edge.
const ENDS_BELOW_ONE_IN: u64 = 200;
/// What the latest calls are; also the shortest degradation and the shortest time between two changes that are told, so
/// that a dependency that comes and goes every few seconds is one long degradation and not many short ones.
const LATEST: Duration = Duration::from_secs(10);
/// After this long without a call nobody knows how the next one would end.
const FORGET: Duration = Duration::from_secs(300);
/// How far back shares are known.
const SPAN: Duration = Duration::from_secs(60);
/// Looks within this time are taken together.
const SLOT: Duration = Duration::from_secs(1);

/// How many calls ended in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// The ending.
    pub(crate) ending: Ending,
    /// Its reason.
    pub(crate) reason: Option<Reason>,
    /// How many.
    pub(crate) count: u64,
}

/// What calls came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Came {
    /// Every call, the degraded ones included.
    pub(crate) calls: u64,
    /// Those that got less than they asked for, by ending and reason: at most one for each pair.
    pub(crate) degraded: Vec<Kind>,
}

impl Came {
    /// Returns how many got less than they asked for.
    pub(crate) fn degraded(&self) -> u64 {
        self.degraded.iter().map(|kind| kind.count).sum()
    }

    /// Returns how many got less, with this ending, whatever the reason.
    pub(crate) fn of(&self, ending: Ending) -> u64 {
        let same = self.degraded.iter().filter(|kind| kind.ending == ending);
        same.map(|kind| kind.count).sum()
    }

    /// Returns what most of those came to that got less.
    pub(crate) fn mostly(&self) -> Option<Ending> {
        let endings = self.degraded.iter().map(|kind| kind.ending);
        endings.max_by_key(|ending| (self.of(*ending), ending.index()))
    }

    /// Returns the reason of most calls with this ending.
    pub(crate) fn why(&self, ending: Ending) -> Option<Reason> {
        let same = self.degraded.iter().filter(|kind| kind.ending == ending);
        same.max_by_key(|kind| kind.count).and_then(|kind| kind.reason)
    }

    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        for kind in &other.degraded {
            match self
                .degraded
                .iter_mut()
                .find(|known| (known.ending, known.reason) == (kind.ending, kind.reason))
            {
                Some(known) => known.count += kind.count,
                None => self.degraded.push(*kind),
            }
        }
    }
}

/// Tells whether a call that ended so got less than it asked for. A copy that is being refreshed is a full answer.
pub(crate) const fn is_degraded(ending: Ending, reason: Option<Reason>) -> bool {
    match ending {
        Ending::Answered(rung) => rung.is_degraded() && !matches!(reason, Some(Reason::Revalidating)),
        // Without a reason it is the dependency's own answer: a refusal, and not for want of anything.
        Ending::Failed => reason.is_some(),
        Ending::Refused | Ending::Cut => true,
        Ending::Abandoned => false,
    }
}

/// A time during which a route is degraded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Episode {
    /// When it was first seen, to a second.
    pub(crate) since: Mono,
    /// What calls have come to since then.
    pub(crate) came: Came,
    /// What most of those get that get less; this is what changes.
    pub(crate) mostly: Ending,
    told: Mono,
}

/// What has turned since the last look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Calls get less than they ask for.
    Began(Episode),
    /// They get something else than before.
    Changed {
        /// What most of them got.
        from: Ending,
        /// The rest.
        episode: Episode,
    },
    /// They get what they ask for, or nobody has asked for long.
    Ended {
        /// All of it.
        episode: Episode,
        /// When it was over.
        at: Mono,
        /// Calls are well again; `false` if there were none any more.
        well: bool,
    },
}

#[derive(Clone, Debug)]
struct Slot {
    at: Mono,
    came: Came,
}

/// Where one route stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Degradation {
    /// The counters at the last look: endings by reasons.
    before: Vec<u64>,
    /// The last minute, a second each.
    slots: VecDeque<Slot>,
    episode: Option<Episode>,
    called: Option<Mono>,
}

impl Degradation {
    /// Looks at the counters of the route, which only ever grow, and tells what has turned.
    ///
    /// To be called about once a second; what happened between two looks is taken for one moment.
    pub(crate) fn look(&mut self, now: Mono, count: impl Fn(Ending, Option<Reason>) -> u64) -> Option<Turn> {
        let came = self.difference(count);
        self.note(now, &came);
        let latest = self.last(now, LATEST);
        match self.episode.take() {
            None => self.begin(now, &latest),
            Some(mut episode) => {
                episode.came.add(&came);
                let (turn, left) = self.go_on(now, episode, &latest);
                self.episode = left;
                turn
            }
        }
    }

    /// Returns the degradation under way.
    pub(crate) const fn current(&self) -> Option<&Episode> {
        self.episode.as_ref()
    }

    /// Returns what the calls of the last minute came to.
    pub(crate) fn last_minute(&self, now: Mono) -> Came {
        self.last(now, SPAN)
    }

    fn difference(&mut self, count: impl Fn(Ending, Option<Reason>) -> u64) -> Came {
        let mut came = Came::default();
        let mut after = Vec::with_capacity(self.before.len());
        for ending in Ending::ALL {
            for reason in std::iter::once(None).chain(Reason::ALL.into_iter().map(Some)) {
                let value = count(ending, reason);
                let known = self.before.get(after.len()).copied().unwrap_or(0);
                after.push(value);
                let count = value.saturating_sub(known);
                if count == 0 {
                    continue;
                }
                came.calls += count;
                if is_degraded(ending, reason) {
                    came.degraded.push(Kind {
                        ending,
                        reason,
                        count,
                    });
                }
            }
        }
        self.before = after;
        came
    }

    fn note(&mut self, now: Mono, came: &Came) {
        if came.calls > 0 {
            self.called = Some(now);
        }
        match self.slots.back_mut() {
            Some(slot) if now.since(slot.at) < SLOT => slot.came.add(came),
            Some(_) | None => self.slots.push_back(Slot {
                at: now,
                came: came.clone(),
            }),
        }
        while self.slots.front().is_some_and(|slot| now.since(slot.at) >= SPAN) {
            self.slots.pop_front();
        }
    }

    fn last(&self, now: Mono, span: Duration) -> Came {
        let mut sum = Came::default();
        let recent = self.slots.iter().rev();
        recent
            .take_while(|slot| now.since(slot.at) < span)
            .for_each(|slot| sum.add(&slot.came));
        sum
    }

    fn begin(&mut self, now: Mono, latest: &Came) -> Option<Turn> {
        let mostly = latest.mostly()?;
        if latest.degraded() * BEGINS_AT_ONE_IN < latest.calls {
            return None;
        }
        let mut first = self.slots.iter().filter(|slot| now.since(slot.at) < LATEST);
        let since = first
            .find(|slot| slot.came.degraded() > 0)
            .map_or(now, |slot| slot.at);
        let mut came = Came::default();
        let from_then = self.slots.iter().filter(|slot| slot.at >= since);
        from_then.for_each(|slot| came.add(&slot.came));
        let episode = Episode {
            since,
            came,
            mostly,
            told: now,
        };
        self.episode = Some(episode.clone());
        Some(Turn::Began(episode))
    }

    fn go_on(&self, now: Mono, mut episode: Episode, latest: &Came) -> (Option<Turn>, Option<Episode>) {
        let lasted = now.since(episode.since) >= LATEST;
        let well = latest.calls > 0 && latest.degraded() * ENDS_BELOW_ONE_IN < latest.calls;
        let forgotten = self.called.is_none_or(|at| now.since(at) >= FORGET);
        if (lasted && well) || forgotten {
            let ended = Turn::Ended {
                episode,
                at: now,
                well,
            };
            return (Some(ended), None);
        }
        let from = episode.mostly;
        match latest.mostly() {
            Some(mostly) if mostly != from && now.since(episode.told) >= LATEST => {
                episode.mostly = mostly;
                episode.told = now;
                let changed = Turn::Changed {
                    from,
                    episode: episode.clone(),
                };
                (Some(changed), Some(episode))
            }
            Some(_) | None => (None, Some(episode)),
        }
    }
}

#[cfg(test)]
#[path = "degradation_tests.rs"]
mod tests;
