//! Decides which fields of listed peers say how long a request may take, how much it matters and to which trace it belongs.
//! It exists because the proxies in front know it, and everybody else could claim it.
//! It refuses to believe anybody who is not listed: such fields beside no list would never be read.

use evenkeel_core::codes;
use http::HeaderName;

use super::{lints, reader::Fields, rewrite};

/// What is read of requests beside what they ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// The fields in which listed peers say how long they wait.
    pub deadline_from: Vec<HeaderName>,
    /// The field in which listed peers say how much a request matters.
    pub criticality_from: Option<HeaderName>,
    /// Whether each request belongs to a trace.
    pub trace: bool,
}

/// The field of gRPC, whose values have units of their own.
pub const GRPC_TIMEOUT: &str = "grpc-timeout";
/// The most fields of one list.
const FIELDS_MAX: usize = 4;

/// Reads them of `[gateway]`.
pub(super) fn read(fields: &mut Fields<'_, '_>, has_peers: bool) -> Hints {
    let deadline_from = names(fields, "deadline_from");
    let criticality_from = fields
        .text("criticality_from", "\"x-criticality\"")
        .and_then(|text| rewrite::name(fields, "criticality_from", &text, "\"x-criticality\""));
    for key in ["deadline_from", "criticality_from"] {
        if fields.has(key) && !has_peers {
            fields.lint(
                codes::NO_EFFECT,
                key,
                "set without `trusted_peers`",
                "only beside the list of those who may say it: nobody else is believed",
                &format!("add `trusted_peers`, or remove `{key}`"),
            );
        }
    }
    Hints {
        deadline_from,
        criticality_from,
        trace: fields
            .word("trace", &[("off", false), ("on", true)])
            .unwrap_or_default(),
    }
}

/// Reads a list of fields that say a time.
pub(super) fn names(fields: &mut Fields<'_, '_>, key: &'static str) -> Vec<HeaderName> {
    const EXAMPLE: &str = "[\"x-request-timeout-ms\"]";
    let Some(texts) = fields.texts(key, EXAMPLE) else {
        return Vec::new();
    };
    if texts.is_empty() || texts.len() > FIELDS_MAX {
        fields.problem(
            key,
            &format!("{} fields", texts.len()),
            &format!("1 to {FIELDS_MAX} fields"),
            &format!("write `{key} = {EXAMPLE}`, say, or remove it"),
        );
    }
    let mut read: Vec<HeaderName> = Vec::new();
    for text in texts {
        let Some(name) = rewrite::name(fields, key, &text, EXAMPLE) else {
            continue;
        };
        if read.contains(&name) {
            fields.lint(
                lints::LISTED_TWICE,
                key,
                &format!("\"{name}\" twice"),
                "each once",
                "remove one",
            );
        } else {
            read.push(name);
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use crate::config::parse;

    #[test]
    fn bad_values_are_told_with_what_is_allowed() {
        for (keys, seen, allowed) in [
            (
                "deadline_from = [\"x-t\"]",
                "deadline_from: set without `trusted_peers`",
                "nobody else",
            ),
            (
                "trusted_peers = [\"::1\"]\ndeadline_from = []",
                "deadline_from: 0 fields",
                "1 to 4",
            ),
            (
                "trusted_peers = [\"::1\"]\ndeadline_from = [\"a b\"]",
                "deadline_from: \"a b\"",
                "names of fields",
            ),
            (
                "trusted_peers = [\"::1\"]\ndeadline_from = [\"a\", \"A\"]",
                "deadline_from: \"a\" twice",
                "each once",
            ),
            (
                "trusted_peers = [\"::1\"]\ncriticality_from = \"host\"",
                "criticality_from: \"host\"",
                "names of fields",
            ),
            (
                "criticality_from = \"x-c\"",
                "criticality_from: set without",
                "nobody else",
            ),
            ("trace = \"yes\"", "trace: \"yes\"", "off, on"),
        ] {
            let text = format!(
                "[gateway]\nlisten = \"127.0.0.1:0\"\n{keys}\n[dependencies.d]\nurls = [\"http://a:81\"]\n\
                 [[routes]]\nname = \"r\"\nmatch = {{ path = \"/r\" }}\nclass = \"pass\"\nfrom = \"d\"\n"
            );
            let shown = parse("contract.toml", &text).unwrap_err().to_string();
            let seen = format!("]: gateway.{seen}");
            assert!(shown.contains(&seen), "{seen} is missing from\n{shown}");
            assert!(shown.contains(allowed), "{allowed} is missing from\n{shown}");
        }
    }
}
