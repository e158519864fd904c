//! Decides what a dependency is told about where a request comes from, and whom that is believed.
//! It exists because everybody can send `X-Forwarded-For`, and only the proxies in front of this one may.
//! It refuses the word of peers that the contract does not list: what they say is replaced by what is known.

use std::{fmt, net::IpAddr, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue, header::FORWARDED};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The fields that say anew for each client what the dependency is told of it: no copy can be told apart by what a client
/// says there itself. The scheme is not among them, because it is part of every key.
pub(super) static REPLACED: [HeaderName; 2] = [X_FORWARDED_FOR, FORWARDED];

/// The fields that a peer adds to a request, at most.
pub(super) const ADDED: usize = 3;

/// What is said about a client, made once per connection.
#[derive(Debug)]
pub(crate) struct Peer {
    address: HeaderValue,
    forwarded: HeaderValue,
    /// It is a proxy whose word about its clients counts.
    trusted: bool,
}

impl Peer {
    pub(crate) fn new(address: IpAddr, trusted: bool) -> Self {
        let address = address.to_canonical();
        let node = match address {
            IpAddr::V4(address) => format!("for={address};proto=http"),
            IpAddr::V6(address) => format!("for=\"[{address}]\";proto=http"),
        };
        let value = |text: String| {
            HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
        };
        Self {
            address: value(address.to_string()),
            forwarded: value(node),
            trusted,
        }
    }

    /// Tells whether its word about its clients counts.
    pub(super) const fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// Returns what is said about the same client where its word counts, or counts no more.
    pub(crate) fn trusted_or_not(self: &Arc<Self>, address: IpAddr, trusted: bool) -> Arc<Self> {
        if self.trusted == trusted {
            Arc::clone(self)
        } else {
            Arc::new(Self::new(address, trusted))
        }
    }

    /// Returns the scheme by which the client asked, as far as it may be believed; it is part of every key.
    pub(super) fn scheme(&self, request: &HeaderMap) -> &'static str {
        if !self.trusted {
            return "http";
        }
        let mut lines = request.get_all(X_FORWARDED_PROTO).iter();
        let said = lines.next().map(HeaderValue::as_bytes);
        if said == Some(b"https") && lines.next().is_none() {
            "https"
        } else {
            "http"
        }
    }

    /// Tells a dependency where the request comes from: behind what trusted peers say, or in its place.
    pub(super) fn tell(&self, request: &HeaderMap, headers: &mut HeaderMap) {
        headers.insert(
            X_FORWARDED_FOR,
            self.behind(request, &X_FORWARDED_FOR, &self.address),
        );
        headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static(self.scheme(request)));
        headers.insert(FORWARDED, self.behind(request, &FORWARDED, &self.forwarded));
    }

    /// Returns a list with this peer's member behind those that it passes on.
    fn behind(&self, request: &HeaderMap, name: &HeaderName, own: &HeaderValue) -> HeaderValue {
        if !self.trusted || !request.contains_key(name) {
            return own.clone();
        }
        let mut list = Vec::new();
        for line in request.get_all(name) {
            list.extend_from_slice(line.as_bytes());
            list.extend_from_slice(b", ");
        }
        list.extend_from_slice(own.as_bytes());
        // Made of field values.
        HeaderValue::from_bytes(&list).unwrap_or_else(|_| own.clone())
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.address.to_str().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(trusted: bool, fields: &[(&'static str, &'static str)]) -> [String; 3] {
        let mut request = HeaderMap::new();
        for (name, value) in fields {
            request.append(*name, HeaderValue::from_static(value));
        }
        let mut headers = HeaderMap::new();
        Peer::new("192.0.2.7".parse().unwrap(), trusted).tell(&request, &mut headers);
        ["x-forwarded-for", "x-forwarded-proto", "forwarded"].map(|name| {
            let lines: Vec<&str> = headers
                .get_all(name)
                .iter()
                .map(|line| line.to_str().unwrap())
                .collect();
            lines.join("|")
        })
    }

    #[test]
    fn a_trusted_peer_is_added_behind_what_it_says_and_any_other_replaces_it() {
        let fields = [
            ("x-forwarded-for", "1.2.3.4"),
            ("x-forwarded-for", "5.6.7.8"),
            ("x-forwarded-proto", "https"),
            ("forwarded", "for=1.2.3.4;proto=https"),
        ];
        let own = "for=192.0.2.7;proto=http";
        assert_eq!(told(false, &fields), ["192.0.2.7", "http", own]);
        assert_eq!(
            told(true, &fields),
            [
                "1.2.3.4, 5.6.7.8, 192.0.2.7",
                "https",
                "for=1.2.3.4;proto=https, for=192.0.2.7;proto=http"
            ]
        );
        assert_eq!(told(true, &[]), ["192.0.2.7", "http", own]);
    }

    #[test]
    fn a_scheme_that_is_not_said_once_and_exactly_is_http() {
        for lines in [
            &["https", "https"][..],
            &["HTTPS"],
            &["https, http"],
            &["wss"],
            &[""],
        ] {
            let fields: Vec<(&'static str, &'static str)> =
                lines.iter().map(|line| ("x-forwarded-proto", *line)).collect();
            assert_eq!(told(true, &fields)[1], "http", "{lines:?}");
        }
    }

    #[test]
    fn an_ipv6_client_is_written_as_rfc_7239_asks() {
        let peer = Peer::new("2001:db8::1".parse().unwrap(), false);
        assert_eq!(peer.forwarded, "for=\"[2001:db8::1]\";proto=http");
        assert_eq!(
            Peer::new("::ffff:10.0.0.1".parse().unwrap(), false).address,
            "10.0.0.1"
        );
    }
}
