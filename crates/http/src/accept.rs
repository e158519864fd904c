//! Decides on one spelling for an `Accept-Encoding` or `Accept-Language`, so that clients that want the same
//! share one variant.
//! It exists because browsers spell the same wish in dozens of ways, and each would be a copy of its own
//! (G29).
//! It refuses to change a wish: what it cannot read stays as it is, and the request is rewritten *before* it is
//! keyed and forwarded, so that the origin sees what the key says.

use http::header::{ACCEPT_ENCODING, ACCEPT_LANGUAGE, HeaderMap, HeaderName, HeaderValue};

use crate::grammar::{is_token, list_elements, trim_ows};

/// The most members normalised; a longer list stays as it is.
pub const MEMBERS_MAX: usize = 32;

/// Rewrites `Accept-Encoding`: lower case, `x-gzip` as `gzip`, no repeats, highest weight first and then by
/// name, weights of 1 left out.
///
/// The order of codings carries no meaning (RFC 9110 §12.5.3), so nothing is lost.
///
/// ```
/// use evenkeel_http::accept::normalise_encoding;
/// use http::{HeaderMap, HeaderValue, header::ACCEPT_ENCODING};
///
/// let mut request = HeaderMap::new();
/// request.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip;q=1.0, deflate ; q=0.50,BR"));
/// normalise_encoding(&mut request);
/// assert_eq!(request[ACCEPT_ENCODING], "br, gzip, deflate;q=0.5");
/// ```
pub fn normalise_encoding(request: &mut HeaderMap) {
    rewrite(request, &ACCEPT_ENCODING, |members| {
        for member in members.iter_mut().filter(|member| member.name == "x-gzip") {
            "gzip".clone_into(&mut member.name);
        }
        members.sort_by(|left, right| (right.weight, &left.name).cmp(&(left.weight, &right.name)));
    });
}

/// Rewrites `Accept-Language`: lower case, no repeats, highest weight first, weights of 1 left out.
///
/// Languages of equal weight keep their order, since some origins prefer the first (RFC 9110 §12.5.4).
pub fn normalise_language(request: &mut HeaderMap) {
    rewrite(request, &ACCEPT_LANGUAGE, |members| {
        members.sort_by_key(|member| std::cmp::Reverse(member.weight));
    });
}

struct Member {
    name: String,
    /// In thousandths.
    weight: u16,
}

fn rewrite(request: &mut HeaderMap, field: &HeaderName, order: impl Fn(&mut Vec<Member>)) {
    if !request.contains_key(field) {
        return;
    }
    let members: Option<Vec<_>> = request
        .get_all(field)
        .iter()
        .flat_map(|line| list_elements(line.as_bytes()))
        .take(MEMBERS_MAX + 1)
        .map(read)
        .collect();
    let Some(mut members) = members.filter(|members| members.len() <= MEMBERS_MAX) else {
        return;
    };
    order(&mut members);
    let mut written: Vec<String> = Vec::with_capacity(members.len());
    let mut names: Vec<&str> = Vec::with_capacity(members.len());
    for member in &members {
        // A name twice with different weights is no clear wish.
        if let Some(at) = names.iter().position(|name| *name == member.name) {
            if members.get(at).is_some_and(|first| first.weight == member.weight) {
                continue;
            }
            return;
        }
        names.push(&member.name);
        written.push(write(member));
    }
    if let Ok(line) = HeaderValue::try_from(written.join(", ")) {
        request.insert(field, line);
    }
}

/// Reads `name` or `name;q=weight`; `None` for anything else.
fn read(element: &[u8]) -> Option<Member> {
    let mut pieces = element.split(|byte| *byte == b';').map(trim_ows);
    let name = pieces.next().filter(|name| is_token(name))?;
    let weight = match (pieces.next(), pieces.next()) {
        (None, _) => 1000,
        (Some(weight), None) => thousandths(weight)?,
        (Some(_), Some(_)) => return None,
    };
    Some(Member {
        name: std::str::from_utf8(name).ok()?.to_ascii_lowercase(),
        weight,
    })
}

/// RFC 9110 §12.4.2: `q=` and 0 to 1 with at most three decimals.
fn thousandths(parameter: &[u8]) -> Option<u16> {
    let (name, value) = parameter.split_at_checked(2)?;
    if !name.eq_ignore_ascii_case(b"q=") {
        return None;
    }
    let (whole, decimals) = match value {
        [whole] => (whole, &[][..]),
        [whole, b'.', decimals @ ..] if decimals.len() <= 3 => (whole, decimals),
        _ => return None,
    };
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u16::from(byte - b'0'));
    let mut weight = digit(whole)? * 1000;
    for (byte, unit) in decimals.iter().zip([100, 10, 1]) {
        weight += digit(byte)? * unit;
    }
    (weight <= 1000).then_some(weight)
}

fn write(member: &Member) -> String {
    let Member { name, weight } = member;
    match weight {
        1000 => name.clone(),
        0 => format!("{name};q=0"),
        _ => {
            let decimals = format!("{weight:03}");
            format!("{name};q=0.{}", decimals.trim_end_matches('0'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;
    use proptest::prelude::*;

    fn encoding(lines: &[&str]) -> Vec<String> {
        let mut map = headers(lines.iter().map(|line| ("accept-encoding", *line)));
        normalise_encoding(&mut map);
        map.get_all(ACCEPT_ENCODING)
            .iter()
            .map(|line| line.to_str().unwrap().to_owned())
            .collect()
    }

    fn language(line: &str) -> String {
        let mut map = headers([("accept-language", line)]);
        normalise_language(&mut map);
        map[ACCEPT_LANGUAGE].to_str().unwrap().to_owned()
    }

    #[test]
    fn g29_the_same_wish_has_one_spelling() {
        for lines in [
            &["gzip, br;q=0.9, identity;q=0"][..],
            &["GZIP;q=1.000", "identity; q=0.000 ,br ;q=0.90"],
            &["br;q=0.9,,x-gzip, gzip, identity;Q=0"],
        ] {
            assert_eq!(encoding(lines), ["gzip, br;q=0.9, identity;q=0"], "{lines:?}");
        }
        assert_eq!(encoding(&["*;q=0.05"]), ["*;q=0.05"]);
    }

    #[test]
    fn what_cannot_be_read_stays_as_it_is() {
        for line in [
            "gzip;q=2",
            "gzip;q=0.1234",
            "gzip;level=1",
            "gzip;q=1;x",
            "g zip",
            "gzip;q=.5",
            "br;q=1.5",
        ] {
            assert_eq!(encoding(&[line]), [line]);
        }
        assert_eq!(encoding(&["gzip;q=0.5, gzip"]), ["gzip;q=0.5, gzip"]);
        let long = vec!["a"; MEMBERS_MAX + 1].join(",");
        assert_eq!(encoding(&[&long]), [long]);
        assert_eq!(encoding(&[]), [""; 0]);
        assert_eq!(encoding(&[""]), [""]);
    }

    #[test]
    fn languages_of_equal_weight_keep_their_order() {
        assert_eq!(language("en;q=0.5, DE-de, fr"), "de-de, fr, en;q=0.5");
        assert_eq!(language("fr, de-de;q=1, en;q=0.50"), "fr, de-de, en;q=0.5");
    }

    proptest! {
        #[test]
        fn normalising_twice_changes_nothing_more(line in "[a-c;q=0-1., ]{0,30}") {
            let once = encoding(&[&line]);
            prop_assert_eq!(encoding(&[&once[0]]), once);
        }
    }
}
