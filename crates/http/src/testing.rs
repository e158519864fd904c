//! Builds header maps for the unit tests of this package.
//! It exists so that a test shows the field lines it is about and nothing else.
//! It refuses to be used outside tests.

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// Makes a map from `(name, value)` lines, in order; values may hold any byte a header value may hold.
pub(crate) fn headers<'a>(lines: impl IntoIterator<Item = (&'a str, &'a str)>) -> HeaderMap {
    lines
        .into_iter()
        .map(|(name, value)| {
            (
                name.parse::<HeaderName>().unwrap(),
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            )
        })
        .fold(HeaderMap::new(), |mut map, (name, value)| {
            map.append(name, value);
            map
        })
}

/// One list member as an independent parser sees it: the item, and its parameters as `(key, value)`.
pub(crate) type Member = (sfv::BareItem, Vec<(String, sfv::BareItem)>);

/// Parses all lines of a field as one structured list.
pub(crate) fn parse_list(headers: &HeaderMap, name: &HeaderName) -> Vec<Member> {
    let lines: Vec<_> = headers
        .get_all(name)
        .iter()
        .map(|line| line.to_str().unwrap())
        .collect();
    let list: sfv::List = sfv::Parser::new(&lines.join(", ")).parse().unwrap();
    list.into_iter()
        .map(|entry| {
            let sfv::ListEntry::Item(item) = entry else {
                panic!("an inner list where an item belongs")
            };
            let parameters = item
                .params
                .into_iter()
                .map(|(key, value)| (key.as_str().to_owned(), value));
            (item.bare_item, parameters.collect())
        })
        .collect()
}
