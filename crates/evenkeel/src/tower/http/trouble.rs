//! Decides what an exchange with a service of HTTP failed by, and what that says about the service.
//! It exists because such a service fails in three ways: by its error, by a status, and within a body.
//! It refuses to lose a response that came: it is given as it came where nothing stands in.

use std::{error::Error, fmt, time::Duration};

use bytes::Bytes;
use evenkeel_core::{Advice, Class, Outage};
use evenkeel_http::delays::delta_seconds;
use http::{Response, header::RETRY_AFTER};

/// Why a service of HTTP gave no answer that may be used.
#[derive(Debug)]
pub enum Trouble<E> {
    /// The service failed.
    Service(E),
    /// It answered with a status that is no answer, such as 503.
    Answer(Response<Bytes>),
    /// The body broke off, with what its reader said.
    Cut(Box<dyn Error + Send + Sync>),
    /// The body is larger than this many bytes.
    TooLarge(usize),
}

/// The longest time that a `Retry-After` is heeded for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

impl<E> Trouble<E> {
    /// Returns what it says about the service; `of_service` classifies the service's own error.
    pub(super) fn class(&self, of_service: &impl Fn(&E) -> Class) -> Class {
        match self {
            Self::Service(error) => of_service(error),
            Self::Answer(response) => Class::of_status(response.status().as_u16()),
            Self::Cut(_) => Class::Outage(Outage::Cut),
            Self::TooLarge(_) => Class::Fault,
        }
    }

    /// Reads `Retry-After`, where it is a number of seconds: a date would need a clock.
    pub(super) fn advice(&self) -> Advice {
        let Self::Answer(response) = self else {
            return Advice::Whenever;
        };
        let said = response.headers().get(RETRY_AFTER);
        said.and_then(|said| delta_seconds(said.as_bytes()))
            .map_or(Advice::Whenever, |wait| Advice::After(wait.min(RETRY_AFTER_MAX)))
    }
}

impl<E: fmt::Display> fmt::Display for Trouble<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(error) => error.fmt(f),
            Self::Answer(response) => write!(f, "status {}", response.status().as_u16()),
            Self::Cut(error) => write!(f, "body cut: {error}"),
            Self::TooLarge(max) => write!(
                f,
                "body over {max} bytes; allowed: at most as many; raise `body_max`, or leave this route out of the layer"
            ),
        }
    }
}

impl<E: Error + 'static> Error for Trouble<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Service(error) => error.source(),
            Self::Cut(error) => Some(&**error),
            Self::Answer(_) | Self::TooLarge(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h05_seconds_to_wait_are_heeded_up_to_a_minute_and_dates_are_not() {
        let said = |value: &str| {
            let response = Response::builder().header(RETRY_AFTER, value).body(Bytes::new());
            Trouble::<()>::Answer(response.unwrap()).advice()
        };
        assert_eq!(said("7"), Advice::After(Duration::from_secs(7)));
        assert_eq!(said("61"), Advice::After(RETRY_AFTER_MAX));
        assert_eq!(said("Sun, 30 Nov 2025 00:00:00 GMT"), Advice::Whenever);
        assert_eq!(Trouble::Service(()).advice(), Advice::Whenever);
    }

    #[test]
    fn a_body_over_the_limit_says_how_to_mend_it() {
        let text = Trouble::<std::fmt::Error>::TooLarge(4).to_string();
        assert_eq!(
            text,
            "body over 4 bytes; allowed: at most as many; raise `body_max`, or leave this route out of the layer"
        );
    }
}
