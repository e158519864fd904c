//! Decides what a request says about the trace that it belongs to, and what is said of it to the next one.
//! It exists because a trace that breaks at a proxy shows half of what happened, and a forged one shows nonsense.
//! It refuses ids that are not of the form: such a request begins a trace of its own, and what others noted about the old one
//! goes with it.
//!
//! Source: W3C Trace Context, version 00 (rules TR1 and TR2).

use http::{HeaderMap, HeaderName, HeaderValue};

/// The field with the id of the trace and of the caller.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The field in which systems on the way keep notes about the trace.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The most members of `tracestate`.
const MEMBERS_MAX: usize = 32;
/// The most bytes of `tracestate` that are passed on; whole members are dropped beyond that, the last ones first.
const STATE_MAX: usize = 512;
/// The flags that version 00 and 01 know: sampled, and a random id.
const FLAGS: u8 = 0b11;

/// A trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    id: u128,
    flags: u8,
}

impl Trace {
    /// Begins a trace with a random id; zero is no id, so it counts as one.
    #[must_use]
    pub const fn begin(id: u128) -> Self {
        Self {
            id: if id == 0 { 1 } else { id },
            flags: 0b10,
        }
    }

    /// Reads the trace of a request: one line of `traceparent`, of the form of version 00, or longer where the version is
    /// higher.
    ///
    /// ```
    /// # use evenkeel_http::trace::{TRACEPARENT, Trace};
    /// # use http::{HeaderMap, HeaderValue};
    /// let line = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    /// let fields = HeaderMap::from_iter([(TRACEPARENT, HeaderValue::from_static(line))]);
    /// let trace = Trace::of(&fields).unwrap();
    /// assert_eq!(trace.id(), "4bf92f3577b34da6a3ce929d0e0e4736");
    /// assert_eq!(trace.parent(7), "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000007-01");
    /// ```
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all(&TRACEPARENT).iter();
        let line = lines.next()?.as_bytes();
        if lines.next().is_some() {
            return None;
        }
        let version = hex(line.get(..2)?)?;
        let is_known = version == 0 && line.len() == 55;
        let is_later = version > 0 && version < 0xff && (line.len() == 55 || line.get(55) == Some(&b'-'));
        if !(is_known || is_later) || [2, 35, 52].iter().any(|at| line.get(*at) != Some(&b'-')) {
            return None;
        }
        let id = hex(line.get(3..35)?)?;
        let parent = hex(line.get(36..52)?)?;
        let flags = u8::try_from(hex(line.get(53..55)?)?).ok()?;
        (id != 0 && parent != 0).then_some(Self {
            id,
            flags: flags & FLAGS,
        })
    }

    /// Returns the id, as logs and other systems write it.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{:032x}", self.id)
    }

    /// Returns what an attempt says in `traceparent`; `span` is its own id, of which zero counts as one.
    #[must_use]
    pub fn parent(&self, span: u64) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.id, span.max(1), self.flags)
    }
}

/// Joins the notes of a request about its trace to one line: in their order, no more members than 32, and no more bytes than
/// 512. `None` if there are none.
#[must_use]
pub fn state(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut joined = Vec::new();
    let lines = headers.get_all(&TRACESTATE).iter();
    let members = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    let members = members
        .map(<[u8]>::trim_ascii)
        .filter(|member| !member.is_empty());
    for member in members.take(MEMBERS_MAX) {
        if joined.len() + member.len() + 1 > STATE_MAX {
            break;
        }
        if !joined.is_empty() {
            joined.push(b',');
        }
        joined.extend_from_slice(member);
    }
    if joined.is_empty() {
        return None;
    }
    HeaderValue::from_bytes(&joined).ok()
}

/// Reads lower-case hexadecimal digits, at most 32.
fn hex(digits: &[u8]) -> Option<u128> {
    let mut number = 0;
    for digit in digits {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        number = number << 4 | u128::from(value);
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&'static str]) -> Option<Trace> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(TRACEPARENT, HeaderValue::from_static(line));
        }
        Trace::of(&headers)
    }

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn tr1_what_is_not_of_the_form_is_no_trace() {
        assert!(of(&[GOOD]).is_some());
        assert!(of(&["cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"]).is_some());
        assert!(of(&["cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"]).is_some());
        for line in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
            "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(of(&[line]), None, "{line}");
        }
        assert_eq!(of(&[GOOD, GOOD]), None, "said twice");
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn tr2_known_flags_are_kept_and_others_are_not() {
        let flags = |line| of(&[line]).unwrap().parent(1).split_off(53);
        assert_eq!(
            flags("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff"),
            "03"
        );
        assert_eq!(
            flags("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"),
            "00"
        );
        assert_eq!(
            Trace::begin(0).parent(0),
            "00-00000000000000000000000000000001-0000000000000001-02"
        );
    }

    #[test]
    fn tr2_notes_keep_their_order_and_lose_whole_members_from_the_end() {
        let joined = |lines: &[String]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(TRACESTATE, HeaderValue::try_from(line).unwrap());
            }
            state(&headers).map(|line| line.to_str().unwrap().to_owned())
        };
        assert_eq!(joined(&[]), None);
        assert_eq!(joined(&[" , ".to_owned()]), None);
        let lines = ["b=2 , a=1".to_owned(), "c=3".to_owned()];
        assert_eq!(joined(&lines).as_deref(), Some("b=2,a=1,c=3"));
        let many: Vec<String> = (0..40).map(|n| format!("k{n}=1")).collect();
        assert_eq!(joined(&many).unwrap().split(',').count(), 32);
        let long: Vec<String> = (0..3).map(|n| format!("k{n}={}", "x".repeat(250))).collect();
        assert_eq!(joined(&long).unwrap().split(',').count(), 2);
    }
}
