//! Decides whether an answer passes what its route asks of answers that are kept.
//! It exists because a login page, an empty list or a GraphQL answer full of errors is a 200 too.
//! It refuses to guess: what should be JSON and cannot be read does not pass.

use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};

use crate::config::{KeepIf, Stands, has_listed};

/// Where gRPC says how a call ended: a field of the head, or one behind the body.
pub(super) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Why an answer does not pass; the words are metric labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unworthy {
    /// Another status.
    Status,
    /// Nothing in it.
    Empty,
    /// Another media type.
    Type,
    /// Too few bytes, or too many.
    Size,
    /// It should be JSON, and is not.
    NotJson,
    /// A place of it is missing.
    JsonMissing,
    /// A place of it is empty.
    JsonEmpty,
    /// gRPC says that the call failed, or does not say how it ended.
    Grpc,
    /// GraphQL lists errors.
    Graphql,
}

impl Unworthy {
    pub(crate) const ALL: [Self; 9] = [
        Self::Status,
        Self::Empty,
        Self::Type,
        Self::Size,
        Self::NotJson,
        Self::JsonMissing,
        Self::JsonEmpty,
        Self::Grpc,
        Self::Graphql,
    ];

    /// Returns the stable word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Status => "unwanted-status",
            Self::Empty => "empty-body",
            Self::Type => "unwanted-type",
            Self::Size => "unwanted-size",
            Self::NotJson => "not-json",
            Self::JsonMissing => "json-missing",
            Self::JsonEmpty => "json-empty",
            Self::Grpc => "grpc-error",
            Self::Graphql => "graphql-errors",
        }
    }
}

/// Judges a complete answer; `trailer` is the `grpc-status` behind its body. What costs least is asked first.
pub(super) fn judge(
    keep_if: &KeepIf,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    trailer: Option<&HeaderValue>,
) -> Result<(), Unworthy> {
    let pass = |passes: bool, or: Unworthy| if passes { Ok(()) } else { Err(or) };
    pass(
        keep_if.status.is_empty() || keep_if.status.contains(&status),
        Unworthy::Status,
    )?;
    pass(
        keep_if.content_type.is_empty() || is_one_of(headers, &keep_if.content_type),
        Unworthy::Type,
    )?;
    let length = body.len() as u64;
    let fits =
        keep_if.min_size.is_none_or(|min| length >= min) && keep_if.max_size.is_none_or(|max| length <= max);
    pass(fits, Unworthy::Size)?;
    pass(!(keep_if.not_empty && is_empty(body)), Unworthy::Empty)?;
    if keep_if.grpc {
        let mut said = headers.get_all(GRPC_STATUS).iter().chain(trailer);
        let is_well = said.next().is_some_and(|first| *first == "0") && said.all(|other| *other == "0");
        pass(is_well, Unworthy::Grpc)?;
    }
    if !keep_if.reads_json() {
        return Ok(());
    }
    pass(says_json(headers), Unworthy::NotJson)?;
    if keep_if.graphql {
        match has_listed(body, "errors") {
            None => return Err(Unworthy::NotJson),
            Some(true) => return Err(Unworthy::Graphql),
            Some(false) => {}
        }
    }
    for (pointers, must_hold) in [(&keep_if.json, false), (&keep_if.json_not_empty, true)] {
        for pointer in pointers {
            match pointer.find(body) {
                None => return Err(Unworthy::NotJson),
                Some(Stands::Nothing) => return Err(Unworthy::JsonMissing),
                Some(Stands::Empty) if must_hold => return Err(Unworthy::JsonEmpty),
                Some(Stands::Empty | Stands::Something) => {}
            }
        }
    }
    Ok(())
}

/// Returns the media type of an answer that names one and only one, without parameters.
fn media_type(headers: &HeaderMap) -> Option<&str> {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    let line = lines.next()?.to_str().ok()?;
    if lines.next().is_some() {
        return None;
    }
    line.split(';').next().map(str::trim)
}

fn is_one_of(headers: &HeaderMap, wanted: &[String]) -> bool {
    let Some(said) = media_type(headers) else {
        return false;
    };
    let said = said.to_ascii_lowercase();
    wanted.iter().any(|one| match one.strip_suffix('*') {
        Some(kind) => said.starts_with(kind),
        None => said == *one,
    })
}

/// Tells whether an answer says that its body is JSON as it stands.
fn says_json(headers: &HeaderMap) -> bool {
    let is_plain = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    is_plain
        && media_type(headers).is_some_and(|said| {
            let said = said.to_ascii_lowercase();
            said == "application/json" || said.ends_with("+json")
        })
}

