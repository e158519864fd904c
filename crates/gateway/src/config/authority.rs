//! Decides what a contract says about an authority: who decides, by what of a request, and what it makes known of a caller.
//! It exists because "who may do what" is asked before anything else, so it has to be right before anything is served.
//! It refuses every key by which something could stand in for a decision.

use std::time::Duration;

use http::{HeaderName, Method, StatusCode, uri::PathAndQuery};

use super::{
    identity::{self, Identity},
    lints,
    reader::{Fields, listed},
    rewrite,
};

/// An authority.
#[derive(Clone, Debug, PartialEq)]
pub struct Authority {
    /// Its name, a metric label.
    pub name: String,
    /// The name of the dependency that is asked.
    pub from: String,
    /// How it is asked.
    pub method: Method,
    /// What it is asked for.
    pub path: PathAndQuery,
    /// The fields of a request that it is told.
    pub headers: Vec<HeaderName>,
    /// Those of them that end with it: nobody behind the gateway sees them.
    pub consume: Vec<HeaderName>,
    /// The fields of its answer that take the place of the client's on the way to the dependency of the route.
    pub copy: Vec<HeaderName>,
    /// The statuses by which it denies, beside 401 and 403.
    pub deny: Vec<StatusCode>,
    /// The longest span of a whole decision; the deadline of the route where that is shorter, or nothing is said.
    pub deadline: Option<Duration>,
    /// Which of the copied fields say whose data a request is about.
    pub identity: Identity,
}

/// The most fields that an authority is told, and that are copied from its answer.
pub const FIELDS_MAX: usize = 32;

/// How an authority may be asked: without a body, and without an effect that another question would repeat.
const METHODS: [&str; 3] = ["GET", "HEAD", "POST"];

/// Reads one authority.
pub(super) fn read(name: String, dependencies: &[String], mut fields: Fields<'_, '_>) -> Option<Authority> {
    let mut problems = evenkeel_core::Problems::default();
    evenkeel_core::check_name("", &name, &mut problems);
    fields.absorb(problems);
    let from = fields.required_text("from", "\"sso\"");
    if let Some(from) = &from
        && !dependencies.contains(from)
    {
        let known: Vec<&str> = dependencies.iter().map(String::as_str).collect();
        fields.lint(
            lints::UNKNOWN_NAME,
            "from",
            &format!("\"{}\"", from.escape_debug()),
            &listed(&known),
            &format!(
                "add `[dependencies.{}]`, or correct the name",
                from.escape_debug()
            ),
        );
    }
    let method = match fields.word("method", &METHODS.map(|word| (word, word))) {
        Some("HEAD") => Method::HEAD,
        Some("POST") => Method::POST,
        Some(_) | None => Method::GET,
    };
    let path = path(&mut fields);
    fields.require("headers", "[\"authorization\"]");
    let headers = names(&mut fields, "headers", "[\"authorization\"]");
    let consume = names(&mut fields, "consume", "[\"authorization\"]");
    let copy = names(&mut fields, "copy", "[\"x-user\"]");
    for name in consume.iter().filter(|name| !headers.contains(name)) {
        fields.problem(
            "consume",
            &format!("\"{name}\", which the authority is not told"),
            "names that are in `headers` too",
            &format!("add \"{name}\" to `headers`, or remove it here"),
        );
    }
    let identity = identity::read(&mut fields, "identity");
    for (part, name) in identity.parts() {
        if !copy.contains(name) {
            fields.problem(
                "identity",
                &format!("{} = \"{name}\", which is not copied", part.as_str()),
                "names that are in `copy`",
                &format!("add \"{name}\" to `copy`"),
            );
        }
    }
    Some(Authority {
        name,
        from: from?,
        method,
        path: path?,
        headers,
        consume,
        copy,
        deny: deny(&mut fields),
        deadline: fields.duration("deadline", "\"500ms\""),
        identity,
    })
}

fn path(fields: &mut Fields<'_, '_>) -> Option<PathAndQuery> {
    let text = fields.required_text("path", "\"/verify\"")?;
    let path = text
        .starts_with('/')
        .then(|| text.parse::<PathAndQuery>().ok())
        .flatten();
    if path.is_none() {
        fields.problem(
            "path",
            &format!("\"{}\"", text.escape_debug()),
            "a path from the root, with or without a query, as it is sent",
            "write `path = \"/verify\"`, say",
        );
    }
    path
}

/// Reads a list of names of fields, each once, none of them the gateway's own.
fn names(fields: &mut Fields<'_, '_>, key: &'static str, example: &str) -> Vec<HeaderName> {
    let mut names = Vec::new();
    let texts = fields.texts(key, example).unwrap_or_default();
    if texts.len() > FIELDS_MAX {
        fields.problem(
            key,
            &format!("{} fields", texts.len()),
            &format!("at most {FIELDS_MAX}"),
            "name those that decide",
        );
    }
    for text in texts.iter().take(FIELDS_MAX) {
        let Some(name) = rewrite::name(fields, key, text, example) else {
            continue;
        };
        if name.as_str().contains('_') {
            fields.problem(
                key,
                &format!("\"{name}\""),
                "names with hyphens: many servers read an underscore as one, so two fields would be one",
                &format!("write \"{}\"", name.as_str().replace('_', "-")),
            );
        } else if names.contains(&name) {
            fields.lint(
                lints::LISTED_TWICE,
                key,
                &format!("\"{name}\" twice"),
                "each once",
                "remove one",
            );
        } else {
            names.push(name);
        }
    }
    names
}

/// Reads the further statuses by which an authority denies. 401 and 403 always do.
fn deny(fields: &mut Fields<'_, '_>) -> Vec<StatusCode> {
    let numbers = fields.integers("deny", 300, 499, "[302]").unwrap_or_default();
    let mut statuses = Vec::new();
    for number in numbers {
        let status = u16::try_from(number)
            .ok()
            .and_then(|number| StatusCode::from_u16(number).ok())
            // About the subrequest or the hop, and nothing that a client could use.
            .filter(|status| !matches!(status.as_u16(), 304 | 407 | 408));
        match status {
            Some(status) => statuses.push(status),
            None => fields.problem(
                "deny",
                &number.to_string(),
                "statuses of 300 to 499 that say something to a client: not 304, 407 or 408",
                "remove it",
            ),
        }
    }
    statuses
}
