//! Decides what of a request's fields says how long it may take, how much it matters and to which trace it belongs.
//! It exists so that these are read once, on arrival, and sent on as what is true then.
//! It refuses the word of peers that are not listed, and lets no such field pass as it came: what cannot be read is left out
//! and counted, because a proxy's slip of the pen should not take its users' answers away.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use evenkeel::Criticality;
use evenkeel_core::Rng;
use evenkeel_http::trace::{TRACEPARENT, TRACESTATE, Trace, state};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::identity;
use crate::config::{self, GRPC_TIMEOUT};

/// What arrived with a request beside what it asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    /// How long its sender waits.
    pub(super) deadline: Option<Duration>,
    /// How much it matters.
    pub(super) criticality: Option<Criticality>,
    /// The trace that it belongs to, and what others noted about that.
    pub(super) trace: Option<(Trace, Option<HeaderValue>)>,
}

/// What is counted of the words of peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    Deadline,
    Criticality,
    Trace,
}

impl Unread {
    pub(crate) const ALL: [Self; 3] = [Self::Deadline, Self::Criticality, Self::Trace];

    /// Returns the stable word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Criticality => "criticality",
            Self::Trace => "trace",
        }
    }
}

/// Reads what arrives, by one contract.
#[derive(Debug)]
pub(crate) struct Hints {
    contract: config::Hints,
    reads: bool,
    draws: AtomicU64,
    /// Shared with the reader of the contract before: what was counted goes on.
    unread: Arc<[AtomicU64; Unread::ALL.len()]>,
}

impl Hints {
    /// Reads by this contract; `before` is who read by the one before.
    pub(super) fn new(contract: &config::Hints, seed: u64, before: Option<&Self>) -> Self {
        Self {
            reads: *contract != config::Hints::default(),
            contract: contract.clone(),
            draws: AtomicU64::new(seed),
            unread: before.map_or_else(Arc::default, |before| Arc::clone(&before.unread)),
        }
    }

    /// Reads what a request says, and takes away what is not to be sent on as it came; `None` where nothing is to be read.
    pub(super) fn read(&self, headers: &mut HeaderMap, is_listed: bool) -> Option<Said> {
        if !self.reads {
            return None;
        }
        let mut said = Said::default();
        for name in &self.contract.deadline_from {
            let lines = taken(headers, name);
            if is_listed && !lines.is_empty() {
                match time_of(name, &lines) {
                    Some(time) => said.deadline = Some(said.deadline.map_or(time, |other| other.min(time))),
                    None => self.note(Unread::Deadline),
                }
            }
        }
        if let Some(name) = &self.contract.criticality_from {
            let lines = taken(headers, name);
            if is_listed && let [line, others @ ..] = &*lines {
                let word = line.to_str().ok().filter(|_| others.is_empty());
                said.criticality = word.and_then(Criticality::of_word);
                if said.criticality.is_none() {
                    self.note(Unread::Criticality);
                } else {
                    headers.insert(name, line.clone());
                }
            }
        }
        if self.contract.trace {
            said.trace = Some(self.trace(headers));
        }
        Some(said)
    }

    fn trace(&self, headers: &mut HeaderMap) -> (Trace, Option<HeaderValue>) {
        let trace = Trace::of(headers);
        let notes = trace.and_then(|_| state(headers));
        let was_there = headers.remove(TRACEPARENT).is_some();
        headers.remove(TRACESTATE);
        if let Some(trace) = trace {
            return (trace, notes);
        }
        if was_there {
            self.note(Unread::Trace);
        }
        let mut draws = Rng::new(self.draws.fetch_add(Rng::STEP.wrapping_mul(2), Ordering::Relaxed));
        let (high, low) = (draws.next_u64(), draws.next_u64());
        (Trace::begin(u128::from(high) << 64 | u128::from(low)), None)
    }

