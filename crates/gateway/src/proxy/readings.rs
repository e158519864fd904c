//! Decides whether a request that an open route takes could be read as one for a route with a door.
//! It exists because routes are found by what is written, and many servers undo encodings, merge slashes, cut parameters off,
//! and take large letters for small ones: what is open as it is written may be somebody's private page as it is read.
//! It refuses nothing that has the same door in every reading, and changes no target.

use std::{borrow::Cow, sync::Arc};

use http::{HeaderValue, Method, request::Parts};

use super::{authority, router::Router, served::Served};
use crate::config::pattern::{Pattern, Segment};

/// The routes of a contract by their paths, as the most generous reader has them.
#[derive(Debug, Default)]
pub(super) struct Readings {
    router: Router,
    patterns: Vec<Pattern>,
    /// Somebody is asked on one route at least; elsewhere there is no door to go around.
    has_doors: bool,
    /// A pattern is written otherwise than it is read here.
    is_unusual: bool,
}

impl Readings {
    /// Adds a route under the number that it has in the list of all.
    pub(super) fn add(&mut self, pattern: &Pattern, served: &Served) {
        let mut segments: Vec<Segment> = Vec::new();
        let all = pattern.segments();
        for (place, segment) in all.iter().enumerate() {
            match segment {
                Segment::Literal(text) => {
                    let read = segment_read(text.as_bytes());
                    self.is_unusual |= read != *text || (read.is_empty() && all.len() > 1);
                    if !read.is_empty() || (place == 0 && all.len() == 1) {
                        segments.push(Segment::Literal(read));
                    }
                }
                other @ (Segment::One(_) | Segment::Rest(_)) => segments.push(other.clone()),
            }
        }
        let pattern = Pattern::of_segments(segments);
        self.router
            .add(&pattern, served.conditions.rank(), self.patterns.len());
        self.patterns.push(pattern);
        self.has_doors |= served.gate.is_some();
    }

    /// Tells whether a request that this route takes as it is written belongs, in another reading, behind a door that is not
    /// that route's.
    pub(super) fn lead_past_a_door(
        &self,
        (list, found): (&[Served], usize),
        request: &Parts,
        host: &HeaderValue,
    ) -> bool {
        if !self.has_doors {
            return false;
        }
        let written = request.uri.path();
        let path = path_read(written);
        let method = method_read(&request.method);
        let name = authority::host(host);
        let host = name.strip_suffix('.').unwrap_or(name);
        let is_as_written = matches!((&path, &method), (Cow::Borrowed(_), Cow::Borrowed(_)));
        if is_as_written && host.len() == name.len() && !self.is_unusual {
            return false;
        }
        let is_past = |path: &str, counts: fn(&Pattern) -> bool| {
            let door = self.router.find(path, |number| {
                list.get(number).is_some_and(|served| {
                    served.conditions.take(&method)
                        && served.conditions.cover_but_for_the_method(host, &request.headers)
                })
            });
            door.is_some_and(|door| self.is_another(list, found, door, counts))
        };
        // A slash at the end is one segment more to some, and nothing to others. Where everything below a place has a door,
        // the longer of the two is below it too.
        is_past(&path, |_| true)
            || path
                .strip_suffix('/')
                .is_some_and(|path| is_past(path, |door| !door.has_rest()))
    }

    fn is_another(&self, list: &[Served], found: usize, door: usize, counts: fn(&Pattern) -> bool) -> bool {
        let at = |number: usize| list.get(number).zip(self.patterns.get(number));
        let (Some((here, written)), Some((there, read))) = (at(found), at(door)) else {
            return false;
        };
        let authority = |served: &Served| served.gate.as_ref().map(|gate| Arc::clone(&gate.authority));
        // Who writes two patterns that differ in their spelling alone tells them apart, and so does what is behind.
        let is_twin = written.same_paths(read) && here.conditions.rank() == there.conditions.rank();
        there.gate.is_some() && authority(here) != authority(there) && !is_twin && counts(read)
    }
}

