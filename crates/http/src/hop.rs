//! Decides which fields end at this hop and writes the `Via` member that names it.
//! It exists because a forwarded connection field or proxy credential is a hole, and because own fields must
//! be added after the stripping (rule H11).
//! It refuses to judge framing; message parsing and upgrades are the server's, which acts on these fields
//! before they are stripped.
//!
//! Facts for the cache rules are taken from the head *before* stripping ([`crate::facts`]): `Connection:
//! cache-control` must not lift a prohibition.

use std::fmt;

use http::Version;
use http::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, VIA,
};

use crate::grammar::{is_token, list_elements, trim_ows};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_AUTHENTICATION_INFO: HeaderName = HeaderName::from_static("proxy-authentication-info");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

const FIXED_COUNT: usize = 10;

/// The fields that never cross a hop, named in `Connection` or not (rules H10, C04).
pub static HOP_BY_HOP: [HeaderName; FIXED_COUNT] = [
    CONNECTION,
    PROXY_CONNECTION,
    KEEP_ALIVE,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    PROXY_AUTHENTICATE,
    PROXY_AUTHENTICATION_INFO,
    PROXY_AUTHORIZATION,
];

/// The field names a message nominated in `Connection`, for its trailers; empty in nearly every message, and
/// then nothing is allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionOptions(Vec<HeaderName>);

impl ConnectionOptions {
    /// Removes from the trailers of the same message what never crosses a hop (rule H10).
    pub fn strip_trailers(&self, trailers: &mut HeaderMap) {
        for name in &self.0 {
            trailers.remove(name);
        }
        remove_fixed(trailers);
    }
}

/// Removes every field that ends at this hop, in either direction: first the fields that `Connection`
/// nominates, then [`HOP_BY_HOP`].
///
/// Call it before own fields (`Via`, identity, forwarding, trace) are added, so that nobody can nominate
/// those away, and before a response is stored. Without any such field it only looks at the names.
///
/// ```
/// use evenkeel_http::hop::strip_hop_by_hop;
/// use http::{HeaderMap, HeaderValue, header::{ACCEPT, CONNECTION}};
///
/// let mut headers = HeaderMap::new();
/// headers.insert(CONNECTION, HeaderValue::from_static("close, X-Secret"));
/// headers.insert("x-secret", HeaderValue::from_static("1"));
/// headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
/// strip_hop_by_hop(&mut headers);
/// assert_eq!(headers.len(), 1);
/// assert!(headers.contains_key(ACCEPT));
/// ```
pub fn strip_hop_by_hop(headers: &mut HeaderMap) -> ConnectionOptions {
    let options = nominated(headers);
    for name in &options.0 {
        headers.remove(name);
    }
    remove_fixed(headers);
    options
}

/// Removes the fields that `Connection` nominates, and leaves the line itself to [`strip_hop_by_hop`].
///
/// What a sender nominates is said to this hop alone, and nobody behind it sees it. Call it before anything is decided
/// by the fields of a request: a copy that is chosen by a field which the origin never got is somebody else's.
///
/// ```
/// use evenkeel_http::hop::strip_nominated;
/// use http::{HeaderMap, HeaderValue, header::{ACCEPT_LANGUAGE, CONNECTION}};
///
/// let mut headers = HeaderMap::new();
/// headers.insert(CONNECTION, HeaderValue::from_static("Accept-Language"));
/// headers.insert(ACCEPT_LANGUAGE, HeaderValue::from_static("de"));
/// strip_nominated(&mut headers);
/// assert!(!headers.contains_key(ACCEPT_LANGUAGE));
/// assert!(headers.contains_key(CONNECTION));
/// ```
pub fn strip_nominated(headers: &mut HeaderMap) {
    for name in nominated(headers).0 {
        headers.remove(name);
    }
}

/// Reads the `Connection` lines. Members that are no field name, or are removed anyway, are left out, and so is `Host`:
/// every recipient needs it, so that a sender must not nominate it (RFC 9110 §7.6.1).
fn nominated(headers: &HeaderMap) -> ConnectionOptions {
    let names = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|line| list_elements(line.as_bytes()))
        .filter(|option| !option.eq_ignore_ascii_case(b"close") && !option.eq_ignore_ascii_case(b"host"))
        .filter(|option| {
            !HOP_BY_HOP
                .iter()
                .any(|name| option.eq_ignore_ascii_case(name.as_str().as_bytes()))
        })
        .filter_map(|option| HeaderName::from_bytes(option).ok())
        .collect();
    ConnectionOptions(names)
}

/// Removes [`HOP_BY_HOP`]. One pass over the names costs less than ten look-ups, and most messages hold none
/// of them.
fn remove_fixed(headers: &mut HeaderMap) {
    let mut present = [false; FIXED_COUNT];
    let mut any = false;
    for name in headers.keys() {
        // The names are 2 to 25 bytes long, most of others' start differently: the first byte settles nearly
        // all of them.
        if matches!(
            name.as_str().as_bytes().first(),
            Some(b'c' | b'p' | b'k' | b't' | b'u')
        ) && let Some(at) = HOP_BY_HOP.iter().position(|fixed| fixed == name)
            && let Some(flag) = present.get_mut(at)
        {
            *flag = true;
            any = true;
        }
    }
    if any {
        for (name, _) in HOP_BY_HOP.iter().zip(present).filter(|(_, present)| *present) {
            headers.remove(name);
        }
    }
}

