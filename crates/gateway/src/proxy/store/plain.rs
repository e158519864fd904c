//! Decides in which form a snapshot of a route that always asks stands in a store.
//! It exists beside the form of a shelf, because here the terms of an answer stand beside it and not in it.
//! It refuses what it did not write: another form, or bytes left over, are no snapshot.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use evenkeel::{Class, Entry, Keep, Mono, Terms};
use evenkeel_core::store::{Body, Record, Stamp};
use http::StatusCode;

use super::{
    super::whole::{Reply, Shared, Whole},
    Times,
    bytes::{In, Out},
    marks::{self, Kind},
};

/// The form that is written. A later one is not read.
const FORM: u8 = 1;

/// Writes a snapshot; `None` for what is not one.
pub(super) fn encode(key: &[u8], reply: &Reply, entry: &Entry) -> Option<Record> {
    let Reply::Whole(whole) = reply else { return None };
    let shared = whole.shared.as_ref()?;
    if marks::is_private(&shared.facts) {
        return None;
    }
    let mut out = Out::default();
    out.byte(FORM);
    out.short(whole.status.as_u16());
    out.fields(&whole.headers);
    out.span(whole.lifetime);
    out.facts(&shared.facts);
    out.variant(&shared.variant);
    for span in [entry.own_limit, entry.lifetime, entry.revalidate, entry.cost] {
        out.span(span);
    }
    out.yes_or_no(entry.stale_forbidden);
    let (key, mut marks) = marks::of(Kind::Plain, key)?;
    marks.tags = whole.tags.as_deref().map(marks::tags).unwrap_or_default();
    let mut record = marks::record(key, marks, out.0, Body::of(whole.body.clone()));
    record.stamp = Stamp {
        // What lies ahead stays ahead, also when its time has come.
        mono: entry.observed.filter(|at| *at < Mono::END),
        wall: entry.observed_wall,
    };
    Some(record)
}

/// Reads a snapshot, as old as the times say.
pub(super) fn decode(record: &Record, times: Times) -> Option<(Reply, Entry)> {
    let mut facts = In(&record.facts);
    if facts.byte()? != FORM {
        return None;
    }
    let status = StatusCode::from_u16(facts.short()?).ok()?;
    let headers = facts.fields()?;
    let lifetime = facts.span()?;
    let shared = Shared {
        facts: facts.facts()?,
        variant: facts.variant()?,
    };
    let entry = Entry {
        observed: times.restored(record.stamp),
        observed_wall: record.stamp.wall,
        own_limit: facts.span()?,
        lifetime: facts
            .span()?
            .map(|lifetime| if record.soft { Duration::ZERO } else { lifetime }),
        revalidate: facts.span()?,
        cost: facts.span()?,
        stale_forbidden: facts.yes_or_no()?,
    };
    if !facts.is_at_end() || marks::is_private(&shared.facts) || shared.facts.directives.no_store {
        return None;
    }
    let whole = Whole {
        // What is kept is one, whatever its status.
        class: Class::Answer,
        // It is nobody's own, so no later refusal or write makes it void.
        began: None,
        tags: (!record.marks.tags.is_empty()).then(|| record.marks.tags.join(" ").into()),
        status,
        headers,
        body: Bytes::copy_from_slice(record.body.bytes()),
        terms: Terms {
            keep: Keep::Yes,
            own_limit: entry.own_limit,
            stale_forbidden: entry.stale_forbidden,
            ..Terms::default()
        },
        lifetime,
        shared: Some(shared),
    };
    Some((Reply::Whole(Arc::new(whole)), entry))
}
