//! Decides how a failure between this gateway and a dependency is named to clients (RFC 9209), and with which
//! status.
//! It exists so that a 503 made here can be told from one the origin sent, by a registered word.
//! It refuses to name hosts, addresses or error texts: next hop and free details are not offered (PS5).

use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::sf::{header_value, push_text};

/// The field name.
pub const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

/// The error types of RFC 9209 §2.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyError {
    /// The name lookup took too long.
    DnsTimeout,
    /// The name lookup failed.
    DnsError,
    /// No next hop is known for the request.
    DestinationNotFound,
    /// The next hop is held to be unavailable: breaker open, unhealthy.
    DestinationUnavailable,
    /// The address is not allowed.
    DestinationIpProhibited,
    /// There is no route to the address.
    DestinationIpUnroutable,
    /// The connection was refused.
    ConnectionRefused,
    /// The connection was closed before the answer was complete.
    ConnectionTerminated,
    /// Connecting took too long.
    ConnectionTimeout,
    /// Reading took too long.
    ConnectionReadTimeout,
    /// Writing took too long.
    ConnectionWriteTimeout,
    /// All permits of the next hop are in use.
    ConnectionLimitReached,
    /// A TLS error.
    TlsProtocolError,
    /// The certificate did not verify.
    TlsCertificateError,
    /// A TLS alert was received.
    TlsAlertReceived,
    /// This gateway refuses the request with a 4xx of its own.
    HttpRequestError,
    /// The request is not allowed.
    HttpRequestDenied,
    /// The response ended early.
    HttpResponseIncomplete,
    /// The header section was too large.
    HttpResponseHeaderSectionSize,
    /// One header field was too large.
    HttpResponseHeaderSize,
    /// The body was too large.
    HttpResponseBodySize,
    /// The trailer section was too large.
    HttpResponseTrailerSectionSize,
    /// One trailer field was too large.
    HttpResponseTrailerSize,
    /// The transfer coding could not be undone.
    HttpResponseTransferCoding,
    /// The content coding could not be undone.
    HttpResponseContentCoding,
    /// No answer came in time.
    HttpResponseTimeout,
    /// The upgrade failed.
    HttpUpgradeFailed,
    /// The response breaks the protocol.
    HttpProtocolError,
    /// The gateway answered by itself without asking.
    ProxyInternalResponse,
    /// The gateway failed.
    ProxyInternalError,
    /// The gateway is configured wrongly.
    ProxyConfigurationError,
    /// The request came back to this gateway.
    ProxyLoopDetected,
}

impl ProxyError {
    /// Every error type, in the order of RFC 9209.
    pub const ALL: [Self; 32] = [
        Self::DnsTimeout,
        Self::DnsError,
        Self::DestinationNotFound,
        Self::DestinationUnavailable,
        Self::DestinationIpProhibited,
        Self::DestinationIpUnroutable,
        Self::ConnectionRefused,
        Self::ConnectionTerminated,
        Self::ConnectionTimeout,
        Self::ConnectionReadTimeout,
        Self::ConnectionWriteTimeout,
        Self::ConnectionLimitReached,
        Self::TlsProtocolError,
        Self::TlsCertificateError,
        Self::TlsAlertReceived,
        Self::HttpRequestError,
        Self::HttpRequestDenied,
        Self::HttpResponseIncomplete,
        Self::HttpResponseHeaderSectionSize,
        Self::HttpResponseHeaderSize,
        Self::HttpResponseBodySize,
        Self::HttpResponseTrailerSectionSize,
        Self::HttpResponseTrailerSize,
        Self::HttpResponseTransferCoding,
        Self::HttpResponseContentCoding,
        Self::HttpResponseTimeout,
        Self::HttpUpgradeFailed,
        Self::HttpProtocolError,
        Self::ProxyInternalResponse,
        Self::ProxyInternalError,
        Self::ProxyConfigurationError,
        Self::ProxyLoopDetected,
    ];

    /// Returns the registered token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// Returns the status RFC 9209 recommends; `None` where it leaves the choice to the occasion (a 4xx of
    /// our own, an internal response).
    #[must_use]
    pub fn recommended_status(self) -> Option<StatusCode> {
        StatusCode::from_u16(self.row().1).ok()
    }

    /// The token, and the recommended status or 0.
    const fn row(self) -> (&'static str, u16) {
        match self {
            Self::DnsTimeout => ("dns_timeout", 504),
            Self::DnsError => ("dns_error", 502),
            Self::DestinationNotFound => ("destination_not_found", 500),
            Self::DestinationUnavailable => ("destination_unavailable", 503),
            Self::DestinationIpProhibited => ("destination_ip_prohibited", 502),
            Self::DestinationIpUnroutable => ("destination_ip_unroutable", 502),
            Self::ConnectionRefused => ("connection_refused", 502),
            Self::ConnectionTerminated => ("connection_terminated", 502),
            Self::ConnectionTimeout => ("connection_timeout", 504),
            Self::ConnectionReadTimeout => ("connection_read_timeout", 504),
            Self::ConnectionWriteTimeout => ("connection_write_timeout", 504),
            Self::ConnectionLimitReached => ("connection_limit_reached", 503),
            Self::TlsProtocolError => ("tls_protocol_error", 502),
            Self::TlsCertificateError => ("tls_certificate_error", 502),
            Self::TlsAlertReceived => ("tls_alert_received", 502),
            Self::HttpRequestError => ("http_request_error", 0),
            Self::HttpRequestDenied => ("http_request_denied", 403),
            Self::HttpResponseIncomplete => ("http_response_incomplete", 502),
            Self::HttpResponseHeaderSectionSize => ("http_response_header_section_size", 502),
            Self::HttpResponseHeaderSize => ("http_response_header_size", 502),
            Self::HttpResponseBodySize => ("http_response_body_size", 502),
            Self::HttpResponseTrailerSectionSize => ("http_response_trailer_section_size", 502),
            Self::HttpResponseTrailerSize => ("http_response_trailer_size", 502),
            Self::HttpResponseTransferCoding => ("http_response_transfer_coding", 502),
            Self::HttpResponseContentCoding => ("http_response_content_coding", 502),
            Self::HttpResponseTimeout => ("http_response_timeout", 504),
            Self::HttpUpgradeFailed => ("http_upgrade_failed", 502),
            Self::HttpProtocolError => ("http_protocol_error", 502),
            Self::ProxyInternalResponse => ("proxy_internal_response", 0),
            Self::ProxyInternalError => ("proxy_internal_error", 500),
            Self::ProxyConfigurationError => ("proxy_configuration_error", 500),
            Self::ProxyLoopDetected => ("proxy_loop_detected", 502),
        }
    }
}

