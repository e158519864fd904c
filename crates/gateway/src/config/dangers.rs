//! Decides which keys that nobody reads stand for a danger, so that the answer says more than "unknown".
//! It exists because what a contract cannot even say is what people coming from elsewhere will try to write.
//! It refuses nothing that is read: a key of a table never comes here.

use evenkeel_core::codes;
use http::{HeaderName, header};
use toml::de::DeValue;

use super::{
    Route,
    ladder::{Known, Rung},
    lints,
    reader::{Fields, shown},
};

/// What is said about it: seen, allowed, mend.
type Said = [&'static str; 3];

/// The keys of a ladder and its rungs, as far as somebody could write them in the wrong place.
const RUNGS: [&str; 5] = ["ladder", "stale", "default", "alternate", "fallback"];
/// Keys by which somebody could be given what was decided about another request.
const SHARED: [&str; 8] = [
    "fresh_for",
    "freshness",
    "coalesce",
    "cool_down",
    "soft_timeout",
    "stale_while_revalidate",
    "when_busy",
    "exercise",
];

/// Returns what is dangerous about a key that a table does not have.
pub(super) fn unwritable(place: &str, key: &str) -> Option<(&'static str, Said)> {
    let in_rung = place.contains(".ladder[") && !place.ends_with(".default");
    match key {
        _ if place.starts_with("authorities.") && (RUNGS.contains(&key) || SHARED.contains(&key)) => Some((
            lints::PROTECT_WITH_LADDER,
            [
                "something to stand in for a decision that guards something",
                "nothing: when an authority cannot answer, the only honest answer is `unavailable`",
                "remove it: anything else opens the door",
            ],
        )),
        "ladder" if !place.starts_with("routes[") => Some((
            lints::LADDER_BY_WILDCARD,
            [
                "a ladder that is not that of one route",
                "a ladder in the route that it is for: each states its own, or has none",
                "move it into each route whose answers may be old",
            ],
        )),
        "defaults" | "default" | "presets" | "route_defaults" if place.is_empty() => Some((
            lints::LADDER_BY_WILDCARD,
            [
                "settings for every route",
                "settings in the route that they are for: what stands in is never set by a default",
                "move them into each route that they are meant for",
            ],
        )),
        "max_age" | "stale_for" | "stale_if_error" if in_rung => Some((
            lints::STALE_WITHOUT_LIMIT,
            [
                "a limit that no rung has",
                "{ stale = duration }, which names the rung and its limit in one",
                "write `{ stale = \"60s\" }`, say",
            ],
        )),
        "from" | "url" | "urls" | "dependency" | "call" if place.ends_with(".default") => Some((
            lints::DEFAULT_CALLS_DEPENDENCY,
            [
                "a default that has to ask somebody",
                "a constant: status, content_type, cache_control and body. What asks may fail too",
                "write the body down here, or leave the rung out",
            ],
        )),
        "uses" | "url" | "urls" | "from" if place == "store" => Some(store()),
        _ => None,
    }
}

const fn store() -> (&'static str, Said) {
    (
        lints::STORE_ON_OWN_RESOURCE,
        [
            "a store behind something that is called",
            "copies in the memory and on the disk of this machine: behind the database that has failed they are gone too",
            "remove it",
        ],
    )
}

/// Adds a problem where a stale rung says that it has no limit, and tells whether it did.
pub(super) fn refuse_no_limit(rung: &mut Fields<'_, '_>) -> bool {
    let Some(value) = rung.value("stale") else {
        return false;
    };
    let without = match value.get_ref() {
        DeValue::Boolean(_) => true,
        DeValue::String(text) => WITHOUT_LIMIT.contains(&text.to_ascii_lowercase().trim()),
        DeValue::Float(number) => number.as_str().contains("inf"),
        DeValue::Table(table) => table.is_empty(),
        DeValue::Integer(_) | DeValue::Datetime(_) | DeValue::Array(_) => false,
    };
    if without {
        rung.lint(
            lints::STALE_WITHOUT_LIMIT,
            "stale",
            &format!("{}: no limit", shown(value)),
            "the age up to which these data mislead nobody, 1ms to 365d",
            "write `stale = \"60s\"`, say",
        );
    }
    without
}

/// How people say that there is no limit.
const WITHOUT_LIMIT: [&str; 10] = [
    "",
    "forever",
    "always",
    "unlimited",
    "infinite",
    "infinity",
    "inf",
    "never",
    "none",
    "any",
];

/// Warns of an alternate that draws on a resource which the first dependency draws on too.
pub(super) fn warn_shared_resource(
    rung: &mut Fields<'_, '_>,
    known: Known<'_>,
    from: Option<&str>,
    name: &str,
) {
    let find = |name: &str| known.read.iter().find(|dependency| dependency.name == name);
    let (Some(first), Some(alternate)) = (from.and_then(find), find(name)) else {
        return;
    };
    if first.name == alternate.name {
        return;
    }
    if let Some(shared) = alternate.uses.iter().find(|used| first.uses.contains(used)) {
        rung.lint(
            lints::ALTERNATE_ON_OWN_RESOURCE,
            "alternate",
            &format!("{name:?}, which draws on {shared:?} as {:?} does", first.name),
            "a dependency that works when the first does not",
            "name one with resources of its own, or remove the rung: when that resource is out, both are",
        );
    }
}

/// Adds what is dangerous about a route that can be read.
pub(super) fn check_route(fields: &mut Fields<'_, '_>, route: &Route) {
    let path = route.pattern.to_string();
    let is_catch_all = path.starts_with("/{") && path.ends_with("..}") && path.matches('/').count() == 1;
    if is_catch_all && !route.ladder.is_empty() {
        fields.lint(
            lints::LADDER_ON_CATCH_ALL,
            "ladder",
            &format!("for {path}, every path there is"),
            "a ladder for paths whose answers somebody has thought about",
            "name the paths whose answers may be old, and let the others go without",
        );
    }
    let keeps = route.caching.is_some() || route.ladder.iter().any(|rung| matches!(rung, Rung::Stale(_)));
    let asks_for = |name: &HeaderName| {
        let mut conditions = route.conditions.fields.iter();
        conditions.any(|field| field.name == *name)
    };
    if keeps && (asks_for(&header::AUTHORIZATION) || asks_for(&header::COOKIE)) {
        let key = if route.caching.is_some() {
            "freshness"
        } else {
            "ladder"
        };
        fields.lint(
            lints::SHARED_COPIES_WITH_CREDENTIALS,
            key,
            "copies for everybody, on a route only for requests with credentials",
            "copies of what is for everybody: an answer to one who has logged in is nobody else's",
            "remove it, or the field from `match`",
        );
    }
    if let evenkeel::http::IgnoredCookies::Named(names) = &route.ignored_cookies {
        let session = names.iter().find(|name| {
            let name = name.to_ascii_lowercase();
            SESSIONS.iter().any(|word| name.contains(word))
        });
        if let (Some(name), true) = (session, keeps) {
            fields.lint(
                lints::SESSION_COOKIE_IGNORED,
                "ignore_cookies",
                &format!("{name:?}, which looks like one that says who is asking"),
                "cookies that decide nothing about answers",
                "remove it, unless the answers are the same for everybody",
            );
        }
    }
}

/// What the names of cookies that say who is asking have in them.
const SESSIONS: [&str; 6] = ["session", "sessid", "sid", "auth", "token", "login"];

/// The field by which a gateway says that it has retried already.
pub(super) const RETRIED: HeaderName = HeaderName::from_static("evenkeel-retried");

/// Returns the kind of mistake that changing this field is, if it is one.
pub(super) fn of_field(name: &str) -> &'static str {
    if name.eq_ignore_ascii_case(RETRIED.as_str()) {
        lints::RETRIES_AT_TWO_LAYERS
    } else {
        codes::BAD_VALUE
    }
}
