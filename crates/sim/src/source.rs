//! Decides how a simulated source answers: how slow it gets under load, and how it fails.
//! It exists because recovery is a matter between two: what kills a source is how it reacts to being asked.
//! It refuses to know who asks, or that there is an engine at all.

use core::time::Duration;
use std::{cmp::Reverse, collections::BinaryHeap};

use evenkeel_core::{Mono, Rng};

/// How a source gets slower when more is in flight than it can work on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slowdown {
    /// With `k` in flight a request takes `k / capacity` times as long: the work is shared, none is lost.
    Linear,
    /// It takes `(k / capacity)²` times as long: the more is in flight, the less gets done. This kills.
    Quadratic,
    /// `capacity` at once, the others wait in line.
    Queue,
}

/// A source that nobody has broken yet.
#[derive(Clone, Copy, Debug)]
pub struct SourceModel {
    /// What it works on at once without getting slower; at least 1.
    pub capacity: u32,
    /// How long one request takes then.
    pub latency: Duration,
    /// What happens beyond.
    pub slowdown: Slowdown,
    /// Whether it finishes what it began when the asker has left, as most servers do.
    pub finishes_abandoned: bool,
    /// Whether what hung goes on when the hang is over; else its connections are closed.
    pub keeps_hung: bool,
}

/// What a source does with requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It answers.
    Up,
    /// It takes requests and answers none.
    Hang,
    /// It refuses connections.
    Refuse,
    /// This share of the requests fails, in parts per million, as quickly as it would answer.
    Partial(u32),
}

/// The number under which the source knows a piece of work.
pub(crate) type Work = u64;

/// What came of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// No connection.
    Refused,
    /// It answers then, well or not.
    Until(Mono, bool),
    /// Nobody knows.
    Hung,
}

/// A source at work.
#[derive(Debug)]
pub(crate) struct Source {
    model: SourceModel,
    mode: Mode,
    in_flight: u32,
    hung: Vec<Work>,
    /// When each of the places of a queueing source is free.
    places: BinaryHeap<Reverse<Mono>>,
    warming: Option<Warming>,
    asked: u64,
    rng: Rng,
}

/// A capacity that comes back slowly.
#[derive(Clone, Copy, Debug)]
struct Warming {
    from: Mono,
    takes: Duration,
    starts_ppm: u32,
}

impl Source {
    pub(crate) fn new(model: SourceModel, rng: Rng) -> Self {
        Self {
            model,
            mode: Mode::Up,
            in_flight: 0,
            hung: Vec::new(),
            places: BinaryHeap::new(),
            warming: None,
            asked: 0,
            rng,
        }
    }

    /// Takes a request in. What is taken in ends with [`Source::finished`], or when the source says that it was cut.
    pub(crate) fn ask(&mut self, work: Work, now: Mono) -> Taken {
        self.asked += 1;
        if self.mode == Mode::Refuse {
            return Taken::Refused;
        }
        self.in_flight += 1;
        match self.mode {
            Mode::Hang => {
                self.hung.push(work);
                Taken::Hung
            }
            Mode::Partial(ppm) => {
                let fails = self.rng.next_u64() % 1_000_000 < u64::from(ppm);
                Taken::Until(self.ready_at(now), !fails)
            }
            Mode::Up | Mode::Refuse => Taken::Until(self.ready_at(now), true),
        }
    }