/// Returns the protocol a message asks to switch to: its `Upgrade`, if `Connection` nominates that field (RFC
/// 9110 §7.8). Asked before stripping.
#[must_use]
pub fn requested_upgrade(headers: &HeaderMap) -> Option<&HeaderValue> {
    let nominated = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|line| list_elements(line.as_bytes()))
        .any(|option| option.eq_ignore_ascii_case(b"upgrade"));
    headers.get(UPGRADE).filter(|_| nominated)
}

/// Tells whether a request accepts trailers (`TE: trailers`; RFC 9110 §10.1.4). Asked before stripping; the
/// gateway then sends its own `TE`.
#[must_use]
pub fn accepts_trailers(headers: &HeaderMap) -> bool {
    headers
        .get_all(TE)
        .iter()
        .flat_map(|line| list_elements(line.as_bytes()))
        .any(|coding| trim_ows(coding).eq_ignore_ascii_case(b"trailers"))
}

/// The `Via` members of one gateway, made once; appending one to a message copies nothing.
///
/// ```
/// use evenkeel_http::hop::Via;
/// use http::{HeaderMap, Version, header::VIA};
///
/// let via = Via::new("edge-1").unwrap();
/// let mut headers = HeaderMap::new();
/// via.append(&mut headers, Version::HTTP_11);
/// assert_eq!(headers[VIA], "1.1 edge-1");
/// ```
#[derive(Clone, Debug)]
pub struct Via {
    http_1_0: HeaderValue,
    http_1_1: HeaderValue,
    http_2: HeaderValue,
    http_3: HeaderValue,
}

/// A `Via` pseudonym that is not a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPseudonym {
    seen: String,
}

impl fmt::Display for BadPseudonym {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "via pseudonym {:?}: allowed are letters, digits and any of !#$%&'*+-.^_`|~; choose a name such as edge-1",
            self.seen
        )
    }
}

impl std::error::Error for BadPseudonym {}

impl Via {
    /// Makes the members for a pseudonym. It is shown to clients and upstreams, so it should not be a host
    /// name (rule H12).
    ///
    /// # Errors
    ///
    /// When the pseudonym is not a token.
    pub fn new(pseudonym: &str) -> Result<Self, BadPseudonym> {
        let member = |version: &str| {
            Some(pseudonym)
                .filter(|text| is_token(text.as_bytes()))
                .and_then(|text| HeaderValue::try_from(format!("{version} {text}")).ok())
                .ok_or_else(|| BadPseudonym {
                    seen: pseudonym.to_owned(),
                })
        };
        Ok(Self {
            http_1_0: member("1.0")?,
            http_1_1: member("1.1")?,
            http_2: member("2")?,
            http_3: member("3")?,
        })
    }

