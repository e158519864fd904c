//! Decides which requests come from where they say: under an own name, and not from a page of somebody else.
//! It exists because a browser on an operator's machine reaches loopback, and runs what other people wrote.
//! It refuses names that others control, and changes that a foreign page asks for.

use std::net::IpAddr;

use evenkeel_http::problem::ProblemKind;
use http::{
    HeaderName, HeaderValue, Request,
    header::{HOST, ORIGIN},
    uri::Authority,
};

use super::reply::Refused;
use crate::proxy::of_request;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Tells whether a request names an IP address or `localhost`.
///
/// A page in a browser can have its own name resolve to this address and then read what is here; the name it used
/// stands in `Host`. IP addresses cannot be taken over in this way.
pub(super) fn is_addressed_here<B>(request: &Request<B>) -> bool {
    let Ok(authority) = of_request(request.uri(), request.headers()) else {
        return false;
    };
    let Ok(authority) = Authority::try_from(authority.as_bytes()) else {
        return false;
    };
    let host = authority.host();
    host.eq_ignore_ascii_case("localhost")
        || host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>()
            .is_ok()
}

/// Lets a change pass unless a page of another origin asks for it.
///
/// A browser says so in `Origin` with every such request, and newer ones in `Sec-Fetch-Site`; a page cannot take
/// either away. The token alone would do; this holds also where one has leaked into a page.
pub(super) fn is_no_foreign_page<B>(request: &Request<B>) -> Result<(), Refused> {
    let headers = request.headers();
    let foreign = |detail: String| Err(Refused::because(ProblemKind::CrossOrigin, detail));
    let sites = headers.get_all(SEC_FETCH_SITE).iter();
    if let Some(site) = sites
        .into_iter()
        .find(|site| *site != "same-origin" && *site != "none")
    {
        return foreign(format!("Sec-Fetch-Site is {site:?}"));
    }
    let own = headers.get(HOST).and_then(|host| host.to_str().ok());
    let is_own = |origin: &HeaderValue| {
        let from = origin
            .to_str()
            .ok()
            .and_then(|origin| origin.strip_prefix("http://"));
        from.is_some() && from == own
    };
    match headers.get_all(ORIGIN).iter().find(|origin| !is_own(origin)) {
        Some(origin) => foreign(format!("Origin is {origin:?}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_pages_and_programs_ask_for_changes() {
        let verdict = |fields: &[(&str, &str)]| {
            let mut request = Request::post("/hold").header(HOST, "127.0.0.1:9181");
            for (name, value) in fields {
                request = request.header(*name, *value);
            }
            is_no_foreign_page(&request.body(()).unwrap()).is_ok()
        };
        assert!(verdict(&[]));
        assert!(verdict(&[
            ("origin", "http://127.0.0.1:9181"),
            ("sec-fetch-site", "same-origin")
        ]));
        for fields in [
            &[("origin", "http://evil.example")][..],
            &[("origin", "null")],
            &[("origin", "https://127.0.0.1:9181")],
            &[("origin", "http://127.0.0.1:9182")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[
                ("sec-fetch-site", "same-origin"),
                ("sec-fetch-site", "cross-site"),
            ],
            &[
                ("origin", "http://127.0.0.1:9181"),
                ("origin", "http://evil.example"),
            ],
        ] {
            assert!(!verdict(fields), "{fields:?}");
        }
    }
}
