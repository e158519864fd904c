//! Asks the library what a vector wants to know, and writes the answer as text to compare.
//! It exists so that each expectation is one question to one public function.
//! It refuses to add rules: only the order of calls that every caller follows is written here.

use evenkeel_http::age::{age_value, ttl};
use evenkeel_http::answer;
use evenkeel_http::cache_status::CacheStatus;
use evenkeel_http::dates::HttpDate;
use evenkeel_http::decide::{Found, Origin, decide};
use evenkeel_http::decision::Decision;
use evenkeel_http::facts::ResponseHead;
use evenkeel_http::freshen::{HeadEffect, head_effect, update, updated_by};
use evenkeel_http::hop::strip_hop_by_hop;
use evenkeel_http::invalidate::{related_targets, retires_target};
use evenkeel_http::lifetime::Lifetime;
use evenkeel_http::preconditions::{Condition, evaluate};
use evenkeel_http::ranges::{RangeAnswer, select as select_range};
use evenkeel_http::store_rules::{NotKept, may_keep, may_store};
use evenkeel_http::stored::StoredCopy;
use evenkeel_http::validation::make_conditional;
use evenkeel_http::vary::{Variant, select};
use http::header::HeaderMap;
use http::{StatusCode, Uri};

use crate::given::{Given, RECEIVED};

/// The keys that state what must follow.
pub(crate) const KEYS: &[&str] = &[
    "store",
    "keep",
    "kept_fields",
    "lifetime",
    "age",
    "decision",
    "gives",
    "cache_status",
    "sends",
    "selected",
    "updates",
    "updated",
    "head_effect",
    "retires",
];

/// Returns what the library says.
pub(crate) fn observe(key: &str, given: &Given) -> String {
    match key {
        "store" => word_of(
            may_store(given.sharing, &given.facts(&given.fetched_by), &given.head()),
            "stored",
        ),
        "keep" => word_of(
            may_keep(given.sharing, &given.facts(&given.fetched_by), &given.head()),
            "kept",
        ),
        "kept_fields" => kept_fields(given),
        "lifetime" => lifetime(given),
        "age" => age_value(given.age()).to_str().unwrap().to_owned(),
        "decision" => described(decision(given)),
        "gives" => gives(given),
        "cache_status" => cache_status(given),
        "sends" => sends(given),
        "selected" => selected(given),
        "updates" => updates(given),
        "updated" => updated(given),
        "head_effect" => effect_of_head(given),
        "retires" => retires(given),
        other => panic!("{other:?} is no question"),
    }
}

fn word_of(verdict: Result<(), NotKept>, good: &str) -> String {
    verdict.map_or_else(|why| why.as_str().to_owned(), |()| good.to_owned())
}

fn kept_fields(given: &Given) -> String {
    let mut headers = given.head().headers.clone();
    strip_hop_by_hop(&mut headers);
    written(&headers)
}

fn lifetime(given: &Given) -> String {
    match Lifetime::of(&given.head(), given.sharing, RECEIVED, given.heuristic) {
        Lifetime::Stated(span) => format!("{} stated", span.as_secs()),
        Lifetime::Guessed(span) => format!("{} guessed", span.as_secs()),
        Lifetime::Unknown => "unknown".to_owned(),
    }
}

fn copy(given: &Given) -> Option<StoredCopy> {
    given.response.as_ref()?;
    let request = given.facts(&given.fetched_by);
    may_store(given.sharing, &request, &given.head()).ok()?;
    let mut copy = StoredCopy::of(given.sharing, &request, &given.head(), RECEIVED, given.heuristic);
    copy.expired = given.expired;
    Some(copy)
}

fn decision(given: &Given) -> Decision {
    decision_after(given, given.origin)
}

fn decision_after(given: &Given, origin: Origin) -> Decision {
    let copy = copy(given);
    let fits = || {
        let stored_by = &given.fetched_by.headers;
        Variant::of(given.head().headers, stored_by)
            .is_ok_and(|variant| variant.matches(&given.request.headers))
    };
    let found = match &copy {
        None => Found::Nothing,
        Some(_) if !fits() => Found::OtherVariants,
        Some(copy) => Found::Copy {
            copy,
            age: Some(given.age()),
        },
    };
    decide(&given.facts(&given.request), found, origin, &given.terms())
}

fn described(decision: Decision) -> String {
    let word = decision.as_str();
    match decision {
        Decision::Validate(why) | Decision::Fetch(why) => format!("{word}: {}", why.as_str()),
        Decision::ErrorAnswer(why) | Decision::Refuse(why) => format!("{word}: {}", why.as_str()),
        Decision::Fresh
        | Decision::StaleWhileRevalidating
        | Decision::StaleAccepted
        | Decision::OnlyIfCached
        | Decision::FreshOnError
        | Decision::StaleOnError
        | Decision::Answer => word.to_owned(),
    }
}

