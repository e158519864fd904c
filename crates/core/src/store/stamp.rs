//! Decides how old a snapshot is that comes back from a store.
//! It exists because a monotonic reading means nothing after a restart of the machine, and a wall clock may step.
//! It refuses to make anything younger: of two clocks the one that says older is believed.

use core::time::Duration;

use crate::time::{Mono, Now, Wall};

/// When data was observed, by both clocks of that time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// By the monotonic clock of the machine, which runs on from one process to the next; `None` if nobody said.
    pub mono: Option<Mono>,
    /// By the wall clock; `None` if nobody said.
    pub wall: Option<Wall>,
}

impl Stamp {
    /// Returns when the data was observed, by the clock that runs now; `None` if that is unknown, and [`Mono::END`] if it
    /// lies ahead.
    ///
    /// While the machine has not been restarted, its monotonic clock is a witness that never steps, and the wall clock can
    /// only make the data older, as it does where a machine was stopped as a whole. After a restart there is the wall
    /// clock alone: `skew` is how far it may be wrong, and is added to the age.
    ///
    /// ```
    /// use evenkeel_core::{Mono, Now, Wall, store::Stamp};
    /// use std::time::Duration;
    /// let second = |seconds: i64| seconds * 1_000_000_000;
    /// let stamp = Stamp { mono: Some(Mono::from_nanos(second(90))), wall: Some(Wall::from_nanos(second(1000))) };
    /// let now = Now { mono: Mono::from_nanos(second(5)), wall: Wall::from_nanos(second(1060)) };
    /// let skew = Duration::from_secs(1);
    /// // The machine was started anew five seconds ago; the data is a minute old, and perhaps a second more.
    /// assert_eq!(stamp.restored(now, false, skew), Some(Mono::from_nanos(second(5 - 61))));
    /// ```
    #[must_use]
    pub fn restored(self, now: Now, same_boot: bool, skew: Duration) -> Option<Mono> {
        let by_wall = |skew| self.wall.map(|wall| now.mono_of(wall).before(skew));
        let Some(mono) = self.mono.filter(|_| same_boot) else {
            return by_wall(skew).map(|at| ahead_stays_ahead(at, now.mono));
        };
        if mono > now.mono {
            return Some(Mono::END);
        }
        Some(by_wall(Duration::ZERO).map_or(mono, |wall| wall.min(mono)))
    }
}

/// What comes in dated ahead of the clock stays so for good: waiting does not make it true.
fn ahead_stays_ahead(at: Mono, now: Mono) -> Mono {
    if at > now { Mono::END } else { at }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::age::Age;
    use proptest::prelude::*;

    const SECOND: i64 = 1_000_000_000;
    const SKEW: Duration = Duration::from_secs(1);

    fn stamp(mono: Option<i64>, wall: Option<i64>) -> Stamp {
        Stamp {
            mono: mono.map(|seconds| Mono::from_nanos(seconds * SECOND)),
            wall: wall.map(|seconds| Wall::from_nanos(seconds * SECOND)),
        }
    }

    fn age(stamp: Stamp, (mono, wall): (i64, i64), same_boot: bool) -> Age {
        let now = Now {
            mono: Mono::from_nanos(mono * SECOND),
            wall: Wall::from_nanos(wall * SECOND),
        };
        Age::at(stamp.restored(now, same_boot, SKEW), now.mono)
    }

    fn known(seconds: u64) -> Age {
        Age::Known(Duration::from_secs(seconds))
    }

    #[test]
    fn a_process_that_is_started_anew_counts_on() {
        assert_eq!(age(stamp(Some(10), Some(1000)), (70, 1060), true), known(60));
    }

    #[test]
    fn a_wall_clock_that_steps_makes_nothing_younger() {
        let kept = stamp(Some(10), Some(1000));
        assert_eq!(age(kept, (70, 500), true), known(60), "it stepped back");
        assert_eq!(
            age(kept, (70, 2000), true),
            known(1000),
            "the machine stood still"
        );
        assert_eq!(
            age(kept, (3, 1030), false),
            known(31),
            "another boot: the skew is added"
        );
    }

    #[test]
    fn e44_what_lies_ahead_is_never_served_also_when_its_time_comes() {
        for (kept, same_boot) in [
            (stamp(Some(10), Some(1062)), false),
            (stamp(Some(71), Some(1000)), true),
            (stamp(None, Some(1062)), true),
        ] {
            assert!(
                matches!(age(kept, (70, 1060), same_boot), Age::Future(_)),
                "{kept:?}"
            );
        }
        // As far ahead as the clocks may differ is still possible.
        assert_eq!(age(stamp(None, Some(1061)), (70, 1060), false), known(0));
    }

    #[test]
    fn what_nobody_dated_stays_undated() {
        assert_eq!(age(stamp(None, None), (70, 1060), true), Age::Unknown);
        assert_eq!(age(stamp(Some(10), None), (70, 1060), false), Age::Unknown);
        assert_eq!(age(stamp(Some(10), None), (70, 1060), true), known(60));
    }

    proptest! {
        #[test]
        fn no_clock_reading_makes_data_younger_than_it_is(
            observed in 0_i64..1000,
            lived in 0_i64..1000,
            stepped in -2000_i64..2000,
        ) {
            let kept = stamp(Some(observed), Some(5000 + observed));
            let now = (observed + lived, 5000 + observed + lived + stepped);
            if let Age::Known(age) = age(kept, now, true) {
                prop_assert!(age >= Duration::from_secs(lived.unsigned_abs()));
            }
        }
    }
}
