//! Decides where one element of a header field ends and the next begins: tokens, optional whitespace, quoted
//! strings, comma lists.
//! It exists so that every field is read by the same few functions, over borrowed bytes and without
//! allocation.
//! It refuses to repair: text outside the grammar of RFC 9110 §5.6 is reported as such and never guessed at.

/// Tells whether a byte may appear in a token (RFC 9110 §5.6.2).
pub(crate) const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// Tells whether the text is one non-empty token.
pub(crate) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().copied().all(is_token_byte)
}

/// Tells whether a byte is optional whitespace: SP or HTAB.
pub(crate) const fn is_ows(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Removes optional whitespace (SP, HTAB) from both ends.
pub(crate) fn trim_ows(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_ows(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_ows(*last)
    {
        text = rest;
    }
    text
}

/// Yields the non-empty elements of a comma list that has no quoted strings in it (`Connection`, `Vary`,
/// `TE`).
pub(crate) fn list_elements(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b',')
        .map(trim_ows)
        .filter(|element| !element.is_empty())
}

/// One element of a list of directives: `name`, `name=token` or `name="text"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Directive<'a> {
    /// The name as written; compare without regard to case.
    pub(crate) name: &'a [u8],
    /// What follows the name.
    pub(crate) argument: Argument<'a>,
}

/// What follows the name of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Argument<'a> {
    /// Nothing.
    Absent,
    /// A token, or the inside of a quoted string (its escapes not undone).
    Text(&'a [u8]),
    /// Something outside the grammar; the element must not be relied on.
    Broken,
}

/// Yields the directives of one field line. Each call consumes at least one byte, so it ends after at most
/// `line.len()` calls.
pub(crate) struct Directives<'a> {
    rest: &'a [u8],
}

impl<'a> Directives<'a> {
    pub(crate) const fn of(line: &'a [u8]) -> Self {
        Self { rest: line }
    }

    /// Takes the longest prefix whose bytes all satisfy the predicate.
    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self
            .rest
            .iter()
            .position(|byte| !wanted(*byte))
            .unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    /// Takes the inside of a quoted string whose opening quote is the next byte; `None` if it never closes.
    fn take_quoted(&mut self) -> Option<&'a [u8]> {
        let inside = self.rest.get(1..)?;
        let mut escaped = false;
        for (at, byte) in inside.iter().enumerate() {
            match (escaped, byte) {
                (true, _) => escaped = false,
                (false, b'\\') => escaped = true,
                (false, b'"') => {
                    self.rest = inside.get(at + 1..).unwrap_or_default();
                    return inside.get(..at);
                }
                (false, _) => {}
            }
        }
        None
    }

    fn take_argument(&mut self) -> Argument<'a> {
        let Some((b'=', rest)) = self.rest.split_first() else {
            return Argument::Absent;
        };
        self.rest = rest;
        let text = if self.rest.first() == Some(&b'"') {
            self.take_quoted()
        } else {
            Some(self.take_while(is_token_byte)).filter(|token| !token.is_empty())
        };
        text.map_or(Argument::Broken, Argument::Text)
    }
}

impl<'a> Iterator for Directives<'a> {
    type Item = Directive<'a>;

    fn next(&mut self) -> Option<Directive<'a>> {
        // RFC 9110 §5.6.1.2: empty list elements are to be accepted and ignored.
        self.take_while(|byte| byte == b',' || is_ows(byte));
        if self.rest.is_empty() {
            return None;
        }
        let name = self.take_while(is_token_byte);
        let mut argument = if name.is_empty() {
            Argument::Broken
        } else {
            self.take_argument()
        };
        // Whatever stands before the next comma makes the element unreadable; reading goes on behind that
        // comma, so that a prohibition later in the line is still seen.
        let tail = self.take_while(|byte| byte != b',');
        if !trim_ows(tail).is_empty() {
            argument = Argument::Broken;
        }
        Some(Directive { name, argument })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Vec<(String, Option<String>)> {
        Directives::of(line.as_bytes())
            .map(|directive| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let argument = match directive.argument {
                    Argument::Absent => None,
                    Argument::Text(bytes) => Some(text(bytes)),
                    Argument::Broken => Some("BROKEN".to_owned()),
                };
                (text(directive.name), argument)
            })
            .collect()
    }

    fn pair(name: &str, argument: Option<&str>) -> (String, Option<String>) {
        (name.to_owned(), argument.map(str::to_owned))
    }

    #[test]
    fn a_comma_inside_a_quoted_string_does_not_end_the_element() {
        assert_eq!(
            read(r#"private="a, no-store", max-age=5"#),
            [pair("private", Some("a, no-store")), pair("max-age", Some("5"))]
        );
    }

    #[test]
    fn an_escaped_quote_does_not_end_the_string() {
        assert_eq!(
            read(r#"x="a\"b,c", y"#),
            [pair("x", Some(r#"a\"b,c"#)), pair("y", None)]
        );
    }

    #[test]
    fn empty_elements_and_odd_whitespace_are_skipped() {
        assert_eq!(
            read(", ,\t public ,, max-age=1 ,"),
            [pair("public", None), pair("max-age", Some("1"))]
        );
        assert_eq!(read(""), []);
        assert_eq!(read(" , "), []);
    }

    #[test]
    fn text_outside_the_grammar_is_broken_and_later_elements_are_still_seen() {
        assert_eq!(
            read("max-age =5, no-store"),
            [pair("max-age", Some("BROKEN")), pair("no-store", None)]
        );
        assert_eq!(
            read("=5, no-store"),
            [pair("", Some("BROKEN")), pair("no-store", None)]
        );
        assert_eq!(
            read(r#"x="open, no-store"#),
            [pair("x", Some("BROKEN")), pair("no-store", None)]
        );
        assert_eq!(read(r#"x="a"b"#), [pair("x", Some("BROKEN"))]);
        assert_eq!(read("private="), [pair("private", Some("BROKEN"))]);
    }
}
