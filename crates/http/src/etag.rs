//! Decides what an entity tag is and when two of them match, weakly or strongly (RFC 9110 §8.8.3).
//! It exists because the two comparisons are not interchangeable: a weak match must never join byte ranges.
//! It refuses to mend tags: what is outside the grammar matches nothing.

use http::header::{ETAG, HeaderMap};

/// One entity tag, borrowed from its field.
///
/// ```
/// use evenkeel_http::etag::EntityTag;
///
/// let strong = EntityTag::parse(b"\"v1\"").unwrap();
/// let weak = EntityTag::parse(b"W/\"v1\"").unwrap();
/// assert!(strong.weakly_matches(weak));
/// assert!(!strong.strongly_matches(weak));
/// assert_eq!(EntityTag::parse(b"v1"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityTag<'a> {
    weak: bool,
    opaque: &'a [u8],
}

impl<'a> EntityTag<'a> {
    /// Reads one entity tag; `None` for anything else, a list included.
    #[must_use]
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        let (tag, rest) = Self::take(text)?;
        rest.is_empty().then_some(tag)
    }

    /// Reads the `ETag` of a message; `None` if absent, repeated or not a tag.
    #[must_use]
    pub fn of(headers: &'a HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all(ETAG).iter();
        let tag = Self::parse(lines.next()?.as_bytes())?;
        lines.next().is_none().then_some(tag)
    }

    /// Takes one tag from the front of a text; tags may hold commas, so a list is not split before.
    pub(crate) fn take(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (weak, quoted) = text
            .strip_prefix(b"W/")
            .map_or((false, text), |quoted| (true, quoted));
        let inside = quoted.strip_prefix(b"\"")?;
        let end = inside.iter().position(|byte| *byte == b'"')?;
        let (opaque, rest) = inside.split_at_checked(end)?;
        let tag = Self { weak, opaque };
        opaque
            .iter()
            .all(|byte| matches!(byte, 0x21 | 0x23..=0x7e | 0x80..))
            .then_some((tag, rest.get(1..)?))
    }

    /// Tells whether it is marked weak: equal meaning, not equal bytes.
    #[must_use]
    pub const fn is_weak(self) -> bool {
        self.weak
    }

    /// Tells whether the opaque parts are equal: the comparison for `If-None-Match` (H19).
    #[must_use]
    pub fn weakly_matches(self, other: EntityTag<'_>) -> bool {
        self.opaque == other.opaque
    }

    /// Tells whether both are strong and equal: the comparison for ranges, and for finding the copy that a 304
    /// speaks of (H19, H20, C23).
    #[must_use]
    pub fn strongly_matches(self, other: EntityTag<'_>) -> bool {
        !self.weak && !other.weak && self.opaque == other.opaque
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;
    use proptest::prelude::*;

    fn tag(text: &str) -> EntityTag<'_> {
        EntityTag::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn h19_weak_and_strong_comparison_are_those_of_the_table_in_rfc_9110() {
        for (left, right, strong, weak) in [
            ("W/\"1\"", "W/\"1\"", false, true),
            ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true),
            ("\"1\"", "\"1\"", true, true),
        ] {
            assert_eq!(tag(left).strongly_matches(tag(right)), strong, "{left} {right}");
            assert_eq!(tag(left).weakly_matches(tag(right)), weak, "{left} {right}");
        }
    }

    #[test]
    fn text_outside_the_grammar_is_no_tag() {
        for text in [
            "",
            "a",
            "\"",
            "\"a",
            "a\"",
            "w/\"a\"",
            "W\"a\"",
            "\"a b\"",
            "\"a\" ",
            "\"a\", \"b\"",
            "*",
        ] {
            assert_eq!(EntityTag::parse(text.as_bytes()), None, "{text}");
        }
        assert!(EntityTag::parse("\"ü,\"".as_bytes()).is_some());
        assert!(EntityTag::parse(b"\"\"").is_some());
    }

    #[test]
    fn a_repeated_etag_field_counts_as_none() {
        assert_eq!(
            EntityTag::of(&headers([("etag", "\"a\""), ("etag", "\"a\"")])),
            None
        );
        assert!(EntityTag::of(&headers([("etag", "W/\"a\"")])).unwrap().is_weak());
    }

    proptest! {
        #[test]
        fn a_strong_match_is_a_weak_match(left in any::<Vec<u8>>(), right in any::<Vec<u8>>()) {
            if let (Some(left), Some(right)) = (EntityTag::parse(&left), EntityTag::parse(&right)) {
                prop_assert!(!left.strongly_matches(right) || left.weakly_matches(right));
            }
        }
    }
}
