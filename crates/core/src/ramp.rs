//! Decides how traffic comes back after an outage: stage by stage, each earned by the one before.
//! It exists because a source that has just come back is killed again by the first full second of traffic.
//! It refuses to weigh one source against another: a single source gets a share of the calls and of the permits.

use alloc::vec::Vec;
use core::time::Duration;

use crate::{
    dependency::CarriedRamp,
    limit::{
        learner::grow_to,
        meter::{Notes, WHOLE},
    },
    problem::Problems,
    time::Mono,
};

/// The rules of a recovery ramp.
///
/// ```
/// use evenkeel_core::{Problems, RampRules};
/// let mut problems = Problems::default();
/// RampRules { stages: vec![5, 50], ..RampRules::default() }.check("ramp", &mut problems);
/// assert_eq!(problems.list()[0].to_string(), "ramp: stages [5, 50]; allowed: 1 to 10 rising \
///     percentages of 1 to 100, the last one 100; end it with 100, as in [5, 20, 50, 100]");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RampRules {
    /// The share of calls and of permits admitted in each stage, in percent: 1 to 10 rising ones, the last one 100.
    pub stages: Vec<u8>,
    /// The least a stage is held: 10 ms to 1 h.
    pub hold: Duration,
    /// A stage ends after this many results, 1 to 100 000, once it was held long enough.
    pub calls: u32,
    /// With fewer results it ends after this long: `hold` to 1 h. It is how a quiet dependency comes back.
    pub longest: Duration,
    /// A stage with a larger share of failures goes back to the one before, in parts per million; 0 to 1 000 000.
    /// Not less than what the breaker bears, or a dependency that it would leave closed never gets through.
    pub failures_ppm: u32,
}

impl RampRules {
    /// The stages: small enough to try, few enough to be through in half a second.
    pub const STAGES: [u8; 4] = [5, 20, 50, 100];

    /// Adds every problem of these rules to `problems`, each placed under `place`.
    pub fn check(&self, place: &str, problems: &mut Problems) {
        let hour = Duration::from_secs(3600);
        let stages = &self.stages;
        let rising = stages.windows(2).all(|pair| pair[0] < pair[1]);
        if !(1..=10).contains(&stages.len()) || !rising || stages[0] == 0 || stages.last() != Some(&100) {
            problems.add(
                place,
                &alloc::format!("stages {stages:?}"),
                "1 to 10 rising percentages of 1 to 100, the last one 100",
                "end it with 100, as in [5, 20, 50, 100]",
            );
        }
        problems.span(&[place, "hold"], self.hold, Duration::from_millis(10), hour);
        problems.range(&[place, "calls"], u64::from(self.calls), 1, 100_000);
        problems.span(&[place, "hold_max"], self.longest, self.hold.min(hour), hour);
        problems.range(
            &[place, "failure_ratio (parts per million)"],
            u64::from(self.failures_ppm),
            0,
            u64::from(WHOLE),
        );
    }
}

impl Default for RampRules {
    fn default() -> Self {
        Self {
            stages: Self::STAGES.into(),
            hold: Duration::from_millis(100),
            calls: 5,
            longest: Duration::from_millis(750),
            failures_ppm: 500_000,
        }
    }
}

/// Where a ramp stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Which stage, from zero.
    pub index: u32,
    /// The share of calls and of permits, in parts per million.
    pub share_ppm: u32,
    /// The most attempts in flight; `None` where nobody knows a limit to take a share of.
    pub limit: Option<u32>,
}

/// A step of a ramp, for the log and the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RampEvent {
    /// When.
    pub at: Mono,
    /// What.
    pub step: RampStep,
    /// The stage that is in force now; of [`RampStep::Ended`] and [`RampStep::Reopened`] the one that was the last.
    pub stage: Stage,
}

/// What a ramp did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RampStep {
    /// The breaker has closed, and the first stage begins.
    Begun,
    /// The next stage begins.
    Promoted,
    /// The stage was slow and begins again.
    Held,
    /// Too much failed: the stage before begins again.
    RolledBack,
    /// All traffic is back, as far as what the last stage bore.
    Ended,
    /// Too much failed in the first stage, or for the breaker: it is open again.
    Reopened,
}

impl RampStep {
    /// Every step, in the order of their indices.
    pub const ALL: [Self; 6] = [
        Self::Begun,
        Self::Promoted,
        Self::Held,
        Self::RolledBack,
        Self::Ended,
        Self::Reopened,
    ];

    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Promoted => "promoted",
            Self::Held => "held",
            Self::RolledBack => "rolled-back",
            Self::Ended => "ended",
            Self::Reopened => "reopened",
        }
    }
}

/// What a look at a stage led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It goes on.
    Held,
    /// It was slow and begins again, on a new page.
    Again,
    /// The next stage begins.
    Promoted,
    /// The stage before begins again.
    RolledBack,
    /// All traffic is back. The limit is what the last stage bore, if it ended for being slow.
    Done { slow: bool },
    /// The dependency is not back.
    Failed,
}

