//! Decides what a contract asks of an answer before it is kept, and what becomes of one that does not pass.
//! It exists because an answer can be a success by its status and still not worth showing for an hour.
//! It refuses questions that no answer could pass.

use http::StatusCode;

use super::{
    keys, lints,
    pointer::Pointer,
    reader::{Fields, shown},
};

/// Which successes are good enough to be kept. What is not leaves the snapshot as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeepIf {
    /// Only these statuses; empty means every one that may be kept.
    pub status: Vec<StatusCode>,
    /// Not a body of no bytes, nor of an empty JSON array, object or null.
    pub not_empty: bool,
    /// Only these media types, in lower case; empty means every one.
    pub content_type: Vec<String>,
    /// The fewest bytes of a body.
    pub min_size: Option<u64>,
    /// The most bytes of a body.
    pub max_size: Option<u64>,
    /// Places of a JSON body that have to be there.
    pub json: Vec<Pointer>,
    /// Places of a JSON body that have to be there and not be empty.
    pub json_not_empty: Vec<Pointer>,
    /// Only with `grpc-status: 0`, as a field or behind the body.
    pub grpc: bool,
    /// Only a JSON object without errors, as GraphQL has them.
    pub graphql: bool,
    /// What does not pass is a fault, and is not shown.
    pub faults: bool,
}

/// The most media types, or places, of one route.
pub const QUESTIONS_MAX: usize = 16;

impl KeepIf {
    /// Tells whether the body has to be read as JSON.
    #[must_use]
    pub const fn reads_json(&self) -> bool {
        !self.json.is_empty() || !self.json_not_empty.is_empty() || self.graphql
    }
}

/// Reads `keep_if`.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> KeepIf {
    let Some(value) = fields.value("keep_if") else {
        return KeepIf::default();
    };
    let place = fields.place_of("keep_if");
    let mut reader = fields.reader();
    let Some(mut inner) = reader.open(place, value, keys::KEEP_IF) else {
        return KeepIf::default();
    };
    let status = inner.integers("status", 200, 399, "[200]").unwrap_or_default();
    let keep_if = KeepIf {
        status: status
            .into_iter()
            .filter_map(|status| StatusCode::from_u16(u16::try_from(status).ok()?).ok())
            .collect(),
        not_empty: inner.boolean("not_empty").unwrap_or_default(),
        content_type: types(&mut inner),
        min_size: inner.size("min_size", 1, 1 << 30, "\"2B\""),
        max_size: inner.size("max_size", 1, 1 << 30, "\"256KiB\""),
        json: pointers(&mut inner, "json"),
        json_not_empty: pointers(&mut inner, "json_not_empty"),
        grpc: inner.boolean("grpc").unwrap_or_default(),
        graphql: inner.boolean("graphql").unwrap_or_default(),
        faults: inner
            .word("else", &[("leave", false), ("fault", true)])
            .unwrap_or_default(),
    };
    if let (Some(min), Some(max)) = (keep_if.min_size, keep_if.max_size)
        && min > max
    {
        inner.problem(
            "min_size",
            &format!("{min} bytes, more than `max_size` ({max})"),
            "at most `max_size`: no answer could pass",
            "lower it, or raise `max_size`",
        );
    }
    let asks = KeepIf {
        faults: false,
        ..keep_if.clone()
    } != KeepIf::default();
    if keep_if.faults && !asks {
        inner.lint(
            evenkeel_core::codes::NO_EFFECT,
            "else",
            "set beside no question",
            "only beside something that an answer may not pass",
            "add one, or remove it",
        );
    }
    keep_if
}

/// Reads media types, or all of one kind.
fn types(fields: &mut Fields<'_, '_>) -> Vec<String> {
    const EXAMPLE: &str = "[\"application/json\"]";
    let Some(texts) = fields.texts("content_type", EXAMPLE) else {
        return Vec::new();
    };
    limit(fields, "content_type", texts.len(), EXAMPLE);
    let token = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    let mut read = Vec::new();
    for text in texts {
        let is_type = text
            .split_once('/')
            .is_some_and(|(kind, sub)| token(kind) && (sub == "*" || token(sub)));
        let text = text.to_ascii_lowercase();
        if !is_type {
            fields.problem(
                "content_type",
                &format!("\"{}\"", text.escape_debug()),
                "media types without parameters, `text/*` for all of one kind",
                &format!("write `content_type = {EXAMPLE}`, say"),
            );
        } else if read.contains(&text) {
            fields.lint(
                lints::LISTED_TWICE,
                "content_type",
                &format!("\"{text}\" twice"),
                "each once",
                "remove one",
            );
        } else {
            read.push(text);
        }
    }
    read
}

