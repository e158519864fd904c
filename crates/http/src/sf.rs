//! Decides how names and numbers are written inside structured fields (RFC 9651), so that every label can be
//! parsed.
//! It exists because one quote or line break in a route's name must not spoil a header.
//! It refuses to fail: text that fits neither a token nor a string is escaped, text that is too long is cut,
//! numbers are clamped.

use std::fmt::Write as _;

use http::HeaderValue;

/// The most characters one text takes in a label, quotes and escapes of quotes not counted; the rest is cut
/// off.
pub(crate) const TEXT_MAX: usize = 128;

/// The greatest integer of a structured field, fifteen digits (RFC 9651 §3.3.1).
pub(crate) const INTEGER_MAX: i64 = 999_999_999_999_999;

/// Writes a text as a token if it is one, otherwise as a string.
///
/// Bytes outside printable ASCII, and those of every other character, are written as `%` and two hex digits:
/// `caf%c3%a9`. Older parsers know no other way to carry them.
pub(crate) fn push_text(out: &mut String, text: &str) {
    if text.len() <= TEXT_MAX && is_sf_token(text.as_bytes()) {
        out.push_str(text);
        return;
    }
    out.push('"');
    let mut room = TEXT_MAX;
    for byte in text.bytes() {
        let width = if is_printable(byte) { 1 } else { 3 };
        if width > room {
            break;
        }
        room -= width;
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            _ if is_printable(byte) => out.push(char::from(byte)),
            _ => out.extend(['%', hex_digit(byte >> 4), hex_digit(byte & 0xf)]),
        }
    }
    out.push('"');
}

/// Writes an integer, clamped to fifteen digits.
pub(crate) fn push_integer(out: &mut String, number: i64) {
    // Writing to a `String` cannot fail.
    write!(out, "{}", number.clamp(-INTEGER_MAX, INTEGER_MAX)).unwrap_or_default();
}

/// Turns a finished label into a header value without copying it.
pub(crate) fn header_value(label: String) -> HeaderValue {
    HeaderValue::try_from(label).expect("labels are built from printable ASCII only")
}

/// RFC 9651 §3.3.4: a letter or `*`, then token characters, `:` or `/`.
fn is_sf_token(text: &[u8]) -> bool {
    let Some((first, rest)) = text.split_first() else {
        return false;
    };
    (first.is_ascii_alphabetic() || *first == b'*')
        && rest
            .iter()
            .all(|byte| crate::grammar::is_token_byte(*byte) || matches!(byte, b':' | b'/'))
}

const fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

fn hex_digit(value: u8) -> char {
    char::from_digit(value.into(), 16).unwrap_or('0')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sfv::{BareItem, Parser};

    fn text(text: &str) -> String {
        let mut out = String::new();
        push_text(&mut out, text);
        out
    }

    #[test]
    fn a_token_is_written_bare_and_everything_else_quoted() {
        assert_eq!(text("breaker-open"), "breaker-open");
        assert_eq!(text("home/recs:v2"), "home/recs:v2");
        assert_eq!(text("2nd"), "\"2nd\"");
        assert_eq!(text("two words"), "\"two words\"");
        assert_eq!(text(""), "\"\"");
    }

    #[test]
    fn quotes_control_characters_and_other_scripts_are_escaped() {
        assert_eq!(text("a\"b\\c"), r#""a\"b\\c""#);
        assert_eq!(text("a\r\nx: y\0"), "\"a%0d%0ax: y%00\"");
        assert_eq!(text("café"), "\"caf%c3%a9\"");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(text(&"a".repeat(TEXT_MAX)).len(), TEXT_MAX);
        assert_eq!(text(&"a".repeat(TEXT_MAX + 1)).len(), TEXT_MAX + 2);
        assert_eq!(text(&"é".repeat(TEXT_MAX)).len(), TEXT_MAX / 3 * 3 + 2);
    }

    #[test]
    fn integers_are_clamped_to_fifteen_digits() {
        let mut out = String::new();
        push_integer(&mut out, i64::MIN);
        out.push(' ');
        push_integer(&mut out, i64::MAX);
        assert_eq!(out, "-999999999999999 999999999999999");
    }

    proptest! {
        #[test]
        fn every_text_parses_back(input in any::<String>()) {
            let mut out = String::new();
            push_text(&mut out, &input);
            let item: sfv::Item = Parser::new(&out).parse().unwrap();
            let plain = input.len() <= TEXT_MAX && input.bytes().all(is_printable);
            match item.bare_item {
                BareItem::Token(token) => prop_assert_eq!(token.as_str(), input),
                BareItem::String(string) => prop_assert!(!plain || string.as_str() == input),
                BareItem::Integer(_)
                | BareItem::Decimal(_)
                | BareItem::ByteSequence(_)
                | BareItem::Boolean(_)
                | BareItem::Date(_)
                | BareItem::DisplayString(_) => prop_assert!(false, "neither token nor string: {}", out),
            }
            prop_assert_eq!(header_value(out.clone()), out);
        }
    }
}
