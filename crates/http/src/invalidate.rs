//! Decides which kept answers an unsafe request retires: those of its own target, and those its answer points
//! to.
//! It exists because a copy that outlives the write it contradicts is wrong even as a last resort (rules C27,
//! C28).
//! It refuses to retire anything after an error answer, so that nobody flushes copies with requests that fail
//! (case 058).

use http::header::{CONTENT_LOCATION, HeaderMap, LOCATION};
use http::uri::{Authority, Scheme};
use http::{Method, StatusCode, Uri};

/// Tells whether an answer with this status to this method retires every copy of the target: all variants,
/// and those kept for failures.
///
/// True for 2xx and 3xx to anything but GET, HEAD, OPTIONS and TRACE. Local refusals and timeouts have no
/// upstream status and retire nothing.
#[must_use]
pub fn retires_target(method: &Method, status: StatusCode) -> bool {
    !method.is_safe() && (status.is_success() || status.is_redirection())
}

/// Yields the further URIs whose copies may be retired: `Location` and `Content-Location`, as paths on the
/// target's own origin.
///
/// `target` is the absolute URI of the request. A reference to another origin is left out, as is one that is
/// neither an absolute URI nor an absolute path; at most two are yielded.
pub fn related_targets<'a>(target: &'a Uri, headers: &'a HeaderMap) -> impl Iterator<Item = Uri> + 'a {
    [LOCATION, CONTENT_LOCATION].into_iter().filter_map(move |name| {
        let reference: Uri = Uri::try_from(headers.get(name)?.as_bytes()).ok()?;
        let reference_path_is_absolute = reference.path().starts_with('/');
        let mut parts = reference.into_parts();
        match (&parts.scheme, &parts.authority) {
            (None, None) if reference_path_is_absolute => {
                parts.scheme = target.scheme().cloned();
                parts.authority = target.authority().cloned();
            }
            (Some(scheme), Some(authority)) => {
                let same = same_origin((scheme, authority), (target.scheme()?, target.authority()?));
                same.then_some(())?;
            }
            _ => return None,
        }
        Uri::from_parts(parts).ok()
    })
}

fn same_origin(left: (&Scheme, &Authority), right: (&Scheme, &Authority)) -> bool {
    let port = |scheme: &Scheme, authority: &Authority| {
        let default = if *scheme == Scheme::HTTPS { 443 } else { 80 };
        authority.port_u16().unwrap_or(default)
    };
    left.0 == right.0
        && left.1.host().eq_ignore_ascii_case(right.1.host())
        && port(left.0, left.1) == port(right.0, right.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;

    fn related(location: &str) -> Vec<String> {
        let target = Uri::from_static("http://shop.example/cart");
        related_targets(&target, &headers([("location", location)]))
            .map(|uri| uri.to_string())
            .collect()
    }

    #[test]
    fn c27_success_and_redirect_to_an_unsafe_method_retire_the_target() {
        for method in [
            Method::POST,
            Method::PUT,
            Method::DELETE,
            Method::PATCH,
            Method::from_bytes(b"MOVE").unwrap(),
        ] {
            assert!(
                retires_target(&method, StatusCode::NO_CONTENT)
                    && retires_target(&method, StatusCode::SEE_OTHER)
            );
        }
        for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE] {
            assert!(!retires_target(&method, StatusCode::OK), "{method}");
        }
    }

    #[test]
    fn c27_error_answers_retire_nothing() {
        // Case 058.
        for code in [400, 401, 405, 429, 500, 503, 504] {
            assert!(
                !retires_target(&Method::POST, StatusCode::from_u16(code).unwrap()),
                "{code}"
            );
        }
    }

    #[test]
    fn c28_only_references_on_the_same_origin_are_followed() {
        assert_eq!(related("/orders/7?x=1"), ["http://shop.example/orders/7?x=1"]);
        assert_eq!(
            related("http://SHOP.example:80/orders/7"),
            ["http://SHOP.example:80/orders/7"]
        );
        for elsewhere in [
            "http://other.example/orders/7",
            "https://shop.example/orders/7",
            "http://shop.example:8080/orders/7",
            "",
            "orders/7",
            "http://",
            "*",
            "\u{e9}",
        ] {
            assert_eq!(related(elsewhere), [""; 0], "{elsewhere}");
        }
    }

    #[test]
    fn c28_content_location_is_followed_too() {
        let target = Uri::from_static("https://shop.example/cart");
        let map = headers([("content-location", "/a"), ("location", "/b")]);
        let found: Vec<_> = related_targets(&target, &map).collect();
        assert_eq!(found, ["https://shop.example/b", "https://shop.example/a"]);
    }
}
