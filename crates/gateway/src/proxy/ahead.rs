//! Decides when a copy of the shelf is refreshed although it is still fresh.
//! It exists because what was fetched at one moment would otherwise be asked for again at one moment, by everybody.
//! It refuses to make a lifetime longer, and to keep anybody waiting: the copy is given, and the refresh is nobody's.

use std::time::Duration;

use evenkeel::{
    Facts,
    http::{Shelved, UriKey},
};
use evenkeel_core::{RefreshRules, Rng};

/// The rules of one route.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    rules: RefreshRules,
    /// Zero where nothing is drawn.
    seed: u64,
}

/// More than any lifetime: whatever is drawn, a copy of this cost is refreshed now.
const NO_COST_TOO_HIGH: Duration = Duration::from_secs(1_000_000_000_000);

impl Ahead {
    pub(super) fn of(rules: &RefreshRules, seed: impl FnOnce() -> u64) -> Self {
        let seed = if rules.jitter_ppm > 0 { seed() } else { 0 };
        Self { rules: *rules, seed }
    }

    /// Tells the engine of a copy that is given as fresh how long it is that, and what its refresh will cost.
    pub(super) fn tell(&self, facts: &mut Facts, (key, copy): (&UriKey, &Shelved), age: Duration) {
        let lifetime = copy.facts().lifetime.span();
        if age >= lifetime || !(self.rules.refresh_ahead || self.rules.jitter_ppm > 0) {
            return;
        }
        facts.lifetime = Some(lifetime);
        // Past the end that is drawn for it the next hit refreshes it.
        facts.cost = if age >= self.end_of(key, copy, lifetime) {
            Some(NO_COST_TOO_HIGH)
        } else {
            self.rules.refresh_ahead.then(|| copy.took())
        };
    }

    /// Draws the end of a copy: the same for every request.
    fn end_of(&self, key: &UriKey, copy: &Shelved, lifetime: Duration) -> Duration {
        if self.rules.jitter_ppm == 0 {
            return lifetime;
        }
        let observed = self.seed ^ copy.observed().as_nanos().unsigned_abs();
        // FNV-1a: copies that came together have different keys.
        let mixed = key.as_bytes().iter().fold(observed, |mixed, byte| {
            (mixed ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        self.rules.spread(lifetime, Rng::new(mixed).next_u64())
    }
}
