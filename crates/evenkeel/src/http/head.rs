//! Decides in which form the header fields of a stored answer are kept: their names, and all values in one block.
//! It exists because a map of fields costs more memory than the fields, and a shelf holds a million of them.
//! It refuses to know what the fields mean; those who store and those who answer do.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, header};

/// The header fields of one stored answer.
#[derive(Clone, Debug)]
pub(super) struct Head {
    /// The values, one behind the other.
    values: Bytes,
    fields: Box<[Field]>,
    /// The names that are not in [`USUAL`], in the order in which they are met.
    others: Box<[HeaderName]>,
}

#[derive(Clone, Copy, Debug)]
struct Field {
    /// The place of its name in [`USUAL`], or that place behind it in `others`.
    name: u16,
    /// Where its value ends; it begins where the one before ends.
    end: u32,
}

/// Names that many answers have: a number each, instead of 32 bytes.
static USUAL: [HeaderName; 36] = [
    header::ACCEPT_RANGES,
    header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
    header::ACCESS_CONTROL_ALLOW_HEADERS,
    header::ACCESS_CONTROL_ALLOW_METHODS,
    header::ACCESS_CONTROL_ALLOW_ORIGIN,
    header::ACCESS_CONTROL_EXPOSE_HEADERS,
    header::AGE,
    header::ALLOW,
    header::ALT_SVC,
    header::CACHE_CONTROL,
    header::CACHE_STATUS,
    header::CDN_CACHE_CONTROL,
    header::CONTENT_DISPOSITION,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LOCATION,
    header::CONTENT_SECURITY_POLICY,
    header::CONTENT_TYPE,
    header::DATE,
    header::ETAG,
    header::EXPIRES,
    header::LAST_MODIFIED,
    header::LINK,
    header::LOCATION,
    header::PRAGMA,
    header::REFERRER_POLICY,
    header::RETRY_AFTER,
    header::SERVER,
    header::SET_COOKIE,
    header::STRICT_TRANSPORT_SECURITY,
    header::VARY,
    header::VIA,
    header::WARNING,
    header::X_CONTENT_TYPE_OPTIONS,
    header::X_FRAME_OPTIONS,
    header::X_XSS_PROTECTION,
];

impl Head {
    /// Copies these fields, so that nothing of the connection they came on is held on to.
    ///
    /// Values beyond 4 GiB in all, and more names than fit in a head that any server accepts, are left out.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let length: usize = headers.values().map(HeaderValue::len).sum();
        let mut block = BytesMut::with_capacity(length);
        let mut fields = Vec::with_capacity(headers.len());
        let mut others = Vec::new();
        for (name, value) in headers {
            let place = USUAL.iter().chain(&others).position(|known| known == name);
            let place = u16::try_from(place.unwrap_or(USUAL.len() + others.len()));
            let (Ok(place), Ok(end)) = (place, u32::try_from(block.len() + value.len())) else {
                break;
            };
            if usize::from(place) == USUAL.len() + others.len() {
                others.push(name.clone());
            }
            block.extend_from_slice(value.as_bytes());
            fields.push(Field { name: place, end });
        }
        Self {
            values: block.freeze(),
            fields: fields.into_boxed_slice(),
            others: others.into_boxed_slice(),
        }
    }

    /// Makes a map of them with room for `more` fields.
    pub(super) fn to_map(&self, more: usize) -> HeaderMap {
        let mut map = HeaderMap::with_capacity(self.fields.len() + more);
        let mut begin = 0;
        for Field { name, end } in &self.fields {
            let end = usize::try_from(*end).unwrap_or(usize::MAX);
            let place = usize::from(*name);
            let name = USUAL
                .get(place)
                .or_else(|| self.others.get(place.saturating_sub(USUAL.len())));
            // What was a value once is one again; the block is not copied.
            let value = HeaderValue::from_maybe_shared(self.values.slice(begin..end));
            if let (Some(name), Ok(value)) = (name, value) {
                map.append(name, value);
            }
            begin = end;
        }
        map
    }

    /// Returns the bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let others: usize = self
            .others
            .iter()
            .map(|name| size_of::<HeaderName>() + name.as_str().len())
            .sum();
        self.values.len() + size_of_val(&*self.fields) + others
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
        assert_eq!(
            head.bytes(),
            "a<1><2>\u{e4}".len() + 5 * size_of::<Field>() + 2 * 32 + "x-emptyx".len()
        );
        assert_eq!(Head::of(&HeaderMap::new()).to_map(0), HeaderMap::new());
    }
}