/// Returns a method as servers read it that take small letters for large ones.
fn method_read(method: &Method) -> Cow<'_, Method> {
    let text = method.as_str();
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        return Cow::Borrowed(method);
    }
    Method::from_bytes(text.to_ascii_uppercase().as_bytes()).map_or(Cow::Borrowed(method), Cow::Owned)
}

/// Returns a path in its most generous reading; borrowed if that is the path itself.
fn path_read(path: &str) -> Cow<'_, str> {
    let mut before = 0;
    let is_plain = path.bytes().all(|byte| {
        let plain = byte.is_ascii_lowercase()
            || byte.is_ascii_digit()
            || matches!(byte, b'-' | b'.' | b'_')
            || (byte == b'/' && before != b'/');
        before = byte;
        plain
    });
    if is_plain && (path.len() < 2 || !path.ends_with('/')) {
        return Cow::Borrowed(path);
    }
    let decoded = decoded(path.as_bytes());
    let mut read = String::with_capacity(path.len());
    let mut is_last_empty = true;
    for segment in decoded.split(|byte| matches!(byte, b'/' | b'\\')) {
        let segment = plain_segment(segment);
        is_last_empty = segment.is_empty();
        if !is_last_empty {
            read.push('/');
            read.push_str(&segment);
        }
    }
    if is_last_empty {
        read.push('/');
    }
    Cow::Owned(read)
}

/// Returns one segment of a pattern, read as those of paths are.
fn segment_read(segment: &[u8]) -> String {
    plain_segment(&decoded(segment))
}

/// Undoes percent-encoding once.
fn decoded(text: &[u8]) -> Vec<u8> {
    let digit = |byte: &u8| {
        char::from(*byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let mut decoded = Vec::with_capacity(text.len());
    let mut left = text;
    while let [byte, rest @ ..] = left {
        left = rest;
        if *byte == b'%'
            && let [high, low, after @ ..] = rest
            && let Some((high, low)) = digit(high).zip(digit(low))
        {
            decoded.push(high << 4 | low);
            left = after;
        } else {
            decoded.push(*byte);
        }
    }
    decoded
}

/// Returns a decoded segment in small letters, without what is cut off at a semicolon, a question mark, a number sign or a
/// zero byte, and without white space at its ends. Each byte is one character: this is compared and never shown.
fn plain_segment(segment: &[u8]) -> String {
    let end = segment
        .iter()
        .position(|byte| matches!(byte, b';' | b'?' | b'#' | 0))
        .unwrap_or(segment.len());
    let kept = segment.get(..end).unwrap_or(segment);
    let is_blank = |character: char| character <= ' ';
    let text: String = kept.iter().map(|byte| char::from(*byte)).collect();
    text.trim_matches(is_blank).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_small_letters_and_nothing_to_undo_is_read_as_it_is_written() {
        for path in ["/", "/a", "/a/b-c_d.e/1", "/a.b"] {
            assert!(
                matches!(path_read(path), Cow::Borrowed(read) if read == path),
                "{path}"
            );
        }
    }

    #[test]
    fn every_spelling_of_one_path_has_one_reading() {
        for (path, read) in [
            ("//", "/"),
            ("/a/", "/a/"),
            ("/a//", "/a/"),
            ("//a", "/a"),
            ("/A", "/a"),
            ("/%61", "/a"),
            ("/%41", "/a"),
            ("/a%2fb", "/a/b"),
            ("/a%5Cb\\c", "/a/b/c"),
            ("/a;x=/b", "/a/b"),
            ("/;x/a", "/a"),
            ("/a/;x", "/a/"),
            ("/a%3fx%23/b", "/a/b"),
            ("/a%00b/%20%09c%0a", "/a/c"),
            ("/%2561", "/%61"),
            ("/%", "/%"),
            ("/%4", "/%4"),
            ("/%zz", "/%zz"),
            ("/%c3%A4", "/\u{c3}\u{a4}"),
        ] {
            assert_eq!(path_read(path), read, "{path}");
        }
    }
}
