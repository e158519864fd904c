//! Decides how old a snapshot is and whether that age may be served.
//! It exists so that there is one age rule, compared exactly, for every rung, trigger and driver.
//! It refuses to round, to guess a missing time, and to take a missing limit for "forever".

use core::time::Duration;

use crate::{reason::Skipped, time::Mono};

/// How old a piece of data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// It was observed this long ago.
    Known(Duration),
    /// It claims to be observed this far ahead of the clock.
    Future(Duration),
    /// Nobody said when it was observed.
    Unknown,
}

impl Age {
    /// Returns the age at `now` of what was observed at `observed`.
    ///
    /// ```
    /// use evenkeel_core::{Age, Mono};
    /// use std::time::Duration;
    /// let now = Mono::from_nanos(100);
    /// assert_eq!(Age::at(Some(Mono::from_nanos(70)), now), Age::Known(Duration::from_nanos(30)));
    /// assert_eq!(Age::at(Some(Mono::from_nanos(101)), now), Age::Future(Duration::from_nanos(1)));
    /// assert_eq!(Age::at(None, now), Age::Unknown);
    /// ```
    #[must_use]
    pub fn at(observed: Option<Mono>, now: Mono) -> Self {
        match observed {
            None => Self::Unknown,
            Some(observed) if observed > now => Self::Future(observed.since(now)),
            Some(observed) => Self::Known(now.since(observed)),
        }
    }

    /// Returns the age if it may be served under `limit`, else the word for why not.
    ///
    /// The limit itself is servable, one nanosecond more is not. `None` permits no age at all.
    ///
    /// # Errors
    /// [`Skipped::UnknownAge`], [`Skipped::FutureDated`] or [`Skipped::TooOld`].
    pub fn within(self, limit: Option<Duration>) -> Result<Duration, Skipped> {
        match self {
            Self::Unknown => Err(Skipped::UnknownAge),
            Self::Future(_) => Err(Skipped::FutureDated),
            Self::Known(age) => match limit {
                Some(limit) if age <= limit => Ok(age),
                Some(_) | None => Err(Skipped::TooOld),
            },
        }
    }
}

/// What the engine needs to know of a snapshot to decide whether it may be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Facts {
    /// When the attempt that produced the data began; `None` if nobody said.
    pub observed: Option<Mono>,
    /// A limit on the total age that came with the data itself, for every trigger; `None` if none came.
    pub own_limit: Option<Duration>,
    /// The data, or this caller's relation to it, forbids serving it in place of a live answer, fresh or not.
    pub forbidden: bool,
    /// The data forbids being served once it is no longer fresh (`must-revalidate` and its like).
    pub stale_forbidden: bool,
    /// How long the copy counts as fresh, in place of the contract's `fresh_for`; `None` if none came with it.
    pub lifetime: Option<Duration>,
    /// How long beyond its lifetime the copy permits being served while a refresh runs (RFC 5861 §3); `None` leaves
    /// that to the contract.
    pub revalidate: Option<Duration>,
    /// How long the attempt took that produced the data, which is what a refresh will cost; `None` if nobody knows.
    pub cost: Option<Duration>,
}

impl Facts {
    /// Returns the age if the snapshot may be served as stale under the contract's limit.
    ///
    /// The effective limit is the lower of the contract's and the data's own. Prohibitions win over ages.
    ///
    /// # Errors
    /// The word for why not.
    pub fn stale(&self, max_age: Duration, now: Mono) -> Result<Duration, Skipped> {
        if self.stale_forbidden {
            return Err(Skipped::Forbidden);
        }
        self.within(max_age, now)
    }

    /// Returns the age if the snapshot is still inside `lifetime`, and so a full answer without a call.
    ///
    /// Fresh means `age < lifetime` (RFC 9111 §4.2): at its lifetime's end data is no longer fresh.
    ///
    /// # Errors
    /// The word for why not.
    pub fn fresh(&self, lifetime: Duration, now: Mono) -> Result<Duration, Skipped> {
        let age = self.within(lifetime, now)?;
        if age < lifetime {
            Ok(age)
        } else {
            Err(Skipped::TooOld)
        }
    }

