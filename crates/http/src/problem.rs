//! Decides how a refusal or failure that the gateway answers itself looks on the wire: problem details by RFC
//! 9457.
//! It exists so that a client learns the cause by a stable URI, and when to come back, without reading prose.
//! It refuses to carry what helps an attacker: no hosts, stack traces or keys go in, and problems of an
//! origin pass through untouched.

use std::fmt::Write as _;
use std::time::Duration;

use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};

use crate::delays::{retry_after_seconds, retry_after_value};
pub use crate::problem_kind::{ProblemKind, TYPE_BASE};

/// The media type of the body.
pub const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// A rung that was not used, and why, in the engine's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedRung<'a> {
    /// The rung: `stale`, `alternate`, `default`.
    pub rung: &'a str,
    /// Why not: `too-old`, `no-snapshot`, ...
    pub why: &'a str,
}

/// One problem, as told to a client.
///
/// ```
/// use evenkeel_http::problem::{Problem, ProblemKind, SkippedRung};
/// use std::time::Duration;
///
/// let problem = Problem {
///     reason: Some("breaker-open"),
///     skipped: &[SkippedRung { rung: "stale", why: "too-old" }],
///     retry_after: Some(Duration::from_millis(1_600)),
///     ..Problem::new(ProblemKind::BreakerOpen)
/// };
/// assert_eq!(
///     problem.to_json(),
///     concat!(
///         r#"{"type":"https://evenkeel.dev/problems/breaker-open","#,
///         r#""title":"The service behind this route is recovering","status":503,"#,
///         r#""reason":"breaker-open","skipped":[{"rung":"stale","why":"too-old"}],"retry_after_seconds":2}"#,
///     )
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem<'a> {
    /// Which problem; gives type, title and status.
    pub kind: ProblemKind,
    /// What helps this client with this request (PD2).
    pub detail: Option<&'a str>,
    /// A URI reference for this occurrence, a request id for instance (PD1).
    pub instance: Option<&'a str>,
    /// The reason word of the engine.
    pub reason: Option<&'a str>,
    /// Every rung that was not used.
    pub skipped: &'a [SkippedRung<'a>],
    /// When to come back; also sent as `Retry-After`, with the same number.
    pub retry_after: Option<Duration>,
    /// The id under which an operation can be asked about.
    pub operation_id: Option<&'a str>,
    /// Where an operation can be asked about.
    pub status_url: Option<&'a str>,
}

impl Problem<'_> {
    /// Makes a problem that says no more than its kind.
    #[must_use]
    pub const fn new(kind: ProblemKind) -> Self {
        Self {
            kind,
            detail: None,
            instance: None,
            reason: None,
            skipped: &[],
            retry_after: None,
            operation_id: None,
            status_url: None,
        }
    }

    /// Returns the status of the answer, the same as in its body.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.kind.status()
    }

    /// Sets `Content-Type`, `Retry-After` if there is one, and `Cache-Control: no-store`: some of these
    /// statuses could otherwise be kept downstream.
    pub fn set_headers(&self, headers: &mut HeaderMap) {
        headers.insert(CONTENT_TYPE, PROBLEM_JSON);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(wait) = self.retry_after {
            headers.insert(RETRY_AFTER, retry_after_value(wait));
        }
    }

    /// Writes the body.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(256);
        out.push_str("{\"type\":\"");
        out.push_str(TYPE_BASE);
        out.push_str(self.kind.word());
        out.push('"');
        push_text_member(&mut out, "title", Some(self.kind.title()));
        push_number_member(&mut out, "status", self.status().as_u16().into());
        push_text_member(&mut out, "detail", self.detail);
        push_text_member(&mut out, "instance", self.instance);
        push_text_member(&mut out, "reason", self.reason);
        self.push_skipped(&mut out);
        if let Some(wait) = self.retry_after {
            push_number_member(&mut out, "retry_after_seconds", retry_after_seconds(wait));
        }
        push_text_member(&mut out, "operation_id", self.operation_id);
        push_text_member(&mut out, "status_url", self.status_url);
        out.push('}');
        out
    }

    fn push_skipped(&self, out: &mut String) {
        if self.skipped.is_empty() {
            return;
        }
        out.push_str(",\"skipped\":[");
        for (at, skipped) in self.skipped.iter().enumerate() {
            out.push_str(if at == 0 { "{\"rung\":" } else { ",{\"rung\":" });
            push_json_text(out, skipped.rung);
            out.push_str(",\"why\":");
            push_json_text(out, skipped.why);
            out.push('}');
        }
        out.push(']');
    }
}