/// One `Proxy-Status` member.
///
/// ```
/// use evenkeel_http::proxy_status::{ProxyError, ProxyStatus};
/// use http::StatusCode;
///
/// let error = Some(ProxyError::DestinationUnavailable);
/// let open = ProxyStatus { proxy: "evenkeel", error, received_status: None };
/// assert_eq!(open.to_value(), "evenkeel; error=destination_unavailable");
/// let hidden = ProxyStatus { proxy: "evenkeel", error: None, received_status: Some(StatusCode::BAD_GATEWAY) };
/// assert_eq!(hidden.to_value(), "evenkeel; received-status=502");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyStatus<'a> {
    /// The name of this service; never the software's or a host's (PS4).
    pub proxy: &'a str,
    /// What went wrong, by the most specific type (PS1).
    pub error: Option<ProxyError>,
    /// The status of the dependency, when another answer hides it (PS3).
    pub received_status: Option<StatusCode>,
}

impl ProxyStatus<'_> {
    /// Writes the member.
    #[must_use]
    pub fn to_value(&self) -> HeaderValue {
        let mut out = String::with_capacity(80);
        push_text(&mut out, self.proxy);
        if let Some(error) = self.error {
            out.push_str("; error=");
            out.push_str(error.as_str());
        }
        if let Some(status) = self.received_status {
            out.push_str("; received-status=");
            out.push_str(status.as_str());
        }
        header_value(out)
    }

    /// Appends the member behind those of proxies nearer to the origin (PS4).
    pub fn append_to(&self, headers: &mut HeaderMap) {
        headers.append(PROXY_STATUS, self.to_value());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{headers, parse_list};
    use proptest::prelude::*;

    fn with_status(status: u16) -> Vec<&'static str> {
        let wanted = StatusCode::from_u16(status).ok();
        ProxyError::ALL
            .into_iter()
            .filter(|error| error.recommended_status() == wanted)
            .map(ProxyError::as_str)
            .collect()
    }

    #[test]
    fn ps1_ps2_each_type_has_the_recommended_status() {
        assert_eq!(with_status(403), ["http_request_denied"]);
        assert_eq!(
            with_status(500),
            [
                "destination_not_found",
                "proxy_internal_error",
                "proxy_configuration_error"
            ]
        );
        assert_eq!(
            with_status(503),
            ["destination_unavailable", "connection_limit_reached"]
        );
        assert_eq!(
            with_status(504),
            [
                "dns_timeout",
                "connection_timeout",
                "connection_read_timeout",
                "connection_write_timeout",
                "http_response_timeout"
            ]
        );
        assert_eq!(with_status(0), ["http_request_error", "proxy_internal_response"]);
        assert_eq!(with_status(502).len(), ProxyError::ALL.len() - 1 - 3 - 2 - 5 - 2);
    }

    #[test]
    fn ps3_a_hidden_status_is_named() {
        let label = ProxyStatus {
            proxy: "shop edge",
            error: Some(ProxyError::HttpResponseTimeout),
            received_status: Some(StatusCode::SERVICE_UNAVAILABLE),
        };
        assert_eq!(
            label.to_value(),
            "\"shop edge\"; error=http_response_timeout; received-status=503"
        );
    }

    #[test]
    fn ps4_earlier_members_stay() {
        let mut map = headers([("proxy-status", "inner; error=dns_error")]);
        ProxyStatus {
            proxy: "evenkeel",
            error: Some(ProxyError::DnsError),
            received_status: None,
        }
        .append_to(&mut map);
        let members: Vec<_> = map.get_all(PROXY_STATUS).iter().collect();
        assert_eq!(members, ["inner; error=dns_error", "evenkeel; error=dns_error"]);
    }

    proptest! {
        #[test]
        fn every_member_parses_back(
            proxy in any::<String>(),
            error in prop::option::of(prop::sample::select(ProxyError::ALL.to_vec())),
            status in prop::option::of(100_u16..1000),
        ) {
            let mut map = HeaderMap::new();
            let received_status = status.map(|code| StatusCode::from_u16(code).unwrap());
            ProxyStatus { proxy: &proxy, error, received_status }.append_to(&mut map);
            let members = parse_list(&map, &PROXY_STATUS);
            prop_assert_eq!(members.len(), 1);
            let count = usize::from(error.is_some()) + usize::from(status.is_some());
            prop_assert_eq!(members[0].1.len(), count);
        }
    }
}
