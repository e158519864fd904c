//! Decides how a run is written down as text, commands in and trace out.
//! It exists so that a person can read what an outage looks like, and see in a diff what a change does to it.
//! It refuses words it does not know, and says which line has them.

use core::{fmt::Write as _, time::Duration};

use evenkeel_core::{Mono, Rng};

use crate::{
    setup::{Arrivals, Change, Node, Setup, Workload, cached_read, shipped_dependency, shipped_read},
    source::{Mode, Slowdown, SourceModel},
    tally::{Seen, Tally},
    world::run,
};

/// A scenario that was read.
#[derive(Clone, Debug)]
pub struct Scenario {
    setup: Setup,
    nodes: u64,
    seed: u64,
    /// The lifetime of what is kept; `None` where nothing is.
    cached: Option<Duration>,
    every: Duration,
}

impl Scenario {
    /// Reads a scenario: one command a line, `#` for remarks.
    ///
    /// ```text
    /// source capacity=20 latency=20ms slowdown=quadratic      # linear, quadratic or queue
    /// route cached=4s                                         # or: route live
    /// clients rate=600 keys=1 patience=1s retries=3 pause=50ms
    /// nodes 1
    /// seed 7
    /// at 5s hang      # up, refuse, failing=300000 (parts per million), capacity=10, latency=40ms, lose-snapshots
    /// every 1s        # how often the trace has a line of figures
    /// until 20s
    /// ```
    ///
    /// # Errors
    /// The first line that is not understood, and why.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut scenario = Self {
            setup: Setup {
                source: SourceModel {
                    capacity: 20,
                    latency: Duration::from_millis(20),
                    slowdown: Slowdown::Quadratic,
                    finishes_abandoned: true,
                    keeps_hung: false,
                },
                workload: Workload {
                    arrivals: Arrivals::Even(100),
                    keys: 1,
                    patience: None,
                    retries: 0,
                    pause: Duration::from_millis(50),
                },
                script: Vec::new(),
                ends: Duration::from_secs(20),
                current: Duration::from_secs(6),
            },
            nodes: 1,
            seed: 1,
            cached: None,
            every: Duration::from_secs(1),
        };
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                scenario
                    .command(line)
                    .map_err(|problem| format!("line {}: {line:?}: {problem}", index + 1))?;
            }
        }
        Ok(scenario)
    }

    /// Runs it, and returns the trace.
    ///
    /// # Errors
    /// What is wrong with a contract.
    pub fn run(&self) -> Result<String, String> {
        let mut seeds = Rng::new(self.seed);
        let mut nodes = Vec::new();
        for _ in 0..self.nodes {
            let read = self.cached.map_or_else(shipped_read, cached_read);
            let node = Node::new(read, shipped_dependency(), seeds.next_u64());
            nodes.push(node.map_err(|problems| problems.to_string())?);
        }
        Ok(self.trace(&run(&self.setup, &nodes, seeds.next_u64())))
    }

    fn command(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        match words.next().unwrap_or_default() {
            "source" => words.try_for_each(|word| self.source(word)),
            "clients" => words.try_for_each(|word| self.clients(word)),
            "route" => words.try_for_each(|word| match split(word) {
                ("live", "") => {
                    self.cached = None;
                    Ok(())
                }
                ("cached", value) => {
                    self.cached = Some(span(value)?);
                    Ok(())
                }
                _ => Err(format!("{word:?} is neither `live` nor `cached=4s`")),
            }),
            "nodes" => set(
                &mut self.nodes,
                number(words.next().unwrap_or_default())?.clamp(1, 1000),
            ),
            "seed" => set(&mut self.seed, number(words.next().unwrap_or_default())?),
            "every" => set(&mut self.every, span(words.next().unwrap_or_default())?),
            "until" => set(&mut self.setup.ends, span(words.next().unwrap_or_default())?),
            "at" => {
                let at = span(words.next().unwrap_or_default())?;
                let change = change(words.next().unwrap_or_default())?;
                self.setup.script.push((at, change));
                Ok(())
            }
            word => Err(format!("{word:?} is no command")),
        }
    }

    fn source(&mut self, word: &str) -> Result<(), String> {
        let source = &mut self.setup.source;
        match split(word) {
            ("capacity", value) => set(&mut source.capacity, small(value)?),
            ("latency", value) => set(&mut source.latency, span(value)?),
            ("slowdown", "linear") => set(&mut source.slowdown, Slowdown::Linear),
            ("slowdown", "quadratic") => set(&mut source.slowdown, Slowdown::Quadratic),
            ("slowdown", "queue") => set(&mut source.slowdown, Slowdown::Queue),
            ("keeps-hung", "") => set(&mut source.keeps_hung, true),
            _ => Err(format!("{word:?} says nothing about a source")),
        }
    }

    fn clients(&mut self, word: &str) -> Result<(), String> {
        let workload = &mut self.setup.workload;
        match split(word) {
            ("rate", value) => set(&mut workload.arrivals, Arrivals::Even(small(value)?)),
            ("random", value) => set(&mut workload.arrivals, Arrivals::Random(small(value)?)),
            ("keys", value) => set(&mut workload.keys, small(value)?),
            ("patience", value) => set(&mut workload.patience, Some(span(value)?)),
            ("retries", value) => set(&mut workload.retries, small(value)?),
            ("pause", value) => set(&mut workload.pause, span(value)?),
            _ => Err(format!("{word:?} says nothing about clients")),
        }
    }

    fn trace(&self, tally: &Tally) -> String {
        let mut out = String::new();
        let mut changes = tally.changes.iter().peekable();
        let mut from = Duration::ZERO;
        while from < self.setup.ends {
            let to = from + self.every;
            while let Some((at, node, seen)) = changes.next_if(|(at, ..)| at.since(Mono::ORIGIN) < to) {
                let _fits = writeln!(
                    out,
                    "{:>8.3}  node {node}: {}",
                    seconds(at.since(Mono::ORIGIN)),
                    said(seen)
                );
            }
            let sum = tally.sum(from, to);
            let _fits = writeln!(
                out,
                "{:>8.3}  ended {:>5}  answered {:>4}  current {:>4}  no place {:>5}  asked {:>5}  peak {:>4}",
                seconds(to),
                sum.requests,
                sum.answered_permille(),
                sum.current_permille(),
                sum.no_place,
                sum.asked,
                sum.peak
            );
            from = to;
        }
        out
    }
}