    /// A piece of work has ended.
    pub(crate) fn finished(&mut self) {
        debug_assert!(self.in_flight > 0, "work ended that never began");
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Tells whether a piece of work ends with its asker.
    pub(crate) fn drops(&self, work: Work) -> bool {
        !self.model.finishes_abandoned && !self.hung.contains(&work)
    }

    /// Changes what it does. Returns the work that hung and now either goes on until then, or is cut.
    pub(crate) fn change(&mut self, mode: Mode, now: Mono) -> Vec<(Work, Option<Mono>)> {
        self.mode = mode;
        if mode == Mode::Hang {
            return Vec::new();
        }
        let hung = std::mem::take(&mut self.hung);
        if self.model.keeps_hung && mode != Mode::Refuse {
            let mut goes_on = Vec::with_capacity(hung.len());
            for work in hung {
                goes_on.push((work, Some(self.ready_at(now))));
            }
            return goes_on;
        }
        self.in_flight = self
            .in_flight
            .saturating_sub(u32::try_from(hung.len()).unwrap_or(u32::MAX));
        hung.into_iter().map(|work| (work, None)).collect()
    }

    /// Loses or gains capacity for good.
    pub(crate) fn set_capacity(&mut self, capacity: u32) {
        self.model.capacity = capacity.max(1);
    }

    /// Makes every request take longer, or shorter, for good.
    pub(crate) fn set_latency(&mut self, latency: Duration) {
        self.model.latency = latency;
    }

    /// Starts with a share of its capacity and has all of it after a while.
    pub(crate) fn warm_up(&mut self, now: Mono, takes: Duration, starts_ppm: u32) {
        self.warming = Some(Warming {
            from: now,
            takes,
            starts_ppm,
        });
    }

    pub(crate) const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    pub(crate) const fn asked(&self) -> u64 {
        self.asked
    }

    pub(crate) fn capacity(&self, now: Mono) -> u32 {
        let full = u64::from(self.model.capacity);
        let Some(Warming {
            from,
            takes,
            starts_ppm,
        }) = self.warming
        else {
            return self.model.capacity;
        };
        let passed = now.since(from).min(takes).as_micros();
        let grown = passed * u128::from(1_000_000 - starts_ppm.min(1_000_000)) / takes.as_micros().max(1);
        let share = u128::from(starts_ppm) + grown;
        u32::try_from(u128::from(full) * share / 1_000_000)
            .unwrap_or(u32::MAX)
            .max(1)
    }

    fn ready_at(&mut self, now: Mono) -> Mono {
        let capacity = self.capacity(now);
        let (k, n) = (u64::from(self.in_flight), u64::from(capacity));
        let nanos = u64::try_from(self.model.latency.as_nanos()).unwrap_or(u64::MAX);
        let times = |power: u32| {
            let (k, n) = (k.max(n).pow(power), n.pow(power));
            let long = u128::from(nanos) * u128::from(k) / u128::from(n);
            now.after(Duration::from_nanos(u64::try_from(long).unwrap_or(u64::MAX)))
        };
        match self.model.slowdown {
            Slowdown::Linear => times(1),
            Slowdown::Quadratic => times(2),
            Slowdown::Queue => {
                while self.places.peek().is_some_and(|Reverse(free)| *free <= now) {
                    self.places.pop();
                }
                let start = if self.places.len() < capacity as usize {
                    now
                } else {
                    self.places.pop().map_or(now, |Reverse(free)| free.max(now))
                };
                let ready = start.after(self.model.latency);
                self.places.push(Reverse(ready));
                ready
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn source(slowdown: Slowdown) -> Source {
        let model = SourceModel {
            capacity: 2,
            latency: MS * 20,
            slowdown,
            finishes_abandoned: true,
            keeps_hung: false,
        };
        Source::new(model, Rng::new(1))
    }

    fn millis(source: &mut Source, requests: u64) -> Vec<u128> {
        (0..requests)
            .filter_map(|work| match source.ask(work, Mono::ORIGIN) {
                Taken::Until(at, true) => Some(at.since(Mono::ORIGIN).as_millis()),
                Taken::Until(..) | Taken::Refused | Taken::Hung => None,
            })
            .collect()
    }

    #[test]
    fn each_slowdown_is_what_it_says() {
        assert_eq!(millis(&mut source(Slowdown::Linear), 4), [20, 20, 30, 40]);
        assert_eq!(millis(&mut source(Slowdown::Quadratic), 4), [20, 20, 45, 80]);
        assert_eq!(millis(&mut source(Slowdown::Queue), 5), [20, 20, 40, 40, 60]);
    }

    #[test]
    fn what_hung_is_cut_when_the_source_is_back_or_goes_on_if_it_is_kept() {
        let mut source = source(Slowdown::Linear);
        source.change(Mode::Hang, Mono::ORIGIN);
        assert_eq!(source.ask(7, Mono::ORIGIN), Taken::Hung);
        assert_eq!(source.change(Mode::Up, Mono::ORIGIN), [(7, None)]);
        assert_eq!(source.in_flight(), 0);
        source.model.keeps_hung = true;
        source.change(Mode::Hang, Mono::ORIGIN);
        source.ask(8, Mono::ORIGIN);
        assert_eq!(
            source.change(Mode::Up, Mono::ORIGIN),
            [(8, Some(Mono::ORIGIN.after(MS * 20)))]
        );
        assert_eq!(source.in_flight(), 1);
    }

    #[test]
    fn a_source_that_warms_up_has_all_its_capacity_in_the_end() {
        let mut source = source(Slowdown::Linear);
        source.set_capacity(100);
        source.warm_up(Mono::ORIGIN, MS * 1000, 200_000);
        let capacities = [0, 500, 1000, 5000].map(|at| source.capacity(Mono::ORIGIN.after(MS * at)));
        assert_eq!(capacities, [20, 60, 100, 100]);
    }
}
