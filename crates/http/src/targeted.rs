//! Decides what a targeted field such as `CDN-Cache-Control` says in place of `Cache-Control` (RFC 9213).
//! It exists so that an origin can tell gateways something else than browsers, in a field nobody mistakes.
//! It refuses to guess: a field that is not a structured dictionary counts as absent, and one that is not on
//! the caller's list means nothing, whatever its suffix (TC4).

use std::time::Duration;

use http::header::{HeaderMap, HeaderName};
use sfv::{BareItem, Dictionary, ListEntry, Parser};

use crate::delays::DELTA_SECONDS_MAX;
use crate::directives::ResponseDirectives;

/// The field for every cache in front of the origin's own (RFC 9213 §3.1).
pub const CDN_CACHE_CONTROL: HeaderName = HeaderName::from_static("cdn-cache-control");

/// Reads the first field of the list that is a valid, non-empty dictionary; `None` if there is none, and then
/// `Cache-Control` counts (TC1).
///
/// Numbers must be integers; another type, or a negative one, is a lifetime of zero, as in `Cache-Control`
/// (TC2). Parameters are ignored, and of repeated directives the last counts, as structured fields have it. A
/// prohibition counts with any value but `?0`, a permission only as a plain `true`; so the lists in
/// `private="a"` and `no-cache=("a" "b")` make them unqualified (C05).
///
/// ```
/// use evenkeel_http::targeted::{CDN_CACHE_CONTROL, directives};
/// use http::{HeaderMap, HeaderValue};
/// use std::time::Duration;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("cache-control", HeaderValue::from_static("no-store"));
/// headers.insert(CDN_CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
/// let said = directives(&headers, &[CDN_CACHE_CONTROL]).unwrap();
/// assert_eq!((said.max_age, said.no_store), (Some(Duration::from_secs(60)), false));
/// assert_eq!(directives(&headers, &[]), None);
/// ```
#[must_use]
pub fn directives(headers: &HeaderMap, targets: &[HeaderName]) -> Option<ResponseDirectives> {
    targets.iter().find_map(|name| of_field(headers, name))
}

fn of_field(headers: &HeaderMap, name: &HeaderName) -> Option<ResponseDirectives> {
    let mut lines = headers.get_all(name).iter();
    let mut value = lines.next()?.as_bytes().to_vec();
    for line in lines {
        value.extend_from_slice(b", ");
        value.extend_from_slice(line.as_bytes());
    }
    let members: Dictionary = Parser::new(&value).parse().ok()?;
    let mut said = ResponseDirectives::default();
    for (key, member) in &members {
        add(&mut said, key.as_str(), member);
    }
    (!members.is_empty()).then_some(said)
}

fn add(said: &mut ResponseDirectives, key: &str, member: &ListEntry) {
    match key {
        "no-store" => said.no_store = prohibits(member),
        "no-cache" => said.no_cache = prohibits(member),
        "private" => said.private = prohibits(member),
        "must-revalidate" => said.must_revalidate = prohibits(member),
        "proxy-revalidate" => said.proxy_revalidate = prohibits(member),
        "must-understand" => said.must_understand = prohibits(member),
        "no-transform" => said.no_transform = prohibits(member),
        "public" => said.public = boolean(member) == Some(true),
        "max-age" => said.max_age = Some(seconds(member)),
        "s-maxage" => said.s_maxage = Some(seconds(member)),
        "stale-while-revalidate" => said.stale_while_revalidate = Some(seconds(member)),
        "stale-if-error" => said.stale_if_error = Some(seconds(member)),
        _ => {}
    }
}

fn prohibits(member: &ListEntry) -> bool {
    boolean(member) != Some(false)
}

fn boolean(member: &ListEntry) -> Option<bool> {
    match member {
        ListEntry::Item(item) => item.bare_item.as_boolean(),
        ListEntry::InnerList(_) => None,
    }
}

