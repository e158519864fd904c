//! Decides what a route of the contract only forwards: nothing, the methods beside GET and HEAD, or everything.
//! It exists because what is forwarded has no rungs, so most keys of a route would promise what nobody keeps.
//! It refuses such keys by name.

use http::Method;

use evenkeel_core::codes;

use super::{conditions::Conditions, lints, reader::Fields, route::Route};

/// What the answers of a route mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// Data that may be reduced.
    #[default]
    Read,
    /// Traffic that is only forwarded.
    Pass,
}

/// What becomes of requests of a route of class read that are not GET or HEAD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OtherMethods {
    /// They are refused.
    #[default]
    Refuse,
    /// They are forwarded.
    Pass,
}

/// What a route only forwards, and how much of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forwarding {
    pub(super) class: Class,
    pub(super) other_methods: OtherMethods,
    pub(super) max_request_body: u64,
}

/// Keys that mean something for reads alone, and why.
const FOR_READS: [(&str, &str); 13] = [
    ("ladder", "nothing may stand in for what is forwarded"),
    ("when_busy", "nothing may stand in for what is forwarded"),
    ("keep_if", "nothing of what is forwarded is kept"),
    ("tags", "nothing of what is forwarded is kept"),
    ("scope", "nothing of what is forwarded is kept"),
    ("exact", "what is forwarded is always exact"),
    ("coalesce", "each request is forwarded by itself"),
    ("soft_timeout", "nothing may stand in for what is forwarded"),
    ("cool_down", "each request is forwarded by itself"),
    ("max_body", "bodies flow as they come"),
    ("freshness", "nothing of what is forwarded is kept"),
    ("ignore_cookies", "nothing of what is forwarded is kept"),
    ("other_methods", "every method is forwarded"),
];

/// Returns the keys that mean something for reads alone.
pub(crate) fn keys_of_reads() -> impl Iterator<Item = &'static str> {
    FOR_READS.iter().map(|(key, _)| *key)
}

const LARGEST: u64 = 1 << 40;

/// Reads what a route forwards of the requests that meet its conditions.
pub(super) fn read(fields: &mut Fields<'_, '_>, conditions: &Conditions) -> Forwarding {
    fields.require("class", "\"read\"");
    let class = fields.text("class", "\"read\"");
    let class = match class.as_deref() {
        Some("read") | None => Class::Read,
        Some("pass") => Class::Pass,
        Some(other) => {
            not_built(fields, other);
            Class::Read
        }
    };
    if class == Class::Pass {
        for (key, why) in FOR_READS {
            if fields.has(key) {
                let code = if key == "ladder" {
                    lints::PASS_WITH_LADDER
                } else {
                    codes::NO_EFFECT
                };
                fields.lint(
                    code,
                    key,
                    "set on a route of class pass",
                    &format!("only on class read: {why}"),
                    &format!("remove `{key}`, or write `class = \"read\"`"),
                );
            }
        }
    }
    let other_methods = fields
        .word(
            "other_methods",
            &[("refuse", OtherMethods::Refuse), ("pass", OtherMethods::Pass)],
        )
        .unwrap_or_default();
    if class == Class::Read && !conditions.methods.is_empty() {
        refuse_useless(fields, conditions, other_methods);
    }
    let forwards = class == Class::Pass || other_methods == OtherMethods::Pass;
    if !forwards && fields.has("max_request_body") {
        fields.lint(
            codes::NO_EFFECT,
            "max_request_body",
            "set on a route that forwards no request bodies",
            "only beside `other_methods = \"pass\"` or `class = \"pass\"`: without one it has no effect",
            "add one of them, or remove `max_request_body`",
        );
    }
    Forwarding {
        class,
        other_methods,
        max_request_body: fields
            .size("max_request_body", 1, LARGEST, "\"64MiB\"")
            .unwrap_or(Route::MAX_REQUEST_BODY),
    }
}

