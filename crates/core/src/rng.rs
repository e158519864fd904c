//! Decides every random draw of the engine from one seed.
//! It exists so that a run can be repeated and two nodes with two seeds do not act in step.
//! It refuses other sources of randomness, and is not for secrets.

use core::time::Duration;

/// A small seeded generator (splitmix64: Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// How far each draw moves the state on.
    pub const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

    /// Starts from a seed; every seed is good, zero too.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::STEP);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns `span` moved by up to `spread_ppm` parts per million either way, evenly drawn.
    ///
    /// A spread of zero returns `span`; one of a million or more may return anything from zero to twice it.
    pub fn jitter(&mut self, span: Duration, spread_ppm: u32) -> Duration {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let spread = u128::from(nanos) * u128::from(spread_ppm.min(1_000_000)) / 1_000_000;
        let drawn = (u128::from(self.next_u64()) * (2 * spread + 1)) >> 64;
        let moved = u128::from(nanos) - spread + drawn;
        Duration::from_nanos(u64::try_from(moved).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_inside_its_spread_and_uses_both_sides() {
        let mut rng = Rng::new(7);
        let span = Duration::from_millis(1000);
        let drawn: alloc::vec::Vec<_> = (0..1000).map(|_| rng.jitter(span, 200_000)).collect();
        assert!(drawn.iter().all(|d| (800..=1200).contains(&d.as_millis())));
        assert!(drawn.iter().any(|d| d.as_millis() < 850));
        assert!(drawn.iter().any(|d| d.as_millis() > 1150));
    }

    #[test]
    fn no_spread_moves_nothing_and_extremes_do_not_overflow() {
        let mut rng = Rng::new(0);
        assert_eq!(rng.jitter(Duration::from_secs(2), 0), Duration::from_secs(2));
        let wide = rng.jitter(Duration::MAX, u32::MAX);
        assert!(wide <= Duration::from_nanos(u64::MAX));
        assert_eq!(rng.jitter(Duration::ZERO, 1_000_000), Duration::ZERO);
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let (mut a, mut b) = (Rng::new(42), Rng::new(42));
        assert!((0..100).all(|_| a.next_u64() == b.next_u64()));
        assert_ne!(Rng::new(1).next_u64(), Rng::new(2).next_u64());
    }
}
