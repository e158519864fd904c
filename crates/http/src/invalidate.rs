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

/// Yields the further URIs whose copies may be retired: `Location` and `Content-Location`, resolved against the
/// target and on its own origin (C28).
///
/// `target` is the absolute URI of the request. A reference to another origin is left out, as is one that
/// cannot be read; at most two are yielded. They need not differ from the target.
pub fn related_targets<'a>(target: &'a Uri, headers: &'a HeaderMap) -> impl Iterator<Item = Uri> + 'a {
    [LOCATION, CONTENT_LOCATION].into_iter().filter_map(move |name| {
        let reference = headers.get(name)?.to_str().ok()?;
        let resolved = resolve(target, reference)?;
        let same = same_origin(
            (resolved.scheme()?, resolved.authority()?),
            (target.scheme()?, target.authority()?),
        );
        same.then_some(resolved)
    })
}

/// Resolves a URI reference (RFC 3986 §5.2); its fragment is dropped.
fn resolve(target: &Uri, reference: &str) -> Option<Uri> {
    let reference = reference.split('#').next().unwrap_or_default();
    let scheme = target.scheme_str()?;
    if has_scheme(reference) {
        return Uri::try_from(reference).ok();
    }
    if reference.starts_with("//") {
        return Uri::try_from(format!("{scheme}:{reference}")).ok();
    }
    let (path, query) = match reference.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (reference, None),
    };
    let (path, query) = if path.is_empty() {
        (target.path().to_owned(), query.or_else(|| target.query()))
    } else if path.starts_with('/') {
        (without_dots(path), query)
    } else {
        let (folder, _) = target.path().rsplit_once('/').unwrap_or_default();
        (without_dots(&format!("{folder}/{path}")), query)
    };
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    Uri::try_from(format!("{scheme}://{}{path}{query}", target.authority()?)).ok()
}

/// RFC 3986 §4.2: a colon in the first segment ends a scheme.
fn has_scheme(reference: &str) -> bool {
    let first_segment = reference.split(['/', '?']).next().unwrap_or_default();
    first_segment.contains(':')
}

/// Takes `.` and `..` out of an absolute path (RFC 3986 §5.2.4).
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
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
    use proptest::prelude::*;

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
    fn c28_references_are_resolved_against_the_target() {
        // Most are the examples of RFC 3986 §5.4, with the query of the target.
        let target = Uri::from_static("http://a/b/c/d?q");
        for (reference, resolved) in [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("?y", "http://a/b/c/d?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d?q"),
            ("g?y#s", "http://a/b/c/g?y"),
            ("", "http://a/b/c/d?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/../h", "http://a/b/c/h"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("//a/x", "http://a/x"),
        ] {
            let map = headers([("location", reference)]);
            let found: Vec<_> = related_targets(&target, &map)
                .map(|uri| uri.to_string())
                .collect();
            assert_eq!(found, [resolved], "{reference}");
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
            "//other.example/orders/7",
            "https://shop.example/orders/7",
            "http://shop.example:8080/orders/7",
            "mailto:a@shop.example",
            "http://",
            "/a b",
            "\u{e9}",
        ] {
            assert_eq!(related(elsewhere), [""; 0], "{elsewhere}");
        }
    }

    #[test]
    fn c28_a_target_without_origin_has_no_related_ones() {
        let map = headers([("location", "/a"), ("content-location", "b")]);
        assert_eq!(related_targets(&Uri::from_static("/cart"), &map).count(), 0);
    }

    #[test]
    fn c28_content_location_is_followed_too() {
        let target = Uri::from_static("https://shop.example/cart");
        let map = headers([("content-location", "/a"), ("location", "/b")]);
        let found: Vec<_> = related_targets(&target, &map).collect();
        assert_eq!(found, ["https://shop.example/b", "https://shop.example/a"]);
    }

    proptest! {
        #[test]
        fn c28_no_reference_leaves_the_origin(reference in "[a-z:/?#.@%]{0,30}") {
            let target = Uri::from_static("http://shop.example/a/b?c");
            for found in related_targets(&target, &headers([("location", reference.as_str())])) {
                prop_assert_eq!(found.host(), Some("shop.example"));
                prop_assert_eq!(found.scheme_str(), Some("http"));
            }
        }
    }
}
