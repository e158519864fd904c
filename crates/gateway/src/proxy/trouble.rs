//! Decides what a failed attempt is called: to the engine (its class) and to clients (the type of RFC 9209).
//! It exists so that both come from one enum and the most specific word is known where the failure happens.
//! It refuses to carry error texts, names or addresses: what clients see is made from the variants alone.

use std::{error::Error, fmt, io, sync::Arc};

use evenkeel::{Class, Outage};
use evenkeel_http::proxy_status::ProxyError;
use http::StatusCode;

use super::whole::Whole;

/// Why an attempt brought no usable answer.
#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// The connection was refused.
    Refused,
    /// The name of the upstream has no address.
    NameNotFound,
    /// There is no route to its address.
    Unroutable,
    /// Connecting took longer than the system allows.
    ConnectTimedOut,
    /// This process or machine had no socket to connect with; the upstream was not asked.
    NoSocket,
    /// The connection ended before there was a response head.
    Terminated,
    /// What came is not HTTP, or its head is larger than accepted.
    Unreadable,
    /// The body ended early.
    Cut,
    /// An error answer that counts as an outage; passed on as it was when nothing stands in for it. Without a body
    /// here, the one who asked has been handed the stream.
    ErrorAnswer(StatusCode, Option<Arc<Whole>>),
}

/// The system's words (`errno`) for a full table of files or no memory for a socket: `ENFILE`, `EMFILE`, `ENOBUFS`,
/// `ENOMEM`.
const NO_SOCKET: [i32; 4] = [23, 24, 105, 12];

impl Trouble {
    /// Names the failure of a connection attempt.
    pub(super) fn of_connecting(error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        let kind = error.kind();
        if error.raw_os_error().is_some_and(|code| NO_SOCKET.contains(&code)) {
            Self::NoSocket
        } else if matches!(
            kind,
            Kind::HostUnreachable | Kind::NetworkUnreachable | Kind::AddrNotAvailable
        ) {
            Self::Unroutable
        } else if kind == Kind::TimedOut {
            Self::ConnectTimedOut
        } else if matches!(kind, Kind::ConnectionReset | Kind::ConnectionAborted) {
            Self::Terminated
        } else {
            Self::Refused
        }
    }

    /// Names the failure of an exchange that brought no response head.
    pub(super) fn of_exchange(error: Option<&hyper::Error>) -> Self {
        if error.is_some_and(hyper::Error::is_parse) {
            Self::Unreadable
        } else {
            Self::Terminated
        }
    }

    /// Returns what the engine makes of it.
    pub(crate) const fn class(&self) -> Class {
        match self {
            Self::Refused
            | Self::NameNotFound
            | Self::Unroutable
            | Self::ConnectTimedOut
            | Self::Terminated
            | Self::Unreadable => Class::Outage(Outage::Failed),
            Self::NoSocket => Class::Local,
            Self::Cut => Class::Outage(Outage::Cut),
            Self::ErrorAnswer(..) => Class::Outage(Outage::ErrorAnswer),
        }
    }

    /// Returns the most specific type of RFC 9209; `None` for an error answer, which speaks for itself.
    pub(crate) const fn proxy_error(&self) -> Option<ProxyError> {
        Some(match self {
            Self::Refused => ProxyError::ConnectionRefused,
            Self::NameNotFound => ProxyError::DnsError,
            Self::Unroutable => ProxyError::DestinationIpUnroutable,
            Self::ConnectTimedOut => ProxyError::ConnectionTimeout,
            Self::NoSocket => ProxyError::ConnectionLimitReached,
            Self::Terminated => ProxyError::ConnectionTerminated,
            Self::Unreadable => ProxyError::HttpProtocolError,
            Self::Cut => ProxyError::HttpResponseIncomplete,
            Self::ErrorAnswer(..) => return None,
        })
    }

    /// Returns the status of an error answer.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        match self {
            Self::ErrorAnswer(status, _) => Some(*status),
            Self::Refused
            | Self::NameNotFound
            | Self::Unroutable
            | Self::ConnectTimedOut
            | Self::NoSocket
            | Self::Terminated
            | Self::Unreadable
            | Self::Cut => None,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ErrorAnswer(status, _) => write!(f, "error answer {}", status.as_u16()),
            Self::Refused
            | Self::NameNotFound
            | Self::Unroutable
            | Self::ConnectTimedOut
            | Self::NoSocket
            | Self::Terminated
            | Self::Unreadable
            | Self::Cut => f.write_str(self.proxy_error().map_or("failed", ProxyError::as_str)),
        }
    }
}

impl Error for Trouble {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e22_a_full_table_of_files_is_our_own_affair_and_no_failure_of_the_upstream() {
        for code in NO_SOCKET {
            let trouble = Trouble::of_connecting(&io::Error::from_raw_os_error(code));
            assert_eq!(trouble.class(), Class::Local, "errno {code}");
            assert_eq!(trouble.proxy_error(), Some(ProxyError::ConnectionLimitReached));
        }
        let refused = Trouble::of_connecting(&io::Error::from(io::ErrorKind::ConnectionRefused));
        assert_eq!(refused.class(), Class::OUTAGE);
    }
}
