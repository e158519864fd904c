//! Decides what a path pattern matches and which of two patterns is the more specific one.
//! It exists so that a request has one route, the same at every run, whatever the order in the file.
//! It refuses patterns that could match the same paths equally well.

use std::fmt;

/// One segment of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Exactly this text.
    Literal(String),
    /// One segment, not empty, under this name.
    One(String),
    /// Everything that is left, possibly nothing, under this name. Always last.
    Rest(String),
}

/// A path pattern such as `/products/{id}`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Pattern(Vec<Segment>);

/// The most segments in one pattern.
pub const SEGMENTS_MAX: usize = 32;

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with it, in a few words.
    ///
    /// ```
    /// use evenkeel_gateway::config::pattern::Pattern;
    /// assert!(Pattern::parse("/products/{id}").is_ok());
    /// assert!(Pattern::parse("/files/{path..}").is_ok());
    /// assert_eq!(Pattern::parse("products").unwrap_err(), "it does not start with a slash");
    /// ```
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let Some(path) = text.strip_prefix('/') else {
            return Err("it does not start with a slash");
        };
        let mut segments: Vec<Segment> = Vec::new();
        for part in path.split('/') {
            if matches!(segments.last(), Some(Segment::Rest(_))) {
                return Err("something follows the rest");
            }
            if segments.len() == SEGMENTS_MAX {
                return Err("it has more than 32 segments");
            }
            let segment = Self::segment(part)?;
            if let Some(name) = segment.name()
                && segments.iter().any(|earlier| earlier.name() == Some(name))
            {
                return Err("two parts have the same name");
            }
            segments.push(segment);
        }
        Ok(Self(segments))
    }

    fn segment(part: &str) -> Result<Segment, &'static str> {
        let Some(inner) = part.strip_prefix('{') else {
            // Read as text they would cover next to nothing, and whoever wrote them means much.
            if matches!(part, "*" | "**") || part.starts_with(':') {
                return Err("`*` and `:name` are no wildcards here");
            }
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@%".contains(&byte);
            return if matches!(part, "." | "..") || !part.bytes().all(plain) {
                Err("a segment holds characters that no path segment has")
            } else {
                Ok(Segment::Literal(part.to_owned()))
            };
        };
        let Some(inner) = inner.strip_suffix('}') else {
            return Err("a brace is not closed at the end of its segment");
        };
        let (name, rest) = inner
            .strip_suffix("..")
            .map_or((inner, false), |name| (name, true));
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if name.is_empty() || !name.bytes().all(fits) {
            return Err("a name in braces is not made of A-Z a-z 0-9 - _");
        }
        Ok(if rest {
            Segment::Rest(name.to_owned())
        } else {
            Segment::One(name.to_owned())
        })
    }

    /// Returns the pattern of these segments, which are those of another one, read in some way.
    pub(crate) const fn of_segments(segments: Vec<Segment>) -> Self {
        Self(segments)
    }

    /// Tells whether it covers everything below a place.
    pub(crate) fn has_rest(&self) -> bool {
        matches!(self.0.last(), Some(Segment::Rest(_)))
    }

    /// Returns the segments.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Tells whether a part has this name.
    #[must_use]
    pub fn names(&self, name: &str) -> bool {
        self.0.iter().any(|segment| segment.name() == Some(name))
    }

    /// Tells whether both patterns match exactly the same paths.
    #[must_use]
    pub fn same_paths(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self.0.iter().zip(&other.0).all(|pair| match pair {
                (Segment::Literal(left), Segment::Literal(right)) => left == right,
                (Segment::One(_), Segment::One(_)) | (Segment::Rest(_), Segment::Rest(_)) => true,
                (Segment::Literal(_) | Segment::One(_) | Segment::Rest(_), _) => false,
            })
    }

    /// Returns the part of a path that a name stands for, if the path is one that this pattern matches.
    ///
    /// ```
    /// use evenkeel_gateway::config::pattern::Pattern;
    /// let pattern = Pattern::parse("/{locale}/files/{path..}").unwrap();
    /// assert_eq!(pattern.part("/de/files/a/b", "locale"), Some("de"));
    /// assert_eq!(pattern.part("/de/files/a/b", "path"), Some("a/b"));
    /// ```
    #[must_use]
    pub fn part<'p>(&self, path: &'p str, name: &str) -> Option<&'p str> {
        let mut left = path.strip_prefix('/')?;
        for segment in &self.0 {
            if let Segment::Rest(own) = segment {
                return (own == name).then_some(left);
            }
            let (part, rest) = left.split_once('/').unwrap_or((left, ""));
            if segment.name() == Some(name) {
                return Some(part);
            }
            left = rest;
        }
        None
    }
}

impl Segment {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Literal(_) => None,
            Self::One(name) | Self::Rest(name) => Some(name),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.0 {
            match segment {
                Segment::Literal(text) => write!(f, "/{text}")?,
                Segment::One(name) => write!(f, "/{{{name}}}")?,
                Segment::Rest(name) => write!(f, "/{{{name}..}}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_reads_back_as_it_was_written() {
        for text in ["/", "/a", "/a/", "/a/{b}/c", "/{x..}", "/a/{b}/{c..}", "/a:b/c*"] {
            assert_eq!(Pattern::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_could_be_misread_is_refused() {
        for text in [
            "", "a", "/{}", "/{a", "/a}", "/{a}b", "/{a..}/b", "/{a}/{a}", "/a?b", "/a b", "/..", "/{a.}",
            "/{a...}", "/*", "/a/**", "/a/:id",
        ] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
        assert!(Pattern::parse(&"/a".repeat(SEGMENTS_MAX)).is_ok());
        assert!(Pattern::parse(&"/a".repeat(SEGMENTS_MAX + 1)).is_err());
    }

    #[test]
    fn names_do_not_tell_patterns_apart() {
        let pattern = |text| Pattern::parse(text).unwrap();
        assert!(pattern("/a/{b}").same_paths(&pattern("/a/{c}")));
        assert!(!pattern("/a/{b}").same_paths(&pattern("/a/{b..}")));
        assert!(!pattern("/a/{b}").same_paths(&pattern("/a/b")));
    }
}
