//! Decides how calls are spread over the addresses of one dependency, and which settings of that make sense.
//! It exists so that a contract, a driver and a test speak of the same rules.
//! It refuses settings that could leave every address out, or leave one out for ever.

use core::time::Duration;

use crate::problem::Problems;

/// How one of several addresses is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Spread {
    /// Each in turn. All get the same share, also one that is slow.
    RoundRobin,
    /// The one with the fewest attempts in flight.
    LeastLoaded,
    /// Of two drawn at random the one with fewer attempts in flight.
    #[default]
    PowerOfTwo,
}

impl Spread {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::RoundRobin, Self::LeastLoaded, Self::PowerOfTwo];

    /// Returns the stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::LeastLoaded => "least-loaded",
            Self::PowerOfTwo => "power-of-two",
        }
    }
}

/// When an address is left out, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EjectRules {
    /// After this many failures in a row: 1 to 1000.
    pub consecutive: u32,
    /// For this long the first time, doubled with each further time in a row: 1 ms to 1 h.
    pub first: Duration,
    /// The longest time: `first` to 1 h.
    pub longest: Duration,
    /// The spread around each, in parts per million: 0 to 500 000.
    pub jitter_ppm: u32,
    /// The largest share of the addresses that may be left out, in parts per million: more than 0, less than 1 000 000.
    pub max_share_ppm: u32,
}

impl EjectRules {
    /// The starting values.
    pub const DEFAULT: Self = Self {
        consecutive: 5,
        first: Duration::from_secs(10),
        longest: Duration::from_secs(300),
        jitter_ppm: 200_000,
        max_share_ppm: 900_000,
    };

    /// Returns how many of `addresses` may be left out: the share, rounded down, so that one is always left.
    #[must_use]
    pub fn most(&self, addresses: u32) -> u32 {
        let most = u64::from(addresses) * u64::from(self.max_share_ppm.min(999_999)) / 1_000_000;
        u32::try_from(most).unwrap_or(u32::MAX)
    }

    /// Adds every problem of these rules to `problems`, each placed under `place`.
    pub fn check(&self, place: &str, problems: &mut Problems) {
        const MS: Duration = Duration::from_millis(1);
        const HOUR: Duration = Duration::from_secs(3600);
        problems.range(&[place, "consecutive"], u64::from(self.consecutive), 1, 1000);
        problems.span(&[place, "for"], self.first, MS, HOUR);
        problems.span(&[place, "for_max"], self.longest, self.first.min(HOUR), HOUR);
        problems.range(
            &[place, "jitter (parts per million)"],
            u64::from(self.jitter_ppm),
            0,
            500_000,
        );
        problems.range(
            &[place, "max_share (parts per million)"],
            u64::from(self.max_share_ppm),
            1,
            999_999,
        );
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_address_is_always_left() {
        let most = |addresses, max_share_ppm| {
            EjectRules {
                max_share_ppm,
                ..EjectRules::DEFAULT
            }
            .most(addresses)
        };
        for (addresses, share, left_out) in [
            (1, 900_000, 0),
            (2, 900_000, 1),
            (3, 900_000, 2),
            (10, 900_000, 9),
            (20, 900_000, 18),
            (3, 500_000, 1),
            (2, 500_000, 1),
            (64, 1_000_000, 63),
            (1, u32::MAX, 0),
        ] {
            assert_eq!(most(addresses, share), left_out, "{addresses} {share}");
        }
    }

    #[test]
    fn rules_that_make_no_sense_are_told() {
        let count = |rules: EjectRules| {
            let mut problems = Problems::default();
            rules.check("eject", &mut problems);
            problems.list().len()
        };
        let good = EjectRules::DEFAULT;
        assert_eq!(count(good), 0);
        for bad in [
            EjectRules {
                consecutive: 0,
                ..good
            },
            EjectRules {
                first: Duration::ZERO,
                ..good
            },
            EjectRules {
                longest: Duration::from_secs(1),
                ..good
            },
            EjectRules {
                jitter_ppm: 500_001,
                ..good
            },
            EjectRules {
                max_share_ppm: 1_000_000,
                ..good
            },
            EjectRules {
                max_share_ppm: 0,
                ..good
            },
        ] {
            assert_eq!(count(bad), 1, "{bad:?}");
        }
    }
}