/// Adds a problem for a class that is not there, and says what would be dangerous about it.
fn not_built(fields: &mut Fields<'_, '_>, class: &str) {
    const ALLOWED: &str = "\"read\", \"pass\": operate and page are not built yet";
    const MEND: &str = "write `class = \"pass\"`: it is forwarded, and nothing stands in for it";
    match class {
        "protect" if fields.has("ladder") => fields.lint(
            lints::PROTECT_WITH_LADDER,
            "ladder",
            "something to stand in for a decision that guards something",
            "nothing: when it cannot be made, the only honest answer is \"unavailable\"",
            "remove it, and write what its answers mean, with `authorize = \"sso\"` beside it",
        ),
        "operate" if fields.has("ladder") => fields.lint(
            lints::PASS_WITH_LADDER,
            "ladder",
            "something to stand in for a write",
            "nothing: a write is done, refused or in doubt, and never made up",
            "remove it, and write `class = \"pass\"`: class operate is not built yet",
        ),
        "operate" if !fields.has("status") => fields.lint(
            lints::OPERATE_WITHOUT_STATUS,
            "class",
            "\"operate\" without `status`: nobody could find out what became of a write without an answer",
            "\"read\", \"pass\": class operate is not built yet, and will need the upstream's word on each write",
            MEND,
        ),
        "protect" => fields.problem(
            "class",
            "\"protect\", which stands before a route and is no class of one",
            "\"read\", \"pass\": what the answers of the route mean",
            "write one of them, and `authorize = \"sso\"` beside it, with the authority under `[authorities.sso]`",
        ),
        "operate" | "page" => {
            fields.lint(lints::CLASS_NOT_BUILT, "class", &format!("\"{class}\""), ALLOWED, MEND);
        }
        _ => fields.problem("class", &format!("\"{class}\""), ALLOWED, MEND),
    }
}

/// Adds a problem where the methods of `match` leave a route of class read nothing to do, or a promise without effect.
fn refuse_useless(fields: &mut Fields<'_, '_>, conditions: &Conditions, other_methods: OtherMethods) {
    let is_read = |method: &&Method| **method == Method::GET || **method == Method::HEAD;
    let names = |methods: Vec<&Method>| {
        let names: Vec<&str> = methods.into_iter().map(Method::as_str).collect();
        names.join(", ")
    };
    let (reads, others): (Vec<&Method>, Vec<&Method>) = conditions.methods.iter().partition(is_read);
    if reads.is_empty() {
        fields.problem(
            "class",
            &format!("\"read\" for {}", names(others)),
            "\"pass\": only GET and HEAD read",
            "write `class = \"pass\"`, or add \"GET\" to the methods",
        );
    } else if !others.is_empty() && other_methods == OtherMethods::Refuse {
        fields.lint(
            codes::NO_EFFECT,
            "match",
            &format!("{}, which the route then refuses", names(others)),
            "GET and HEAD, or also others beside `other_methods = \"pass\"`",
            "remove these methods, or add `other_methods = \"pass\"`",
        );
    } else if others.is_empty() && other_methods == OtherMethods::Pass {
        fields.lint(
            codes::NO_EFFECT,
            "other_methods",
            "set on a route that covers only GET and HEAD",
            "only where other methods are covered: else it has no effect",
            "remove it, or the methods in `match`",
        );
    }
}

impl Route {
    /// More than any form, less than what fills a disk unseen.
    pub const MAX_REQUEST_BODY: u64 = 64 << 20;

    /// Tells whether it forwards anything.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.class == Class::Pass || self.other_methods == OtherMethods::Pass
    }
}

#[cfg(test)]
mod tests {
    use crate::config::parse;

    fn problems(class: &str, route: &str) -> String {
        problems_with(class, "", route)
    }

    fn problems_with(class: &str, condition: &str, route: &str) -> String {
        let text = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n[dependencies.d]\nurls = [\"http://a\"]\n\
             [[routes]]\nname = \"r\"\nmatch = {{ path = \"/r\"{condition} }}\nclass = \"{class}\"\nfrom = \"d\"\n{route}\n"
        );
        parse("contract.toml", &text).map_or_else(|problems| problems.to_string(), |_| String::new())
    }

