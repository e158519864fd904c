//! Decides what stands at one place of a JSON text: nothing, something empty, or something.
//! It exists so that a contract can ask for a part of an answer without the whole of it being taken apart in memory.
//! It refuses texts that are not JSON to their last byte, and nesting that a parser should not follow.

use std::fmt;

use serde_core::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A place in a JSON text, by RFC 6901.
///
/// ```
/// use evenkeel_gateway::config::{Pointer, Stands};
/// let items = Pointer::parse("/data/items").unwrap();
/// assert_eq!(items.find(br#"{"data":{"items":[1]}}"#), Some(Stands::Something));
/// assert_eq!(items.find(br#"{"data":{"items":[]}}"#), Some(Stands::Empty));
/// assert_eq!(items.find(br#"{"data":{}}"#), Some(Stands::Nothing));
/// assert_eq!(items.find(b"<html>"), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer(Vec<Token>);

/// One step into an object or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    name: String,
    /// The same as the place in a list, where it is one.
    index: Option<usize>,
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|step| write!(f, "/{}", step.name.replace('~', "~0").replace('/', "~1")))
    }
}

/// What stands at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// Nothing: there is no such place.
    Nothing,
    /// `null`, an empty text, list or object.
    Empty,
    /// Anything else, `0` and `false` too.
    Something,
}

/// The most steps of a pointer: less than the nesting that a parser follows.
const STEPS_MAX: usize = 64;

impl Pointer {
    /// Reads a pointer: empty for the whole text, else each step behind a slash, `~1` for a slash and `~0` for a tilde.
    ///
    /// # Errors
    /// What is wrong with it, in a few words.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let Some(steps) = text.strip_prefix('/') else {
            return if text.is_empty() {
                Ok(Self(Vec::new()))
            } else {
                Err("it does not begin with a slash")
            };
        };
        let mut tokens = Vec::new();
        for step in steps.split('/') {
            if tokens.len() == STEPS_MAX {
                return Err("it has more than 64 steps");
            }
            let mut name = String::with_capacity(step.len());
            let mut characters = step.chars();
            while let Some(character) = characters.next() {
                name.push(match character {
                    '~' => match characters.next() {
                        Some('0') => '~',
                        Some('1') => '/',
                        Some(_) | None => return Err("a tilde is followed by neither 0 nor 1"),
                    },
                    other => other,
                });
            }
            let is_index = name == "0"
                || (!name.starts_with('0')
                    && !name.is_empty()
                    && name.bytes().all(|byte| byte.is_ascii_digit()));
            let index = is_index.then(|| name.parse().ok()).flatten();
            tokens.push(Token { name, index });
        }
        Ok(Self(tokens))
    }

    /// Finds what stands at the place; `None` if the text is no JSON. Of a name that an object has more than once the last
    /// one counts.
    #[must_use]
    pub fn find(&self, text: &[u8]) -> Option<Stands> {
        let mut reader = serde_json::Deserializer::from_str(str::from_utf8(text).ok()?);
        let stands = Place(&self.0).deserialize(&mut reader).ok()?;
        reader.end().ok()?;
        Some(stands)
    }
}

/// What is left of the way to a place.
struct Place<'p>(&'p [Token]);

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Stands;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Stands, D::Error> {
        reader.deserialize_any(self)
    }
}

