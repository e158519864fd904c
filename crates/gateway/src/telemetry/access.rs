//! Decides what is written down about each request, and when: one line of JSON, once its answer has gone out or cannot.
//! It exists because metrics say how many and never which, and a status alone does not say that an answer was old.
//! It refuses to write queries, fields or bodies, where secrets live, and to hold a request up for a line.

use std::{
    fs::OpenOptions,
    io::{self, BufWriter},
    os::unix::fs::OpenOptionsExt as _,
    sync::Arc,
    time::Duration,
};

use evenkeel::{Answer, Ending, Engine, Mono, Protection, Reason, Rung, Unanswered};
use http::StatusCode;

use super::{line::rfc3339, log::Log};
use crate::config;

/// The most lines that wait to be written: a second of traffic at the speed of a disk.
const WAITING_MAX: usize = 65_536;

/// Where the lines about requests go. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct AccessLog {
    log: Log,
    engine: Engine,
}

impl AccessLog {
    /// Opens what the contract names; `None` if it names nothing.
    ///
    /// # Errors
    /// When a file cannot be opened for appending.
    pub(crate) fn open(named: &config::AccessLog, engine: &Engine) -> io::Result<Option<Self>> {
        let log = match named {
            config::AccessLog::Off => return Ok(None),
            config::AccessLog::Stdout => Log::to(engine, BufWriter::new(io::stdout()), WAITING_MAX),
            config::AccessLog::File(path) => {
                let file = OpenOptions::new()
                    .append(true)
                    .create(true)
                    .mode(MODE)
                    .open(path)?;
                Log::to(engine, BufWriter::new(file), WAITING_MAX)
            }
        };
        Ok(Some(Self {
            log,
            engine: engine.clone(),
        }))
    }

    /// Begins the record of a request that arrives now.
    pub(crate) fn begin(&self, request: Request) -> Box<Record> {
        Box::new(Record {
            began: self.engine.now().mono,
            log: self.clone(),
            request,
            status: None,
            came_to: None,
            protection: None,
            bytes: 0,
        })
    }

    /// Returns how many lines were lost.
    pub(crate) fn lost(&self) -> u64 {
        self.log.lost()
    }

    /// Waits until every line so far is written, for as long as `at_most`.
    pub(crate) fn flush(&self, at_most: Duration) {
        self.log.flush(at_most);
    }
}

/// Who asked for what is the operator's to know, and nobody else's.
const MODE: u32 = 0o640;

/// What is written down of a request itself.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: http::Method,
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) peer: String,
    /// The id of the trace that it belongs to, where it belongs to one.
    pub(crate) trace: Option<String>,
}

/// What a call came to, as far as it is known when the head of its answer goes out.
#[derive(Clone, Debug)]
pub(crate) struct CameTo {
    pub(crate) route: Arc<str>,
    pub(crate) ending: Ending,
    pub(crate) reason: Option<Reason>,
    pub(crate) age: Option<Duration>,
}

impl CameTo {
    /// Reads it off the end of a call.
    pub(crate) fn of<T, E>(route: &Arc<str>, end: &Result<Answer<T, E>, Unanswered<E>>) -> Self {
        let (ending, reason, age) = match end {
            Ok(answer) => (Ending::Answered(answer.rung), answer.reason, answer.age),
            Err(end) => (end.ending, end.reason, None),
        };
        Self {
            route: Arc::clone(route),
            ending,
            reason,
            age,
        }
    }
}

/// The record of one request. It is written when it is dropped: before it has a status only if its client left.
#[derive(Debug)]
pub(crate) struct Record {
    began: Mono,
    log: AccessLog,
    request: Request,
    pub(crate) status: Option<StatusCode>,
    /// `None` for a request that became no call.
    pub(crate) came_to: Option<CameTo>,
    /// What was decided about it, where anything was.
    pub(crate) protection: Option<Protection>,
    /// Bytes of the body that were handed to the connection.
    pub(crate) bytes: u64,
}

impl Record {
    /// Says how the body ended where that is not how the call stood when its head went out.
    pub(crate) fn ended(&mut self, ending: Ending) {
        if let Some(came_to) = &mut self.came_to {
            came_to.ending = ending;
        }
    }

