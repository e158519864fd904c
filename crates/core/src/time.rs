//! Decides how time is written down: a monotonic reading, a wall reading, and arithmetic that saturates.
//! It exists so that every rule of the engine takes its time as an argument and two clocks can never be mixed up.
//! It refuses to read any clock.

use core::time::Duration;

/// A reading of a clock that never steps and that counts suspend, in nanoseconds since an origin of the
/// clock's choosing (system boot, for the real one).
///
/// Readings may lie before the origin: a snapshot that was observed before the machine started has a
/// negative one. Arithmetic saturates at both ends, which are 292 years away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mono(i64);

impl Mono {
    /// The clock's origin.
    pub const ORIGIN: Self = Self(0);
    /// The end of time, later than every deadline.
    pub const END: Self = Self(i64::MAX);

    /// Makes a reading from nanoseconds since the clock's origin.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the clock's origin.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Returns the reading `span` later, at most [`Mono::END`].
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }

    /// Returns the reading `span` earlier.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }

    /// Returns the time from `earlier` to `self`, zero when `earlier` is in fact later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// A reading of the wall clock, in nanoseconds since 1970-01-01T00:00:00Z.
///
/// It dates what people and other machines see. No age inside one process is computed from it, because a
/// wall clock may step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wall(i64);

impl Wall {
    /// Makes a reading from nanoseconds since the Unix epoch.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the Unix epoch.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Returns whole seconds since the Unix epoch, rounded down.
    #[must_use]
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1_000_000_000)
    }
}

/// One look at both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// What windows, leases, deadlines and ages are measured with.
    pub mono: Mono,
    /// What is shown, and what a foreign snapshot is dated against.
    pub wall: Wall,
}

impl Now {
    /// Returns the monotonic reading at which the wall clock showed, or will show, `wall`.
    ///
    /// A snapshot dated by somebody else is converted once, when it comes in; a wall clock that steps
    /// afterwards makes it neither younger nor older.
    #[must_use]
    pub const fn mono_of(self, wall: Wall) -> Mono {
        Mono(self.mono.0.saturating_sub(self.wall.0.saturating_sub(wall.0)))
    }

    /// Returns what the wall clock showed, by its present setting, at `mono`.
    #[must_use]
    pub const fn wall_of(self, mono: Mono) -> Wall {
        Wall(self.wall.0.saturating_sub(self.mono.0.saturating_sub(mono.0)))
    }
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Mono::ORIGIN.after(Duration::MAX), Mono::END);
        assert_eq!(
            Mono::from_nanos(i64::MIN).before(Duration::MAX),
            Mono::from_nanos(i64::MIN)
        );
        assert_eq!(Mono::ORIGIN.since(Mono::END), Duration::ZERO);
    }

    #[test]
    fn a_wall_time_converts_there_and_back() {
        let now = Now {
            mono: Mono::from_nanos(50),
            wall: Wall::from_nanos(1_000),
        };
        assert_eq!(now.mono_of(Wall::from_nanos(990)), Mono::from_nanos(40));
        assert_eq!(now.mono_of(Wall::from_nanos(1_010)), Mono::from_nanos(60));
        assert_eq!(now.wall_of(Mono::from_nanos(-50)), Wall::from_nanos(900));
    }

    #[test]
    fn seconds_of_a_wall_time_round_down_also_before_1970() {
        assert_eq!(Wall::from_nanos(1_999_999_999).as_secs(), 1);
        assert_eq!(Wall::from_nanos(-1).as_secs(), -1);
    }
}
