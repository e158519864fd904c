//! Decides the one answer of every comparison: 1 KiB of JSON, kept or not by its path.
//!
//! It exists so that the origin and the bare server send bodies of the same size and
//! kind. It refuses paths it does not know, so that a wrong configuration shows up as 404.

use std::io::Write as _;

/// Length of the body in bytes.
pub const BODY_LEN: usize = 1024;

/// Content type of the body.
pub const CONTENT_TYPE: &str = "application/json";

/// How long a cache may keep an answer, chosen by the path that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// `/no-store` and everything below it.
    NoStore,
    /// `/max-age/SECONDS` and everything below it.
    MaxAge(u32),
}

impl Keeping {
    /// Returns the rule for a request target, or `None` when no rule names it.
    ///
    /// ```
    /// use gateway_bench_tools::answer::Keeping;
    ///
    /// assert_eq!(Keeping::of(b"/max-age/60/key"), Some(Keeping::MaxAge(60)));
    /// assert_eq!(Keeping::of(b"/other"), None);
    /// ```
    #[must_use]
    pub fn of(target: &[u8]) -> Option<Self> {
        let mut segments = target.strip_prefix(b"/")?.split(|byte| *byte == b'/');
        match segments.next()? {
            b"no-store" => Some(Self::NoStore),
            b"max-age" => std::str::from_utf8(segments.next()?)
                .ok()?
                .parse()
                .ok()
                .map(Self::MaxAge),
            _ => None,
        }
    }
}

/// Returns the body: one JSON object, padded to [`BODY_LEN`] bytes.
#[must_use]
pub fn body() -> Vec<u8> {
    let mut text = String::from("{\"item\":1,\"text\":\"");
    let end = "\"}";
    text.extend(std::iter::repeat_n('e', BODY_LEN - text.len() - end.len()));
    text.push_str(end);
    text.into_bytes()
}

/// Name of the field that tells when an answer was made, in lower case.
pub const MADE_AT: &str = "x-made-at";

/// Appends a whole HTTP/1.1 answer, or a 404 without a body when no rule names the target.
///
/// `date` is an HTTP-date (RFC 9110 §5.6.7), `body` what [`body`] returned. `made_at` goes into
/// [`MADE_AT`]: milliseconds since 1970, by which a client tells how old a kept answer is. `Age`
/// would be the cache's word for it, in whole seconds.
pub fn write_answer(
    out: &mut Vec<u8>,
    keeping: Option<Keeping>,
    date: &str,
    made_at: Option<u64>,
    body: &[u8],
) {
    let written = match keeping {
        Some(Keeping::NoStore) => write_head(out, date, format_args!("no-store"), made_at),
        Some(Keeping::MaxAge(seconds)) => {
            write_head(out, date, format_args!("public, max-age={seconds}"), made_at)
        }
        None => {
            write!(
                out,
                "HTTP/1.1 404 Not Found\r\nDate: {date}\r\nContent-Length: 0\r\n\r\n"
            )
        }
    };
    written.expect("a vector takes every write");
    if keeping.is_some() {
        out.extend_from_slice(body);
    }
}

fn write_head(
    out: &mut Vec<u8>,
    date: &str,
    cache_control: std::fmt::Arguments<'_>,
    made_at: Option<u64>,
) -> std::io::Result<()> {
    write!(
        out,
        "HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {BODY_LEN}\r\n\
         Cache-Control: {cache_control}\r\n"
    )?;
    if let Some(millis) = made_at {
        write!(out, "{MADE_AT}: {millis}\r\n")?;
    }
    out.write_all(b"\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_is_one_kibibyte() {
        assert_eq!(body().len(), BODY_LEN);
    }

    #[test]
    fn a_path_chooses_what_caches_may_do() {
        assert_eq!(Keeping::of(b"/no-store"), Some(Keeping::NoStore));
        assert_eq!(Keeping::of(b"/no-store/a"), Some(Keeping::NoStore));
        assert_eq!(Keeping::of(b"/max-age/0"), Some(Keeping::MaxAge(0)));
        for wrong in [
            &b"/max-age"[..],
            b"/max-age/x",
            b"/max-age/-1",
            b"/no-stored",
            b"*",
            b"",
        ] {
            assert_eq!(Keeping::of(wrong), None, "{:?}", String::from_utf8_lossy(wrong));
        }
    }

    #[test]
    fn an_unknown_path_is_answered_without_a_body() {
        let mut out = Vec::new();
        write_answer(&mut out, None, "now", Some(1), &body());
        assert_eq!(
            out,
            b"HTTP/1.1 404 Not Found\r\nDate: now\r\nContent-Length: 0\r\n\r\n"
        );
    }

    #[test]
    fn an_answer_ends_with_the_whole_body() {
        let mut out = Vec::new();
        write_answer(&mut out, Some(Keeping::MaxAge(7)), "now", None, &body());
        let text = String::from_utf8(out).unwrap();
        let (head, sent) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("Cache-Control: public, max-age=7"), "{head}");
        assert_eq!(sent.as_bytes(), body());
        assert!(!head.contains(MADE_AT), "{head}");
    }

    #[test]
    fn an_answer_tells_when_it_was_made_where_that_is_asked_for() {
        let mut out = Vec::new();
        write_answer(&mut out, Some(Keeping::NoStore), "now", Some(1500), &body());
        assert!(
            String::from_utf8(out)
                .unwrap()
                .contains("\r\nx-made-at: 1500\r\n\r\n")
        );
    }
}