    fn to_text(&self) -> String {
        let now = self.log.engine.now();
        let mut text = String::with_capacity(256);
        text.push_str("{\"time\":\"");
        text.push_str(&rfc3339(now.wall_of(self.began)));
        text.push('"');
        let Request {
            method,
            host,
            path,
            peer,
            trace: _,
        } = &self.request;
        for (key, value) in [
            ("peer", peer.as_str()),
            ("method", method.as_str()),
            ("host", host),
            ("path", path),
        ] {
            push_text(&mut text, key, Some(value));
        }
        push_number(
            &mut text,
            "status",
            self.status.map(|status| u64::from(status.as_u16())),
        );
        let left = self.status.is_none().then_some(Ending::Abandoned);
        let came_to = self.came_to.as_ref();
        let ending = came_to.map(|came_to| came_to.ending).or(left);
        push_text(&mut text, "route", came_to.map(|came_to| &*came_to.route));
        push_text(&mut text, "ending", ending.map(Ending::as_str));
        push_text(&mut text, "rung", ending.and_then(Ending::rung).map(Rung::as_str));
        let reason = came_to.and_then(|came_to| came_to.reason);
        push_text(&mut text, "reason", reason.map(Reason::as_str));
        push_number(
            &mut text,
            "age_seconds",
            came_to.and_then(|came_to| came_to.age).map(|age| age.as_secs()),
        );
        push_text(&mut text, "protect", self.protection.map(Protection::as_str));
        if let Some(trace) = &self.request.trace {
            push_text(&mut text, "trace", Some(trace));
        }
        push_number(&mut text, "bytes", Some(self.bytes));
        let took = now.mono.since(self.began);
        push_key(&mut text, "duration_ms");
        let (whole, part) = (took.as_millis(), took.subsec_micros() % 1000);
        text.push_str(&format!("{whole}.{part:03}}}\n"));
        text
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.log.log.text(self.to_text());
    }
}

fn push_text(text: &mut String, key: &str, value: Option<&str>) {
    push_key(text, key);
    match value {
        Some(value) => push_quoted(text, &serde_json::Value::from(value).to_string()),
        None => text.push_str("null"),
    }
}

/// Writes a JSON string in ASCII alone. A terminal obeys some characters beyond it, and some programs end a line at
/// others; JSON lets both stand as they are.
fn push_quoted(text: &mut String, quoted: &str) {
    for character in quoted.chars() {
        if matches!(character, ' '..='~') {
            text.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
}

fn push_number(text: &mut String, key: &str, value: Option<u64>) {
    push_key(text, key);
    match value {
        Some(value) => text.push_str(&value.to_string()),
        None => text.push_str("null"),
    }
}

fn push_key(text: &mut String, key: &str) {
    text.push_str(",\"");
    text.push_str(key);
    text.push_str("\":");
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel::ManualClock;

    fn record(clock: &ManualClock) -> Box<Record> {
        let engine = Engine::new(clock.clone(), 7);
        let log = AccessLog {
            log: Log::to(&engine, io::sink(), 8),
            engine,
        };
        log.begin(Request {
            method: http::Method::GET,
            host: "a\"b".to_owned(),
            path: "/\u{1}\\".to_owned(),
            peer: "::1".to_owned(),
            trace: None,
        })
    }

    #[test]
    fn a_record_is_one_line_of_json_whatever_a_client_sends() {
        let clock = ManualClock::new();
        let mut record = record(&clock);
        clock.advance(Duration::from_micros(1_002_003));
        record.status = Some(StatusCode::OK);
        record.came_to = Some(CameTo {
            route: "r".into(),
            ending: Ending::Answered(Rung::Stale),
            reason: Some(Reason::BreakerOpen),
            age: Some(Duration::from_millis(34_999)),
        });
        record.bytes = 7;
        let text = record.to_text();
        assert_eq!(text.find('\n'), Some(text.len() - 1));
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        for (key, value) in [
            ("host", serde_json::json!("a\"b")),
            ("path", serde_json::json!("/\u{1}\\")),
            ("status", serde_json::json!(200)),
            ("route", serde_json::json!("r")),
            ("ending", serde_json::json!("answered")),
            ("rung", serde_json::json!("stale")),
            ("reason", serde_json::json!("breaker-open")),
            ("age_seconds", serde_json::json!(34)),
            ("bytes", serde_json::json!(7)),
            ("duration_ms", serde_json::json!(1002.003)),
        ] {
            assert_eq!(read[key], value, "{key}");
        }
    }

    #[test]
    fn a_record_is_ascii_whatever_a_client_sends() {
        let mut record = record(&ManualClock::new());
        let path = "/\u{7f}\u{85}\u{9b}31m\u{2028}\u{202e}\u{e4}\u{1f600}\"";
        path.clone_into(&mut record.request.path);
        let text = record.to_text();
        let line = text.strip_suffix('\n').unwrap();
        assert!(line.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{line}");
        let read: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(read["path"], path);
    }

    #[test]
    fn a_client_who_left_before_the_head_has_no_status_and_one_who_was_refused_no_ending() {
        let mut record = record(&ManualClock::new());
        let read =
            |record: &Record| -> serde_json::Value { serde_json::from_str(&record.to_text()).unwrap() };
        let left = read(&record);
        assert_eq!(
            (&left["status"], &left["ending"]),
            (&serde_json::Value::Null, &"abandoned".into())
        );
        record.status = Some(StatusCode::NOT_FOUND);
        let refused = read(&record);
        assert_eq!(
            (&refused["status"], &refused["ending"]),
            (&404.into(), &serde_json::Value::Null)
        );
    }
}
