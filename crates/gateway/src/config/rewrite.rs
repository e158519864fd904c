//! Decides what a contract changes on the way to a dependency and back: host, path prefix, header fields.
//! It exists because a service often lives under another name or path than the one that its users see.
//! It refuses to touch the fields that frame a message, name a hop or say what an answer is: those are the gateway's.

use evenkeel_core::codes;
use evenkeel_http::{
    cache_status::CACHE_STATUS, degraded::DEGRADED, freshness::X_DATA_FRESHNESS, hop::HOP_BY_HOP,
    proxy_status::PROXY_STATUS,
};
use http::{
    HeaderName, HeaderValue,
    header::{AGE, CONTENT_LENGTH, DATE, EXPECT, FORWARDED, HOST, VIA},
    uri::Authority,
};

use super::{dangers, keys, lints, pattern::Pattern, reader::Fields};

/// What is changed of the messages of one dependency. Without anything written down they pass as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// The host that the dependency is told.
    pub host: RewriteHost,
    /// Taken off the front of the path, where it is there and a segment ends with it.
    pub strip_prefix: Option<String>,
    /// Put in front of the path, after that.
    pub add_prefix: Option<String>,
    /// What changes in requests.
    pub request: FieldChanges,
    /// What changes in answers.
    pub response: FieldChanges,
}

/// The `Host` of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RewriteHost {
    /// The one that the client named.
    #[default]
    Keep,
    /// That of the address that is asked: of several addresses each is told its own.
    Upstream,
    /// This one.
    Given(HeaderValue),
}

/// Changes of header fields: first what is removed, then what is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldChanges {
    /// All lines of these go.
    pub remove: Vec<HeaderName>,
    /// These have this one line.
    pub set: Vec<(HeaderName, HeaderValue)>,
}

impl FieldChanges {
    /// Tells whether nothing changes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.set.is_empty()
    }
}

/// The most fields that are removed, and that are set.
pub const CHANGES_MAX: usize = 32;

/// Reads `rewrite`.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Rewrite {
    let Some(value) = fields.value("rewrite") else {
        return Rewrite::default();
    };
    let place = fields.place_of("rewrite");
    let mut reader = fields.reader();
    let Some(mut inner) = reader.open(place, value, keys::REWRITE) else {
        return Rewrite::default();
    };
    let rewrite = Rewrite {
        host: host(&mut inner),
        strip_prefix: prefix(&mut inner, "strip_prefix"),
        add_prefix: prefix(&mut inner, "add_prefix"),
        request: FieldChanges {
            remove: names(&mut inner, "remove_request"),
            set: values(&mut inner, "set_request"),
        },
        response: FieldChanges {
            remove: names(&mut inner, "remove_response"),
            set: values(&mut inner, "set_response"),
        },
    };
    for (remove, set, changes) in [
        ("remove_request", "set_request", &rewrite.request),
        ("remove_response", "set_response", &rewrite.response),
    ] {
        for name in &changes.remove {
            if changes.set.iter().any(|(other, _)| other == name) {
                inner.lint(
                    codes::NO_EFFECT,
                    remove,
                    &format!("\"{name}\", which `{set}` sets"),
                    "fields that are not set: setting one replaces what was there",
                    "remove it from one of the two",
                );
            }
        }
    }
    rewrite
}

fn host(fields: &mut Fields<'_, '_>) -> RewriteHost {
    const EXAMPLE: &str = "\"upstream\"";
    let Some(text) = fields.text("host", EXAMPLE) else {
        return RewriteHost::Keep;
    };
    match text.as_str() {
        "keep" => RewriteHost::Keep,
        "upstream" => RewriteHost::Upstream,
        given => {
            let value = is_authority(given)
                .then(|| HeaderValue::from_str(given).ok())
                .flatten();
            if value.is_none() {
                fields.problem(
                    "host",
                    &format!("\"{}\"", given.escape_debug()),
                    "\"keep\", \"upstream\", or a host with an optional port",
                    &format!("write `host = {EXAMPLE}`, say"),
                );
            }
            value.map_or(RewriteHost::Keep, RewriteHost::Given)
        }
    }
}

