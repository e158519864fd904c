//! Decides what a route says about reusing answers while its dependency is well: nothing, or HTTP caching and how.
//! It exists so that everything that bends the RFCs is one short list of keys, each off until somebody sets it.
//! It refuses such keys on a route that does not cache: they would read like a promise and do nothing.

use std::time::Duration;

use evenkeel::http::IgnoredCookies;
use evenkeel_core::codes;
use evenkeel_http::{decide::RequestSay, reuse::Prohibition};
use http::{HeaderName, header};

use super::reader::{Fields, listed};

/// How a route caches, where it does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caching {
    /// The cap of guessed lifetimes; without it none are guessed.
    pub heuristic: Option<Duration>,
    /// Answers with `Set-Cookie` are kept, and given with it.
    pub keep_set_cookie: bool,
    /// The staleness up to which a copy is given while it is refreshed, where the response states none.
    pub stale_while_revalidate: Option<Duration>,
    /// Prohibitions that are set aside when the dependency fails.
    pub set_aside: Vec<Prohibition>,
    /// How far requests steer.
    pub requests: RequestSay,
    /// Fields that are brought into one spelling before they select a copy and are sent on.
    pub normalise: Vec<HeaderName>,
}

/// The keys that have an effect only beside `freshness = "origin"`.
const ONLY_BESIDE_ORIGIN: [&str; 8] = [
    "refresh_ahead",
    "jitter",
    "heuristic",
    "keep_set_cookie",
    "stale_while_revalidate",
    "override",
    "request_directives",
    "normalise",
];

/// Reads how a route caches; `None` where it always asks.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Option<Caching> {
    let caches = fields
        .word("freshness", &[("none", false), ("origin", true)])
        .unwrap_or_default();
    let caching = Caching {
        heuristic: fields.duration("heuristic", "\"1d\""),
        keep_set_cookie: fields.boolean("keep_set_cookie").unwrap_or_default(),
        stale_while_revalidate: fields.duration("stale_while_revalidate", "\"10s\""),
        set_aside: set_aside(fields),
        requests: fields
            .word(
                "request_directives",
                &[
                    ("before-asking", RequestSay::BeforeAsking),
                    ("always", RequestSay::Always),
                    ("ignored", RequestSay::Ignored),
                ],
            )
            .unwrap_or_default(),
        normalise: normalise(fields),
    };
    if caches {
        for (key, is_set) in [
            ("coalesce", fields.has("coalesce")),
            ("exact", fields.has("exact")),
        ] {
            if is_set {
                fields.lint(
codes::NO_EFFECT,
                    key,
                    "set beside `freshness = \"origin\"`",
                    "only on a route that always asks: one that caches asks once for all, and answers from copies",
                    &format!("remove `{key}`, or `freshness`"),
                );
            }
        }
        return Some(caching);
    }
    for key in ONLY_BESIDE_ORIGIN {
        if fields.has(key) {
            fields.lint(
                codes::NO_EFFECT,
                key,
                "set without `freshness = \"origin\"`",
                "only on a route that caches: on one that always asks it has no effect",
                &format!("add `freshness = \"origin\"`, or remove `{key}`"),
            );
        }
    }
    None
}

/// Reads the cookies that have no influence on answers.
pub(super) fn ignored_cookies(fields: &mut Fields<'_, '_>) -> IgnoredCookies {
    let names = fields.texts("ignore_cookies", "[\"theme\"]").unwrap_or_default();
    if names == ["*"] {
        return IgnoredCookies::All;
    }
    for name in &names {
        let is_token = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'+-.^_`|~".contains(&byte));
        if !is_token {
            fields.problem(
                "ignore_cookies",
                &format!("{name:?}"),
                "names of cookies, or \"*\" alone for all of them",
                "write `ignore_cookies = [\"theme\"]`, say",
            );
        }
    }
    IgnoredCookies::Named(names)
}

fn set_aside(fields: &mut Fields<'_, '_>) -> Vec<Prohibition> {
    let mut found = Vec::new();
    for text in fields
        .texts("override", "[\"must-revalidate\"]")
        .unwrap_or_default()
    {
        match Prohibition::ALL.into_iter().find(|known| known.as_str() == text) {
            Some(known) => found.push(known),
            None => fields.problem(
                "override",
                &format!("{text:?}"),
                &listed(&Prohibition::ALL.map(Prohibition::as_str)),
                "name prohibitions on giving old data when the dependency fails; `no-store` and `private` are for good",
            ),
        }
    }
    found
}

fn normalise(fields: &mut Fields<'_, '_>) -> Vec<HeaderName> {
    let known = [header::ACCEPT_ENCODING, header::ACCEPT_LANGUAGE];
    let mut found = Vec::new();
    for text in fields
        .texts("normalise", "[\"accept-encoding\"]")
        .unwrap_or_default()
    {
        match known.iter().find(|name| name.as_str() == text) {
            Some(name) => found.push(name.clone()),
            None => fields.problem(
                "normalise",
                &format!("{text:?}"),
                &listed(&known.each_ref().map(HeaderName::as_str)),
                "write `normalise = [\"accept-encoding\"]`, say",
            ),
        }
    }
    found
}