fn push_text_member(out: &mut String, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        push_name(out, name);
        push_json_text(out, text);
    }
}

fn push_number_member(out: &mut String, name: &str, number: u64) {
    push_name(out, name);
    // Writing to a `String` cannot fail.
    write!(out, "{number}").unwrap_or_default();
}

fn push_name(out: &mut String, name: &str) {
    out.push_str(",\"");
    out.push_str(name);
    out.push_str("\":");
}

/// RFC 8259 §7: quotes, backslashes and control characters are escaped, everything else is written as it is.
fn push_json_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\0'..='\x1f' => write!(out, "\\u{:04x}", u32::from(character)).unwrap_or_default(),
            _ => out.push(character),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn parsed(problem: &Problem<'_>) -> Value {
        serde_json::from_str(&problem.to_json()).unwrap()
    }

    #[test]
    fn pd1_every_kind_has_type_title_and_the_real_status() {
        for kind in ProblemKind::ALL {
            let problem = Problem::new(kind);
            assert_eq!(
                parsed(&problem),
                json!({
                    "type": format!("https://evenkeel.dev/problems/{}", kind.word()),
                    "title": kind.title(),
                    "status": problem.status().as_u16(),
                })
            );
        }
    }

    #[test]
    fn pd2_machine_data_goes_into_extensions() {
        let problem = Problem {
            detail: Some("ask for the status, do not send it again"),
            instance: Some("urn:request:7"),
            reason: Some("timed-out"),
            skipped: &[
                SkippedRung {
                    rung: "stale",
                    why: "too-old",
                },
                SkippedRung {
                    rung: "default",
                    why: "failed",
                },
            ],
            retry_after: Some(Duration::from_secs(5)),
            operation_id: Some("a1"),
            status_url: Some("/.evenkeel/operations/a1"),
            ..Problem::new(ProblemKind::OutcomeUnknown)
        };
        assert_eq!(
            parsed(&problem),
            json!({
                "type": "https://evenkeel.dev/problems/outcome-unknown",
                "title": ProblemKind::OutcomeUnknown.title(),
                "status": 504,
                "detail": "ask for the status, do not send it again",
                "instance": "urn:request:7",
                "reason": "timed-out",
                "skipped": [{"rung": "stale", "why": "too-old"}, {"rung": "default", "why": "failed"}],
                "retry_after_seconds": 5,
                "operation_id": "a1",
                "status_url": "/.evenkeel/operations/a1",
            })
        );
    }

    #[test]
    fn h04_body_and_header_name_the_same_wait() {
        for wait in [Duration::ZERO, Duration::from_millis(1_001), Duration::MAX] {
            let problem = Problem {
                retry_after: Some(wait),
                ..Problem::new(ProblemKind::AtCapacity)
            };
            let mut headers = HeaderMap::new();
            problem.set_headers(&mut headers);
            assert_eq!(
                headers[RETRY_AFTER],
                parsed(&problem)["retry_after_seconds"].to_string()
            );
        }
    }

    #[test]
    fn problems_are_typed_and_not_stored() {
        let mut headers = HeaderMap::new();
        Problem::new(ProblemKind::NoSuchRoute).set_headers(&mut headers);
        assert_eq!(headers[CONTENT_TYPE], "application/problem+json");
        assert_eq!(headers[CACHE_CONTROL], "no-store");
        assert!(!headers.contains_key(RETRY_AFTER));
    }

    proptest! {
        #[test]
        fn every_text_survives_the_body(
            detail in any::<String>(),
            rung in any::<String>(),
            odd in "[\\x00-\\x22\\x5c\\x7f]{0,8}",
        ) {
            let problem = Problem {
                detail: Some(&detail),
                reason: Some(&odd),
                skipped: &[SkippedRung { rung: &rung, why: &odd }],
                ..Problem::new(ProblemKind::TimedOut)
            };
            let body = parsed(&problem);
            prop_assert_eq!(&body["detail"], &json!(detail));
            prop_assert_eq!(&body["reason"], &json!(odd));
            prop_assert_eq!(&body["skipped"], &json!([{"rung": rung, "why": odd}]));
        }
    }
}
