//! Decides the learned limit: when there is one, how it grows, when it is cut, and what is remembered of it.
//! It exists because nobody knows a source's capacity, but everybody sees how its latency answers to load.
//! It refuses to learn from calls that began under another limit, and in an outage or a ramp from anything.
//!
//! The rule, judged once per round of answers (`docs/decisions/0020` has what it was compared with): the mean
//! latency over the **baseline**, which is learned only from calls that came in while little was in flight.
//! Cut when it is a quarter above, grow when it is not a tenth above and somebody was refused, else leave it.

use core::time::Duration;

use crate::{
    dependency::CarriedLoad,
    limit::{
        LimitRules,
        meter::{Lines, Meter, NO_LIMIT, Notes, WHOLE, micros},
    },
    rng::Rng,
    time::Mono,
};

/// Latencies are compared in thousandths of the baseline.
const EVEN: u64 = 1000;
/// Up to here a latency is as good as the baseline: growth goes on.
const GROW_TO: u64 = 1100;
/// Beyond this the limit is too high.
const CUT_FROM: u64 = 1250;
/// The first sign of overload, where there is no limit yet.
const OVERLOAD_FROM: u64 = 1500;
/// A source that answers sooner is judged as if it took this long, in microseconds. Where both sides share processors,
/// the wait for one of them is part of every latency; it would pass for an overload of a fast source, and refusals would
/// keep the processors busy.
const BASELINE_MIN: u64 = 10_000;
/// A round has this many answers at least, unless there is too little traffic.
const ROUND_ANSWERS: u64 = 5;
/// A round takes three times the baseline, and between these two.
const ROUND_SHORTEST: Duration = Duration::from_millis(50);
const ROUND_LONGEST: Duration = Duration::from_secs(1);
/// A source with more in flight than it bore that answers nobody for one and a half times the baseline, and for so
/// long at least, is overloaded or hangs. No more are let in until it answers.
const SILENCE_SHORTEST: Duration = Duration::from_millis(25);
/// Who leaves after this many times the usual latency has waited in vain.
const PATIENCE: u64 = 8;
/// Between two looks at the notes lies one baseline, and between these two.
const LOOK_SHORTEST: Duration = Duration::from_millis(10);
const LOOK_LONGEST: Duration = Duration::from_millis(250);
/// What was borne is forgotten this slowly.
const MEMORY: Duration = Duration::from_secs(60);
/// Growth begins with a sixteenth and doubles each round, up to a quarter.
const STEP_FIRST: u32 = 4;
const STEP_LARGEST: u32 = 2;
/// Cuts in a row that did not help, before the source is believed to have become slower by itself.
const HELPLESS: u32 = 3;
/// How long the baseline may go without a call that came in while little was in flight.
const DIP_EVERY: Duration = Duration::from_secs(10);

/// The ratio up to which a limit may grow: a tenth above the baseline, or what one call more brings where one call
/// is more than a tenth of the load.
pub(crate) fn grow_to(limit: u32) -> u64 {
    GROW_TO.max(EVEN + EVEN / u64::from(limit.max(1)))
}

/// The ratio beyond which a limit is cut: a quarter above the baseline, or what one call more brings to a source
/// that slows down by the square of its load.
fn cut_from(limit: u32) -> u64 {
    CUT_FROM.max(EVEN + 2 * EVEN / u64::from(limit.max(1)))
}

/// What is learned about one dependency.
#[derive(Debug)]
pub(crate) struct Learner {
    rules: LimitRules,
    /// It only learns what is usual and what is borne, and limits nothing.
    watches: bool,
    /// What a caller waits in vain where no baseline is known, in microseconds.
    patience: u64,
    /// The mean latency of a dependency that is little used, in microseconds; `None` until it is known.
    baseline: Option<u64>,
    /// What nineteen of twenty answers stay below, in microseconds.
    usual: u64,
    /// The most in flight that was borne lately, in 1024ths.
    borne: u64,
    limit: Option<u32>,
    /// Nothing is known yet.
    cold: bool,
    step: u32,
    round_began: Mono,
    /// How many answers and leavers there were when last there was a new one, and when that was; or when last so little was in
    /// flight that no answer says nothing.
    alive: (u64, Mono),
    helpless: u32,
    cut_at: Option<u64>,
    rng: Rng,
    dip_at: Mono,
    dipping: bool,
}