/// What the client gets of a copy that may be given: status, and the fields that matter there.
fn gives(given: &Given) -> String {
    let (request, head) = (&given.request, given.head());
    if evaluate(&request.headers, head.status, head.headers, RECEIVED) == Condition::NotModified {
        return format!(
            "304 | {}",
            written(&answer::not_modified(head.headers, given.age()))
        );
    }
    let range = select_range(
        &request.method(),
        &request.headers,
        head.status,
        head.headers,
        given.length,
        RECEIVED,
    );
    match range {
        RangeAnswer::Whole => {
            let headers = answer::whole(head.headers, given.age());
            format!("{} | {}", head.status.as_u16(), written(&headers))
        }
        RangeAnswer::Part { first, last } => {
            let age = given.age();
            let headers = answer::partial(&request.headers, head.headers, age, (first, last), given.length);
            format!("206 | {}", written(&headers))
        }
        RangeAnswer::Unsatisfiable => {
            format!(
                "416 | content-range: {}",
                answer::unsatisfiable(given.length).to_str().unwrap()
            )
        }
    }
}

/// The member after the whole path: what was decided before asking, then what came of it.
fn cache_status(given: &Given) -> String {
    let Some(handling) = decision_after(given, Origin::NotAsked).handling() else {
        return "none".to_owned();
    };
    let decision = decision(given);
    let copy = copy(given).filter(|copy| decision.gives_the_copy() && copy.has_lifetime());
    // An answer that is passed on has the status it came with: nothing to add, but for a 304 (CS3).
    let told = given
        .received_status
        .filter(|status| decision.gives_the_copy() || *status == StatusCode::NOT_MODIFIED);
    let label = CacheStatus {
        cache: "evenkeel",
        handling: handling.after_asking(told, given.stored_after, given.collapsed),
        ttl: copy.map(|copy| ttl(copy.lifetime.span(), given.age())),
        detail: given.detail.as_deref(),
    };
    label.to_value().to_str().unwrap().to_owned()
}

/// The conditional request that validates the copy.
fn sends(given: &Given) -> String {
    let mut request = given.request.headers.clone();
    make_conditional(
        &mut request,
        given.head().headers,
        given.copies.iter().map(|copy| &copy.response.headers),
        RECEIVED,
    );
    written(&request)
}

fn selected(given: &Given) -> String {
    let variants: Vec<_> = given
        .copies
        .iter()
        .map(|copy| Variant::of(&copy.response.headers, &copy.fetched_by.headers).unwrap())
        .collect();
    let dated = variants.iter().zip((0..).map(HttpDate::from_unix_seconds));
    select(dated, &given.request.headers).map_or_else(|| "none".to_owned(), |position| position.to_string())
}

fn updates(given: &Given) -> String {
    let reply = given.reply.as_ref().expect("the vector needs a reply");
    let copies = given.copies.iter().map(|copy| &copy.response.headers);
    let dated = copies.zip((0..).map(HttpDate::from_unix_seconds));
    let positions = updated_by(&reply.headers, dated);
    positions
        .iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join(" | ")
}

/// The stored fields after the reply; then whether the copy may still be stored.
fn updated(given: &Given) -> String {
    let reply = given.reply.as_ref().expect("the vector needs a reply");
    let head = given.head();
    let mut stored = head.headers.clone();
    update(&mut stored, &reply.headers, RECEIVED);
    let request = given.facts(&given.fetched_by);
    let again = ResponseHead::targeted(head.status, &stored, &given.targets);
    match may_store(given.sharing, &request, &again) {
        Ok(()) => written(&stored),
        Err(why) => format!("removed: {}", why.as_str()),
    }
}

fn effect_of_head(given: &Given) -> String {
    let reply = given.reply.as_ref().expect("the vector needs a reply");
    let head = given.head();
    let effect = head_effect(
        reply.status(),
        &reply.headers,
        head.status,
        head.headers,
        given.length,
    );
    match effect {
        HeadEffect::Freshens => "freshens",
        HeadEffect::Outdates => "outdates",
        HeadEffect::Nothing => "nothing",
    }
    .to_owned()
}

/// What a write to http://shop.example/cart retires.
fn retires(given: &Given) -> String {
    let reply = given.reply.as_ref().expect("the vector needs a reply");
    if !retires_target(&given.request.method(), reply.status()) {
        return "nothing".to_owned();
    }
    let target = Uri::from_static("http://shop.example/cart");
    let mut retired = vec!["target".to_owned()];
    retired.extend(related_targets(&target, &reply.headers).map(|uri| uri.to_string()));
    retired.join(" | ")
}

/// Fields sorted by name, so that the order of a map does not matter.
fn written(headers: &HeaderMap) -> String {
    let mut lines: Vec<_> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())))
        .collect();
    lines.sort();
    lines.join(" | ")
}
