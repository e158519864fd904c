//! Decides in which form the copies of one URI stand in a store: all of them together, as the shelf has them.
//! It exists because they are changed together: a copy that is taken away must not be left behind in a record of its own.
//! It refuses what it did not write, and copies that are one caller's own.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use evenkeel::{
    Mono, Wall,
    http::{COPIES_MAX, Shelved, ShelvedParts, UriKey},
};
use evenkeel_core::store::{Body, Record, Stamp};
use evenkeel_http::{dates::HttpDate, lifetime::Lifetime, stored::StoredCopy};
use http::{HeaderName, StatusCode};

use super::{
    super::purging,
    Times,
    bytes::{In, Out},
    marks::{self, Kind},
};

/// The form that is written. A later one is not read.
const FORM: u8 = 1;

/// The bodies of several copies, one behind the other. Of one copy it is the body itself.
struct Joined(Vec<u8>);

impl AsRef<[u8]> for Joined {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Writes the copies of a URI, with the tags that they have in these fields; `None` if none of them may be written.
pub(super) fn encode(key: &UriKey, copies: &[Arc<Shelved>], fields: &[HeaderName]) -> Option<Record> {
    let all: Vec<ShelvedParts> = copies
        .iter()
        .map(|copy| copy.to_parts())
        .filter(|parts| !marks::is_private(&parts.facts.facts) && !parts.facts.facts.directives.no_store)
        .collect();
    let latest = all.iter().max_by_key(|parts| parts.observed)?;
    let stamp = stamp_of(latest);
    let mut out = Out::default();
    out.byte(FORM);
    let budget = key.budget_length().and_then(|length| i64::try_from(length).ok());
    out.number(budget.unwrap_or(-1));
    out.byte(u8::try_from(all.len()).ok()?);
    for parts in &all {
        let facts = &parts.facts;
        out.short(facts.status.as_u16());
        out.facts(&facts.facts);
        match facts.lifetime {
            Lifetime::Unknown => out.byte(0),
            Lifetime::Stated(span) => {
                out.byte(1);
                out.span(Some(span));
            }
            Lifetime::Guessed(span) => {
                out.byte(2);
                out.span(Some(span));
            }
        }
        out.yes_or_no(facts.has_validator);
        out.yes_or_no(facts.expired);
        out.fields(&parts.headers);
        out.yes_or_no(parts.variant.is_some());
        if let Some(variant) = &parts.variant {
            out.variant(variant);
        }
        out.number(parts.received.unix_seconds());
        let stamp = stamp_of(parts);
        out.yes_or_no(stamp.mono.is_some());
        out.number(stamp.mono.map_or(0, Mono::as_nanos));
        out.number(parts.observed_wall.as_nanos());
        // How long before its attempt began the data was observed, as its origin said.
        out.number(parts.began.as_nanos().saturating_sub(parts.observed.as_nanos()));
        out.number(i64::try_from(parts.body.len()).ok()?);
    }
    let body = match all.as_slice() {
        [one] => Body::of(one.body.clone()),
        several => Body::of(Joined(
            several
                .iter()
                .flat_map(|parts| parts.body.iter().copied())
                .collect(),
        )),
    };
    let (store_key, mut marks) = marks::of(Kind::Shelved, key.as_bytes())?;
    marks.tags = all
        .iter()
        .flat_map(|parts| {
            fields
                .iter()
                .filter_map(|field| purging::tags(&parts.headers, field))
        })
        .flat_map(|text| marks::tags(&text))
        .collect();
    marks.tags.sort();
    marks.tags.dedup();
    let mut record = marks::record(store_key, marks, out.0, body);
    record.stamp = stamp;
    Some(record)
}

fn stamp_of(parts: &ShelvedParts) -> Stamp {
    Stamp {
        mono: Some(parts.observed).filter(|at| *at < Mono::END),
        wall: Some(parts.observed_wall),
    }
}

/// Reads the copies of a URI, each as old as the times say.
pub(super) fn decode(record: &Record, times: Times) -> Option<(UriKey, Vec<Shelved>)> {
    let whole = marks::key_of(Kind::Shelved, &record.key)?;
    let mut facts = In(&record.facts);
    if facts.byte()? != FORM {
        return None;
    }
    let key = UriKey::of_bytes(whole, usize::try_from(facts.number()?).ok());
    let count = usize::from(facts.byte()?);
    if count == 0 || count > COPIES_MAX {
        return None;
    }
    let mut bodies = record.body.bytes();
    let mut copies = Vec::with_capacity(count);
    for _ in 0..count {
        let (parts, length) = decode_one(&mut facts, record.soft, times)?;
        let (body, rest) = bodies.split_at_checked(length)?;
        bodies = rest;
        let body = Bytes::copy_from_slice(body);
        copies.push(Shelved::of_parts(ShelvedParts { body, ..parts }));
    }
    (facts.is_at_end() && bodies.is_empty()).then_some((key, copies))
}

/// Reads one copy without its body, and how long that is.
fn decode_one(facts: &mut In<'_>, soft: bool, times: Times) -> Option<(ShelvedParts, usize)> {
    let status = StatusCode::from_u16(facts.short()?).ok()?;
    let stored = facts.facts()?;
    if marks::is_private(&stored) || stored.directives.no_store {
        return None;
    }
    let lifetime = match facts.byte()? {
        0 => Lifetime::Unknown,
        1 => Lifetime::Stated(facts.span()??),
        2 => Lifetime::Guessed(facts.span()??),
        _ => return None,
    };
    let copy = StoredCopy {
        facts: stored,
        status,
        lifetime,
        has_validator: facts.yes_or_no()?,
        expired: facts.yes_or_no()? || soft,
    };
    let headers = facts.fields()?;
    let variant = if facts.yes_or_no()? {
        Some(facts.variant()?)
    } else {
        None
    };
    let received = HttpDate::from_unix_seconds(facts.number()?);
    let has_mono = facts.yes_or_no()?;
    let mono = Mono::from_nanos(facts.number()?);
    let observed_wall = Wall::from_nanos(facts.number()?);
    let stamp = Stamp {
        mono: has_mono.then_some(mono),
        wall: Some(observed_wall),
    };
    let observed = times.restored(stamp)?;
    let already = Duration::from_nanos(u64::try_from(facts.number()?).unwrap_or(0));
    let length = usize::try_from(facts.number()?).ok()?;
    let parts = ShelvedParts {
        facts: copy,
        headers,
        body: Bytes::new(),
        variant,
        received,
        // No attempt of now began earlier.
        began: observed.after(already).min(times.now.mono),
        observed,
        observed_wall,
    };
    Some((parts, length))
}
