//! Decides which route a path belongs to: the most specific one, literal before one segment before the rest.
//! It exists as a tree, so that the cost depends on the path and not on the number of routes.
//! It refuses paths with dot segments: upstream and gateway could read them as different paths.

use std::collections::HashMap;

use crate::config::{
    Rank,
    pattern::{Pattern, Segment},
};

/// The routes of a contract, by their paths.
#[derive(Debug, Default)]
pub(crate) struct Router(Node);

#[derive(Debug, Default)]
struct Node {
    literal: HashMap<String, Self>,
    one: Option<Box<Self>>,
    /// The routes that cover everything below, the narrowest conditions first; so in `end`.
    rest: Vec<(Rank, usize)>,
    end: Vec<(Rank, usize)>,
}

impl Router {
    /// Adds a route under a number. Of several with the same paths the one with the narrowest conditions is asked
    /// first; contracts in which two conflict are refused.
    pub(crate) fn add(&mut self, pattern: &Pattern, rank: Rank, route: usize) {
        let mut node = &mut self.0;
        for segment in pattern.segments() {
            node = match segment {
                Segment::Literal(text) => node.literal.entry(text.clone()).or_default(),
                Segment::One(_) => node.one.get_or_insert_default(),
                Segment::Rest(_) => {
                    insert(&mut node.rest, rank, route);
                    return;
                }
            };
        }
        insert(&mut node.end, rank, route);
    }

    /// Returns the number of the most specific route for a path that also covers the rest of the request.
    ///
    /// At each segment a literal is preferred to `{name}` and that to `{name..}`, from left to right. Each node
    /// of the tree is visited once at most, whatever the path.
    pub(crate) fn find(&self, path: &str, mut covers: impl FnMut(usize) -> bool) -> Option<usize> {
        self.0.find(path.strip_prefix('/')?, &mut covers)
    }
}

/// Inserts before what is less narrow.
fn insert(routes: &mut Vec<(Rank, usize)>, rank: Rank, route: usize) {
    let place = routes.partition_point(|(other, _)| *other >= rank);
    routes.insert(place, (rank, route));
}

impl Node {
    fn find(&self, left: &str, covers: &mut impl FnMut(usize) -> bool) -> Option<usize> {
        let (segment, rest) = match left.split_once('/') {
            Some((segment, rest)) => (segment, Some(rest)),
            None => (left, None),
        };
        let one = self.one.as_deref().filter(|_| !segment.is_empty());
        for node in self.literal.get(segment).into_iter().chain(one) {
            let found = match rest {
                Some(rest) => node.find(rest, covers),
                None => first(&node.end, covers),
            };
            if found.is_some() {
                return found;
            }
        }
        first(&self.rest, covers)
    }
}

fn first(routes: &[(Rank, usize)], covers: &mut impl FnMut(usize) -> bool) -> Option<usize> {
    routes
        .iter()
        .map(|(_, route)| *route)
        .find(|route| covers(*route))
}

/// Tells whether a path has a segment that means "here" or "one up", in any spelling that an upstream might undo:
/// percent-encoding, a backslash for a slash, parameters behind a semicolon.
pub(crate) fn has_dot_segment(path: &str) -> bool {
    // Nearly no segment begins with a dot, plain or encoded: one scan settles it.
    let mut begins = true;
    let mut left = path.as_bytes();
    while let Some((byte, bytes)) = next(left) {
        if begins && byte == b'.' && is_dots(left) {
            return true;
        }
        begins = is_slash(byte);
        left = bytes;
    }
    false
}

/// Tells whether a segment that begins here is one dot or two.
fn is_dots(mut left: &[u8]) -> bool {
    for dots in 0..=2 {
        match next(left) {
            None => return dots > 0,
            Some((b'.', rest)) => left = rest,
            Some((byte, _)) => return dots > 0 && (byte == b';' || is_slash(byte)),
        }
    }
    false
}

const fn is_slash(byte: u8) -> bool {
    matches!(byte, b'/' | b'\\')
}

