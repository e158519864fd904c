//! Decides in which form the header fields of a stored answer are kept: their names, and all values in one block.
//! It exists because a map of fields costs more memory than the fields, and a shelf holds a million of them.
//! It refuses to know what the fields mean; those who store and those who answer do.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The header fields of one stored answer.
#[derive(Clone, Debug)]
pub(super) struct Head {
    /// The values, one behind the other.
    values: Bytes,
    fields: Box<[Field]>,
}

#[derive(Clone, Debug)]
struct Field {
    name: HeaderName,
    /// Where its value ends; it begins where the one before ends.
    end: u32,
}

impl Head {
    /// Copies these fields, so that nothing of the connection they came on is held on to.
    ///
    /// Values beyond 4 GiB in all are left out; no head that any server accepts comes near.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let length = headers.values().map(HeaderValue::len).sum();
        let mut values = BytesMut::with_capacity(length);
        let mut fields = Vec::with_capacity(headers.len());
        for (name, value) in headers {
            values.extend_from_slice(value.as_bytes());
            let Ok(end) = u32::try_from(values.len()) else {
                break;
            };
            let name = name.clone();
            fields.push(Field { name, end });
        }
        Self {
            values: values.freeze(),
            fields: fields.into_boxed_slice(),
        }
    }

    /// Makes a map of them with room for `more` fields.
    pub(super) fn to_map(&self, more: usize) -> HeaderMap {
        let mut map = HeaderMap::with_capacity(self.fields.len() + more);
        let mut begin = 0;
        for Field { name, end } in &self.fields {
            let end = usize::try_from(*end).unwrap_or(usize::MAX);
            // What was a value once is one again; the block is not copied.
            if let Ok(value) = HeaderValue::from_maybe_shared(self.values.slice(begin..end)) {
                map.append(name, value);
            }
            begin = end;
        }
        map
    }

    /// Returns the bytes that it takes. Well-known names take none of their own; they are counted like the others.
    pub(super) fn bytes(&self) -> usize {
        let names: usize = self.fields.iter().map(|field| field.name.as_str().len()).sum();
        self.values.len() + self.fields.len() * size_of::<Field>() + names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_as_they_were_in_order_and_with_repeats() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("vary", "a"),
            ("link", "<1>"),
            ("x-empty", ""),
            ("link", "<2>"),
            ("x", "\u{e4}"),
        ] {
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let head = Head::of(&headers);
        assert_eq!(head.to_map(3), headers);
        assert!(head.bytes() >= "a<1><2>".len() + 5 * size_of::<Field>());
        assert_eq!(Head::of(&HeaderMap::new()).to_map(0), HeaderMap::new());
    }
}