    /// Appends one member, last, on a line of its own: the version as *received* and the pseudonym. Earlier
    /// members are never merged.
    pub fn append(&self, headers: &mut HeaderMap, received: Version) {
        let member = match received {
            Version::HTTP_09 | Version::HTTP_10 => &self.http_1_0,
            Version::HTTP_2 => &self.http_2,
            Version::HTTP_3 => &self.http_3,
            _ => &self.http_1_1,
        };
        headers.append(VIA, member.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;
    use proptest::prelude::*;

    fn left(lines: &[(&str, &str)]) -> Vec<String> {
        let mut map = headers(lines.iter().copied());
        strip_hop_by_hop(&mut map);
        map.keys().map(|name| name.as_str().to_owned()).collect()
    }

    #[test]
    fn h10_connection_fields_end_at_the_hop() {
        // Case 063.
        assert_eq!(
            left(&[
                ("connection", "close"),
                ("keep-alive", "timeout=5"),
                ("te", "trailers"),
                ("proxy-connection", "keep-alive"),
                ("transfer-encoding", "chunked"),
                ("trailer", "x-sum"),
                ("upgrade", "websocket"),
                ("x-kept", "1"),
            ]),
            ["x-kept"]
        );
    }

    #[test]
    fn h10_host_cannot_be_nominated_away() {
        assert_eq!(
            left(&[("connection", "Host, x-other"), ("host", "a"), ("x-other", "1")]),
            ["host"]
        );
    }

    #[test]
    fn h10_every_nominated_field_is_dropped_on_all_lines_of_connection() {
        let lines = [
            ("connection", "X-Secret , close"),
            ("connection", ",,x-other"),
            ("x-secret", "1"),
            ("x-secret", "2"),
            ("x-other", "1"),
            ("x-kept", "1"),
        ];
        assert_eq!(left(&lines), ["x-kept"]);
    }

    #[test]
    fn h10_nominated_fields_are_dropped_from_trailers_too() {
        let mut head = headers([("connection", "x-sum")]);
        let options = strip_hop_by_hop(&mut head);
        let mut trailers = headers([
            ("x-sum", "1"),
            ("connection", "x"),
            ("proxy-authenticate", "Basic"),
            ("grpc-status", "0"),
        ]);
        options.strip_trailers(&mut trailers);
        assert_eq!(trailers, headers([("grpc-status", "0")]));
    }

    #[test]
    fn h10_proxy_credentials_never_cross_the_hop() {
        // Case 081.
        assert_eq!(
            left(&[
                ("proxy-authorization", "Basic x"),
                ("proxy-authenticate", "Basic"),
                ("proxy-authentication-info", "x"),
                ("authorization", "Bearer t"),
            ]),
            ["authorization"]
        );
    }

    #[test]
    fn members_of_connection_that_are_no_names_are_ignored() {
        assert_eq!(
            left(&[("connection", "a b, \"x-kept\", é"), ("x-kept", "1")]),
            ["x-kept"]
        );
    }

    #[test]
    fn h10_nothing_is_kept_back_for_trailers_when_connection_nominates_nothing() {
        let mut head = headers([("connection", "Keep-Alive, close, Upgrade"), ("accept", "*/*")]);
        assert_eq!(strip_hop_by_hop(&mut head), ConnectionOptions::default());
    }

    #[test]
    fn h11_fields_added_after_stripping_cannot_be_nominated_away() {
        let mut head = headers([
            ("connection", "via, x-forwarded-for"),
            ("via", "1.1 other"),
            ("x-forwarded-for", "evil"),
        ]);
        strip_hop_by_hop(&mut head);
        Via::new("edge").unwrap().append(&mut head, Version::HTTP_11);
        assert_eq!(head, headers([("via", "1.1 edge")]));
    }

    #[test]
    fn an_upgrade_counts_only_when_connection_nominates_it() {
        let asked = headers([("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")]);
        assert_eq!(requested_upgrade(&asked).unwrap(), "websocket");
        assert_eq!(requested_upgrade(&headers([("upgrade", "websocket")])), None);
        assert_eq!(requested_upgrade(&headers([("connection", "upgrade")])), None);
    }

    #[test]
    fn trailers_are_accepted_only_when_te_says_so() {
        assert!(accepts_trailers(&headers([("te", "gzip;q=0.5, Trailers")])));
        assert!(!accepts_trailers(&headers([("te", "gzip")])));
        assert!(!accepts_trailers(&HeaderMap::new()));
    }

    #[test]
    fn h12_via_is_appended_last_with_the_version_as_received() {
        let via = Via::new("edge-1").unwrap();
        for (version, member) in [
            (Version::HTTP_09, "1.0 edge-1"),
            (Version::HTTP_10, "1.0 edge-1"),
            (Version::HTTP_11, "1.1 edge-1"),
            (Version::HTTP_2, "2 edge-1"),
            (Version::HTTP_3, "3 edge-1"),
        ] {
            let mut map = headers([("via", "1.0 fred, 1.1 p.example")]);
            via.append(&mut map, version);
            assert_eq!(
                map,
                headers([("via", "1.0 fred, 1.1 p.example"), ("via", member)])
            );
        }
    }

    #[test]
    fn h12_a_pseudonym_that_is_no_token_is_refused() {
        for bad in ["", "a b", "host:80", "é", "a\r\nx: y", "(c)"] {
            let error = Via::new(bad).unwrap_err();
            assert!(error.to_string().contains("allowed are"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn stripping_equals_removing_name_by_name(
            names in prop::collection::vec(
                prop::sample::select(vec![
                    "connection", "proxy-connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
                    "proxy-authenticate", "proxy-authorization", "proxy-authentication-info",
                    "cookie", "cache-control", "traceparent", "user-agent", "x-a", "x-b", "kite", "pragma",
                ]),
                0..12,
            ),
            nominated in prop::collection::vec(
                prop::sample::select(vec!["x-a", "X-B", "close", "cookie", "te"]),
                0..4,
            ),
        ) {
            let connection = nominated.join(", ");
            let value_of = |name| if name == "connection" { connection.as_str() } else { "1" };
            let mut stripped = headers(names.iter().map(|name| (*name, value_of(*name))));
            let mut model = stripped.clone();
            if model.contains_key("connection") {
                for name in &nominated {
                    model.remove(*name);
                }
            }
            for name in &HOP_BY_HOP {
                model.remove(name);
            }
            strip_hop_by_hop(&mut stripped);
            prop_assert_eq!(stripped, model);
        }

        #[test]
        fn no_bytes_in_connection_make_it_panic(line in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(value) = HeaderValue::from_bytes(&line) {
                let mut map = HeaderMap::new();
                map.append(CONNECTION, value);
                let options = strip_hop_by_hop(&mut map);
                options.strip_trailers(&mut map);
                prop_assert!(map.is_empty());
            }
        }
    }
}