/// A ramp on its way.
#[derive(Debug)]
pub(crate) struct Ramp {
    rules: RampRules,
    /// What all of it would be; `None` where nobody knows.
    ceiling: Option<u32>,
    index: usize,
    began: Mono,
    /// When the stage was found slow for the first time.
    slow_since: Option<Mono>,
}

impl Ramp {
    /// Begins with the first stage.
    pub(crate) const fn new(rules: RampRules, ceiling: Option<u32>, now: Mono) -> Self {
        Self {
            rules,
            ceiling,
            index: 0,
            began: now,
            slow_since: None,
        }
    }

    pub(crate) fn stage(&self) -> Stage {
        let percent = u32::from(self.rules.stages.get(self.index).copied().unwrap_or(100));
        let part = |whole: u32| (u64::from(whole) * u64::from(percent)).div_ceil(100).max(1);
        Stage {
            index: u32::try_from(self.index).unwrap_or(u32::MAX),
            share_ppm: percent * (WHOLE / 100),
            limit: self
                .ceiling
                .map(|whole| u32::try_from(part(whole)).unwrap_or(whole)),
        }
    }

    /// What a successor should know.
    pub(crate) fn carried(&self) -> CarriedRamp {
        CarriedRamp {
            share_ppm: self.stage().share_ppm,
            began: self.began,
        }
    }

    /// Goes on where a predecessor was: with the largest stage that is no larger.
    pub(crate) fn resumed(mut self, before: CarriedRamp) -> Self {
        let share = |percent: u8| u32::from(percent) * (WHOLE / 100);
        let reached = self
            .rules
            .stages
            .iter()
            .rposition(|percent| share(*percent) <= before.share_ppm);
        self.index = reached.unwrap_or(0);
        self.began = before.began;
        self
    }

    /// When all traffic can be back at the earliest.
    pub(crate) fn ends_at(&self) -> Mono {
        let left = self.rules.stages.len().saturating_sub(1 + self.index).max(1);
        let holds = u32::try_from(left).unwrap_or(u32::MAX);
        self.began.after(self.rules.hold.saturating_mul(holds))
    }

    /// How long until the next look.
    pub(crate) fn wait(&self) -> Duration {
        (self.rules.hold / 4).max(Duration::from_millis(1))
    }

    /// Judges the stage by what was noted since it began. `ratio` is the mean latency in thousandths of the
    /// baseline, where that is known.
    pub(crate) fn look(&mut self, notes: &Notes, ratio: Option<u64>, now: Mono) -> Outcome {
        let answers = notes.answers().calls;
        let failures = u64::from(notes.failures);
        let results = answers + failures;
        if failures >= 2 && failures * u64::from(WHOLE) > results * u64::from(self.rules.failures_ppm) {
            return self.back(now);
        }
        let held = now.since(self.began);
        let enough = results >= u64::from(self.rules.calls) || held >= self.rules.longest;
        if held < self.rules.hold || !enough {
            return Outcome::Held;
        }
        // Two of a handful are no twentieth by chance; one may be.
        let late = notes.slow >= 2 && u64::from(notes.slow) * 20 > answers;
        let slow = late || ratio.is_some_and(|ratio| ratio > grow_to(self.stage().limit.unwrap_or(1)));
        if !slow {
            return self.forward(now);
        }
        // The first calls of a source that has just started are slow: that passes, or it is the load.
        let since = *self.slow_since.get_or_insert(now);
        if now.since(since) < self.rules.hold * 2 {
            self.began = now;
            return Outcome::Again;
        }
        Outcome::Done { slow: true }
    }

    fn forward(&mut self, now: Mono) -> Outcome {
        self.go(self.index + 1, now);
        if self.stage().share_ppm == WHOLE {
            Outcome::Done { slow: false }
        } else {
            Outcome::Promoted
        }
    }

    fn back(&mut self, now: Mono) -> Outcome {
        match self.index.checked_sub(1) {
            None => Outcome::Failed,
            Some(before) => {
                self.go(before, now);
                Outcome::RolledBack
            }
        }
    }