/// Tells whether a text is a host with an optional port, without a user name.
fn is_authority(text: &str) -> bool {
    text.parse::<Authority>().is_ok_and(|authority| {
        let has_port = authority.host().len() < text.len();
        !text.contains('@')
            && !authority.host().is_empty()
            && (!has_port || authority.port_u16().is_some_and(|port| port > 0))
    })
}

fn prefix(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<String> {
    let text = fields.text(key, "\"/api\"")?;
    let is_plain = text.len() > 1 && !text.contains("//") && !text.ends_with('/') && !text.contains('{');
    if is_plain && Pattern::parse(&text).is_ok() {
        return Some(text);
    }
    fields.problem(
        key,
        &format!("\"{}\"", text.escape_debug()),
        "a path that begins with a slash and does not end with one, of whole segments without names",
        &format!("write `{key} = \"/api\"`, say"),
    );
    None
}

fn names(fields: &mut Fields<'_, '_>, key: &'static str) -> Vec<HeaderName> {
    const EXAMPLE: &str = "[\"x-debug\"]";
    let Some(texts) = fields.texts(key, EXAMPLE) else {
        return Vec::new();
    };
    limit(fields, key, texts.len(), EXAMPLE);
    texts
        .iter()
        .filter_map(|text| name(fields, key, text, EXAMPLE))
        .collect()
}

fn values(fields: &mut Fields<'_, '_>, key: &'static str) -> Vec<(HeaderName, HeaderValue)> {
    const EXAMPLE: &str = "{ x-site = \"shop\" }";
    let Some(value) = fields.value(key) else {
        return Vec::new();
    };
    let Some(table) = value.get_ref().as_table() else {
        let seen = super::reader::shown(value);
        fields.lint(
            lints::WRONG_TYPE,
            key,
            &seen,
            "a table of names and values",
            &format!("write `{key} = {EXAMPLE}`, say"),
        );
        return Vec::new();
    };
    limit(fields, key, table.len(), EXAMPLE);
    let mut set = Vec::new();
    for (text, value) in table {
        let Some(name) = name(fields, key, text.get_ref(), EXAMPLE) else {
            continue;
        };
        let text = value.get_ref().as_str();
        match text.and_then(|text| HeaderValue::from_str(text).ok()) {
            Some(value) => set.push((name, value)),
            None => fields.problem(
                key,
                &format!("{name} = {}", super::reader::shown(value)),
                "a text of visible characters and blanks",
                &format!("write `{key} = {EXAMPLE}`, say"),
            ),
        }
    }
    set
}

fn limit(fields: &mut Fields<'_, '_>, key: &str, count: usize, example: &str) {
    if count == 0 || count > CHANGES_MAX {
        fields.problem(
            key,
            &format!("{count} fields"),
            &format!("1 to {CHANGES_MAX} fields"),
            &format!("write `{key} = {example}`, say, or remove it"),
        );
    }
}

/// Reads the name of a field that may be changed.
pub(super) fn name(fields: &mut Fields<'_, '_>, key: &str, text: &str, example: &str) -> Option<HeaderName> {
    let name = HeaderName::from_bytes(text.as_bytes()).ok();
    let name = name.filter(|name| !is_the_gateways(name));
    if name.is_none() {
        fields.lint(
            dangers::of_field(text),
            key,
            &format!("\"{}\"", text.escape_debug()),
            "names of fields, but none that frames a message, names a hop or says what an answer is",
            &format!("write `{key} = {example}`, say"),
        );
    }
    name
}

fn is_the_gateways(name: &HeaderName) -> bool {
    let own = [
        CONTENT_LENGTH,
        HOST,
        VIA,
        FORWARDED,
        EXPECT,
        DATE,
        AGE,
        CACHE_STATUS,
        PROXY_STATUS,
        DEGRADED,
        X_DATA_FRESHNESS,
        dangers::RETRIED,
    ];
    own.contains(name) || HOP_BY_HOP.contains(name) || name.as_str().starts_with("x-forwarded")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn read(rewrite: &str) -> Result<Rewrite, String> {
        let text = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n[dependencies.d]\nurls = [\"http://a:81\"]\nrewrite = {rewrite}\n\
             [[routes]]\nname = \"r\"\nmatch = {{ path = \"/r\" }}\nclass = \"pass\"\nfrom = \"d\"\n"
        );
        parse("contract.toml", &text)
            .map(|loaded| loaded.contract.dependencies[0].rewrite.clone())
            .map_err(|problems| problems.to_string())
    }

    #[test]
    fn a_host_is_kept_or_the_upstreams_or_given() {
        let host = |text: &str| read(&format!("{{ host = \"{text}\" }}")).unwrap().host;
        assert_eq!(host("keep"), RewriteHost::Keep);
        assert_eq!(host("upstream"), RewriteHost::Upstream);
        let given = HeaderValue::from_static("b.example:8080");
        assert_eq!(host("b.example:8080"), RewriteHost::Given(given));
    }

    #[test]
    fn bad_values_are_told_with_what_is_allowed() {
        let place = "dependencies.d.rewrite";
        for (rewrite, key, allowed) in [
            ("1", "", "a table"),
            ("{ hosts = 1 }", ".hosts: an unknown key", "host"),
            ("{ host = \"a b\" }", ".host: \"a b\"", "\"keep\", \"upstream\""),
            (
                "{ host = \"u@a\" }",
                ".host: \"u@a\"",
                "a host with an optional port",
            ),
            (
                "{ strip_prefix = \"api\" }",
                ".strip_prefix: \"api\"",
                "begins with a slash",
            ),
            (
                "{ strip_prefix = \"/\" }",
                ".strip_prefix: \"/\"",
                "begins with a slash",
            ),
            (
                "{ add_prefix = \"/a/\" }",
                ".add_prefix: \"/a/\"",
                "does not end with one",
            ),
            (
                "{ add_prefix = \"/{a}\" }",
                ".add_prefix: \"/{a}\"",
                "without names",
            ),
            (
                "{ add_prefix = \"/a/..\" }",
                ".add_prefix: \"/a/..\"",
                "whole segments",
            ),
            (
                "{ add_prefix = \"/a?b\" }",
                ".add_prefix: \"/a?b\"",
                "whole segments",
            ),
            ("{ remove_request = [] }", ".remove_request: 0 fields", "1 to 32"),
            (
                "{ remove_request = [\"Host\"] }",
                ".remove_request: \"Host\"",
                "names of fields",
            ),
            (
                "{ remove_response = [\"a b\"] }",
                ".remove_response: \"a b\"",
                "names of fields",
            ),
            (
                "{ set_request = { x-forwarded-for = \"1\" } }",
                ".set_request",
                "names a hop",
            ),
            (
                "{ set_response = { age = \"1\" } }",
                ".set_response: \"age\"",
                "says what an answer is",
            ),
            (
                "{ set_response = { transfer-encoding = \"x\" } }",
                ".set_response",
                "frames a message",
            ),
            (
                "{ set_request = { a = 1 } }",
                ".set_request: a = 1",
                "visible characters",
            ),
            (
                "{ set_request = { a = \"\\n\" } }",
                ".set_request: a = ",
                "visible characters",
            ),
            (
                "{ remove_request = [\"a\"], set_request = { A = \"1\" } }",
                ".remove_request: \"a\", which `set_request` sets",
                "setting one replaces",
            ),
        ] {
            let shown = read(rewrite).unwrap_err();
            let seen = format!("]: {place}{key}");
            assert!(shown.contains(&seen), "{seen} is missing from\n{shown}");
            assert!(shown.contains(allowed), "{allowed} is missing from\n{shown}");
        }
    }
}
