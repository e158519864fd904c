//! Decides what hyper's errors say about the dependency, also below the errors of a client that uses it.
//! It exists because hyper tells its errors apart by questions, and their order matters.
//! It refuses to blame the dependency for what the program did: a body that broke here is a fault.

use std::{error::Error, io};

use evenkeel_core::{Class, Outage};

use super::chain::chain;

/// Classifies an error of hyper's client. The first row that fits holds:
///
/// | error | class | why |
/// |---|---|---|
/// | `is_user` | fault | a body or a service of this program broke, or hyper was used wrongly |
/// | `is_timeout` | outage, timed out | a keep-alive ping was not answered |
/// | `is_incomplete_message` | outage, cut | the connection ended within the answer, or before it |
/// | caused by an I/O error that [`io`](super::io()) calls an outage | that outage | reset, broken pipe, early end, ... |
/// | all others: `is_parse`, `is_canceled`, `is_closed`, of HTTP/2, of TLS | outage, failed | what came was no HTTP, or the connection went while the call waited for it |
///
/// A caller who leaves drops the call and sees no error: `is_canceled` is of the connection.
///
/// ```no_run
/// use evenkeel::{Engine, classify};
/// let stock = Engine::system()
///     .read::<bytes::Bytes>("stock")
///     .classify(classify::hyper)
///     .build()?;
/// # Ok::<(), evenkeel::Problems>(())
/// ```
#[must_use]
pub fn hyper(error: &::hyper::Error) -> Class {
    if error.is_user() {
        Class::Fault
    } else if error.is_timeout() {
        Class::Outage(Outage::TimedOut)
    } else if error.is_incomplete_message() {
        Class::Outage(Outage::Cut)
    } else {
        chain(error).find_map(of_io).unwrap_or(Class::OUTAGE)
    }
}

/// Looks for an error of hyper's, or an I/O error that is an outage, in an error and what caused it; classifies the
/// first that it finds. `None` if there is none: then the error is not about the connection.
///
/// For clients that wrap hyper's errors, such as the one of `hyper-util`, whose own question comes first: it knows of
/// connections that could not be made, names that were not found among them.
///
/// ```
/// use evenkeel::{Class, classify};
/// use hyper_util::client::legacy;
///
/// fn class(error: &legacy::Error) -> Class {
///     if error.is_connect() {
///         return Class::OUTAGE;
///     }
///     classify::hyper_within(error).unwrap_or(Class::Fault)
/// }
/// ```
#[must_use]
pub fn hyper_within(error: &(dyn Error + 'static)) -> Option<Class> {
    chain(error).find_map(|error| error.downcast_ref().map(hyper).or_else(|| of_io(error)))
}

/// Classifies an I/O error that is an outage. What else it may be, such as not permitted, says nothing here: it is
/// about a connection, not about what was asked for.
fn of_io(error: &(dyn Error + 'static)) -> Option<Class> {
    let class = super::io(error.downcast_ref::<io::Error>()?);
    matches!(class, Class::Outage(_)).then_some(class)
}
