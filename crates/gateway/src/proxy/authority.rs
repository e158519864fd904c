//! Decides whether a `Host` is one valid authority, and how it is written in a key.
//! It exists so that one host has one spelling, and nothing that could be read in two ways gets into a key.
//! It refuses user names, empty hosts and ports that are not numbers.

use http::{HeaderMap, HeaderValue, Uri, header::HOST};

/// Returns the authority that a request is about: that of an absolute target, else its one valid `Host`.
///
/// # Errors
/// What is wrong, in words for the client (rule M08).
pub(crate) fn of_request(uri: &Uri, headers: &HeaderMap) -> Result<HeaderValue, &'static str> {
    let mut lines = headers.get_all(HOST).iter();
    let (Some(host), None) = (lines.next(), lines.next()) else {
        return Err("exactly one Host field is needed");
    };
    if !is_authority(host.as_bytes()) {
        return Err("the Host field is not a host with an optional port");
    }
    match uri.authority() {
        None => Ok(host.clone()),
        Some(_) if uri.scheme_str() != Some("http") => Err("the scheme of the target is not http"),
        Some(authority) if is_authority(authority.as_str().as_bytes()) => {
            HeaderValue::from_str(authority.as_str()).map_err(|_| "the target has no valid host")
        }
        Some(_) => Err("the target has no valid host"),
    }
}

/// Writes an authority as it stands in keys: in lower case, without the default port of its scheme (rule C32).
pub(super) fn normalised(authority: &HeaderValue, scheme: &str) -> HeaderValue {
    let bytes = authority.as_bytes();
    let port: &[u8] = if scheme == "https" { b":443" } else { b":80" };
    let bytes = bytes
        .strip_suffix(port)
        .or_else(|| bytes.strip_suffix(b":"))
        .unwrap_or(bytes);
    if bytes.len() == authority.len() && !bytes.iter().any(u8::is_ascii_uppercase) {
        return authority.clone();
    }
    HeaderValue::from_bytes(&bytes.to_ascii_lowercase()).unwrap_or_else(|_| authority.clone())
}

/// Returns the host of a valid authority, an IPv6 address with its brackets.
pub(super) fn host(authority: &HeaderValue) -> &str {
    let text = authority.to_str().unwrap_or_default();
    let end = text.rfind(']').map_or(0, |bracket| bracket + 1);
    let port = text.get(end..).and_then(|rest| rest.find(':'));
    port.and_then(|port| text.get(..end + port)).unwrap_or(text)
}

/// RFC 3986 §3.2 without user information, and with a host, as RFC 9110 §4.2.1 asks for http.
pub(super) fn is_authority(bytes: &[u8]) -> bool {
    let (host, port) = match bytes.strip_prefix(b"[") {
        Some(rest) => {
            let Some(end) = rest.iter().position(|byte| *byte == b']') else {
                return false;
            };
            let (inner, rest) = rest.split_at(end);
            let address = !inner.is_empty()
                && inner
                    .iter()
                    .all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'));
            if !address {
                return false;
            }
            (inner, rest.get(1..).unwrap_or_default())
        }
        None => {
            let end = bytes.iter().position(|byte| *byte == b':').unwrap_or(bytes.len());
            let (host, rest) = bytes.split_at(end);
            if !host.iter().all(|byte| is_name_byte(*byte)) {
                return false;
            }
            (host, rest)
        }
    };
    !host.is_empty() && host.len() <= HOST_MAX && is_port(port)
}

/// The longest host name, as DNS has it, with room for percent-encoding.
const HOST_MAX: usize = 1024;

const fn is_name_byte(byte: u8) -> bool {
    matches!(
        byte,
        b'a'..=b'z' | b'0'..=b'9' | b'A'..=b'Z' | b'-' | b'.' | b'_' | b'~' | b'%' | b'!' | b'$' | b'&'..=b','
            | b';' | b'='
    )
}

/// Nothing, or a colon and a number of at most 65535; an empty number stands for the default.
fn is_port(bytes: &[u8]) -> bool {
    let Some(digits) = bytes.strip_prefix(b":") else {
        return bytes.is_empty();
    };
    digits.len() <= 5
        && digits.iter().all(u8::is_ascii_digit)
        && digits
            .iter()
            .fold(0_u32, |number, digit| number * 10 + u32::from(digit - b'0'))
            <= 65_535
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(hosts: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, HeaderValue::from_static(host));
        }
        headers
    }

    #[test]
    fn m08_exactly_one_valid_host_is_needed() {
        let target = Uri::from_static("/");
        for hosts in [
            &["a.example"][..],
            &["a:8080"],
            &["[::1]:80"],
            &["10.0.0.1"],
            &["a:"],
        ] {
            assert!(of_request(&target, &headers(hosts)).is_ok(), "{hosts:?}");
        }
        let wrong: [&[&'static str]; 11] = [
            &[],
            &["a", "a"],
            &[""],
            &["a b"],
            &["u@a"],
            &["a:x"],
            &["a:99999"],
            &["[::1"],
            &["a/b"],
            &[":80"],
            &["[]"],
        ];
        for hosts in wrong {
            assert!(of_request(&target, &headers(hosts)).is_err(), "{hosts:?}");
        }
    }

    #[test]
    fn m08_an_absolute_target_overrides_host() {
        let target = Uri::from_static("http://b.example/x");
        assert_eq!(
            of_request(&target, &headers(&["a.example"])).unwrap(),
            "b.example"
        );
        let target = Uri::from_static("https://b.example/x");
        assert!(of_request(&target, &headers(&["a.example"])).is_err());
    }

    #[test]
    fn a_host_is_what_stands_before_the_port() {
        for (authority, expected) in [
            ("a.example", "a.example"),
            ("a.example:80", "a.example"),
            ("a.example:", "a.example"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(host(&HeaderValue::from_static(authority)), expected);
        }
    }

    #[test]
    fn c32_one_host_has_one_spelling() {
        for spelling in ["A.example", "a.example:80", "a.EXAMPLE:", "a.example"] {
            assert_eq!(
                normalised(&HeaderValue::from_static(spelling), "http"),
                "a.example"
            );
        }
        assert_eq!(normalised(&HeaderValue::from_static("a:8080"), "http"), "a:8080");
        assert_eq!(normalised(&HeaderValue::from_static("[::80]"), "http"), "[::80]");
        let secure = |spelling| normalised(&HeaderValue::from_static(spelling), "https");
        assert_eq!(secure("a:443"), "a");
        assert_eq!(secure("a:80"), "a:80");
        assert_eq!(normalised(&HeaderValue::from_static("a:443"), "http"), "a:443");
    }
}