    fn go(&mut self, index: usize, now: Mono) {
        (self.index, self.began, self.slow_since) = (index, now, None);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::limit::meter::{Entry, Meter, Told};
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(millis: u32) -> Mono {
        Mono::ORIGIN.after(MS * millis)
    }

    fn notes(answers: u32, failures: u32, slow: u32) -> Notes {
        let meter = Meter::new(Duration::ZERO);
        let entry = Entry {
            began: Mono::ORIGIN,
            in_flight: 1,
        };
        for _ in 0..answers {
            meter.note(entry, Told::Answer, at(20));
        }
        Notes {
            failures,
            slow,
            ..meter.notes()
        }
    }

    fn ramp() -> Ramp {
        Ramp::new(RampRules::default(), Some(40), Mono::ORIGIN)
    }

    fn shares(ramp: &Ramp) -> (u32, Option<u32>) {
        (ramp.stage().share_ppm / 10_000, ramp.stage().limit)
    }

    #[test]
    fn a_stage_takes_its_share_of_the_calls_and_of_the_permits() {
        let mut ramp = ramp();
        let mut seen = alloc::vec![shares(&ramp)];
        for look in 1..=3 {
            let outcome = ramp.look(&notes(5, 0, 0), Some(1000), at(100 * look));
            seen.push(shares(&ramp));
            assert_eq!(outcome == Outcome::Done { slow: false }, look == 3);
        }
        assert_eq!(
            seen,
            [(5, Some(2)), (20, Some(8)), (50, Some(20)), (100, Some(40))]
        );
    }

    #[test]
    fn a_stage_ends_neither_before_its_time_nor_before_its_results() {
        let mut ramp = ramp();
        assert_eq!(ramp.look(&notes(500, 0, 0), None, at(99)), Outcome::Held);
        assert_eq!(ramp.look(&notes(4, 0, 0), None, at(749)), Outcome::Held);
        assert_eq!(ramp.look(&notes(5, 0, 0), None, at(100)), Outcome::Promoted);
    }

    #[test]
    fn r18_little_traffic_gets_through_by_time() {
        let mut ramp = ramp();
        assert_eq!(ramp.look(&notes(0, 0, 0), None, at(750)), Outcome::Promoted);
        assert_eq!(ramp.look(&notes(1, 0, 0), None, at(1500)), Outcome::Promoted);
        assert_eq!(
            ramp.look(&notes(0, 0, 0), None, at(2250)),
            Outcome::Done { slow: false }
        );
    }

    #[test]
    fn failures_go_back_one_stage_and_from_the_first_one_reopen() {
        let mut ramp = ramp();
        assert_eq!(ramp.look(&notes(9, 0, 0), None, at(100)), Outcome::Promoted);
        assert_eq!(
            ramp.look(&notes(3, 3, 0), None, at(110)),
            Outcome::Held,
            "half is borne"
        );
        assert_eq!(ramp.look(&notes(3, 4, 0), None, at(120)), Outcome::RolledBack);
        assert_eq!(ramp.stage().index, 0);
        assert_eq!(ramp.look(&notes(0, 2, 0), None, at(130)), Outcome::Failed);
    }

    #[test]
    fn a_slow_stage_is_held_and_then_the_ramp_ends_at_what_it_bore() {
        let mut ramp = ramp();
        assert_eq!(ramp.look(&notes(9, 0, 0), Some(1000), at(100)), Outcome::Promoted);
        assert_eq!(ramp.look(&notes(9, 0, 2), Some(1000), at(200)), Outcome::Again);
        assert_eq!(ramp.look(&notes(9, 0, 0), Some(1900), at(300)), Outcome::Again);
        assert_eq!(
            ramp.look(&notes(9, 0, 2), Some(1000), at(400)),
            Outcome::Done { slow: true }
        );
        assert_eq!(ramp.stage().limit, Some(8));
    }

    #[test]
    fn one_slow_answer_of_a_handful_is_no_twentieth() {
        assert_eq!(
            ramp().look(&notes(6, 0, 1), Some(1000), at(100)),
            Outcome::Promoted
        );
    }

    #[test]
    fn rules_that_could_not_end_are_refused() {
        let wrong = |stages: &[u8]| {
            let mut problems = Problems::default();
            let stages = stages.into();
            RampRules {
                stages,
                ..RampRules::default()
            }
            .check("ramp", &mut problems);
            !problems.is_empty()
        };
        let seen = [
            &[][..],
            &[0, 100],
            &[5, 5, 100],
            &[50, 20, 100],
            &[50],
            &[100],
            &[1, 99, 100],
        ]
        .map(wrong);
        assert_eq!(seen, [true, true, true, true, true, false, false]);
        let mut problems = Problems::default();
        let longest = Duration::from_millis(99);
        RampRules {
            longest,
            ..RampRules::default()
        }
        .check("ramp", &mut problems);
        assert_eq!(problems.list()[0].place, "ramp.hold_max");
    }

    proptest! {
        #[test]
        fn a_ramp_moves_one_stage_at_a_time_and_up_only_after_its_hold(
            looks in proptest::collection::vec((1_u32..300, 0_u32..12, 0_u32..6, 0_u32..3, 900_u64..1500), 1..60),
        ) {
            let mut ramp = ramp();
            let (mut now, mut entered) = (0, 0);
            for (wait, answers, failures, slow, ratio) in looks {
                now += wait;
                let before = ramp.stage().index;
                let outcome = ramp.look(&notes(answers, failures, slow.min(answers)), Some(ratio), at(now));
                let after = ramp.stage().index;
                prop_assert!(before.abs_diff(after) <= 1);
                if after > before {
                    prop_assert!(now - entered >= 100);
                    prop_assert!(answers + failures >= 5 || now - entered >= 750);
                }
                if matches!(outcome, Outcome::Promoted | Outcome::RolledBack | Outcome::Again) {
                    entered = now;
                }
                if matches!(outcome, Outcome::Done { .. } | Outcome::Failed) {
                    break;
                }
            }
        }
    }
}