/// Tells whether a body is nothing: no bytes, or an empty JSON array, object or null, with blanks around.
fn is_empty(body: &[u8]) -> bool {
    let text = body.trim_ascii();
    let inner = |open: u8, close: u8| {
        text.first() == Some(&open)
            && text.last() == Some(&close)
            && text
                .get(1..text.len() - 1)
                .is_some_and(|inner| inner.trim_ascii().is_empty())
    };
    text.is_empty() || text == b"null" || inner(b'[', b']') || inner(b'{', b'}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Pointer;

    fn judged(
        keep_if: &KeepIf,
        fields: &[(&'static str, &'static str)],
        body: &str,
    ) -> Result<(), &'static str> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        judge(keep_if, StatusCode::OK, &headers, body.as_bytes(), None).map_err(Unworthy::as_str)
    }

    const JSON: (&str, &str) = ("content-type", "application/json; charset=utf-8");

    #[test]
    fn an_empty_list_is_nothing_and_a_list_of_nothing_is_something() {
        for body in ["", " \n", "[]", "{ }", " [\n] ", "null"] {
            assert!(is_empty(body.as_bytes()), "{body:?}");
        }
        for body in ["[[]]", "{\"a\":[]}", "0", "\"\"", "[", "]", "{]"] {
            assert!(!is_empty(body.as_bytes()), "{body:?}");
        }
    }

    #[test]
    fn one_media_type_is_said_and_it_is_one_of_those_wanted() {
        let wants = KeepIf {
            content_type: vec!["application/json".to_owned(), "image/*".to_owned()],
            ..KeepIf::default()
        };
        for (fields, passes) in [
            (&[JSON][..], true),
            (&[("content-type", "Application/JSON")], true),
            (&[("content-type", "image/png")], true),
            (&[("content-type", "imagery/png")], false),
            (&[("content-type", "text/html")], false),
            (&[("content-type", "application/jsonx")], false),
            (&[JSON, JSON], false),
            (&[], false),
        ] {
            assert_eq!(judged(&wants, fields, "x").is_ok(), passes, "{fields:?}");
        }
    }

    #[test]
    fn a_body_is_within_its_sizes() {
        let wants = KeepIf {
            min_size: Some(2),
            max_size: Some(4),
            ..KeepIf::default()
        };
        for (body, passes) in [("1", false), ("12", true), ("1234", true), ("12345", false)] {
            assert_eq!(judged(&wants, &[], body).is_ok(), passes, "{body}");
        }
    }

    #[test]
    fn json_is_read_only_where_it_is_said_to_be_json_and_what_cannot_be_read_does_not_pass() {
        let wants = KeepIf {
            json: vec![Pointer::parse("/a").unwrap()],
            json_not_empty: vec![Pointer::parse("/b").unwrap()],
            ..KeepIf::default()
        };
        let problem = ("content-type", "application/problem+json");
        for (fields, body, result) in [
            (&[JSON][..], "{\"a\":null,\"b\":[1]}", Ok(())),
            (&[problem], "{\"a\":null,\"b\":[1]}", Ok(())),
            (&[JSON], "{\"b\":[1]}", Err("json-missing")),
            (&[JSON], "{\"a\":1,\"b\":[]}", Err("json-empty")),
            (&[JSON], "{\"a\":1,\"b\":1", Err("not-json")),
            (
                &[("content-type", "text/plain")],
                "{\"a\":1,\"b\":1}",
                Err("not-json"),
            ),
            (
                &[JSON, ("content-encoding", "gzip")],
                "{\"a\":1,\"b\":1}",
                Err("not-json"),
            ),
        ] {
            assert_eq!(judged(&wants, fields, body), result, "{body}");
        }
        let graphql = KeepIf {
            graphql: true,
            ..KeepIf::default()
        };
        assert_eq!(judged(&graphql, &[JSON], "{\"data\":1}"), Ok(()));
        assert_eq!(
            judged(&graphql, &[JSON], "{\"errors\":[1]}"),
            Err("graphql-errors")
        );
        assert_eq!(judged(&graphql, &[JSON], "[]"), Err("not-json"));
    }

    #[test]
    fn grpc_says_zero_and_nothing_else_wherever_it_says_it() {
        let wants = KeepIf {
            grpc: true,
            ..KeepIf::default()
        };
        let judged = |head: Option<&'static str>, trailer: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(head) = head {
                headers.insert(GRPC_STATUS, HeaderValue::from_static(head));
            }
            let trailer = trailer.map(HeaderValue::from_static);
            judge(&wants, StatusCode::OK, &headers, b"", trailer.as_ref()).is_ok()
        };
        assert!(judged(Some("0"), None) && judged(None, Some("0")) && judged(Some("0"), Some("0")));
        assert!(!judged(None, None) && !judged(Some("14"), None) && !judged(None, Some("00")));
        assert!(!judged(Some("0"), Some("2")));
    }
}
