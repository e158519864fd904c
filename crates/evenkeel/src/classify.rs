//! Decides ready-made classifications for error types that everybody has.
//! It exists so that a guard around plain sockets needs no table of its own.
//! It refuses to guess: an error that says nothing about the dependency is a fault.
//!
//! For errors of your own, and those of a client library, write a function from the error to a [`Class`] and give it
//! to [`ReadBuilder::classify`](crate::ReadBuilder::classify). Ask of each error what it says about the dependency: it
//! could not answer (an outage), it answered no (a refusal, gone, busy), or the program is wrong (a fault).
//!
//! ```
//! use evenkeel::{Class, Engine, Outage, classify};
//!
//! enum ShopError {
//!     Io(std::io::Error),
//!     Timeout,
//!     Status(u16),
//!     Parse,
//! }
//!
//! fn class(error: &ShopError) -> Class {
//!     match error {
//!         ShopError::Io(error) => classify::io(error),
//!         ShopError::Timeout => Class::Outage(Outage::TimedOut),
//!         ShopError::Status(status) => match Class::of_status(*status) {
//!             Class::Answer => Class::Fault, // a good status is no error: the client is wrong
//!             class => class,
//!         },
//!         ShopError::Parse => Class::Fault,
//!     }
//! }
//!
//! assert_eq!(class(&ShopError::Status(503)), Class::Outage(Outage::ErrorAnswer));
//! let stock = Engine::system().read::<u32>("stock").classify(class).build()?;
//! # Ok::<(), evenkeel::Problems>(())
//! ```

//!
//! # Ready-made ones
//!
//! | for | function | feature |
//! |---|---|---|
//! | I/O of sockets | [`io()`] | - |
//! | HTTP statuses | [`Class::of_status`] | - |
//! | gRPC codes, of any client | [`grpc()`] | - |
//! | hyper, and what wraps its errors | `hyper`, `hyper_within` | `hyper` |
//! | reqwest | `reqwest` | `reqwest` |
//! | tonic | `tonic` | `tonic` |
//!
//! Each shows its whole table. A feature only adds its function; it changes no other.

#[cfg(feature = "hyper")]
mod chain;
mod grpc;
#[cfg(feature = "hyper")]
mod hyper;
#[cfg(feature = "reqwest")]
mod reqwest;
#[cfg(feature = "tonic")]
mod tonic;

use std::io;

use evenkeel_core::{Class, Outage};

pub use self::grpc::grpc;
#[cfg(feature = "hyper")]
pub use self::hyper::{hyper, hyper_within};
#[cfg(feature = "reqwest")]
pub use self::reqwest::reqwest;
#[cfg(feature = "tonic")]
pub use self::tonic::tonic;

/// Classifies an I/O error of a network call.
///
/// Connection trouble is an outage, an early end is a cut answer. What the other side or the system decided
/// (not found, not permitted, already there) is a refusal. Everything else, such as invalid data, is a fault.
///
/// ```
/// use evenkeel::{Class, Outage, classify};
/// use std::io::{Error, ErrorKind};
/// assert_eq!(classify::io(&Error::from(ErrorKind::ConnectionRefused)), Class::OUTAGE);
/// assert_eq!(classify::io(&Error::from(ErrorKind::UnexpectedEof)), Class::Outage(Outage::Cut));
/// assert_eq!(classify::io(&Error::other("?")), Class::Fault);
/// ```
#[must_use]
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the list of I/O errors is open; unknown ones are faults"
)]
pub fn io(error: &io::Error) -> Class {
    match error.kind() {
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::NotConnected
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::NetworkDown
        | io::ErrorKind::AddrNotAvailable => Class::OUTAGE,
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Class::Outage(Outage::TimedOut),
        io::ErrorKind::UnexpectedEof => Class::Outage(Outage::Cut),
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::AlreadyExists => {
            Class::Refusal
        }
        _ => Class::Fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_trouble_is_an_outage_and_nothing_else_is() {
        for (kind, class) in [
            (io::ErrorKind::ConnectionReset, Class::OUTAGE),
            (io::ErrorKind::BrokenPipe, Class::OUTAGE),
            (io::ErrorKind::TimedOut, Class::Outage(Outage::TimedOut)),
            (io::ErrorKind::PermissionDenied, Class::Refusal),
            (io::ErrorKind::InvalidData, Class::Fault),
            (io::ErrorKind::OutOfMemory, Class::Fault),
        ] {
            assert_eq!(io(&io::Error::from(kind)), class, "{kind:?}");
        }
    }
}