/// Splits off the first character, read out of its percent-encoding if it is one that matters here.
fn next(path: &[u8]) -> Option<(u8, &[u8])> {
    if let [b'%', high, low, rest @ ..] = path {
        match (high, low.to_ascii_lowercase()) {
            (b'2', b'e') => return Some((b'.', rest)),
            (b'2', b'f') => return Some((b'/', rest)),
            (b'3', b'b') => return Some((b';', rest)),
            (b'5', b'c') => return Some((b'\\', rest)),
            _ => {}
        }
    }
    path.split_first().map(|(byte, rest)| (*byte, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Conditions;

    fn router(patterns: &[&str]) -> Router {
        let mut router = Router::default();
        for (number, pattern) in patterns.iter().enumerate() {
            router.add(
                &Pattern::parse(pattern).unwrap(),
                Conditions::default().rank(),
                number,
            );
        }
        router
    }

    #[test]
    fn the_most_specific_route_wins_in_any_order_of_the_file() {
        let patterns = ["/{a..}", "/p/{id}", "/p/new", "/p/{id}/x", "/p/{b..}"];
        for turn in 0..patterns.len() {
            let mut turned = patterns;
            turned.rotate_left(turn);
            let router = router(&turned);
            let found = |path| router.find(path, |_| true).map(|number| turned[number]);
            assert_eq!(found("/p/new"), Some("/p/new"));
            assert_eq!(found("/p/7"), Some("/p/{id}"));
            assert_eq!(found("/p/7/x"), Some("/p/{id}/x"));
            assert_eq!(found("/p/new/x"), Some("/p/{id}/x"));
            assert_eq!(found("/p/7/y"), Some("/p/{b..}"));
            assert_eq!(found("/p/"), Some("/p/{b..}"));
            assert_eq!(found("/p"), Some("/{a..}"));
            assert_eq!(found("/"), Some("/{a..}"));
            assert_eq!(found("*"), None);
        }
    }

    #[test]
    fn a_route_that_does_not_cover_the_request_leaves_it_to_the_next_and_the_narrowest_is_asked_first() {
        let mut router = Router::default();
        let narrow = Conditions {
            methods: vec![http::Method::POST],
            ..Conditions::default()
        };
        let all = Conditions::default().rank();
        for (pattern, rank, number) in [
            ("/p/{id}", all, 0),
            ("/p/{id}", narrow.rank(), 1),
            ("/{rest..}", all, 2),
            ("/p/new", narrow.rank(), 3),
        ] {
            router.add(&Pattern::parse(pattern).unwrap(), rank, number);
        }
        let asked = |path, wanted: usize| {
            let mut asked = Vec::new();
            let found = router.find(path, |number| {
                asked.push(number);
                number == wanted
            });
            (found, asked)
        };
        assert_eq!(asked("/p/new", 0), (Some(0), vec![3, 1, 0]));
        assert_eq!(asked("/p/new", 2), (Some(2), vec![3, 1, 0, 2]));
        assert_eq!(asked("/p/new", 9), (None, vec![3, 1, 0, 2]));
        assert_eq!(asked("/p/1", 1), (Some(1), vec![1]));
    }

    #[test]
    fn one_segment_is_never_empty_and_a_slash_at_the_end_counts() {
        let router = router(&["/a/{b}", "/c"]);
        assert_eq!(router.find("/a/", |_| true), None);
        assert_eq!(router.find("/a/1", |_| true), Some(0));
        assert_eq!(router.find("/a/1/", |_| true), None);
        assert_eq!(router.find("/c/", |_| true), None);
        assert_eq!(router.find("/C", |_| true), None);
    }

    #[test]
    fn dot_segments_are_seen_in_every_spelling() {
        for path in [
            "/.",
            "/a/..",
            "/a/../b",
            "/%2e",
            "/.%2E/x",
            "/%2E%2e",
            "/a/..%2fb",
            "/a%2F..",
            "/a/..;x=1/b",
            "/..%3b",
            "/a/..\\b",
            "/a%5c..%5Cb",
            "/.;",
            "/..;",
        ] {
            assert!(has_dot_segment(path), "{path}");
        }
        for path in [
            "",
            "/",
            "/a.b",
            "/.well-known",
            "/...",
            "/%2f",
            "/a/.b",
            "/a..",
            "/a..;b",
            "/..a",
            "/%2",
            "/%2e%2e%2e",
            "/a;..",
            "/...;x",
            "/%252e%252e",
        ] {
            assert!(!has_dot_segment(path), "{path}");
        }
    }
}
