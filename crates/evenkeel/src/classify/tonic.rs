//! Decides what a status of tonic's client says about the dependency.
//! It exists because tonic also writes statuses itself, when no answer came, and then the code says less than its cause.
//! It refuses to take a code for the server's word where the connection broke.

use ::tonic::{Code, Status, TimeoutExpired};
use evenkeel_core::{Class, Outage};

use super::{chain::chain, grpc::grpc, hyper::hyper_within};

/// Classifies a status of tonic. The first row that fits holds:
///
/// | status | class | why |
/// |---|---|---|
/// | caused by `TimeoutExpired` | outage, timed out | the limit of this client's channel passed; tonic calls that CANCELLED |
/// | CANCELLED, UNKNOWN, INTERNAL or UNAVAILABLE, caused by an error of hyper's or an I/O error | as [`hyper_within`](super::hyper_within) | no answer came, and tonic guessed the code |
/// | OK | fault | a status that is no error, returned as one |
/// | all others | as [`grpc`](super::grpc()) | the server's word |
///
/// ```
/// use evenkeel::{Class, Outage, classify};
/// use tonic::Status;
/// assert_eq!(classify::tonic(&Status::unavailable("")), Class::OUTAGE);
/// assert_eq!(classify::tonic(&Status::deadline_exceeded("")), Class::Outage(Outage::TimedOut));
/// assert_eq!(classify::tonic(&Status::not_found("")), Class::Gone);
/// ```
#[must_use]
pub fn tonic(status: &Status) -> Class {
    if chain(status).any(|error| error.is::<TimeoutExpired>()) {
        return Class::Outage(Outage::TimedOut);
    }
    let is_guess = matches!(
        status.code(),
        Code::Cancelled | Code::Unknown | Code::Internal | Code::Unavailable
    );
    let guessed = if is_guess { hyper_within(status) } else { None };
    if status.code() == Code::Ok {
        return Class::Fault;
    }
    guessed.unwrap_or_else(|| grpc(status.code() as i32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn a_status_of_the_server_has_the_class_of_its_code() {
        for code in 1..=16 {
            let status = Status::new(Code::from_i32(code), "says the server");
            assert_eq!(tonic(&status), grpc(code), "{code}");
        }
        assert_eq!(tonic(&Status::new(Code::from_i32(99), "")), grpc(99));
        assert_eq!(tonic(&Status::ok("")), Class::Fault);
    }

    #[test]
    fn a_status_that_tonic_wrote_itself_has_the_class_of_its_cause() {
        let caused_by = |kind: io::ErrorKind| Status::from_error(Box::new(io::Error::from(kind)));
        for (status, class) in [
            (caused_by(io::ErrorKind::ConnectionReset), Class::OUTAGE),
            (
                caused_by(io::ErrorKind::UnexpectedEof),
                Class::Outage(Outage::Cut),
            ),
            (
                Status::from_error(Box::new(io::Error::other(TimeoutExpired(())))),
                Class::Outage(Outage::TimedOut),
            ),
            // Not about the connection: the code stands.
            (
                caused_by(io::ErrorKind::InvalidData),
                Class::Outage(Outage::ErrorAnswer),
            ),
        ] {
            assert_eq!(tonic(&status), class, "{status:?}");
        }
    }
}