impl Learner {
    /// Starts with nothing known. `timeout` is the dependency's; `seed` spreads the dips of many nodes.
    pub(crate) fn new(rules: LimitRules, timeout: Option<Duration>, seed: u64, meter: &Meter) -> Self {
        let patience = timeout.map_or(u64::MAX, micros) / 2;
        let learner = Self {
            rules,
            watches: false,
            patience,
            baseline: None,
            usual: 0,
            borne: 0,
            limit: Some(rules.cold),
            cold: true,
            step: STEP_FIRST,
            round_began: Mono::ORIGIN,
            alive: (0, Mono::ORIGIN),
            helpless: 0,
            cut_at: None,
            rng: Rng::new(seed),
            dip_at: Mono::ORIGIN,
            dipping: false,
        };
        meter.set(rules.cold, WHOLE, Mono::from_nanos(i64::MIN));
        meter.draw(learner.lines());
        learner
    }

    /// One that limits nothing, for a ramp without a learned limit.
    pub(crate) fn watching(timeout: Option<Duration>, seed: u64, meter: &Meter) -> Self {
        let mut learner = Self::new(LimitRules::DEFAULT, timeout, seed, meter);
        learner.watches = true;
        learner.limit = None;
        learner.cold = false;
        learner.patience = u64::MAX;
        meter.set(NO_LIMIT, WHOLE, Mono::from_nanos(i64::MIN));
        meter.draw(learner.lines());
        learner
    }

    /// Looks at the notes, and returns when to look again.
    pub(crate) fn look(&mut self, meter: &Meter, now: Mono) -> Mono {
        let notes = meter.notes();
        let answers = notes.answers().calls;
        let in_flight = meter.in_flight();
        // Who leaves early takes an answer along that would have come.
        let seen = answers + u64::from(notes.left);
        if seen != self.alive.0 || in_flight <= (self.borne() / 2).max(1) {
            self.alive = (seen, now);
        }
        let age = now.since(self.round_began);
        if (answers >= ROUND_ANSWERS && age >= self.round()) || (answers > 0 && age >= ROUND_LONGEST) {
            self.judge(notes, meter, now);
        } else if !self.watches && self.is_silent(in_flight, now) {
            // What was borne stays: a pause that ends by itself shall cost little. Beyond that, a cut by half.
            self.engage(self.ceiling().max(in_flight / 2), meter, now);
        }
        // Twice in a baseline, so that a silence is not found out half a silence later.
        now.after((self.baseline() / 2).clamp(LOOK_SHORTEST, LOOK_LONGEST))
    }

    /// What a dependency that was healthy a moment ago can surely bear: the ceiling of a ramp.
    pub(crate) fn ceiling(&self) -> u32 {
        match self.borne() {
            0 => self.rules.cold,
            borne => borne.max(self.rules.floor),
        }
    }

    /// The same, as far as anything is known or a limit is learned.
    pub(crate) fn known_ceiling(&self) -> Option<u32> {
        (!self.watches || self.borne > 0).then(|| self.ceiling())
    }

    /// What a successor should know.
    pub(crate) const fn carried(&self) -> CarriedLoad {
        CarriedLoad {
            baseline: self.baseline,
            usual: self.usual,
            borne: self.borne,
            limit: self.limit,
        }
    }

