//! Decides whether a copy that is still fresh is refreshed now, ahead of its end, and how lifetimes are spread.
//! It exists so that what was kept at one moment does not run out at one moment, for one key and for many.
//! It refuses floats: the draws are integers, so every machine decides alike.

use core::time::Duration;

/// Tells whether to refresh a copy with `remaining` left of its lifetime whose attempt took `cost`, by a random `chance`.
///
/// This is XFetch (Vattani, Chierichetti, Lowenstein, VLDB 2015) with β = 1: refresh if `cost · -ln(U) >= remaining`, so
/// that the chance with `t` left is `exp(-t / cost)`. The dearer a copy, the earlier it is renewed; one that cost nothing
/// never is.
pub(crate) fn is_early(remaining: Duration, cost: Duration, chance: u64) -> bool {
    if cost.is_zero() || remaining / LARGEST_DRAW > cost {
        return false;
    }
    let ahead = (cost.as_nanos() * u128::from(minus_ln(chance))) >> FRACTION;
    ahead >= remaining.as_nanos()
}

/// Returns `lifetime` shortened by up to `spread_ppm` parts per million, by a random `chance`. Never longer: a lifetime
/// that came with the data is a promise.
pub(crate) fn shortened(lifetime: Duration, spread_ppm: u32, chance: u64) -> Duration {
    let nanos = u64::try_from(lifetime.as_nanos()).unwrap_or(u64::MAX);
    let spread = u128::from(nanos) * u128::from(spread_ppm.min(1_000_000)) / 1_000_000;
    let drawn = (u128::from(chance) * (spread + 1)) >> 64;
    let less = u64::try_from(drawn).unwrap_or(u64::MAX);
    Duration::from_nanos(nanos.saturating_sub(less))
}

/// `-ln(U)` is below 64 · ln 2 for every chance there is.
const LARGEST_DRAW: u32 = 45;
/// Bits behind the point.
const FRACTION: u32 = 32;
/// ln 2.
const LN_2: u64 = 2_977_044_472;

/// Returns `-ln((chance + 1) / 2^64)` with [`FRACTION`] bits behind the point.
fn minus_ln(chance: u64) -> u64 {
    let Some(drawn) = chance.checked_add(1) else {
        return 0;
    };
    let whole = drawn.ilog2();
    // The mantissa, from 1 to below 2, with 63 bits behind the point.
    let mut mantissa = u128::from(drawn) << (63 - whole);
    let mut fraction = 0_u64;
    for _ in 0..FRACTION {
        mantissa = (mantissa * mantissa) >> 63;
        fraction <<= 1;
        if mantissa >> 64 != 0 {
            mantissa >>= 1;
            fraction |= 1;
        }
    }
    let log_2 = (u64::from(whole) << FRACTION) | fraction;
    let minus_log_2 = (64_u64 << FRACTION) - log_2;
    u64::try_from((u128::from(minus_log_2) * u128::from(LN_2)) >> FRACTION).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn r19_the_logarithm_is_right_at_known_points() {
        let of = |chance: u64| minus_ln(chance) as f64 / (1_u64 << FRACTION) as f64;
        for (chance, expected) in [
            (u64::MAX, 0.0),
            ((1 << 63) - 1, core::f64::consts::LN_2),
            ((1 << 62) - 1, 2.0 * core::f64::consts::LN_2),
            (6_786_177_901_268_885_274, 1.0),
            (0, 64.0 * core::f64::consts::LN_2),
        ] {
            assert!((of(chance) - expected).abs() < 1e-6, "{chance}: {}", of(chance));
        }
        assert!(of(0) < f64::from(LARGEST_DRAW));
    }

    #[test]
    fn r19_the_share_of_early_refreshes_is_the_exponential_of_what_remains() {
        let mut rng = Rng::new(7);
        for (remaining, expected) in [(S, 368), (S / 4, 779), (S * 3, 50)] {
            let early = (0..10_000)
                .filter(|_| is_early(remaining, S, rng.next_u64()))
                .count();
            let permille = early / 10;
            assert!(permille.abs_diff(expected) <= 15, "{remaining:?}: {permille}");
        }
    }

    #[test]
    fn a_copy_that_cost_nothing_or_has_long_to_live_is_not_refreshed_early_by_any_draw() {
        for chance in [0, 1, u64::MAX / 2, u64::MAX] {
            assert!(!is_early(Duration::from_nanos(1), Duration::ZERO, chance));
            assert!(!is_early(S * 46, S, chance));
            assert!(!is_early(Duration::MAX, S, chance));
        }
        assert!(
            is_early(Duration::ZERO, S, u64::MAX),
            "at its end there is nothing left to wait for"
        );
        assert!(is_early(S * 44, S, 0));
    }

    #[test]
    fn g08_lifetimes_are_spread_below_what_was_promised_and_never_above() {
        let mut rng = Rng::new(7);
        let drawn: alloc::vec::Vec<_> = (0..1000)
            .map(|_| shortened(S * 10, 200_000, rng.next_u64()))
            .collect();
        assert!(drawn.iter().all(|drawn| (S * 8..=S * 10).contains(drawn)));
        assert!(drawn.iter().any(|drawn| *drawn < S * 17 / 2));
        assert!(drawn.iter().any(|drawn| *drawn > S * 19 / 2));
        assert_eq!(shortened(S, 0, u64::MAX), S);
        assert_eq!(shortened(S, 1_000_000, u64::MAX), Duration::ZERO);
        assert_eq!(shortened(S, u32::MAX, 0), S);
    }
}
