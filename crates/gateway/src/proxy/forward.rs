//! Decides what of a request is sent on: its target and fields, without what ends here, with what is added here.
//! It exists so that an upstream sees one request, however strange the client's was.
//! It refuses to pass on what a client says about its own origin, and what would make the answer partial on
//! routes that keep answers.

use evenkeel_http::hop::{ConnectionOptions, Via, strip_hop_by_hop};
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Uri,
    header::{HOST, TRAILER},
    request::Parts,
};

use super::{
    link::Outgoing,
    peer::{self, Peer},
    upload::Upload,
};
use crate::config::{Rewrite, RewriteHost};

const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The fields added to a request: `Via`, perhaps `X-Forwarded-Host`, and what is known of its client.
const ADDED: usize = 2 + peer::ADDED;

/// How much of a request is sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The question alone, and for the whole answer, because that may be kept: validators, ranges and a body stay here.
    Whole,
    /// The question alone; a body stays here.
    Question,
    /// All of it.
    All,
}

/// Makes the request that is sent on, with this body.
pub(super) fn outgoing(
    request: &Parts,
    authority: &HeaderValue,
    peer: &Peer,
    via: &Via,
    rewrite: &Rewrite,
    sent: Sent,
    mut body: Upload,
) -> Outgoing {
    let (mut headers, options) = passed_on(&request.headers, sent);
    rewrite.request.apply(&mut headers);
    via.append(&mut headers, request.version);
    // Where each address is told its own, it is put in when the address is known.
    if let RewriteHost::Given(host) = &rewrite.host {
        headers.insert(HOST, host.clone());
    } else if headers.get(HOST) != Some(authority) {
        headers.insert(HOST, authority.clone());
    }
    if !matches!(rewrite.host, RewriteHost::Keep) {
        headers.insert(X_FORWARDED_HOST, authority.clone());
    }
    if !body.is_empty() {
        // It ends here and begins anew: the trailers that it announces are sent on.
        for names in request.headers.get_all(TRAILER) {
            headers.append(TRAILER, names.clone());
        }
        body.strip(options);
    }
    peer.tell(&request.headers, &mut headers);
    let mut outgoing = Request::new(body);
    *outgoing.method_mut() = request.method.clone();
    *outgoing.uri_mut() =
        rewrite
            .target(&request.uri)
            .unwrap_or_else(|| match request.uri.path_and_query() {
                Some(target) if request.uri.authority().is_some() => Uri::from(target.clone()),
                Some(_) | None => request.uri.clone(),
            });
    *outgoing.headers_mut() = headers;
    outgoing
}

/// Copies the fields that are sent on into a map that has room for those that are added.
fn passed_on(request: &HeaderMap, sent: Sent) -> (HeaderMap, ConnectionOptions) {
    let mut headers = HeaderMap::with_capacity(request.len() + ADDED);
    for (name, value) in request {
        if !ends_here(name, sent) {
            headers.append(name.clone(), value.clone());
        }
    }
    let options = strip_hop_by_hop(&mut headers);
    (headers, options)
}

/// Tells whether a field of a request is not sent on.
///
/// Where a body is not sent on, neither are the fields that announce one. Fields by which a client could change what
/// the request is about, without that being in the key or in the route, are nobody's to send. Many servers read an
/// underscore in a name as a hyphen, so such names are judged as if they had one.
fn ends_here(name: &HeaderName, sent: Sent) -> bool {
    let name = name.as_str();
    if name.contains('_') {
        let read = name.replace('_', "-");
        return read == "transfer-encoding" || is_ended(&read, sent, true);
    }
    is_ended(name, sent, sent != Sent::All)
}

fn is_ended(name: &str, sent: Sent, length: bool) -> bool {
    let whole = sent == Sent::Whole;
    match name.as_bytes().first() {
        Some(b'c') => length && name == "content-length",
        Some(b'e') => name == "expect",
        Some(b'f') => name == "forwarded",
        Some(b'i') => whole && matches!(name, "if-none-match" | "if-modified-since" | "if-range"),
        Some(b'r') => whole && name == "range",
        Some(b't') => name == "true-client-ip",
        Some(b'x') => {
            name.starts_with("x-forwarded")
                || matches!(
                    name,
                    "x-real-ip"
                        | "x-client-ip"
                        | "x-cluster-client-ip"
                        | "x-host"
                        | "x-original-host"
                        | "x-http-host-override"
                        | "x-original-url"
                        | "x-rewrite-url"
                        | "x-http-method"
                        | "x-http-method-override"
                        | "x-method-override"
                )
        }
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(fields: &[(&'static str, &'static str)], sent: Sent) -> Outgoing {
        let mut request = Request::get("http://a.example/x?y").body(()).unwrap();
        for (name, value) in fields {
            request
                .headers_mut()
                .append(*name, HeaderValue::from_static(value));
        }
        let (parts, ()) = request.into_parts();
        let peer = Peer::new("192.0.2.7".parse().unwrap(), false);
        let via = Via::new("evenkeel").unwrap();
        outgoing(
            &parts,
            &HeaderValue::from_static("a.example"),
            &peer,
            &via,
            &Rewrite::default(),
            sent,
            Upload::Empty,
        )
    }

    #[test]
    fn what_a_client_says_about_its_origin_is_replaced_by_what_is_known() {
        let sent = sent(
            &[
                ("x-forwarded-for", "1.2.3.4"),
                ("x-forwarded-port", "99"),
                ("forwarded", "for=evil"),
                ("x-real-ip", "1.2.3.4"),
                ("x-http-method-override", "DELETE"),
                ("x_forwarded_host", "evil"),
                ("X_Http-Method_Override", "DELETE"),
                ("x-host", "evil"),
                ("true-client-ip", "1.2.3.4"),
                ("connection", "x-forwarded-proto"),
            ],
            Sent::Question,
        );
        let fields: Vec<(&str, &str)> = sent
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(
            fields,
            [
                ("via", "1.1 evenkeel"),
                ("host", "a.example"),
                ("x-forwarded-for", "192.0.2.7"),
                ("x-forwarded-proto", "http"),
                ("forwarded", "for=192.0.2.7;proto=http"),
            ]
        );
        assert_eq!(sent.uri(), "/x?y");
    }

    #[test]
    fn validators_and_ranges_stay_here_only_where_answers_are_kept() {
        let fields = [
            ("range", "bytes=0-1"),
            ("if-none-match", "\"a\""),
            ("if-match", "\"b\""),
            ("content-length", "3"),
        ];
        let names = |kind| -> Vec<String> {
            let sent = sent(&fields, kind);
            sent.headers().keys().take(2).map(ToString::to_string).collect()
        };
        assert_eq!(names(Sent::Question), ["range", "if-none-match"]);
        assert_eq!(names(Sent::Whole), ["if-match", "via"]);
    }
}