    /// Takes over from a predecessor. What it did not know leaves this one as it is.
    pub(crate) fn carry(&mut self, load: CarriedLoad, meter: &Meter, now: Mono) {
        if load.baseline.is_none() {
            return;
        }
        self.cold = false;
        self.baseline = load.baseline;
        self.usual = load.usual;
        self.borne = load.borne;
        let limit = load.limit.map(|limit| limit.max(self.rules.floor));
        self.apply(limit.filter(|_| !self.watches), meter, now);
        self.alive = (0, now);
    }

    /// Goes on by other rules: what was learned stays. `None` as rules only watches from now on. While `frozen`, in an outage
    /// or a ramp, the limit is left as it is; [`Learner::resume`] sets the next.
    pub(crate) fn succeed(
        &mut self,
        rules: Option<LimitRules>,
        timeout: Option<Duration>,
        frozen: bool,
        meter: &Meter,
        now: Mono,
    ) {
        let watched = self.watches;
        self.watches = rules.is_none();
        self.rules = rules.unwrap_or(LimitRules::DEFAULT);
        self.patience = match rules {
            Some(_) => timeout.map_or(u64::MAX, micros) / 2,
            None => u64::MAX,
        };
        let limit = if self.watches {
            self.cold = false;
            None
        } else if watched {
            // As a process that begins: limited only until the first answers, if there were none.
            self.cold = self.baseline.is_none();
            self.cold.then_some(self.rules.cold)
        } else {
            self.limit.map(|limit| limit.max(self.rules.floor))
        };
        if frozen {
            self.limit = limit;
        } else if limit != self.limit {
            self.apply(limit, meter, now);
        } else {
            meter.draw(self.lines());
        }
    }

    /// Starts over after a ramp: at the ceiling, or at the limit of a stage that was `slow`. It is judged from now on.
    pub(crate) fn resume(&mut self, slow: Option<u32>, meter: &Meter, now: Mono) {
        if let Some(limit) = slow {
            // More than the stage that was slow cannot have been borne since the outage.
            self.borne = self.borne.min(u64::from(limit) * 1024);
        }
        let limit = slow.unwrap_or_else(|| self.ceiling()).max(self.rules.floor);
        self.cold = false;
        self.step = STEP_FIRST;
        self.apply((!self.watches).then_some(limit), meter, now);
        self.alive = (0, now);
    }

    /// The dependency asked to be left alone: a tenth less.
    pub(crate) fn busy(&mut self, meter: &Meter, now: Mono) {
        if self.watches {
            return;
        }
        let from = self.limit.unwrap_or_else(|| meter.in_flight().saturating_add(1));
        self.cold = false;
        self.apply(Some((from - from.div_ceil(10)).max(self.rules.floor)), meter, now);
    }

    /// Takes in what was borne until now; nothing else is learned before [`Learner::resume`].
    pub(crate) fn freeze(&mut self, meter: &Meter, now: Mono) {
        self.remember(meter.notes().proven, now);
        self.cut_at = None;
        self.helpless = 0;
        self.dipping = false;
    }

    /// Draws the lines for a ramp: slow is what takes twice as long as nineteen of twenty did before.
    pub(crate) fn lines_of_ramp(&self) -> Lines {
        let lines = self.lines();
        Lines {
            slow: if self.baseline.is_some() {
                self.usual.saturating_mul(2)
            } else {
                u64::MAX
            },
            ..lines
        }
    }

    /// The mean latency of `notes` in thousandths of the baseline; `None` while either is unknown.
    pub(crate) fn ratio(&self, notes: &Notes) -> Option<u64> {
        let mean = notes.answers().mean()?;
        Some(mean.max(BASELINE_MIN).saturating_mul(EVEN) / self.baseline?.max(BASELINE_MIN))
    }

    /// How long a round takes.
    fn round(&self) -> Duration {
        if self.cold {
            return self.baseline().clamp(LOOK_SHORTEST, ROUND_LONGEST);
        }
        self.baseline()
            .saturating_mul(3)
            .clamp(ROUND_SHORTEST, ROUND_LONGEST)
    }