    #[test]
    fn a_route_of_class_pass_promises_nothing_that_reads_promise() {
        for (key, value) in [
            ("ladder", "[ { stale = \"60s\" } ]"),
            ("when_busy", "\"refuse\""),
            ("keep_if", "{ not_empty = true }"),
            ("tags", "\"surrogate-key\""),
            ("scope", "[\"query:lang\"]"),
            ("exact", "true"),
            ("coalesce", "true"),
            ("soft_timeout", "\"1s\""),
            ("cool_down", "\"1s\""),
            ("max_body", "\"1MiB\""),
            ("freshness", "\"origin\""),
            ("ignore_cookies", "[\"theme\"]"),
            ("other_methods", "\"pass\""),
        ] {
            let shown = problems("pass", &format!("{key} = {value}"));
            let place = format!("routes[0] \"r\".{key}: set on a route of class pass");
            assert_eq!(shown.matches("error[").count(), 1, "{shown}");
            assert!(shown.contains(&place), "{shown}");
            assert!(shown.contains("only on class read"), "{shown}");
            assert!(shown.contains(&format!("remove `{key}`")), "{shown}");
        }
        assert_eq!(
            problems("pass", "deadline = \"2s\"\nmax_request_body = \"1KiB\""),
            ""
        );
    }

    #[test]
    fn bad_values_are_told_with_what_is_allowed() {
        for (route, seen, allowed) in [
            ("other_methods = \"POST\"", "\"POST\"", "refuse"),
            ("other_methods = [\"POST\"]", "other_methods", "refuse"),
            (
                "other_methods = \"pass\"\nmax_request_body = \"0B\"",
                "\"0B\"",
                "1 to 1099511627776 bytes",
            ),
            (
                "other_methods = \"pass\"\nmax_request_body = 5",
                "max_request_body",
                "64MiB",
            ),
            (
                "max_request_body = \"1MiB\"",
                "forwards no request bodies",
                "class = \"pass\"",
            ),
        ] {
            let shown = problems("read", route);
            assert!(shown.contains(seen), "{seen} is missing from\n{shown}");
            assert!(shown.contains(allowed), "{allowed} is missing from\n{shown}");
        }
    }

    #[test]
    fn conditions_that_cannot_be_met_are_told_with_what_is_allowed() {
        for (condition, seen, allowed) in [
            ("host = []", "match.host: 0 of them", "1 to 32"),
            (
                "host = [\"A.example\"]",
                "match.host: \"A.example\"",
                "lower case",
            ),
            ("host = [\"a:80\"]", "match.host: \"a:80\"", "without a port"),
            ("host = [\"a\", \"a\"]", "match.host: \"a\" twice", "each once"),
            ("host = \"a\"", "match.host", "a list of texts"),
            ("method = [\"\"]", "match.method: \"\"", "names of methods"),
            (
                "method = [\"GET\", \"TRACE\"]",
                "match.method: \"TRACE\"",
                "which no route takes",
            ),
            ("header = 1", "match.header: 1", "a table"),
            ("header = {}", "match.header: 0 fields", "1 to 32"),
            (
                "header = { \"a b\" = \"1\" }",
                "match.header: a b",
                "a name of a field",
            ),
            ("header = { a = 1 }", "match.header: a = 1", "a name of a field"),
        ] {
            let shown = problems_with("read", &format!(", {condition}"), "");
            assert!(shown.contains(seen), "{seen} is missing from\n{shown}");
            assert!(shown.contains(allowed), "{allowed} is missing from\n{shown}");
            assert!(shown.contains("= mend: "), "{shown}");
        }
    }

    #[test]
    fn methods_that_leave_a_key_without_effect_are_problems() {
        let post = ", method = [\"POST\"]";
        assert!(problems_with("read", post, "").contains("class: \"read\" for POST"));
        assert_eq!(problems_with("pass", post, ""), "");
        let both = ", method = [\"GET\", \"POST\"]";
        assert!(problems_with("read", both, "").contains("match: POST, which the route then refuses"));
        assert_eq!(problems_with("read", both, "other_methods = \"pass\""), "");
        let get = ", method = [\"GET\"]";
        assert!(problems_with("read", get, "other_methods = \"pass\"").contains("covers only GET and HEAD"));
    }
}