    fn note(&self, what: Unread) {
        if let Some(count) = self.counter(what) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns how often a word could not be read.
    pub(crate) fn unread(&self, what: Unread) -> u64 {
        self.counter(what)
            .map_or(0, |count| count.load(Ordering::Relaxed))
    }

    fn counter(&self, what: Unread) -> Option<&AtomicU64> {
        let place = Unread::ALL.iter().position(|known| *known == what)?;
        self.unread.get(place)
    }
}

/// Takes a field out, also under names that many servers read as the same, and returns the lines of the field itself.
fn taken(headers: &mut HeaderMap, name: &HeaderName) -> Vec<HeaderValue> {
    identity::take_twins(headers, std::slice::from_ref(name));
    let lines = headers.get_all(name).iter().cloned().collect();
    headers.remove(name);
    lines
}

/// Reads a time: whole milliseconds of at most ten digits, or what gRPC writes, at most eight digits and a unit.
fn time_of(name: &HeaderName, lines: &[HeaderValue]) -> Option<Duration> {
    let [line] = lines else { return None };
    let text = line.as_bytes();
    let (digits, most, unit) = if name.as_str() == GRPC_TIMEOUT {
        let (unit, digits) = text.split_last()?;
        let unit = match unit {
            b'H' => Duration::from_secs(3600),
            b'M' => Duration::from_secs(60),
            b'S' => Duration::from_secs(1),
            b'm' => Duration::from_millis(1),
            b'u' => Duration::from_micros(1),
            b'n' => Duration::from_nanos(1),
            _ => return None,
        };
        (digits, 8, unit)
    } else {
        (text, 10, Duration::from_millis(1))
    };
    if digits.is_empty() || digits.len() > most || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits
        .iter()
        .fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0'));
    let nanos = unit.as_nanos().saturating_mul(u128::from(number));
    Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
}

/// Writes the time that is left, in the form of this field; never zero, which would be over before it arrives.
pub(super) fn left_as(name: &HeaderName, left: Duration) -> HeaderValue {
    let millis = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1);
    let text = if name.as_str() != GRPC_TIMEOUT {
        millis.min(9_999_999_999).to_string()
    } else if millis < 100_000_000 {
        format!("{millis}m")
    } else {
        format!("{}S", (millis / 1000).min(99_999_999))
    };
    // Digits and a letter.
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(name: &'static str, lines: &[&'static str]) -> Option<Duration> {
        let lines: Vec<HeaderValue> = lines.iter().map(|line| HeaderValue::from_static(line)).collect();
        time_of(&HeaderName::from_static(name), &lines)
    }

    #[test]
    fn times_are_milliseconds_or_what_grpc_writes_and_nothing_else() {
        let ms = Duration::from_millis;
        for (text, expected) in [
            ("0", Some(ms(0))),
            ("250", Some(ms(250))),
            ("9999999999", Some(ms(9_999_999_999))),
            ("10000000000", None),
            ("", None),
            ("-1", None),
            ("1.5", None),
            (" 1", None),
            ("1s", None),
        ] {
            assert_eq!(time("x-timeout", &[text]), expected, "{text}");
        }
        for (text, expected) in [
            ("1H", Some(Duration::from_secs(3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("3S", Some(Duration::from_secs(3))),
            ("99999999m", Some(ms(99_999_999))),
            ("1500u", Some(Duration::from_micros(1500))),
            ("7n", Some(Duration::from_nanos(7))),
            ("99999999H", Some(Duration::from_nanos(u64::MAX))),
            ("100000000m", None),
            ("m", None),
            ("1", None),
            ("1s", None),
            ("1mm", None),
        ] {
            assert_eq!(time(GRPC_TIMEOUT, &[text]), expected, "{text}");
        }
        assert_eq!(time("x-timeout", &["1", "1"]), None);
    }

    /// Whatever arrives: a time is read exactly, or not at all, and what is written is read again as no more.
    #[test]
    fn what_is_written_is_read_again() {
        let mut draws = Rng::new(3);
        let names = [
            HeaderName::from_static("x-timeout"),
            HeaderName::from_static(GRPC_TIMEOUT),
        ];
        for _ in 0..20_000 {
            let left = Duration::from_nanos(draws.next_u64() >> (draws.next_u64() % 64));
            for name in &names {
                let read = time_of(name, &[left_as(name, left)]).unwrap();
                assert!(read <= left.max(Duration::from_millis(1)), "{left:?} {read:?}");
            }
            let bytes: Vec<u8> = (0..draws.next_u64() % 12)
                .map(|_| b"0123456789HMSmun -"[usize::try_from(draws.next_u64() % 18).unwrap()])
                .collect();
            let line = HeaderValue::from_bytes(&bytes).unwrap();
            let is_number = |digits: &[u8], most| {
                !digits.is_empty() && digits.len() <= most && digits.iter().all(u8::is_ascii_digit)
            };
            assert_eq!(
                time_of(&names[0], std::slice::from_ref(&line)).is_some(),
                is_number(&bytes, 10)
            );
            let grpc = bytes
                .split_last()
                .is_some_and(|(unit, digits)| b"HMSmun".contains(unit) && is_number(digits, 8));
            assert_eq!(time_of(&names[1], &[line]).is_some(), grpc);
        }
    }
}