    /// The baseline as a span; zero while it is unknown.
    fn baseline(&self) -> Duration {
        Duration::from_micros(self.baseline.unwrap_or(0))
    }

    fn judge(&mut self, notes: Notes, meter: &Meter, now: Mono) {
        self.remember(notes.proven, now);
        self.learn_baseline(&notes);
        self.learn_usual(&notes);
        let ratio = self.ratio(&notes).unwrap_or(EVEN);
        self.round_began = now;
        if self.watches {
            meter.wipe();
            self.alive.0 = 0;
            meter.draw(self.lines());
            return;
        }
        if self.dipping {
            self.dipping = false;
            self.believe(ratio);
            self.apply(self.limit, meter, now);
            return;
        }
        let crowded = notes.refused > 0;
        let present = self.limit;
        let helpless = present.is_some_and(|limit| self.is_helpless(limit, ratio, crowded));
        let next = match present {
            None if ratio > OVERLOAD_FROM && notes.peak > self.borne() => {
                Some(self.cut(notes.peak, ratio).max(self.ceiling()))
            }
            None => None,
            Some(limit) if helpless => {
                self.believe(ratio);
                Some(self.ceiling().max(limit))
            }
            Some(limit) if ratio > cut_from(limit) => {
                self.cold = false;
                self.step = STEP_FIRST;
                self.cut_at = Some(ratio);
                Some(self.cut(limit, ratio))
            }
            Some(limit) if self.cold => crowded.then(|| limit.saturating_add(limit.div_ceil(2))),
            Some(limit) if crowded && ratio <= grow_to(limit) => Some(self.grown(limit)),
            Some(limit) => {
                self.step = STEP_FIRST;
                Some(limit)
            }
        };
        self.cold &= next.is_some();
        if next == self.limit {
            meter.wipe();
            self.alive.0 = 0;
            self.maybe_dip(&notes, meter, now);
        } else {
            self.apply(next, meter, now);
        }
        meter.draw(self.lines());
    }

    /// A limit that is too high by this much, cut by as much, but at most by half.
    fn cut(&self, limit: u32, ratio: u64) -> u32 {
        let cut = u64::from(limit) * EVEN / ratio.max(EVEN);
        u32::try_from(cut)
            .unwrap_or(limit)
            .max(limit / 2)
            .max(self.rules.floor)
    }

    /// What was borne lately is tried quickly, anything beyond it slowly.
    fn grown(&mut self, limit: u32) -> u32 {
        let ceiling = self.ceiling();
        if limit < ceiling {
            return limit.saturating_add((limit / 2).max(1)).min(ceiling);
        }
        let step = self.step;
        self.step = step.saturating_sub(1).max(STEP_LARGEST);
        limit.saturating_add((limit >> step).max(1))
    }

    /// Tells whether cutting has been seen not to help: then the source is slower than it was, whatever we do.
    fn is_helpless(&mut self, limit: u32, ratio: u64, crowded: bool) -> bool {
        let Some(before) = self.cut_at else { return false };
        if ratio <= grow_to(limit) || ratio * 10 < before * 8 {
            (self.helpless, self.cut_at) = (0, None);
        } else if crowded || ratio > cut_from(limit) {
            self.helpless += 1;
        }
        self.helpless >= HELPLESS
    }

    /// Takes the latency of now for the usual one, but for no more than twice the old.
    fn believe(&mut self, ratio: u64) {
        (self.helpless, self.cut_at) = (0, None);
        self.baseline = self.baseline.map(|baseline| {
            let seen = baseline.saturating_mul(ratio.max(EVEN)) / EVEN;
            seen.min(baseline.saturating_mul(2))
        });
    }

    fn is_silent(&self, in_flight: u32, now: Mono) -> bool {
        let patience = (self.baseline().saturating_mul(5) / 4).max(SILENCE_SHORTEST);
        self.baseline.is_some() && in_flight > self.ceiling() && now.since(self.alive.1) >= patience
    }