fn pointers(fields: &mut Fields<'_, '_>, key: &'static str) -> Vec<Pointer> {
    const EXAMPLE: &str = "[\"/items\"]";
    let Some(value) = fields.value(key) else {
        return Vec::new();
    };
    let Some(texts) = fields.texts(key, EXAMPLE) else {
        return Vec::new();
    };
    limit(fields, key, texts.len(), EXAMPLE);
    let mut read = Vec::new();
    for text in texts {
        match Pointer::parse(&text) {
            Ok(pointer) if read.contains(&pointer) => fields.lint(
                lints::LISTED_TWICE,
                key,
                &format!("\"{}\" twice", text.escape_debug()),
                "each once",
                "remove one",
            ),
            Ok(pointer) => read.push(pointer),
            Err(why) => fields.problem(
                key,
                &format!("\"{}\" in {}: {why}", text.escape_debug(), shown(value)),
                "places by RFC 6901: each step behind a slash, ~1 for a slash, ~0 for a tilde",
                &format!("write `{key} = {EXAMPLE}`, say"),
            ),
        }
    }
    read
}

fn limit(fields: &mut Fields<'_, '_>, key: &str, count: usize, example: &str) {
    if count == 0 || count > QUESTIONS_MAX {
        fields.problem(
            key,
            &format!("{count} of them"),
            &format!("1 to {QUESTIONS_MAX}"),
            &format!("write `{key} = {example}`, say, or remove it"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn read(keep_if: &str) -> Result<KeepIf, String> {
        let text = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n[dependencies.d]\nurls = [\"http://a:81\"]\n\
             [[routes]]\nname = \"r\"\nmatch = {{ path = \"/r\" }}\nclass = \"read\"\nfrom = \"d\"\n\
             ladder = [{{ stale = \"60s\" }}]\nkeep_if = {keep_if}\n"
        );
        parse("contract.toml", &text)
            .map(|loaded| loaded.contract.routes[0].keep_if.clone())
            .map_err(|problems| problems.to_string())
    }

    #[test]
    fn everything_can_be_asked_at_once() {
        let read = read(
            "{ status = [200], not_empty = true, content_type = [\"Application/JSON\", \"text/*\"], min_size = \"2B\", \
             max_size = \"1KiB\", json = [\"\", \"/a\"], json_not_empty = [\"/a/0\"], grpc = true, graphql = true, else = \"fault\" }",
        )
        .unwrap();
        assert_eq!(read.content_type, ["application/json", "text/*"]);
        assert_eq!((read.min_size, read.max_size), (Some(2), Some(1024)));
        assert_eq!((read.json.len(), read.json_not_empty.len()), (2, 1));
        assert!(read.grpc && read.graphql && read.faults && read.reads_json());
    }

    #[test]
    fn bad_values_are_told_with_what_is_allowed() {
        for (keep_if, seen, allowed) in [
            ("{ content_type = [] }", "content_type: 0 of them", "1 to 16"),
            (
                "{ content_type = [\"json\"] }",
                "content_type: \"json\"",
                "media types",
            ),
            (
                "{ content_type = [\"a/b; c=d\"] }",
                "content_type",
                "without parameters",
            ),
            (
                "{ content_type = [\"a/b\", \"A/B\"] }",
                "content_type: \"a/b\" twice",
                "each once",
            ),
            (
                "{ min_size = \"2KiB\", max_size = \"1KiB\" }",
                "min_size: 2048 bytes",
                "no answer could pass",
            ),
            (
                "{ json = [\"a\"] }",
                "json: \"a\" in a list: it does not begin",
                "RFC 6901",
            ),
            (
                "{ json_not_empty = [\"/~2\"] }",
                "json_not_empty: \"/~2\"",
                "~0 for a tilde",
            ),
            ("{ json = [\"/a\", \"/a\"] }", "json: \"/a\" twice", "each once"),
            (
                "{ else = \"fault\" }",
                "else: set beside no question",
                "may not pass",
            ),
            (
                "{ grpc = true, else = \"drop\" }",
                "else: \"drop\"",
                "leave, fault",
            ),
        ] {
            let shown = read(keep_if).unwrap_err();
            let seen = format!("]: routes[0].keep_if.{seen}");
            let seen = seen.as_str();
            assert!(
                shown.contains(seen) || shown.contains(&seen.replace("routes[0]", "routes[0] \"r\"")),
                "{seen} is missing from\n{shown}"
            );
            assert!(shown.contains(allowed), "{allowed} is missing from\n{shown}");
        }
    }
}
