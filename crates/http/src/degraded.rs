//! Decides how the `Degraded` field tells which parts of an answer are not live data, since when, and why.
//! It exists because `X-Data-Freshness` is one word, and whoever must act needs part, source, age and reason.
//! It refuses to list without end: past [`MEMBERS_MAX`] members it counts the rest.

use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::dates::HttpDate;
use crate::freshness::{DataFreshness, X_DATA_FRESHNESS};
use crate::sf::{header_value, push_integer, push_text};

/// The field name.
pub const DEGRADED: HeaderName = HeaderName::from_static("degraded");

/// The most parts listed; a further member `*` says how many more there are.
pub const MEMBERS_MAX: usize = 32;

/// Tells whether an answer says of itself that it is less than live data: one word of it among several is enough.
#[must_use]
pub fn is_degraded(headers: &HeaderMap) -> bool {
    let fresh = DataFreshness::Fresh.as_str().as_bytes();
    let mut said = headers.get_all(X_DATA_FRESHNESS).iter();
    headers.contains_key(DEGRADED) || said.any(|said| said.as_bytes() != fresh)
}

/// What stands in for the live data of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StandIn {
    /// The last good data.
    Stale,
    /// Another source.
    Alternate,
    /// A declared constant.
    Default,
    /// Nothing: the part was left out. Written as `omitted` in place of `rung`.
    Omitted,
}

/// One part of an answer that is not live.
///
/// ```
/// use evenkeel_http::dates::HttpDate;
/// use evenkeel_http::degraded::{DegradedPart, StandIn, degraded_value};
/// use std::time::Duration;
///
/// let part = DegradedPart {
///     part: "product",
///     stand_in: StandIn::Stale,
///     age: Some(Duration::from_secs(34)),
///     observed: Some(HttpDate::from_unix_seconds(1_764_440_643)),
///     reason: "breaker-open",
/// };
/// let value = degraded_value([part]).unwrap();
/// assert_eq!(value, "product;rung=stale;age=34;observed=@1764440643;reason=breaker-open");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DegradedPart<'a> {
    /// The name of the part, or of the route.
    pub part: &'a str,
    /// What stands in for it.
    pub stand_in: StandIn,
    /// How old its data is, shown in whole seconds; `None` where there is no age (a constant, a part left
    /// out).
    pub age: Option<Duration>,
    /// When its data was observed.
    pub observed: Option<HttpDate>,
    /// The reason word of the engine.
    pub reason: &'a str,
}

/// Writes the field, a structured list with one member per part; `None` if no part is degraded, and then the
/// field is not sent.
pub fn degraded_value<'a>(parts: impl IntoIterator<Item = DegradedPart<'a>>) -> Option<HeaderValue> {
    let mut parts = parts.into_iter();
    let mut out = String::with_capacity(96);
    for part in parts.by_ref().take(MEMBERS_MAX) {
        if !out.is_empty() {
            out.push_str(", ");
        }
        push_part(&mut out, &part);
    }
    let more = parts.count();
    if more > 0 {
        out.push_str(", *;more=");
        push_integer(&mut out, i64::try_from(more).unwrap_or(i64::MAX));
    }
    (!out.is_empty()).then(|| header_value(out))
}

fn push_part(out: &mut String, part: &DegradedPart<'_>) {
    push_text(out, part.part);
    out.push_str(match part.stand_in {
        StandIn::Stale => ";rung=stale",
        StandIn::Alternate => ";rung=alternate",
        StandIn::Default => ";rung=default",
        StandIn::Omitted => ";omitted",
    });
    if let Some(age) = part.age {
        out.push_str(";age=");
        push_integer(out, i64::try_from(age.as_secs()).unwrap_or(i64::MAX));
    }
    if let Some(observed) = part.observed {
        out.push_str(";observed=@");
        push_integer(out, observed.unix_seconds());
    }
    out.push_str(";reason=");
    push_text(out, part.reason);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parse_list;
    use http::HeaderMap;
    use proptest::prelude::*;

    fn part(name: &str) -> DegradedPart<'_> {
        DegradedPart {
            part: name,
            stand_in: StandIn::Default,
            age: None,
            observed: None,
            reason: "timed-out",
        }
    }

    fn written<'a>(parts: impl IntoIterator<Item = DegradedPart<'a>>) -> String {
        degraded_value(parts).unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn an_answer_without_degraded_parts_has_no_field() {
        assert_eq!(degraded_value([]), None);
    }

    #[test]
    fn every_stand_in_has_its_form() {
        let with = |stand_in| {
            written([DegradedPart {
                stand_in,
                ..part("p")
            }])
        };
        assert_eq!(with(StandIn::Stale), "p;rung=stale;reason=timed-out");
        assert_eq!(with(StandIn::Alternate), "p;rung=alternate;reason=timed-out");
        assert_eq!(with(StandIn::Default), "p;rung=default;reason=timed-out");
        assert_eq!(with(StandIn::Omitted), "p;omitted;reason=timed-out");
    }

    #[test]
    fn parts_are_listed_in_order_and_odd_names_are_quoted() {
        assert_eq!(
            written([part("reviews"), part("top 10"), part("a\nb")]),
            "reviews;rung=default;reason=timed-out, \"top 10\";rung=default;reason=timed-out, \
             \"a%0ab\";rung=default;reason=timed-out"
        );
    }

    #[test]
    fn past_the_limit_the_rest_is_counted() {
        let count = |parts: usize| written(std::iter::repeat_n(part("p"), parts));
        assert!(!count(MEMBERS_MAX).contains('*'));
        assert!(count(MEMBERS_MAX + 1).ends_with(", *;more=1"));
        assert!(count(MEMBERS_MAX + 40).ends_with(", *;more=40"));
    }

    proptest! {
        #[test]
        fn every_field_parses_back(
            parts in prop::collection::vec(
                (
                    any::<String>(),
                    any::<String>(),
                    prop::option::of(any::<u64>()),
                    prop::option::of(any::<i64>()),
                ),
                1..40,
            ),
        ) {
            let value = degraded_value(parts.iter().map(|(part, reason, age, observed)| DegradedPart {
                part,
                stand_in: StandIn::Stale,
                age: age.map(Duration::from_secs),
                observed: observed.map(HttpDate::from_unix_seconds),
                reason,
            }));
            let mut map = HeaderMap::new();
            map.insert(DEGRADED, value.unwrap());
            let members = parse_list(&map, &DEGRADED);
            prop_assert_eq!(members.len(), parts.len().min(MEMBERS_MAX + 1));
            for (_, parameters) in members.iter().take(parts.len().min(MEMBERS_MAX)) {
                let keys: Vec<_> = parameters.iter().map(|(key, _)| key.as_str()).collect();
                prop_assert_eq!((keys[0], keys[keys.len() - 1]), ("rung", "reason"));
            }
        }
    }
}