impl Place<'_> {
    /// A value that nothing can stand in.
    const fn scalar(&self, stands: Stands) -> Stands {
        if self.0.is_empty() {
            stands
        } else {
            Stands::Nothing
        }
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = Stands;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Stands, E> {
        Ok(self.scalar(Stands::Something))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Stands, E> {
        Ok(self.scalar(Stands::Something))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Stands, E> {
        Ok(self.scalar(Stands::Something))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Stands, E> {
        Ok(self.scalar(Stands::Something))
    }

    fn visit_str<E>(self, text: &str) -> Result<Stands, E> {
        Ok(self.scalar(if text.is_empty() {
            Stands::Empty
        } else {
            Stands::Something
        }))
    }

    fn visit_unit<E>(self) -> Result<Stands, E> {
        Ok(self.scalar(Stands::Empty))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Stands, A::Error> {
        let Some((first, rest)) = self.0.split_first() else {
            return drained(list.next_element::<IgnoredAny>()?.is_some(), || {
                list.next_element::<IgnoredAny>()
            });
        };
        let mut stands = Stands::Nothing;
        let mut place = 0;
        loop {
            let found = if first.index == Some(place) {
                list.next_element_seed(Place(rest))?.map(|found| stands = found)
            } else {
                list.next_element::<IgnoredAny>()?.map(drop)
            };
            if found.is_none() {
                return Ok(stands);
            }
            place += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Stands, A::Error> {
        let Some((first, rest)) = self.0.split_first() else {
            let each = |object: &mut A| object.next_entry::<IgnoredAny, IgnoredAny>();
            return drained(each(&mut object)?.is_some(), || each(&mut object));
        };
        let mut stands = Stands::Nothing;
        while let Some(is_it) = object.next_key_seed(Named(&first.name))? {
            if is_it {
                stands = object.next_value_seed(Place(rest))?;
            } else {
                object.next_value::<IgnoredAny>()?;
            }
        }
        Ok(stands)
    }
}

/// Reads a list or an object to its end, and says whether there was anything in it.
fn drained<T, E>(has_first: bool, mut next: impl FnMut() -> Result<Option<T>, E>) -> Result<Stands, E> {
    if !has_first {
        return Ok(Stands::Empty);
    }
    while next()?.is_some() {}
    Ok(Stands::Something)
}

/// Compares a name of an object without keeping it.
struct Named<'p>(&'p str);

impl<'de> DeserializeSeed<'de> for Named<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<bool, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Named<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

/// Tells of a list at the top of an object whether it has anything in it: `Some(true)` for errors of a GraphQL answer.
/// `None` if the text is no JSON object.
#[must_use]
pub fn has_listed(text: &[u8], name: &str) -> Option<bool> {
    struct Top<'n>(&'n str);
    struct IsList;

    impl<'de> Visitor<'de> for Top<'_> {
        type Value = bool;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<bool, A::Error> {
            let mut has = false;
            while let Some(is_it) = object.next_key_seed(Named(self.0))? {
                if is_it {
                    has = object.next_value_seed(IsList)?;
                } else {
                    object.next_value::<IgnoredAny>()?;
                }
            }
            Ok(has)
        }
    }

    impl<'de> DeserializeSeed<'de> for IsList {
        type Value = bool;

        fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<bool, D::Error> {
            let stands = Place(&[]).deserialize(reader)?;
            Ok(stands == Stands::Something)
        }
    }

    let mut reader = serde_json::Deserializer::from_str(str::from_utf8(text).ok()?);
    let has = (&mut reader).deserialize_map(Top(name)).ok()?;
    reader.end().ok()?;
    Some(has)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_core::Rng;
    use serde_json::Value;

    #[test]
    fn the_examples_of_rfc_6901() {
        let text =
            br#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}"#;
        let document: Value = serde_json::from_slice(text).unwrap();
        for pointer in [
            "", "/foo", "/foo/0", "/", "/a~1b", "/c%d", "/e^f", "/g|h", "/i\\j", "/k\"l", "/ ", "/m~0n",
        ] {
            assert!(document.pointer(pointer).is_some(), "{pointer}");
            assert_eq!(
                Pointer::parse(pointer).unwrap().find(text),
                Some(Stands::Something),
                "{pointer}"
            );
        }
        for pointer in [
            "/foo/2", "/foo/-", "/foo/00", "/foo/01", "/foo/+1", "/bar", "/foo/bar", "/foo/0/x",
        ] {
            assert_eq!(
                Pointer::parse(pointer).unwrap().find(text),
                Some(Stands::Nothing),
                "{pointer}"
            );
        }
    }

    #[test]
    fn what_is_no_pointer_is_told() {
        for text in ["foo", "/~", "/~2", "/a~", " /a"] {
            assert!(Pointer::parse(text).is_err(), "{text}");
        }
        assert!(Pointer::parse(&"/a".repeat(64)).is_ok());
        assert!(Pointer::parse(&"/a".repeat(65)).is_err());
    }

    #[test]
    fn what_is_no_json_is_none_wherever_it_breaks() {
        let pointer = Pointer::parse("/a").unwrap();
        for text in [
            "",
            " ",
            "{",
            "{\"a\":1",
            "{\"a\":1}x",
            "{\"a\":1,}",
            "<html>",
            "{\"a\":\"\u{1}\"}",
            "{\"a\":1,\"b\":tru}",
        ] {
            assert_eq!(pointer.find(text.as_bytes()), None, "{text}");
        }
        assert_eq!(pointer.find(b"{\"a\":\"\xff\"}"), None);
        // Also where nobody looks.
        assert_eq!(pointer.find(b"{\"a\":1,\"b\":\"\xff\"}"), None);
        assert_eq!(pointer.find(b"{\"a\":1,\"\xff\":1}"), None);
        assert_eq!(has_listed(b"{\"errors\":[],\"b\":[\"\xff\"]}", "errors"), None);
        // Nesting ends in an error, not in the end of the stack.
        let deep = "[".repeat(100_000);
        assert_eq!(pointer.find(deep.as_bytes()), None);
        let deep = format!("{}1{}", "{\"a\":".repeat(50_000), "}".repeat(50_000));
        assert!(
            pointer
                .find(deep.as_bytes())
                .is_none_or(|stands| stands == Stands::Something)
        );
    }

    #[test]
    fn only_a_list_with_something_in_it_is_an_error() {
        for (text, has) in [
            ("{}", Some(false)),
            ("{\"errors\":null}", Some(false)),
            ("{\"errors\":[]}", Some(false)),
            ("{\"errors\":[{}],\"data\":null}", Some(true)),
            ("{\"data\":{\"errors\":[1]}}", Some(false)),
            ("[]", None),
            ("{\"errors\":[1]", None),
        ] {
            assert_eq!(has_listed(text.as_bytes(), "errors"), has, "{text}");
        }
    }

    /// Draws a JSON text in few names, so that pointers meet it.
    fn drawn(draws: &mut Rng, depth: u32) -> String {
        let names = ["a", "b", "", "0", "a~1b", "/"];
        let mut below = |n: u64| draws.next_u64() % n;
        match below(if depth == 0 { 6 } else { 10 }) {
            0 => "null".to_owned(),
            1 => "false".to_owned(),
            2 => "0".to_owned(),
            3 => "-1.5e3".to_owned(),
            4 => "\"\"".to_owned(),
            5 => "\"x\\u0041\\\"\"".to_owned(),
            6 | 7 => {
                let count = below(4);
                let items: Vec<String> = (0..count).map(|_| drawn(draws, depth - 1)).collect();
                format!("[{}]", items.join(" , "))
            }
            _ => {
                let count = below(4);
                let items: Vec<String> = (0..count)
                    .map(|_| {
                        let name = names[usize::try_from(draws.next_u64() % 6).unwrap()];
                        format!("\"{name}\" :{}", drawn(draws, depth - 1))
                    })
                    .collect();
                format!("{{{}}}", items.join(","))
            }
        }
    }

    #[test]
    fn it_finds_what_a_parser_of_the_whole_finds_and_refuses_what_that_refuses() {
        let mut draws = Rng::new(7);
        let steps = ["a", "b", "", "0", "1", "2", "00", "-", "a~01b", "~1", "x"];
        for _ in 0..20_000 {
            let mut text = drawn(&mut draws, 4).into_bytes();
            if draws.next_u64().is_multiple_of(4) && !text.is_empty() {
                let at = usize::try_from(draws.next_u64()).unwrap() % text.len();
                match draws.next_u64() % 3 {
                    0 => text.truncate(at),
                    1 => text[at] = u8::try_from(draws.next_u64() % 256).unwrap(),
                    _ => text.insert(at, b"{}[],:\"0"[usize::try_from(draws.next_u64() % 8).unwrap()]),
                }
            }
            let count = draws.next_u64() % 4;
            let pointer: String = (0..count)
                .map(|_| format!("/{}", steps[usize::try_from(draws.next_u64() % 11).unwrap()]))
                .collect();
            let whole: Option<Value> = serde_json::from_slice(&text).ok();
            let expected = whole.map(|value| match value.pointer(&pointer) {
                None => Stands::Nothing,
                Some(Value::Null) => Stands::Empty,
                Some(Value::String(text)) if text.is_empty() => Stands::Empty,
                Some(Value::Array(list)) if list.is_empty() => Stands::Empty,
                Some(Value::Object(object)) if object.is_empty() => Stands::Empty,
                Some(_) => Stands::Something,
            });
            let found = Pointer::parse(&pointer).unwrap().find(&text);
            let shown = String::from_utf8_lossy(&text);
            // What is passed over is not looked into as closely: a number that fits no type, or half a surrogate.
            if expected.is_some() || !shown.contains(|c: char| c.is_ascii_digit() || c == '\\') {
                assert_eq!(found, expected, "{pointer} in {shown}");
            }
        }
    }
}
