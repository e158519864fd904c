//! Decides what a failed attempt is called: to the engine (its class) and to clients (the type of RFC 9209).
//! It exists so that both come from one enum and the most specific word is known where the failure happens.
//! It refuses to carry error texts, names or addresses: what clients see is made from the variants alone.

use std::{error::Error, fmt, io, sync::Arc};

use evenkeel::{Class, Outage};
use evenkeel_http::proxy_status::ProxyError;
use http::StatusCode;
use rustix::io::Errno;

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
    /// This machine has no file, port or memory left for a connection; the dependency was not asked.
    NothingLeft,
    /// The connection ended before there was a response head.
    Terminated,
    /// What came is not HTTP, or its head is larger than accepted.
    Unreadable,
    /// There was no connection in time; only where the work keeps the time itself.
    ConnectTooLate,
    /// There was no answer in time; only where the work keeps the time itself.
    AnswerTooLate,
    /// The body ended early.
    Cut,
    /// An error answer, and what it counts as; passed on as it was when nothing stands in for it. Without a body
    /// here, the one who asked has been handed the stream.
    ErrorAnswer(StatusCode, Class, Option<Arc<Whole>>),
    /// An answer that the contract calls a defect: it is not shown, and nothing stands in for it.
    Fault,
}

impl Trouble {
    /// Names the failure of a connection attempt.
    pub(super) fn of_connecting(error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        let kind = error.kind();
        let own = [
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOBUFS,
            Errno::NOMEM,
            Errno::ADDRNOTAVAIL,
        ];
        if Errno::from_io_error(error).is_some_and(|number| own.contains(&number)) {
            Self::NothingLeft
        } else if matches!(kind, Kind::HostUnreachable | Kind::NetworkUnreachable) {
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
            Self::ConnectTooLate | Self::AnswerTooLate => Class::Outage(Outage::TimedOut),
            Self::NothingLeft => Class::Local,
            Self::Cut => Class::Outage(Outage::Cut),
            Self::ErrorAnswer(_, class, _) => *class,
            Self::Fault => Class::Fault,
        }
    }

    /// Returns the most specific type of RFC 9209; `None` for an error answer, which speaks for itself.
    pub(crate) const fn proxy_error(&self) -> Option<ProxyError> {
        Some(match self {
            Self::Refused => ProxyError::ConnectionRefused,
            Self::NameNotFound => ProxyError::DnsError,
            Self::Unroutable => ProxyError::DestinationIpUnroutable,
            Self::ConnectTimedOut => ProxyError::ConnectionTimeout,
            Self::NothingLeft => ProxyError::ConnectionLimitReached,
            Self::Terminated => ProxyError::ConnectionTerminated,
            Self::Unreadable => ProxyError::HttpProtocolError,
            Self::ConnectTooLate => ProxyError::ConnectionTimeout,
            Self::AnswerTooLate => ProxyError::HttpResponseTimeout,
            Self::Cut => ProxyError::HttpResponseIncomplete,
            Self::Fault => ProxyError::ProxyInternalError,
            Self::ErrorAnswer(..) => return None,
        })
    }

    /// Returns the status of an error answer.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        match self {
            Self::ErrorAnswer(status, ..) => Some(*status),
            Self::Refused
            | Self::NameNotFound
            | Self::Unroutable
            | Self::ConnectTimedOut
            | Self::NothingLeft
            | Self::Terminated
            | Self::Unreadable
            | Self::ConnectTooLate
            | Self::AnswerTooLate
            | Self::Cut
            | Self::Fault => None,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ErrorAnswer(status, ..) => write!(f, "error answer {}", status.as_u16()),
            Self::Refused
            | Self::NameNotFound
            | Self::Unroutable
            | Self::ConnectTimedOut
            | Self::NothingLeft
            | Self::Terminated
            | Self::Unreadable
            | Self::ConnectTooLate
            | Self::AnswerTooLate
            | Self::Cut
            | Self::Fault => f.write_str(self.proxy_error().map_or("failed", ProxyError::as_str)),
        }
    }
}

impl Error for Trouble {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_machine_lacks_is_not_blamed_on_the_dependency() {
        for number in [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL] {
            let trouble = Trouble::of_connecting(&number.into());
            assert_eq!(trouble.class(), Class::Local, "{number}");
        }
        for number in [Errno::CONNREFUSED, Errno::HOSTUNREACH, Errno::TIMEDOUT] {
            let trouble = Trouble::of_connecting(&number.into());
            assert_eq!(trouble.class(), Class::Outage(Outage::Failed), "{number}");
        }
    }
}