fn said(seen: &Seen) -> String {
    match seen {
        Seen::Breaker(change) => format!(
            "{} -> {} ({})",
            change.from.as_str(),
            change.to.as_str(),
            change.cause.as_str()
        ),
        Seen::Ramp(None) => "ramp over".into(),
        Seen::Ramp(Some(stage)) => {
            let places = stage
                .limit
                .map_or_else(|| "any number of".into(), |limit| limit.to_string());
            format!("ramp {} %, {places} places", stage.share_ppm / 10_000)
        }
    }
}

fn change(word: &str) -> Result<Change, String> {
    Ok(match split(word) {
        ("up", "") => Change::Mode(Mode::Up),
        ("hang", "") => Change::Mode(Mode::Hang),
        ("refuse", "") => Change::Mode(Mode::Refuse),
        ("failing", value) => Change::Mode(Mode::Partial(small(value)?)),
        ("capacity", value) => Change::Capacity(small(value)?),
        ("latency", value) => Change::Latency(span(value)?),
        ("lose-snapshots", "") => Change::LoseSnapshots,
        _ => return Err(format!("{word:?} is nothing that happens")),
    })
}

fn set<T>(place: &mut T, value: T) -> Result<(), String> {
    *place = value;
    Ok(())
}

fn split(word: &str) -> (&str, &str) {
    word.split_once('=').unwrap_or((word, ""))
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is no number"))
}

fn small(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is no number from 0 to {}", u32::MAX))
}

/// Reads `20ms` or `4s`, up to an hour.
fn span(text: &str) -> Result<Duration, String> {
    let (digits, unit) = match text.strip_suffix("ms") {
        Some(digits) => (digits, 1),
        None => (text.strip_suffix('s').unwrap_or_default(), 1000),
    };
    match digits.parse::<u64>() {
        Ok(count) if (1..=3_600_000).contains(&count.saturating_mul(unit)) => {
            Ok(Duration::from_millis(count * unit))
        }
        Ok(_) | Err(_) => Err(format!("{text:?} is no span of 1ms to 3600s")),
    }
}

fn seconds(span: Duration) -> f64 {
    span.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_not_understood_is_named_with_its_number() {
        let problem = |text| Scenario::read(text).expect_err("it is wrong");
        assert_eq!(
            problem("# fine\n\nsource speed=3"),
            "line 3: \"source speed=3\": \"speed=3\" says nothing about a source"
        );
        assert!(problem("until 0s").contains("no span"));
        assert!(problem("at 5s explode").contains("nothing that happens"));
        assert!(problem("sing").contains("no command"));
    }
}