    /// Sets a limit where there was none or a higher one.
    fn engage(&mut self, limit: u32, meter: &Meter, now: Mono) {
        if self.limit.is_none_or(|present| present > limit) {
            self.cold = false;
            self.apply(Some(limit), meter, now);
        }
    }

    fn apply(&mut self, limit: Option<u32>, meter: &Meter, now: Mono) {
        self.limit = limit;
        meter.set(limit.unwrap_or(NO_LIMIT), WHOLE, now);
        meter.draw(self.lines());
        self.round_began = now;
        // The page is empty again; when the last answer came is as it was.
        self.alive.0 = 0;
    }

    /// Measures the baseline without dropping anything, as long as the traffic has its pauses. Where it has none,
    /// one round now and then runs at half the limit.
    fn maybe_dip(&mut self, notes: &Notes, meter: &Meter, now: Mono) {
        if notes.low.calls > 0 || notes.refused == 0 {
            self.dip_at = now.after(self.rng.jitter(DIP_EVERY, 500_000));
        } else if let (true, Some(limit)) = (now >= self.dip_at, self.limit) {
            self.dip_at = now.after(self.rng.jitter(DIP_EVERY, 500_000));
            self.dipping = true;
            meter.set((limit / 2).max(self.rules.floor), WHOLE, now);
            meter.draw(Lines {
                low: NO_LIMIT,
                ..self.lines()
            });
        }
    }

    fn remember(&mut self, proven: u32, now: Mono) {
        let passed = now.since(self.round_began).min(MEMORY).as_millis();
        let kept = u128::from(self.borne) * (MEMORY.as_millis() - passed) / MEMORY.as_millis();
        self.borne = u64::try_from(kept)
            .unwrap_or(u64::MAX)
            .max(u64::from(proven) * 1024);
    }

    fn borne(&self) -> u32 {
        u32::try_from(self.borne.div_ceil(1024)).unwrap_or(u32::MAX)
    }

    /// Follows downwards by a quarter of the way, upwards by 1/128 of itself at most: what an overload leaves behind
    /// must not pass for the usual.
    fn learn_baseline(&mut self, notes: &Notes) {
        let low = notes.low.mean();
        self.baseline = match (self.baseline, low) {
            (None, low) => low.or_else(|| notes.answers().mean()),
            (Some(known), Some(low)) if low < known => Some(known - (known - low) / 4),
            (Some(known), Some(low)) => Some(known + ((low - known) / 8).min(known / 128)),
            (known @ Some(_), None) => known,
        };
    }

    /// Follows the latency that one answer of twenty passes: up an eighth when more do, down slowly when fewer do.
    fn learn_usual(&mut self, notes: &Notes) {
        let Some(baseline) = self.baseline else { return };
        let baseline = baseline.max(BASELINE_MIN);
        self.usual = if self.usual == 0 {
            baseline.saturating_mul(2)
        } else if u64::from(notes.slow) * 20 > notes.answers().calls {
            self.usual.saturating_add(self.usual / 8)
        } else {
            self.usual - self.usual / 64
        }
        .clamp(baseline, baseline.saturating_mul(64));
    }

    fn lines(&self) -> Lines {
        match self.baseline {
            None => Lines {
                good: u64::MAX,
                slow: u64::MAX,
                patience: self.patience,
                low: NO_LIMIT,
            },
            Some(baseline) => Lines {
                good: baseline.max(BASELINE_MIN).saturating_mul(CUT_FROM) / EVEN,
                slow: self.usual,
                patience: self.usual.saturating_mul(PATIENCE).min(self.patience),
                low: (self.borne() / 2).max(1),
            },
        }
    }

    /// Returns the limit learned, if there is one.
    pub(crate) const fn limit(&self) -> Option<u32> {
        self.limit
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