fn seconds(member: &ListEntry) -> Duration {
    let number = match member {
        ListEntry::Item(item) => match &item.bare_item {
            BareItem::Integer(number) => u64::try_from(i64::from(*number)).unwrap_or(0),
            BareItem::Decimal(_)
            | BareItem::String(_)
            | BareItem::Token(_)
            | BareItem::ByteSequence(_)
            | BareItem::Boolean(_)
            | BareItem::Date(_)
            | BareItem::DisplayString(_) => 0,
        },
        ListEntry::InnerList(_) => 0,
    };
    Duration::from_secs(number.min(DELTA_SECONDS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;
    use proptest::prelude::*;

    fn said(value: &str) -> Option<ResponseDirectives> {
        directives(&headers([("cdn-cache-control", value)]), &[CDN_CACHE_CONTROL])
    }

    const fn secs(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    #[test]
    fn tc1_the_first_valid_field_of_the_list_wins() {
        let own = HeaderName::from_static("evenkeel-cache-control");
        let both = headers([
            ("cdn-cache-control", "max-age=1"),
            ("evenkeel-cache-control", "max-age=2"),
        ]);
        let targets = [own.clone(), CDN_CACHE_CONTROL];
        assert_eq!(directives(&both, &targets).unwrap().max_age, secs(2));
        for invalid in ["", "MAX-AGE=2", "max-age=2,,", "max-age= 2", "&"] {
            let broken = headers([("cdn-cache-control", "max-age=1"), (own.as_str(), invalid)]);
            assert_eq!(
                directives(&broken, &targets).unwrap().max_age,
                secs(1),
                "{invalid}"
            );
        }
    }

    #[test]
    fn tc1_empty_and_unparsable_fields_count_as_absent() {
        for value in [
            "",
            " ",
            "max-age=10, &&&",
            "max-age =1",
            "a, b,",
            "Max-Age=1",
            "max-age=1234567890123456",
        ] {
            assert_eq!(said(value), None, "{value}");
        }
    }

    #[test]
    fn tc2_lines_are_one_dictionary_and_the_last_of_repeated_directives_counts() {
        let lines = headers([
            ("cdn-cache-control", "max-age=1"),
            ("cdn-cache-control", "max-age=7;x=2, private"),
        ]);
        let said = directives(&lines, &[CDN_CACHE_CONTROL]).unwrap();
        assert_eq!((said.max_age, said.private), (secs(7), true));
    }

    #[test]
    fn tc2_a_number_of_another_type_is_a_lifetime_of_zero() {
        for value in ["60.0", "\"60\"", "sixty", "-1", "?1", "(60)", "@60", ":YQ==:"] {
            assert_eq!(
                said(&format!("max-age={value}")).unwrap().max_age,
                secs(0),
                "{value}"
            );
        }
        assert_eq!(said("max-age").unwrap().max_age, secs(0));
        assert_eq!(
            said("max-age=99999999999").unwrap().max_age,
            secs(DELTA_SECONDS_MAX)
        );
    }

    #[test]
    fn tc3_every_directive_of_cache_control_is_read() {
        let all = "no-store, no-cache, private, public, must-revalidate, proxy-revalidate, must-understand, \
                   no-transform, max-age=1, s-maxage=2, stale-while-revalidate=3, stale-if-error=4, immutable";
        assert_eq!(
            said(all),
            Some(ResponseDirectives::of(&headers([("cache-control", all)])))
        );
    }

    #[test]
    fn c05_prohibitions_count_with_any_value_but_false() {
        for value in ["", "=?1", "=\"a\"", "=(\"a\" \"b\")", "=1"] {
            let said = said(&format!("private{value}, no-cache{value}, public=\"x\"")).unwrap();
            assert!(said.private && said.no_cache && !said.public, "{value}");
        }
        let off = said("private=?0, no-store=?0").unwrap();
        assert!(!off.private && !off.no_store);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(line in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(value) = http::HeaderValue::from_bytes(&line) {
                let mut map = HeaderMap::new();
                map.append(CDN_CACHE_CONTROL, value);
                let most = secs(DELTA_SECONDS_MAX);
                prop_assert!(directives(&map, &[CDN_CACHE_CONTROL]).is_none_or(|said| said.max_age <= most));
            }
        }
    }
}