    fn within(&self, limit: Duration, now: Mono) -> Result<Duration, Skipped> {
        if self.forbidden {
            return Err(Skipped::Forbidden);
        }
        let limit = self.own_limit.map_or(limit, |own| own.min(limit));
        Age::at(self.observed, now).within(Some(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: Duration = Duration::from_secs(60);
    const NS: Duration = Duration::from_nanos(1);

    fn observed_ago(ago: Duration) -> (Facts, Mono) {
        let now = Mono::from_nanos(1_000_000_000_000);
        (
            Facts {
                observed: Some(now.before(ago)),
                ..Facts::default()
            },
            now,
        )
    }

    #[test]
    fn e40_the_limit_is_servable_and_one_nanosecond_more_is_not() {
        for (ago, expected) in [
            (Duration::ZERO, Ok(Duration::ZERO)),
            (LIMIT - NS, Ok(LIMIT - NS)),
            (LIMIT, Ok(LIMIT)),
            (LIMIT + NS, Err(Skipped::TooOld)),
        ] {
            let (facts, now) = observed_ago(ago);
            assert_eq!(facts.stale(LIMIT, now), expected);
        }
    }

    #[test]
    fn e44_a_future_time_is_not_servable_by_even_one_nanosecond() {
        let now = Mono::from_nanos(5);
        let facts = Facts {
            observed: Some(Mono::from_nanos(6)),
            ..Facts::default()
        };
        assert_eq!(facts.stale(LIMIT, now), Err(Skipped::FutureDated));
        assert_eq!(facts.fresh(LIMIT, now), Err(Skipped::FutureDated));
    }

    #[test]
    fn an_unknown_time_is_not_servable() {
        assert_eq!(
            Facts::default().stale(Duration::MAX, Mono::END),
            Err(Skipped::UnknownAge)
        );
    }

    #[test]
    fn e41_a_missing_limit_serves_nothing_not_even_age_zero() {
        assert_eq!(Age::Known(Duration::ZERO).within(None), Err(Skipped::TooOld));
        assert_eq!(
            Age::Known(Duration::ZERO).within(Some(Duration::ZERO)),
            Ok(Duration::ZERO)
        );
    }

    #[test]
    fn g14_the_lower_of_both_limits_holds() {
        let (mut facts, now) = observed_ago(Duration::from_secs(30));
        facts.own_limit = Some(Duration::from_secs(30));
        assert!(facts.stale(LIMIT, now).is_ok());
        facts.own_limit = Some(Duration::from_secs(30) - NS);
        assert_eq!(facts.stale(LIMIT, now), Err(Skipped::TooOld));
        facts.own_limit = Some(Duration::from_secs(3600));
        let (_, later) = (facts, now.after(Duration::from_secs(31)));
        assert_eq!(facts.stale(LIMIT, later), Err(Skipped::TooOld));
    }

    #[test]
    fn a_prohibition_wins_over_any_age() {
        let (mut facts, now) = observed_ago(Duration::ZERO);
        facts.forbidden = true;
        assert_eq!(facts.stale(LIMIT, now), Err(Skipped::Forbidden));
        assert_eq!(facts.fresh(LIMIT, now), Err(Skipped::Forbidden));
    }

    #[test]
    fn what_may_not_be_served_stale_may_be_served_while_it_is_fresh() {
        let (mut facts, now) = observed_ago(Duration::ZERO);
        facts.stale_forbidden = true;
        assert_eq!(facts.stale(LIMIT, now), Err(Skipped::Forbidden));
        assert_eq!(facts.fresh(LIMIT, now), Ok(Duration::ZERO));
    }

    #[test]
    fn fresh_ends_where_the_lifetime_ends() {
        let (facts, now) = observed_ago(LIMIT - NS);
        assert_eq!(facts.fresh(LIMIT, now), Ok(LIMIT - NS));
        let (facts, now) = observed_ago(LIMIT);
        assert_eq!(facts.fresh(LIMIT, now), Err(Skipped::TooOld));
    }

    proptest! {
        #[test]
        fn servable_iff_known_not_negative_and_not_over_the_limit(
            observed in proptest::option::of(-1_000_i64..2_000),
            now in 0_i64..1_000,
            limit in 0_u64..1_500,
        ) {
            let facts = Facts { observed: observed.map(Mono::from_nanos), ..Facts::default() };
            let served = facts.stale(Duration::from_nanos(limit), Mono::from_nanos(now));
            let age = observed.map(|observed| now - observed);
            let model = match age {
                None => Err(Skipped::UnknownAge),
                Some(age) if age < 0 => Err(Skipped::FutureDated),
                Some(age) if age.unsigned_abs() <= limit => Ok(Duration::from_nanos(age.unsigned_abs())),
                Some(_) => Err(Skipped::TooOld),
            };
            prop_assert_eq!(served, model);
        }
    }
}
